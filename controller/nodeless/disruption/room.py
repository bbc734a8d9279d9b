"""Quick bounds: which nodes have room for which pods, and what a new node for them would cost at least.

They only say no. Requests and free room are looked at, nothing else; so a pod that a bound
lets pass may still have no place, and the solver decides. Arrays are [node, resource].
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from nodeless.disruption.candidates import Candidate
from nodeless.model.instance_types import Catalog
from nodeless.model.pods import Pod
from nodeless.model.resources import CPU, MEMORY, PODS, Resources
from nodeless.model.snapshot import Snapshot
from nodeless.solve.pods.eligibility import leaving

Amounts = NDArray[np.float64]
#: Nodes that a trial looks at: the fullest with room, and the emptiest.
_TARGETS = 24


class Room:
    """Free room of every node that takes pods."""

    def __init__(self, snapshot: Snapshot, closed: frozenset[str]) -> None:
        self._index: dict[str, int] = {}
        free: list[Resources] = []
        self._pool: list[str] = []
        for name, node in sorted(snapshot.nodes.items()):
            claim = snapshot.claim_of(node)
            if node.unschedulable or leaving(node, claim) or name in closed:
                continue
            self._index[name] = len(free)
            self._pool.append(str(claim.pool) if claim is not None else "")
            free.append(_free(snapshot, name))
        names = {name for some in free for name in some} | {CPU, MEMORY, PODS}
        self.resources = tuple(sorted(names))
        self.free: Amounts = np.array(
            [[some.get(name, 0) for name in self.resources] for some in free], dtype=np.float64
        ).reshape(len(free), len(self.resources))
        self.names = tuple(self._index)

    def row(self, requests: Resources) -> Amounts:
        amounts: Amounts = np.array([requests.get(name, 0) for name in self.resources], dtype=np.float64)
        return amounts

    def take(self, name: str, pod: Pod) -> None:
        """A pod will run there."""
        if name in self._index:
            self.free[self._index[name]] -= self.row(pod.requests)

    def close(self, name: str) -> None:
        """A node takes nothing more."""
        if name in self._index:
            self.free[self._index[name]] = -1.0

    def homeless(self, candidate: Candidate) -> Pod | None:
        """A pod of the candidate that has room on no other node; None when each has some."""
        others = self._others(candidate)
        for pod in _largest_first(candidate.pods):
            if not (others & self._fits(self.row(pod.requests))).any():
                return pod
        return None

    def seats(self, candidate: Candidate) -> int:
        """How many of the candidate's pods all other nodes hold at most: as if each were the smallest."""
        others = self.free[self._others(candidate)]
        return int(self._held(others, _least(self, candidate.pods)).sum())

    def takers(self, some: Sequence[Candidate]) -> tuple[str, ...]:
        """Every node that has room for the smallest of the candidates' pods; no other takes any of them."""
        least = _least(self, [pod for candidate in some for pod in candidate.pods])
        ending = {candidate.node.name for candidate in some}
        found = np.flatnonzero(self._held(self.free, least) > 0)
        return tuple(self.names[i] for i in found if self.names[i] not in ending)

    def targets(self, candidate: Candidate, among: Iterable[str] | None = None) -> tuple[str, ...]:
        """Some nodes that may take the candidate's pods, of its own pool first; of `among` where given."""
        if not candidate.pods:
            return ()
        allowed = self._others(candidate) & self._fits(_least(self, candidate.pods))
        if among is not None:
            chosen = np.zeros(len(self.names), dtype=np.bool_)
            chosen[[self._index[name] for name in among if name in self._index]] = True
            allowed = allowed & chosen
        fitting = np.flatnonzero(allowed)
        share = self.free[fitting][:, [self.resources.index(CPU), self.resources.index(MEMORY)]]
        scale = np.maximum(share.max(axis=0, initial=1.0), 1.0)
        order = [int(i) for i in fitting[np.argsort((share / scale).sum(axis=1), kind="stable")]]
        own = [i for i in order if self._pool[i] == candidate.pool.key]
        some = [*own[: _TARGETS // 3], *own[-_TARGETS // 3 :], *order[-_TARGETS // 3 :]]
        large = _largest_first(candidate.pods)[0]
        fits_large = self._fits(self.row(large.requests))
        some += [i for i in order if fits_large[i]][: _TARGETS // 3]
        return tuple(self.names[i] for i in dict.fromkeys(some))

    def absorbed(self, candidate: Candidate) -> Amounts:
        """The most that all other nodes together can take."""
        total: Amounts = np.where(self._others(candidate)[:, None], np.maximum(self.free, 0), 0).sum(axis=0)
        return total

    def _held(self, free: Amounts, least: Amounts) -> Amounts:
        """For each row of free room, how many pods of a size it holds. Every pod asks for one of `pods`."""
        asked = least > 0
        held: Amounts = np.maximum(np.floor(free[:, asked] / least[asked]).min(axis=1), 0.0)
        return held

    def _fits(self, requests: Amounts) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = np.logical_and.reduce(self.free >= requests, axis=1)
        return mask

    def _others(self, candidate: Candidate) -> NDArray[np.bool_]:
        mask = np.ones(len(self.names), dtype=np.bool_)
        if candidate.node.name in self._index:
            mask[self._index[candidate.node.name]] = False
        return mask


class LeastPrices:
    """What new capacity costs at least."""

    def __init__(self, catalog: Catalog) -> None:
        offers = {
            (kind.name, offering.price): (offering.price, kind.allocatable)
            for kinds in catalog.values()
            for kind in kinds
            for offering in kind.offerings
            if offering.available
        }
        self._offers = sorted(offers.values(), key=lambda offer: offer[0])

    def of(self, candidate: Candidate, room: Room) -> float:
        """A bound: no new nodes for what cannot go elsewhere cost less; infinite when no type holds it."""
        asked = np.array([room.row(pod.requests) for pod in candidate.pods]).sum(axis=0)
        needed = asked - room.absorbed(candidate)
        pod = room.homeless(candidate)
        bounds = [0.0]
        for name, amount in zip(room.resources, needed, strict=True):
            if amount > 0 and name in (CPU, MEMORY):
                rates = [price / held[name] for price, held in self._offers if held.get(name, 0) > 0]
                bounds.append(min(rates, default=float("inf")) * float(amount))
        if pod is not None:
            bounds.append(self._cheapest(pod.requests))
        return max(bounds)

    def _cheapest(self, requests: Resources) -> float:
        for price, held in self._offers:
            if all(held.get(name, 0) >= amount for name, amount in requests.items()):
                return price
        return float("inf")


def _least(room: Room, pods: Sequence[Pod]) -> Amounts:
    """What each of some pods asks for at least."""
    least: Amounts = np.array([room.row(pod.requests) for pod in pods]).min(axis=0)
    return least


def _largest_first(pods: Sequence[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (-pod.requests.get(CPU, 0), -pod.requests.get(MEMORY, 0), pod.key))


def _free(snapshot: Snapshot, name: str) -> Resources:
    left = dict(snapshot.nodes[name].allocatable)
    for key in snapshot.pods_of_node.get(name, ()):
        pod = snapshot.pods[key]
        if not pod.terminal:
            for resource, amount in pod.shape.requests:
                left[resource] = left.get(resource, 0) - amount
    return left
