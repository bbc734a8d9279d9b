"""Start the control plane, say when it is usable, restart what dies, leave nothing behind.

Order, found by measuring: etcd and the API server together, the scheduler and the
controller manager only once `/readyz` answers. Started earlier they fail once and then
wait out a back-off, which costs two seconds. Ready means seen to work: the API server
answers `/readyz`, the controller manager has made a service account, the scheduler has
judged a pod.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from localenv.binaries import control_plane_binaries
from localenv.certificates import CertificateAuthority
from localenv.control_plane import flags
from localenv.control_plane.state import StateDirectory
from localenv.kubernetes import ApiError, ApiUnreachable, ConditionNotMet, KubernetesApi
from localenv.kubernetes.connection import kubeconfig
from localenv.ports import free_port, require_free
from localenv.processes import SELDOM_COLLECTED, Processes
from localenv.progress import Report, StreamReport

_READY_SECONDS = 240.0
_PROBE_NAMESPACE = "kube-system"
_PROBE = "scheduler-readiness"
#: The kernel's limit on the path of a unix socket, without the closing zero byte.
_SOCKET_PATH_LIMIT = 107


class ControlPlane:
    """A running control plane; made by `start`, ended by `stop` or at the end of a `with` block.

    Attributes:
        endpoint: URL of the API server.
        issuer: Issuer of service account tokens; its OpenID discovery needs no authentication.
        kubeconfig: File with an administrator's access.
        certificate_authority: PEM file that verifies the API server.
        processes: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, by these names.
        audit_log: What the audited users asked for; there once one of them did.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int,
        proxy_socket: Path | None,
        audited_users: Sequence[str],
        streaming_lists: bool,
    ) -> None:
        """Use `start`."""
        self._directory = directory
        self._made_directory = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        self._port = port
        self._proxy_socket = proxy_socket
        self._audited_users = audited_users
        self._streaming_lists = streaming_lists
        self.endpoint = f"https://127.0.0.1:{port}"
        self.issuer = flags.issuer(port)
        self.kubeconfig = directory / "kubeconfig"
        self.certificate_authority = directory / "ca.crt"
        self._logs = directory / "logs"
        self.audit_log = self._logs / "audit.log"
        self.processes = Processes(self._logs)
        self._state = StateDirectory()
        self._authority = CertificateAuthority(self._state.path / "pki")

    @classmethod
    def start(
        cls,
        directory: Path,
        *,
        port: int | None = None,
        proxy_socket: Path | None = None,
        audited_users: Sequence[str] = (),
        streaming_lists: bool = True,
        report: Report | None = None,
    ) -> ControlPlane:
        """Start a control plane and wait until it works.

        Args:
            directory: Gets `kubeconfig`, `ca.crt` and `logs/`; data and keys lie in memory.
            port: Of the API server on 127.0.0.1; a free one when None.
            proxy_socket: Unix socket of an HTTP CONNECT proxy through which the API server
                reaches Services; it may be made later. Without one, webhooks given by
                `service` cannot be reached.
            audited_users: Whose requests are written into `audit_log`.
            streaming_lists: Whether the API server streams lists, as it does by default.
            report: Hears of a build, if the programs must be built first; standard error by default.

        Raises:
            PortTaken: Something listens on `port`.
            ToolchainMissing, BuildFailed: See `localenv.binaries`.
            ProcessDied, NotReady: A program ended or did not get ready; the message has its last log lines.
        """
        if proxy_socket is not None and len(os.fsencode(proxy_socket.absolute())) > _SOCKET_PATH_LIMIT:
            raise ValueError(
                f"proxy_socket {proxy_socket}: longer than {_SOCKET_PATH_LIMIT} bytes; "
                "hint: use a shorter folder"
            )
        binaries = control_plane_binaries(report or StreamReport())
        chosen = free_port() if port is None else require_free(port, "kube-apiserver")
        plane = cls(
            directory.absolute(),
            port=chosen,
            proxy_socket=proxy_socket.absolute() if proxy_socket else None,
            audited_users=audited_users,
            streaming_lists=streaming_lists,
        )
        try:
            plane._launch(binaries)
        except BaseException:
            plane.stop(keep_logs=True)
            raise
        return plane

    def client(self) -> KubernetesApi:
        """An administrator's client."""
        return KubernetesApi.from_kubeconfig(self.kubeconfig)

    def write_kubeconfig(self, file: Path, user: str, groups: Iterable[str] = ()) -> Path:
        """Write the access of `user` in `groups`, by a client certificate, into `file`."""
        issued = self._authority.client(user, groups)
        entry = {
            "client-certificate-data": flags.base64_text(issued.certificate),
            "client-key-data": flags.base64_text(issued.key),
        }
        file.touch(mode=0o600)
        file.write_text(_yaml(kubeconfig(self.endpoint, self._authority.certificate, entry)))
        return file

    def check(self) -> None:
        """Raise when a program has ended.

        Raises:
            ProcessDied: Names it and shows its last log lines.
        """
        self.processes.check()

    def heal(self) -> list[str]:
        """Start again every program that has ended; return their names.

        Raises:
            ProcessDied, NotReady: One does not come back.
        """
        dead = [death.name for death in self.processes.deaths()]
        for name in dead:
            self.restart(name)
        return dead

    def restart(self, name: str) -> None:
        """Stop (when it runs) and start the program `name`; wait until the API server answers again."""
        self.processes.restart(name)
        if name in {"etcd", "kube-apiserver"}:
            self._await_api_server()

    def stop(self, *, keep_logs: bool = False) -> None:
        """Kill the programs and remove every file that was made; a second call does nothing.

        They get no time to say goodbye: the state is thrown away, and a clean end of the
        API server takes a second.
        """
        self.processes.stop()
        self._state.remove()
        self.kubeconfig.unlink(missing_ok=True)
        self.certificate_authority.unlink(missing_ok=True)
        if not keep_logs:
            shutil.rmtree(self._logs, ignore_errors=True)
        if self._made_directory:
            with suppress(OSError):  # others may have put files there, or logs are kept
                self._directory.rmdir()

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _launch(self, binaries: dict[str, Path]) -> None:
        files = self._write_files()
        self._run(binaries, "etcd", flags.etcd(files))
        self._run(binaries, "kube-apiserver", flags.api_server(files, self._port))
        self._await_api_server()
        self._run(binaries, "kube-scheduler", flags.scheduler(files))
        self._run(binaries, "kube-controller-manager", flags.controller_manager(files))
        api = self.client()
        api.apply(_PUBLIC_DISCOVERY)
        self._await_controller_manager(api)
        self._await_scheduler(api)
        api.close()

    def _run(self, binaries: dict[str, Path], name: str, arguments: list[str]) -> None:
        self.processes.start(
            name,
            [binaries[name], *arguments],
            cwd=self._state.path,
            environment=SELDOM_COLLECTED | os.environ,
            stop_signal=signal.SIGKILL,
        )

    def _write_files(self) -> flags.Files:
        state, authority = self._state.path, self._authority
        self.certificate_authority.write_bytes(authority.certificate)
        self.write_kubeconfig(self.kubeconfig, "kubernetes-admin", ["system:masters"])
        names = ["127.0.0.1", "::1", "localhost", flags.KUBERNETES_SERVICE, *_KUBERNETES_NAMES]
        server, server_key = authority.write("kube-apiserver", authority.server("kube-apiserver", names))
        public, private = authority.write_service_account_key()
        scheduler = state / "scheduler.yaml"
        access = self.write_kubeconfig(state / "scheduler.kubeconfig", "system:kube-scheduler")
        scheduler.write_text(_yaml(flags.scheduler_configuration(access)))
        egress = None
        if self._proxy_socket is not None:
            egress = state / "egress.yaml"
            egress.write_text(_yaml(flags.egress_configuration(self._proxy_socket)))
        audit = None
        if self._audited_users:
            audit = (state / "audit.yaml", self.audit_log)
            audit[0].write_text(_yaml(flags.audit_policy(self._audited_users)))
        return flags.Files(
            state=state,
            authority=authority.certificate_file,
            authority_key=authority.key_file,
            server=server,
            server_key=server_key,
            token_public_key=public,
            token_key=private,
            scheduler_configuration=scheduler,
            controller_manager_kubeconfig=self.write_kubeconfig(
                state / "controller-manager.kubeconfig", "system:kube-controller-manager"
            ),
            egress_configuration=egress,
            audit=audit,
            streaming_lists=self._streaming_lists,
        )

    def _await_api_server(self) -> None:
        api = self.client()
        self.processes.wait_until(
            lambda: _answers(api), what="kube-apiserver to be ready", timeout=_READY_SECONDS
        )
        api.close()

    def _await_controller_manager(self, api: KubernetesApi) -> None:
        accounts = [
            f"/api/v1/namespaces/{name}/serviceaccounts/default" for name in ("default", "kube-system")
        ]
        self.processes.wait_until(
            lambda: all(api.find(path) for path in accounts),
            what="kube-controller-manager to make the default service accounts",
            timeout=_READY_SECONDS,
        )

    def _await_scheduler(self, api: KubernetesApi) -> None:
        """Let it judge a pod that fits nowhere; then remove the pod and what was said about it."""
        path = api.path_of(api.create(_PROBE_POD))
        self.processes.wait_until(
            lambda: bool(api.get(path).get("status", {}).get("conditions")),
            what="kube-scheduler to judge a pod",
            timeout=_READY_SECONDS,
        )
        api.delete(path, grace_seconds=0)
        with suppress(ConditionNotMet):  # the event follows the condition; one that never comes does no harm
            api.wait(lambda: api.events(_PROBE_NAMESPACE, _PROBE), timeout=1.0)
        events = f"/api/v1/namespaces/{_PROBE_NAMESPACE}/events"
        api.request("DELETE", events, query={"fieldSelector": f"involvedObject.name={_PROBE}"})


_KUBERNETES_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)

#: The issuer of a cluster on EKS answers everyone; IAM, which verifies pods' tokens, has no account here.
_PUBLIC_DISCOVERY: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "nodeless:public-issuer-discovery"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "system:service-account-issuer-discovery",
    },
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:unauthenticated"}
    ],
}

_PROBE_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": _PROBE, "namespace": _PROBE_NAMESPACE},
    "spec": {
        "nodeSelector": {"kubernetes.io/hostname": "nowhere"},
        "automountServiceAccountToken": False,
        "containers": [{"name": "none", "image": "none"}],
    },
}


def _answers(api: KubernetesApi) -> bool:
    try:
        # The health check remembers etcd for a while; a read does not.
        ready = api.request("GET", "/readyz", timeout=5.0) == "ok"
        return ready and bool(api.request("GET", "/api/v1/namespaces", query={"limit": 1}, timeout=5.0))
    except (ApiError, ApiUnreachable):
        return False


def _yaml(document: dict[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False))
