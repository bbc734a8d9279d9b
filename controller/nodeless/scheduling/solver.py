"""`solve`: from a snapshot to a plan.

Problem
-------
Given classes c of n_c equal pods with requests q_c[r], pools p in order of weight, types t with
allocatable a_t[r], daemon overhead d_pt[r] and offerings o of price w_to (USD an hour), and
existing slots e with free room f_e[r]:

    choose   y_ce, pods of class c on slot e, and new nodes k, each with a pool p(k), a set of
             alternative types T(k), and x_ck pods of class c
    such that
      sum_c y_ce q_c[r] <= f_e[r]                                  for each slot e, resource r
      sum_c x_ck q_c[r] <= a_t[r] - d_p(k)t[r]                     for each node k, type t in T(k), resource r
      sum_e y_ce + sum_k x_ck + refused_c = n_c                    for each class c
      requirements, taints and host ports hold on every slot and for every type in T(k)
      some available offering of each t in T(k) is allowed by the node's requirements
      sum_{k: p(k)=p} max_{t in T(k)} capacity_t[r] <= limit_p[r] - used_p[r]
    so that  the fewest pods are refused, room that exists is used first, heavier pools come
             first, and (policy `fewest-nodes`) the number of new nodes is small;
    then     each node's intended type is the cheapest of T(k): min over t, o of w_to.

Method: first-fit decreasing over classes (`first_fit`) gives the first-fit plan; column generation over
node shapes (`optimizer`) looks for a cheaper one in its time box, and for the lower bound that says
how far from optimal the answer is. In array form a placement is one integer division:
floor(room[t, r] / q_c[r]) per remaining type, least over r, largest over t.

Order of work: `pods` (which, and what they ask for), `capacity` (what is there and for sale),
`first_fit` with `topology` (the first-fit plan), `optimizer` (the cheaper one), `diagnostics` (why not).

Example: 5 pods of 1 CPU and a pool of t3a types. The largest, t3a.2xlarge, holds all 5, and no
smaller one does; so T = {t3a.2xlarge} and the plan is one node. With 10 such pods the first
node takes as many as t3a.2xlarge holds (7), and the second keeps every type that holds 3, the
cheapest of which is bought.

Deterministic: same arguments, same plan to the bit, whatever the order of any mapping.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from nodeless.model.instance_types import Catalog
from nodeless.model.plan import FewerNodes, Plan, PlannedNode, PoolRefusal, Refusal, RefusalCode
from nodeless.model.pods import PodShape
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import workload_of
from nodeless.scheduling.as_bound import cheapest_as_bound
from nodeless.scheduling.batch import pool_tables, pools_in_order, settle_pods
from nodeless.scheduling.binding import nominated_places, spill
from nodeless.scheduling.capacity.existing import existing_slots
from nodeless.scheduling.capacity.in_flight_node_claim import InFlightNodeClaim, price_of, widen
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.capacity.pricing import priced
from nodeless.scheduling.capacity.static_pools import static_shortage, with_planned, with_pods
from nodeless.scheduling.capacity.terminating import lasts
from nodeless.scheduling.capacity_choices import chosen_capacities, with_choice
from nodeless.scheduling.committed import BoughtFirst, cheapest_with_commitments, covered_first
from nodeless.scheduling.devices import Devices
from nodeless.scheduling.diagnostics.refusing import refuse, refuse_pool
from nodeless.scheduling.diagnostics.relaxations import relaxations
from nodeless.scheduling.faults import MOST_FAILURES, ClassFailed, about, or_without
from nodeless.scheduling.first_fit.plan import (
    FirstFitPlan,
    SchedulingInput,
    anti_affinity_first_plan,
    first_fit_plan,
    leaving_whom_fewest_nodes_leave,
    resumed,
    topology_of,
    worked_out,
)
from nodeless.scheduling.first_fit.planned import planned
from nodeless.scheduling.meter import Meter, Shares
from nodeless.scheduling.optimizer.balances import balances_of
from nodeless.scheduling.optimizer.bound import lower_bound
from nodeless.scheduling.optimizer.bound_problem import Placed
from nodeless.scheduling.optimizer.existing_node_repack import ExistingNodeRepack
from nodeless.scheduling.optimizer.known import Known
from nodeless.scheduling.optimizer.nearly_cheapest import Tolerated
from nodeless.scheduling.optimizer.repacking import Packed, repack
from nodeless.scheduling.optimizer.work_budget import Effort
from nodeless.scheduling.pods.buffers import with_placeholders
from nodeless.scheduling.pods.classes import Axis, PodClass, requested_names, requests_of
from nodeless.scheduling.pods.constraints import PodRequirements, UnschedulableReason, demand_of
from nodeless.scheduling.pods.daemons import with_observed_requests
from nodeless.scheduling.pods.eligibility import to_place
from nodeless.scheduling.pods.gang_domains import domains_of
from nodeless.scheduling.pods.grouping import PodGroup
from nodeless.scheduling.pods.lost_work import with_lost_work
from nodeless.scheduling.pods.profiles import Profile, Profiles
from nodeless.scheduling.pods.requests import Planners, planned_whole
from nodeless.scheduling.pods.volumes import Volumes
from nodeless.scheduling.pods.zone_ids import ZoneIds
from nodeless.scheduling.policy import STRICT, Policy
from nodeless.scheduling.topology.daemon_pods import DaemonPods
from nodeless.state.expected import expected_places, place_of

#: The part of a pass after which no cheaper plan is looked for.
_LATE = 0.5
#: The part of a pass that is placing's and its successors', whatever was done before it.
_LEAST = 1 / 8
#: Seconds to read what a class of pods asks for, and for each requirement of it.
_CLASS, _EXPRESSION = 20e-6, 5e-6
#: Seconds to look up where a pod, and a pod that a claim was planned for, is expected.
_EXPECTED = 2e-6
#: Of the pass, what may be used for all classes together, or for some because others' pods count theirs.
_COMMON = 0.1
#: Of the pass, what may be used to find what a cheaper plan may buy, and what pods cost at least.
_SHAPES, _BOUND = 0.05, 0.05
#: As much as this part of the time box may be used, beside it, to prove that nothing is cheaper.
_PROOF = 0.4
#: The part of the time box for each plan that is made to see which gangs and requests are whole.
_BRIEFLY = 1 / 16
#: As much as this part of the time box may be used, beside it, to merge nodes.
_FEWER = 0.05
#: Of the pass, what may be used to say why pods are refused, and what placed pods gave up.
_TELLING = 0.05
_NOT_LOOKED_FOR = (
    "no pool has room for the pod; why not was not looked for: the pods of this namespace have used up the "
    "time that a pass has for reasons"
)
_SET_ASIDE = (
    "planning the pod takes more than its share of a pass, and other pods come first; it is tried again "
    "after them; hint: ask for less in node affinity, pod affinity and topology spread"
)


def solve(snapshot: Snapshot, catalog: Catalog, policy: Policy) -> Plan:
    """Capacity for the pods that lack it, and for static pools that lack nodes.

    Args:
        snapshot: The cluster.
        catalog: What each pool may buy, by pool key; a pool that is missing has no types.
        policy: How to pack, and which pools cannot be used now.

    Returns:
        A plan in which every eligible pod, and every placeholder of a capacity buffer or provisioning
        request, is placed once or refused once, with its reason.
    """
    snapshot = with_placeholders(snapshot)
    snapshot = replace(snapshot, daemon_sets=with_observed_requests(snapshot))
    zone_ids = ZoneIds(snapshot, policy.subnets)
    snapshot = zone_ids.in_snapshot()
    lacking = static_shortage(snapshot)
    static = static_nodes(snapshot, catalog, policy, lacking) if lacking else ()
    faults: list[str] = []
    # Each of them has to be bought, and is as cheap as its pool allows.
    bought: BoughtFirst | None = BoughtFirst(static) if static else None
    if static and policy.commitments:
        # What these use is gone for pods, whichever nodes it would be best for.
        covered = partial(covered_first, static, snapshot, catalog, policy)
        without: tuple[tuple[PlannedNode, ...], Policy, BoughtFirst | None] = (static, policy, None)
        static, policy, bought = or_without(covered, without, faults)
    if static:
        snapshot = with_planned(snapshot, static)
    planner = partial(
        cheapest_with_commitments,
        catalog=catalog,
        planner=partial(_plan_to_be_bound, zone_ids=zone_ids),
        beside=bought,
    )
    plan = planned_whole(
        snapshot,
        Planners(
            full=partial(planner, policy=policy),
            brief=partial(planner, policy=replace(policy, time_box=_BRIEFLY * policy.time_box)),
            quick=partial(planner, policy=replace(policy, time_box=0.0)),
            no_purchase=partial(_plan_around_faults, catalog={}, policy=policy, zone_ids=zone_ids),
        ),
        partial(domains_of, snapshot, catalog),
        policy.now,
    )
    if not static:
        return plan
    bound = plan.lower_bound if bought is not None else None
    return with_pods(static, replace(plan, lower_bound=bound, faults=(*plan.faults, *faults)), snapshot)


def _plan_to_be_bound(snapshot: Snapshot, catalog: Catalog, policy: Policy, zone_ids: ZoneIds) -> Plan:
    """The plan for the pods that lack capacity, looked at as kube-scheduler will bind them, if that is on."""
    plan = _plan_around_faults(snapshot, catalog, policy, zone_ids)
    if not (policy.as_bound or policy.nominates):
        return plan
    return cheapest_as_bound(plan, snapshot, catalog, policy, partial(_plan_around_faults, zone_ids=zone_ids))


def _plan_around_faults(snapshot: Snapshot, catalog: Catalog, policy: Policy, zone_ids: ZoneIds) -> Plan:
    """The plan for the pods that lack capacity, those refused in whose planning a fault shows."""
    meter, failed = Meter(most_common=_COMMON * policy.deadline), list[Refusal]()
    for _ in range(MOST_FAILURES):
        try:
            return _plan_of_pods(snapshot, catalog, policy, zone_ids, meter, failed)
        except ClassFailed as fault:
            failed += fault.refusals()
            meter.allow(float("inf"))
    return _plan_of_pods(snapshot, catalog, policy, zone_ids, meter, failed)


def _plan_of_pods(
    snapshot: Snapshot,
    catalog: Catalog,
    policy: Policy,
    zone_ids: ZoneIds,
    meter: Meter,
    failed: Sequence[Refusal],
) -> Plan:
    """The plan without the pods that are `failed`, which it refuses as said there."""
    faults: list[str] = []
    volumes, devices = Volumes(snapshot), Devices(snapshot, catalog, policy.pool_problems)
    batch, refusals = settle_pods(volumes, devices, to_place(snapshot, policy.now))
    batch = with_lost_work(zone_ids.in_pods(batch), snapshot.gang_sizes)
    nothing = 0.0 if policy.time_box else None
    if not batch:
        return Plan(refusals=_by_pod(refusals), lower_bound=nothing)
    profiles = Profiles(
        snapshot,
        batch,
        preferences=not policy.ignore_preferences,
        lasts=partial(lasts, now=policy.now, longest=policy.termination_wait),
        meter=meter,
    )
    refusals.extend(
        Refusal(key, RefusalCode.PLANNING_TOOK_TOO_LONG, (), _SET_ASIDE) for key in profiles.aside
    )
    shapes = [shape for shape, _ in profiles.groups]
    axis = Axis(
        requested_names(shapes) | requested_names(daemon.shape for daemon in snapshot.daemon_sets.values())
    )
    classes, unplannable = _classes(profiles, axis, meter)
    refusals.extend(unplannable)
    refusals.extend(failed)
    out = {refusal.pod for refusal in failed}
    classes = [pods for pods in classes if pods.pods[0] not in out]
    if policy.ignore_preferences:
        classes = [pods.without_preferred_terms() for pods in classes]
    if not classes:
        return Plan(refusals=_by_pod(refusals), lower_bound=nothing)
    pools = pools_in_order(snapshot)
    tables = pool_tables(
        snapshot,
        priced(devices.in_catalog(), pools, policy.price_adjustments, policy.node_fee),
        pools,
        axis,
        strict=policy.min_values == STRICT,
        meter=meter,
        pods=sum(len(pods.pods) for pods in classes),
    )
    by_pool = {table.pool.key: table for table in tables}
    tables = [table for table in tables if table.pool.replicas is None]
    usable = [table for table in tables if table.pool.key not in policy.pool_problems]
    slots = existing_slots(devices.in_snapshot(), by_pool, axis, volumes)
    daemon_pods = DaemonPods(profiles, by_pool.values(), slots, meter)
    classes = [_settled(pods, usable, policy, daemon_pods) for pods in classes]
    inputs = SchedulingInput(
        snapshot,
        replace(policy, deadline=max(_LEAST * policy.deadline, policy.deadline - meter.spent)),
        profiles,
        daemon_pods.to_come,
        slots,
        by_pool,
        usable,
        classes,
        len(axis),
        _places(snapshot, policy, batch, meter),
        meter,
        frozenset(pods for pods in classes if policy.late and not policy.late.isdisjoint(pods.pods)),
    )
    known = Known()
    laid = first_fit_plan(inputs)
    first_fit = or_without(
        lambda: leaving_whom_fewest_nodes_leave(worked_out(laid, inputs), inputs), laid, faults
    )
    packed = or_without(
        lambda: _packed(first_fit, inputs, known), Packed(first_fit.nodes, first_fit.placements), faults
    )
    carried = anti_affinity_first_plan(inputs, first_fit) if policy.time_box and packed.nodes else None
    if carried is not None and price_of(carried.nodes) < price_of(packed.nodes):
        first_fit, packed = carried, Packed(carried.nodes, carried.placements)
    again = resumed(inputs, first_fit, packed.nodes, packed.placements)
    if again is not None:
        first_fit, packed = again, Packed(again.nodes, again.placements)
    existing, budgets, supply = first_fit.existing, first_fit.budgets, first_fit.supply
    widen(packed.nodes)
    shares = Shares(meter, _TELLING * policy.deadline, [pods for pods, _ in first_fit.left])
    for pods, keys in first_fit.left:
        if not shares.begin(pods):
            refusals.extend(Refusal(key, RefusalCode.NO_POOL_FITS, (), _NOT_LOOKED_FOR) for key in keys)
            continue
        with about(pods.pods):
            refusals.extend(
                refuse(pods, keys, tables, budgets, supply, policy.pool_problems, first_fit.topology)
            )
        shares.end(pods)
    for _, keys in first_fit.aside:
        refusals.extend(Refusal(key, RefusalCode.PLANNING_TOOK_TOO_LONG, (), _SET_ASIDE) for key in keys)
    launched = planned(packed.nodes, policy.max_alternatives, devices.beyond)
    for node, made in zip(packed.nodes, launched, strict=True):
        if made is None:
            refusals.extend(_too_alike(node))
    kept = [(node, made) for node, made in zip(packed.nodes, launched, strict=True) if made is not None]
    refused = {refusal.pod for refusal in refusals}
    bound = or_without(
        lambda: _bound(first_fit, inputs, [made for _, made in kept], refused, packed.fewer, known),
        None,
        faults,
    )
    spilled = or_without(lambda: _spill(inputs, [node for node, _ in kept], packed.placements), None, faults)
    meter.allow(_TELLING * policy.deadline)
    return Plan(
        new_nodes=tuple(made for _, made in kept),
        placements=dict(sorted(packed.placements.items())),
        refusals=_by_pod(refusals),
        lower_bound=bound,
        fewer_nodes=packed.fewer,
        relaxations=or_without(
            lambda: relaxations(kept, packed.placements, classes, existing, usable, meter), (), faults
        ),
        choices=chosen_capacities(classes, refused),
        unusable_pools=or_without(lambda: _unusable(usable), (), faults),
        spill=spilled or (),
        work=dict(sorted(meter.by_namespace.items())),
        faults=tuple(faults),
    )


def _settled(
    pods: PodClass, tables: Sequence[PoolTable], policy: Policy, daemon_pods: DaemonPods
) -> PodClass:
    """The class with what the work that it loses, and rules on DaemonSets' pods, ask of nodes."""
    with about(pods.pods):
        return daemon_pods.apply(with_choice(pods, tables, policy))


