"""Less money for the same pods: nodes that can go, nodes that can be merged, a node that can be cheaper.

Problem: choose a set of candidates to end and replacements to launch so that every pod of
the candidates has a place, the replacements surely cost less than the candidates, budgets
hold, and the price saved for each unit of disturbance is large. Three searches:

1. deletions: candidates by ratio; one goes if its pods fit on nodes that stay. All that are
   found go in one command, which is simulated once more as a whole.
2. merges: sets of nodes against the cheapest nodes for all their pods. The sets are those that the target
   suggests, the solver's plan for all pods that may move (`sets`). In a small cluster they are searched even
   where nodes can go, and the command that is worth more is made: once the pods have moved to the largest
   node, what would have been cheaper for all of them is out of reach, or moves them a second time.
3. a single replacement, where there is neither.

`node_capacity` discards most candidates without a simulation; a trial then runs the solver on the few
nodes that may take the pods, and so do merges; every command is confirmed by the solver on the whole
snapshot.
Every command lowers the price of the nodes by a fixed part at least, so that they end by
themselves on a steady workload.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import fsum, inf, isfinite

from immutables import Map

from nodeless.disruption.balance import EACH_NODE_MORE, BalancedScore, Exchange, least_saving
from nodeless.disruption.candidates import Candidate
from nodeless.disruption.faults import AtWork
from nodeless.disruption.least_prices import LeastPrices
from nodeless.disruption.node_capacity import NodeCapacity
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.replacing import Replacement, cheaper_replacement
from nodeless.disruption.searches import Searches
from nodeless.disruption.sets import CandidateSet, candidate_sets, price_shares
from nodeless.disruption.simulation import (
    Outcome,
    apply_command,
    price_alone,
    simulate_scheduling,
)
from nodeless.model.commitments import Usage, cover
from nodeless.model.disruption import Command, DisruptionReason, Verdict, VerdictCode
from nodeless.model.instance_types import Catalog, InstanceType
from nodeless.model.labels import NOT_BEFORE
from nodeless.model.plan import PlannedNode
from nodeless.model.requirements import Requirements
from nodeless.model.resources import fits
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import FEWEST_NODES, Policy
from nodeless.scheduling.capacity.coverage import covered_catalog, unused, usages_of

#: Trials of single replacements in one pass; the others have their turn in the next ones.
_MOST_SINGLES = 200
#: A cluster of so many nodes is small.
_SMALL = 20
#: There, what first fit finds no better place for is packed more thoroughly: so many pods in one pass, each
#: set counting for some at least, with so many seconds of work for a set at most (4 ms on average for sets
#: of a few pods).
_THOROUGH_PODS, _LEAST_PODS, _SECONDS = 300, 4, 0.1
#: Pods of a node, at most, for which any number of nodes is searched in that time.
_FEW_PODS = 25
#: A fee for each node with which a plan of fewer nodes is looked for, as a part of what a node may cost.
_FEE = 1 / 8
#: US dollars an hour that differ only after so many digits are the same.
_DIGITS = 9

#: Seconds for which nodes whose pods fit on others wait for a command that would move these pods once more.
_AWAITED = 30.0

_Rank = tuple[float, bool, tuple[str, ...]]


class Consolidation:
    """One search. `verdicts` says why each candidate that was looked at stays."""

    def __init__(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        policy: DisruptionPolicy,
        now: float,
        closed: frozenset[str],
        score: BalancedScore | None = None,
        tried: frozenset[str] = frozenset(),
        at: AtWork | None = None,
        searches: Searches | None = None,
        *,
        sparing: bool = False,
    ) -> None:
        """A search.

        Args:
            snapshot: The cluster, with everything that waits in its place.
            catalog: What each pool may buy.
            policy: How commands are judged.
            now: Seconds since the epoch.
            closed: Names of nodes to which no pod is moved.
            score: How commands are weighed; by the arguments above when None.
            tried: Claims that an earlier pass tried to replace in vain.
            at: Learns which claims the search has come to.
            searches: What earlier passes found.
            sparing: Whether replacements are left to a later pass where no node can go without one.
        """
        self._tried, self._sparing = tried, sparing
        self._searches = searches or Searches()
        self._at = at or AtWork()
        self._score = score or BalancedScore(snapshot, catalog, policy, now)
        self._snapshot = snapshot
        self._catalog = catalog
        # What first fit finds no place for need not move, and what only a program places ends dearer.
        self._policy = replace(
            policy,
            solving=replace(policy.solving, domains_by_program=False, keeps_off_spot=True, nominates=False),
        )
        self._now = now
        self._closed = closed
        self._cheaper: dict[tuple[str, float], tuple[InstanceType, ...]] = {}
        self._is_small = len(snapshot.nodes) <= _SMALL
        self._thorough = _THOROUGH_PODS if self._is_small else 0
        self.verdicts: dict[str, Verdict] = {}
        #: Names of the claims among which commands are looked for.
        self._may_end: frozenset[str] = frozenset()
        #: The command that is worth most of those that will repay in a moment.
        self._awaited: Command | None = None

    @property
    def again_at(self) -> float:
        """When a command is worth it that is refused now (seconds since the epoch); infinity: none is."""
        return self._score.again_at

    @cached_property
    def _capacity(self) -> NodeCapacity:
        """What the nodes have room for before any of them goes."""
        return NodeCapacity(self._snapshot, self._closed)

    @cached_property
    def _least_prices(self) -> LeastPrices:
        return LeastPrices(self._at_best, self._capacity, self._snapshot)

    @cached_property
    def _at_best(self) -> Catalog:
        """What each pool may buy, at a nominal price where enough is left of a commitment.

        What candidates use of it counts as left, since it is free for what takes their place.
        """
        solving = self._policy.solving
        if not solving.commitments:
            return self._buyable
        left = self._left_without(self._may_end)
        some = unused(solving.commitments, left)
        return (
            covered_catalog(self._buyable, self._snapshot.pools.values(), some, left)
            if some
            else self._buyable
        )

    @cached_property
    def _usages(self) -> Sequence[Usage]:
        """What may use commitments, before any node goes."""
        return usages_of(self._snapshot, self._catalog)

    @cached_property
    def _buyable(self) -> Catalog:
        """The types that the requirements of each pool leave it."""
        return {
            key: self._allowed_types(key, instance_types) for key, instance_types in self._catalog.items()
        }

    def _allowed_types(self, key: str, instance_types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        wanted = self._requirements_of(key)
        return tuple(instance_type for instance_type in instance_types if instance_type.allowed_by(wanted))

    def _requirements_of(self, key: str) -> Requirements:
        pool = self._snapshot.pools.get(key)
        return pool.requirements if pool is not None else Requirements()

    def search(self, candidates: Sequence[Candidate], left: dict[str, int]) -> Command | None:
        """The best command among the candidates; `left`: nodes that each pool's budgets still allow."""
        ordered = sorted(candidates, key=lambda candidate: (-candidate.ratio, candidate.name))
        self._may_end = frozenset(candidate.name for candidate in candidates)
        deletions = self._deletions(ordered, left)
        if deletions is None:
            if self._sparing:
                self._leave_for_later(ordered)
                return None
            return self._merges(ordered, left) or self._single(ordered, left)
        if not self._is_small or any(NOT_BEFORE in candidate.claim.annotations for candidate in ordered):
            # Where a replacement failed, the next one may fail, too, and nodes can go without one.
            return deletions
        found = self._merges(ordered, left, deletions) or deletions
        if found is deletions and self._waits(deletions, ordered):
            return None
        for candidate in ordered:
            if candidate.name in deletions.claims and candidate.name not in found.claims:
                text = "its pods have room on other nodes, but a command that is worth more goes first"
                self.verdicts[candidate.name] = Verdict(VerdictCode.NOT_REACHED, text)
        return found

    def _leave_for_later(self, ordered: Sequence[Candidate]) -> None:
        text = "something cheaper is looked for in a later turn: the last search took long"
        for candidate in ordered:
            earlier = self.verdicts.get(candidate.name)
            said = f"{earlier.message}; {text}" if earlier is not None else text
            self.verdicts[candidate.name] = Verdict(VerdictCode.NOT_REACHED, said)

    def again(self, candidates: Sequence[Candidate], command: Command) -> Command | str:
        """What a command of an earlier search is now, by the same questions; or why it is none any more."""
        if not command.replacements:
            refusals = {
                candidate.name: self._score.refusal([candidate], candidate.price or 0.0)
                for candidate in candidates
            }
            confirmed = self._confirm(
                [candidate for candidate in candidates if refusals[candidate.name] is None]
            )
            said = [*self.verdicts.values(), *filter(None, refusals.values())]
            return confirmed or said[0].message
        self._may_end = frozenset(candidate.name for candidate in candidates)
        found = self._replacement(candidates)
        if isinstance(found, str):
            return found
        now = _command(candidates, found)
        refusal = self._score.refusal(candidates, now.saving, found.expected)
        if refusal is not None:
            return refusal.message
        return command if _within(command, now) else now

    def _deletions(self, ordered: Sequence[Candidate], left: dict[str, int]) -> Command | None:
        spent = dict(left)
        state, capacity = self._snapshot, NodeCapacity(self._snapshot, self._closed)
        going: list[Candidate] = []
        #: Nodes that stay anyway: they cannot go themselves, or take pods in this command.
        staying: dict[str, None] = {}
        receiving: set[str] = set()
        for candidate in ordered:
            self._at.on(candidate.name)
            if spent[candidate.pool.key] <= 0 or len(going) >= self._policy.most_nodes:
                continue
            if candidate.node.name in receiving:
                continue
            unschedulable_pod = capacity.unschedulable_pod([candidate])
            if unschedulable_pod is not None:
                self._stay(candidate, f"pod {unschedulable_pod.key} has room on no other node")
                staying[candidate.node.name] = None
                continue
            if self._is_crowded(candidate, capacity):
                staying[candidate.node.name] = None
                continue
            refusal = self._score.refusal([candidate], candidate.price or 0.0)
            if refusal is not None:
                self.verdicts[candidate.name] = refusal
                staying[candidate.node.name] = None
                continue
            outcome = self._fit(state, candidate, capacity, staying)
            if not outcome.placed:
                self._stay(candidate, outcome.reason)
                staying[candidate.node.name] = None
                continue
            going.append(candidate)
            spent[candidate.pool.key] -= 1
            state = apply_command(state, candidate, outcome.placements)
            receiving |= set(outcome.placements.values())
            staying |= dict.fromkeys(sorted(set(outcome.placements.values())))
            capacity.close(candidate.node.name)
            for pod in candidate.pods:
                capacity.take(outcome.placements[pod.key], pod)
        self._at.on()
        return self._confirm(going)

    def _is_crowded(self, candidate: Candidate, capacity: NodeCapacity) -> bool:
        """Whether the other nodes surely hold not all of its pods; that is then why it stays."""
        pods = len(candidate.pods)
        max_pods = capacity.max_pods([candidate]) if pods else 0
        if max_pods >= pods:
            return False
        self._stay(candidate, f"the other nodes have room for {max_pods} of its {pods} pods at most")
        return True

    def _fit(
        self, state: Snapshot, candidate: Candidate, capacity: NodeCapacity, staying: Iterable[str]
    ) -> Outcome:
        """On nodes that stay anyway, so that the others remain free to go; else on any."""
        first, some = capacity.targets(candidate, staying), capacity.targets(candidate)
        if first:
            outcome = self._trial(state, candidate, first, {})
            if outcome.placed or first == some:
                return outcome
        return self._trial(state, candidate, some, {})

    def _confirm(self, going: list[Candidate]) -> Command | None:
        """The command, or half of it, or a quarter: what the solver places on the whole snapshot."""
        while going:
            outcome = self._simulate(going, {}, self._bound)
            if outcome.placed:
                spilled = self._spill_price(outcome)
                if not outcome.spill or spilled < self._limit(going):
                    return _command(going, Replacement((), spilled, spilled) if spilled else None)
                outcome = replace(outcome, reason=_left_over(outcome, spilled))
            for candidate in going[(len(going) + 1) // 2 :] or going:
                self._stay(candidate, outcome.reason)
            going = going[: (len(going) + 1) // 2] if len(going) > 1 else []
        return None

    def _merges(
        self, ordered: Sequence[Candidate], left: dict[str, int], best: Command | None = None
    ) -> Command | None:
        """The best of merges and of the best command so far."""
        exchange = Exchange.of(ordered)

        def rank_of(command: Command) -> _Rank:
            return _rank(exchange.value(command), command.claims, bool(command.replacements))

        for rank, bound, candidate_set in self._promising_sets(ordered, left, exchange):
            if best is not None and rank >= rank_of(best):
                break
            self._at.on(*(each.name for each in candidate_set))
            refusal = self._refusal_at_best(candidate_set, bound)
            saving = sum(each.price or 0.0 for each in candidate_set) - bound
            if refusal is not None and not self._is_soon_repaid(refusal, candidate_set, saving, bound):
                continue
            found = self._find_replacement(candidate_set, partial(self._by_plan, candidate_set))
            if isinstance(found, str):
                continue
            command = _command(candidate_set, found)
            if best is not None and rank_of(command) >= rank_of(best):
                continue
            refusal = self._score.refusal(candidate_set, command.saving, found.expected)
            if refusal is None:
                best = command
            elif self._is_soon_repaid(refusal, candidate_set, command.saving, found.expected) and (
                self._awaited is None or rank_of(command) < rank_of(self._awaited)
            ):
                self._awaited = command
        self._at.on()
        return best

    def _waits(self, deletions: Command, ordered: Sequence[Candidate]) -> bool:
        """Whether pods would move once more for a command that is worth more, and will repay in a moment."""
        awaited = self._awaited
        if awaited is None or set(deletions.claims).isdisjoint(awaited.claims):
            return False
        exchange = Exchange.of(ordered)
        if exchange.value(awaited) <= exchange.value(deletions):
            return False
        text = f"waits until a command repays that is worth more: {awaited.message}"
        waits = Verdict(VerdictCode.NOT_REPAID, text)
        self.verdicts = dict.fromkeys(_names(ordered), waits) | self.verdicts
        self.verdicts |= dict.fromkeys(awaited.claims, waits)
        return True

    def _promising_sets(
        self, ordered: Sequence[Candidate], left: dict[str, int], exchange: Exchange
    ) -> list[tuple[_Rank, float, CandidateSet]]:
        """The rank that a command with a set likely has, what new capacity costs it at least, and the set.

        Those first that are likely worth most: what is likely worth less than a command that is found is not
        searched. What the pods of a set cost at the target is what they would likely cost.
        """
        target = self._target(ordered)
        shares = price_shares(target, ordered)
        found = []
        for candidate_set in candidate_sets(target, ordered, left, self._policy.most_nodes):
            bound = self._least_prices.of(candidate_set)
            if bound < self._limit(candidate_set):
                likely = sum(shares.get(pod.key, 0.0) for each in candidate_set for pod in each.pods)
                worth = exchange.worth(candidate_set, max(bound, likely))
                found.append((_rank(worth, _names(candidate_set)), bound, candidate_set))
        return sorted(found, key=lambda each: each[0])

    def _target(self, ordered: Sequence[Candidate]) -> Sequence[PlannedNode]:
        """What would be bought for all pods that may move, were their nodes not there.

        A part of the nodes may save enough where all of them together do not, so it is not looked for only
        where nothing at all can be saved.
        """
        price = sum(candidate.price or 0.0 for candidate in ordered)
        if len(ordered) < 2 or self._least_prices.of(ordered) >= price:
            return ()
        return self._searches.target(ordered, lambda: self._simulate(ordered, self._catalog).new_nodes)

    def _find_replacement(
        self, candidates: Sequence[Candidate], by_plan: Callable[[], Replacement | str | None]
    ) -> Replacement | str:
        """What would take the candidates' place, as far as it is worth looking at.

        What would not pay by the plan alone does not pay as kube-scheduler binds its pods, which takes longer
        to simulate; and what pays in a part of the cluster is looked at once more in the whole. What is
        refused even at what it is expected to cost by the plan alone is not looked at any further.
        """
        found = self._searches.replacement_by_plan(candidates, by_plan)
        if isinstance(found, str) or (found is not None and self._is_refused(candidates, found)):
            return found
        return self._searches.replacement(candidates, partial(self._replacement, candidates))

    def _is_refused(self, candidates: Sequence[Candidate], found: Replacement) -> bool:
        # Not at what it costs at most, which another plan may lower: plans are made for what is expected.
        saving = fsum(candidate.price or 0.0 for candidate in candidates) - found.expected
        refusal = self._score.refusal(candidates, saving, found.expected)
        return refusal is not None and not self._is_soon_repaid(refusal, candidates, saving, found.expected)

    def _by_plan(self, candidates: Sequence[Candidate]) -> Replacement | str | None:
        """What would take their place by the plan alone, in the part of the cluster that matters."""
        world = self._relevant_nodes(candidates)
        if world is None and self._policy.as_bound:
            world = self._snapshot
        return None if world is None else self._replacement(candidates, world)

    def _relevant_nodes(self, candidates: Sequence[Candidate]) -> Snapshot | None:
        """The nodes that matter alone; None where they are many, or pods look at others for their place.

        Nodes without room for the smallest of the pods take none of them: what is not found without these
        nodes is not found with them.
        """
        target_nodes = self._capacity.target_nodes(candidates)
        shapes = {pod.shape for candidate in candidates for pod in candidate.pods}
        if len(target_nodes) > len(self._capacity.names) // 2 or any(
            shape.spread or shape.affinity or shape.anti_affinity for shape in shapes
        ):
            return None
        return _around(self._snapshot, [*(candidate.node.name for candidate in candidates), *target_nodes])

    def _single(self, ordered: Sequence[Candidate], left: dict[str, int]) -> Command | None:
        trials = 0
        for candidate in _rotate(ordered, int(self._now // 10) * _MOST_SINGLES):
            self._at.on(candidate.name)
            if left[candidate.pool.key] <= 0 or candidate.name in self._tried:
                continue
            bound = self._least_prices.of([candidate])
            if bound >= self._limit([candidate]):
                self._too_dear(candidate, bound)
                continue
            below = self._below(candidate.price or 0.0)
            if not any(below.values()) and candidate.name in self.verdicts:
                # Nothing is cheaper, and that it cannot go without a new node was found before.
                continue
            if trials >= _MOST_SINGLES:
                text = f"something cheaper is looked for in a later turn: {_MOST_SINGLES} nodes have one"
                self.verdicts[candidate.name] = Verdict(VerdictCode.NOT_REACHED, text)
                continue
            refusal = self._refusal_at_best([candidate], bound)
            if refusal is not None:
                self.verdicts[candidate.name] = refusal
                continue
            trials += 1
            found = self._find_replacement([candidate], partial(self._by_plan_of_one, candidate, below))
            if isinstance(found, str):
                self._stay(candidate, found)
                continue
            command = _command([candidate], found)
            refusal = self._score.refusal([candidate], command.saving, found.expected)
            if refusal is None:
                return command
            self.verdicts[candidate.name] = refusal
        self._at.on()
        return None

    def _by_plan_of_one(self, candidate: Candidate, below: Catalog) -> Replacement | str | None:
        """The same for one candidate; most that have no answer are found by a trial."""
        outcome = self._trial(self._snapshot, candidate, self._capacity.targets(candidate), below)
        if not outcome.placed:
            return f"nothing cheaper holds its pods: {outcome.reason}"
        return self._by_plan([candidate])

    def _refusal_at_best(self, candidates: Sequence[Candidate], bound: float) -> Verdict | None:
        """Why candidates should stay even if nodes at the least price that there can be took their place."""
        price = sum(candidate.price or 0.0 for candidate in candidates)
        return self._score.refusal(candidates, price - bound, bound)

    def _is_soon_repaid(
        self, refusal: Verdict, candidates: Sequence[Candidate], saving: float, bought: float
    ) -> bool:
        """Whether a replacement is refused for the age of its nodes alone, and is worth waiting for."""
        if not self._is_small or refusal.code is not VerdictCode.NOT_REPAID:
            return False
        return self._score.repaid_at(candidates, saving, bought) <= self._now + _AWAITED

    def _too_dear(self, candidate: Candidate, bound: float) -> None:
        """What its pods would cost elsewhere is why it stays, after what keeps it from going without."""
        earlier = self.verdicts.get(candidate.name)
        text = "no type that may be bought holds its pods"
        if isfinite(bound):
            costs = f"{bound:.4f} USD/h at least against {candidate.price or 0.0:.4f} USD/h now"
            text = f"nothing cheaper holds its pods: they cost {costs}"
            if bound < (candidate.price or 0.0):
                text += f" (a command must save {least_saving([candidate], self._policy.least_saving):.0%})"
        self._stay(candidate, f"{earlier.message}; {text}" if earlier is not None else text)

    def _limit(self, candidates: Sequence[Candidate], launched: int = 0) -> float:
        """What so many replacements must cost less than."""
        price = sum(candidate.price or 0.0 for candidate in candidates)
        return price * (1 - least_saving(candidates, self._policy.least_saving, launched))

    def _replacement(
        self, candidates: Sequence[Candidate], world: Snapshot | None = None
    ) -> Replacement | str:
        """What would take the candidates' place, by the solver on the whole snapshot or a part of it."""
        price = sum(candidate.price or 0.0 for candidate in candidates)
        found, _ = self._replacement_by(self._policy.solving, candidates, world, self._below(price))
        pods = sum(len(candidate.pods) for candidate in candidates)
        if not isinstance(found, str) or self._thorough < pods or self._policy.solving.time_box:
            return found
        self._thorough -= max(pods, _LEAST_PODS)
        solving = replace(self._policy.solving, time_box=_SECONDS, most_new_nodes=len(candidates))
        better, least = self._replacement_by(solving, candidates, world, self._below(price))
        if isinstance(better, str) and len(candidates) > 1 and least < self._limit(candidates):
            better, _ = self._replacement_by(solving, candidates, world, self._of_other_types(candidates))
            if not isinstance(better, str) and any(
                _could_stay(candidate, better, self._capacity.served) for candidate in candidates
            ):
                return found
        if isinstance(better, str) and len(candidates) == 1 and self._may_become_several(candidates[0]):
            self._thorough -= max(pods, _LEAST_PODS)
            solving = replace(solving, most_new_nodes=pods)
            better, _ = self._replacement_by(solving, candidates, world, self._below(price))
        return found if isinstance(better, str) else better

    def _may_become_several(self, candidate: Candidate) -> bool:
        """Whether several nodes may be cheaper than one, for so few pods that the search is short."""
        bound = self._least_prices.of([candidate])
        pods = len(candidate.pods)
        return pods <= min(self._thorough, _FEW_PODS) and bound < self._limit([candidate], 2)

    def _of_other_types(self, candidates: Sequence[Candidate]) -> Catalog:
        """What is cheaper than the candidates, but for their own types, of which no replacement is."""
        names = {candidate.node.instance_type for candidate in candidates}
        cheaper = self._below(sum(candidate.price or 0.0 for candidate in candidates))
        return {
            key: tuple(instance_type for instance_type in instance_types if instance_type.name not in names)
            for key, instance_types in cheaper.items()
        }

    def _replacement_by(
        self, solving: Policy, candidates: Sequence[Candidate], world: Snapshot | None, below: Catalog
    ) -> tuple[Replacement | str, float]:
        """What would take the candidates' place, or why nothing; and the price of what was planned."""
        if world is None:  # what is found in a part of the cluster is looked at once more in the whole
            solving = replace(solving, as_bound=self._policy.as_bound)
        outcome = self._simulate(candidates, below, solving, world)
        if outcome.placed and len(outcome.new_nodes) > len(candidates):
            outcome = self._with_node_fees(outcome, candidates, below, solving, world)
        if not outcome.placed:
            return outcome.reason, inf
        price = fsum(node.price for node in outcome.new_nodes)
        return self._by_outcome(outcome, candidates), price

    def _by_outcome(self, outcome: Outcome, candidates: Sequence[Candidate]) -> Replacement | str:
        """The replacement that a plan in which all pods have a place comes to, if it is one."""
        found: Replacement | str = Replacement((), 0.0, 0.0)
        if outcome.new_nodes:
            found = cheaper_replacement(outcome.new_nodes, candidates, self._catalog, self._policy)
        if isinstance(found, str) or not outcome.spill:
            return found
        spilled = self._spill_price(outcome)
        if found.worst + spilled >= self._limit(candidates, len(found.nodes)):
            return _left_over(outcome, spilled)
        return replace(found, worst=found.worst + spilled, expected=found.expected + spilled)

    def _with_node_fees(
        self,
        many: Outcome,
        candidates: Sequence[Candidate],
        below: Catalog,
        solving: Policy,
        world: Snapshot | None,
    ) -> Outcome:
        """The best that is found where the cheapest plan, `many`, launches more nodes than end.

        A node more costs what it must save (`least_saving`). A fee for each node makes plans of fewer nodes
        cheaper than those of many. What the limit leaves above the price of `many`, as the fee of the nodes
        that are too many, makes every plan without those that costs less than the limit cheaper than `many`;
        but none is found surely, so others are tried.
        """
        limit, price = self._limit(candidates), fsum(node.price for node in many.new_nodes)
        if price >= limit and solving.time_box:  # fewer nodes are no cheaper than what was searched for
            return many
        more = len(many.new_nodes) - len(candidates)
        fees = [EACH_NODE_MORE * limit, _FEE * limit / len(candidates)]
        if limit > price:
            fees.append((limit - price) / more)
        # They take together as long as the first one.
        hurried = replace(solving, time_box=solving.time_box / (len(fees) + 1))
        others = [replace(hurried, packing=FEWEST_NODES)]
        others += [replace(hurried, node_fee=solving.node_fee + fee) for fee in fees]
        best, least = many, price + self._extra(many, candidates)
        for policy in others:
            other = self._simulate(candidates, below, policy, world)
            if not other.placed:
                continue
            fee = policy.node_fee - solving.node_fee
            other = replace(other, new_nodes=tuple(_without_fee(node, fee) for node in other.new_nodes))
            price = fsum(node.price for node in other.new_nodes) + self._extra(other, candidates)
            if price < least:
                best, least = other, price
        return best

    def _extra(self, outcome: Outcome, candidates: Sequence[Candidate]) -> float:
        """What the nodes beyond the number of those that end must save, in US dollars an hour."""
        return self._limit(candidates) - self._limit(candidates, len(outcome.new_nodes))

    @property
    def _bound(self) -> Policy:
        return replace(self._policy.solving, as_bound=self._policy.as_bound)

    def _spill_price(self, outcome: Outcome) -> float:
        """What nodes cost for the pods that find no room where kube-scheduler puts the others."""
        if not outcome.spill:
            return 0.0
        return price_alone(self._snapshot, outcome.spill, self._catalog, self._policy.solving)

    def _simulate(
        self,
        candidates: Iterable[Candidate],
        catalog: Catalog,
        solving: Policy | None = None,
        world: Snapshot | None = None,
    ) -> Outcome:
        some = tuple(candidates)
        solving = self._with_left(solving or self._policy.solving, some)
        return simulate_scheduling(world or self._snapshot, some, catalog, solving, self._closed)

    def _with_left(self, solving: Policy, candidates: Iterable[Candidate]) -> Policy:
        """The policy with what the nodes that stay leave of commitments.

        Neither a part of the cluster nor of the catalog would tell.
        """
        if not solving.commitments:
            return solving
        left = self._left_without({candidate.name for candidate in candidates})
        return replace(solving, commitments_left=left)

    def _left_without(self, names: Collection[str]) -> Mapping[str, float]:
        """What is left of each commitment, by its name, once these claims use nothing of them."""
        staying = [usage for usage in self._usages if usage.name not in names]
        return cover(self._policy.solving.commitments, staying).left

    def _trial(
        self, state: Snapshot, candidate: Candidate, names: Sequence[str], catalog: Catalog
    ) -> Outcome:
        if not candidate.pods:
            return Outcome(True, "", (), {})
        small = _around(state, [candidate.node.name, *names])
        return simulate_scheduling(small, [candidate], catalog, self._policy.solving)

    def _below(self, price: float) -> Catalog:
        """The types that each pool may buy, of which one costs less than a price."""
        return {key: self._types_below(key, price) for key in self._catalog}

    def _types_below(self, key: str, price: float) -> tuple[InstanceType, ...]:
        memo = (key, price)
        if memo not in self._cheaper:
            wanted = self._requirements_of(key)
            self._cheaper[memo] = tuple(
                instance_type
                for instance_type, at_best in zip(self._buyable[key], self._at_best[key], strict=True)
                if any(
                    offering.available and offering.price < price and offering.allowed_by(wanted)
                    for offering in at_best.offerings
                )
            )
        return self._cheaper[memo]

    def _stay(self, candidate: Candidate, message: str) -> None:
        self.verdicts[candidate.name] = Verdict(VerdictCode.UNCONSOLIDATABLE, message)


def _could_stay(candidate: Candidate, found: Replacement, served: Collection[str]) -> bool:
    """Whether a candidate would hold the pods of a replacement that costs no less.

    What it does not announce of `served` resources it may have by devices.
    """
    allocatable = candidate.node.allocatable
    ignored = {name for name in served if not allocatable.get(name)}
    return any(
        (candidate.price or 0.0) <= node.price
        and fits({name: n for name, n in node.requests.items() if name not in ignored}, allocatable)
        for node in found.nodes
    )


def _without_fee(node: PlannedNode, fee: float) -> PlannedNode:
    """A node that was planned with a fee for each node, at its price."""
    return replace(
        node,
        alternatives=tuple(
            replace(each, offering=replace(each.offering, price=each.offering.price - fee))
            for each in node.alternatives
        ),
    )


def _left_over(outcome: Outcome, price: float) -> str:
    """Why a command that would pay by the plan alone does not pay as kube-scheduler binds its pods."""
    more = f" and {len(outcome.spill) - 1} others" if len(outcome.spill) > 1 else ""
    return (
        f"pod {outcome.spill[0]}{more} would have no place once kube-scheduler has spread those before it,"
        f" and a node for it would cost {price:.4f} USD/h"
    )


def _names(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    return tuple(sorted(candidate.name for candidate in candidates))


def _rank(worth: float, claims: tuple[str, ...], launches: bool = True) -> _Rank:
    """The least goes first: what is worth most, what launches nothing, then by the claims' names.

    So commands that are worth the same go in an order of their own, in whichever order they are found.
    """
    return -round(worth, _DIGITS), launches, claims


def _command(candidates: Sequence[Candidate], replacement: Replacement | None) -> Command:
    names = _names(candidates)
    # To the bit the same, in whatever order the candidates come.
    before = fsum(candidate.price or 0.0 for candidate in candidates)
    pods = sum(len(candidate.pods) for candidate in candidates)
    nodes = replacement.nodes if replacement is not None else ()
    after = replacement.worst if replacement is not None else 0.0
    if nodes:
        expected = replacement.expected if replacement is not None else 0.0
        text = (
            f"{len(nodes)} cheaper nodes hold the {pods} pods of {len(names)} nodes: {before:.4f} USD/h now,"
            f" {expected:.4f} expected, {after:.4f} at most"
        )
    else:
        text = (
            f"the {pods} pods of {len(names)} nodes fit on nodes that stay: {before - after:.4f} USD/h less"
        )
    return Command(DisruptionReason.UNDERUTILIZED, names, nodes, before, after, pods, text)


def _within(command: Command, now: Command) -> bool:
    """Whether everything that a command would launch is what would be launched for its nodes now."""
    return len(command.replacements) == len(now.replacements) and _launched_types(command) <= _launched_types(
        now
    )


def _launched_types(command: Command) -> set[tuple[str, str]]:
    return {
        (str(node.pool), alternative.instance_type)
        for node in command.replacements
        for alternative in node.alternatives
    }


def _rotate(ordered: Sequence[Candidate], by: int) -> list[Candidate]:
    if not ordered:
        return []
    start = by % len(ordered) if len(ordered) > _MOST_SINGLES else 0
    return [*ordered[start:], *ordered[:start]]


def _around(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """A snapshot of a few nodes."""
    nodes = {name: snapshot.nodes[name] for name in names}
    bound = {name: snapshot.pods_of_node[name] for name in nodes if name in snapshot.pods_of_node}
    claims = {claim.name: claim for node in nodes.values() if (claim := snapshot.claim_of(node)) is not None}
    return replace(
        snapshot,
        nodes=Map(nodes),
        node_names=Map({node.provider_id: name for name, node in nodes.items() if node.provider_id}),
        claims=Map(claims),
        claim_names=Map({claim.provider_id: name for name, claim in claims.items() if claim.provider_id}),
        pods=Map({key: snapshot.pods[key] for keys in bound.values() for key in keys}),
        pods_of_node=Map(bound),
    )
