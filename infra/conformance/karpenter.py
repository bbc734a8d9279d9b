"""The real Karpenter controller, run by the pods of the stack's Deployment instead of nodeless.

The other way round: a client that we did not write passes its own suites in the local environment, or the
local AWS, the kubelets here or the adaptations are not as the real ones. Suites restart the controller,
change its variables and read its metrics by way of its Deployment, so it runs in a pod, as in its chart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infra.local.environment import Environment
from infra.local.kubernetes_api import ConditionNotMet
from infra.local.peer.karpenter import install_crds, remove_webhooks
from infra.local.ports import free_port

NAMESPACE = "kube-system"
_NAME = "karpenter"
_DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{_NAME}"
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/karpenter-leader-election"
#: As upstream's workflows install it before they run the suites.
_GATES = (
    "NodeRepair",
    "ReservedCapacity",
    "SpotToSpotConsolidation",
    "NodeOverlay",
    "StaticCapacity",
    "CapacityBuffer",
)
#: Suites find the leader's pod by the name of its host, which a container has from its pod.
_UNDER_THE_PODS_NAME = (
    *("unshare", "--user", "--map-root-user", "--uts"),
    *("sh", "-c", 'hostname "$HOSTNAME" && exec "$0"'),
)
_START_SECONDS = 180.0


class KarpenterFailed(RuntimeError):
    """Karpenter's pod does not come up, or does not lead."""


def run_karpenter_instead(environment: Environment, built: Path) -> None:
    """Replace what the Deployment runs, its webhooks, its rights and the schemas.

    Args:
        environment: Whose stack is up in kube-system, without any pool.
        built: The folder of the program and of its CRDs, as `infra.local.peer.karpenter` gives it.

    Raises:
        KarpenterFailed: It does not lead in time.
    """
    api = environment.api
    remove_webhooks(api)
    install_crds(api, built / "crds")
    _allow_everything(environment)
    deployment = api.get(_DEPLOYMENT)
    former = ((api.find(_LEASE) or {}).get("spec") or {}).get("holderIdentity") or ""
    _run_in(deployment, str(built / "karpenter"), _variables(environment))
    api.replace(deployment)

    def leads() -> bool:
        holder = ((api.find(_LEASE) or {}).get("spec") or {}).get("holderIdentity") or ""
        return bool(holder) and holder != former and _is_available(api.get(_DEPLOYMENT))

    try:
        api.wait(leads, timeout=_START_SECONDS, what="Karpenter to lead")
    except ConditionNotMet as error:
        raise KarpenterFailed(
            f"{error}; hint: its log is below {environment.directory}/kubelets/logs"
        ) from None


def _run_in(deployment: dict[str, Any], program: str, variables: dict[str, str]) -> None:
    """Have the first container run the program; pods here share the machine's ports, so that one runs."""
    deployment.pop("status", None)
    spec = deployment["spec"]
    spec |= {"replicas": 1, "strategy": {"type": "Recreate"}}
    container = spec["template"]["spec"]["containers"][0]
    container |= {"command": [*_UNDER_THE_PODS_NAME, program], "args": []}
    container["env"] = [each for each in container["env"] if each["name"] not in variables]
    container["env"] += [{"name": name, "value": value} for name, value in variables.items()]
    ports = {"http-metrics": variables["METRICS_PORT"], "http": variables["HEALTH_PROBE_PORT"]}
    container["ports"] = [
        {"name": name, "containerPort": int(port), "protocol": "TCP"} for name, port in ports.items()
    ]


def _variables(environment: Environment) -> dict[str, str]:
    """Those of Karpenter's chart that the Deployment does not have yet."""
    outputs = environment.stack.outputs()
    return {
        "CLUSTER_NAME": environment.options.cluster_name,
        "CLUSTER_ENDPOINT": environment.control_plane.endpoint,
        "INTERRUPTION_QUEUE": outputs["interruptionQueueName"],
        "LEADER_ELECTION_NAMESPACE": NAMESPACE,
        "FEATURE_GATES": ",".join(f"{gate}=true" for gate in _GATES),
        "METRICS_PORT": str(free_port()),
        "HEALTH_PROBE_PORT": str(free_port()),
        "LOG_LEVEL": "info",
        # Go's SDK makes the client that assumes the role before it reads where all services are.
        "AWS_ENDPOINT_URL_STS": environment.aws.endpoint_url,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _allow_everything(environment: Environment) -> None:
    """Its chart's rights are not what is tried here."""
    group = "rbac.authorization.k8s.io"
    environment.api.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "karpenter-may-do-everything"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": _NAME, "namespace": NAMESPACE}],
        }
    )


def _is_available(deployment: dict[str, Any]) -> bool:
    status = deployment.get("status") or {}
    observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return observed and status.get("updatedReplicas") == 1 and status.get("availableReplicas") == 1