def _bound(
    first_fit: FirstFitPlan,
    inputs: SchedulingInput,
    launched: Sequence[PlannedNode],
    refused: Collection[str],
    fewer: FewerNodes | None,
    known: Known,
) -> float | None:
    """What no plan for the pods that have a place goes below; None: not known, or no time is for it."""
    policy = inputs.policy
    if not policy.time_box:
        return None
    classes, meter = inputs.classes, inputs.meter
    meter.allow(_BOUND * policy.deadline)
    weights = {table.pool.key: table.pool.weight for table in inputs.usable}
    bought = {key: weights[str(node.pool)] for node in launched for key in node.pods}
    return lower_bound(
        [
            Placed(
                pods,
                sum(key not in refused for key in pods.pods),
                min((bought[key] for key in pods.pods if key in bought), default=float("inf")),
            )
            for pods in classes
        ],
        ExistingNodeRepack(first_fit.existing, first_fit.placements, classes),
        first_fit.budgets,
        inputs.usable,
        meter,
        # Where the number of new nodes is bounded, many plans are made for one command, and none is shown.
        Effort(_PROOF * policy.time_box if policy.most_new_nodes is None else 0.0),
        sum(node.price for node in launched) - max(0.0, fewer.price if fewer else 0.0),
        known,
        lambda: balances_of(classes, topology_of(inputs, meter)),
    )


