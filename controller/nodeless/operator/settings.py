"""The settings that the ConfigMap `karpenter-global-settings` holds, in one table.

Keys, defaults and validation are Karpenter v0.27's. Karpenter v1 has the same settings as flags and
environment variables: these are read too, and mean the same. A flag overrides a variable, a variable
overrides the ConfigMap, and the ConfigMap overrides the default. All faults are reported at once, each with
its place, its value and what to write.

To add a setting, add its line to `GlobalSettings`.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from nodeless.model.bill import DEFAULT_MODE, PARTS, STANDARD, UNLIMITED
from nodeless.model.commitments import Commitment
from nodeless.model.lost_work import InterruptionRate
from nodeless.model.packing import LOWEST_PRICE
from nodeless.operator.bill_settings import bill_parts, memory, percent, price_book
from nodeless.operator.config_sources import NO_SOURCES, ConfigSources
from nodeless.operator.setting_values import (
    UnusableValue,
    boolean,
    certificate_authority,
    count,
    duration,
    fraction,
    gang_timeout,
    one_of,
    optional_duration,
    refresh_interval,
    tags,
    termination_wait,
    text,
    url,
)
from nodeless.operator.solver_settings import (
    adjustments,
    amount,
    commitments,
    interruption_rates,
    packing,
)

if TYPE_CHECKING:
    from nodeless.scheduling import PriceAdjustment

SETTINGS_NAME = "karpenter-global-settings"
#: Karpenter v1 names its feature gates in one variable: `Drift=true,SpotToSpotConsolidation=false`.
FEATURE_GATES = "FEATURE_GATES"
#: Of `nodeless.podAddresses`: pods have addresses of their node's subnet.
OF_SUBNETS = "subnet"
_SETTING = "setting"
_STRINGS_ONLY = "the values of a ConfigMap are strings: write it in quotes, or as a block after |"


class SettingsError(Exception):
    """One or more settings cannot be used; one line each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the table."""

    key: str
    """In the ConfigMap."""
    read: Callable[[str], Any]
    """Makes the value of a text; raises UnusableValue."""
    default: str
    """As it would be written."""
    variable: str
    """Karpenter v1's environment variable; empty where v1 has none. The flag has the same words."""
    meaning: str
    live: bool = True
    """Whether a change takes effect without a restart."""
    required: bool = False
    gate: str = ""
    """Its name in FEATURE_GATES."""


def _setting(
    key: str, read: Callable[[str], Any], default: str, variable: str, meaning: str, **more: Any
) -> Any:
    metadata = {_SETTING: Setting(key, read, default, variable, meaning, **more)}
    value = read(default)
    if isinstance(value, dict):
        return field(default_factory=lambda: dict(value), metadata=metadata, hash=False)
    return field(default=value, metadata=metadata)


