"""Provisioners and node templates as v1 says them: nothing lost in silence, and the same meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from nodeless.api.conversion import convert_to_v1
from nodeless.api.conversion_back import convert_to_v1alpha5
from nodeless.api.conversion_classes import ClassContext
from nodeless.api.defaulting import default
from nodeless.api.reading import read_node_class, read_pool
from nodeless.api.validation import validate
from nodeless.model.labels import INSTANCE_TYPE
from nodeless.model.pools import Kubelet, NodeClass, Pool, Reference, kubelet_of
from nodeless.model.requirements import Requirements
from tests.api.manifests import ec2_node_class, inline, node_pool, node_template, provisioner, requirement
from tests.api.test_properties import UNHURRIED

CONTEXT = ClassContext(default_instance_profile="nodes")


def converted(*manifests: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By kind and name; every object of it is valid."""
    made = convert_to_v1(manifests, CONTEXT).manifests
    for manifest in made:
        assert [str(fault) for fault in validate(manifest)] == []
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in made}


def losses(*manifests: dict[str, Any]) -> list[str]:
    return [error.path for _, error in convert_to_v1(manifests, CONTEXT).losses]


def pool_of(**spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = converted(provisioner(**spec))["NodePool/default"]["spec"]
    return made


def class_of(**spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = converted(node_template(**spec))["EC2NodeClass/default"]["spec"]
    return made


def test_c_1_metadata_is_kept_and_what_the_server_owns_is_not() -> None:
    manifest = provisioner()
    manifest["metadata"] |= {"labels": {"a": "b"}, "uid": "u-1", "resourceVersion": "7"}
    manifest["status"] = {"resources": {"cpu": "1"}}

    pool = converted(manifest)["NodePool/default"]

    assert pool["metadata"] == {"name": "default", "labels": {"a": "b"}}
    assert "status" not in pool


def test_c_1_an_inline_provider_becomes_a_class_of_the_same_name() -> None:
    made = converted(inline())

    assert set(made) == {"NodePool/default", "EC2NodeClass/default"}
    assert made["NodePool/default"]["spec"]["template"]["spec"]["nodeClassRef"]["name"] == "default"


def test_c_2_defaults_are_written_out() -> None:
    keys = [each["key"] for each in pool_of()["template"]["spec"]["requirements"]]

    assert keys == [
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "karpenter.sh/capacity-type",
        "karpenter.k8s.aws/instance-category",
        "karpenter.k8s.aws/instance-generation",
    ]


@pytest.mark.parametrize(
    ("spec", "policy", "after"),
    [
        (
            {"ttlSecondsAfterEmpty": None, "consolidation": {"enabled": True}},
            "WhenEmptyOrUnderutilized",
            "0s",
        ),
        ({"ttlSecondsAfterEmpty": 30}, "WhenEmpty", "30s"),
        ({"ttlSecondsAfterEmpty": None}, "WhenEmpty", "Never"),
    ],
)
def test_c_3_c_5_disruption(spec: dict[str, Any], policy: str, after: str) -> None:
    expected = {"consolidationPolicy": policy, "consolidateAfter": after, "budgets": [{"nodes": "100%"}]}
    assert pool_of(**spec)["disruption"] == expected


def test_c_4_a_life_span_that_is_not_given_has_no_end() -> None:
    assert pool_of()["template"]["spec"]["expireAfter"] == "Never"
    assert pool_of(ttlSecondsUntilExpired=60)["template"]["spec"]["expireAfter"] == "60s"


def test_c_4_a_life_span_ends_otherwise_in_the_other_generation_and_that_is_listed() -> None:
    (change,) = convert_to_v1([provisioner(ttlSecondsUntilExpired=3600)], CONTEXT).changes
    assert change[0] == "Provisioner/default"
    assert str(change[1]).startswith("spec.ttlSecondsUntilExpired: 3600 is final in v1: neither")
    assert convert_to_v1([provisioner()], CONTEXT).changes == []
    (change,) = convert_to_v1alpha5([node_pool(template={"expireAfter": "1h"})]).changes
    assert str(change[1]).startswith('spec.template.spec.expireAfter: "3600s" is not final in v1alpha5')
    assert convert_to_v1alpha5([node_pool(template={"expireAfter": "Never"})]).changes == []


def test_that_nodes_of_a_nodepool_drift_whatever_the_gate_says_is_mentioned() -> None:
    notes = [note for _, note in convert_to_v1([provisioner()], CONTEXT).notes]
    assert any("featureGates.driftEnabled is false" in note for note in notes)


def test_c_6_limits_and_weight_stay() -> None:
    spec = pool_of(limits={"resources": {"cpu": 1000, "memory": "1Ti"}}, weight=9)

    assert spec["limits"] == {"cpu": 1000, "memory": "1Ti"}
    assert spec["weight"] == 9


def test_c_7_pools_with_different_kubelets_get_a_class_each() -> None:
    one = provisioner(kubeletConfiguration={"maxPods": 20, "kubeReserved": {"cpu": 1}})
    other = provisioner()
    other["metadata"] = {"name": "other"}

    made = converted(node_template(), one, other)

    assert made["EC2NodeClass/default"]["spec"]["kubelet"] == {"maxPods": 20, "kubeReserved": {"cpu": "1"}}
    assert "kubelet" not in made["EC2NodeClass/default-2"]["spec"]
    reference = made["NodePool/other"]["spec"]["template"]["spec"]["nodeClassRef"]
    assert reference == {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default-2"}


def test_c_7_what_the_kubelet_cannot_be_told_is_listed() -> None:
    kubelet = {
        "containerRuntime": "dockerd",
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 80,
    }
    listed = losses(node_template(), provisioner(kubeletConfiguration=kubelet))
    assert listed == [
        "spec.kubeletConfiguration.containerRuntime",
        "spec.kubeletConfiguration.imageGCHighThresholdPercent",
    ]
    assert losses(provisioner(kubeletConfiguration={"maxPods": 3})) == ["spec.kubeletConfiguration"]


def test_c_9_lists_of_tags_become_terms() -> None:
    spec = class_of(subnetSelector={"a": "x, y", "b": "1,2"}, securityGroupSelector={"aws-ids": "sg-1,sg-2"})

    assert [term["tags"] for term in spec["subnetSelectorTerms"]] == [
        {"a": "x", "b": "1"},
        {"a": "x", "b": "2"},
        {"a": "y", "b": "1"},
        {"a": "y", "b": "2"},
    ]
    assert spec["securityGroupSelectorTerms"] == [{"id": "sg-1"}, {"id": "sg-2"}]


def test_c_9_what_terms_cannot_say_is_listed() -> None:
    assert losses(node_template(subnetSelector={"aws-ids": "subnet-1", "a": "b"})) == [
        'spec.subnetSelector["aws-ids"]'
    ]
    many = ",".join(f"v{number}" for number in range(31))
    assert losses(node_template(subnetSelector={"a": many})) == ["spec.subnetSelector"]


def test_c_10_images_keep_their_owners() -> None:
    assert class_of(amiSelector={"a": "b"})["amiSelectorTerms"] == [
        {"tags": {"a": "b"}, "owner": "self"},
        {"tags": {"a": "b"}, "owner": "amazon"},
    ]
    assert class_of(amiSelector={"aws::name": "x", "aws::owners": "self,123"})["amiSelectorTerms"] == [
        {"name": "x", "owner": "self"},
        {"name": "x", "owner": "123"},
    ]
    assert class_of(amiSelector={"aws::ids": "ami-1", "aws::owners": "self"})["amiSelectorTerms"] == [
        {"id": "ami-1"}
    ]


def test_c_11_families() -> None:
    assert class_of()["amiSelectorTerms"] == [{"alias": "al2@latest"}]
    assert class_of(amiFamily="Bottlerocket")["amiSelectorTerms"] == [{"alias": "bottlerocket@latest"}]
    ubuntu = class_of(amiFamily="Ubuntu", amiSelector={"aws-ids": "ami-1"})
    assert ubuntu["amiFamily"] == "AL2"
    assert ubuntu["blockDeviceMappings"][0]["deviceName"] == "/dev/sda1"
    own = [{"deviceName": "/dev/sda1", "ebs": {"volumeSize": "50Gi"}}]
    larger = class_of(amiFamily="Ubuntu", amiSelector={"aws-ids": "ami-1"}, blockDeviceMappings=own)
    assert [
        disk.get("rootVolume") for disk in (*ubuntu["blockDeviceMappings"], *larger["blockDeviceMappings"])
    ] == [
        True,
        True,
    ]
    assert losses(node_template(amiFamily="Ubuntu")) == ["spec.amiSelector"]


def test_c_12_an_instance_profile_is_needed() -> None:
    assert class_of()["instanceProfile"] == "nodes"
    lost = convert_to_v1([node_template()]).losses
    assert [error.path for _, error in lost] == ["spec.instanceProfile"]


def test_c_13_metadata_options_mean_what_they_meant() -> None:
    assert class_of()["metadataOptions"]["httpPutResponseHopLimit"] == 2
    partial = class_of(metadataOptions={"httpEndpoint": "enabled"})["metadataOptions"]
    assert (partial["httpPutResponseHopLimit"], partial["httpTokens"]) == (1, "optional")


def test_c_14_a_launch_template_cannot_be_said() -> None:
    assert "spec.launchTemplate" in losses(node_template(launchTemplate="mine", securityGroupSelector=None))


def test_c_15_tags_of_the_settings_are_merged_and_reserved_ones_listed() -> None:
    context = ClassContext("nodes", {"a": "global", "b": "global"})
    made = convert_to_v1([node_template(tags={"a": "own", "karpenter.sh/nodepool": "x"})], context)

    assert made.manifests[0]["spec"]["tags"] == {"a": "own", "b": "global"}
    assert [error.path for _, error in made.losses] == ['spec.tags["karpenter.sh/nodepool"]']


def test_c_16_volume_sizes_are_whole() -> None:
    disks = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "1500M", "iops": 3000}}]
    assert class_of(blockDeviceMappings=disks)["blockDeviceMappings"] == [
        {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "2Gi", "iops": 3000}}
    ]