def _spill(
    inputs: SchedulingInput, nodes: Sequence[InFlightNodeClaim], placements: Mapping[str, str]
) -> tuple[str, ...] | None:
    """The pods of a plan that find no room where kube-scheduler puts those that are not nominated."""
    policy = inputs.policy
    if not nodes and not any(inputs.snapshot.pods[key].node_name for key in placements):
        return None
    placed = [*placements, *(key for node in nodes for key in node.pods)]
    if policy.as_bound:
        return spill(inputs, nodes, placed)
    if not policy.nominates:
        return None
    nominated = nominated_places(inputs, nodes, placements)
    return spill(inputs, nodes, placed, nominated) if len(nominated) < len(placed) else None


def _unusable(tables: Iterable[PoolTable]) -> tuple[PoolRefusal, ...]:
    return tuple(refusal for refusal in map(refuse_pool, tables) if refusal is not None)


def _places(snapshot: Snapshot, policy: Policy, batch: Sequence[PodGroup], meter: Meter) -> dict[str, str]:
    """Where pods that wait are expected: as the pass before had it, else as claims and nominations say."""
    meter.spend(_EXPECTED * (len(snapshot.claims) + sum(len(pod_group.keys) for pod_group in batch)))
    expected = expected_places(snapshot, (pod_group.pods for pod_group in batch))
    known = (
        (key for pod_group in batch for key in pod_group.keys if key in policy.places)
        if policy.places
        else ()
    )
    return {**expected, **{key: place_of(snapshot, policy.places[key]) for key in known}}


