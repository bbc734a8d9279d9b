"""What preferences cost: the plan beside the plan that is made without a soft rule.

Both plans are made by the same solver with the same options for the same pods and existing nodes, so the
figure is the difference of their prices. Effects are not additive: of two rules that ask for the same, each
alone costs nothing, for the other one still holds. So all of them are left out together, too.

Fewer rules cost no more. So none is tried by itself where all together cost less than is told (`LEAST_SHARE`,
`LEAST_MONTH`), and nothing is tried where the plan's lower bound, which knows no soft rules of pods, says
that they cannot cost as much. How many plans are made is bounded by their pods and their work (`most_plans`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from nodeless.explain.decisions import Situation
from nodeless.explain.soft_rules import SoftRule, soft_rules, without_soft_rules
from nodeless.explain.words import listed
from nodeless.explain.workload_counts import holding, workloads_of
from nodeless.model.bill import HOURS_A_MONTH
from nodeless.model.plan import Plan, RelaxationCode
from nodeless.model.workloads import Workload, workload_of
from nodeless.scheduling import Policy

#: What is told: by how much the plan is dearer at least, as a share of the plan without the rule, and in US
#: dollars a month. Less is what the search for a cheaper plan finds on one day and misses on another.
LEAST_SHARE, LEAST_MONTH = 0.01, 1.0
#: Plans made again at most, the pods of all of these plans together, and the seconds of work that they are.
MOST_PLANS, MOST_PODS, MOST_WORK = 10, 50_000, 12.0
_HINT = "hint: --preference-costs always"


class Trying(StrEnum):
    """How often is planned again to find what preferences cost."""

    AUTO = "auto"
    """As often as is quick (`most_plans`)."""
    ALWAYS = "always"
    """As often as there are kinds of soft rules, and once more."""
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Price:
    """By how much a plan is dearer than another one."""

    extra: float
    """US dollars an hour."""
    extra_per_month: float
    """US dollars a month."""
    share: float | None
    """Of the price of the other plan, 0.5 for half as much again; None: that one costs nothing."""

    def __str__(self) -> str:
        share = "" if self.share is None else f"+{_rounded(100 * self.share)} %, "
        return f"{share}{_rounded(self.extra_per_month)} USD a month"


@dataclass(frozen=True, slots=True)
class PreferenceCost:
    """What soft rules of one kind cost."""

    code: str
    """What a plan says where such a rule is relaxed (`RelaxationCode`)."""
    key: str
    """Its topology key, the labels that a node affinity looks at, or the taint; empty where it has none."""
    name: str
    """The rule, for people: `ScheduleAnyway over hosts`."""
    pods: int
    """How many pods have it."""
    workloads: tuple[tuple[Workload, int], ...]
    price: Price

    def __str__(self) -> str:
        return f"{self.name}: {self.price} ({holding(self.workloads)})"


@dataclass(frozen=True, slots=True)
class PreferenceCosts:
    """What the soft rules in a plan cost; empty where they cost nothing."""

    costs: tuple[PreferenceCost, ...]
    """Of each kind that costs something by itself, the dearest first."""
    rules: tuple[str, ...]
    """Names of all kinds of soft rules that were left out; none where they cost nothing."""
    together: Price | None = None
    """Of all kinds together; None: not tried, or other pods have a place without them."""
    untried: tuple[str, ...] = ()
    """Names of the kinds that were not tried by themselves, because that takes too long."""

    def __bool__(self) -> bool:
        return bool(self.rules)

    def lines(self) -> tuple[str, ...]:
        """For people: a line for each kind, then for all together, then what was not tried."""
        return (*map(str, self.costs), *self._sum(), *self._not_tried())

    def _sum(self) -> Iterator[str]:
        """What all cost together, where that is not what the only one costs."""
        if self.together is None or [cost.price for cost in self.costs] == [self.together]:
            return
        known = {cost.name for cost in self.costs}
        others = [name for name in self.rules if name not in known]
        named = f" ({'with ' if known else ''}{listed(others, 3)})" if others else ""
        yield f"all {len(self.rules)} together{named}: {self.together}"

    def _not_tried(self) -> Iterator[str]:
        if not self.untried:
            return
        names = listed(self.untried, 3)
        if self.untried == self.rules and self.together is None:
            yield f"not tried, as the plan is large: {names}; {_HINT}"
        else:
            yield f"not tried each by itself, as the plan is large: {names}; {_HINT}"


NOTHING = PreferenceCosts((), ())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What counts of a plan: its price in US dollars an hour, and whose pods have no place."""

    price: float
    refused: Counter[Workload] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """A kind of soft rule and the pods that have it."""

    rule: SoftRule
    pods: tuple[str, ...]
    workloads: tuple[tuple[Workload, int], ...]


def preference_costs(
    situation: Situation,
    plan: Plan,
    trying: Trying = Trying.AUTO,
    among: Collection[Workload] | None = None,
    tried: Callable[[int, int], None] | None = None,
) -> PreferenceCosts:
    """What the soft rules of a plan's pods cost.

    Args:
        situation: What was planned.
        plan: Its plan.
        trying: How often is planned again.
        among: The workloads whose rules are left out; None: all.
        tried: Called before each kind of rule with how many were tried, of how many.
    """
    if trying is Trying.NEVER or not plan.new_nodes:
        return NOTHING
    pods = sorted(
        {
            *(key for node in plan.new_nodes for key in node.pods),
            *plan.placements,
            *(refusal.pod for refusal in plan.refusals),
        }
    )
    groups = rule_groups(situation, pods, among)
    if not groups or not _may_cost(plan, groups):
        return NOTHING

    def again(left_out: Sequence[RuleGroup]) -> Outcome:
        changed = without_groups(situation, left_out)
        return _outcome(changed, changed.plan())

    most = most_plans(situation.policy, len(pods), sum(plan.work.values()))
    base = _outcome(situation, plan)
    return priced_groups(base, groups, again, None if trying is Trying.ALWAYS else most, tried)