ACCELERATOR = "karpenter.k8s.aws/instance-accelerator-"
BY_ACCELERATOR = pytest.mark.parametrize(
    ("asked", "lost"),
    [
        pytest.param(requirement(f"{ACCELERATOR}name", "In", "t4"), True, id="a-gpu-by-name"),
        pytest.param(requirement(f"{ACCELERATOR}manufacturer", "In", "nvidia", "aws"), True, id="either"),
        pytest.param(requirement(f"{ACCELERATOR}manufacturer", "NotIn", "aws"), True, id="all-but"),
        pytest.param(requirement(f"{ACCELERATOR}count", "DoesNotExist"), True, id="none"),
        pytest.param(requirement(f"{ACCELERATOR}manufacturer", "In", "aws"), False, id="aws-makes-no-gpu"),
        pytest.param(requirement(f"{ACCELERATOR}name", "In", "inferentia2"), False, id="inferentia"),
        pytest.param(requirement(f"{ACCELERATOR}memory", "Gt", "9"), False, id="memory-is-of-both"),
        pytest.param(requirement("karpenter.k8s.aws/instance-gpu-name", "In", "t4"), False, id="gpu-label"),
    ],
)


@BY_ACCELERATOR
def test_labels_of_accelerators_that_a_gpu_bears_in_one_generation_are_listed(
    asked: dict[str, Any], lost: bool
) -> None:
    listed = losses(provisioner(requirements=[asked]))
    assert listed == (["spec.requirements[0].key"] if lost else [])
    back = convert_to_v1alpha5([node_pool(template={"requirements": [asked]})]).losses
    paths = [error.path for _, error in back if "accelerators" in error.message]
    assert paths == (["spec.template.spec.requirements[0].key"] if lost else [])


