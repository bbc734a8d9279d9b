"""What the kubelet of a new node is told: labels, taints, and the settings of its pool.

Every way of booting (`al2`, `al2023`, `bottlerocket`) says the same things in its own
spelling; what is to be said is decided here. Maps are always sorted, so that the same
pool gives the same text and so the same launch template.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeless.model.labels import UNREGISTERED_TAINT
from nodeless.model.pools import Kubelet
from nodeless.model.taints import Taint, TaintEffect

#: Keeps pods away until the controller has completed the node's labels; the controller removes it.
UNREGISTERED = Taint(UNREGISTERED_TAINT, TaintEffect.NO_EXECUTE)

#: Labels in Kubernetes' own domains that a kubelet may set on itself (`k8s.io/kubelet/pkg/apis`).
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
#: What ends a word or a line for bootstrap.sh, nodeadm and systemd, through which arguments reach it.
_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029'\"\\]")
_HINT = "hint: labels and taints hold letters, digits, -, _ and .; settings quantities, shares and durations"
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
#: Asked first: parts are looked for anew at each character, which is quadratic in digits without a unit.
_DURATION = re.compile(f"(?:{_DURATION_PART.pattern})+")


class ArgumentError(ValueError):
    """A text that cannot be told to the kubelet on its command line."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a new node must know of its cluster.

    `certificate_authority` is base64 of the PEM; `dns` the address of the cluster's DNS service and
    `service_cidr` the network of its services, empty when not known.
    """

    name: str
    endpoint: str
    certificate_authority: str = ""
    dns: str = ""
    service_cidr: str = ""


def first_dns(kubelet: Kubelet | None, cluster: Cluster) -> str:
    """The first DNS address for pods: the kubelet's, if it has one, else the cluster's."""
    return kubelet.cluster_dns[0] if kubelet is not None and kubelet.cluster_dns else cluster.dns


def is_ipv6(address: str) -> bool:
    """Whether a text is an IPv6 address."""
    try:
        return ipaddress.ip_address(address).version == 6
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """All that goes into the user data of one kind of node; `custom` is the node class's own text."""

    cluster: Cluster
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    kubelet: Kubelet = Kubelet()
    custom: str = ""
    #: False: nodes take 110 pods, whatever their network interfaces allow.
    eni_limited_pod_density: bool = True
    pods: int | None = None
    """The limit of pods where the node would compute another one (prefixes, interfaces kept free)."""
    instance_store_raid: bool = False
    """The disks inside the host become one volume for containers and the kubelet."""
    release: str = ""
    """Release of the image, as `v1.20.3`; empty: the newest, or not known."""
    of_v1: bool = False
    """For an EC2NodeClass: AL2's script is spelled as Karpenter v1 spells it."""

    @property
    def cluster_dns(self) -> str:
        """The first DNS address for pods: the pool's, else the cluster's."""
        return first_dns(self.kubelet, self.cluster)

    @property
    def ipv6(self) -> bool:
        """Whether pods have IPv6 addresses, told by the address of their DNS."""
        return is_ipv6(self.cluster_dns)

    @property
    def max_pods(self) -> int | None:
        """The limit of pods when it is not left to the node to compute."""
        if self.kubelet.max_pods is not None:
            return self.kubelet.max_pods
        if not self.eni_limited_pod_density:
            return 110
        return self.pods


def kubelet_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that a kubelet may set itself, sorted; it exits at start when given any other."""
    return {key: labels[key] for key in sorted(labels) if _may_set(key)}


def _may_set(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    if not slash or key in _KUBELET_LABELS:
        return True
    if _within(domain, "kubernetes.io") or _within(domain, "k8s.io"):
        return _within(domain, "kubelet.kubernetes.io") or _within(domain, "node.kubernetes.io")
    return True


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def registration_taints(taints: Iterable[Taint], startup_taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """The taints that a node registers with: the pool's, the startup ones, `karpenter.sh/unregistered`."""
    return (*taints, *startup_taints, UNREGISTERED)


