"""Changes to a situation before it is planned: `scale=deploy/web:20`, `without-type=m5.*` and the like.

A change is one word and its argument (`add=FILE` reads files: the commands make it). Every change selects
something that is there: a name that matches nothing is a slip of the finger, and is told with what there is.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from nodeless.explain.decisions import Situation
from nodeless.explain.words import count, listed
from nodeless.model import events
from nodeless.model.bill import PriceSource
from nodeless.model.identity import Identity
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import ON_DEMAND, SPOT, ZONE
from nodeless.model.packing import packing_defect
from nodeless.model.pods import Pod
from nodeless.model.pools import Pool
from nodeless.model.quantity import QuantityError
from nodeless.model.requirements import IN, Requirement, Requirements
from nodeless.model.resources import parse_resources
from nodeless.model.snapshot import Snapshot
from nodeless.model.subnets import SubnetRoom
from nodeless.model.workloads import Workload, with_kind_called, workload_of, workloads_called
from nodeless.scheduling import PriceAdjustment
from nodeless.state import apply

#: More pods than any cluster has nodes for.
MOST_PODS = 1_000_000


class BadChange(ValueError):
    """A change that cannot be made; the text says why and what may be written."""


def changed(situation: Situation, change: str, namespace: str = "") -> Situation:
    """The situation after one change. Raises BadChange.

    Args:
        situation: As it is.
        change: What is changed.
        namespace: Of workloads that are named without one; empty: any.
    """
    word, _, argument = change.partition("=")
    if word not in _EXAMPLES:
        near = difflib.get_close_matches(word, _EXAMPLES, 1)
        meant = f"did you mean {near[0]}?" if near else f"one of {', '.join(_EXAMPLES)}"
        raise BadChange(f"change {change!r} is not known; hint: {meant}")
    if word == "add" or (not argument and word != "without-spot"):
        raise BadChange(f"change {word!r} needs something to work on; hint: {_EXAMPLES[word]}")
    if word in _CHANGES_OF_WORKLOADS:
        return _CHANGES_OF_WORKLOADS[word](situation, argument, namespace)
    return _CHANGES[word](situation, argument)


def pods_of_namespace(situation: Situation, namespace: str, notes: list[str]) -> Situation:
    """The situation as if the pods of no other namespace waited; a note says how many of them do."""
    snapshot = situation.snapshot
    others = [key for key, pod in snapshot.pods.items() if pod.provisionable and pod.namespace != namespace]
    for key in others:
        snapshot = apply(snapshot, events.PodGone(key))
    if others:
        notes.append(
            f"pods of namespace {namespace} alone: {count(len(others), 'pending pod')} of others left out"
        )
    return replace(situation, snapshot=snapshot)


def _scale(situation: Situation, argument: str, namespace: str) -> Situation:
    name, _, text = argument.rpartition(":")
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_PODS))
    if not name or not plain or int(text) > MOST_PODS:
        raise BadChange(f"scale={argument}: not a number of pods; hint: {_EXAMPLES['scale']}")
    for workload, pods in _workloads(situation, "scale", name, namespace).items():
        situation = _scaled(situation, workload, pods, int(text))
    return situation


def _remove(situation: Situation, argument: str, namespace: str) -> Situation:
    for workload, pods in _workloads(situation, "remove", argument, namespace).items():
        situation = _scaled(situation, workload, pods, 0)
    return situation


def _scaled(situation: Situation, workload: Workload, pods: list[Pod], number: int) -> Situation:
    """Pods that do not run go first, then the youngest; new ones are like the youngest, and pending."""
    snapshot = situation.snapshot
    ordered = sorted(pods, key=lambda pod: (not pod.node_name, pod.created_at, pod.key))
    for pod in ordered[number:]:
        snapshot = apply(snapshot, events.PodGone(pod.key))
    pattern = ordered[-1]
    for ordinal in range(len(ordered), number):
        name = f"{workload.name}-as-if-{ordinal}"
        made = replace(
            _with_claims_of(pattern, f"{workload.name}-{ordinal}", snapshot),
            name=name,
            uid=f"{workload.namespace}/{name}",
            node_name="",
            nominated_node_name="",
            phase="Pending",
            unschedulable=True,
            ready=False,
            started_at=None,
            deletion_timestamp=None,
        )
        snapshot = apply(snapshot, events.PodSeen(made))
    return replace(situation, snapshot=snapshot)


def _with_claims_of(pattern: Pod, name: str, snapshot: Snapshot) -> Pod:
    """A member of a StatefulSet as another one: the volumes of its own are not those of the other.

    The claims of the other's name that are there are its own, as after a scale-down. The others come to be
    where it lands; of those whose storage class is not known no more can be said.
    """
    shape, suffix = pattern.shape, f"-{pattern.name}"
    own = [claim for claim in shape.claims if claim.endswith(suffix)]
    if not own or workload_of(pattern).kind != "StatefulSet":
        return pattern
    claims, made = [claim for claim in shape.claims if claim not in own], list(shape.ephemeral_volumes)
    for claim in own:
        volume = claim.removesuffix(suffix)
        known = snapshot.volume_claims.get(f"{pattern.namespace}/{claim}")
        if f"{pattern.namespace}/{volume}-{name}" in snapshot.volume_claims:
            claims.append(f"{volume}-{name}")
        elif known is not None and known.storage_class in snapshot.storage_classes:
            made.append((volume, known.storage_class))
    return replace(pattern, shape=replace(shape, claims=tuple(claims), ephemeral_volumes=tuple(made)))


def _without_pool(situation: Situation, argument: str) -> Situation:
    snapshot = situation.snapshot
    for pool in _pools(situation, "without-pool", argument):
        snapshot = apply(snapshot, events.PoolGone(pool.key))
    return replace(situation, snapshot=snapshot)


def _without_node(situation: Situation, argument: str) -> Situation:
    kind, _, name = with_kind_called(argument).rpartition("/")
    names = _matching("without-node", name if kind == "Node" else argument, situation.snapshot.nodes)
    return replace(situation, snapshot=without_nodes(situation.snapshot, names))


def without_place(pod: Pod) -> Pod:
    """The pod as it is where it looks for a place."""
    return replace(pod, node_name="", phase="Pending", unschedulable=True, ready=False, resize=None)


def without_nodes(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """The nodes are gone, and the pods that they ran (but for daemons') look for a place."""
    for name in names:
        node = snapshot.nodes[name]
        claim = snapshot.claim_of(node)
        for pod in list(snapshot.pods_on(name)):
            moved = pod.occupies and pod.deletion_timestamp is None
            snapshot = apply(
                snapshot, events.PodSeen(without_place(pod)) if moved else events.PodGone(pod.key)
            )
        snapshot = apply(snapshot, events.NodeGone(name))
        if claim is not None:
            snapshot = apply(snapshot, events.ClaimGone(claim.name))
    return snapshot


def _without_type(situation: Situation, argument: str) -> Situation:
    gone = set(_matching("without-type", argument, _type_names(situation)))
    return _types(situation, lambda kind: None if kind.name in gone else kind)


def _only_type(situation: Situation, argument: str) -> Situation:
    kept = {
        name for each in argument.split(",") for name in _matching("only-type", each, _type_names(situation))
    }
    return _types(situation, lambda kind: kind if kind.name in kept else None)


def _without_zone(situation: Situation, argument: str) -> Situation:
    gone = set(_matching("without-zone", argument, {offering.zone for offering in _offerings(situation)}))
    return _offered(situation, lambda _, offering: None if offering.zone in gone else offering)


def _with_zone(situation: Situation, argument: str) -> Situation:
    """Every type is sold there too, at its lowest price elsewhere, and pools have a large subnet there."""
    there = {offering.zone for offering in _offerings(situation)}
    if argument in there:
        raise BadChange(f"with-zone={argument}: pools buy there already; hint: name another zone")
    if argument[:-1] not in {zone[:-1] for zone in there}:
        hint = f"hint: a zone of the region of {listed(sorted(there), 8) or 'none'}"
        raise BadChange(f"with-zone={argument}: no zone beside those that pools buy in; {hint}")

    def sold(kind: InstanceType) -> InstanceType:
        cheapest: dict[str, Offering] = {}
        for offering in sorted(kind.offerings, key=lambda offering: offering.price):
            if offering.capacity_type in (ON_DEMAND, SPOT) and offering.for_sale:
                cheapest.setdefault(offering.capacity_type, replace(offering, zone=argument))
        zones = kind.requirements.get(ZONE)
        wider = [] if zones is None else [Requirement.of(ZONE, IN, (*zones.values, argument))]
        others = [requirement for key, requirement in kind.requirements.items() if key != ZONE]
        return replace(
            kind,
            offerings=(*kind.offerings, *cheapest.values()),
            requirements=Requirements([*others, *wider]),
        )

    more = SubnetRoom(f"as-if-in-{argument}", argument, MOST_PODS)
    subnets = {key: (*rooms, more) for key, rooms in situation.policy.subnets.items()}
    policy = replace(situation.policy, subnets=subnets)
    return _types(replace(situation, policy=policy), sold)


def _without_spot(situation: Situation, _argument: str) -> Situation:
    return _offered(situation, lambda _, offering: None if offering.capacity_type == SPOT else offering)


#: Of a price that is asked about.
_AS_IF = PriceSource("--what-if")


def _price(situation: Situation, argument: str) -> Situation:
    pattern, _, text = argument.rpartition(":")
    factor, price = _read_price(argument, text)
    names = set(_matching("price", pattern, _type_names(situation)))

    def repriced(kind: InstanceType, adjustments: Sequence[PriceAdjustment]) -> InstanceType:
        offerings = []
        for offering in kind.offerings:
            if price is None and not offering.price_known:
                offerings.append(offering)
                continue
            dollars = offering.instance_price * factor if price is None else price
            paid = offering.at_instance_price(dollars, _adjusted(offering, dollars, adjustments))
            offerings.append(replace(paid, source=_AS_IF))
        return replace(kind, offerings=tuple(offerings))

    made: dict[tuple[Identity, tuple[PriceAdjustment, ...]], tuple[InstanceType, ...]] = {}
    catalog = {}
    for key, kinds in situation.catalog.items():
        pool = key.partition("/")[2]
        mine = tuple(each for each in situation.prices.adjustments if not each.pools or pool in each.pools)
        memo = Identity(kinds), mine
        if memo not in made:
            made[memo] = tuple(
                repriced(kind, [each for each in mine if each.concerns(pool, kind.name)])
                if kind.name in names
                else kind
                for kind in kinds
            )
        catalog[key] = made[memo]
    return replace(situation, catalog=catalog)


def _adjusted(offering: Offering, dollars: float, adjustments: Sequence[PriceAdjustment]) -> float:
    """What the user would pay for an instance at a price.

    Where the adjustments are not known, as of a snapshot of an older release, they are taken as a percentage.
    """
    paid = offering.at_price(dollars, None)
    for adjustment in adjustments:
        paid = adjustment.apply(paid)
    if adjustments or not offering.instance_price:
        return paid.price
    return dollars * (offering.adjusted_instance_price / offering.instance_price)


def _read_price(argument: str, text: str, word: str = "price") -> tuple[float, float | None]:
    """A factor, or a price in its place."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = float("nan")
    if text.endswith("%") and -100 <= number < float("inf"):
        return 1 + number / 100, None
    if not text.endswith("%") and 0 <= number < float("inf"):
        return 1.0, number
    raise BadChange(f"{word}={argument}: not a price; hint: {_EXAMPLES[word]}")


def _limit(situation: Situation, argument: str) -> Situation:
    name, _, text = argument.partition(":")
    resource, _, amount = text.partition("=")
    if not resource or not amount:
        raise BadChange(f"limit={argument}: not a limit; hint: {_EXAMPLES['limit']}")
    snapshot = situation.snapshot
    try:
        limit = parse_resources({resource: amount})
    except QuantityError as error:
        raise BadChange(f"limit={argument}: {error}") from None
    for pool in _pools(situation, "limit", name):
        raised = replace(pool, limits={**(pool.limits or {}), **limit})
        snapshot = replace(snapshot, pools=snapshot.pools.set(pool.key, raised))
    return replace(situation, snapshot=snapshot)


def _packing(situation: Situation, argument: str) -> Situation:
    if defect := packing_defect(argument):
        raise BadChange(f"packing={argument}: {defect}")
    return replace(situation, policy=replace(situation.policy, packing=argument))


def _node_fee(situation: Situation, argument: str) -> Situation:
    _, fee = _read_price(argument, argument, "node-fee")
    if fee is None:
        raise BadChange(f"node-fee={argument}: not a price; hint: {_EXAMPLES['node-fee']}")
    return replace(situation, policy=replace(situation.policy, node_fee=fee))


_CHANGES_OF_WORKLOADS: dict[str, Callable[[Situation, str, str], Situation]] = {
    "scale": _scale,
    "remove": _remove,
}
_CHANGES: dict[str, Callable[[Situation, str], Situation]] = {
    "without-pool": _without_pool,
    "without-node": _without_node,
    "without-type": _without_type,
    "only-type": _only_type,
    "without-zone": _without_zone,
    "with-zone": _with_zone,
    "without-spot": _without_spot,
    "price": _price,
    "limit": _limit,
    "packing": _packing,
    "node-fee": _node_fee,
}
_EXAMPLES = {
    "scale": "scale=deploy/web:20, or scale=shop/deploy/web:20 for namespace shop",
    "remove": "remove=deploy/web",
    "without-pool": "without-pool=default",
    "without-node": "without-node=ip-10-0-1-2.ec2.internal",
    "without-type": "without-type=m5.*",
    "only-type": "only-type=m5.*,c5.*",
    "without-zone": "without-zone=us-east-1a",
    "without-spot": "without-spot",
    "price": "price=m5.large:0.05, or price=c5.*:-20%",
    "limit": "limit=default:cpu=100",
    "with-zone": "with-zone=us-east-1d",
    "packing": "packing=fewest-nodes",
    "node-fee": "node-fee=0.01, in US dollars an hour",
    "add": "add=FILE, manifests of pods, workloads, pools",
}
#: What changes begin with.
WORDS = tuple(_EXAMPLES)


def _workloads(situation: Situation, word: str, argument: str, namespace: str) -> dict[Workload, list[Pod]]:
    living = [pod for _, pod in sorted(situation.snapshot.pods.items()) if not pod.terminal]
    chosen = workloads_called(living, argument, namespace)
    if not chosen:
        there = (
            listed([str(each) for each in sorted(set(map(workload_of, living)))], 8) or "no workload at all"
        )
        inside = f" in namespace {namespace}" if namespace else ""
        raise BadChange(f"{word}={argument}: no such workload{inside}; hint: there is {there}")
    return chosen


def _pools(situation: Situation, word: str, argument: str) -> list[Pool]:
    by_name = {name: pool for key, pool in situation.snapshot.pools.items() for name in (key, pool.name)}
    names = _matching(word, with_kind_called(argument), by_name)
    return list({by_name[name].key: by_name[name] for name in names}.values())


def _matching(word: str, pattern: str, names: Iterable[str]) -> list[str]:
    known = sorted(names)
    found = [name for name in known if fnmatchcase(name, pattern)]
    if not found:
        near = difflib.get_close_matches(pattern, known, 3) or known
        raise BadChange(f"{word}={pattern}: matches nothing; hint: there is {listed(near, 8) or 'none'}")
    return found


def _type_names(situation: Situation) -> set[str]:
    return {kind.name for kinds in situation.catalog.values() for kind in kinds}


def _offerings(situation: Situation) -> Iterable[Offering]:
    return (offering for kinds in situation.catalog.values() for kind in kinds for offering in kind.offerings)


def _types(situation: Situation, change: Callable[[InstanceType], InstanceType | None]) -> Situation:
    """Every pool's types changed or left out; pools that share their types share them still."""
    made: dict[Identity, tuple[InstanceType, ...]] = {}
    catalog = {}
    for key, kinds in situation.catalog.items():
        same = Identity(kinds)
        if same not in made:
            made[same] = tuple(new for kind in kinds if (new := change(kind)) is not None)
        catalog[key] = made[same]
    return replace(situation, catalog=catalog)


def _offered(situation: Situation, change: Callable[[InstanceType, Offering], Offering | None]) -> Situation:
    def offered(kind: InstanceType) -> InstanceType:
        sold = tuple(new for offering in kind.offerings if (new := change(kind, offering)) is not None)
        return kind if sold == kind.offerings else replace(kind, offerings=sold)

    return _types(situation, offered)
