"""When a node that has joined is opened for pods: the taint `karpenter.sh/unregistered` comes off.

At once, as in Karpenter, unless pods are to be nominated to it: then it stays closed until it is ready and
they are nominated, for kube-scheduler takes back the nomination of a pod that it tries in vain. No pod can
run on a node that is not ready, so nobody waits longer for that; and a node that does not get ready is
opened all the same after a minute.

A node that is ready is opened in two steps. The taint comes with the effect NoExecute, and the controller
manager evicts at once what it sees on a node that still has such a taint. It hears of nodes and of pods by
two watches: where the taint comes off a ready node and kube-scheduler binds a pod in the next moment, it may
hear of the pod first. So the effect becomes NoSchedule first, which keeps pods off, but evicts none: as soon
as the node is ready, so that nodes which have waited for each other open in one write each. Not sooner: a
DaemonSet may tolerate the taint as it comes, and be what makes the node ready.
"""

from dataclasses import replace

from nodeless.model.instructions import set_taints
from nodeless.model.labels import UNREGISTERED_TAINT
from nodeless.model.nodes import Node
from nodeless.model.taints import Taint, TaintEffect
from nodeless.nodeclaim.view import ClaimView, Step, cause_of

#: Seconds from a node's creation after which it is opened, whoever was to be nominated.
LONGEST_WAIT = 60.0
#: How soon a ready node that is kept closed is looked at again, should nobody tell that it may be opened.
LOOK_AGAIN = 2.0


def closed_until(view: ClaimView, now: float) -> float | None:
    """Until when a node that has joined must not be opened yet; None: it may be opened."""
    node = view.node
    if node is None or not view.expects_pods or (node.ready and not view.awaits_nominations):
        return None
    until = node.created_at + LONGEST_WAIT
    return until if now < until else None


def step_opening(view: ClaimView, now: float) -> Step:
    """Open a registered node that was kept closed."""
    node = view.node
    if node is None or not node.registered or not is_closed(node):
        return Step()
    until = closed_until(view, now)
    taints = next_taints(node, closed=until is not None)
    again = None if until is None else min(until, now + LOOK_AGAIN) if node.ready else until
    if taints == node.taints:
        return Step((), again)
    stage = "narrowed node" if any(map(_is_ours, taints)) else "opened node"
    return Step((set_taints(cause_of(view.claim), node, taints, stage),), again)


def is_closed(node: Node) -> bool:
    return any(map(_is_ours, node.taints))


def evicts(node: Node) -> bool:
    """Whether the taint of a closed node still has the effect with which it comes."""
    return any(_is_ours(taint) and taint.effect == TaintEffect.NO_EXECUTE for taint in node.taints)


def next_taints(node: Node, *, closed: bool) -> tuple[Taint, ...]:
    """A node's taints one step on: our own one evicts no more, or is gone; `closed` keeps pods off."""
    if not (evicts(node) and node.ready):
        return node.taints if closed else without_unregistered(node.taints)
    return tuple(
        replace(taint, effect=TaintEffect.NO_SCHEDULE) if _is_ours(taint) else taint for taint in node.taints
    )


def without_unregistered(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The taints without the one that keeps pods off a node which is not registered."""
    return tuple(taint for taint in taints if not _is_ours(taint))


def _is_ours(taint: Taint) -> bool:
    return taint.key == UNREGISTERED_TAINT
