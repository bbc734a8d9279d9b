"""Quick bounds: which nodes have room for which pods.

They only say no. Requests and free room are looked at, nothing else; so a pod that a bound
lets pass may still have no place, and the solver decides. Arrays are [node, resource].
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from nodeless.disruption.candidates import Candidate
from nodeless.model.pods import Pod
from nodeless.model.resources import CPU, MEMORY, PODS, Resources
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.devices import is_common, own_nodes, serving_classes
from nodeless.scheduling.pods.classes import UNBOUNDED
from nodeless.scheduling.pods.eligibility import leaving

Amounts = NDArray[np.float64]
Requests = tuple[tuple[str, int], ...]
"""What a pod asks for, as its shape has it."""
#: Nodes that a trial looks at: the fullest with room, and the emptiest.
_TARGETS = 24


class NodeCapacity:
    """Free room of every node that takes pods."""

    def __init__(self, snapshot: Snapshot, closed: frozenset[str]) -> None:
        self._index: dict[str, int] = {}
        free: list[Resources] = []
        self._pool: list[str] = []
        self.served: Collection[str] = tuple(serving_classes(snapshot))
        """Extended resources that devices serve: nobody says no because of these where there may be any."""
        slices = list(snapshot.resource_slices.values()) if self.served else []
        everywhere = any(is_common(one) for one in slices)
        publishing = snapshot.nodes if everywhere else frozenset(own_nodes(slices))
        for name, node in sorted(snapshot.nodes.items()):
            claim = snapshot.claim_of(node)
            if node.unschedulable or leaving(node, claim) or name in closed:
                continue
            self._index[name] = len(free)
            self._pool.append(str(claim.pool) if claim is not None else "")
            free.append(_free(snapshot, name, self.served if name in publishing else ()))
        names = {name for resources in free for name in resources} | {CPU, MEMORY, PODS}
        self.resources = tuple(sorted(names))
        self.free: Amounts = np.array(
            [[resources.get(name, 0) for name in self.resources] for resources in free], dtype=np.float64
        ).reshape(len(free), len(self.resources))
        self.names = tuple(self._index)
        self._rows: dict[Requests, Amounts] = {}

    def row(self, requests: Requests) -> Amounts:
        """What a pod asks for, in the order of `resources`; many pods ask for the same."""
        known = self._rows.get(requests)
        if known is None:
            asked = dict(requests)
            known = np.array([asked.get(name, 0) for name in self.resources], dtype=np.float64)
            self._rows[requests] = known
        return known

    def take(self, name: str, pod: Pod) -> None:
        """A pod will run there."""
        if name in self._index:
            self.free[self._index[name]] -= self.row(pod.shape.requests)

    def close(self, name: str) -> None:
        """A node takes nothing more."""
        if name in self._index:
            self.free[self._index[name]] = -1.0

    def unschedulable_pod(self, candidates: Sequence[Candidate]) -> Pod | None:
        """A pod of the candidates that has room on none of the other nodes; None when each has some."""
        others = self._others(candidates)
        seen: set[Requests] = set()
        for pod in _largest_first([pod for candidate in candidates for pod in candidate.pods]):
            requests = pod.shape.requests
            if requests in seen:
                continue
            seen.add(requests)
            if not (others & self._fits(self.row(requests))).any():
                return pod
        return None

    def max_pods(self, candidates: Sequence[Candidate]) -> int:
        """How many of the candidates' pods all other nodes hold at most: as if each were the smallest."""
        others = self.free[self._others(candidates)]
        return int(pods_that_fit(others, self.least(candidates)).sum())

    def least(self, candidates: Sequence[Candidate]) -> Amounts:
        """What each of the candidates' pods asks for at least."""
        rows = [self.row(pod.shape.requests) for candidate in candidates for pod in candidate.pods]
        least: Amounts = np.array(rows).min(axis=0)
        return least

    def target_nodes(self, candidates: Sequence[Candidate]) -> tuple[str, ...]:
        """Every node that has room for the smallest of the candidates' pods; no other takes any of them."""
        ending = {candidate.node.name for candidate in candidates}
        found = np.flatnonzero(pods_that_fit(self.free, self.least(candidates)) > 0)
        return tuple(self.names[i] for i in found if self.names[i] not in ending)

    def targets(self, candidate: Candidate, among: Iterable[str] | None = None) -> tuple[str, ...]:
        """Some nodes that may take the candidate's pods, of its own pool first; of `among` where given."""
        if not candidate.pods:
            return ()
        allowed = self._others([candidate]) & self._fits(self.least([candidate]))
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
        fits_large = self._fits(self.row(large.shape.requests))
        some += [i for i in order if fits_large[i]][: _TARGETS // 3]
        return tuple(self.names[i] for i in dict.fromkeys(some))

    def absorbable_amounts(self, candidates: Sequence[Candidate]) -> Amounts:
        """The most that all nodes but the candidates' can take of their pods together.

        A node without room for a single one of them takes nothing, however much it has left.
        """
        asked = {pod.shape.requests for candidate in candidates for pod in candidate.pods}
        takes_any = np.zeros(len(self.names), dtype=np.bool_)
        for requests in asked:
            takes_any |= self._fits(self.row(requests))
        total: Amounts = self.free[self._others(candidates) & takes_any].sum(axis=0)
        return total

    def _fits(self, requests: Amounts) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = np.logical_and.reduce(self.free >= requests, axis=1)
        return mask

    def _others(self, candidates: Sequence[Candidate]) -> NDArray[np.bool_]:
        mask = np.ones(len(self.names), dtype=np.bool_)
        for candidate in candidates:
            if candidate.node.name in self._index:
                mask[self._index[candidate.node.name]] = False
        return mask


def pods_that_fit(free: Amounts, least: Amounts) -> Amounts:
    """For each row of free room, how many pods of a size it holds. Every pod asks for one of `pods`."""
    asked = least > 0
    counts: Amounts = np.maximum(np.floor(free[:, asked] / least[asked]).min(axis=1), 0.0)
    return counts


def _largest_first(pods: Iterable[Pod]) -> list[Pod]:
    def order(pod: Pod) -> tuple[int, int, str]:
        asked = pod.requests
        return (-asked.get(CPU, 0), -asked.get(MEMORY, 0), pod.key)

    return sorted(pods, key=order)


def _free(snapshot: Snapshot, name: str, served: Iterable[str]) -> Resources:
    """What is left of a node; of what devices may serve there, as much as anybody asks for."""
    allocatable = snapshot.nodes[name].allocatable
    left = dict(allocatable)
    for key in snapshot.pods_of_node.get(name, ()):
        pod = snapshot.pods[key]
        if not pod.terminal:
            for resource, amount in pod.shape.requests:
                left[resource] = left.get(resource, 0) - amount
    return left | {resource: int(UNBOUNDED) for resource in served if not allocatable.get(resource)}
