"""What an instance knows about the cluster it joins, and the kubelet flags it starts with.

Pure. `user_data` reads the three dialects into these types; `nodes` makes the Node object of them.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

EFFECTS = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})

#: Labels in Kubernetes' own domains that a kubelet may set on itself, from `k8s.io/kubelet/pkg/apis`.
_KUBELET_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
    }
)
_KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")


class UserDataError(Exception):
    """The instance never joins: what its user data says would fail at boot.

    Attributes:
        reason: what is wrong, with the value.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint as `--register-with-taints` writes it."""

    key: str
    value: str
    effect: str

    def as_document(self) -> dict[str, str]:
        """Return the taint as the API's JSON has it."""
        document = {"key": self.key, "effect": self.effect}
        if self.value:
            document["value"] = self.value
        return document


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """One node's way into a cluster.

    Attributes:
        family: dialect of the user data: AL2, AL2023, Bottlerocket or Windows.
        cluster_name: EKS name of the cluster.
        endpoint: URL of the API server; None: the bootstrap asks eks:DescribeCluster.
        certificate_authority: base64 PEM; None: likewise.
        labels: node labels given to the kubelet.
        taints: taints given to the kubelet.
        max_pods: explicit limit of pods; None: the ENI formula.
        pods_per_core: further limit by CPU; 0: none.
        kube_reserved: per resource, replaces what the bootstrap computes.
        system_reserved: per resource.
        eviction_hard: thresholds by signal, quantity or percentage.
        instance_store_raid: the disks inside the host are one volume, where the kubelet keeps what is
            ephemeral.
        huge_pages: pages of 2 MiB that a script or a setting keeps at boot, before the kubelet counts memory.
    """

    family: str
    cluster_name: str
    endpoint: str | None = None
    certificate_authority: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    max_pods: int | None = None
    pods_per_core: int = 0
    kube_reserved: Mapping[str, str] = field(default_factory=dict)
    system_reserved: Mapping[str, str] = field(default_factory=dict)
    eviction_hard: Mapping[str, str] = field(default_factory=dict)
    instance_store_raid: bool = False
    huge_pages: int = 0


def parse_flags(arguments: str | Iterable[str]) -> dict[str, str]:
    """Read `--name=value` and `--name value` into a mapping; a flag without value is "true"."""
    words = shlex.split(arguments) if isinstance(arguments, str) else list(arguments)
    flags: dict[str, str] = {}
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.startswith("--"):
            raise UserDataError(f"kubelet argument {word!r} is not a flag; hint: write --name=value")
        name, separator, value = word[2:].partition("=")
        if not separator:
            if index < len(words) and not words[index].startswith("--"):
                value = words[index]
                index += 1
            else:
                value = "true"
        flags[name] = value.strip('"')
    return flags


def parse_pairs(text: str, separator: str = "=") -> dict[str, str]:
    """Read `a=1,b=2` (or `a<1,b<2`) into a mapping."""
    pairs: dict[str, str] = {}
    for item in filter(None, text.strip().strip('"').split(",")):
        key, found, value = item.partition(separator)
        if not found:
            raise UserDataError(f"{item!r} lacks its {separator!r}; hint: write key{separator}value,...")
        pairs[key.strip()] = value.strip()
    return pairs


def parse_taint(text: str) -> Taint:
    """Read `key=value:Effect` or `key:Effect`."""
    match = re.fullmatch(r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?:(?P<effect>\w+)", text.strip())
    if match is None or match["effect"] not in EFFECTS:
        raise UserDataError(f"taint {text!r} is malformed; hint: write key=value:NoSchedule")
    return Taint(match["key"], match["value"] or "", match["effect"])


def check_labels(labels: Mapping[str, str]) -> None:
    """Refuse labels that make a kubelet exit at start.

    Raises:
        UserDataError: naming the labels of Kubernetes' own domains that a kubelet may not set.
    """
    refused = sorted(label for label in labels if not _kubelet_may_set(label))
    if refused:
        raise UserDataError(
            f"kubelet refuses --node-labels {', '.join(refused)}; "
            "hint: of kubernetes.io's labels only node.kubernetes.io and the well-known are allowed"
        )


def _kubelet_may_set(label: str) -> bool:
    domain, slash, _ = label.partition("/")
    if not slash or label in _KUBELET_LABELS:
        return True
    if not any(domain == own or domain.endswith("." + own) for own in ("kubernetes.io", "k8s.io")):
        return True
    return any(domain == allowed or domain.endswith("." + allowed) for allowed in _KUBELET_DOMAINS)


def as_count(name: str, value: object) -> int:
    """Return a number; an error names the setting."""
    try:
        return int(str(value))
    except ValueError:
        raise UserDataError(f"{name} {value!r} is not a number") from None


def from_flags(
    family: str,
    cluster_name: str,
    flags: Mapping[str, str],
    *,
    endpoint: str | None,
    certificate_authority: str | None,
) -> Bootstrap:
    """Make the bootstrap of kubelet flags."""
    labels = parse_pairs(flags.get("node-labels", ""))
    check_labels(labels)
    taints = flags.get("register-with-taints", "").strip('"')
    return Bootstrap(
        family=family,
        cluster_name=cluster_name,
        endpoint=endpoint or None,
        certificate_authority=certificate_authority or None,
        labels=labels,
        taints=tuple(parse_taint(taint) for taint in taints.split(",") if taint),
        max_pods=as_count("--max-pods", flags["max-pods"]) if "max-pods" in flags else None,
        pods_per_core=as_count("--pods-per-core", flags.get("pods-per-core", 0)),
        kube_reserved=parse_pairs(flags.get("kube-reserved", "")),
        system_reserved=parse_pairs(flags.get("system-reserved", "")),
        eviction_hard=parse_pairs(flags.get("eviction-hard", ""), "<"),
    )