def _packed(first_fit: FirstFitPlan, inputs: SchedulingInput, known: Known) -> Packed:
    """The first-fit plan, or a cheaper one where its pools are packed by price."""
    packed = Packed(first_fit.nodes, first_fit.placements)
    aims = frozenset(table.pool.key for table in inputs.usable if first_fit.targets.aims(table))
    if not aims or not first_fit.nodes:
        return packed
    if first_fit.aside or inputs.meter.spent > _LATE * inputs.policy.deadline:
        return packed
    standing = ExistingNodeRepack(
        first_fit.existing, first_fit.placements, inputs.classes, kept=inputs.places
    )
    inputs.meter.allow(_SHAPES * inputs.policy.deadline)
    try:
        return repack(
            packed,
            standing,
            first_fit.budgets,
            first_fit.supply,
            inputs.usable,
            aims,
            inputs.policy.time_box,
            inputs.policy.most_new_nodes,
            Tolerated(
                inputs.policy.fewer_nodes_tolerance,
                _FEWER * inputs.policy.time_box,
                lambda key: workload_of(inputs.snapshot.pods[key]),
            ),
            inputs.meter,
            known,
        )
    finally:
        inputs.meter.allow(float("inf"))


def static_nodes(
    snapshot: Snapshot, catalog: Catalog, policy: Policy, lacking: Mapping[str, int]
) -> tuple[PlannedNode, ...]:
    """The nodes that static pools lack, by pool key, each as its pool describes it; none without types."""
    pools = [
        pool
        for pool in pools_in_order(snapshot)
        if pool.key in lacking and pool.key not in policy.pool_problems
    ]
    axis = Axis(requested_names(daemon.shape for daemon in snapshot.daemon_sets.values()))
    prices = priced(catalog, pools, policy.price_adjustments, policy.node_fee)
    nodes: list[PlannedNode] = []
    for table in pool_tables(snapshot, prices, pools, axis, strict=policy.min_values == STRICT):
        types = table.start.types & (table.room >= 0).all(axis=1)
        bare = [InFlightNodeClaim.opened(table, types)] if types.any() else []
        for made in planned(bare, policy.max_alternatives):
            if made is not None:
                nodes += [replace(made, is_static=True)] * lacking[table.pool.key]
    return tuple(nodes)