@dataclass(frozen=True, slots=True)
class GlobalSettings:
    """The table: a field for each setting. Durations are in seconds."""

    # fmt: off
    cluster_name: str = _setting(
        "aws.clusterName", text, "", "CLUSTER_NAME",
        "Name of the EKS cluster. nodeless uses it to discover resources, to tag them, and to bootstrap "
        "nodes.",
        live=False, required=True)
    cluster_endpoint: str = _setting(
        "aws.clusterEndpoint", url, "", "CLUSTER_ENDPOINT",
        "URL of the API server that nodes join. If empty, nodeless asks EKS.", live=False)
    cluster_ca_bundle: str = _setting(
        "nodeless.clusterCABundle", certificate_authority, "", "CLUSTER_CA_BUNDLE",
        "Certificate authority of the API server that nodes join, in base64. If empty, nodeless asks EKS.",
        live=False)
    eks_control_plane: bool = _setting(
        "nodeless.eksControlPlane", boolean, "true", "EKS_CONTROL_PLANE",
        "Read the Kubernetes version and the certificate authority from EKS. If false, nodeless takes them "
        "from its own connection to the API server.",
        live=False)
    default_instance_profile: str = _setting(
        "aws.defaultInstanceProfile", text, "", "",
        "Instance profile of node classes that name none.")
    batch_max_seconds: float = _setting(
        "batchMaxDuration", duration, "10s", "BATCH_MAX_DURATION",
        "Longest time for which nodeless collects pending pods before it plans them.")
    batch_idle_seconds: float = _setting(
        "batchIdleDuration", duration, "1s", "BATCH_IDLE_DURATION",
        "nodeless plans pending pods once no new one has appeared for this long. Pods of other namespaces "
        "delay this by at most twice this time.")
    drift_enabled: bool = _setting(
        "featureGates.driftEnabled", boolean, "false", "",
        "Replace drifted nodes of Provisioners. Drifted nodes of NodePools are always replaced.",
        gate="Drift")
    spot_to_spot: bool = _setting(
        "nodeless.spotToSpotConsolidation", boolean, "false", "",
        "Replace spot nodes with cheaper spot nodes. To replace a single node, at least 15 cheaper instance "
        "types must fit its pods.",
        gate="SpotToSpotConsolidation")
    terminate_first_drift: bool = _setting(
        "nodeless.terminateFirstDrift", boolean, "false", "",
        "Terminate a drifted node before its replacement is launched, if only the reserved slot that the "
        "node occupies can hold the replacement.",
        gate="TerminateFirstDrift")
    terminate_first_repair: bool = _setting(
        "nodeless.terminateFirstRepair", boolean, "false", "",
        "Terminate an unhealthy node before its replacement is launched, under the same condition as for "
        "drifted nodes. Requires node repair.",
        gate="TerminateFirstRepair")
    node_repair: bool = _setting(
        "nodeless.nodeRepair", boolean, "false", "",
        "Reboot or replace nodes whose conditions report that they are unhealthy.", gate="NodeRepair")
    legacy_repair: bool = _setting(
        "nodeless.legacyNodeRepair", boolean, "false", "LEGACY_NODE_REPAIR",
        "Terminate unhealthy nodes at once, together with their pods, and do not launch replacements first. "
        "Requires node repair.")
    repair_toleration: float | None = _setting(
        "nodeless.repairToleration", optional_duration, "", "",
        "How long a node may be unhealthy before it is repaired. If empty, 10 minutes for known GPU errors "
        "(with legacy repair, for all accelerator errors) and 30 minutes for everything else.")
    capacity_buffers: bool = _setting(
        "nodeless.capacityBuffers", boolean, "false", "",
        "Keep the spare capacity ready that CapacityBuffers (autoscaling.x-k8s.io) request.", live=False,
        gate="CapacityBuffer")
    provisioning_requests: bool = _setting(
        "nodeless.provisioningRequests", boolean, "false", "",
        "Answer ProvisioningRequests (autoscaling.x-k8s.io), with which Kueue asks for capacity.", live=False,
        gate="ProvisioningRequest")
    node_overlays: bool = _setting(
        "nodeless.nodeOverlays", boolean, "false", "",
        "Apply NodeOverlays to the prices and the capacity of instance types.",
        live=False, gate="NodeOverlay")
    vertical_autoscalers: bool = _setting(
        "nodeless.verticalPodAutoscalers", boolean, "false", "",
        "During consolidation, leave room for the requests that VerticalPodAutoscalers (autoscaling.k8s.io) "
        "recommend.",
        live=False)
    vm_memory_overhead_percent: float = _setting(
        "aws.vmMemoryOverheadPercent", fraction, "0.075", "VM_MEMORY_OVERHEAD_PERCENT",
        "Fraction of an instance's memory that the hypervisor is assumed to take, as long as nodeless has "
        "not measured it.")
    enable_pod_eni: bool = _setting(
        "aws.enablePodENI", boolean, "false", "",
        "Count branch network interfaces (vpc.amazonaws.com/pod-eni) as a resource of nodes.", live=False)
    enable_eni_limited_pod_density: bool = _setting(
        "aws.enableENILimitedPodDensity", boolean, "true", "",
        "Limit the number of pods on a node by its network interfaces. If false, every node takes 110 pods.")
    reserved_interfaces: int = _setting(
        "nodeless.reservedENIs", count, "0", "RESERVED_ENIS",
        "Number of network interfaces of each node that pods cannot use (for custom networking or security "
        "groups for pods).")
    prefix_delegation: bool = _setting(
        "nodeless.prefixDelegation", boolean, "false", "NODELESS_PREFIX_DELEGATION",
        "Set this if the VPC CNI assigns address prefixes. A Nitro instance then takes up to 110 pods if it "
        "has at most 30 vCPUs, otherwise up to 250.")
    pod_addresses: str = _setting(
        "nodeless.podAddresses", one_of(OF_SUBNETS, "none"), OF_SUBNETS, "",
        "Whether pods take IPv4 addresses of their node's subnet: subnet (as the VPC CNI assigns them), or "
        "none (with custom networking, or with another CNI). With none, and in IPv6 clusters, plans count "
        "one address for each node.")
    isolated_vpc: bool = _setting(
        "aws.isolatedVPC", boolean, "false", "ISOLATED_VPC",
        "The VPC cannot reach the Pricing API. nodeless uses the bundled on-demand prices.", live=False)
    node_name_convention: str = _setting(
        "aws.nodeNameConvention", one_of("ip-name", "resource-name"), "ip-name", "",
        "How the log names launched nodes. Use the convention of your subnets: ip-name (by IP address) or "
        "resource-name (by instance ID).",
        live=False)
    disable_dry_run: bool = _setting(
        "nodeless.disableDryRun", boolean, "false", "DISABLE_DRY_RUN",
        "Skip the dry runs with which nodeless checks its access to EC2 at startup and whether each "
        "EC2NodeClass can launch.")
    zonal_shift: bool = _setting(
        "nodeless.zonalShift", boolean, "false", "ENABLE_ZONAL_SHIFT",
        "Launch and terminate nothing in zones that AWS shifts the cluster away from. Zonal shift must be "
        "enabled on the cluster.",
        live=False)
    ami_refresh_interval: float = _setting(
        "nodeless.amiRefreshInterval", refresh_interval, "1m", "AMI_REFRESH_INTERVAL",
        "How long nodeless caches the images that it has found: at least 1 minute, and at least 1 hour for "
        "AWS's own images.")
    subnet_refresh_interval: float = _setting(
        "nodeless.subnetRefreshInterval", refresh_interval, "1m", "SUBNET_REFRESH_INTERVAL",
        "How long nodeless caches the subnets that it has found: at least 1 minute.")
    interruption_queue_name: str = _setting(
        "aws.interruptionQueueName", text, "", "INTERRUPTION_QUEUE",
        "SQS queue with interruption notices. If empty, nodeless reads none.", live=False)
    tags: Mapping[str, str] = _setting(
        "aws.tags", tags, "{}", "",
        "Tags for everything that nodeless creates in AWS, as a JSON object.")
    packing: str = _setting(
        "nodeless.packing", packing, LOWEST_PRICE, "NODELESS_PACKING",
        "How nodeless chooses nodes: lowest-price or fewest-nodes. A pool can override this.")
    node_fee: float = _setting(
        "nodeless.nodeFee", amount, "0", "",
        "Dollars an hour that every node costs besides its AWS bill, for example for agents that are charged "
        "by the node.")
    fewer_nodes_tolerance: float = _setting(
        "nodeless.fewerNodesTolerance", percent, "1", "",
        "By how many percent a plan may cost more than the cheapest one if it has fewer, larger nodes. 0 "
        "chooses the cheapest plan.")
    bill_parts: frozenset[str] = _setting(
        "nodeless.billParts", bill_parts, ",".join(PARTS), "",
        "What the price of a node includes besides its instance: any of licenses, credits, volumes and "
        "addresses. With none, it is the instance alone.")
    cpu_credits: str = _setting(
        "nodeless.cpuCredits", one_of(DEFAULT_MODE, UNLIMITED, STANDARD), DEFAULT_MODE, "",
        "How the account runs T instances: unlimited (CPU use above the baseline is charged), standard (the "
        "instance is slowed down to the baseline), or default (AWS's default for each family).")
    burstable_cpu_use: float = _setting(
        "nodeless.burstableCPUUse", percent, "100", "",
        "Percentage of its CPU that a T instance is assumed to use, if CPU use above the baseline is "
        "charged.")
    least_memory: int = _setting(
        "nodeless.leastMemory", memory, "128Mi", "",
        "Memory that an instance type must leave for pods besides the system's daemons. Smaller types are "
        "launched only if a pool or a pod names them, or if the pool allows nothing else. 0 turns this off.")
    price_book: str = _setting(
        "nodeless.priceBook", price_book, "{}", "",
        "Prices that replace those of the bundled price book, as a JSON object in the same format.")
    eviction_price: float = _setting(
        "nodeless.evictionPrice", amount, "0", "",
        "Cost of one eviction in dollars. nodeless compares it with what consolidation saves in an hour.")
    gang_timeout: float = _setting(
        "nodeless.gangTimeout", gang_timeout, "10m", "",
        "How long nodeless keeps empty nodes for a gang that is not complete.")
    termination_wait: float = _setting(
        "nodeless.terminationWait", termination_wait, "30s", "",
        "How long pods wait for the room of terminating pods, for example in a rollout, before nodeless "
        "launches a node for them. Only the room of pods whose grace period ends within this time counts. "
        "0 turns this off: nodes are launched at once.")
    time_box: float = _setting(
        "nodeless.timeBox", amount, "1", "",
        "Seconds for which a pass may search for a cheaper plan. 0 turns the search off.")
    preference_policy: str = _setting(
        "nodeless.preferencePolicy", one_of("Respect", "Ignore"), "Respect", "PREFERENCE_POLICY",
        "Whether plans respect preferred affinities and ScheduleAnyway: Respect or Ignore.")
    plan_as_bound: str = _setting(
        "nodeless.planAsBound", one_of("auto", "always", "never"), "auto", "",
        "Whether nodeless simulates where kube-scheduler's scores will place the pods of a plan: always, "
        "never or auto. With auto, it does so for disruption, and for new nodes as far as it cannot nominate "
        "pods to them.")
    min_values_policy: str = _setting(
        "nodeless.minValuesPolicy", one_of("Strict", "BestEffort"), "Strict", "MIN_VALUES_POLICY",
        "What happens if too few instance types are available for the minValues of a NodePool. Strict: "
        "nodeless launches nothing. BestEffort: nodeless lowers minValues.")
    price_adjustments: tuple["PriceAdjustment", ...] = _setting(
        "nodeless.priceAdjustments", adjustments, "[]", "",
        "Prices that differ from AWS's list prices (discounts, surcharges), as a JSON list.")
    commitments: tuple[Commitment, ...] = _setting(
        "nodeless.commitments", commitments, "[]", "",
        "Reserved Instances and Savings Plans for the cluster, with their amounts, as a JSON list. nodeless "
        "uses them first.")
    spot_interruptions: tuple[InterruptionRate, ...] = _setting(
        "nodeless.spotInterruptions", interruption_rates, "[]", "",
        "Expected interruptions of a spot instance per month, by pool and instance type, as a JSON list. The "
        "first match applies; without a match, it is 0.05. Used for pods with nodeless.dev/lost-work.")
    # fmt: on

    @classmethod
    def from_config_map(
        cls, data: Mapping[str, str], sources: ConfigSources = NO_SOURCES
    ) -> "GlobalSettings":
        """Read the ConfigMap's data. Raises SettingsError with every fault."""
        settings, faults = read_settings(data, sources)
        if faults:
            raise SettingsError([str(fault) for fault in faults])
        return settings