def extra_arguments(bootstrap: Bootstrap) -> str:
    """The kubelet's command line as AL2's bootstrap script takes it (`--kubelet-extra-args`).

    Karpenter v1 has lists and maps in double quotes. The script writes it into a unit of systemd, between
    single quotes, and systemd splits it at blanks that are in no quotes.

    Raises:
        ArgumentError: A text would end its word or its line there.
    """
    kubelet = bootstrap.kubelet
    flag = _optional_flag if bootstrap.of_v1 else _flag
    words = [flag("node-labels", pairs(bootstrap.labels.items(), "="))]
    words.append(flag("register-with-taints", ",".join(map(_taint, bootstrap.taints))))
    if bootstrap.max_pods is not None:
        words.append(f"--max-pods={bootstrap.max_pods}")
    if kubelet.pods_per_core is not None:
        words.append(f"--pods-per-core={kubelet.pods_per_core}")
    words += [
        flag("system-reserved", pairs(kubelet.system_reserved, "=")),
        flag("kube-reserved", pairs(kubelet.kube_reserved, "=")),
        flag("eviction-hard", pairs(kubelet.eviction_hard, "<")),
        flag("eviction-soft", pairs(kubelet.eviction_soft, "<")),
        flag(
            "eviction-soft-grace-period",
            pairs(((key, go_duration(text)) for key, text in kubelet.eviction_soft_grace_period), "="),
        ),
    ]
    numbers = {
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "image-gc-high-threshold": kubelet.image_gc_high_threshold_percent,
        "image-gc-low-threshold": kubelet.image_gc_low_threshold_percent,
    }
    words += [f"--{name}={number}" for name, number in numbers.items() if number is not None]
    if kubelet.cpu_cfs_quota is not None:
        words.append(f"--cpu-cfs-quota={str(kubelet.cpu_cfs_quota).lower()}")
    return " ".join(word for word in words if word)


def pairs(items: Iterable[tuple[str, str]], separator: str) -> str:
    """`a=1,b=2`, sorted by key. Raises ArgumentError when a key or a value would read as another pair."""
    return ",".join(
        f"{_without(key, ',=<')}{separator}{_without(value, ',')}" for key, value in sorted(items)
    )


def _taint(taint: Taint) -> str:
    for text in (taint.key, taint.value):
        _without(text, ",=:")
    return str(taint)


def _without(text: str, signs: str) -> str:
    """The text, when none of the signs that separate it from others is in it."""
    if found := next((sign for sign in signs if sign in text), ""):
        raise ArgumentError(f"user data: {text[:80]!r} cannot hold {found!r} in a list; {_HINT}")
    return text


def _flag(name: str, value: str) -> str:
    if not value:
        return ""
    return quoted_flag(name, value) if " " in value else f"--{name}={quoted_word(name, value)}"


def _optional_flag(name: str, value: str) -> str:
    return quoted_flag(name, value) if value else ""


def quoted_flag(name: str, value: str) -> str:
    """An argument with its value in double quotes. Raises ArgumentError."""
    return f'--{name}="{quoted_word(name, value)}"'


def quoted_word(name: str, value: str) -> str:
    """The value, when nothing in it ends a word that stands in quotes. Raises ArgumentError."""
    if found := _UNSPEAKABLE.search(value):
        raise ArgumentError(f"user data: --{name} cannot hold {found.group()!r}; {_HINT}")
    return value


def go_duration(text: str) -> str:
    """A duration as Go prints it: `90s` and `1m30s` are both `1m30s`; anything else is returned as it is."""
    if _DURATION.fullmatch(text) is None:
        return text
    parts = _DURATION_PART.findall(text)
    units = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
    exact = sum(float(number) * units[unit] for number, unit in parts)
    if exact == float("inf"):
        return text
    milliseconds = round(exact)
    if milliseconds == 0:
        return "0s"
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds = f"{rest / 1000:g}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds
