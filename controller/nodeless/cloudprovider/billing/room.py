"""Room that is really there: types that have next to nothing left for pods are not bought by chance.

Karpenter's formula reserves memory for the kubelet and the container runtime and keeps 100 MiB from
eviction; what it leaves is what the kubelet reports, and what we predict. It leaves out what every node
runs besides and what asks for no memory: the VPC CNI (`aws-node`) and kube-proxy of EKS, whose add-ons
request CPU alone. So a t3a.nano has 74 MiB left by the formula, and nothing in truth: pods there are evicted
for memory pressure as soon as the node has joined (aws/karpenter-provider-aws#5463).

The rule is one of choice: allocatable stays as it is. A type on which less is left than the terms ask for
is not for sale, unless the pool or a pod names it, its family or its size, or unless the pool has
nothing else.
"""

from dataclasses import replace

from nodeless.cloudprovider.billing.terms import MIB, BillTerms
from nodeless.launch.families import CUSTOM, family_of
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import INSTANCE_FAMILY, INSTANCE_SIZE, INSTANCE_TYPE
from nodeless.model.pools import NodeClass
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.resources import MEMORY
from nodeless.model.snapshot import Snapshot

#: Bytes that aws-node takes on Linux without asking for them: 50 MiB for each of its two containers, as
#: its maintainers proposed to request (aws/amazon-vpc-cni-k8s#2760); nodes show 39 to 77 MiB for the first
#: of them (#2439). kube-proxy comes on top of that: the rest must hold it, too.
_DAEMONS_OF_LINUX = 100 * MIB
_NAMING = (INSTANCE_TYPE, INSTANCE_FAMILY, INSTANCE_SIZE)


def unrequested_memory(node_class: NodeClass) -> int:
    """Bytes that system daemons take without a request, by family of images.

    Windows has no such pods: its CNI and proxy are services of the host, in the reserve of the formula
    (1,465 MiB). Of a custom image nothing is known.
    """
    if node_class.ami_family == CUSTOM or family_of(node_class.ami_family).windows_build:
        return 0
    return _DAEMONS_OF_LINUX


def named_by_pods(snapshot: Snapshot) -> frozenset[str]:
    """Instance types, families and sizes that pods ask for by name."""
    named: set[str] = set()
    for pod in snapshot.pods.values():
        shape = pod.shape
        for key, value in shape.node_selector:
            if key in _NAMING:
                named.add(value)
        for term in shape.required_terms:
            for expression in term.expressions:
                named |= _values(expression)
    return frozenset(named)


def _values(requirement: Requirement | None) -> frozenset[str]:
    if requirement is None or requirement.complement or requirement.key not in _NAMING:
        return frozenset()
    return requirement.values


def with_room(
    types: tuple[InstanceType, ...],
    requirements: Requirements,
    node_class: NodeClass,
    named: frozenset[str],
    terms: BillTerms,
) -> tuple[InstanceType, ...]:
    """The same types; offerings of those with too little room are not for sale."""
    least = terms.least_memory
    if not least:
        return types
    least += unrequested_memory(node_class)
    known = named.union(*(_values(requirements.get(key)) for key in _NAMING))
    small = {
        each.name
        for each in types
        if each.allocatable.get(MEMORY, 0) < least and not known & _names(each.name)
    }
    if not small or not _sells(types, small):
        return types
    return tuple(_withheld(each) if each.name in small else each for each in types)


def _names(instance_type: str) -> frozenset[str]:
    family, _, size = instance_type.partition(".")
    return frozenset((instance_type, family, size))


def _sells(types: tuple[InstanceType, ...], without: set[str]) -> bool:
    return any(offering.for_sale for each in types if each.name not in without for offering in each.offerings)


def _withheld(instance_type: InstanceType) -> InstanceType:
    offerings = tuple(replace(offering, available=False) for offering in instance_type.offerings)
    return replace(instance_type, offerings=offerings)