SETTINGS: Mapping[str, Setting] = {
    field_.name: field_.metadata[_SETTING] for field_ in fields(GlobalSettings)
}
"""The table by field of `GlobalSettings`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A setting whose value cannot be used; `where` is the place and the value as its text."""

    key: str
    where: str
    problem: str
    hint: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}; hint: {self.hint}"


def read_settings(
    data: Mapping[str, str], sources: ConfigSources = NO_SOURCES, last: GlobalSettings | None = None
) -> tuple[GlobalSettings, tuple[Fault, ...]]:
    """All settings, and the faults of those that cannot be used.

    Args:
        data: The ConfigMap's data.
        sources: Flags and environment, which go before it.
        last: Where a value that cannot be used is taken from; without it, the default.
    """
    values: dict[str, Any] = {}
    data, faults = _strings_of(data)
    gates = _gates(sources, faults)
    for name, setting in SETTINGS.items():
        value, where = _spell_setting(setting, data, sources, gates)
        try:
            if setting.required and not value:
                raise UnusableValue("is required", "the name of the EKS cluster")
            values[name] = setting.read(value)
        except UnusableValue as error:
            faults.append(Fault(setting.key, where, error.problem, error.hint))
            values[name] = setting.read(setting.default) if last is None else getattr(last, name)
    return GlobalSettings(**values), tuple(faults)


