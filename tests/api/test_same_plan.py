"""Both generations of the same pool lead to the same plan: converted, read, planned, compared."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as some

from localenv.aws.moto_internals import instance_type_records
from nodeless.api.conversion import convert_to_v1
from nodeless.api.reading import read_node_class, read_pool
from nodeless.api.validation import validate
from nodeless.cloudprovider.aws.instance_type_builder import Known, build
from nodeless.cloudprovider.aws.node_shape import shape_of
from nodeless.cloudprovider.aws.price_list import Prices
from nodeless.cloudprovider.aws.type_facts import read_type
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import EC2_NODE_CLASS_NAME, NODE_POOL, PROVISIONER_NAME
from nodeless.model.packing import PACKINGS
from nodeless.model.plan import Plan
from nodeless.model.pods import Pod
from nodeless.model.pools import NodeClass, Pool, kubelet_of
from nodeless.scheduling import Policy, solve
from tests.api.manifests import node_template, provisioner
from tests.api.test_conversion import CONTEXT, ENDS, SPECS
from tests.scheduling.factories import snapshot
from tests.scheduling.worlds import workloads

ZONES = frozenset({"z1", "z2"})
NAMES = (
    "c5.large",
    "c6g.2xlarge",
    "g4dn.xlarge",
    "m5.large",
    "m5.4xlarge",
    "m6g.large",
    "r5.xlarge",
    "t3.small",
)
OWN = {PROVISIONER_NAME, NODE_POOL, EC2_NODE_CLASS_NAME}
PRICES = Prices({name: 0.05 + 0.07 * position for position, name in enumerate(NAMES)})


@cache
def known() -> Known:
    records = instance_type_records("us-east-1", list(NAMES), [])
    facts = sorted((fact for record in records if (fact := read_type(record))), key=lambda fact: fact.name)
    return Known(tuple(facts), dict.fromkeys(NAMES, ZONES))


def types_for(pool: Pool, node_class: NodeClass) -> tuple[InstanceType, ...]:
    """The catalog as the pool's kubelet settings and disks make it."""
    shape = shape_of(node_class, kubelet_of(pool, node_class))
    return build(known(), shape, ZONES, PRICES, "us-east-1")


def plain(pods: list[Pod]) -> bool:
    """Whether none asks for a pool by name, whose label is another in each generation."""
    return PROVISIONER_NAME not in str(pods)


TEMPLATES = some.fixed_dictionaries(
    {},
    optional={
        "amiFamily": some.sampled_from(["AL2", "Bottlerocket"]),
        "blockDeviceMappings": some.sampled_from([2, 30, 200]).map(
            lambda size: [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": f"{size}Gi"}}]
        ),
    },
)


def planned(pools: list[tuple[Pool, NodeClass]], pods: list[Pod], policy: Policy) -> Plan:
    catalog = {pool.key: types_for(pool, node_class) for pool, node_class in pools}
    return solve(snapshot(pods, [pool for pool, _ in pools]), catalog, policy)


def without_names(plan: Plan) -> Any:
    """The plan as it reads when a pool is a pool, whatever its generation calls it."""
    return (
        [
            (
                node.pool.name,
                node.requests,
                node.pods,
                node.alternatives,
                {key: requirement for key, requirement in node.requirements.items() if key not in OWN},
            )
            for node in plan.new_nodes
        ],
        {pod: str(where) for pod, where in plan.placements.items()},
        [
            (refusal.pod, refusal.code, [(reason.pool.name, reason.code) for reason in refusal.reasons])
            for refusal in plan.refusals
        ],
        plan.lower_bound,
    )


@settings(deadline=None, max_examples=60)
@given(
    some.lists(some.tuples(SPECS, ENDS), min_size=1, max_size=2),
    TEMPLATES,
    workloads().filter(plain),
    some.sampled_from(PACKINGS),
)
def test_both_generations_of_the_same_pools_lead_to_the_same_plan(
    specs: list[tuple[dict[str, Any], dict[str, Any]]],
    template: dict[str, Any],
    pods: list[Pod],
    packing: str,
) -> None:
    former = [provisioner(**(spec | ends)) for spec, ends in specs]
    for number, each in enumerate(former):
        each["metadata"] = {"name": f"pool-{number}"}
    made = convert_to_v1([node_template(**template), *former], CONTEXT).manifests
    assert [str(fault) for each in made for fault in validate(each)] == []
    classes = {
        each["metadata"]["name"]: read_node_class(each) for each in made if each["kind"] == "EC2NodeClass"
    }
    new = [read_pool(each)[0] for each in made if each["kind"] == "NodePool"]
    old = [read_pool(each)[0] for each in former]

    policy = Policy(packing=packing, time_box=0)
    expected = planned([(pool, read_node_class(node_template(**template))) for pool in old], pods, policy)
    found = planned([(pool, classes[pool.node_class.name]) for pool in new], pods, policy)

    event("nodes are planned" if expected.new_nodes else "no node is planned")
    assert without_names(found) == without_names(expected)
