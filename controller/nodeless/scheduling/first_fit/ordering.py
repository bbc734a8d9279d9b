"""The order in which classes get their places.

Largest first: by CPU, then memory, then the other resources. Of equal size those come first
that are bound to a domain which rules look at, then by the key of the first pod. A class that
wants to be near pods of other classes follows them at once, while there is room beside them; one
whose own pods would do leads its group, for others may go where it cannot.
Placeholders of capacity buffers come after all pods.

Rules may let a class in only after others have found their places, so classes with rules that
are left over are tried again as long as any pod is placed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from nodeless.scheduling.faults import about
from nodeless.scheduling.first_fit.class_placer import RoomThere
from nodeless.scheduling.first_fit.filling import Existing
from nodeless.scheduling.first_fit.keeping import Keeping, Step
from nodeless.scheduling.first_fit.packing import Packing
from nodeless.scheduling.first_fit.turns import Turn, followers_of, room_beside, room_for_one_each, served
from nodeless.scheduling.meter import Shares
from nodeless.scheduling.pods.classes import Amounts, PodClass
from nodeless.scheduling.pods.rules import TopologyGroup

Left = list[tuple[PodClass, Sequence[str]]]
"""The pods of each class for which there is no room."""
_NOBODY: Mapping[PodClass, float] = MappingProxyType({})


def queue(
    classes: Iterable[PodClass], keys: Sequence[str] = (), apart: Mapping[PodClass, float] = _NOBODY
) -> list[PodClass]:
    """The classes in order.

    Args:
        classes: All of them.
        keys: The topology keys that rules look at.
        apart: Classes that go before all others, those first that need the most nodes.
    """
    ordered = sorted(
        classes,
        key=lambda pods: (
            pods.shape.placeholder,
            -apart.get(pods, 0.0),
            tuple(-amount for amount in pods.requests.tolist()),
            not (keys and _bound(pods, keys)),
            pods.pods[0],
        ),
    )
    if not any(rule for pods in ordered for rule in pods.rules.affinity):
        return ordered
    return list(_followers_after_leaders(ordered))


def _bound(pods: PodClass, keys: Sequence[str]) -> bool:
    return all(
        any(key in node_requirements.requirements for key in keys)
        for node_requirements in pods.demand.required
    )


def _followers_after_leaders(ordered: Sequence[PodClass]) -> Iterator[PodClass]:
    adders: dict[TopologyGroup, list[int]] = {}
    for index, pods in enumerate(ordered):
        for topology_group in pods.adds:
            adders.setdefault(topology_group, []).append(index)
    wanted = [
        {topology_group for rule in pods.rules.affinity for topology_group in rule.topology_groups}
        for pods in ordered
    ]
    leaders = [
        {
            leader
            for rule in pods.rules.affinity
            if not rule.counts_itself
            for topology_group in rule.topology_groups
            for leader in adders.get(topology_group, ())
            if leader != index and topology_group not in wanted[leader]
        }
        for index, pods in enumerate(ordered)
    ]
    followers: dict[int, list[int]] = {}
    for index, ahead in enumerate(leaders):
        for leader in sorted(ahead):
            followers.setdefault(leader, []).append(index)
    ahead_of = list(map(len, leaders))
    done: set[int] = set()
    for start in range(len(ordered)):
        pending = [start] if not leaders[start] else []
        while pending:
            index = pending.pop()
            if index in done:
                continue
            done.add(index)
            yield ordered[index]
            ready = []
            for other in followers.get(index, ()):
                ahead_of[other] -= 1
                if not ahead_of[other]:
                    ready.append(other)
            pending.extend(reversed(ready))
    for index, pods in enumerate(ordered):
        if index not in done:
            yield pods


@dataclass(slots=True, eq=False)
class Placed:
    """What came of placing all classes."""

    placements: dict[str, str]
    """Pods on slots, by name."""
    left: Left
    """The pods for which there is no room."""
    aside: Left
    """The pods of classes that have used up their share of the pass."""
    displaced_classes: Sequence[PodClass] = ()
    """Classes with pods that are not where they are expected."""


def place_all(
    turns: Sequence[Turn],
    existing: Existing,
    packing: Packing,
    shares: Shares,
    places: Mapping[str, str] = MappingProxyType({}),
    late: Collection[PodClass] = (),
    order: Sequence[Step] = (),
) -> Placed:
    """Room for every class, there already or new.

    A class that uses more than its share of the pass is set aside, and tried again after the others in what
    time is left.

    Args:
        turns: Whose turn it is, one after the other.
        existing: The room that is there.
        packing: New nodes.
        places: Where earlier passes put pods that still wait: they come before all others, and stay there
            as long as they fit.
        shares: Who may take how long.
        late: Classes that are set aside from the first.
        order: In which pods are kept where they are expected, before others are.
    """
    placements: dict[str, str] = {}
    aside = set(late)
    ordered = list(dict.fromkeys(turn.pods for turn in turns))
    keeping = Keeping(existing, places, placements, shares, order)
    keeping.begin(ordered)
    followers = followers_of(ordered)
    waiting: dict[PodClass, Sequence[str]] = {
        pods: [key for key in pods.pods if key not in placements] if placements else pods.pods
        for pods in ordered
    }
    for turn in served(_others_first(turns, waiting, keeping), waiting):
        if turn.pods in aside or not shares.begin(turn.pods):
            aside.add(turn.pods)
            continue
        keys = waiting[turn.pods]
        now, later = keys[: turn.most], keys[len(keys) if turn.most is None else turn.most :]
        behind = [pods for pods in queued if waiting[pods]] if (queued := followers.get(turn.pods)) else []
        beside = room_beside(turn.pods, behind, waiting)
        with about(turn.pods.pods):
            if turn.fresh:
                left = _place_leaders(turn, now, existing, packing, placements, behind, beside, waiting)
            elif turn.there:
                found = existing.fill(turn.pods, now, beside=beside, followers=behind, sparing=turn.sparing)
                placements.update(found)
                left = [key for key in now if key not in found]
            else:
                left = _place(turn.pods, now, existing, packing, placements, beside, behind)
        waiting[turn.pods] = [*left, *later] if later else left
        if shares.end(turn.pods) and waiting[turn.pods]:
            aside.add(turn.pods)
        if len(left) < len(now):
            for pods in keeping.after(turn.pods, waiting):
                waiting[pods] = [key for key in waiting[pods] if key not in placements]
    over = [(pods, keys) for pods, keys in waiting.items() if keys]
    placed = Placed(
        placements,
        [entry for entry in over if entry[0] not in aside],
        [entry for entry in over if entry[0] in aside],
    )
    _place_again(placed, existing, packing, shares)
    _place_those_aside(placed, existing, packing, shares)
    placed.displaced_classes = keeping.displaced_classes(ordered) if places else ()
    return placed


def _place_leaders(
    turn: Turn,
    keys: Sequence[str],
    existing: Existing,
    packing: Packing,
    placements: dict[str, str],
    behind: Sequence[PodClass],
    beside: Sequence[Amounts],
    waiting: Mapping[PodClass, Sequence[str]],
) -> Sequence[str]:
    """Pods that others follow, each where most of these can come after it; the pods that are left.

    Room that is there for a share of all followers comes first, then a new node with as much room, then room
    that is there for any of them (`joining`: before such a node), and then the new node that has the most.
    """
    pods, left = turn.pods, keys

    def fill(followers: Sequence[PodClass], beside: Sequence[Amounts], *, any_follower: bool) -> None:
        nonlocal left
        if left and followers:
            found = existing.fill(
                pods,
                left,
                beside=beside,
                followers=followers,
                only_beside=not any_follower,
                beside_any=any_follower,
            )
            placements.update(found)
            left = [key for key in left if key not in found]

    def open_nodes(rooms: Iterable[Amounts | None]) -> None:
        nonlocal left
        for room in rooms:
            if left:
                left = packing.place(pods, left, fresh=True, beside=room)

    sharing = existing.shared_with(pods, behind)
    there = room_beside(pods, sharing, waiting)
    fill(sharing, there, any_follower=False)
    if turn.joining:
        fill(sharing, there, any_follower=True)
    open_nodes(beside)
    if not turn.joining:
        fill(sharing, there, any_follower=True)
    open_nodes([*room_for_one_each(pods, behind), None])
    return left


def _others_first(
    turns: Sequence[Turn], waiting: dict[PodClass, Sequence[str]], keeping: Keeping
) -> Iterator[Turn]:
    """The turns; of a class with pods that are kept off where they are expected the others come before these.

    They may let them in.
    """
    for turn in turns:
        keys = waiting[turn.pods]
        others = keeping.others(turn.pods, keys) if turn.most is None else []
        if 0 < len(others) < len(keys):
            some = set(others)
            waiting[turn.pods] = [*others, *(key for key in keys if key not in some)]
            yield replace(turn, most=len(others))
        yield turn


def place_left(
    left: Left, existing: Existing, packing: Packing, shares: Shares, placements: dict[str, str]
) -> Placed:
    """Room for pods that were left over, now that there may be more; those that still have none.

    Args:
        left: The pods of each class.
        existing: The room that is there.
        packing: New nodes.
        shares: Who may take how long.
        placements: Pods on slots by name, to which theirs are added.
    """
    placed = Placed(placements, [], [])
    for pods, keys in left:
        _share(placed, pods, keys, existing, packing, shares)
    _place_again(placed, existing, packing, shares)
    return placed


def _share(
    placed: Placed,
    pods: PodClass,
    keys: Sequence[str],
    existing: Existing,
    packing: Packing,
    shares: Shares,
    *,
    again: bool = False,
) -> None:
    """Room for the pods of a class within its share, or (`again`) within what is left."""
    if not (shares.begin_again(pods) if again else shares.begin(pods)):
        placed.aside.append((pods, keys))
        return
    with about(pods.pods):
        left = _place(pods, keys, existing, packing, placed.placements)
    over = shares.end(pods)
    if left:
        (placed.aside if over else placed.left).append((pods, left))


def _place_again(placed: Placed, existing: Existing, packing: Packing, shares: Shares) -> None:
    """Try classes with rules again as long as any pod is placed: others may have let them in."""
    progress = True
    while progress and any(pods.rules for pods, _ in placed.left):
        before, placed.left = placed.left, []
        for pods, keys in before:
            if pods.rules:
                _share(placed, pods, keys, existing, packing, shares)
            else:
                placed.left.append((pods, keys))
        progress = sum(len(keys) for _, keys in placed.left) < sum(len(keys) for _, keys in before)


def _place_those_aside(placed: Placed, existing: Existing, packing: Packing, shares: Shares) -> None:
    """Those that were set aside once more: they share what is left of the pass."""
    tried, placed.aside = placed.aside, []
    shares.try_again([pods for pods, _ in tried])
    for pods, keys in tried:
        _share(placed, pods, keys, existing, packing, shares, again=True)


def _place(
    pods: PodClass,
    waiting: Sequence[str],
    existing: Existing,
    packing: Packing,
    placements: dict[str, str],
    beside: Sequence[Amounts] = (),
    followers: Sequence[PodClass] = (),
) -> Sequence[str]:
    """Room for the waiting pods of one class; returns those that are left."""
    group = packing.largest_group(pods) if pods.hard_rules.affinity else 0
    for least in (group, 0) if group else (0,):
        placed = existing.fill(pods, waiting, least=least, beside=beside, followers=followers)
        placements.update(placed)
        waiting = [key for key in waiting if key not in placed] if placed else waiting
        waiting = packing.place(pods, waiting, there=RoomThere(existing, placements))
        if not waiting:
            break
    return waiting
