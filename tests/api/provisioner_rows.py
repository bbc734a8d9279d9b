"""Rules for Provisioners as tables: manifests that break one rule each with the fields named, and legal ones.

The ids are rows of the rule tables of Karpenter v0.27 (P: core, 3.3: schema, 3.7: deliberately unchecked).
One table for `validate` and for the real API server with the real webhook, which must give the same verdicts.
"""

from __future__ import annotations

from typing import Any

from tests.api.manifests import provisioner, requirement

TAINT = {"key": "team", "effect": "NoSchedule"}
REQUIREMENTS = "spec.requirements[0]"
KUBELET = "spec.kubeletConfiguration"


def named(name: str | None, **metadata: Any) -> dict[str, Any]:
    return provisioner() | {"metadata": metadata if name is None else {"name": name, **metadata}}


def required(*entry: Any) -> dict[str, Any]:
    return provisioner(requirements=[requirement(*entry)])


def kubelet(**settings: Any) -> dict[str, Any]:
    return provisioner(kubeletConfiguration=settings)


REFUSED = [
    ("P-0a dot", named("a.b"), ["metadata.name"]),
    ("P-0a digit first", named("1a"), ["metadata.name"]),
    ("P-0a upper case", named("Default"), ["metadata.name"]),
    ("P-0a too long", named("a" * 64), ["metadata.name"]),
    ("P-0b", named(None, generateName="A-"), ["metadata.generateName"]),
    ("P-0c", named(None), ["metadata.name"]),
    ("P-1", provisioner(ttlSecondsUntilExpired=-1), ["spec.ttlSecondsUntilExpired"]),
    ("P-2", provisioner(ttlSecondsAfterEmpty=-1), ["spec.ttlSecondsAfterEmpty"]),
    (
        "P-2 without P-3",
        provisioner(ttlSecondsAfterEmpty=-1, consolidation={"enabled": True}),
        ["spec.ttlSecondsAfterEmpty"],
    ),
    ("P-3", provisioner(consolidation={"enabled": True}), ["spec.ttlSecondsAfterEmpty"]),
    (
        "P-3 zero",
        provisioner(ttlSecondsAfterEmpty=0, consolidation={"enabled": True}),
        ["spec.ttlSecondsAfterEmpty"],
    ),
    (
        "P-4",
        provisioner(provider={"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}),
        ["spec.provider"],
    ),
    ("P-5", provisioner(providerRef=None), ["spec.providerRef"]),
    (
        "P-6",
        provisioner(labels={"karpenter.sh/provisioner-name": "x"}),
        ['spec.labels["karpenter.sh/provisioner-name"]'],
    ),
    ("P-7 name", provisioner(labels={"a b": "x"}), ['spec.labels["a b"]']),
    ("P-7 prefix", provisioner(labels={"Ex.com/a": "x"}), ['spec.labels["Ex.com/a"]']),
    ("P-8", provisioner(labels={"team": "a b"}), ["spec.labels.team"]),
    ("P-8 too long", provisioner(labels={"team": "x" * 64}), ["spec.labels.team"]),
    (
        "P-9",
        provisioner(labels={"kubernetes.io/hostname": "x"}),
        ['spec.labels["kubernetes.io/hostname"]'],
    ),
    (
        "P-9 aliases are not for labels",
        provisioner(labels={"beta.kubernetes.io/arch": "amd64"}),
        ['spec.labels["beta.kubernetes.io/arch"]'],
    ),
    ("P-10", provisioner(taints=[TAINT | {"key": ""}]), ["spec.taints[0].key"]),
    ("P-11", provisioner(startupTaints=[TAINT | {"key": "a b"}]), ["spec.startupTaints[0].key"]),
    ("P-12", provisioner(taints=[TAINT | {"value": "x y"}]), ["spec.taints[0].value"]),
    ("P-13", provisioner(taints=[TAINT | {"effect": "NoSchedul"}]), ["spec.taints[0].effect"]),
    ("P-14", provisioner(taints=[TAINT, TAINT]), ["spec.taints[1]"]),
    ("P-14 across", provisioner(taints=[TAINT], startupTaints=[TAINT]), ["spec.startupTaints[0]"]),
    ("P-14 among startup taints", provisioner(startupTaints=[TAINT, TAINT]), ["spec.startupTaints[1]"]),
    ("P-15", required("karpenter.sh/provisioner-name", "In", "x"), [f"{REQUIREMENTS}.key"]),
    ("P-16", required("team", "Equals", "x"), [f"{REQUIREMENTS}.operator"]),
    ("P-16 empty", required("team", "", "x"), [f"{REQUIREMENTS}.operator"]),
    ("P-17", required("karpenter.sh/unknown", "In", "x"), [f"{REQUIREMENTS}.key"]),
    ("P-18", required("a b", "In", "x"), [f"{REQUIREMENTS}.key"]),
    ("P-18 blank", required(" team", "In", "x"), [f"{REQUIREMENTS}.key"]),
    ("P-19", required("team", "In", "ok", "a b"), [f"{REQUIREMENTS}.values[1]"]),
    ("P-20", required("team", "In"), [f"{REQUIREMENTS}.values"]),
    ("P-21 none", required("team", "Gt"), [f"{REQUIREMENTS}.values"]),
    ("P-21 two", required("team", "Lt", "1", "2"), [f"{REQUIREMENTS}.values"]),
    ("P-21 fraction", required("team", "Gt", "3.5"), [f"{REQUIREMENTS}.values[0]"]),
    ("P-21 negative", required("team", "Lt", "-1"), [f"{REQUIREMENTS}.values[0]"]),
    ("P-21 sign", required("team", "Gt", "+3"), [f"{REQUIREMENTS}.values[0]"]),
    ("P-22 hard", kubelet(evictionHard={"memory": "5%"}), [f"{KUBELET}.evictionHard.memory"]),
    (
        "P-22 soft",
        kubelet(evictionSoft={"memory": "5%"}, evictionSoftGracePeriod={"memory": "1m"}),
        [f"{KUBELET}.evictionSoft.memory", f"{KUBELET}.evictionSoftGracePeriod.memory"],
    ),
    (
        "P-23",
        kubelet(evictionHard={"memory.available": "x%"}),
        [f'{KUBELET}.evictionHard["memory.available"]'],
    ),
    *[
        (
            f"P-23 {text}",
            kubelet(evictionHard={"memory.available": text}),
            [f'{KUBELET}.evictionHard["memory.available"]'],
        )
        for text in ("%", " 5%", "1_0%", "٣%", "nan%")
    ],
    (
        "P-24",
        kubelet(evictionHard={"memory.available": "101%"}),
        [f'{KUBELET}.evictionHard["memory.available"]'],
    ),
    (
        "P-25",
        kubelet(evictionHard={"memory.available": "much"}),
        [f'{KUBELET}.evictionHard["memory.available"]'],
    ),
    (
        "P-27 soft only",
        kubelet(evictionSoft={"memory.available": "5%"}),
        [f'{KUBELET}.evictionSoft["memory.available"]'],
    ),
    (
        "P-26 P-27 grace only",
        kubelet(evictionSoftGracePeriod={"memory.available": "1m"}),
        [f'{KUBELET}.evictionSoftGracePeriod["memory.available"]'],
    ),
    (
        "no duration",
        kubelet(
            evictionSoft={"memory.available": "5%"}, evictionSoftGracePeriod={"memory.available": "soon"}
        ),
        [f'{KUBELET}.evictionSoftGracePeriod["memory.available"]'],
    ),
    ("P-28", kubelet(kubeReserved={"gpu": "1"}), [f"{KUBELET}.kubeReserved.gpu"]),
    ("P-29", kubelet(systemReserved={"cpu": "-1"}), [f"{KUBELET}.systemReserved.cpu"]),
    (
        "P-30",
        kubelet(imageGCHighThresholdPercent=10, imageGCLowThresholdPercent=20),
        [f"{KUBELET}.imageGCHighThresholdPercent", f"{KUBELET}.imageGCLowThresholdPercent"],
    ),
    ("3.3 weight", provisioner(weight=101), ["spec.weight"]),
    ("3.3 weight zero", provisioner(weight=0), ["spec.weight"]),
    ("3.3 maxPods", kubelet(maxPods=-1), [f"{KUBELET}.maxPods"]),
    ("3.3 podsPerCore", kubelet(podsPerCore=-1), [f"{KUBELET}.podsPerCore"]),
    ("3.3 percent", kubelet(imageGCHighThresholdPercent=101), [f"{KUBELET}.imageGCHighThresholdPercent"]),
    ("3.3 operator absent", required("team", None, "x"), [f"{REQUIREMENTS}.operator"]),
    ("3.3 key absent", provisioner(requirements=[{"operator": "Exists"}]), [f"{REQUIREMENTS}.key"]),
    ("3.3 taint", provisioner(taints=[{}]), ["spec.taints[0].effect", "spec.taints[0].key"]),
    ("3.3 providerRef", provisioner(providerRef={}), ["spec.providerRef.name"]),
    ("3.3 limits", provisioner(limits={"resources": {"cpu": "many"}}), ["spec.limits.resources.cpu"]),
    ("3.3 reserved", kubelet(kubeReserved={"cpu": 0.5}), [f"{KUBELET}.kubeReserved.cpu"]),
    ("wrong type", provisioner(weight="10"), ["spec.weight"]),
    (
        "wrong type of a taint's value",
        provisioner(taints=[TAINT | {"value": True}]),
        ["spec.taints[0].value"],
    ),
    ("metadata of a wrong type", provisioner() | {"metadata": {"name": ["a"]}}, ["metadata.name"]),
    ("a time that is none", named("a", deletionTimestamp="soon"), ["metadata.deletionTimestamp"]),
    ("unknown member", provisioner(requirement=[]), ["spec.requirement"]),
    (
        "a quantity beyond all sense",
        provisioner(limits={"resources": {"cpu": "1e999999999"}}),
        ["spec.limits.resources.cpu"],
    ),
]

ACCEPTED = [
    ("P-0b", named(None, generateName="pool-")),
    ("P-1", provisioner(ttlSecondsUntilExpired=0)),
    ("P-3", provisioner(ttlSecondsAfterEmpty=None, consolidation={"enabled": True})),
    ("P-3 off", provisioner(consolidation={"enabled": False})),
    ("P-8 empty", provisioner(labels={"team": ""})),
    ("P-12 with a slash", provisioner(taints=[TAINT | {"value": "a/b"}])),
    ("P-13 empty", provisioner(taints=[TAINT | {"effect": ""}])),
    ("P-14 other effect", provisioner(taints=[TAINT, TAINT | {"effect": "NoExecute"}])),
    ("P-17 alias", required("beta.kubernetes.io/arch", "In", "amd64")),
    ("P-20 Exists", required("team", "Exists")),
    ("P-21 leading zeros", required("team", "Gt", "007")),
    ("P-24 bounds", kubelet(evictionHard={"memory.available": "100%", "nodefs.available": "0%"})),
    ("P-25 quantity", kubelet(evictionHard={"memory.available": "100Mi"})),
    (
        "P-27 pair",
        kubelet(
            evictionSoft={"memory.available": "5%"}, evictionSoftGracePeriod={"memory.available": "1m30s"}
        ),
    ),
    ("P-30 equal", kubelet(imageGCHighThresholdPercent=20, imageGCLowThresholdPercent=20)),
    ("3.3 bounds", provisioner(weight=100)),
    ("null is absent", provisioner() | {"status": None}),
    ("3.7 NotIn without values", required("team", "NotIn")),
    ("3.7 Exists with values", required("team", "Exists", "a")),
    ("3.7 DoesNotExist with values", required("team", "DoesNotExist", "a")),
    (
        "3.7 contradiction",
        provisioner(requirements=[requirement("team", "In", "a"), requirement("team", "In", "b")]),
    ),
    ("3.7 unknown capacity type", required("karpenter.sh/capacity-type", "In", "reserved")),
    ("3.7 unknown zone", required("topology.kubernetes.io/zone", "In", "nowhere-1a")),
    ("3.7 unknown type", required("node.kubernetes.io/instance-type", "In", "x9.huge")),
    ("3.7 negative limit", provisioner(limits={"resources": {"cpu": "-1"}})),
    ("3.7 unknown resource", provisioner(limits={"resources": {"example.com/widgets": 3}})),
    ("3.7 annotation", provisioner(annotations={"not a key": "x"})),
    ("3.7 dangling reference", provisioner(providerRef={"name": "nowhere"})),
    ("3.7 DNS that is no address", kubelet(clusterDNS=["dns"])),
    ("3.7 container runtime", kubelet(containerRuntime="dockerd")),
]

#: Keys of requirements, and whether users may not set them (2.3).
KEY_VERDICTS = [
    ("example.com/x", False),
    ("noslash", False),
    ("node.kubernetes.io/x", False),
    ("kops.k8s.io/x", False),
    ("topology.k8s.aws/zone-id", False),
    ("node.k8s.aws/instance-type", False),
    ("karpenter.sh/capacity-type", False),
    ("sub.node.kubernetes.io/x", True),
    ("notkubernetes.io/x", True),
    ("karpenter.k8s.aws/instance-ami-id", True),
    ("node-restriction.kubernetes.io/x", True),
    ("kubelet.kubernetes.io/x", True),
    ("extensions.karpenter.sh/x", True),
    ("kubernetes.io/hostname", True),
    ("karpenter.sh/emptiness-timestamp", True),
    ("karpenter.sh/nodepool", True),
]
