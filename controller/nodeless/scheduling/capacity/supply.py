"""What there is only so much of, whatever it costs: slots of reservations, and addresses of subnets.

A node whose pool may use reserved capacity is decided about when it is opened: it holds a slot of one
reservation, or it is none of the reserved ones. So no two nodes of a plan count on the same slot, and
what reservations do not hold is bought otherwise in the same pass.

A node takes an address of its subnet, and each of its pods another. While every zone has enough for
one node for each pod, nobody needs to count. Where a zone may run short, every node of the pool is
bound to a subnet when it is opened, and takes no more pods than that has addresses for. Pods on
nodes that exist, and daemons, are not counted: a node holds addresses ahead of its pods, and most
daemons use the node's own. Where pods have IPv6 addresses, or get theirs elsewhere, nodes alone are counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nodeless.model.labels import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    RESERVATION_LABELS,
    RESERVED,
    ZONE,
)
from nodeless.model.nodes import NodeClaim
from nodeless.model.requirements import DOES_NOT_EXIST, IN, NOT_IN, Requirement
from nodeless.model.subnets import SubnetRoom
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.pods.classes import UNBOUNDED, PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements, node_requirements_of

_ENDLESS = int(UNBOUNDED)


@dataclass(frozen=True, slots=True)
class ReservationOption:
    """One way to get a node: what it adds to what is asked of the node, and what it takes."""

    adds: tuple[Requirement, ...] = ()
    reservation: str = ""
    subnet: str = ""


#: The way where nothing is scarce.
FREE = ReservationOption()
_NOT_RESERVED = (
    Requirement.of(CAPACITY_TYPE, NOT_IN, (RESERVED,)),
    *(Requirement.of(key, DOES_NOT_EXIST) for key in RESERVATION_LABELS),
)


class ReservationManager:
    """What is left of scarce things while a solve goes on."""

    def __init__(
        self,
        tables: Iterable[PoolTable],
        subnets: Mapping[str, Sequence[SubnetRoom]],
        claims: Iterable[NodeClaim],
        pods: int,
    ) -> None:
        """Count what is there.

        Args:
            tables: The pools that may make nodes.
            subnets: Of each pool, by its key; a pool that is missing has addresses without end.
            claims: Those of the cluster; one that has not been launched may still hold a slot.
            pods: How many pods wait at most.
        """
        self._slots: dict[str, int] = {}
        self._reserved: dict[str, tuple[ReservationOption, ...]] = {}
        self._scarce: dict[str, tuple[SubnetRoom, ...]] = {}
        self._left: dict[str, int] = {}
        #: Ids of the subnets of which pods take no address.
        self._nodes_alone: set[str] = set()
        self._ways: dict[InFlightNodeClaim, ReservationOption] = {}
        self._bound: dict[tuple[NodeRequirements, tuple[Requirement, ...]], NodeRequirements | None] = {}
        for table in tables:
            key = table.pool.key
            self._reserved[key] = self._reservations(table)
            rooms = tuple(sorted(subnets.get(key, ())))
            if rooms and not _ample(rooms, pods):
                self._scarce[key] = rooms
                self._left.update((room.id, max(room.free_addresses, 0)) for room in rooms)
                self._nodes_alone.update(room.id for room in rooms if not room.pods_take_addresses)
        for claim in claims if self._slots else ():
            self._hold(claim)

    def plain(self, table: PoolTable) -> bool:
        """Whether nothing that the pool uses is scarce."""
        key = table.pool.key
        return not self._reserved.get(key) and key not in self._scarce

    def reserves(self, table: PoolTable) -> bool:
        """Whether a slot of a reservation is left for the pool."""
        return any(self._slots[way.reservation] > 0 for way in self._reserved.get(table.pool.key, ()))

    def ways(self, table: PoolTable) -> Sequence[ReservationOption]:
        """The ways that are left to get a node of a pool."""
        key = table.pool.key
        reserved = self._reserved.get(key, ())
        ways = [way for way in reserved if self._slots[way.reservation] > 0]
        ways.append(ReservationOption(_NOT_RESERVED) if reserved else FREE)
        if key not in self._scarce:
            return ways
        return [
            ReservationOption((*way.adds, Requirement.of(ZONE, IN, (room.zone,))), way.reservation, room.id)
            for room in self._roomiest(key)
            for way in ways
        ]

    def bind(self, node_requirements: NodeRequirements, way: ReservationOption) -> NodeRequirements | None:
        """The requirements of a node that is got this way; None where they contradict."""
        if not way.adds:
            return node_requirements
        memo = (node_requirements, way.adds)
        if memo not in self._bound:
            bound = node_requirements_of((*node_requirements.expressions, *way.adds))
            self._bound[memo] = bound if isinstance(bound, NodeRequirements) else None
        return self._bound[memo]

    def room(self, way: ReservationOption) -> int:
        """How many pods may run on a fresh node that is got this way."""
        return self._pods_of(way.subnet, nodes=1)

    def opened(self, node: InFlightNodeClaim, way: ReservationOption) -> None:
        """A node is got this way."""
        if way is FREE:
            return
        self._ways[node] = way
        if way.reservation:
            self._slots[way.reservation] -= 1
        if way.subnet:
            self._left[way.subnet] -= 1

    @property
    def is_unchanged(self) -> bool:
        """Whether no open node holds anything scarce."""
        return not self._ways

    def way_of(self, node: InFlightNodeClaim) -> ReservationOption:
        """How an open node is got."""
        return self._ways.get(node, FREE)

    def takes(self, node: InFlightNodeClaim) -> int:
        """How many pods more there are addresses for on an open node."""
        return self._pods_of(self.way_of(node).subnet, nodes=0)

    def _pods_of(self, subnet: str, *, nodes: int) -> int:
        """How many pods a subnet has addresses for beside so many nodes more."""
        if not subnet or (subnet in self._nodes_alone and self._left[subnet] >= nodes):
            return _ENDLESS
        return self._left[subnet] - nodes

    def filled(self, node: InFlightNodeClaim, pods: int) -> None:
        """So many pods were put on an open node."""
        subnet = self.way_of(node).subnet
        if subnet and subnet not in self._nodes_alone:
            self._left[subnet] -= pods

    def fixed(self, node: InFlightNodeClaim) -> bool:
        """Whether pods must stay on an open node because of what it holds."""
        way = self.way_of(node)
        return bool(way.reservation or way.subnet)

    def shortage(self, table: PoolTable, pods: PodClass, node_requirements: NodeRequirements) -> str | None:
        """What a pool has too little of for another such pod; None where that is not the reason."""
        if self.plain(table) or any(
            (bound := self.bind(node_requirements, way)) is not None and table.fresh(pods, bound) is not None
            for way in self.ways(table)
        ):
            return None
        if table.pool.key in self._scarce and not self._roomiest(table.pool.key):
            rooms = self._scarce[table.pool.key]
            zones = ", ".join(sorted({room.zone for room in rooms}))
            needed = (
                "for a node and a pod" if any(room.pods_take_addresses for room in rooms) else "for a node"
            )
            return f"no subnet in {zones} has free IP addresses {needed}; hint: add subnets to the node class"
        if self._reserved[table.pool.key] and not any(self._slots.values()):
            names = ", ".join(way.reservation for way in self._reserved[table.pool.key])
            return f"reservations {names} are used up; hint: allow on-demand or spot beside reserved"
        return "what is left of reservations and of subnets' IP addresses is not where the pod can run"

    def _roomiest(self, pool: str) -> list[SubnetRoom]:
        """In each zone the subnet with the most addresses left, as launches take it, if it has any."""
        best: dict[str, SubnetRoom] = {}
        for room in sorted(self._scarce[pool], key=lambda room: (-self._left[room.id], room.id)):
            best.setdefault(room.zone, room)
        return [
            room for _, room in sorted(best.items()) if self._left[room.id] >= 1 + room.pods_take_addresses
        ]

    def _reservations(self, table: PoolTable) -> tuple[ReservationOption, ...]:
        ways = {}
        for instance_type in table.table.types if table.table.offers.reserves else ():
            for offering in instance_type.offerings:
                if offering.reservation and offering.for_sale:
                    self._slots[offering.reservation] = offering.remaining
                    way = ReservationOption(
                        (
                            Requirement.of(CAPACITY_TYPE, IN, (offering.capacity_type,)),
                            *(
                                Requirement.of(key, IN, (value,))
                                for key, value in offering.reservation_labels.items()
                            ),
                            Requirement.of(INSTANCE_TYPE, IN, (instance_type.name,)),
                            Requirement.of(ZONE, IN, (offering.zone,)),
                        ),
                        offering.reservation,
                    )
                    # At equal prices the first is taken.
                    ways[offering.reservation] = offering.reservation_rank, way
        return tuple(
            way for _, way in sorted(ways.values(), key=lambda entry: (entry[0], entry[1].reservation))
        )

    def _hold(self, claim: NodeClaim) -> None:
        """Take off the slot that a claim counts on and that the cloud does not know of yet."""
        wanted = claim.requirements.get(CAPACITY_RESERVATION_ID)
        if claim.provider_id or claim.deletion_timestamp is not None or wanted is None or wanted.complement:
            return
        for reservation in sorted(wanted.values & self._slots.keys())[:1]:
            self._slots[reservation] -= 1


def _ample(rooms: Sequence[SubnetRoom], pods: int) -> bool:
    """Whether each zone has room for all pods, even on a node for each."""
    most: dict[str, int] = {}
    for room in rooms:
        most[room.zone] = max(room.free_addresses, most.get(room.zone, 0))
    of_each = 1 + any(room.pods_take_addresses for room in rooms)
    return all(free >= of_each * pods for free in most.values())