def _strings_of(data: Mapping[str, str]) -> tuple[dict[str, str], list[Fault]]:
    """The strings, and faults of what else a file has; the API server would refuse it.

    A key without a value (`KEY:`) is an empty string to the API server.
    """
    strings: dict[str, str] = {}
    faults: list[Fault] = []
    given: Mapping[Any, Any] = data
    for key, value in given.items():
        if isinstance(key, str) and isinstance(value, str | None):
            strings[key] = value or ""
            continue
        where = f"ConfigMap {SETTINGS_NAME}, key {key}={value!r}"
        faults.append(Fault(str(key), where, "is not a string", _STRINGS_ONLY))
    return strings, faults


def overriding(setting: Setting, sources: ConfigSources) -> str:
    """The flag or variable that decides a setting whatever the ConfigMap says; empty when none does."""
    if setting.variable and (found := sources.get(setting.variable)):
        return found.name
    gates = sources.get(FEATURE_GATES)
    return gates.name if gates and setting.gate in _gates(sources, []) else ""


def unknown_keys(data: Mapping[str, str]) -> tuple[str, ...]:
    """Keys that mean nothing, each with the key that may have been meant."""
    known = [setting.key for setting in SETTINGS.values()]
    return tuple(
        key + "".join(f" (did you mean {near}?)" for near in difflib.get_close_matches(key, known, 1))
        for key in sorted(data)
        if key not in known
    )


