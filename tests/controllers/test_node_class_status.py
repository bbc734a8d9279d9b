"""What a node class's status says of faults that no selector tells, and when its images are of no use."""

import asyncio
from dataclasses import replace

import pytest

from nodeless.cloudprovider import VALIDATION, CloudError, NodeClassUnresolved
from nodeless.cloudprovider.pool_catalogs import assert_bootable
from nodeless.controllers.nodeclass.checks import NodeClassChecks
from nodeless.controllers.nodepool.object_status import (
    pool_conditions,
    resolved_status,
    unresolved_status,
    validation,
)
from nodeless.kube.cluster import Cluster
from nodeless.launch.resolved import Image, ResolvedNodeClass, Subnet
from nodeless.model.conditions import Condition
from nodeless.model.placement import CapacityReservation
from nodeless.model.pools import NodeClass, Reference
from nodeless.model.snapshot import Snapshot
from tests.disruption.world import a_node_pool
from tests.factories import NOW, a_pool

EC2 = NodeClass(Reference("EC2NodeClass", "default"))
PROVISIONERS = NodeClass(a_pool().node_class)


def standing(status):
    return {each["type"]: (each["status"], each.get("reason")) for each in status["conditions"]}


@pytest.mark.parametrize(
    ("field", "condition"), [("userData", "ValidationSucceeded"), ("tags", "ValidationSucceeded")]
)
def test_a_fault_of_the_object_itself_fails_its_validation_and_nothing_else(field, condition):
    error = NodeClassUnresolved(EC2.reference, field, "is wrong", "correct it")
    found = standing(unresolved_status(EC2, error, NOW))
    assert found[condition] == ("False", "Invalid")
    assert found["Ready"][0] == "False"
    assert found["SubnetsReady"][0] == found["AMIsReady"][0] == "True"


def test_aws_4_4_the_status_names_zones_groups_and_images_that_their_owners_advise_against():
    resolved = ResolvedNodeClass(
        (Subnet("subnet-1", "us-east-1a", 9, zone_id="use1-az1"), Subnet("subnet-2", "us-east-1b", 20)),
        ("sg-1",),
        (Image("ami-1", name="one", deprecated=True), Image("ami-2", name="two")),
        "nodes",
        {"sg-1": "nodes"},
    )
    status = resolved_status(EC2, resolved, NOW)
    assert status["subnets"] == [
        {"id": "subnet-2", "zone": "us-east-1b"},
        {"id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1"},
    ]
    assert status["securityGroups"] == [{"id": "sg-1", "name": "nodes"}]
    assert [each.get("deprecated") for each in status["amis"]] == [True, None]
    assert set(resolved_status(PROVISIONERS, resolved, NOW)) == {"subnets", "securityGroups", "conditions"}


@pytest.mark.parametrize("interruptible", [True, False])
def test_the_status_says_of_a_reservation_whether_it_may_be_taken_back(interruptible):
    held = CapacityReservation("cr-1", "m5.large", "us-east-1a", 1, interruptible=interruptible)
    resolved = ResolvedNodeClass((), (), (), "nodes", reservations=(held,))
    (shown,) = resolved_status(EC2, resolved, NOW)["capacityReservations"]
    assert shown["interruptible"] is interruptible


@pytest.mark.parametrize(
    ("node_class", "reason"),
    [
        (None, "NodeClassNotFound"),
        (replace(EC2, deletion_timestamp=NOW), "NodeClassTerminating"),
        (EC2, "NodeClassNotReady"),
    ],
)
def test_a_pool_says_why_its_class_cannot_be_used_by_karpenters_reasons(node_class, reason):
    conditions = pool_conditions(a_node_pool(), node_class, "it cannot be used", NOW)["conditions"]
    (shown,) = [each for each in conditions if each["type"] == "NodeClassReady"]
    assert (shown["status"], shown["reason"]) == ("False", reason)


CHECKING = ("Unknown", "Validating")


@pytest.mark.parametrize(
    ("former", "generation", "problem", "passed", "told"),
    [
        (None, 1, None, True, ("True", "ValidationSucceeded")),
        (None, 1, None, False, CHECKING),
        ("True", 1, None, False, ("True", "ValidationSucceeded")),
        ("True", 2, None, False, CHECKING),
        ("False", 1, None, False, CHECKING),
        ("True", 1, CloudError("who knows"), False, ("Unknown", "DryRunUnanswered")),
        (
            "True",
            1,
            CloudError("slow", "", "RequestLimitExceeded"),
            False,
            ("Unknown", "RequestLimitExceeded"),
        ),
    ],
)
def test_what_is_not_known_yet_of_a_classs_launches_is_neither_good_nor_bad(
    former, generation, problem, passed, told
):
    conditions = (Condition("ValidationSucceeded", former, observed_generation=1),) if former else ()
    node_class = replace(EC2, conditions=conditions, generation=generation)
    checked = validation(node_class, problem, passed=passed)
    status = resolved_status(node_class, ResolvedNodeClass((), (), (), "nodes"), NOW, checked)
    found = standing({"conditions": status.get("conditions", [])})
    assert found["ValidationSucceeded"] == told
    assert found["Ready"][0] == told[0]


