"""What, besides the type, decides what a node is: its node class, its kubelet, the settings. Pure."""

from dataclasses import dataclass

from nodeless.launch.families import Family, family_of
from nodeless.model.hardware import ConnectionTracking, CpuOptions, NetworkInterface
from nodeless.model.placement import PlacementGroup
from nodeless.model.pools import EC2_NODE_CLASS, BlockDevice, Kubelet, NodeClass


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Equal shapes share one catalog."""

    ami_family: str
    kubelet: Kubelet = Kubelet()
    block_devices: tuple[BlockDevice, ...] = ()
    vm_memory_overhead_percent: float = 0.075
    eni_limited_pod_density: bool = True
    pod_eni: bool = False
    """Whether pods may have network interfaces, and so security groups, of their own."""
    instance_store_raid: bool = False
    """The disks inside the host hold pods' files, where there are such disks."""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    connection_tracking: ConnectionTracking | None = None
    cpu_options: CpuOptions | None = None
    enclaves: bool = False
    reserved_interfaces: int = 0
    """Network interfaces that are kept from the VPC CNI."""
    prefix_delegation: bool = False
    """The VPC CNI takes prefixes of addresses instead of single ones."""
    placement_group: PlacementGroup | None = None
    gpus_are_accelerators: bool = True
    """GPUs bear the labels of accelerators, too; not so in generation v1."""

    @property
    def family(self) -> Family:
        return family_of(self.ami_family)


def shape_of(
    node_class: NodeClass,
    kubelet: Kubelet,
    *,
    vm_memory_overhead_percent: float = 0.075,
    eni_limited_pod_density: bool = True,
    pod_eni: bool = False,
    reserved_interfaces: int = 0,
    prefix_delegation: bool = False,
    placement_group: PlacementGroup | None = None,
) -> NodeShape:
    """The shape of a node class's nodes; the keywords are settings, and what its placement group is."""
    return NodeShape(
        node_class.ami_family,
        kubelet,
        node_class.block_devices,
        vm_memory_overhead_percent,
        eni_limited_pod_density,
        pod_eni,
        node_class.instance_store_raid,
        node_class.network_interfaces,
        node_class.connection_tracking,
        node_class.cpu_options,
        node_class.enclaves,
        reserved_interfaces,
        prefix_delegation,
        placement_group,
        gpus_are_accelerators=node_class.reference.kind != EC2_NODE_CLASS,
    )