def test_c_17_a_taint_without_effect_is_listed() -> None:
    assert losses(provisioner(taints=[{"key": "a", "effect": ""}])) == ["spec.taints[0].effect"]


def test_c_18_workloads_are_mentioned() -> None:
    (subject, note), *_ = convert_to_v1([provisioner()], CONTEXT).notes
    assert subject == "Provisioner/default"
    for word in ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool", "karpenter.sh/do-not-disrupt"):
        assert word in note


def test_c_8_the_reference_says_group_kind_and_name() -> None:
    spec = pool_of(providerRef={"name": "other", "kind": "Ignored", "apiVersion": "x/v1"})

    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "other"}
    assert spec["template"]["spec"]["nodeClassRef"] == reference


def test_c_19_running_nodes_are_not_converted() -> None:
    _, (subject, note), _ = convert_to_v1([provisioner()], CONTEXT).notes

    assert subject == "Provisioner/default"
    assert "running nodes are not converted" in note
    assert [manifest["kind"] for manifest in convert_to_v1([provisioner()], CONTEXT).manifests] == [
        "NodePool"
    ]


def test_c_20_v1beta1_is_not_served_and_what_upstream_noted_of_it_is_kept() -> None:
    beta = node_pool() | {"apiVersion": "karpenter.sh/v1beta1"}
    (fault,) = validate(beta)
    assert "karpenter.sh/v1beta1 NodePool" in str(fault)
    assert "convert it to v1 with `nodeless convert`" in str(fault)
    assert convert_to_v1alpha5([beta]).manifests == []

    notes = {
        "compatibility.karpenter.sh/v1beta1-kubelet-conversion": "{}",
        "compatibility.karpenter.sh/v1beta1-nodeclass-reference": "{}",
        "karpenter.sh/stored-version-migrated": "true",
    }
    migrated = node_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]})
    migrated["metadata"]["annotations"] = notes
    (made,) = convert_to_v1alpha5([migrated]).manifests
    assert made["metadata"]["annotations"] == notes
    assert made["spec"]["consolidation"] == {"enabled": True}