def test_a_refused_launch_is_told_with_its_own_reason():
    error = NodeClassUnresolved(EC2.reference, VALIDATION, "not you", "ask", "CreateFleetAuthCheckFailed")
    found = standing(unresolved_status(EC2, error, NOW))
    assert found["ValidationSucceeded"] == ("False", "CreateFleetAuthCheckFailed")
    assert found["SubnetsReady"][0] == "True"


def test_each_condition_says_its_own_fault_once_in_karpenters_words_with_what_to_do():
    faults = NodeClassUnresolved.of(
        [
            NodeClassUnresolved(
                EC2.reference, "subnetSelectorTerms", "no subnets match a=b", "tag them", "SubnetsNotFound"
            ),
            NodeClassUnresolved(
                EC2.reference, "securityGroupSelectorTerms", "no groups", "tag", "SecurityGroupsNotFound"
            ),
        ]
    )
    status = unresolved_status(EC2, faults, NOW)
    messages = {each["type"]: each.get("message") for each in status["conditions"]}
    assert messages["SubnetsReady"] == (
        "SubnetSelector did not match any Subnets: no subnets match a=b; hint: tag them"
    )
    assert messages["SecurityGroupsReady"] == (
        "SecurityGroupSelector did not match any SecurityGroups: no groups; hint: tag"
    )
    found = standing(status)
    assert found["SubnetsReady"] == ("False", "SubnetsNotFound")
    assert found["AMIsReady"][0] == "True"
    assert found["ValidationSucceeded"] == ("False", "DependenciesNotReady")
    assert str(faults).count(str(EC2.reference)) == 1


def test_a_class_is_not_validated_while_aws_gives_no_answer():
    found = standing(unresolved_status(EC2, CloudError("silence"), NOW))
    assert found["ValidationSucceeded"] == ("Unknown", "DependenciesNotReady")
    assert found["SubnetsReady"] == ("Unknown", "CloudUnavailable")


def test_a_service_network_that_eks_does_not_tell_fails_the_validation_as_with_karpenter():
    error = NodeClassUnresolved(EC2.reference, "amiFamily", "no CIDR", "", "ClusterCIDRResolutionFailed")
    found = standing(unresolved_status(EC2, error, NOW))
    assert found["ValidationSucceeded"] == ("False", "ClusterCIDRResolutionFailed")
    assert found["AMIsReady"][0] == "True"


@pytest.mark.parametrize(("node_class", "there"), [(EC2, True), (PROVISIONERS, False)])
def test_an_ec2nodeclass_bears_every_condition_of_karpenters_type(node_class, there):
    status = resolved_status(node_class, ResolvedNodeClass((), (), (), "nodes"), NOW)
    assert ({"PlacementGroupReady", "CapacityReservationsReady"} <= standing(status).keys()) is there


class Cloud:
    """Has images for some pools."""

    def __init__(self, *good):
        self.good = good

    async def catalog(self, pool, node_class):
        if pool.name not in self.good:
            raise NodeClassUnresolved(node_class.reference, "amiSelector", f"none for {pool.name}")
        return ()


@pytest.mark.parametrize(
    ("pools", "good", "bad"),
    [((), (), False), (("a",), (), True), (("a", "b"), ("b",), False), (("a", "b"), (), True)],
)
def test_images_are_of_no_use_only_where_no_pool_can_start_them(pools, good, bad):
    known = {}
    for name in pools:
        pool = replace(a_pool(), reference=Reference("Provisioner", name))
        known[pool.key] = pool
    snapshot = replace(Snapshot(), pools=known)
    checked = assert_bootable(Cloud(*good), snapshot, PROVISIONERS)
    if bad:
        with pytest.raises(NodeClassUnresolved, match="none for"):
            asyncio.run(checked)
    else:
        asyncio.run(checked)


def test_a_check_that_dies_of_a_defect_says_so_where_its_answer_would_stand_and_leaves_the_class_alone():
    class Broken:
        async def validate(self, pools, node_class):
            raise KeyError("zone")

    cluster, again = Cluster(), []
    cluster.snapshot = replace(Snapshot(), pools={a_pool().key: a_pool()})
    checks = NodeClassChecks(Broken(), cluster, lambda key, seconds: again.append((key, seconds)))

    async def looked_at():
        checks.begin(PROVISIONERS, None)
        await checks.wait_for_end()
        checks.begin(PROVISIONERS, None)
        await checks.wait_for_end()

    asyncio.run(looked_at())
    told = validation(PROVISIONERS, checks.problem(PROVISIONERS), passed=False)
    assert (told.status, told.reason) == ("Unknown", "CheckFailed")
    assert "KeyError: 'zone'" in told.message and "report this as a bug" in told.message
    assert again == [(PROVISIONERS.key, 0.0)]
