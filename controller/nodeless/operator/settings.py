"""The settings that the ConfigMap `karpenter-global-settings` holds, in one table.

Keys, defaults and validation are Karpenter v0.27's. Karpenter v1 knows the same settings as flags and
environment variables: these are read too, and mean the same. What is given closest to the process counts:
a flag, then a variable, then the ConfigMap, then the default. All faults are told at once, each with where
it stands, its value and what to write.

To add a setting, add its line to `GlobalSettings`.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from nodeless.model.bill import DEFAULT_MODE, PARTS, STANDARD, UNLIMITED
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
    text,
    url,
)
from nodeless.operator.solver_settings import adjustments, amount, interruption_rates, packing

if TYPE_CHECKING:
    from nodeless.scheduling import PriceAdjustment

SETTINGS_NAME = "karpenter-global-settings"
#: Karpenter v1 names its feature gates in one variable: `Drift=true,SpotToSpotConsolidation=false`.
FEATURE_GATES = "FEATURE_GATES"
_SETTING = "setting"


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
        "Name of the EKS cluster: for discovery, tags and the nodes' start", live=False, required=True)
    cluster_endpoint: str = _setting(
        "aws.clusterEndpoint", url, "", "CLUSTER_ENDPOINT",
        "URL of the API server that nodes join; empty: EKS is asked", live=False)
    cluster_ca_bundle: str = _setting(
        "nodeless.clusterCABundle", certificate_authority, "", "CLUSTER_CA_BUNDLE",
        "Certificate authority of the API server that nodes join, as base64; empty: EKS is asked",
        live=False)
    eks_control_plane: bool = _setting(
        "nodeless.eksControlPlane", boolean, "true", "EKS_CONTROL_PLANE",
        "Read version and certificate authority from EKS; false: from what the controller itself uses",
        live=False)
    default_instance_profile: str = _setting(
        "aws.defaultInstanceProfile", text, "", "",
        "Instance profile of node classes that name none")
    batch_max_seconds: float = _setting(
        "batchMaxDuration", duration, "10s", "BATCH_MAX_DURATION",
        "Longest time that pending pods are collected before they are planned")
    batch_idle_seconds: float = _setting(
        "batchIdleDuration", duration, "1s", "BATCH_IDLE_DURATION",
        "Silence after which they are planned; "
        "pods of other namespaces put it off by twice as much at most")
    drift_enabled: bool = _setting(
        "featureGates.driftEnabled", boolean, "false", "",
        "Replace nodes that no longer are as their pool and node class want them", gate="Drift")
    spot_to_spot: bool = _setting(
        "nodeless.spotToSpotConsolidation", boolean, "false", "",
        "Replace spot nodes by cheaper spot nodes where 15 cheaper types hold their pods",
        gate="SpotToSpotConsolidation")
    terminate_first_drift: bool = _setting(
        "nodeless.terminateFirstDrift", boolean, "false", "",
        "End a drifted node before its replacement where only its own reserved slot can hold that",
        gate="TerminateFirstDrift")
    terminate_first_repair: bool = _setting(
        "nodeless.terminateFirstRepair", boolean, "false", "",
        "The same for a broken node, where nodes are repaired", gate="TerminateFirstRepair")
    node_repair: bool = _setting(
        "nodeless.nodeRepair", boolean, "false", "",
        "Reboot or replace nodes whose conditions say that they are broken", gate="NodeRepair")
    legacy_repair: bool = _setting(
        "nodeless.legacyNodeRepair", boolean, "false", "LEGACY_NODE_REPAIR",
        "Where nodes are repaired: end a broken node with its pods at once; nothing is launched before")
    repair_toleration: float | None = _setting(
        "nodeless.repairToleration", optional_duration, "", "",
        "For how long every such condition is tolerated; empty: 10 minutes for accelerators, 30 for the rest")
    capacity_buffers: bool = _setting(
        "nodeless.capacityBuffers", boolean, "false", "",
        "Keep the capacity ready that CapacityBuffers (autoscaling.x-k8s.io) request", live=False,
        gate="CapacityBuffer")
    provisioning_requests: bool = _setting(
        "nodeless.provisioningRequests", boolean, "false", "",
        "Answer ProvisioningRequests (autoscaling.x-k8s.io), by which Kueue asks for capacity", live=False,
        gate="ProvisioningRequest")
    node_overlays: bool = _setting(
        "nodeless.nodeOverlays", boolean, "false", "",
        "Have prices and capacity of instance types follow NodeOverlays", live=False, gate="NodeOverlay")
    vertical_autoscalers: bool = _setting(
        "nodeless.verticalPodAutoscalers", boolean, "false", "",
        "Have consolidation leave room for what VerticalPodAutoscalers (autoscaling.k8s.io) recommend",
        live=False)
    vm_memory_overhead_percent: float = _setting(
        "aws.vmMemoryOverheadPercent", fraction, "0.075", "VM_MEMORY_OVERHEAD_PERCENT",
        "Fraction of an instance's memory that its hypervisor takes, where it was not measured")
    enable_pod_eni: bool = _setting(
        "aws.enablePodENI", boolean, "false", "",
        "Count branch network interfaces (vpc.amazonaws.com/pod-eni) as a resource of nodes", live=False)
    enable_eni_limited_pod_density: bool = _setting(
        "aws.enableENILimitedPodDensity", boolean, "true", "",
        "Pods on a node are limited by its network interfaces; false: 110 on each")
    reserved_interfaces: int = _setting(
        "nodeless.reservedENIs", count, "0", "RESERVED_ENIS",
        "Network interfaces of each node that pods do not get (custom networking, security groups for pods)")
    prefix_delegation: bool = _setting(
        "nodeless.prefixDelegation", boolean, "false", "NODELESS_PREFIX_DELEGATION",
        "The VPC CNI takes prefixes of addresses: 110 pods on nodes of up to 30 vCPUs, 250 on larger (Nitro)")
    isolated_vpc: bool = _setting(
        "aws.isolatedVPC", boolean, "false", "ISOLATED_VPC",
        "No way to the Pricing API: on-demand prices are the bundled ones", live=False)
    node_name_convention: str = _setting(
        "aws.nodeNameConvention", one_of("ip-name", "resource-name"), "ip-name", "",
        "What a launched node is called in the log, as the subnets name it: by address or by instance id",
        live=False)
    disable_dry_run: bool = _setting(
        "nodeless.disableDryRun", boolean, "false", "DISABLE_DRY_RUN",
        "Ask EC2 neither at start nor of node classes whether launches would be allowed")
    zonal_shift: bool = _setting(
        "nodeless.zonalShift", boolean, "false", "ENABLE_ZONAL_SHIFT",
        "Keep off zones that AWS shifts the cluster away from; zonal shift must be enabled on it", live=False)
    ami_refresh_interval: float = _setting(
        "nodeless.amiRefreshInterval", refresh_interval, "1m", "AMI_REFRESH_INTERVAL",
        "How long an answer on images serves, a minute at least (on AWS's own images an hour at least)")
    subnet_refresh_interval: float = _setting(
        "nodeless.subnetRefreshInterval", refresh_interval, "1m", "SUBNET_REFRESH_INTERVAL",
        "How long an answer on subnets serves, a minute at least")
    interruption_queue_name: str = _setting(
        "aws.interruptionQueueName", text, "", "INTERRUPTION_QUEUE",
        "SQS queue of interruption notices; empty: none are read", live=False)
    tags: Mapping[str, str] = _setting(
        "aws.tags", tags, "{}", "",
        "Tags of everything that is made in AWS, as a JSON object")
    packing: str = _setting(
        "nodeless.packing", packing, LOWEST_PRICE, "NODELESS_PACKING",
        "How nodes are chosen, unless their pool says: lowest-price or fewest-nodes")
    node_fee: float = _setting(
        "nodeless.nodeFee", amount, "0", "",
        "Dollars an hour that every node costs besides its bill (agents that are charged by the node)")
    bill_parts: frozenset[str] = _setting(
        "nodeless.billParts", bill_parts, ",".join(PARTS), "",
        "What counts in a node's price besides its instance: some of licenses, credits, volumes, addresses; "
        "none: the instance alone")
    cpu_credits: str = _setting(
        "nodeless.cpuCredits", one_of(DEFAULT_MODE, UNLIMITED, STANDARD), DEFAULT_MODE, "",
        "How the account runs T instances: unlimited (CPU beyond the baseline is charged), standard (slowed "
        "down), or AWS's default for each family")
    burstable_cpu_use: float = _setting(
        "nodeless.burstableCPUUse", percent, "100", "",
        "Percent of its CPU that a T instance is taken to use, where CPU beyond its baseline is charged")
    least_memory: int = _setting(
        "nodeless.leastMemory", memory, "128Mi", "",
        "Memory that a type must leave for pods beside the system's daemons, unless it is asked for by name; "
        "0: none")
    price_book: str = _setting(
        "nodeless.priceBook", price_book, "{}", "",
        "Prices that replace those of the bundled book, as a JSON object of its form")
    eviction_price: float = _setting(
        "nodeless.evictionPrice", amount, "0", "",
        "Dollars that one eviction counts as, against what consolidation saves in an hour")
    gang_timeout: float = _setting(
        "nodeless.gangTimeout", gang_timeout, "10m", "",
        "How long empty nodes are kept for a gang that is not whole")
    time_box: float = _setting(
        "nodeless.timeBox", amount, "1", "",
        "Seconds that a pass may search for a cheaper plan; 0: none")
    preference_policy: str = _setting(
        "nodeless.preferencePolicy", one_of("Respect", "Ignore"), "Respect", "PREFERENCE_POLICY",
        "Ignore: preferred affinities and ScheduleAnyway have no influence on plans")
    plan_as_bound: str = _setting(
        "nodeless.planAsBound", one_of("auto", "always", "never"), "auto", "",
        "Judge plans by how kube-scheduler's scores bind them; auto: commands, and what cannot be nominated")
    min_values_policy: str = _setting(
        "nodeless.minValuesPolicy", one_of("Strict", "BestEffort"), "Strict", "MIN_VALUES_POLICY",
        "BestEffort: minValues of a NodePool are lowered where its instance types fall short")
    price_adjustments: tuple["PriceAdjustment", ...] = _setting(
        "nodeless.priceAdjustments", adjustments, "[]", "",
        "Prices that differ from AWS's list (discounts, commitments), as a JSON list")
    spot_interruptions: tuple[InterruptionRate, ...] = _setting(
        "nodeless.spotInterruptions", interruption_rates, "[]", "",
        "Interruptions of a spot instance a month by pools and types, as a JSON list; the first that matches "
        "counts, else 0.05. For pods with nodeless.dev/lost-work")
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
    faults: list[Fault] = []
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


def settings_faults(data: Mapping[str, str]) -> list[str]:
    """What is wrong with the data of the settings' ConfigMap; empty when it can be used."""
    return [str(fault) for fault in read_settings(data)[1]]


def settings_warnings(data: Mapping[str, str]) -> list[str]:
    """What the data of the settings' ConfigMap says in vain."""
    return [f"data: key {key} means nothing and is ignored" for key in unknown_keys(data)]
