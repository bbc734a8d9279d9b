"""One class at one step of its relaxation: divided among domains, put on open and fresh nodes.

A whole batch is divided at once. While every domain can have fresh nodes without end, the division
is carried out domain by domain; where limits may close one early, step by step, so that no domain
gets ahead of one that turns out to be full. A whole plan may be made on `Trust` that none does.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from nodeless.model.labels import HOSTNAME, WELL_KNOWN
from nodeless.model.requirements import DOES_NOT_EXIST, IN, NOT_IN, Requirement
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim, Part
from nodeless.scheduling.capacity.limits import RemainingLimits
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.supply import FREE, ReservationOption
from nodeless.scheduling.capacity.targets import Targets
from nodeless.scheduling.first_fit.filling import Existing, RoomByDomain
from nodeless.scheduling.first_fit.growth import cheapest_growth
from nodeless.scheduling.first_fit.open_nodes import OpenNodes
from nodeless.scheduling.first_fit.options import bound_keys, options_of
from nodeless.scheduling.first_fit.relaxing import Attempt
from nodeless.scheduling.meter import Meter
from nodeless.scheduling.pods.classes import Amounts, Mask, PodClass
from nodeless.scheduling.pods.constraints import NodeRequirements, node_requirements_of
from nodeless.scheduling.spread.sharing import ENDLESS, NO_ROOM, Option
from nodeless.scheduling.topology.tracking import Topology

#: Seconds for requirements that are bound to domains, for each option looked at, and for each open node.
_BINDING, _OPTION, _NODE = 25e-6, 4e-6, 25e-6
#: Seconds for each expression of such requirements beyond a few: all of them are merged anew.
_MERGED, _FEW = 8e-6, 4
#: Seconds for each of the options of which any will do.
_CHOICE = 8e-6
#: Seconds for each value of each option.
_VALUE = 0.6e-6


@dataclass(slots=True, eq=False)
class Trust:
    """Whether batches are divided at once although limits may close a domain, and whether that came true."""

    given: bool = False
    broken: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RoomThere:
    """The room that exists, and where pods are put on it, by pod key."""

    existing: Existing
    placements: dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class PackingContext:
    """What the placing of every class shares."""

    open: OpenNodes
    budgets: RemainingLimits
    topology: Topology
    targets: Targets
    meter: Meter
    trust: Trust = field(default_factory=Trust)
    bound: dict[tuple[NodeRequirements, tuple[str, ...], Option], NodeRequirements | None] = field(
        default_factory=dict
    )
    """Wishes with domains added; None where they contradict."""
    labels: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    choices: dict[tuple[tuple[str, ...], tuple[str, ...]], Sequence[Option]] = field(default_factory=dict)

    def values(self, key: str) -> tuple[str | None, ...]:
        """The values that a label may have on new nodes, None for its absence."""
        if key not in self.labels:
            values = self.topology.domains.launchable(key)
            self.labels[key] = values if key in WELL_KNOWN else (*values, None)
        return self.labels[key]

    def options(self, keys: tuple[str, ...], tables: Sequence[PoolTable]) -> Sequence[Option]:
        """The choices of domains of some keys that nodes of some pools may be in."""
        memo = (keys, tuple(table.pool.key for table in tables))
        if memo not in self.choices:
            found = self.choices[memo] = tuple(options_of(keys, self.values, tables))
            self.meter.spend(_VALUE * len(found) * len(keys))
        return self.choices[memo]

    def bind(
        self, node_requirements: NodeRequirements, keys: tuple[str, ...], option: Option
    ) -> NodeRequirements | None:
        """The requirements of a node in an option's domains."""
        if not keys:
            return node_requirements
        memo = (node_requirements, keys, option)
        if memo not in self.bound:
            self.meter.spend(_BINDING + _MERGED * max(0, len(node_requirements.expressions) - _FEW))
            domains = tuple(
                Requirement.of(key, DOES_NOT_EXIST) if value is None else Requirement.of(key, IN, (value,))
                for key, value in zip(keys, option, strict=True)
            )
            bound = node_requirements_of((*node_requirements.expressions, *domains))
            self.bound[memo] = bound if isinstance(bound, NodeRequirements) else None
        return self.bound[memo]


