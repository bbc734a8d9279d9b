"""Objects of v1beta1 as v1 says them: the same meaning, every change said, faults at their own fields."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from nodeless.api.conversion import Conversion
from nodeless.api.conversion_v1beta1 import convert_any_to_v1
from nodeless.api.kinds import V1BETA1
from nodeless.api.reading import read_claim, read_node_class, read_pool
from nodeless.api.v1beta1 import FAMILIES
from nodeless.api.validation import validate
from nodeless.api.validation_v1beta1 import validate_v1beta1
from tests.api.manifests import (
    ec2_node_class,
    ec2_node_class_v1beta1,
    node_claim_v1beta1,
    node_pool,
    node_pool_v1beta1,
    requirement,
)
from tests.api.test_properties import JSON, UNHURRIED, places

Manifest = dict[str, Any]
NOT_SERVED = "convert it to v1 with `nodeless convert`"


def named(manifest: Manifest, name: str, **metadata: Any) -> Manifest:
    return {**manifest, "metadata": {"name": name, **metadata}}


def by_name(result: Conversion) -> dict[str, Manifest]:
    """Each converted object by kind and name; none has a fault, and nothing was lost."""
    assert [str(loss) for _, loss in result.losses] == []
    assert [str(fault) for manifest in result.manifests for fault in validate(manifest)] == []
    return {f"{made['kind']}/{made['metadata']['name']}": made for made in result.manifests}


def converted(*manifests: Manifest) -> dict[str, Manifest]:
    return by_name(convert_any_to_v1(manifests))


def pool_of(**spec: Any) -> Manifest:
    spec_of: Manifest = converted(node_pool_v1beta1(**spec))["NodePool/default"]["spec"]
    return spec_of


def class_of(**spec: Any) -> Manifest:
    spec_of: Manifest = converted(ec2_node_class_v1beta1(**spec))["EC2NodeClass/default"]["spec"]
    return spec_of


def changes(*manifests: Manifest) -> list[str]:
    return [str(change) for _, change in convert_any_to_v1(manifests).changes]


@pytest.mark.parametrize(
    ("disruption", "policy", "after", "expiry"),
    [
        (None, "WhenEmptyOrUnderutilized", "0s", "720h"),
        ({}, "WhenEmptyOrUnderutilized", "0s", "720h"),
        ({"consolidationPolicy": "WhenUnderutilized"}, "WhenEmptyOrUnderutilized", "0s", "720h"),
        (
            {"consolidationPolicy": "WhenUnderutilized", "consolidateAfter": "Never"},
            "WhenEmptyOrUnderutilized",
            "Never",
            "720h",
        ),
        ({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"}, "WhenEmpty", "30s", "720h"),
        ({"expireAfter": "Never"}, "WhenEmptyOrUnderutilized", "0s", "Never"),
        ({"expireAfter": "24h"}, "WhenEmptyOrUnderutilized", "0s", "24h"),
    ],
)
def test_disruption_means_the_same(disruption: Any, policy: str, after: str, expiry: str) -> None:
    spec = pool_of(disruption=disruption)

    assert spec["disruption"] == {"consolidationPolicy": policy, "consolidateAfter": after}
    assert spec["template"]["spec"]["expireAfter"] == expiry
    read_pool(node_pool_of(spec))


def node_pool_of(spec: Manifest) -> Manifest:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    "reference",
    [
        {"name": "default"},
        {"name": "default", "apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass"},
        {"name": "default", "apiVersion": "", "kind": ""},
    ],
)
def test_the_reference_gets_group_and_kind(reference: Manifest) -> None:
    spec = pool_of(template={"nodeClassRef": reference})

    assert spec["template"]["spec"]["nodeClassRef"] == {
        "group": "karpenter.k8s.aws",
        "kind": "EC2NodeClass",
        "name": "default",
    }


def test_all_that_both_generations_have_is_kept() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}]
    template = {
        "requirements": [requirement("karpenter.k8s.aws/instance-cpu", "Gt", "3")],
        "taints": taints,
        "startupTaints": [{"key": "b", "effect": "NoSchedule"}],
    }
    budgets = [{"nodes": "0", "schedule": "@daily", "duration": "10m"}]
    spec = pool_of(
        template=template,
        metadata={"labels": {"team": "a"}},
        limits={"cpu": 100},
        weight=7,
        disruption={"budgets": budgets},
    )

    assert template.items() <= spec["template"]["spec"].items()
    assert spec["template"]["metadata"] == {"labels": {"team": "a"}}
    assert (spec["limits"], spec["weight"], spec["disruption"]["budgets"]) == ({"cpu": 100}, 7, budgets)


def test_expiry_that_budgets_no_longer_delay_is_said_at_its_field() -> None:
    (change,) = changes(node_pool_v1beta1(disruption={"expireAfter": "24h"}))

    assert change.startswith(
        'spec.disruption.expireAfter: "24h" is final in v1: neither spec.disruption.budgets'
    )
    assert changes(node_pool_v1beta1(disruption={"expireAfter": "Never"})) == []


def test_the_kubelet_moves_to_the_node_class() -> None:
    made = converted(node_pool_v1beta1(template={"kubelet": {"maxPods": 20}}), ec2_node_class_v1beta1())

    assert made["EC2NodeClass/default"]["spec"]["kubelet"] == {"maxPods": 20}
    assert "kubelet" not in made["NodePool/default"]["spec"]["template"]["spec"]


def test_pools_that_share_a_node_class_and_differ_in_the_kubelet_get_one_each() -> None:
    few = named(node_pool_v1beta1(template={"kubelet": {"maxPods": 20}}), "few")
    many = named(node_pool_v1beta1(template={"kubelet": {"maxPods": 200}}), "many")
    plain, claim = named(node_pool_v1beta1(), "plain"), node_claim_v1beta1(kubelet={"maxPods": 200})
    given = (few, many, plain, claim, ec2_node_class_v1beta1())

    made = converted(*given)

    kubelets = {
        name: made[f"EC2NodeClass/{name}"]["spec"].get("kubelet")
        for name in ("default", "default-2", "default-3")
    }
    assert kubelets == {"default": {"maxPods": 20}, "default-2": {"maxPods": 200}, "default-3": None}
    references = {
        name: made[f"NodePool/{name}"]["spec"]["template"]["spec"]["nodeClassRef"]["name"]
        for name in ("few", "many", "plain")
    }
    assert references == {"few": "default", "many": "default-2", "plain": "default-3"}
    assert made["NodeClaim/default"]["spec"]["nodeClassRef"]["name"] == "default-2"
    said = [change for change in changes(*given) if "is made for these" in change]
    assert [change.partition(":")[0] for change in said] == [
        "spec.template.spec.kubelet",
        "spec.template.spec.kubelet",
        "spec.kubelet",
    ]


def test_a_kubelet_whose_node_class_is_not_there_is_a_loss_unless_v1_has_it_already() -> None:
    pool = node_pool_v1beta1(template={"kubelet": {"maxPods": 20}})

    ((subject, loss),) = convert_any_to_v1([pool]).losses
    assert (subject, loss.path) == ("NodePool/default", "spec.template.spec.kubelet")
    assert "EC2NodeClass/default" in loss.hint
    assert convert_any_to_v1([pool, ec2_node_class()]).losses != []
    assert convert_any_to_v1([pool, ec2_node_class(kubelet={"maxPods": 20})]).losses == []


@pytest.mark.parametrize(
    ("family", "alias"),
    [
        ("AL2", "al2@latest"),
        ("AL2023", "al2023@latest"),
        ("Bottlerocket", "bottlerocket@latest"),
        ("Windows2019", "windows2019@latest"),
        ("Windows2022", "windows2022@latest"),
    ],
)
def test_a_family_without_terms_becomes_the_alias_that_follows_every_release(family: str, alias: str) -> None:
    for terms in (None, []):
        spec = class_of(amiFamily=family, amiSelectorTerms=terms)

        assert spec["amiSelectorTerms"] == [{"alias": alias}]
        assert "amiFamily" not in spec


def test_a_family_with_terms_stays() -> None:
    spec = class_of(amiFamily="AL2023", amiSelectorTerms=[{"id": "ami-1"}])

    assert (spec["amiFamily"], spec["amiSelectorTerms"]) == ("AL2023", [{"id": "ami-1"}])


def test_ubuntu_becomes_al2_with_ubuntus_disk_and_needs_images() -> None:
    ubuntu = ec2_node_class_v1beta1(amiFamily="Ubuntu", amiSelectorTerms=[{"id": "ami-1"}])
    own = [{"deviceName": "/dev/sda1", "ebs": {"volumeSize": "50Gi"}}]

    spec = converted(ubuntu)["EC2NodeClass/default"]["spec"]

    assert spec["amiFamily"] == "AL2"
    assert [disk["deviceName"] for disk in spec["blockDeviceMappings"]] == ["/dev/sda1"]
    assert spec["blockDeviceMappings"][0]["rootVolume"] is True
    with_own = class_of(**ubuntu["spec"], blockDeviceMappings=own)
    assert with_own["blockDeviceMappings"] == [own[0] | {"rootVolume": True}]
    chosen = [own[0], {"deviceName": "/dev/sdb", "ebs": {"volumeSize": "9Gi"}, "rootVolume": True}]
    assert class_of(**ubuntu["spec"], blockDeviceMappings=chosen)["blockDeviceMappings"] == chosen
    (change,) = changes(ubuntu)
    assert change.startswith('spec.amiFamily: "Ubuntu" is gone in v1')
    ((_, loss),) = convert_any_to_v1([ec2_node_class_v1beta1(amiFamily="Ubuntu")]).losses
    assert str(loss).startswith("spec.amiSelectorTerms: is required in v1 with amiFamily Ubuntu")


def test_two_hops_to_the_metadata_service_stay_two() -> None:
    assert class_of()["metadataOptions"]["httpPutResponseHopLimit"] == 2
    partial = class_of(metadataOptions={"httpTokens": "optional"})["metadataOptions"]
    assert (partial["httpPutResponseHopLimit"], partial["httpTokens"]) == (2, "optional")
    assert (
        class_of(metadataOptions={"httpPutResponseHopLimit": 1})["metadataOptions"]["httpPutResponseHopLimit"]
        == 1
    )


def test_what_else_a_node_class_says_is_kept() -> None:
    spec = {
        "role": None,
        "instanceProfile": "nodes",
        "associatePublicIPAddress": False,
        "detailedMonitoring": True,
        "instanceStorePolicy": "RAID0",
        "userData": "x",
        "tags": {"a": "b"},
        "context": "c",
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi"}}],
    }

    made = class_of(**spec)

    assert {name: made.get(name) for name in spec} == spec


def test_annotations_get_their_names_of_v1_and_hashes_are_left_out() -> None:
    pool = named(
        node_pool_v1beta1(
            metadata={"annotations": {"karpenter.sh/do-not-consolidate": "true", "a": "b"}},
            disruption={"expireAfter": "Never"},
        ),
        "default",
        annotations={"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v2"},
        uid="u-1",
    )

    made = converted(pool)["NodePool/default"]

    assert made["metadata"] == {"name": "default"}
    assert made["spec"]["template"]["metadata"]["annotations"] == {
        "a": "b",
        "karpenter.sh/do-not-disrupt": "true",
    }
    assert [change.partition(": ")[0] for change in changes(pool)] == [
        'metadata.annotations["karpenter.sh/nodepool-hash"]',
        'metadata.annotations["karpenter.sh/nodepool-hash-version"]',
        'spec.template.metadata.annotations["karpenter.sh/do-not-consolidate"]',
    ]


def test_a_claim_lives_as_long_as_its_pool_said() -> None:
    owned = named(
        node_claim_v1beta1(resources={"requests": {"cpu": "1"}}),
        "a",
        labels={"karpenter.sh/nodepool": "default"},
    )
    pool = node_pool_v1beta1(disruption={"expireAfter": "24h"})

    made = converted(pool, owned, node_claim_v1beta1())

    assert made["NodeClaim/a"]["spec"]["expireAfter"] == "24h"
    assert made["NodeClaim/a"]["spec"]["resources"] == {"requests": {"cpu": "1"}}
    assert made["NodeClaim/default"]["spec"]["expireAfter"] == "Never"
    assert converted(owned)["NodeClaim/a"]["spec"]["expireAfter"] == "720h"
    assert any("NodePool/default is not among the objects" in change for change in changes(owned))
    assert any("asks for a new node when it is applied" in change for change in changes(owned))
    assert read_claim(made["NodeClaim/a"]).expire_after == 24 * 3600


def test_v1_goes_through_unchanged_and_a_second_conversion_changes_nothing() -> None:
    given = [node_pool(weight=None, limits={"cpu": 1}), ec2_node_class()]
    older = [named(node_pool_v1beta1(template={"kubelet": {"maxPods": 3}}), "b"), ec2_node_class_v1beta1()]

    assert convert_any_to_v1(given).manifests == given
    once = convert_any_to_v1(older)
    again = convert_any_to_v1(once.manifests)
    assert again.manifests == once.manifests
    assert (again.notes, again.changes, again.losses) == ([], [], [])


def test_nothing_that_is_given_is_modified() -> None:
    given = [node_pool_v1beta1(template={"kubelet": {"maxPods": 3}}, disruption={}), ec2_node_class_v1beta1()]
    before = deepcopy(given)

    convert_any_to_v1(given)

    assert given == before


def test_two_generations_of_one_name_are_a_loss() -> None:
    ((subject, loss),) = convert_any_to_v1([ec2_node_class(), ec2_node_class_v1beta1()]).losses

    assert (subject, loss.path) == ("EC2NodeClass/default", "metadata.name")


@pytest.mark.parametrize("manifest", [node_pool_v1beta1(), ec2_node_class_v1beta1(), node_claim_v1beta1()])
def test_a_valid_object_has_one_warning_that_names_convert(manifest: Manifest) -> None:
    (warning,) = validate_v1beta1(manifest)

    assert (warning.warning, warning.path) == (True, "apiVersion")
    assert NOT_SERVED in warning.hint


P, C, N = node_pool_v1beta1, ec2_node_class_v1beta1, node_claim_v1beta1
FAULTS: list[tuple[Manifest, list[str]]] = [
    (P(disruption={"expireAfter": "1d"}), ["spec.disruption.expireAfter"]),
    (P(disruption={"consolidationPolicy": "WhenEmpty"}), ["spec.disruption"]),
    (P(disruption={"consolidateAfter": "30s"}), ["spec.disruption"]),
    (
        P(disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"}),
        ["spec.disruption.consolidationPolicy"],
    ),
    (P(template={"kubelet": {"maxPods": "x"}}), ["spec.template.spec.kubelet.maxPods"]),
    (P(template={"kubelet": {"evictionHard": {"x": "5%"}}}), ["spec.template.spec.kubelet.evictionHard.x"]),
    (
        P(template={"nodeClassRef": {"name": "a", "apiVersion": "v1"}}),
        ["spec.template.spec.nodeClassRef.apiVersion"],
    ),
    (P(template={"nodeClassRef": None}), ["spec.template.spec.nodeClassRef"]),
    (P(template={"nodeClassRef": {}}), ["spec.template.spec.nodeClassRef.name"]),
    (P(template={"resources": {"cpu": 1}}), ["spec.template.spec.resources"]),
    (P(replicas=3), ["spec.replicas"]),
    (P(weight=101, limits={"cpu": "x"}), ["spec.limits.cpu", "spec.weight"]),
    (
        P(template={"requirements": [requirement("karpenter.sh/x", "Exists")]}),
        ["spec.template.spec.requirements[0].key"],
    ),
    (P(template={"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}), ["spec.template.spec.taints[1]"]),
    (named(P(), "a" * 64), ["metadata.name"]),
    (C(amiFamily="Al2023"), ["spec.amiFamily"]),
    (C(amiFamily=None), ["spec.amiFamily"]),
    (C(amiFamily="Custom"), ["spec.amiSelectorTerms"]),
    (
        C(amiSelectorTerms=[{"alias": "al2023@latest"}]),
        ["spec.amiSelectorTerms[0].alias"],
    ),
    (C(kubelet={"maxPods": 3}), ["spec.kubelet"]),
    (C(instanceProfile="x"), ["spec"]),
    (C(role=None), ["spec"]),
    (C(metadataOptions={"httpPutResponseHopLimit": 65}), ["spec.metadataOptions.httpPutResponseHopLimit"]),
    (N(nodeClassRef={"name": ""}), ["spec.nodeClassRef.name"]),
    (N(expireAfter="720h"), ["spec.expireAfter"]),
]


@pytest.mark.parametrize(("manifest", "paths"), FAULTS, ids=[" ".join(paths) for _, paths in FAULTS])
def test_a_fault_is_told_at_its_field_of_v1beta1(manifest: Manifest, paths: list[str]) -> None:
    faults = validate_v1beta1(manifest)

    assert sorted({fault.path for fault in faults if not fault.warning}) == paths, [
        str(fault) for fault in faults
    ]
    assert not any("Provisioner" in str(fault) for fault in faults)


def test_a_field_that_v1_alone_has_is_said_to_be_one() -> None:
    (fault,) = (fault for fault in validate_v1beta1(P(replicas=3)) if not fault.warning)

    assert "karpenter.sh/v1 has it" in fault.hint


def test_warnings_of_v1_are_told_at_the_fields_of_v1beta1() -> None:
    pool = P(
        template={
            "requirements": [requirement("kubernetes.io/arch", "In", "x86_64")],
            "kubelet": {"clusterDNS": ["dns"]},
        }
    )

    assert [fault.path for fault in validate_v1beta1(pool) if fault.warning] == [
        "apiVersion",
        "spec.template.spec.kubelet.clusterDNS[0]",
        "spec.template.spec.requirements[0].values[0]",
    ]


def test_warnings_are_told_beside_faults_also_of_the_same_field() -> None:
    faults = validate_v1beta1(P(weight=101, metadata={"labels": {"team": "{{ .Values.team }}"}}))

    assert [(fault.path, fault.warning) for fault in faults] == [
        ("apiVersion", True),
        ("spec.template.metadata.labels.team", False),
        ("spec.template.metadata.labels.team", True),
        ("spec.weight", False),
    ]


FULL = [
    P(
        template={
            "kubelet": {"maxPods": 3, "kubeReserved": {"cpu": "1"}},
            "taints": [{"key": "a", "effect": "NoSchedule"}],
            "requirements": [requirement("a", "In", "b")],
            "resources": {},
        },
        metadata={"annotations": {"a": "b"}, "labels": {"a": "b"}},
        disruption={"budgets": [{"nodes": "1"}], "expireAfter": "1h"},
        limits={"cpu": 1},
    ),
    C(
        amiSelectorTerms=[{"id": "ami-1"}],
        metadataOptions={"httpTokens": "required"},
        blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi"}}],
        tags={"a": "b"},
    ),
    N(kubelet={"maxPods": 3}, resources={"requests": {"cpu": 1}}),
]


@some.composite
def damaged(draw: some.DrawFn) -> Any:
    """A valid object in which one or two values have become something else, or which is something else."""
    manifest = deepcopy(draw(some.sampled_from(FULL)))
    for _ in range(draw(some.integers(1, 2))):
        path = draw(
            some.sampled_from([path for path in places(manifest) if path[:1] in (("metadata",), ("spec",))])
        )
        holder = manifest
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = draw(JSON | some.dictionaries(some.integers(), some.none(), max_size=2))
        if not all(isinstance(manifest.get(name), dict) for name in ("metadata", "spec")):
            break
    return manifest


@UNHURRIED
@given(some.lists(damaged(), min_size=1, max_size=3))
def test_any_damage_is_a_fault_or_converts_to_what_is_valid(manifests: list[Manifest]) -> None:
    valid = []
    for manifest in manifests:
        faults = validate_v1beta1(manifest)
        assert all(fault.path and fault.message and str(fault) for fault in faults)
        valid += [] if any(not fault.warning for fault in faults) else [manifest]

    result = convert_any_to_v1(valid)

    lost = {subject for subject, _ in result.losses}
    for subject, made in zip(result.subjects, result.manifests, strict=True):
        assert subject in lost or validate(made) == []


WORDS = some.text(some.sampled_from("abcxyz"), min_size=1, max_size=5)
SPANS = some.sampled_from(["30s", "1h30m", "Never"])


def members(**optional: some.SearchStrategy[Any]) -> some.SearchStrategy[Manifest]:
    return some.fixed_dictionaries({}, optional=optional)


KUBELETS = members(
    maxPods=some.integers(1, 250),
    podsPerCore=some.integers(0, 10),
    systemReserved=some.dictionaries(some.sampled_from(["cpu", "memory"]), some.sampled_from(["1", "500m"])),
    evictionHard=some.just({"memory.available": "5%"}),
    clusterDNS=some.just(["10.0.0.10"]),
)
DISRUPTIONS = some.one_of(
    members(consolidationPolicy=some.just("WhenUnderutilized"), expireAfter=SPANS),
    some.fixed_dictionaries(
        {"consolidationPolicy": some.just("WhenEmpty"), "consolidateAfter": SPANS},
        optional={"expireAfter": SPANS, "budgets": some.just([{"nodes": "20%"}])},
    ),
)
POOLS = some.builds(
    lambda name, kubelet, reference, spec, requirements, labels: named(
        node_pool_v1beta1(
            template={"kubelet": kubelet, "nodeClassRef": reference, "requirements": requirements},
            metadata={"labels": labels},
            **spec,
        ),
        name,
    ),
    WORDS,
    some.none() | KUBELETS,
    some.builds(
        lambda name, rest: {"name": name, **rest},
        some.sampled_from(["one", "two"]),
        members(apiVersion=some.just("karpenter.k8s.aws/v1beta1"), kind=some.just("EC2NodeClass")),
    ),
    members(
        disruption=DISRUPTIONS,
        weight=some.integers(1, 100),
        limits=some.dictionaries(some.sampled_from(["cpu", "memory"]), some.sampled_from(["1", 7, "2Gi"])),
    ),
    some.lists(some.builds(lambda key: requirement(f"example.com/{key}", "Exists"), WORDS), max_size=2),
    some.dictionaries(WORDS.map(lambda word: f"example.com/{word}"), WORDS, max_size=2),
)
IMAGES = some.sampled_from([[{"id": "ami-1"}], [{"name": "a*", "owner": "self"}, {"tags": {"a": "b"}}]])
CLASSES = some.builds(
    lambda family, images, options, public: ec2_node_class_v1beta1(
        amiFamily=family,
        amiSelectorTerms=images,
        metadataOptions=options,
        associatePublicIPAddress=public,
    ),
    some.sampled_from([family for family in FAMILIES if family not in ("Ubuntu", "Custom")]),
    some.none() | IMAGES,
    some.none() | members(httpTokens=some.just("optional"), httpPutResponseHopLimit=some.integers(1, 64)),
    some.none() | some.booleans(),
) | some.builds(
    lambda family, images: ec2_node_class_v1beta1(amiFamily=family, amiSelectorTerms=images),
    some.sampled_from(["Ubuntu", "Custom"]),
    IMAGES,
)


@UNHURRIED
@given(
    some.lists(POOLS, min_size=1, max_size=4, unique_by=lambda pool: str(pool["metadata"]["name"])),
    CLASSES,
    CLASSES,
)
def test_drawn_pools_and_classes_convert_to_objects_without_a_fault(
    pools: list[Manifest], one: Manifest, two: Manifest
) -> None:
    given_objects = [*pools, named(one, "one"), named(two, "two")]
    assert [fault for each in given_objects for fault in validate_v1beta1(each) if not fault.warning] == []

    made = converted(*given_objects)

    for pool in pools:
        inner, spec = pool["spec"]["template"]["spec"], made[f"NodePool/{pool['metadata']['name']}"]["spec"]
        name = spec["template"]["spec"]["nodeClassRef"]["name"]
        node_class = made[f"EC2NodeClass/{name}"]
        assert name.partition("-")[0] == inner["nodeClassRef"]["name"]
        assert node_class["spec"].get("kubelet", {}) == (inner.get("kubelet") or {})
        read_pool(made[f"NodePool/{pool['metadata']['name']}"])
        read_node_class(node_class)


def test_the_kinds_of_v1beta1_are_the_three_of_karpenter() -> None:
    assert sorted(kind.kind for kind in V1BETA1) == ["EC2NodeClass", "NodeClaim", "NodePool"]
