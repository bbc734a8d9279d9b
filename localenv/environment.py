"""The whole environment on one machine: control plane, local AWS, kubelets, and the Pulumi stack on them.

`Environment.start` brings it up in the order the parts need each other, side by side where
they do not, and waits until a replica of the controller leads. While it runs, a supervisor
(`supervisor`) starts again what is killed. `stop` leaves no process and no file. The labs
that run on it are in `labs`.

```
programs -> control plane --+-> kubelets -> Pulumi stack -> add-ons -> controller leads
            local AWS ------+
```
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from localenv import addons
from localenv.aws import LocalAws
from localenv.binaries import control_plane_binaries, pulumi_engine
from localenv.control_plane import ControlPlane
from localenv.kubelets.launcher import Kubelets
from localenv.kubernetes import ConditionNotMet, KubernetesApi
from localenv.ports import require_free
from localenv.processes import last_lines
from localenv.progress import Report, StreamReport
from localenv.rbac import ServiceAccount
from localenv.stages import Stages
from localenv.supervisor import Supervisor

if TYPE_CHECKING:
    from localenv.pulumi import ResourceStep, Stack

#: The cluster's name in the first article, which its manifests spell out.
CLUSTER_NAME = "eks-karpenter-demo"
#: Where the controller is by default.
NAMESPACE = "karpenter"
CONTROLLER = ServiceAccount(NAMESPACE, "karpenter")
LEASE = "karpenter-leader-election"
_LEADER_SECONDS = 180.0


class EnvironmentFailed(RuntimeError):
    """A part of the environment could not be brought up or taken down.

    Attributes:
        part: Which one.
        cause: What it said.
    """

    def __init__(self, part: str, cause: BaseException) -> None:
        self.part = part
        self.cause = cause
        super().__init__(f"{part}: {cause}")


@dataclass(frozen=True, slots=True)
class Leader:
    """The replica of the controller that acts.

    Attributes:
        pod: Its name.
        pid: Of its process on this machine.
    """

    pod: str
    pid: int


@dataclass(frozen=True, slots=True)
class Options:
    """How an environment is made.

    Attributes:
        boot_seconds: From an instance's launch to a node that is Ready.
        port: Of the API server on 127.0.0.1; a free one when None.
        aws_port: Of the local AWS, likewise.
        cluster_name: Of the EKS cluster; names of roles and discovery tags follow it.
        default_pool: Whether the stack makes a first pool.
        with_stack: Whether the Pulumi stack is brought up at once; `up` does it later.
        config: Further configuration of the stack, `namespace:key` -> text.
        audited: Whether the API server keeps a log of what the controller asks for.
        also_audited: Names of other users whose requests are in it.
    """

    boot_seconds: float = 2.0
    port: int | None = None
    aws_port: int | None = None
    cluster_name: str = CLUSTER_NAME
    default_pool: bool = False
    with_stack: bool = True
    config: Mapping[str, str] | None = None
    audited: bool = False
    also_audited: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        """Where the controller is."""
        return (self.config or {}).get("nodeless:controllerNamespace", NAMESPACE)


class Environment:
    """A running environment; made by `start`, ended by `stop` or at the end of a `with` block."""

    control_plane: ControlPlane
    aws: LocalAws
    kubelets: Kubelets
    api: KubernetesApi

    def __init__(self, directory: Path | None, options: Options, report: Report) -> None:
        """Use `start`."""
        self.options = options
        self.report = report
        self.began = time.time()
        self._closing = ExitStack()
        self.directory = self._directory(directory)

    @classmethod
    def start(
        cls, directory: Path | None = None, *, report: Report | None = None, options: Options | None = None
    ) -> Self:
        """Bring everything up.

        Args:
            directory: For logs, the kubeconfig and the stack's state; a new temporary one when None.
            report: Hears what is done and how long it takes; standard error by default.
            options: How; by default an environment for the labs.

        Raises:
            EnvironmentFailed: A part did not come up; nothing is left of the others.
        """
        environment = cls(directory, options or Options(), report or StreamReport())
        try:
            with Stages(environment.report) as stages:
                environment._launch(stages)
        except BaseException:
            environment.stop()
            raise
        return environment

    @cached_property
    def stack(self) -> Stack:
        """The Pulumi stack on these parts."""
        from localenv.pulumi import Stack  # noqa: PLC0415 - imported in a thread while processes start

        environment = {
            name: value
            for name, value in self.aws.environment().items()
            if name in ("AWS_ENDPOINT_URL", "AWS_EC2_METADATA_DISABLED")
        }
        config = {
            "nodeless:clusterName": self.options.cluster_name,
            "nodeless:controllerEnvironment": json.dumps(environment),
            "nodeless:defaultPool": str(self.options.default_pool).lower(),
            **(self.options.config or {}),
        }
        return Stack(self.directory / "stack", self.control_plane, self.aws, stack="local", config=config)

    @property
    def kubeconfig(self) -> Path:
        """File with an administrator's access to the cluster."""
        return self.control_plane.kubeconfig

    def variables(self) -> dict[str, str]:
        """Environment variables with which kubectl and AWS's tools use this environment."""
        return {"KUBECONFIG": str(self.kubeconfig), **self.aws.environment()}

    def controller_logs(self) -> list[Path]:
        """Logs of the controller's pods, those that are gone included, oldest first."""
        found = (self.kubelets.directory / "logs").glob("karpenter-*.log")
        return sorted(found, key=lambda log: (log.stat().st_mtime, log.name))

    def controller_pods(self) -> list[str]:
        """Names of the controller's pods that are ready."""
        pods = self.api.list(
            f"/api/v1/namespaces/{self.options.namespace}/pods",
            label_selector="app.kubernetes.io/name=karpenter",
        )
        return sorted(pod["metadata"]["name"] for pod in pods if _is_ready(pod))

    def leader(self) -> Leader | None:
        """The replica that holds the lease and runs; None while there is none."""
        namespace = self.options.namespace
        lease = self.api.find(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE}")
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity") or ""
        # The identity may tell two processes of one pod apart by what follows an underscore.
        pod = holder.partition("_")[0]
        if not pod:
            return None
        try:
            return Leader(pod, self.kubelets.pid_of(namespace, pod))
        except (FileNotFoundError, ValueError):
            return None

    def await_leader(self, *, other_than: str = "", timeout: float = _LEADER_SECONDS) -> Leader:
        """The replica that leads, once one does (and, if given, is not the pod `other_than`).

        Raises:
            ConditionNotMet: None does in time.
        """
        leader: Leader = self.api.wait(
            self.leader,
            lambda found: found is not None and found.pod != other_than,
            timeout=timeout,
            what="a replica of the controller to lead",
        )
        return leader

    def up(self) -> dict[str, int]:
        """Bring the stack up (again); resources per operation. Raises EnvironmentFailed."""
        with Stages(self.report) as stages:
            return self._up(stages)

    def destroy(self) -> dict[str, int]:
        """Destroy the stack, the controller's nodes included. Raises EnvironmentFailed."""
        with Stages(self.report) as stages, _part(stages, "destroying the stack") as title:
            changes = self.stack.destroy(_Counter(stages, title))
            addons.remove(self.api)
            return changes

    def stop(self) -> None:
        """End every process and remove every file; a second call does nothing."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _directory(self, given: Path | None) -> Path:
        if given is None:
            made = Path(tempfile.mkdtemp(prefix="nodeless-")).absolute()
            self._closing.callback(shutil.rmtree, made, ignore_errors=True)
            return made
        directory = given.absolute()
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("kubelets", "aws", "stack"):
            self._closing.callback(shutil.rmtree, directory / name, ignore_errors=True)
        return directory

    def _launch(self, stages: Stages) -> None:
        options = self.options
        with _part(None, "the environment's ports"):
            for port, wanted_by in ((options.port, "kube-apiserver"), (options.aws_port, "the local AWS")):
                if port is not None:
                    require_free(port, wanted_by)
        with _part(None, "the environment's programs"):
            control_plane_binaries(self.report)
            if options.with_stack:
                pulumi_engine(self.report)
        self._start_foundations(stages)
        self.api = self.control_plane.client()
        self._closing.callback(self.api.close)
        self._introduce()
        with _part(stages, "kubelets"):
            self.kubelets = Kubelets.start(
                self.directory / "kubelets",
                self.control_plane,
                self.aws,
                boot_seconds=options.boot_seconds,
                proxy_socket=self._proxy_socket,
            )
        self._closing.callback(self.kubelets.stop)
        supervisor = Supervisor(self.control_plane, self.aws, self.kubelets, stages.line)
        supervisor.start()
        self._closing.callback(supervisor.stop)
        if options.with_stack:
            self._up(stages)
        supervisor.say = self.report

    @property
    def _proxy_socket(self) -> Path:
        return self.directory / "proxy"

    def _start_foundations(self, stages: Stages) -> None:
        """Start control plane and local AWS side by side; one is stopped when the other fails."""
        directory, options = self.directory, self.options
        controller = ServiceAccount(options.namespace, CONTROLLER.name)
        with ThreadPoolExecutor(2, thread_name_prefix="start") as threads:
            aws = threads.submit(self._start_aws, stages)
            if options.with_stack:  # importing Pulumi takes a second, which is free while processes start
                threads.submit(__import__, "localenv.pulumi")
            try:
                with _part(stages, "control plane"):
                    self.control_plane = ControlPlane.start(
                        directory / "control-plane",
                        port=options.port,
                        proxy_socket=self._proxy_socket,
                        audited_users=(controller.user, *options.also_audited) if options.audited else (),
                        report=self.report,
                    )
                self._closing.callback(self.control_plane.stop)
            finally:
                self.aws = aws.result()
                self._closing.callback(self.aws.stop)

    def _start_aws(self, stages: Stages) -> LocalAws:
        with _part(stages, "local AWS"):
            return LocalAws.start(self.directory / "aws", port=self.options.aws_port)

    def _introduce(self) -> None:
        """Tell the local AWS which cluster its EKS has, and with which keys its tokens are signed."""
        authority = self.control_plane.certificate_authority.read_bytes()
        self.aws.set_cluster(
            endpoint=self.control_plane.endpoint,
            certificate_authority_data=base64.b64encode(authority).decode(),
            issuer=self.control_plane.issuer,
            jwks=self.api.request("GET", "/openid/v1/jwks"),
        )

    def _up(self, stages: Stages) -> dict[str, int]:
        with _part(stages, "Pulumi stack") as title:
            changes = self.stack.up(_Counter(stages, title))
        with _part(stages, "add-ons"):
            addons.install(self.api, self.aws.client("eks"), self.options.cluster_name)
        with _part(stages, "controller"):
            self._await_controller()
        return changes

    def _await_controller(self) -> None:
        try:
            self.await_leader()
        except ConditionNotMet as error:
            logs = "\n".join(f"{log.name}:\n{last_lines(log)}" for log in self.controller_logs()[-2:])
            raise RuntimeError(f"{error}\n{logs or 'no pod of it was started'}") from None


@contextmanager
def _part(stages: Stages | None, title: str) -> Iterator[str]:
    """Run one part's step; whatever goes wrong leaves as EnvironmentFailed."""
    try:
        if stages is None:
            yield title
        else:
            with stages.step(title):
                yield title
    except EnvironmentFailed:
        raise
    except Exception as error:
        raise EnvironmentFailed(title, error) from error


class _Counter:
    """Counts the resources that are done and tells the step."""

    def __init__(self, stages: Stages, title: str) -> None:
        self._stages = stages
        self._title = title
        self._done = 0

    def __call__(self, step: ResourceStep) -> None:
        self._done += step.done
        self._stages.detail(self._title, f"{self._done} resources, now {step.name}")


def _is_ready(pod: Mapping[str, object]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []  # type: ignore[attr-defined]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
