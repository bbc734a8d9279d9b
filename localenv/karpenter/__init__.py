"""The real Karpenter controller in the place of the stack's own one.

It is built from its Go module, gets the CRDs of that module, a service account of its own that may do
everything, and temporary credentials of the controller's role; only endpoints say that AWS is not AWS.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from localenv.cache import get_or_make, source_digest
from localenv.environment import NAMESPACE, Environment
from localenv.golang import (
    GoProgram,
    built_with_definitions,
    fetch_module,
    required_go,
    required_version,
    toolchain,
)
from localenv.kubernetes import KubernetesApi, is_established
from localenv.kubernetes.connection import kubeconfig
from localenv.ports import free_port
from localenv.processes import Process, Processes
from localenv.progress import Report
from localenv.rbac import ServiceAccount

_SOURCE = Path(__file__).parent / "source"
_MODULE = "github.com/aws/karpenter-provider-aws"
ACCOUNT = ServiceAccount(NAMESPACE, "peer")
_WEBHOOKS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
_START_SECONDS = 90.0


def karpenter_version() -> str:
    """The release that is built."""
    return required_version(_SOURCE, _MODULE)


def karpenter_program() -> GoProgram:
    """The provider's controller."""
    version = karpenter_version()
    return GoProgram(f"Karpenter {version}", _SOURCE, f"{_MODULE}/cmd/controller", "karpenter")


def karpenter(report: Report) -> Path:
    """A folder with the program and, below `crds`, its CRDs; built once.

    Raises:
        ToolchainMissing: There is no Go to build with.
        BuildFailed: The build failed.
    """
    return built_with_definitions(karpenter_program(), _MODULE, "pkg/apis/crds", report)


def karpenter_charts(report: Report) -> Path:
    """A folder with Karpenter's own charts, `karpenter` and `karpenter-crd`; fetched once.

    They are those of the module, without the definitions that the first one installs on its own.

    Raises:
        ToolchainMissing: There is no Go to fetch with.
        BuildFailed: The module cannot be fetched.
    """

    def make(folder: Path) -> None:
        go = toolchain(required_go(_SOURCE), "Karpenter's charts", report)
        fetched = fetch_module(go, _SOURCE, _MODULE)
        for chart in ("karpenter", "karpenter-crd"):
            shutil.copytree(fetched / "charts" / chart, folder / chart)

    return get_or_make(f"karpenter-charts-{source_digest(_SOURCE)}", make, report)


@contextmanager
def in_its_place(environment: Environment, built: Path) -> Iterator[Process]:
    """Run Karpenter instead of the stack's controller.

    Args:
        environment: Whose stack is up, without any pool.
        built: As `karpenter` gives it.
    """
    _send_away(environment)
    install_crds(environment.api, built / "crds")
    processes = Processes(environment.directory / "peer")
    try:
        yield _start(environment, built / "karpenter", processes)
    finally:
        processes.stop()


def _send_away(environment: Environment) -> None:
    """End the stack's controller, and its webhooks with it."""
    api = environment.api
    deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/karpenter"
    remove_webhooks(api)
    api.scale(deployment, 0)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    api.wait(
        lambda: not api.list(pods, label_selector="app.kubernetes.io/name=karpenter"),
        timeout=_START_SECONDS,
        what="the stack's controller to end",
    )


def remove_webhooks(api: KubernetesApi) -> None:
    """Remove the webhooks of the stack's controller."""
    for collection in _WEBHOOKS:
        path = f"/apis/admissionregistration.k8s.io/v1/{collection}"
        for each in api.list(path):
            if "karpenter" in each["metadata"]["name"] or "nodeless" in each["metadata"]["name"]:
                api.delete(f"{path}/{each['metadata']['name']}")


def install_crds(api: KubernetesApi, folder: Path) -> None:
    """Install Karpenter's own CRDs, in the place of those that are there."""
    for file in sorted(folder.glob("*.yaml")):
        (manifest,) = yaml.safe_load_all(file.read_text())
        manifest.pop("status", None)
        # The peer's schema as it is: ours may say more.
        found = api.find(api.path_of(manifest))
        if found is None:
            api.create(manifest)
        else:
            manifest["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
            api.replace(manifest)
        api.wait(api.path_of(manifest), is_established)


def _start(environment: Environment, program: Path, processes: Processes) -> Process:
    directory = environment.directory / "peer"
    directory.mkdir(parents=True, exist_ok=True)
    process = processes.start(
        "karpenter",
        [program],
        cwd=directory,
        environment=_settings(environment, directory),
    )
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/karpenter-leader-election"

    def leads() -> bool:
        holder = ((environment.api.find(lease) or {}).get("spec") or {}).get("holderIdentity") or ""
        return str(holder).startswith(os.uname().nodename)

    processes.wait_until(leads, what="Karpenter to lead", timeout=_START_SECONDS)
    return process


def _settings(environment: Environment, directory: Path) -> dict[str, str]:
    """The process's environment: as in its chart, and how it reaches cluster and AWS."""
    role = environment.stack.outputs()["controllerRoleArn"]
    assumed = environment.aws.client("sts").assume_role(RoleArn=role, RoleSessionName="peer")
    credentials = assumed["Credentials"]
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(directory),
        "KUBECONFIG": str(_kubeconfig(environment, directory)),
        **environment.aws.environment(),
        **chart_settings(environment),
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
        "SYSTEM_NAMESPACE": NAMESPACE,
        "KARPENTER_SERVICE": "karpenter",
    }


def chart_settings(environment: Environment) -> dict[str, str]:
    """The variables that its chart sets, other than where the process itself is; the ports are free ones."""
    return {
        "CLUSTER_NAME": environment.options.cluster_name,
        "CLUSTER_ENDPOINT": environment.control_plane.endpoint,
        "INTERRUPTION_QUEUE": environment.stack.outputs()["interruptionQueueName"],
        "LEADER_ELECTION_NAMESPACE": environment.options.namespace,
        "METRICS_PORT": str(free_port()),
        "HEALTH_PROBE_PORT": str(free_port()),
        "LOG_LEVEL": "info",
        # The node's loopback names no proxy.
        "NO_PROXY": "127.0.0.1,localhost",
    }


def allow_everything(api: KubernetesApi, account: ServiceAccount) -> None:
    """Give a service account every right: those of Karpenter's chart are not what is tried here."""
    group = "rbac.authorization.k8s.io"
    api.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{account.name}-may-do-everything"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
        }
    )


def _kubeconfig(environment: Environment, directory: Path) -> Path:
    """With the token of an account that may do everything."""
    api = environment.api
    metadata = {"name": ACCOUNT.name, "namespace": ACCOUNT.namespace}
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    allow_everything(api, ACCOUNT)
    token = api.token(ACCOUNT.namespace, ACCOUNT.name, seconds=24 * 3600)
    authority = environment.control_plane.certificate_authority.read_bytes()
    file = directory / "kubeconfig"
    document = kubeconfig(environment.control_plane.endpoint, authority, {"token": token})
    file.write_text(json.dumps(document))
    return file
