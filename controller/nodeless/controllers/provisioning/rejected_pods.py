"""Which pods keep a node from being written, when the API server refuses its claim for what it says.

Every class of pods on the node is planned by itself, and the claims of that plan are offered to the API
server as a dry run. Those whose claims are refused are to blame; where none is by itself, the class that
asks for the most.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from nodeless.controllers.provisioning.deferred_pods import class_of, is_refusal, without
from nodeless.explain.decisions import Situation
from nodeless.kube import ApiError
from nodeless.launch.claims import claims_for
from nodeless.model.nodes import NodeClaim
from nodeless.model.plan import PlannedNode
from nodeless.model.pods import Pod, PodShape
from nodeless.scheduling import pods_to_place

#: Classes of one node that are tried by themselves, those that ask for most first.
_TRIED = 8
#: Seconds of work for each of them.
_DEADLINE = 0.5

Offer = Callable[[NodeClaim], Awaitable[object]]
"""Asks the API server whether it would take a claim. Raises ApiError when not."""


async def culprits(
    situation: Situation, node: PlannedNode, error: Exception, offer: Offer
) -> list[tuple[Pod, Exception]]:
    """A pod of each class to blame, and what the API server says of it.

    Args:
        situation: What was planned.
        node: The planned node whose claim was refused.
        error: The refusal.
        offer: A dry run.
    """
    classes: dict[str, Pod] = {}
    for key in node.pods:
        pod = situation.snapshot.pods[key]
        classes.setdefault(class_of(pod), pod)
    suspects = sorted(classes.values(), key=lambda pod: (-_asks(pod.shape), pod.key))
    if len(suspects) < 2:
        return [(pod, error) for pod in suspects]
    found = []
    for pod in suspects[:_TRIED]:
        refusal = await _by_itself(situation, pod, offer)
        if refusal is not None:
            found.append((pod, refusal))
    return found or [(suspects[0], error)]


async def _by_itself(situation: Situation, pod: Pod, offer: Offer) -> Exception | None:
    """What the API server says of the node that one pod alone would get; None: nothing against it."""
    seen = situation.snapshot
    alone = without(seen, [each.key for each in pods_to_place(seen, situation.now) if each.key != pod.key])
    policy = replace(situation.policy, time_box=0.0, deadline=_DEADLINE)
    plan = await asyncio.to_thread(replace(situation, snapshot=alone, policy=policy).plan)
    mine = replace(plan, new_nodes=_with(plan.new_nodes, pod.key))
    for create in claims_for(mine, dict(seen.pools), situation.now, taken=frozenset(seen.claims)):
        try:
            await offer(create.claim)
        except ApiError as error:
            if is_refusal(error):
                return error
    return None


def _with(nodes: Sequence[PlannedNode], key: str) -> tuple[PlannedNode, ...]:
    return tuple(node for node in nodes if key in node.pods)


def _asks(shape: PodShape) -> int:
    terms = (
        *shape.required_terms,
        *(term for _, term in shape.preferred_terms),
        *shape.volume_terms,
        *shape.device_terms,
    )
    return len(shape.node_selector) + sum(len(term.expressions) for term in terms)
