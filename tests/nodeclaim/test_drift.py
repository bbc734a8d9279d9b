"""Given a node made some time ago, is it still what its pool and node class would make?"""

from dataclasses import replace

import pytest

from nodeless.model.instructions import AnnotateClaim, UpdateClaimStatus, UpdateNode
from nodeless.model.labels import ARCH, INSTANCE_TYPE, VOLUNTARY_DISRUPTION
from nodeless.model.nodes import DRIFTED, Condition
from nodeless.model.pools import NodeClass, Pool, Reference, SelectorTerm
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.taints import Taint
from nodeless.nodeclaim.drift import DriftView, Selected, step_drift
from nodeless.state.static_fields import digests
from tests.factories import NOW, a_node, an_initialized_claim, an_instance
from tests.launch.types import a_type

CLASS = NodeClass(Reference("EC2NodeClass", "default"), ami_family="AL2023", user_data="echo")
POOL = Pool(
    reference=Reference("NodePool", "default"),
    node_class=CLASS.reference,
    labels={"team": "web"},
    requirements=Requirements([Requirement.of(ARCH, "In", ["amd64", "arm64"])]),
    ttl_seconds_until_expired=3600,
)
ANY_TYPE = Requirements()
SELECTED = Selected(frozenset({"subnet-1"}), frozenset({"sg-1"}), (("ami-1", ANY_TYPE), ("ami-2", ANY_TYPE)))
INSTANCE = an_instance(image_id="ami-1", subnet_id="subnet-1", security_groups=("sg-1",))


def a_claim_of_then(**fields):
    claim = an_initialized_claim(
        pool=POOL.reference,
        node_class=CLASS.reference,
        labels={ARCH: "amd64", INSTANCE_TYPE: "m5.large", "team": "web"},
        annotations=digests(POOL, CLASS),
    )
    return replace(claim, **fields)


def view(**fields):
    usual = {
        "claim": a_claim_of_then(),
        "pool": POOL,
        "node_class": CLASS,
        "selected": SELECTED,
        "instance": INSTANCE,
        "types": {"m5.large": a_type("m5.large", on_demand=1)},
    }
    return DriftView(**{**usual, **fields})


def reason(now=NOW, **fields):
    found = [
        condition.reason
        for instruction in step_drift(view(**fields), now).instructions
        if isinstance(instruction, UpdateClaimStatus)
        for condition in instruction.conditions
        if condition.status == "True"
    ]
    return found[0] if found else None


def test_a_node_that_is_as_it_would_be_made_today_has_not_drifted():
    assert step_drift(view(), NOW).instructions == ()


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"team": "api"}},
        {"annotations": {"note": "x"}},
        {"taints": (Taint("dedicated", "NoSchedule"),)},
        {"startup_taints": (Taint("cilium", "NoExecute"),)},
        {"node_class": Reference("EC2NodeClass", "other")},
        {"ttl_seconds_until_expired": 7200},
        {"termination_grace_period": 60},
    ],
)
def test_dn_15_a_static_field_that_changes_makes_drift(change):
    assert reason(pool=replace(POOL, **change)) == "NodePoolDrifted"


@pytest.mark.parametrize(
    "change", [{"weight": 5}, {"limits": {"cpu": 1}}, {"consolidate_after": 5}, {"generation": 9}]
)
def test_other_fields_make_none(change):
    assert reason(pool=replace(POOL, **change)) is None


def test_dn_15_a_narrowed_requirement_makes_drift_and_a_widened_one_does_not():
    narrowed = Requirements([Requirement.of(ARCH, "In", ["arm64"])])
    assert reason(pool=replace(POOL, requirements=narrowed)) == "RequirementsDrifted"
    widened = Requirements([Requirement.of(ARCH, "Exists", [])])
    assert reason(pool=replace(POOL, requirements=widened)) is None


def test_a_new_requirement_on_a_label_that_the_node_lacks_makes_drift():
    wanted = Requirements([Requirement.of("example.com/tier", "In", ["gold"])])
    assert reason(pool=replace(POOL, requirements=wanted)) == "RequirementsDrifted"


def test_dn_16_without_digest_or_with_one_of_another_version_nothing_is_concluded():
    other = replace(POOL, labels={"team": "api"})
    for notes in ({}, {**digests(POOL, CLASS), "karpenter.sh/nodepool-hash-version": "v3"}):
        claim = a_claim_of_then(annotations=notes)
        assert reason(pool=other, claim=claim) is None
        (stamp,) = step_drift(view(pool=other, claim=claim), NOW).instructions
        assert isinstance(stamp, AnnotateClaim)
        assert stamp.annotations == digests(other, CLASS)


def test_settings_of_the_node_class_count_and_its_selectors_do_not():
    assert reason(node_class=replace(CLASS, user_data="echo 2")) == "NodeClassDrift"
    assert reason(node_class=replace(CLASS, subnets=(SelectorTerm(ids=("subnet-9",)),))) is None


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ({"image_id": "ami-0"}, "AMIDrift"),
        ({"subnet_id": "subnet-0"}, "SubnetDrift"),
        ({"security_groups": ("sg-1", "sg-2")}, "SecurityGroupDrift"),
    ],
)
def test_what_the_cloud_selects_now_is_compared_with_the_instance(instance, expected):
    assert reason(instance=replace(INSTANCE, **instance)) == expected