WORDS = some.text(some.sampled_from("abcxyz"), min_size=1, max_size=5)
KEYS = WORDS.map(lambda word: f"example.com/{word}")
AMOUNTS = some.dictionaries(
    some.sampled_from(["cpu", "memory"]), some.sampled_from(["1", "500m", "2Gi", 4]), max_size=2
)
TAINTS = some.lists(
    some.builds(
        lambda key, value, effect: {"key": key, "value": value, "effect": effect},
        KEYS,
        WORDS,
        some.sampled_from(["NoSchedule", "NoExecute"]),
    ),
    max_size=3,
    unique_by=lambda taint: (taint["key"], taint["effect"]),
)
REQUIREMENTS = some.lists(
    some.builds(lambda key, values: requirement(key, "In", *values), KEYS, some.lists(WORDS, min_size=1))
    | some.builds(lambda key: requirement(key, "Exists"), KEYS)
    | some.builds(
        lambda bound: requirement("karpenter.k8s.aws/instance-cpu", "Gt", str(bound)), some.integers(0, 99)
    )
    | some.just(requirement("kubernetes.io/arch", "In", "arm64"))
    | some.just(requirement("karpenter.sh/capacity-type", "In", "spot", "on-demand")),
    max_size=4,
)
ENDS = some.sampled_from(
    [
        {"ttlSecondsAfterEmpty": None},
        {"ttlSecondsAfterEmpty": 0},
        {"ttlSecondsAfterEmpty": 45},
        {"ttlSecondsAfterEmpty": None, "consolidation": {"enabled": True}},
        {"consolidation": {"enabled": False}},
    ]
)
SPECS = some.fixed_dictionaries(
    {},
    optional={
        "labels": some.dictionaries(KEYS, WORDS, max_size=3),
        "annotations": some.dictionaries(KEYS, WORDS, max_size=3),
        "taints": TAINTS,
        "requirements": REQUIREMENTS,
        "limits": AMOUNTS.map(lambda resources: {"resources": resources}),
        "weight": some.integers(1, 100),
        "ttlSecondsUntilExpired": some.integers(0, 10**6),
        "kubeletConfiguration": some.fixed_dictionaries(
            {}, optional={"maxPods": some.integers(1, 100), "kubeReserved": AMOUNTS}
        ),
    },
)


@UNHURRIED
@given(SPECS, ENDS)
def test_both_generations_of_one_pool_mean_the_same(spec: dict[str, Any], ends: dict[str, Any]) -> None:
    former = provisioner(**(spec | ends))
    made = converted(node_template(), former)

    old, _ = read_pool(former)
    old_class = read_node_class(node_template())
    new, _ = read_pool(made["NodePool/default"])
    new_class = read_node_class(made["EC2NodeClass/default"])

    assert nameless(new) == nameless(old)
    assert kubelet_of(new, new_class) == kubelet_of(old, old_class)
    assert same_machines(new_class) == same_machines(old_class)


@UNHURRIED
@given(SPECS, ENDS)
def test_the_way_back_leads_to_the_same_pool(spec: dict[str, Any], ends: dict[str, Any]) -> None:
    former = provisioner(**(spec | ends))
    back = convert_to_v1alpha5(converted(node_template(), former).values())
    (pool,) = (manifest for manifest in back.manifests if manifest["kind"] == "Provisioner")
    (template,) = (manifest for manifest in back.manifests if manifest["kind"] == "AWSNodeTemplate")

    assert back.losses == []
    assert read_pool(pool)[0] == read_pool(former)[0]
    assert same_machines(read_node_class(template)) == same_machines(read_node_class(node_template()))


