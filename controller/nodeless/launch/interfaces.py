"""Network interfaces of a launch template, where one ordinary interface is not enough said. Pure.

Security groups stand on the interfaces then: EC2 refuses a template that names them in both places.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nodeless.model.hardware import ConnectionTracking, NetworkInterface
from nodeless.model.pools import EC2_NODE_CLASS, NodeClass

_ONE = (NetworkInterface(0, 0),)


def network_interfaces(
    node_class: NodeClass, groups: Sequence[str], *, ipv6: bool, efa: int = 0
) -> list[dict[str, Any]]:
    """`NetworkInterfaces` of the template; empty where EC2's default will do.

    Args:
        node_class: What the user wants of them.
        groups: Ids of the security groups.
        ipv6: Pods have IPv6 addresses.
        efa: EFA interfaces that the pods ask for; each is on a network card of its own.
    """
    public = (
        {} if node_class.public_address is None else {"AssociatePublicIpAddress": node_class.public_address}
    )
    addresses = _addresses(node_class, ipv6=ipv6)
    if not (public or addresses or node_class.network_interfaces or node_class.connection_tracking or efa):
        return []
    listed = node_class.network_interfaces or _ONE
    if efa and not node_class.network_interfaces:
        listed = tuple(NetworkInterface(card, 1 if card else 0) for card in range(efa))
    tracking = _tracking_member(node_class.connection_tracking)
    if len(listed) > 1:
        # EC2 refuses it beside more than one interface; the subnet decides then.
        public = {}
    ordinary = "efa" if efa and not node_class.network_interfaces else "interface"
    return [
        {
            "DeviceIndex": interface.device,
            "NetworkCardIndex": interface.card,
            "InterfaceType": "efa-only" if interface.efa_only else ordinary,
            "Groups": sorted(groups),
            "DeleteOnTermination": True,
            **(public if (interface.card, interface.device) == (0, 0) else {}),
            # EC2 refuses both for an interface that speaks EFA alone.
            **({} if interface.efa_only else {**tracking, **addresses}),
        }
        for interface in listed
    ]


def _addresses(node_class: NodeClass, *, ipv6: bool) -> dict[str, Any]:
    """What each interface has that has IP addresses; prefixes are of the family of pods' addresses."""
    of_ipv6 = ipv6 and node_class.reference.kind == EC2_NODE_CLASS
    addresses: dict[str, Any] = {"Ipv6AddressCount": 1, "PrimaryIpv6": True} if of_ipv6 else {}
    if node_class.ipv4_prefixes:
        addresses["Ipv6PrefixCount" if of_ipv6 else "Ipv4PrefixCount"] = node_class.ipv4_prefixes
    return addresses


def _tracking_member(wanted: ConnectionTracking | None) -> Mapping[str, Any]:
    if wanted is None:
        return {}
    timeouts = {
        "TcpEstablishedTimeout": wanted.tcp_established,
        "UdpStreamTimeout": wanted.udp_stream,
        "UdpTimeout": wanted.udp,
    }
    given = {name: seconds for name, seconds in timeouts.items() if seconds is not None}
    return {"ConnectionTrackingSpecification": given}