def test_any_image_will_do_while_the_instance_types_are_not_known():
    assert reason(instance=replace(INSTANCE, image_id="ami-2"), types=None) is None


def test_aws_9_1_the_image_is_that_of_the_nodes_type():
    """`ami-1` is selected still, for other types: nodes of this one boot from `ami-2` now."""
    special = Requirements([Requirement.of(INSTANCE_TYPE, "In", ["m5.large"])])
    selected = replace(SELECTED, images=(("ami-2", special), ("ami-1", ANY_TYPE)))
    assert reason(selected=selected) == "AMIDrift"
    assert reason(selected=selected, instance=replace(INSTANCE, image_id="ami-2")) is None
    assert reason(selected=selected, types=None) is None
    others = replace(SELECTED, images=(("ami-1", special), ("ami-2", ANY_TYPE)))
    assert reason(selected=others) is None


def test_aws_9_2_of_several_differences_the_first_of_karpenters_order_is_the_reason():
    """Class, image, security groups, subnet: each is mended in turn, and the next one shows."""
    other = replace(INSTANCE, image_id="ami-0", subnet_id="subnet-0", security_groups=("sg-1", "sg-2"))
    changed = replace(CLASS, user_data="echo 2")
    assert reason(node_class=changed, instance=other) == "NodeClassDrift"
    assert reason(instance=other) == "AMIDrift"
    other = replace(other, image_id=INSTANCE.image_id)
    assert reason(instance=other) == "SecurityGroupDrift"
    other = replace(other, security_groups=INSTANCE.security_groups)
    assert reason(instance=other) == "SubnetDrift"


def test_nothing_is_concluded_from_a_cloud_that_gives_no_answer():
    assert reason(instance=replace(INSTANCE, image_id="ami-0"), selected=None) is None
    assert reason(selected=Selected(frozenset(), frozenset(), ())) is None


def test_aws_16_10_what_a_launch_template_of_the_users_decides_is_no_drift():
    """Of such a class only subnets are looked up: image and groups are the template's."""
    subnets_alone = Selected(frozenset({"subnet-1"}), frozenset(), ())
    other = replace(INSTANCE, image_id="ami-0", security_groups=("sg-9",))
    assert reason(selected=subnets_alone, instance=other) is None


def test_aws_16_10_an_instance_that_is_gone_has_not_drifted():
    assert reason(instance=None) is None


def test_a_type_that_cannot_be_had_any_more_counts_after_an_hour():
    gone = {"m6.large": a_type("m6.large", on_demand=1)}
    assert reason(types=gone, now=NOW + 3599) is None
    assert reason(types=gone, now=NOW + 3601) == "InstanceTypeNotFound"


def test_the_condition_goes_back_when_the_pool_does():
    condition = Condition(DRIFTED, "True", "NodePoolDrifted", "", NOW)
    claim = a_claim_of_then()
    marked = replace(claim, conditions=(*claim.conditions, condition))
    (update,) = step_drift(view(claim=marked), NOW + 1).instructions
    assert [(condition.type, condition.status) for condition in update.conditions] == [(DRIFTED, "False")]


def test_a_condition_that_stands_is_not_written_again():
    changed = replace(POOL, labels={"team": "api"})
    (update,) = step_drift(view(pool=changed), NOW).instructions
    claim = a_claim_of_then()
    marked = replace(claim, conditions=(*claim.conditions, *update.conditions))
    assert step_drift(view(pool=changed, claim=marked), NOW + 300).instructions == ()


FIRST_POOL = replace(POOL, reference=Reference("Provisioner", "default"))
GENERATION_ONE = {
    "claim": a_claim_of_then(pool=FIRST_POOL.reference, annotations=digests(FIRST_POOL, CLASS)),
    "pool": FIRST_POOL,
    "instance": replace(INSTANCE, image_id="ami-old"),
}


def marks(node, **fields):
    instructions = step_drift(view(**{**GENERATION_ONE, "node": node, **fields}), NOW).instructions
    return [
        instruction.annotations[VOLUNTARY_DISRUPTION]
        for instruction in instructions
        if isinstance(instruction, UpdateNode)
    ]


def marked(value):
    return a_node(annotations={VOLUNTARY_DISRUPTION: value})


def test_nd_09_a_provisioners_drifted_node_is_marked_while_the_gate_is_open():
    assert marks(a_node(), marks_provisioners=True) == ["drifted"]
    assert marks(marked("drifted"), marks_provisioners=True) == []
    assert marks(a_node(), marks_provisioners=False) == []


def test_nd_09_the_mark_goes_with_the_gate_and_with_the_drift():
    assert marks(marked("drifted"), marks_provisioners=False) == [None]
    assert marks(marked("drifted"), marks_provisioners=True, instance=INSTANCE) == [None]


def test_nd_09_the_mark_of_another_reason_and_nodes_of_a_node_pool_are_left_alone():
    assert marks(marked("expired"), marks_provisioners=True) == []
    assert marks(a_node(), marks_provisioners=True, claim=a_claim_of_then(), pool=POOL) == []
