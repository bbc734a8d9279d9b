"""What a change of pools and node classes would do to nodes that stand.

Both sides are situations: as it is, and as if the changed manifests had been applied. A node drifts by the
rules of `nodeclaim.drift`; those that have already drifted, whatever is applied, are not told again, unless
their pool is removed. Then the pods of the nodes that would be replaced are planned as if their nodes were
gone: what is bought for them, and what the cluster costs before and after.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from nodeless.explain.decisions import Situation
from nodeless.explain.fill import NodeFill, existing_nodes
from nodeless.explain.report import Launch, Unplaced, report
from nodeless.explain.what_if import changed
from nodeless.explain.words import count, listed, price
from nodeless.model import events
from nodeless.model.bill import HOURS_A_MONTH
from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import OWNER
from nodeless.model.nodes import Instance, NodeClaim
from nodeless.model.plan import Plan
from nodeless.model.pools import PROVISIONER
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import with_kind_called
from nodeless.nodeclaim.drift import DriftView, Selected, drift_of
from nodeless.scheduling.capacity.pricing import priced
from nodeless.state import apply
from nodeless.state.saving import plain

POOL_REMOVED = "PoolRemoved"


@dataclass(frozen=True, slots=True)
class CloudObservations:
    """What the cloud says; what it did not say is not concluded from."""

    before: Mapping[str, Selected] = field(default_factory=dict)
    """What node classes select as they are, by key."""
    after: Mapping[str, Selected] = field(default_factory=dict)
    """What they would select."""
    instances: Mapping[str, Instance] = field(default_factory=dict)
    """By provider id."""


@dataclass(frozen=True, slots=True)
class Drifting:
    """A node that would no longer be what its pool makes, or whose pool would be gone."""

    node: str
    pool: str
    instance_type: str
    zone: str
    pods: int
    """Pods that would move, daemons' not counted."""
    reason: str
    message: str
    replaced: bool
    """Whether it would end; where it drifted, nodes of Provisioners only where drift is turned on."""


@dataclass(frozen=True, slots=True)
class DriftPreview:
    """What the change would do. Costs are US dollars an hour."""

    drifting: tuple[Drifting, ...]
    launches: tuple[Launch, ...]
    unplaced: tuple[Unplaced, ...]
    before: float
    after: float
    notes: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    """Nodes whose price is not known; they are in neither cost."""

    @property
    def difference(self) -> float:
        """Dollars an hour more (or less, below zero) than without the change."""
        return self.after - self.before

    def to_json(self) -> dict[str, Any]:
        """As a JSON document, with the lines of the text."""
        document: dict[str, Any] = plain(self)
        costs = {"before": self.before, "after": self.after, "difference": self.difference}
        return {
            **document,
            "costPerHour": costs,
            "costPerMonth": {name: dollars * HOURS_A_MONTH for name, dollars in costs.items()},
            "lines": list(self.lines()),
        }

    def lines(self) -> Iterator[str]:
        """The text that people read."""
        if not self.drifting:
            yield "no node would drift"
        reasons: dict[tuple[str, bool, str], list[Drifting]] = {}
        for claim in self.drifting:
            reasons.setdefault((claim.reason, claim.replaced, claim.message), []).append(claim)
        for (reason, replaced, message), members in reasons.items():
            pods = sum(member.pods for member in members)
            verb = "end" if reason == POOL_REMOVED else "be replaced"
            end = f"would {verb} and {count(pods, 'pod')} move" if replaced else "would drift and stay"
            names = listed([f"{member.node} ({member.instance_type})" for member in members])
            yield f"{count(len(members), 'node')} {end}: {message} [{reason}]: {names}"
        for launch in self.launches:
            yield (
                f"launch {launch.count} x {launch.instance_type} ({launch.capacity_type}) of {launch.pool}, "
                f"{price(launch.price)} each"
            )
        for group in self.unplaced:
            names = listed(group.pods)
            yield f"{count(len(group.pods), 'pod')} without a place [{group.code}]: {names}"
        if self.unpriced:
            nodes = count(len(self.unpriced), "node")
            yield f"the price of {nodes} is not known, and in neither cost: {listed(self.unpriced)}"
        month = self.difference * HOURS_A_MONTH
        yield (
            f"cost {price(self.before)} now, {price(self.after)} then: "
            f"{'+' if month >= 0 else '-'}{abs(month):.2f} USD a month"
        )


