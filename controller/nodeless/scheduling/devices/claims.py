"""Claims on devices, looked up for one solve: they become requests and terms like any other.

`settle` turns the claims of a pod into amounts of resources, and into alternatives for its node: the
instance types whose devices meet the claims, and nodes that publish such devices. A claim that is allocated
names its nodes. `in_snapshot` and `in_catalog` add the devices to what nodes and types have; all that comes
after it deals with requests, capacity and requirements alone.

What nodes and types have is `places`. Where a device plugin announces devices instead of their driver, no
claim is met, nor on new nodes of that pool. Devices of no single node (`common_devices`) are given to claims
as they are looked up.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter

from nodeless.model.devices import EFA_DRIVER, ClaimedDevices
from nodeless.model.efa import launched_with_efa
from nodeless.model.identity import Identity
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.labels import HOSTNAME, INSTANCE_TYPE, NODE_POOL, PROVISIONER_NAME
from nodeless.model.nodes import Node
from nodeless.model.plan import RefusalCode
from nodeless.model.pods import (
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PodResourceClaim,
    PodShape,
)
from nodeless.model.requirements import IN, NOT_IN, Conflict, Requirement
from nodeless.model.resources import add
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.devices.allocation import ClaimError, how_often, is_free
from nodeless.scheduling.devices.groups import DevicePlace, counts_claims, counts_devices, driver_of
from nodeless.scheduling.devices.matching import Taken, common_room, free_for, has_enough, parts_of, taken
from nodeless.scheduling.devices.places import ALL_POOLS, POOL_LABELS, DevicePlaces, Pools, pool_of
from nodeless.scheduling.devices.prices import TypePrices
from nodeless.scheduling.devices.refusing import COMMON_TAKEN, NO_DEVICE, why_no_device, why_not_served
from nodeless.scheduling.devices.selections import Chosen, Selection, combinations
from nodeless.scheduling.devices.served_resources import Announced, Asked, ServedResources
from nodeless.scheduling.pods.constraints import UnschedulableReason, together

#: Prefix of the label that stands for a claim which several pods share.
_SHARED = "resource-claim.nodeless.dev/"


@dataclass(slots=True)
class _Option:
    """Types and nodes of which a pod would take the same numbers of devices."""

    numbers: Taken
    rank: int
    """Which of the combinations of alternatives it is; the first is asked for first."""
    chosen: Chosen
    types: dict[Pools, set[str]] = field(default_factory=dict)
    """Names of types, in some pools alone or in all."""
    price: float = float("inf")
    """The least price of a type that the pod may get; infinite: it gets none."""
    sizes: set[tuple[str, int]] = field(default_factory=set)
    """By resource of capacity and counters, what one device takes of it."""
    nodes: set[str] = field(default_factory=set)
    free: bool = False
    """Whether one of the nodes has the devices for it now."""


class Devices:
    """The devices of one cluster and its catalog, looked up for one solve."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, unusable: Collection[str] = ()) -> None:
        """`unusable`: keys of pools that can make no node now."""
        self._snapshot = snapshot
        self._catalog = catalog
        self._unusable = unusable
        self._selections: dict[str, dict[Selection, None]] = {}
        """By resource of whole devices, who looks for them."""
        self._often: dict[str, tuple[tuple[ClaimedDevices, ...], Chosen]] = {}
        """By resource that says how often a claim fits, the claim."""
        self._sizes: dict[str, set[int]] = {}
        """By resource of capacity and counters, what claims take of it."""
        self._places = DevicePlaces(snapshot, catalog)
        self._served = ServedResources(snapshot, catalog, self._places)
        self._amounts_of_places: dict[DevicePlace, dict[str, int]] = {}
        self._settled: dict[object, PodShape | UnschedulableReason] = {}
        self._shapes: dict[PodShape, PodShape] = {}
        self._somewhere: dict[Selection, bool] = {}
        self._planned: Set[str] = frozenset()
        self._users: Counter[str] = Counter()
        """By ResourceClaim that pods name themselves, how many of them are planned."""
        self._leaders: dict[str, str] = {}
        """By such a claim, the pod that brings its devices."""
        self._parts: dict[ClaimedDevices, tuple[ClaimedDevices, ClaimedDevices] | None] = {}

    def concern(self, shape: PodShape) -> bool:
        """Whether a pod claims devices, or requests an extended resource that devices serve."""
        return bool(shape.resource_claims or self._served.requested(shape))

    def expect(self, pods: Mapping[str, Pod]) -> None:
        """Which pods are planned, by key: of those that share a claim one brings its devices."""
        self._planned = pods.keys()
        self._users = Counter(claim for pod in pods.values() for claim in _named_claims(pod))

    def settle(self, pod: Pod) -> Pod | UnschedulableReason:
        """The pod with its claims as requests and terms, or why it cannot be planned."""
        claimed: list[ClaimedDevices] = []
        allocated: list[tuple[NodeSelectorTerm, ...]] = []
        shared: list[str] = []
        for named in pod.shape.resource_claims:
            found = self._look_up(pod, named)
            if isinstance(found, UnschedulableReason):
                return found
            if isinstance(found, tuple):
                allocated.append(found)
                continue
            leader, key = self._shared_by(pod, named)
            shared += [key] if key else []
            if not key or leader == pod.key:
                own, reaching = self._with_common(found)
                if isinstance(reaching, UnschedulableReason):
                    return reaching
                claimed += [own] if own is not None else []
                allocated += [tuple(map(self._by_host_name, reaching))] if reaching is not None else []
        asked, given = self._extended(pod)
        for found_for_them in given.values():
            if isinstance(found_for_them, UnschedulableReason):
                return found_for_them
            allocated.append(found_for_them)
        question = (Identity(pod.shape, *claimed), tuple(allocated), tuple(shared), asked, tuple(given))
        if question not in self._settled:
            # Claims that are made for pods are equal, and each is an object of its own.
            alike = (Identity(pod.shape), tuple(claimed), *question[1:])
            if alike not in self._settled:
                plain = _without_requests(pod.shape, given)
                self._settled[alike] = self._settled_shape(plain, claimed, asked, allocated, shared)
            self._settled[question] = self._settled[alike]
        shape = self._settled[question]
        if isinstance(shape, UnschedulableReason):
            return shape
        for claim in _named_claims(pod):
            self._leaders.setdefault(claim, pod.key)
        labels = {**pod.labels, **dict.fromkeys(shared, "true")} if shared else pod.labels
        return _with(pod, shape, labels)

    def _settled_shape(
        self,
        shape: PodShape,
        claimed: Sequence[ClaimedDevices],
        asked: Sequence[Asked],
        allocated: Sequence[tuple[NodeSelectorTerm, ...]],
        shared: Sequence[str],
    ) -> PodShape | UnschedulableReason:
        """A shape with what is claimed as requests and terms, beside the pods that share its claims."""
        beside = (PodAffinityTerm(HOSTNAME, LabelSelector(((key, "true"),))) for key in shared)
        plain = replace(shape, resource_claims=(), affinity=(*shape.affinity, *beside))
        chosen = self._choose(plain, tuple(claimed), shape.resource_claims) if claimed else ((), ())
        if isinstance(chosen, UnschedulableReason):
            return chosen
        numbers, terms = dict(chosen[0]), [chosen[1]]
        if asked:
            bare = _without_requests(plain, [resource for resource, _ in asked])
            for resource, devices in asked:
                served = self._choose_served(bare, resource, devices, dict(plain.requests)[resource])
                if isinstance(served, UnschedulableReason):
                    return served
                numbers = add(numbers, dict(served[0]))
                terms.append(served[1])
        places = together([*terms, *allocated])
        if isinstance(places, Conflict):
            return UnschedulableReason(
                RefusalCode.NO_DEVICE_FITS,
                f"no node has all devices that the pod claims or requests: {places}",
            )
        requests = {**dict(plain.requests), **numbers}
        settled = replace(plain, requests=tuple(sorted(requests.items())), device_terms=places)
        return self._shapes.setdefault(settled, settled)

    def in_catalog(self) -> Catalog:
        """The catalog with the devices of its types; pools that share their types still do."""
        if not self._asks:
            return self._catalog
        known: dict[tuple[Identity, str], tuple[InstanceType, ...]] = {}
        result = {}
        for pool, types in self._catalog.items():
            said, plugged = any(each.devices for each in types), self._served.plugged_in(pool)
            same = (Identity(types), pool if said or plugged else "")
            if same not in known:
                known[same] = tuple(self._with_devices(pool, each) for each in types)
            result[pool] = known[same]
        return result

    def in_snapshot(self) -> Snapshot:
        """The snapshot with the devices of its nodes, and of claims that know what they are to be."""
        seen = self._snapshot
        if not self._asks:
            return seen
        nodes, claims = {}, {}
        for name, node in seen.nodes.items():
            amounts = self._served.at_node(node, self._amounts(self._places.by_node[name]))
            if amounts:
                nodes[name] = replace(node, allocatable={**node.allocatable, **amounts})
        for name, claim in seen.claims.items():
            if not claim.allocatable:
                continue  # It may become any of several types.
            pool, kind, joined = str(claim.pool), claim.instance_type, seen.node_of(claim)
            place = self._places.of_type(pool, kind)
            known = self._places.speaking.get(joined.name, set()) if joined is not None else set()
            if EFA_DRIVER in place.drivers and not launched_with_efa(claim, seen.node_classes):
                known = known | {EFA_DRIVER}
            if not known.isdisjoint(place.drivers):
                place = place.of({*place.drivers} - known)
            amounts = self._served.at_type(pool, kind, place, claim.allocatable, self._amounts(place))
            if amounts:
                claims[name] = replace(claim, allocatable={**claim.allocatable, **amounts})
        return replace(seen, nodes=seen.nodes.update(nodes), claims=seen.claims.update(claims))

    @property
    def beyond(self) -> Mapping[str, Collection[str]]:
        """By extended resource, the types that have more of it by devices than EC2 says."""
        return self._served.beyond

    def _extended(
        self, pod: Pod
    ) -> tuple[tuple[Asked, ...], dict[str, tuple[NodeSelectorTerm, ...] | UnschedulableReason]]:
        """The extended resources that a node is to have for a pod, and where those are that it has by now."""
        asked = self._served.asked_by(pod)
        if not asked:
            return (), {}
        given: dict[str, tuple[NodeSelectorTerm, ...] | UnschedulableReason] = {}
        claim, classes = self._served.claim_of(pod), self._snapshot.device_classes
        if claim is not None and claim.allocation is not None:
            terms = tuple(map(self._by_host_name, claim.allocation.terms))
            named = {one.device_class for request in claim.devices.requests for one in request.alternatives}
            given = {each: terms for each, _ in asked if self._served.class_of(each).name in named}
        for resource, devices in asked if self._places.common.place else ():
            if resource in given or self._served.announced(resource) or self._is_met_by_nodes(devices):
                continue
            reaching = self._places.common.allocate(devices, classes)
            if reaching is not None:
                given[resource] = tuple(map(self._by_host_name, reaching))
            elif self._places.common.would_do(devices, classes):
                given[resource] = UnschedulableReason(RefusalCode.NO_DEVICE_FITS, COMMON_TAKEN)
        return tuple(each for each in asked if each[0] not in given), given

    def _choose_served(
        self, shape: PodShape, resource: str, claimed: ClaimedDevices, amount: int
    ) -> tuple[Taken, tuple[NodeSelectorTerm, ...]] | UnschedulableReason:
        """What a pod takes of devices where these serve an extended resource, and where the resource is.

        Args:
            shape: The pod without requests for such resources.
            resource: The resource.
            claimed: What is claimed for it where devices serve it.
            amount: How much of it the pod requests.
        """
        ways = self._ways((claimed,))
        options = self._options(shape, (claimed,), ways)
        announced = self._served.announced(resource)
        if not options and not announced:
            places = [*self._places.types_by_place, *self._places.nodes_by_place]
            name = self._served.class_of(resource).name
            return UnschedulableReason(
                RefusalCode.NO_DEVICE_FITS, why_not_served(resource, name, claimed, ways[0], places)
            )
        best = _best(options) if options else _Option((), 0, ways[0])
        if options:
            self._ask((claimed,), best)
        self._served.note(resource, best.numbers, amount)
        return best.numbers, self._terms_of_served(best, announced)

    def _terms_of_served(self, best: _Option, announced: Announced) -> tuple[NodeSelectorTerm, ...]:
        """Where an extended resource is: on types and nodes with devices for it, or that announce it."""
        types = {pools: set(names) for pools, names in best.types.items()}
        everywhere = types.get(ALL_POOLS, set()) | announced.types.get(ALL_POOLS, frozenset())
        for pools, announcing in announced.types.items():
            more = announcing if pools == ALL_POOLS else announcing - everywhere
            if more:
                types.setdefault(pools, set()).update(more)
        hosts = best.nodes | announced.nodes
        nodes, terms = self._snapshot.nodes, []
        with_devices = {name for names in best.types.values() for name in names}
        unlike = {name for name in self._places.published if nodes[name].instance_type in with_devices}
        unlike = (unlike | announced.lacking) - hosts
        for pools, names in sorted(types.items(), key=lambda entry: sorted(entry[0])):
            kind = [Requirement.of(INSTANCE_TYPE, IN, sorted(names))]
            if left_out := sorted(name for name in unlike if nodes[name].instance_type in names):
                kind.append(Requirement.of(HOSTNAME, NOT_IN, list(map(self._host_name, left_out))))
            terms += [NodeSelectorTerm((*kind, *some)) for some in _pool_requirements(pools)]
        others = sorted(name for name in hosts if not _covers(types, nodes[name]))
        if others:
            terms.append(
                NodeSelectorTerm((Requirement.of(HOSTNAME, IN, list(map(self._host_name, others))),))
            )
        return tuple(terms)

    def _look_up(
        self, pod: Pod, named: PodResourceClaim
    ) -> ClaimedDevices | tuple[NodeSelectorTerm, ...] | UnschedulableReason:
        """What a claim asks for, or where it is allocated."""
        name = named.claim or dict(pod.generated_claims).get(named.name, "")
        claim = self._snapshot.resource_claims.get(f"{pod.namespace}/{name}") if name else None
        goes = claim is not None and claim.deletion_timestamp is not None
        if claim is not None and goes and named.claim:
            return _not_found(f"ResourceClaim {claim.key} is being deleted")
        # A pod that moves has its devices allocated anew, as one has whose claim is made anew; but not while
        # others keep the claim.
        moving = bool(pod.node_name) and not (named.claim and f"{pod.namespace}/{name}" in self._kept)
        if claim is not None and claim.allocation is not None and not (goes or moving):
            return tuple(map(self._by_host_name, claim.allocation.terms))
        if claim is not None:
            devices = claim.devices
        elif named.claim:
            return _not_found(f"ResourceClaim {pod.namespace}/{named.claim} does not exist")
        elif named.template:
            template = self._snapshot.resource_claim_templates.get(f"{pod.namespace}/{named.template}")
            if template is None:
                return _not_found(f"ResourceClaimTemplate {pod.namespace}/{named.template} does not exist")
            devices = template.devices
        else:
            return _not_found(f"spec.resourceClaims has no {named.name} with a ResourceClaim or its template")
        return self._unplannable(named, devices) or devices

    def _with_common(
        self, claimed: ClaimedDevices
    ) -> tuple[ClaimedDevices | None, tuple[NodeSelectorTerm, ...] | UnschedulableReason | None]:
        """What a claim is left to get of its node, and the nodes that reach what it gets of no single one."""
        classes = self._snapshot.device_classes
        reaching = self._places.common.allocate(claimed, classes)
        if reaching is not None:
            return None, reaching
        if not self._places.common.place:
            return claimed, None
        if claimed not in self._parts:
            self._parts[claimed] = self._places.common.part(claimed, classes, self._is_met_by_nodes)
        parts = self._parts[claimed]
        if parts is None:
            return claimed, None
        common, own = parts
        reaching = self._places.common.allocate(common, classes)
        if reaching is None:
            return None, UnschedulableReason(RefusalCode.NO_DEVICE_FITS, COMMON_TAKEN)
        return own, reaching

    def _ways(self, claimed: Sequence[ClaimedDevices]) -> list[Chosen]:
        return combinations(claimed, self._snapshot.device_classes, self._is_somewhere)

    def _is_somewhere(self, selection: Selection) -> bool:
        """Whether some node, or one that a type would become, has what an alternative asks for by itself."""
        if selection not in self._somewhere:
            places = chain(self._places.types_by_place, self._places.nodes_by_place)
            self._somewhere[selection] = any(has_enough(place, selection) for place in places)
        return self._somewhere[selection]

    def _is_met_by_nodes(self, claimed: ClaimedDevices) -> bool:
        ways = self._ways((claimed,))
        places = (*self._places.types_by_place, *self._places.nodes_by_place)
        return any(_has(place, claimed, chosen) for place in places for chosen in ways)

    def _by_host_name(self, term: NodeSelectorTerm) -> NodeSelectorTerm:
        """A term that names nodes, as kube-scheduler writes it for devices in a node, by their host names."""
        hosts = [
            Requirement(HOSTNAME, one.complement, frozenset(map(self._host_name, one.values)))
            for one in term.fields
        ]
        return NodeSelectorTerm((*term.expressions, *hosts))

    def _host_name(self, node_name: str) -> str:
        node = self._snapshot.nodes.get(node_name)
        return node.labels.get(HOSTNAME, node_name) if node is not None else node_name

    def _unplannable(self, named: PodResourceClaim, devices: ClaimedDevices) -> UnschedulableReason | None:
        for request in devices.requests:
            if not request.alternatives:
                return _not_planned(named, f"request {request.name} is of a kind that is not known")
            for alternative in request.alternatives:
                if alternative.device_class not in self._snapshot.device_classes:
                    return UnschedulableReason(
                        RefusalCode.DEVICE_CLASS_NOT_FOUND,
                        f"DeviceClass {alternative.device_class}, which request {request.name} of {named} "
                        "names, does not exist; hint: install the driver of the devices, which brings it",
                    )
        for constraint in devices.constraints:
            if not constraint.match_attribute and not constraint.distinct_attribute:
                return _not_planned(
                    named, "it has a constraint other than matchAttribute and distinctAttribute"
                )
        return None

    @cached_property
    def _prices(self) -> TypePrices:
        return TypePrices(self._snapshot, self._catalog, self._unusable)

    @cached_property
    def _kept(self) -> frozenset[str]:
        """The ResourceClaims that pods name which run and stay: these stay allocated."""
        return frozenset(
            claim
            for key, pod in self._snapshot.pods.items()
            if pod.shape.resource_claims and pod.node_name and not (pod.terminal or key in self._planned)
            for claim in _named_claims(pod)
        )

    def _shared_by(self, pod: Pod, named: PodResourceClaim) -> tuple[str, str]:
        """The pod that brings the devices of a claim that several share, and the label of all of these."""
        claim = f"{pod.namespace}/{named.claim}"
        if not named.claim or self._users[claim] < 2:
            return "", ""
        digest = hashlib.sha256(claim.encode()).hexdigest()[:16]
        return self._leaders.get(claim, pod.key), _SHARED + digest

    def _choose(
        self, shape: PodShape, claimed: tuple[ClaimedDevices, ...], named: Sequence[PodResourceClaim]
    ) -> tuple[Taken, tuple[NodeSelectorTerm, ...]] | UnschedulableReason:
        if not any(one.requests for one in claimed):
            return (), ()
        ways = self._ways(claimed)
        options = self._options(shape, claimed, ways)
        if not options:
            places = [*self._places.types_by_place, *self._places.nodes_by_place]
            classes = self._snapshot.device_classes
            if all(self._places.common.would_do(one, classes) for one in claimed):
                return UnschedulableReason(RefusalCode.NO_DEVICE_FITS, COMMON_TAKEN)
            places = [*places, self._places.common.place] if self._places.common.place else places
            return UnschedulableReason(
                RefusalCode.NO_DEVICE_FITS, why_no_device(claimed, named, ways, places) or NO_DEVICE
            )
        best = _best(options)
        self._ask(claimed, best)
        return best.numbers, self._terms(best)

    def _ask(self, claimed: tuple[ClaimedDevices, ...], best: _Option) -> None:
        """Have the resources that a claim takes counted on nodes and types."""
        for resource, _ in best.numbers:
            if counts_devices(resource):
                asking = (selection for selections in best.chosen for selection in selections)
                self._selections.setdefault(resource, {}).update(dict.fromkeys(asking))
            elif counts_claims(resource):
                self._often[resource] = (claimed, best.chosen)
        for resource, size in best.sizes:
            self._sizes.setdefault(resource, set()).add(size)
        self._amounts_of_places.clear()

    @property
    def _asks(self) -> bool:
        return bool(self._selections or self._often or self._sizes or self._served.asks)

    def _options(
        self,
        shape: PodShape,
        claimed: tuple[ClaimedDevices, ...],
        ways: Sequence[Chosen],
    ) -> list[_Option]:
        prices = self._prices.for_pod(shape)
        options: dict[tuple[Taken, int], _Option] = {}

        def option(place: DevicePlace) -> _Option | None:
            for rank, chosen in enumerate(ways):
                try:
                    taking = taken(place, claimed, chosen)
                except ClaimError:
                    return None
                if taking is not None:
                    numbers = taking.numbers
                    found = options.setdefault((numbers, rank), _Option(numbers, rank, chosen))
                    found.sizes |= taking.sizes
                    return found
            return None

        for place, sold in self._places.types_by_place.items():
            found = option(place)
            if found is not None:
                for pools, types in sold.items():
                    found.types.setdefault(pools, set()).update(each.name for each in types)
                    found.price = min([found.price, *(prices.least(pools, each) for each in types)])
        for place, names in self._places.nodes_by_place.items():
            found = option(place)
            if found is not None:
                found.nodes.update(names)
                found.free = found.free or is_free(place, claimed, found.chosen)
        return list(options.values())

    def _terms(self, best: _Option) -> tuple[NodeSelectorTerm, ...]:
        """Where a pod may be: on types and nodes of its option."""
        nodes = [self._snapshot.nodes[name] for name in self._places.published]
        unpooled = self._served.unpooled
        terms = []
        for pools, names in sorted(best.types.items(), key=lambda entry: sorted(entry[0])):
            kind = [Requirement.of(INSTANCE_TYPE, IN, sorted(names))]
            alike = [node for node in nodes if node.instance_type in names]
            unlike = {node.name for node in alike if node.name not in best.nodes}
            unlike |= {name for name in unpooled if self._snapshot.nodes[name].instance_type in names}
            if unlike:
                hosts = list(map(self._host_name, sorted(unlike)))
                kind.append(Requirement.of(HOSTNAME, NOT_IN, hosts))
            kind += self._pools_with({driver_of(resource) for resource, _ in best.numbers})
            terms += [NodeSelectorTerm((*kind, *some)) for some in _pool_requirements(pools)]
        others = sorted(
            node.name for node in nodes if node.name in best.nodes and not _covers(best.types, node)
        )
        if others:
            hosts = list(map(self._host_name, others))
            terms.append(NodeSelectorTerm((Requirement.of(HOSTNAME, IN, hosts),)))
        return tuple(terms)

    def _pools_with(self, drivers: set[str]) -> list[Requirement]:
        """What keeps pods from pools whose nodes announce the devices by a device plugin."""
        plugged: dict[str, set[str]] = {}
        for node in self._snapshot.nodes.values():
            label = next((key for key in (NODE_POOL, PROVISIONER_NAME) if key in node.labels), None)
            if label is not None and any(self._places.is_plugged(node, driver) for driver in drivers):
                plugged.setdefault(label, set()).add(node.labels[label])
        return [Requirement.of(label, NOT_IN, sorted(names)) for label, names in sorted(plugged.items())]

    def _amounts(self, place: DevicePlace) -> dict[str, int]:
        """The free devices of a place, by resource, for those who ask in this solve."""
        if place not in self._amounts_of_places:
            self._amounts_of_places[place] = self._counted(place) if place else {}
        return self._amounts_of_places[place]

    def _counted(self, place: DevicePlace) -> dict[str, int]:
        amounts = {
            resource: free_for(place, driver_of(resource), list(selections))
            for resource, selections in self._selections.items()
        }
        amounts |= {resource: how_often(place, *claim) for resource, claim in self._often.items()}
        amounts |= {
            resource: common_room(parts_of(place, resource), sizes) for resource, sizes in self._sizes.items()
        }
        return {resource: amount for resource, amount in amounts.items() if amount > 0}

    def _with_devices(self, pool: str, instance_type: InstanceType) -> InstanceType:
        place, name = self._places.of_type(pool, instance_type.name), instance_type.name
        amounts = self._served.at_type(pool, name, place, instance_type.capacity, self._amounts(place))
        if not amounts:
            return instance_type
        return replace(instance_type, capacity={**instance_type.capacity, **amounts})