class ClassPlacer:
    """One attempt to find room for a class on new nodes of some pools."""

    def __init__(
        self,
        packing_context: PackingContext,
        pods: PodClass,
        attempt: Attempt,
        tables: Sequence[PoolTable],
        *,
        fresh: bool = False,
        beside: Amounts | None = None,
        types: Mask | None = None,
        only: int | None = None,
        within: Sequence[Requirement] = (),
        there: RoomThere | None = None,
    ) -> None:
        """What limits the choice of nodes.

        Args:
            packing_context: What is shared with other classes.
            pods: The class.
            attempt: What is asked for it.
            tables: The pools.
            fresh: Nodes that were opened before take none.
            beside: New nodes have so much room beside one of the class.
            types: New nodes are of these types, given one pool.
            only: No other node than this, which is open, takes any.
            within: The domains that nodes must be in.
            there: Room that comes before new nodes in each domain that gets pods.
        """
        self._beside = beside
        self._types = types
        self._only = only
        self._first = len(packing_context.open) if fresh else only or 0
        self._packing_context = packing_context
        self._open = packing_context.open
        self._topology = packing_context.topology
        self._pods = pods
        self._rules = attempt.rules
        self._tables = tuple(tables)
        self._meter = packing_context.meter
        topology = packing_context.topology
        self._keys, self._for_others = self._decided(pods)
        self._there = there
        self._room_there: RoomByDomain | None = None
        self._options: list[Option] = []
        self._by_option: list[NodeRequirements] = []
        kept_off = [*self._kept_off(), *within]
        wanted = (
            node_requirements_of((*attempt.node_requirements.expressions, *kept_off))
            if kept_off
            else attempt.node_requirements
        )
        if topology.counters.hopeless(attempt.rules) or not isinstance(wanted, NodeRequirements):
            return
        with self._meter.for_others(self._for_others):
            self._find_options(wanted)

    def _find_options(self, wanted: NodeRequirements) -> None:
        """Find the options in which new nodes can be."""
        for option in self._packing_context.options(self._keys, self._tables):
            if self._meter.over:
                return
            self._meter.spend(_OPTION)
            node_requirements = self._packing_context.bind(wanted, self._keys, option)
            if node_requirements is not None and any(
                table.fresh(self._pods, node_requirements) is not None for table in self._tables
            ):
                self._options.append(option)
                self._by_option.append(node_requirements)

    def _decided(self, pods: PodClass) -> tuple[tuple[str, ...], float]:
        """The keys whose domain is decided for a class, and the part of the work that others' rules make.

        Once that is too much, only those are decided that pods of its own namespace look at.
        """
        packing_context, topology = self._packing_context, self._topology
        own = topology.keys_of(replace(self._rules, repelled_by=()))
        every = topology.keys_of(self._rules, pods.adds)
        keys = bound_keys(own, every, packing_context.values)
        if keys == own:
            return keys, 0.0
        namespace = pods.pods[0].partition("/")[0]
        rules = replace(
            self._rules, repelled_by=tuple(topology.of_namespace(self._rules.repelled_by, namespace))
        )
        mine = bound_keys(
            own, topology.keys_of(rules, topology.of_namespace(pods.adds, namespace)), packing_context.values
        )
        if mine == keys or not self._meter.common_left:
            return mine, 0.0
        options = len(packing_context.options(mine, self._tables)) / max(
            1, len(packing_context.options(keys, self._tables))
        )
        return keys, max(0.0, 1.0 - options)

    def _kept_off(self) -> list[Requirement]:
        """Domains that others' anti-affinity keeps the class out of, of keys that are not decided for it."""
        taken: dict[str, set[str]] = {}
        for topology_group in self._rules.repelled_by:
            if topology_group.key != HOSTNAME and topology_group.key not in self._keys:
                domains = self._topology.counters[topology_group].domains
                taken.setdefault(topology_group.key, set()).update(
                    each for each, count in domains.items() if count
                )
        return [Requirement.of(key, NOT_IN, values) for key, values in sorted(taken.items()) if values]

    def run(self, waiting: Sequence[str]) -> Sequence[str]:
        """Place what can be placed; returns the pods that are left."""
        with self._meter.for_others(self._for_others):
            return self._run(waiting)

    def _run(self, waiting: Sequence[str]) -> Sequence[str]:
        endless = self._packing_context.trust.given or self._endless()
        if self._there is not None and self._is_balanced():
            keys = self._topology.keys_of(self._pods.hard_rules)
            self._room_there = self._there.existing.room_by_domain(self._pods, keys)
        options = [*self._options, *self._only_there()]
        room = [ENDLESS] * len(self._options)
        done = 0
        while done < len(waiting) and self._options and not self._meter.over:
            self._meter.spend(_OPTION * len(self._options))
            if self._topology.counters.bootstraps(self._rules):
                placed = self._seed(waiting[done:])
                if placed == 0:
                    break
                done += placed
                continue
            there = self._left_there()
            left = [there.get(option[0] or "", 0) for option in options[len(self._options) :]]
            shares = self._topology.shares(
                self._rules,
                self._keys,
                options,
                [*room, *left],
                len(waiting) - done,
                stepwise=not endless,
                there=there,
            )
            if not shares:
                break
            done += self._follow(shares, options, room, waiting, done)
        return waiting[done:]

    def _follow(
        self,
        shares: Sequence[tuple[list[int], int]],
        options: Sequence[Option],
        room: list[int],
        waiting: Sequence[str],
        first: int,
    ) -> int:
        """Carry a division out, as far as no domain turns out to be full: that gets no more `room`.

        `options`: those of new nodes, and after them domains in which there is only room that is there.

        Returns:
            How many of the waiting pods from `first` on were placed.
        """
        done = first
        for chosen, number in shares:
            if self._meter.over:
                break
            keys = waiting[done : done + number]
            placed = self._into_room_there([options[index] for index in chosen], keys)
            new = [index for index in chosen if index < len(self._options)]
            placed += self._place(new, keys[placed:], number - placed) if new else 0
            done += placed
            if placed < number:
                self._packing_context.trust.broken |= (
                    self._packing_context.trust.given and not self._endless()
                )
                for index in new:
                    room[index] = 0
                break
        return done - first

    def _is_balanced(self) -> bool:
        """Whether room that exists may be left only because other domains had to get pods before."""
        rules = self._pods.hard_rules
        return (
            any(rule.counts_itself and rule.topology_group.key in self._keys for rule in rules.spread)
            and not rules.affinity
            and set(self._topology.keys_of(rules)) <= set(self._keys)
        )

    def _only_there(self) -> list[Option]:
        """Domains of a single key that have room which is there, and in which no new node can be."""
        if self._room_there is None or self._room_there.keys != self._keys or len(self._keys) != 1:
            return []
        return sorted(option for option in self._room_there.slots if option not in self._options)

    def _left_there(self) -> Mapping[str, int]:
        """The room that is there, by the domains of a single key."""
        room = self._room_there
        if room is None or len(room.keys) != 1:
            return NO_ROOM
        return {option[0]: number for option, number in room.left.items() if option[0] is not None}

    def _into_room_there(self, options: Sequence[Option], waiting: Sequence[str]) -> int:
        if self._there is None or self._room_there is None:
            return 0
        # What other pods count decides nothing about room that exists.
        at = [self._keys.index(key) for key in self._room_there.keys]
        inside = dict.fromkeys(tuple(option[place] for place in at) for option in options)
        found = self._there.existing.fill_domains(self._room_there, inside, waiting)
        self._there.placements.update(found)
        return len(found)

    def _part(self, node_requirements: NodeRequirements) -> Part:
        return Part(self._pods, node_requirements, self._rules, self._tables, 0)

    def _endless(self) -> bool:
        """Whether no option can run out of nodes, or no rule minds."""
        if not self._topology.tightens(self._rules, self._keys):
            return True
        return self._topology.counters.on_fresh(self._rules) > 0 and all(
            any(
                not table.limit_names
                and self._open.supply.plain(table)
                and table.fresh(self._pods, node_requirements) is not None
                for table in self._tables
            )
            for node_requirements in self._by_option
        )

    def _seed(self, waiting: Sequence[str]) -> int:
        """The first pods of a group whose others must follow to the same domain."""
        room = [ENDLESS] * len(self._options)
        together = self._topology.together_on_host(self._rules)
        while not self._meter.over:
            self._meter.spend(_OPTION * len(self._options))
            shares = self._topology.shares(self._rules, self._keys, self._options, room, 1)
            chosen = [index for share, _ in shares for index in share]
            if not chosen:
                return 0
            placed = self._gather(chosen, waiting) if together else self._place(chosen, waiting, 1)
            if placed:
                return placed
            # Limits close these domains; another may do.
            for index in chosen:
                room[index] = 0
        return 0

    def _gather(self, chosen: Sequence[int], waiting: Sequence[str]) -> int:
        """As many as possible on one node: the first that holds all, else the one that holds most."""
        most = {index: self._alone(index, len(waiting)) for index in chosen}
        self._meter.spend(_OPTION * len(chosen))
        best: tuple[int, int | None, int] = (0, None, 0)
        host = self._topology.counters.on_nodes(self._rules, len(self._open))
        for index, option in self._candidates(chosen):
            if self._meter.over:
                return 0
            if self._open.nodes[index].table in self._tables:
                limit = most[option] if host is None else min(most[option], int(host[index]))
                held = min(limit, self._open.nodes[index].capacity(self._pods, self._by_option[option]))
                best = max(best, (held, index, option), key=lambda entry: entry[0])
        count, at, option = best
        fresh = {index: min(most[index], self._largest_fresh(index)) for index in chosen}
        for size in sorted(set(fresh.values()), reverse=True) if count < len(waiting) else ():
            if size <= count:
                break
            largest = [index for index in chosen if fresh[index] == size]
            placed = self._into_fresh_nodes(largest, waiting, size, most=1, least=size)
            placed = placed or self._into_fresh_nodes(largest, waiting, size, most=1)
            if placed:
                return placed
        if at is None:
            return 0
        return self._open.place(at, self._part(self._by_option[option]), waiting, count)

    def _alone(self, index: int, want: int) -> int:
        """How many pods the rules let into one option when all others get none."""
        shares = self._topology.shares(self._rules, self._keys, [self._options[index]], [want], want)
        return sum(number for _, number in shares)

    def _largest_fresh(self, index: int) -> int:
        counts = [
            int(fresh[1].max(where=self._packing_context.budgets.affordable(table), initial=0))
            for table in self._tables
            if (fresh := table.fresh(self._pods, self._by_option[index])) is not None
        ]
        return min(max(counts, default=0), self._topology.counters.on_fresh(self._rules))

    def _place(self, chosen: Sequence[int], waiting: Sequence[str], want: int) -> int:
        """Place so many pods in any of the chosen options; returns how many found room.

        Reserved capacity is paid for already: it is used before room on nodes that this pass opens.
        """
        placed = 0
        self._meter.spend(_CHOICE * len(chosen))
        if any(self._open.supply.reserves(table) for table in self._tables):
            placed = self._into_open_nodes(chosen, waiting, want, reserved=True)
            placed += self._into_fresh_nodes(chosen, waiting[placed:], want - placed, reserved=True)
        placed += self._into_open_nodes(chosen, waiting[placed:], want - placed)
        return placed + self._into_fresh_nodes(chosen, waiting[placed:], want - placed)

    def _into_open_nodes(
        self, chosen: Sequence[int], waiting: Sequence[str], want: int, *, reserved: bool = False
    ) -> int:
        placed = 0
        if not want:
            return placed
        host = self._topology.counters.on_nodes(self._rules, len(self._open)) if len(self._open) else None
        for index, option in self._candidates(chosen):
            if placed == want or self._meter.over:
                return placed
            limit = ENDLESS if host is None else int(host[index])
            if reserved and not self._open.supply.way_of(self._open.nodes[index]).reservation:
                continue
            if limit and self._open.nodes[index].table in self._tables:
                asked = self._part(self._by_option[option])
                placed += self._open.place(index, asked, waiting, min(limit, want - placed), placed)
        if placed < want and not reserved and self._topology.together_on_host(self._rules):
            placed += self._into_grown_nodes(chosen, waiting[placed:], want - placed)
        return placed

    def _into_grown_nodes(self, chosen: Sequence[int], waiting: Sequence[str], want: int) -> int:
        """Room for pods that must be on nodes which are too small for them: those grow."""
        placed = 0
        vain: set[int] = set()
        while placed < want and not self._meter.over:
            self._meter.spend(_NODE * len(chosen) * (1 + len(self._open)))
            growth = cheapest_growth(
                self._open.nodes,
                self._packing_context.budgets,
                self._pods,
                self._by_option,
                self._growing(chosen, want - placed, vain),
            )
            if growth is None:
                break
            node = self._open.nodes[growth.index]
            before = node.types
            node.become(growth.rows)
            asked = self._part(self._by_option[growth.option])
            taken = self._open.place(growth.index, asked, waiting, growth.take, placed)
            if not taken:
                node.become(before)
                vain.add(growth.index)
            placed += taken
        return placed

    def _growing(
        self, chosen: Sequence[int], want: int, vain: Collection[int]
    ) -> Iterator[tuple[int, int, int]]:
        """Open nodes that the rules allow, the options that each may be in, and the most pods for it."""
        host = self._topology.counters.on_nodes(self._rules, len(self._open))
        if host is None:
            return
        for option in chosen:
            possible = self._open.may_be(self._keys, self._options[option])
            for index in np.flatnonzero(possible & (host > 0)).tolist():
                node = self._open.nodes[index]
                if self._admitted(index) and index not in vain and node.table in self._tables:
                    most = min(want, int(host[index]))
                    if not self._open.supply.is_unchanged:
                        most = min(most, self._open.supply.takes(node))
                    yield index, option, most

    def _admitted(self, index: int) -> bool:
        """Whether an open node is one of those that may take pods."""
        return index >= self._first and self._only in (None, index)

    def _candidates(self, chosen: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Open nodes that may have room, in order, each with the option that suits it best."""
        if len(self._open) <= self._first:
            return
        roomy = self._open.roomy(self._pods.requests)
        roomy[: self._first] = False
        if self._only is not None:
            roomy[self._only + 1 :] = False
        host = self._topology.counters.on_nodes(self._rules, len(self._open))
        if host is not None:
            roomy = roomy & (host > 0)
        masks = [self._open.may_be(self._keys, self._options[index]) for index in chosen]
        if len(chosen) == 1:
            for index in np.flatnonzero(roomy & masks[0]).tolist():
                self._meter.spend(_NODE)
                yield index, chosen[0]
            return
        for index in np.flatnonzero(roomy & np.logical_or.reduce(masks)).tolist():
            possible = [option for option, mask in zip(chosen, masks, strict=True) if mask[index]]
            self._meter.spend(_NODE * (1 + len(possible)))
            best = self._open.best(index, self._pods, self._by_option, possible)
            if best is not None:
                yield index, best

    def _into_fresh_nodes(
        self,
        chosen: Sequence[int],
        waiting: Sequence[str],
        want: int,
        most: int = ENDLESS,
        *,
        reserved: bool = False,
        least: int = 1,
    ) -> int:
        """Room on at most so many new nodes, each of which holds `least` of the class."""
        limit = self._topology.counters.on_fresh(self._rules) if self._only is None else 0
        placed = opened = 0
        for table in self._tables:
            while placed < want and limit and opened < most and not self._meter.over:
                node_requirements = self._open_fresh(
                    table, chosen, min(limit, want - placed), reserved=reserved, least=least
                )
                if node_requirements is None:
                    break
                opened += 1
                most_now = min(limit, want - placed)
                taken = self._open.place(
                    len(self._open) - 1, self._part(node_requirements), waiting, most_now, placed
                )
                placed += taken
                alike = 0 if reserved else self._alike(table, chosen, (limit, want - placed), taken)
                for _ in range(min(alike, most - opened)):
                    twin = self._open.repeat(self._pods, waiting[placed : placed + taken])
                    self._packing_context.budgets.opened(twin)
                    placed += taken
                    opened += 1
        return placed

    def _alike(self, table: PoolTable, chosen: Sequence[int], asked: tuple[int, int], taken: int) -> int:
        """How many more fresh nodes come out like the last one, which took so many pods.

        That is so where nothing runs short, as long as more pods wait than any type holds.

        Args:
            table: Their pool.
            chosen: The options that they may be opened in.
            asked: The most on one node that rules allow, and the pods that wait.
            taken: Pods on the last node.
        """
        limit, want = asked
        if not taken or table.limit_names or not self._open.supply.plain(table):
            return 0
        held = [
            int(fresh[1].max())
            for index in chosen
            if (fresh := table.fresh(self._pods, self._by_option[index])) is not None
        ]
        enough = min(limit, max(held, default=limit))
        return (want - enough) // taken + 1 if want >= enough else 0

    def _open_fresh(
        self,
        table: PoolTable,
        chosen: Sequence[int],
        want: int,
        *,
        reserved: bool = False,
        least: int = 1,
    ) -> NodeRequirements | None:
        """Open a node that takes at least so many of the class, in the option where a pod is cheapest."""
        for _, node_requirements, way in self._by_price(table, chosen, want):
            if (reserved and not way.reservation) or self._open.supply.room(way) < least:
                continue
            fresh = table.fresh(self._pods, node_requirements)
            if fresh is None:
                continue
            terms, counts = fresh
            holds = terms.types & (counts >= least)
            if self._types is not None:
                holds &= self._types
            roomy = holds
            if self._beside is not None:
                roomy = holds & (table.room - self._pods.requests * least >= self._beside).all(axis=1)
            affordable = self._packing_context.budgets.affordable(table)
            if not (roomy & affordable).any() and self._packing_context.budgets.tighten(table):
                self._open.refresh()
                affordable = self._packing_context.budgets.affordable(table)
            types = roomy & affordable
            if types.any():
                most = min(want, self._open.supply.room(way))
                kept = self._packing_context.targets.types(table, self._pods, terms, counts, types, most)
                # Where nobody comes for the room beside the pods, types without it will do.
                node = InFlightNodeClaim.opened(table, kept, holds & affordable)
                if table.least and not node.capacity(self._pods, node_requirements):
                    continue
                self._open.append(node)
                self._open.supply.opened(node, way)
                self._packing_context.budgets.opened(node)
                return node_requirements
        return None

    def _by_price(
        self, table: PoolTable, chosen: Sequence[int], want: int
    ) -> list[tuple[float, NodeRequirements, ReservationOption]]:
        """What to ask of a fresh node, the option and the way in which a pod is cheapest first."""
        if len(chosen) == 1 and self._open.supply.plain(table):
            return [(0.0, self._by_option[chosen[0]], FREE)]
        priced: list[tuple[float, int, int, NodeRequirements, ReservationOption]] = []
        for index, way in product(chosen, self._open.supply.ways(table)):
            if self._meter.over:
                break
            self._meter.spend(_NODE)
            node_requirements = self._open.supply.bind(self._by_option[index], way)
            fresh = table.fresh(self._pods, node_requirements) if node_requirements is not None else None
            if node_requirements is not None and fresh is not None:
                terms, counts = fresh
                goal = min(want, int(counts.max()), self._open.supply.room(way))
                price = float(terms.prices[counts >= goal].min()) / goal
                priced.append((price, index, len(priced), node_requirements, way))
        return [
            (price, node_requirements, way)
            for price, _, _, node_requirements, way in sorted(priced, key=lambda entry: entry[:3])
        ]