def preview_drift(
    before: Situation,
    after: Situation,
    observations: CloudObservations | None = None,
    *,
    provisioners_drift: bool = False,
    notes: Sequence[str] = (),
) -> DriftPreview:
    """What happens to standing nodes when `before` becomes `after`.

    Args:
        before: the cluster as it is.
        after: the same with changed pools and node classes.
        observations: what the cloud says that node classes select; without it images, subnets and security
            groups are not compared.
        provisioners_drift: whether drifted nodes of Provisioners are replaced (`featureGates.driftEnabled`).
        notes: lines on what it rests on.
    """
    drifting = tuple(_drifting(before, after, observations or CloudObservations(), provisioners_drift))
    moved = after
    for claim in drifting:
        if claim.replaced:
            moved = changed(moved, f"without-node={claim.node}")
    plan = moved.plan()
    now, then = report(before, before.plan()), report(moved, plan)
    staying = _staying(before, moved, plan)
    unpriced = {node.name for node in (*now.nodes, *staying) if node.price is None}
    return DriftPreview(
        drifting,
        then.launches,
        then.unplaced,
        now.cost.after,
        fsum(node.price for node in staying if node.price is not None) + plan.cost_per_hour,
        tuple(notes),
        tuple(sorted(unpriced)),
    )


def without_pools_of(owner: str, snapshot: Snapshot) -> Snapshot:
    """The snapshot without the pools of an owner: those that its manifests still have come back with them.

    Args:
        owner: Value of the annotation `nodeless.dev/owner`.
        snapshot: As it is.
    """
    for key, pool in snapshot.pools.items():
        if pool.own_annotations.get(OWNER) == owner:
            snapshot = apply(snapshot, events.PoolGone(key))
    return snapshot


def without_pools(named: Collection[str], snapshot: Snapshot) -> Snapshot:
    """The snapshot without some pools.

    Args:
        named: Each by kind and name as `NodePool/general` or `nodepool/general`, or by the uid of the object.
            Uids of others are passed over: they are pools of another cluster, or gone.
        snapshot: As it is.

    Raises:
        KeyError: There is no pool of this kind and name.
    """
    keys = {name: with_kind_called(name) for name in named}
    for name, key in keys.items():
        if "/" in name and key not in snapshot.pools:
            raise KeyError(name)
    for key, pool in snapshot.pools.items():
        if key in keys.values() or pool.reference.uid in named:
            snapshot = apply(snapshot, events.PoolGone(key))
    return snapshot


def _staying(before: Situation, after: Situation, plan: Plan) -> tuple[NodeFill, ...]:
    """The nodes that would still be there, at the prices of now: pools may no longer buy their types."""
    policy = after.policy
    catalog = {key: _with_types(before.catalog.get(key, ()), types) for key, types in after.catalog.items()}
    pools = after.snapshot.pools.values()
    prices = priced({**before.catalog, **catalog}, pools, policy.price_adjustments, policy.node_fee)
    return existing_nodes(after.snapshot, prices, plan, policy.commitments)


def _with_types(known: tuple[InstanceType, ...], more: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    names = {kind.name for kind in known}
    return (*known, *(kind for kind in more if kind.name not in names))


def _drifting(
    before: Situation, after: Situation, observations: CloudObservations, provisioners_drift: bool
) -> Iterator[Drifting]:
    for _, claim in sorted(before.snapshot.claims.items()):
        node = before.snapshot.node_of(claim)
        if node is None:
            continue
        found = _removed(before, after, claim) or _new_reason(before, after, claim, observations)
        if found is None:
            continue
        pods = [pod for pod in before.snapshot.pods_on(node.name) if pod.occupies]
        yield Drifting(
            node.name,
            str(claim.pool),
            claim.instance_type,
            node.zone,
            len(pods),
            *found,
            replaced=found[0] == POOL_REMOVED or claim.pool.kind != PROVISIONER or provisioners_drift,
        )


def _new_reason(
    before: Situation, after: Situation, claim: NodeClaim, observations: CloudObservations
) -> tuple[str, str] | None:
    """Why a node would drift; None where it has already drifted."""
    found = _reason(after, claim, observations.after, observations)
    if found is None or _reason(before, claim, observations.before, observations) is not None:
        return None
    return found


def _removed(before: Situation, after: Situation, claim: NodeClaim) -> tuple[str, str] | None:
    """Why a node ends with its pool; None where the pool stays, or is being deleted already."""
    key = str(claim.pool)
    there = before.snapshot.pools.get(key)
    if there is None or there.deletion_timestamp is not None or key in after.snapshot.pools:
        return None
    return POOL_REMOVED, f"{key} is removed"


def _reason(
    situation: Situation, claim: NodeClaim, selected: Mapping[str, Selected], observations: CloudObservations
) -> tuple[str, str] | None:
    snapshot = situation.snapshot
    pool = snapshot.pools.get(str(claim.pool))
    if pool is None:
        return None
    types = situation.catalog.get(pool.key)
    view = DriftView(
        claim,
        pool,
        snapshot.node_classes.get(str(claim.node_class)),
        selected.get(str(claim.node_class)),
        observations.instances.get(claim.provider_id),
        {kind.name: kind for kind in types} if types else None,
    )
    return drift_of(view, situation.now)