def _best(options: Sequence[_Option]) -> _Option:
    """What is to be had at all, of that what is asked for first, then what costs least."""
    return min(
        options,
        key=lambda one: (one.price == float("inf") and not one.free, one.rank, one.price, one.numbers),
    )


def _has(place: DevicePlace, claimed: ClaimedDevices, chosen: Chosen) -> bool:
    try:
        return taken(place, (claimed,), chosen) is not None
    except ClaimError:
        return False


def _named_claims(pod: Pod) -> frozenset[str]:
    """The ResourceClaims that a pod names itself."""
    return frozenset(f"{pod.namespace}/{named.claim}" for named in pod.shape.resource_claims if named.claim)


_MEMBERS = tuple(member.name for member in fields(Pod))
_VALUES = attrgetter(*_MEMBERS)
_SHAPE, _LABELS = _MEMBERS.index("shape"), _MEMBERS.index("labels")


def _with(pod: Pod, shape: PodShape, labels: Mapping[str, str]) -> Pod:
    """A pod of another shape and labels: `replace` takes twice as long, and pods come by the thousand."""
    values = list(_VALUES(pod))
    values[_SHAPE], values[_LABELS] = shape, labels
    return Pod(*values)


def _pool_requirements(pools: Pools) -> list[tuple[Requirement, ...]]:
    """What keeps pods in some pools, as alternatives."""
    if not pools:
        return [()]
    alternatives: list[tuple[Requirement, ...]] = []
    for label, kind in POOL_LABELS:
        names = sorted(pool.partition("/")[2] for pool in pools if pool.partition("/")[0] == kind)
        if names:
            alternatives.append((Requirement.of(label, IN, names),))
    return alternatives


def _covers(types: Mapping[Pools, Set[str]], node: Node) -> bool:
    """Whether a node is of some type, in one of its pools."""
    return any(
        node.instance_type in names and (not pools or pool_of(node) in pools)
        for pools, names in types.items()
    )


def _without_requests(shape: PodShape, resources: Collection[str]) -> PodShape:
    """A shape that does not request some resources."""
    if not resources:
        return shape
    return replace(shape, requests=tuple(each for each in shape.requests if each[0] not in resources))


def _not_found(message: str) -> UnschedulableReason:
    return UnschedulableReason(
        RefusalCode.RESOURCE_CLAIM_NOT_FOUND, f"{message}; hint: create it, or correct the pod's template"
    )


def _not_planned(named: PodResourceClaim, why: str) -> UnschedulableReason:
    return UnschedulableReason(
        RefusalCode.RESOURCE_CLAIMS_NOT_PLANNED,
        f"claim {named} is not planned for: {why}; the pod waits for a node that has such devices",
    )
