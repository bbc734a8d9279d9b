"""The real Karpenter controller, run by the pods of the stack's Deployment instead of nodeless.

The other way round: a client that we did not write passes its own suites in the local environment, or the
local AWS, the kubelets here or the adaptations are not as the real ones. Suites restart the controller,
change its variables and read its metrics by way of its Deployment, so it runs in a pod, as in its chart.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

from localenv.environment import CONTROLLER, Environment
from localenv.karpenter import allow_everything, chart_settings, install_crds, remove_webhooks
from localenv.kubernetes import ApiError, ConditionNotMet
from localenv.rbac import ServiceAccount

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
        built: The folder of the program and of its CRDs, as `localenv.karpenter` gives it.

    Raises:
        KarpenterFailed: It does not lead in time.
    """
    api = environment.api
    remove_webhooks(api)
    install_crds(api, built / "crds")
    account = ServiceAccount(environment.options.namespace, CONTROLLER.name)
    allow_everything(api, account)
    path = f"/apis/apps/v1/namespaces/{account.namespace}/deployments/{account.name}"
    former = environment.leader()

    def replaced() -> bool:
        deployment = api.get(path)
        _run_in(deployment, str(built / "karpenter"), _variables(environment))
        try:
            api.replace(deployment)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False  # The Deployment's controller wrote its status meanwhile.
        return True

    api.wait(replaced, timeout=_START_SECONDS, what="the Deployment to run Karpenter")

    def leads() -> bool:
        leader = environment.leader()
        return leader not in (None, former) and _is_available(api.get(path))

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
    return {
        **chart_settings(environment),
        "FEATURE_GATES": ",".join(f"{gate}=true" for gate in _GATES),
        # Go's SDK makes the client that assumes the role before it reads where all services are.
        "AWS_ENDPOINT_URL_STS": environment.aws.endpoint_url,
    }


def _is_available(deployment: dict[str, Any]) -> bool:
    status = deployment.get("status") or {}
    observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return observed and status.get("updatedReplicas") == 1 and status.get("availableReplicas") == 1