def _spell_setting(
    setting: Setting, data: Mapping[str, str], sources: ConfigSources, gates: Mapping[str, str]
) -> tuple[str, str]:
    """The text of a setting, and words for where it stands."""
    found = sources.get(setting.variable) if setting.variable else None
    if found is not None:
        return found.text, str(found)
    if setting.gate in gates:
        return gates[setting.gate], f"{sources.get(FEATURE_GATES)}, gate {setting.gate}"
    value = data.get(setting.key)
    where = f"ConfigMap {SETTINGS_NAME}, key {setting.key}={value!r}"
    # A duration that is there but empty is a mistake, as it is to Karpenter; elsewhere it means "not set".
    if value is None or (not value and setting.read is not duration):
        return setting.default, where
    return value, where


def _gates(sources: ConfigSources, faults: list[Fault]) -> dict[str, str]:
    found = sources.get(FEATURE_GATES)
    gates: dict[str, str] = {}
    for part in found.text.split(",") if found else ():
        name, separator, value = part.strip().partition("=")
        if not name:
            continue
        if not separator:
            faults.append(Fault(FEATURE_GATES, f"{found}, gate {name}", "has no value", f"write {name}=true"))
        gates[name] = value
    return gates


def settings_faults(data: Mapping[str, str], sources: ConfigSources = NO_SOURCES) -> list[str]:
    """What is wrong with the data of the settings' ConfigMap; empty when it can be used.

    What is required may be missing from it where the process was given it (`sources`).
    """
    elsewhere = {
        setting.key
        for setting in SETTINGS.values()
        if setting.required and not data.get(setting.key) and overriding(setting, sources)
    }
    return [str(fault) for fault in read_settings(data)[1] if fault.key not in elsewhere]


def settings_warnings(data: Mapping[str, str]) -> list[str]:
    """What the data of the settings' ConfigMap says in vain."""
    return [f"data: unknown key {key} is ignored" for key in unknown_keys(data)]
