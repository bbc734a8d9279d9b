"""Advice, ranked by dollars a month, with figures that never count a dollar twice.

Each option is tried by itself: `alone` is what it saves by itself. Options overlap: a pool on spot has less
to win from newer types. So they are also taken one on top of the other, the largest first: `on_top` is what
an option saves besides those above it, and the sum of these is what all of them save together.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from nodeless.explain.advice.bill import Bill, bill_anew, bill_now
from nodeless.explain.advice.options import IMPLIED, Manifest, Option, options_of
from nodeless.explain.advice.usage import Usage, fittings
from nodeless.explain.decisions import Situation
from nodeless.explain.words import count, price
from nodeless.model.bill import HOURS_A_MONTH
from nodeless.model.instance_types import Catalog
from nodeless.model.pools import PROVISIONER, Pool
from nodeless.model.snapshot import Snapshot

#: Options that are tried, each by a solve or two; the others are counted in a remark.
MOST_TRIES = 60
#: Dollars an hour below which two bills are the same.
_SAME = 1e-6
_CONSOLIDATE = "Consolidate"


@dataclass(frozen=True, slots=True)
class Advice:
    """One piece of advice; money in US dollars an hour.

    Attributes:
        code: What kind of change.
        subject: The object that it is of.
        title: What it does, in a line.
        alone: What it saves by itself.
        on_top: What it saves besides the advice above it; None where that excludes it.
        excludes: Titles of advice that cannot be followed with this one.
        risk: What may be worse then.
        change: Fragments of manifests.
        how: How the figure was found.
    """

    code: str
    subject: str
    title: str
    alone: float
    on_top: float | None
    excludes: tuple[str, ...]
    risk: str
    change: tuple[Manifest, ...]
    how: str


@dataclass(frozen=True, slots=True)
class AdviceReport:
    """All advice for a cluster; money in US dollars an hour."""

    now: Bill
    anew: Bill
    advice: tuple[Advice, ...]
    tried: tuple[str, ...]
    """What saves nothing."""
    remarks: tuple[str, ...]
    """What costs nothing and deserves a look."""
    notes: tuple[str, ...] = ()

    @property
    def together(self) -> float:
        """What all advice saves that does not exclude other advice above it."""
        return fsum(one.on_top for one in self.advice if one.on_top is not None)

    def to_json(self) -> dict[str, Any]:
        """As a document; dollars a month beside those an hour."""
        return {
            "now": _money(self.now.price),
            "together": _money(self.together),
            "pendingPods": self.now.refused,
            "unpricedNodes": self.now.unpriced,
            "heldNodes": [{"node": node, "reason": reason} for node, reason in self.anew.held],
            "advice": [
                {
                    "code": one.code,
                    "subject": one.subject,
                    "title": one.title,
                    "alone": _money(one.alone),
                    "onTop": None if one.on_top is None else _money(one.on_top),
                    "excludes": list(one.excludes),
                    "risk": one.risk,
                    "change": list(one.change),
                    "how": one.how,
                }
                for one in self.advice
            ],
            "triedInVain": list(self.tried),
            "remarks": list(self.remarks),
            "notes": list(self.notes),
        }


def _money(dollars: float) -> dict[str, float]:
    return {"perHour": round(dollars, 6), "perMonth": round(dollars * HOURS_A_MONTH, 2)}


@dataclass(slots=True)
class _Tried:
    option: Option
    alone: float
    bill: Bill


def advise(
    situation: Situation,
    wide: Catalog,
    usage: Usage | None = None,
    *,
    least: float = 0.0,
    spot_note: str = "",
    notes: Iterable[str] = (),
    tried: Callable[[int, int], None] | None = None,
) -> AdviceReport:
    """Try every option by the solver.

    Args:
        situation: The cluster.
        wide: What each pool may buy if its requirements allowed it, by pool key.
        usage: What containers use, where that is known.
        least: Dollars an hour below which a saving is no advice.
        spot_note: What spot prices rest on.
        notes: Lines on what the figures rest on.
        tried: Told before each option how many were tried, of how many.
    """
    now, anew = bill_now(situation, wide), bill_anew(situation, wide)
    # What is there may be better than what a solve finds: then nothing is won by planning anew. Where a
    # solve finds no place for pods that run, as beyond a limit, changes are compared with what it finds.
    lost = anew.refused - now.refused
    start = now if lost <= 0 and now.price <= anew.price else anew
    fits, over = fittings(situation.snapshot, usage) if usage is not None else ([], [])
    possible = list(options_of(situation, wide, fits, spot_note))
    options, more = possible[:MOST_TRIES], len(possible) - MOST_TRIES
    left_out = f"{count(lost, 'pod')} that run would have no place if planned again, and are in no saving"
    untried = [f"{count(more, 'more change was', 'more changes were')} not tried"] if more > 0 else []
    outcomes = []
    for number, option in enumerate(options):
        if tried is not None:
            tried(number, len(options))
        outcomes.append(_try(option, situation, wide, start))
    gaining = sorted(
        (one for one in outcomes if one is not None and one.alone > max(least, _SAME)),
        key=lambda one: (-one.alone, one.option.title),
    )
    titles = {one.option.title for one in gaining}
    consolidation = _consolidation(situation, now, start, least) if lost <= 0 else ()
    advice = [*consolidation, *_stacked(gaining, situation, wide, start)]
    # The order of what is on top of what, which is by dollars; what is excluded comes last.
    advice.sort(key=lambda one: one.on_top is None)
    found = usage.how if usage is not None else []
    return AdviceReport(
        now,
        anew,
        tuple(advice),
        tuple(option.title for option in options if option.title not in titles),
        (*over, *overlaps(situation.snapshot), *untried),
        (*notes, *((left_out,) if lost > 0 else ()), *(f"usage: {line}" for line in found)),
    )


def _try(option: Option, situation: Situation, wide: Catalog, start: Bill) -> _Tried | None:
    """An option by itself; None where pods that have a place at the start have none."""
    bill = bill_anew(option.apply(situation), wide)
    return None if bill.refused > start.refused else _Tried(option, start.price - bill.price, bill)


def _consolidation(situation: Situation, now: Bill, start: Bill, least: float) -> Iterable[Advice]:
    saved = now.price - start.price
    if saved <= max(least, _SAME):
        return
    off = [pool for _, pool in sorted(situation.snapshot.pools.items()) if not pool.consolidation_enabled]
    if off:
        title = f"let {', '.join(pool.key for pool in off)} be consolidated"
    else:
        title = "let consolidation continue: `nodeless plan --target` shows its commands"
    yield Advice(
        _CONSOLIDATE,
        ", ".join(pool.key for pool in off) or "the cluster",
        title,
        saved,
        saved,
        (),
        "pods are evicted, within their budgets and those of the pools",
        tuple(_consolidated(pool) for pool in off),
        f"now {price(now.price)}; {price(start.price)} with all pods of pools that may move planned again",
    )


def _consolidated(pool: Pool) -> Manifest:
    if pool.reference.kind == PROVISIONER:
        version, spec = "karpenter.sh/v1alpha5", {"consolidation": {"enabled": True}}
    else:
        disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5m"}
        version, spec = "karpenter.sh/v1", {"disruption": disruption}  # type: ignore[dict-item]
    return {"apiVersion": version, "kind": pool.reference.kind, "metadata": {"name": pool.name}, "spec": spec}


def _stacked(gaining: Sequence[_Tried], situation: Situation, wide: Catalog, start: Bill) -> Iterable[Advice]:
    """Advice with what each saves on top of those before it."""
    there, reached, taken = situation, start.price, dict[str, str]()
    for one in gaining:
        option = one.option
        rivals = tuple(
            other.option.title
            for other in gaining
            if option.excludes and other is not one and other.option.excludes == option.excludes
        )
        on_top: float | None = None
        if option.excludes not in taken:
            changed = option.apply(there)
            bill = bill_anew(changed, wide)
            on_top = max(reached - bill.price, 0.0) if bill.refused <= start.refused else 0.0
            if on_top > _SAME:
                there, reached = changed, reached - on_top
                taken |= {option.excludes: option.title} if option.excludes else {}
        prices = f"{price(one.bill.price)} instead of {price(start.price)}"
        how = f"solved: {prices}, all pods that may move planned again"
        how += f"; {option.note}" if option.note else ""
        yield Advice(
            option.code,
            option.subject,
            option.title,
            one.alone,
            on_top,
            rivals,
            option.risk,
            option.change,
            how,
        )


def overlaps(snapshot: Snapshot) -> list[str]:
    """Pools that take each other's pods: one is never used, or it is chance which one is."""
    # A static pool has its nodes whatever pods wait, and takes none of them.
    pools = [pool for _, pool in sorted(snapshot.pools.items()) if not pool.invalid and pool.replicas is None]
    found = []
    for pool in pools:
        for other in pools:
            if (
                pool is other
                or pool.weight < other.weight
                or (pool.weight == other.weight and pool.key > other.key)
            ):
                continue
            if not _covers(pool, other):
                continue
            if pool.weight > other.weight:
                found.append(
                    f"{other.key} is shadowed by {pool.key}, which has the higher weight ({pool.weight}) "
                    f"and takes "
                    "all of its pods: it is used only when that one's limits are reached"
                )
            elif _covers(other, pool):
                found.append(
                    f"{pool.key} and {other.key} take the same pods: price decides, and then the name"
                )
    return found


def _covers(pool: Pool, other: Pool) -> bool:
    """Whether a pool can make every node that another one can, for the same pods."""
    if not {(taint.key, taint.value, taint.effect) for taint in pool.taints} <= {
        (taint.key, taint.value, taint.effect) for taint in other.taints
    }:
        return False
    if any(pool.labels.get(key) != value for key, value in other.labels.items()):
        return False
    for key in pool.requirements:
        if key in IMPLIED:
            continue
        mine, theirs = pool.requirements[key], other.requirements.get(key)
        if (
            theirs is None
            or mine.intersect(theirs).values != theirs.values
            or mine.complement != theirs.complement
        ):
            return False
    return True


def held_line(bill: Bill) -> str:
    """How many nodes stay because of their pods; empty for none."""
    return f"{count(len(bill.held), 'node stays', 'nodes stay')} because of their pods" if bill.held else ""
