"""Pods that keep their node from being disrupted: disruption budgets, and pods that asked for it."""

from collections.abc import Iterable, Iterator

from nodeless.model.disruption import PodDisruptionBudget, Verdict, VerdictCode
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.model.taints import Taint
from nodeless.nodeclaim.draining import may_stay
from nodeless.scheduling.pods.selecting import selects
from nodeless.state.protection import protection


class Blocking:
    """The budgets of a snapshot, by namespace."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._budgets: dict[str, list[PodDisruptionBudget]] = {}
        for _, budget in sorted(snapshot.disruption_budgets.items()):
            self._budgets.setdefault(budget.namespace, []).append(budget)

    def first_blocker(self, pods: Iterable[Pod], now: float, taint: Taint | None = None) -> Verdict | None:
        """The first pod, by key, that blocks; None when the pods may be evicted.

        Args:
            pods: Pods of one node.
            now: Seconds since the epoch.
            taint: The mark of the drain: budgets do not count for pods that it leaves alone. None: all but
                static pods are evicted.
        """
        return next(self._blocks(pods, now, taint), None)

    def _blocks(self, pods: Iterable[Pod], now: float, taint: Taint | None) -> Iterator[Verdict]:
        for pod in sorted(pods, key=lambda pod: pod.key):
            if pod.terminal or pod.deletion_timestamp is not None:
                continue
            annotation = protection(pod, now)
            if annotation:
                yield Verdict(VerdictCode.POD_PROTECTED, f"pod {pod.key} has the annotation {annotation}")
            if pod.owned_by_node:
                continue
            concerned = [
                budget
                for budget in self._budgets.get(pod.namespace, ())
                if selects(budget.selector, pod.labels)
            ]
            if concerned and taint is not None and may_stay(pod, taint):
                continue
            if len(concerned) > 1:
                names = ", ".join(budget.key for budget in concerned)
                yield Verdict(
                    VerdictCode.SEVERAL_BUDGETS, f"pod {pod.key} has several disruption budgets: {names}"
                )
            for budget in concerned:
                if budget.refuses(pod):
                    text = f"disruption budget {budget.key} allows no eviction of pod {pod.key}"
                    yield Verdict(VerdictCode.BUDGET_EXHAUSTED, text)
