"""Spot or on-demand for pods that say what an interruption loses: the choice with its figures."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from immutables import Map

from nodeless.explain.decisions import Situation
from nodeless.explain.words import count, price
from nodeless.model.labels import ON_DEMAND, SPOT
from nodeless.model.lost_work import LostWork
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of
from nodeless.scheduling import with_running_choices
from nodeless.scheduling.pods.lost_work import invalid_lost_work


@dataclass(frozen=True, slots=True)
class CapacityReason:
    """What speaks for the capacity type of some pods; US dollars an hour for each of them."""

    capacity_type: str
    """The cheaper one, with what interruptions lose: `on-demand` or `spot`."""
    message: str
    lost_seconds: int
    """Of work, by one interruption."""
    lost_by: int
    """How many pods lose it together."""
    expected: float
    """What interruptions lose on spot."""
    saving: float
    """What spot saves otherwise."""
    per_month: float
    """How often the work of each is interrupted on spot in a month."""
    pods: tuple[str, ...] = ()
    workloads: tuple[tuple[Workload, int], ...] = ()


def reason_of(lost: LostWork) -> CapacityReason | None:
    """The choice for pods that lose so much; None: there was nothing to choose."""
    choice = lost.choice
    if choice is None:
        return None
    capacity_type = ON_DEMAND if choice.on_demand else SPOT
    work = f"{format_span(lost.seconds)} of work"
    whose = f" of each of {count(lost.pods, 'pod')}" if lost.pods > 1 else ""
    saved = f"spot saves {price(choice.saving)}"
    if choice.saving <= 0:
        saved = f"spot costs {price(-choice.saving)} more"
    expected = f"{price(choice.expected)} expected at {choice.per_month:.3g} a month"
    text = f"{capacity_type}: an interruption loses {work}{whose}, {expected}, {saved}"
    figures = (choice.expected, choice.saving, choice.per_month)
    return CapacityReason(capacity_type, text, lost.seconds, lost.pods, *figures)


def reason_of_running(situation: Situation, key: str) -> CapacityReason | None:
    """The choice for a pod that runs; None: it says of no work that it loses, or nothing is to be chosen."""
    pod = situation.snapshot.pods[key]
    alone = replace(situation.snapshot, pods=Map({key: pod}))
    settled = with_running_choices(alone, situation.catalog, situation.policy).pods[key].shape.lost_work
    return None if settled is None else reason_of(settled)


def invalid_lost_work_notes(snapshot: Snapshot) -> Iterator[str]:
    """A line for each workload whose pods say nothing that counts of the work that they lose."""
    found = {
        f"{workload_of(pod)}: {problem}"
        for pod in snapshot.pods.values()
        if pod.annotations and not pod.terminal and (problem := invalid_lost_work(pod)) is not None
    }
    yield from sorted(found)


def format_span(seconds: int) -> str:
    """`10h`, `1h30m`, `45s`."""
    hours, rest = divmod(seconds, 3600)
    parts = ((hours, "h"), (rest // 60, "m"), (rest % 60, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"
