"""Every rule for Provisioners: a manifest that breaks just this rule, and the fields that are named.

The ids are the rows of the rule tables of Karpenter v0.27 (P: core, 3.3: schema).
"""

from __future__ import annotations

from typing import Any

import pytest

from nodeless.api.validation import validate
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
    ("3.7 unknown value", required("karpenter.sh/capacity-type", "In", "reserved")),
    ("3.7 negative limit", provisioner(limits={"resources": {"cpu": "-1"}})),
    ("3.7 dangling reference", provisioner(providerRef={"name": "nowhere"})),
    ("3.7 DNS that is no address", kubelet(clusterDNS=["dns"], containerRuntime="dockerd")),
]


@pytest.mark.parametrize(("manifest", "paths"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_broken_rule_is_named_at_its_field(manifest: dict[str, Any], paths: list[str]) -> None:
    errors = [error for error in validate(manifest) if not error.warning]

    assert sorted({error.path for error in errors}) == sorted(paths)
    assert all(error.message for error in errors)


@pytest.mark.parametrize("manifest", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_the_rules_allow_is_accepted(manifest: dict[str, Any]) -> None:
    assert validate(manifest) == []


def test_all_faults_come_at_once() -> None:
    manifest = provisioner(
        weight=0,
        ttlSecondsUntilExpired=-1,
        labels={"a b": "x y"},
        requirements=[requirement("team", "in", "x"), requirement("karpenter.sh/foo", "Gt", "x")],
    )

    assert [error.path for error in validate(manifest)] == [
        'spec.labels["a b"]',
        'spec.labels["a b"]',
        "spec.requirements[0].operator",
        "spec.requirements[1].key",
        "spec.requirements[1].values[0]",
        "spec.ttlSecondsUntilExpired",
        "spec.weight",
    ]


HINTS = [
    ("operator in the wrong case", required("team", "in", "x"), "did you mean In?"),
    ("operator left out", required("team", None, "x"), "values are given, so In is probably meant"),
    ("effect", provisioner(taints=[TAINT | {"effect": "noschedule"}]), "did you mean NoSchedule?"),
    ("member", provisioner(requirement=[]), "did you mean requirements?"),
    ("number in quotes", provisioner(weight="10"), "write it without quotes: 10"),
    ("boolean taint", provisioner(taints=[TAINT | {"value": True}]), 'put it in quotes: "true"'),
    (
        "near miss of a well-known key",
        required("karpenter.sh/capacity-typ", "In", "spot"),
        "did you mean karpenter.sh/capacity-type?",
    ),
    ("blank", required(" team", "In", "x"), "remove the blanks: team"),
]


@pytest.mark.parametrize(("manifest", "hint"), [row[1:] for row in HINTS], ids=[row[0] for row in HINTS])
def test_the_fault_says_what_was_probably_meant(manifest: dict[str, Any], hint: str) -> None:
    (error,) = validate(manifest)

    assert error.hint.startswith(hint)
    assert str(error).endswith(f"; hint: {error.hint}")