def test_what_v1alpha5_cannot_say_is_listed() -> None:
    pool = node_pool(
        template={
            "requirements": [requirement("a", "Gte", "3") | {"minValues": 2}],
            "terminationGracePeriod": "1h",
        },
        disruption={"consolidateAfter": "5m", "budgets": [{"nodes": "1"}]},
    )
    node_class = ec2_node_class(role="nodes", instanceProfile=None, instanceStorePolicy="RAID0")

    made = convert_to_v1alpha5([pool, node_class])

    assert sorted(error.path for _, error in made.losses) == [
        "spec.amiSelectorTerms[0].alias",
        "spec.disruption.budgets[0]",
        "spec.disruption.consolidateAfter",
        "spec.instanceStorePolicy",
        "spec.role",
        "spec.template.spec.requirements[0].minValues",
        "spec.template.spec.terminationGracePeriod",
    ]
    assert made.manifests[1]["spec"]["requirements"][0] == requirement("a", "Gt", "2")


def test_the_way_back_adds_no_default_of_v1alpha5() -> None:
    """A pool of v1 that says nothing buys any type, spot or on-demand; its nodes answer over one hop."""
    given = [ec2_node_class(), node_pool(template={"requirements": []})]
    node_class, pool = convert_to_v1alpha5(given).manifests

    assert default(pool) == pool
    assert read_pool(pool)[0].requirements[INSTANCE_TYPE].operator() == "Exists"
    options = {"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpTokens": "required"}
    assert node_class["spec"]["metadataOptions"] == options | {"httpPutResponseHopLimit": 1}

    some = ec2_node_class(metadataOptions={"httpPutResponseHopLimit": 2})
    (node_class,) = convert_to_v1alpha5([some]).manifests
    assert node_class["spec"]["metadataOptions"] == options | {"httpPutResponseHopLimit": 2}
    for made in (pool, node_class):
        assert [fault for fault in validate(made) if not fault.warning] == []


def nameless(pool: Pool) -> Pool:
    """The pool without what has to differ: references, its own name, the kubelet's place."""
    own = ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass")
    return replace(
        pool,
        reference=Reference("Pool", pool.name),
        node_class=Reference("Class", pool.node_class.name),
        requirements=Requirements(each for each in pool.requirements.values() if each.key not in own),
        kubelet=Kubelet(),
    )


def same_machines(node_class: NodeClass) -> NodeClass:
    """Without what conversion has to write out: the default profile and the default metadata options."""
    return replace(
        node_class,
        reference=Reference("Class", node_class.reference.name),
        instance_profile=None,
        metadata_options=None,
        kubelet=None,
    )


@pytest.mark.parametrize("turned", [False, True], ids=["in this order", "in the other"])
def test_c_1_two_objects_that_would_get_one_name_are_listed_and_none_is_dropped_in_silence(
    turned: bool,
) -> None:
    """A template and a Provisioner with an inline provider may share a name; their classes cannot."""
    given = [node_template(instanceProfile="nodes"), inline(tags={"team": "a"})]

    made = convert_to_v1(reversed(given) if turned else given, CONTEXT)

    assert [manifest["kind"] for manifest in made.manifests] == ["EC2NodeClass", "NodePool"]
    ((subject, loss),) = made.losses
    assert subject == "Provisioner/default"
    assert str(loss) == (
        'metadata.name: "default" would name a second EC2NodeClass that differs from the first; '
        "hint: rename one of them"
    )


def test_an_object_that_is_given_twice_is_converted_once_and_two_of_one_name_are_a_loss() -> None:
    same, other = node_template(instanceProfile="nodes"), node_template(instanceProfile="others")

    assert [len(convert_to_v1(each, CONTEXT).manifests) for each in ([same, same], [same, other])] == [1, 1]
    assert convert_to_v1([same, same], CONTEXT).losses == []
    assert len(convert_to_v1([same, other], CONTEXT).losses) == 1
    back = convert_to_v1alpha5([node_pool(weight=1), node_pool(weight=2)])
    assert len(back.manifests) == 1
    assert [loss.path for _, loss in back.losses if "second Provisioner" in loss.message] == ["metadata.name"]
