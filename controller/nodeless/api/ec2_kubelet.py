"""Settings of the kubelet in an EC2NodeClass. v1alpha5 has them in the Provisioner."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, field

from nodeless.api.cel import rule, rules
from nodeless.api.kubelet_constants import DURATION, RESERVABLE, SIGNALS
from nodeless.api.metav1 import Definition, Int32
from nodeless.api.rule_codes import RuleCode


def _quote_names(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


_SIGNALS = rules(
    rule(
        f"self.all(key, key in [{_quote_names(SIGNALS)}])",
        "is not an eviction signal",
        lambda signals: [key for key in signals if key not in SIGNALS],
        f"use one of {', '.join(SIGNALS)}",
        code=RuleCode.INVALID_KUBELET_SETTING,
    )
)
_RESERVED = rules(
    rule(
        f"self.all(key, key in [{_quote_names(RESERVABLE)}])",
        "is not a resource that can be reserved",
        lambda reserved: [key for key in reserved if key not in RESERVABLE],
        f"use one of {', '.join(RESERVABLE)}",
        code=RuleCode.INVALID_KUBELET_SETTING,
    ),
    rule(
        "self.all(key, !self[key].startsWith('-'))",
        "must not be negative",
        lambda reserved: [key for key, amount in reserved.items() if amount.startswith("-")],
        code=RuleCode.OUT_OF_RANGE,
    ),
)
_Signals: TypeAlias = Annotated[dict[str, str], Meta(extra_json_schema=_SIGNALS)]
_Reserved: TypeAlias = Annotated[dict[str, str], Meta(extra_json_schema=_RESERVED)]
#: Go's `time.ParseDuration`, which decodes these when Karpenter reads them.
_Duration: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": f"^{DURATION}$"})]


class Ec2Kubelet(Definition):
    """Settings of the kubelet on nodes of this class."""

    cluster_dns: list[str] | None = field(default=None, name="clusterDNS")
    """Addresses of the cluster's DNS; all AMI families but AL2023 use the first one. Default: kube-dns."""
    max_pods: Annotated[Int32, Meta(ge=0)] | None = None
    """Most pods that a node runs."""
    pods_per_core: Annotated[Int32, Meta(ge=0)] | None = None
    """Most pods per virtual CPU; 0 means no such limit."""
    system_reserved: _Reserved | None = None
    """Resources kept for the operating system: cpu, memory, ephemeral-storage, pid."""
    kube_reserved: _Reserved | None = None
    """Resources kept for Kubernetes' own processes; what is given here replaces the computed default."""
    eviction_hard: _Signals | None = None
    """Signal to threshold (a quantity or a percentage) at which pods are evicted at once."""
    eviction_soft: _Signals | None = None
    """Signal to threshold at which pods are evicted after a grace period."""
    eviction_soft_grace_period: Annotated[dict[str, _Duration], Meta(extra_json_schema=_SIGNALS)] | None = (
        None
    )
    """Grace period of each signal of evictionSoft, as 1m30s."""
    eviction_max_pod_grace_period: Int32 | None = None
    """Most seconds that a pod gets to end when a soft threshold is met."""
    image_gc_high_threshold_percent: Annotated[Int32, Meta(ge=0, le=100)] | None = field(
        default=None, name="imageGCHighThresholdPercent"
    )
    """Disk usage above which unused images are deleted."""
    image_gc_low_threshold_percent: Annotated[Int32, Meta(ge=0, le=100)] | None = field(
        default=None, name="imageGCLowThresholdPercent"
    )
    """Disk usage down to which unused images are deleted."""
    cpu_cfs_quota: bool | None = field(default=None, name="cpuCFSQuota")
    """Whether CPU limits of containers are enforced."""


def _has_unpaired(kubelet: Mapping[str, Any], one: str, other: str) -> bool:
    return bool(set(kubelet.get(one) or ()) - set(kubelet.get(other) or ()))


def _thresholds_reversed(kubelet: Mapping[str, Any]) -> bool:
    high, low = kubelet.get("imageGCHighThresholdPercent"), kubelet.get("imageGCLowThresholdPercent")
    return high is not None and low is not None and high <= low


def _pair(one: str, other: str, what: str) -> Any:
    return rule(
        f"!has(self.{one}) || self.{one}.all(key, has(self.{other}) && key in self.{other})",
        f"has signals in {one} without {what} in {other}",
        lambda kubelet: _has_unpaired(kubelet, one, other),
        "give both for each signal",
        code=RuleCode.INCOMPLETE_FIELDS,
    )


KUBELET_RULES = (
    rule(
        "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || "
        "self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",
        "needs imageGCHighThresholdPercent above imageGCLowThresholdPercent",
        _thresholds_reversed,
        code=RuleCode.INVALID_KUBELET_SETTING,
    ),
    _pair("evictionSoft", "evictionSoftGracePeriod", "a grace period"),
    _pair("evictionSoftGracePeriod", "evictionSoft", "a threshold"),
)
