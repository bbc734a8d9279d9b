"""Where pods that wait are expected: what is planned once stays planned as long as it holds.

A pod may wait for minutes until its node is there, and passes go on meanwhile. Each starts from what
the ones before decided, so that the plan of a batch is not taken apart again by the next one:

- a pod that we nominated (`status.nominatedNodeName`) is expected on that node;
- otherwise on the claim that was planned for it, which names its pods (`PLANNED_PODS`), or on the
  node which that claim has become.

Both are on the objects, so any leader goes on from there. Pods that a later pass puts on a claim which is
there already are added to those that it names (`claims_to_note`).
"""

import hashlib
from base64 import b32encode
from collections.abc import Collection, Iterable, Mapping

from nodeless.model.labels import PLANNED_PODS
from nodeless.model.nodes import NodeClaim
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot

#: Pods of one claim that are looked for, more than any node takes; whoever may write claims can name more.
_MOST_PLANNED = 2000


def uid_digest(uid: str) -> str:
    """Eight characters that stand for a pod on its claim; two pods may share them."""
    return b32encode(hashlib.blake2b(uid.encode(), digest_size=5).digest()).decode().lower()


def expected_places(snapshot: Snapshot, groups: Iterable[Iterable[Pod]]) -> dict[str, str]:
    """Pod key to the name of the node, or of the claim without a node, where it is expected.

    Pods that nobody expects anywhere, whose place is gone, or which run are left out. There may be very
    many of them: one look at each.
    """
    recorded = _claims_by_pod_digest(snapshot)
    places = {}
    for pods in groups:
        for pod in pods:
            if pod.node_name or not (recorded or pod.expected_node_name):
                continue
            if pod.expected_node_name in snapshot.nodes:
                places[pod.key] = pod.expected_node_name
            elif (name := recorded.get(uid_digest(pod.uid))) is not None:
                places[pod.key] = place_of(snapshot, name)
    return places


def planned_for(snapshot: Snapshot, claim: NodeClaim) -> tuple[int, tuple[Pod, ...]]:
    """How many pods a claim was planned for, and those of them that are still there."""
    digests = _named_on(claim)
    there = (pod for pod in snapshot.pods.values() if digests and uid_digest(pod.uid) in digests)
    return len(digests), tuple(sorted(there, key=lambda pod: pod.key))


def claims_to_note(snapshot: Snapshot, placements: Mapping[str, str]) -> dict[str, str]:
    """Claims that must name other pods than they do so that a plan stands on the objects: claim to its note.

    Each pod that waits is named by the claim where it is placed, and by no other. A pod that is expected
    there already costs no write, nor does one on a node without a claim that no claim names.

    Args:
        snapshot: What the plan was made on.
        placements: Pod key to the node, or to the claim without a node, where the plan puts the pod.

    Returns:
        Claim name to the value of its annotation `PLANNED_PODS`.
    """
    waiting = [pod for key in placements if (pod := snapshot.pods.get(key)) is not None and not pod.node_name]
    expected = expected_places(snapshot, [waiting])
    moved = [pod for pod in waiting if expected.get(pod.key) != placements[pod.key]]
    if not moved:
        return {}
    claims_by_place = {place_of(snapshot, name): name for name in snapshot.claims}
    left: set[str] = set()
    arrived: dict[str, set[str]] = {}
    for pod in moved:
        digest = uid_digest(pod.uid)
        left.add(digest)
        if (name := claims_by_place.get(placements[pod.key])) is not None:
            arrived.setdefault(name, set()).add(digest)
    notes = {}
    for name, claim in snapshot.claims.items():
        before = _named_on(claim)
        after = (before - left) | arrived.get(name, set())
        if after != before:
            notes[name] = ",".join(sorted(_not_too_many(snapshot, after)))
    return notes


def _named_on(claim: NodeClaim) -> frozenset[str]:
    """The digests of the pods that a claim names."""
    return frozenset(filter(None, claim.annotations.get(PLANNED_PODS, "").split(",")))


def _not_too_many(snapshot: Snapshot, digests: Collection[str]) -> Collection[str]:
    """The digests; where they are more than any node takes, those of pods that are still there."""
    if len(digests) <= _MOST_PLANNED:
        return digests
    there = {uid_digest(pod.uid) for pod in snapshot.pods.values()}
    return sorted(there.intersection(digests))[:_MOST_PLANNED]


def place_of(snapshot: Snapshot, name: str) -> str:
    """The name of the node that a claim has become; the name itself where that is not known."""
    claim = snapshot.claims.get(name)
    node = snapshot.node_of(claim) if claim is not None else None
    return node.name if node is not None else name


def _claims_by_pod_digest(snapshot: Snapshot) -> dict[str, str]:
    """Digest of a pod to the claim that was planned for it; the youngest one where there are several."""
    recorded = {}
    for claim in sorted(snapshot.claims.values(), key=lambda claim: (claim.created_at, claim.name)):
        planned = claim.annotations.get(PLANNED_PODS, "")
        for digest in planned.split(",", _MOST_PLANNED)[:_MOST_PLANNED] if planned else ():
            recorded[digest] = claim.name
    return recorded
