"""Which types can be what a node class wants of an instance. Pure.

A type that EC2 would refuse with these options is left out of the catalog, so that nothing is planned on it.
"""

from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.type_facts import (
    CLUSTER_PLACEMENT,
    ENCLAVES,
    NESTED_VIRTUALIZATION,
    TypeFacts,
)
from nodeless.model.hardware import CpuOptions

_NITRO = "nitro"


def compatible(facts: TypeFacts, shape: NodeShape) -> bool:
    """Whether an instance of the type can be made from the node class."""
    return (
        _runs(facts, shape)
        and _connects(facts, shape)
        and _computes(facts, shape.cpu_options)
        and (not shape.enclaves or ENCLAVES in facts.features)
        and (not _is_clustered(shape) or CLUSTER_PLACEMENT in facts.features)
    )


def _is_clustered(shape: NodeShape) -> bool:
    """Whether its instances stand close to each other, which burstable types never do."""
    return shape.placement_group is not None and shape.placement_group.strategy == "cluster"


def _runs(facts: TypeFacts, shape: NodeShape) -> bool:
    """Amazon Linux 2023 asks for ARM 8.2, which the first Graviton lacks."""
    return not (shape.ami_family == "AL2023" and facts.name.startswith("a1."))


def _connects(facts: TypeFacts, shape: NodeShape) -> bool:
    """Enough network cards and interfaces, EFA where it is listed; tracking of connections is Nitro's."""
    listed = shape.network_interfaces
    efa_only = sum(interface.efa_only for interface in listed)
    if any(interface.card >= facts.network_cards for interface in listed) or efa_only > facts.efa_interfaces:
        return False
    if sum(interface.card == 0 for interface in listed) > facts.interfaces:
        return False
    return shape.connection_tracking is None or facts.hypervisor in (_NITRO, "")


def _computes(facts: TypeFacts, options: CpuOptions | None) -> bool:
    """The cores and threads that are asked for; EC2 refuses to hear of them for bare metal."""
    if options is None:
        return True
    if options.cores is not None and options.cores not in facts.cores:
        return False
    threads = options.threads_per_core
    if threads is not None and not facts.hypervisor:
        return False
    if threads is not None and threads != facts.threads_per_core and not (threads == 1 and facts.cores):
        return False
    return not options.nested_virtualization or NESTED_VIRTUALIZATION in facts.features


def vcpus(facts: TypeFacts, options: CpuOptions | None) -> int:
    """The vCPUs that the system sees: fewer where cores or threads are switched off."""
    if options is None or (options.cores is None and options.threads_per_core is None):
        return facts.cpus
    cores = options.cores or facts.cpus // facts.threads_per_core
    return cores * (options.threads_per_core or facts.threads_per_core)
