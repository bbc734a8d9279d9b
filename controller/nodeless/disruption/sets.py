"""Which sets of nodes are worth trying to replace together: steps on the way to the whole.

The target is the solver's plan for all pods that may move. A node of it takes the place of the nodes whose
pods it holds; so these are a set to try, as are all nodes together, and prefixes of the candidates by what
they save for each unit of disturbance, within a pool and across pools. Of a small cluster every pair is
tried. No set is larger than budgets allow.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from nodeless.disruption.candidates import Candidate
from nodeless.model.plan import PlannedNode
from nodeless.model.resources import CPU, MEMORY

#: Sizes of prefixes, besides the largest one.
_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100)
#: Nodes of the target whose sets are tried in one pass.
_MOST_PLANNED = 4
#: A cluster of so many candidates is small.
_SMALL = 12

CandidateSet = tuple[Candidate, ...]


def candidate_sets(
    target: Sequence[PlannedNode], ordered: Sequence[Candidate], left: Mapping[str, int], most: int
) -> list[CandidateSet]:
    """Sets of two candidates or more, each once.

    Args:
        target: What would be bought for the pods of all candidates.
        ordered: The candidates, those first that save most for each unit of disturbance.
        left: How many nodes of each pool, by key, budgets let end.
        most: Nodes that may end in one command.
    """
    place = {candidate.name: number for number, candidate in enumerate(ordered)}
    found: dict[frozenset[str], CandidateSet] = {}
    for some in _sets(target, ordered, left, most):
        kept = _within(some, left, most)
        if len(kept) > 1:
            key = frozenset(candidate.name for candidate in kept)
            found.setdefault(key, tuple(sorted(kept, key=lambda candidate: place[candidate.name])))
    return list(found.values())


def price_shares(target: Sequence[PlannedNode], candidates: Sequence[Candidate]) -> dict[str, float]:
    """What each pod costs at the target, by pod key, in US dollars an hour; none where it moves to a node.

    A node's price is shared by what its pods ask for, half of it by processors and half by memory.
    """
    requests = {pod.key: dict(pod.shape.requests) for candidate in candidates for pod in candidate.pods}
    shares: dict[str, float] = {}
    for node in target:
        keys = [key for key in node.pods if key in requests]
        for name in (CPU, MEMORY):
            amounts = [requests[key].get(name, 0) for key in keys]
            whole = sum(amounts)
            for key, amount in zip(keys, amounts, strict=True):
                part = amount / whole if whole else 1 / len(keys)
                shares[key] = shares.get(key, 0.0) + node.price * part / 2
    return shares


def _sets(
    target: Sequence[PlannedNode], ordered: Sequence[Candidate], left: Mapping[str, int], most: int
) -> Iterator[Sequence[Candidate]]:
    yield from _prefixes(ordered, left, most)
    yield ordered
    yield from _on_the_way(target, ordered)
    if len(ordered) <= _SMALL:
        yield from combinations(ordered, 2)


def _prefixes(
    ordered: Sequence[Candidate], left: Mapping[str, int], most: int
) -> Iterator[Sequence[Candidate]]:
    for pool in sorted({candidate.pool.key for candidate in ordered}):
        mine = [candidate for candidate in ordered if candidate.pool.key == pool]
        largest = min(len(mine), left[pool], most)
        yield from (mine[:size] for size in (*_SIZES, largest) if size <= largest)


def _on_the_way(target: Sequence[PlannedNode], ordered: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    """For each node of the target, the dearest first, the nodes that have most of their pods on it."""
    home = {pod.key: candidate for candidate in ordered for pod in candidate.pods}
    dearest = sorted(target, key=lambda node: (-node.price, node.pods))
    for planned in dearest[:_MOST_PLANNED]:
        shares = Counter(home[key].name for key in planned.pods if key in home)
        yield [
            candidate for candidate in ordered if 2 * shares[candidate.name] >= max(len(candidate.pods), 1)
        ]


def _within(candidates: Sequence[Candidate], left: Mapping[str, int], most: int) -> list[Candidate]:
    spent: Counter[str] = Counter()
    kept: list[Candidate] = []
    for candidate in candidates:
        if len(kept) < most and spent[candidate.pool.key] < left[candidate.pool.key]:
            spent[candidate.pool.key] += 1
            kept.append(candidate)
    return kept
