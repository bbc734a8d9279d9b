"""Where pods that wait are expected: what is planned once stays planned as long as it holds.

A pod may wait for minutes until its node is there, and passes go on meanwhile. Each starts from what
the ones before decided, so that the plan of a batch is not taken apart again by the next one:

- a pod that we nominated (`status.nominatedNodeName`) is expected on that node;
- otherwise on the claim that was planned for it, which names its pods (`PLANNED_PODS`), or on the
  node which that claim has become.

Both are on the objects, so any leader goes on from there.
"""

import hashlib
from base64 import b32encode
from collections.abc import Iterable

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
    digests = frozenset(filter(None, claim.annotations.get(PLANNED_PODS, "").split(",")))
    there = (pod for pod in snapshot.pods.values() if digests and uid_digest(pod.uid) in digests)
    return len(digests), tuple(sorted(there, key=lambda pod: pod.key))


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