def rule_groups(
    situation: Situation, pods: Iterable[str], among: Collection[Workload] | None = None
) -> tuple[RuleGroup, ...]:
    """The kinds of soft rules that have influence on a plan for some pods, those of the most pods first."""
    snapshot = situation.snapshot
    if among is not None:
        pods = [key for key in pods if key in snapshot.pods and workload_of(snapshot.pods[key]) in among]
    groups = [
        RuleGroup(rule, tuple(keys), workloads_of(snapshot, keys))
        for rule, keys in soft_rules(snapshot, pods).items()
        if not (situation.policy.ignore_preferences and rule.can_be_ignored)
    ]
    return tuple(sorted(groups, key=lambda group: (-len(group.pods), group.rule)))


def without_groups(situation: Situation, groups: Iterable[RuleGroup]) -> Situation:
    """The situation as if the pods had no such rules."""
    some = tuple(groups)
    pods = {key for group in some for key in group.pods}
    rules = {group.rule for group in some}
    return replace(situation, snapshot=without_soft_rules(situation.snapshot, rules, pods))


def most_plans(policy: Policy, pods: int, work: float = 0.0) -> int:
    """How many plans of so many pods are made again without being asked for.

    Args:
        policy: How they are made.
        pods: How many pods that is about.
        work: Seconds of counted work that the plan was; its search for a cheaper one comes on top of it.
    """
    seconds = policy.time_box + work
    by_work = int(MOST_WORK / seconds) if seconds * MOST_PLANS > MOST_WORK else MOST_PLANS
    return min(MOST_PLANS, MOST_PODS // max(1, pods), by_work)


def priced_groups(
    base: Outcome,
    groups: Sequence[RuleGroup],
    again: Callable[[Sequence[RuleGroup]], Outcome],
    most: int | None = None,
    tried: Callable[[int, int], None] | None = None,
) -> PreferenceCosts:
    """What each group costs, and all of them together.

    Args:
        base: The plan with all rules.
        groups: The rules, in the order in which they are tried.
        again: Plans without some of them.
        most: Plans that may be made again; None: as many as it takes.
        tried: Called before each group with how many were tried, of how many.
    """
    if not groups:
        return NOTHING
    names = tuple(str(group.rule) for group in groups)
    if most is not None and most < 1:
        return PreferenceCosts((), names, untried=names)
    without_all = again(groups)
    together = _difference(base, without_all)
    if together is None and without_all.refused == base.refused:
        return NOTHING
    alone = groups if most is None else groups[: most - 1]
    prices = [together]
    if len(groups) > 1:
        prices = []
        for number, group in enumerate(alone):
            if tried is not None:
                tried(number, len(alone))
            prices.append(_difference(base, again((group,))))
    costs = [_cost(group, price) for group, price in zip(groups, prices, strict=False) if price is not None]
    ordered = tuple(sorted(costs, key=lambda cost: (-cost.price.extra, cost.name)))
    untried = names[len(prices) :]
    if together is None and not ordered and not untried:
        return NOTHING
    return PreferenceCosts(ordered, names, together, untried)


def _may_cost(plan: Plan, groups: Iterable[RuleGroup]) -> bool:
    """Whether rules may cost as much as is told, as far as the plan's lower bound knows.

    The bound is on what the pods that have a place cost without preferences, but for taints of pools.
    """
    if plan.lower_bound is None or plan.refusals:
        return True
    if any(group.rule.code == RelaxationCode.PREFER_NO_SCHEDULE for group in groups):
        return True
    return _is_told(plan.cheapest_found - plan.lower_bound, plan.lower_bound)


def _outcome(situation: Situation, plan: Plan) -> Outcome:
    pods = situation.snapshot.pods
    refused = Counter(workload_of(pods[refusal.pod]) for refusal in plan.refusals if refusal.pod in pods)
    return Outcome(plan.cheapest_found, refused)


def _difference(base: Outcome, other: Outcome) -> Price | None:
    """By how much a plan is dearer than another one; None: by nothing that is told.

    Where the two leave other pods without a place, their prices say nothing.
    """
    extra = base.price - other.price
    if base.refused != other.refused or not _is_told(extra, other.price):
        return None
    return Price(extra, extra * HOURS_A_MONTH, extra / other.price if other.price > 0 else None)


def _is_told(extra: float, price: float) -> bool:
    return extra * HOURS_A_MONTH >= LEAST_MONTH and extra >= LEAST_SHARE * price


def _cost(group: RuleGroup, price: Price) -> PreferenceCost:
    rule = group.rule
    return PreferenceCost(str(rule.code), rule.key, str(rule), len(group.pods), group.workloads, price)


def _rounded(amount: float) -> str:
    """As many digits as matter: `212`, `9.5`, `1,234`."""
    return f"{amount:,.0f}" if amount >= 10 else f"{amount:.1f}"