def _classes(profiles: Profiles, axis: Axis, meter: Meter) -> tuple[list[PodClass], list[Refusal]]:
    """The classes that can be planned, and the refusals of the others."""
    refusals: list[Refusal] = []
    demands: dict[object, PodRequirements] = {}
    members: dict[tuple[PodShape, Profile], list[tuple[str, ...]]] = {}
    for (shape, mark), keys in profiles.groups.items():
        profile = profiles.of(shape, mark)
        meter.spend(_CLASS + _EXPRESSION * _expressions(shape))
        try:
            obstacle = demand_of(shape)
        except Exception as error:
            refusals.extend(ClassFailed(keys, error).refusals())
            continue
        if isinstance(obstacle, UnschedulableReason):
            refusals.extend(Refusal(key, obstacle.code, (), obstacle.message) for key in keys)
        else:
            demands.setdefault(_node_selection(shape), obstacle)
            members.setdefault((shape, profile), []).append(keys)
    return [
        PodClass(
            shape,
            demands[_node_selection(shape)],
            some[0] if len(some) == 1 else tuple(key for keys in some for key in keys),
            axis.row(requests_of(shape)),
            profile.rules,
            profile.rules.hard(),
            profile.adds,
            tuple((key, axis.row({name: 1})) for key, name in shape.shared_volumes),
        )
        for (shape, profile), some in members.items()
    ], refusals


def _expressions(shape: PodShape) -> int:
    """How many requirements the shape has in all terms."""
    terms = (*shape.required_terms, *(term for _, term in shape.preferred_terms))
    return len(shape.node_selector) * (1 + len(terms)) + sum(len(term.expressions) for term in terms)


def _node_selection(shape: PodShape) -> object:
    terms = (shape.required_terms, shape.preferred_terms, shape.volume_terms, shape.device_terms)
    return shape.node_selector, terms


def _too_alike(node: InFlightNodeClaim) -> list[Refusal]:
    """The refusals of pods whose node came to have too few different types."""
    message = f"{node.table.pool.key}: limits leave fewer different types than its minValues ask for"
    return [Refusal(key, RefusalCode.MIN_VALUES_NOT_MET, (), message) for key in node.pods]


def _by_pod(refusals: Sequence[Refusal]) -> tuple[Refusal, ...]:
    return tuple(sorted(refusals, key=lambda refusal: refusal.pod))
