"""The smallest changes that would give refused pods a place, each tried by solving again.

Problem: given pods with the same refusal, find changes of the arguments of `solve` (the pod's
tolerations, requests, selectors; a pool's requirements, limits) under which it places at least
one of them that it refuses now. Guesses come from the reasons (`changes`); amounts are found by
halving, each half a solve of one pod alone; what is told has been solved with everything else in place.

Not part of `solve`: it costs some twenty solves, and is asked for refusals alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from immutables import Map

from nodeless.model.instance_types import Catalog
from nodeless.model.plan import Plan, PoolRefusal, Refusal, RefusalCode
from nodeless.model.pods import Pod, PodShape
from nodeless.model.pools import Pool
from nodeless.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Resources,
    format_amount,
    readable_amount,
    total,
)
from nodeless.scheduling.capacity.pool_table import NODES
from nodeless.scheduling.diagnostics.changes import Change, Trial, changes, larger_volume
from nodeless.scheduling.policy import Policy
from nodeless.scheduling.solver import solve
from nodeless.state import pool_usage

#: Requests are told in steps of this much.
_STEPS = {CPU: 10, MEMORY: 2**20, EPHEMERAL_STORAGE: 2**20}
#: Whole solves for one group of refusals.
TRIES = 24


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that helps, and how many of the pods have a place then."""

    text: str
    placed: int
    of: int

    def __str__(self) -> str:
        return (
            self.text if self.placed == self.of else f"{self.text} (places {self.placed} of {self.of} pods)"
        )


def remedies(
    trial: Trial,
    policy: Policy,
    refusals: Sequence[Refusal],
    *,
    wider: Catalog | None = None,
    most: int = 3,
    tries: int = TRIES,
) -> tuple[Remedy, ...]:
    """Changes that help, those that place the most pods first.

    Args:
        trial: Snapshot and catalog of the solve that refused.
        policy: Its policy; trials do without the search for a cheaper plan.
        refusals: Refusals of pods of one shape with the same reasons.
        wider: Types that pools might buy if their requirements allowed them; None: those of other pools.
        most: How many to find.
        tries: How many whole solves to spend.
    """
    if not refusals:
        return ()
    keys = tuple(refusal.pod for refusal in refusals)
    search = _Search(trial, replace(policy, time_box=0.0), keys, wider or {})
    found: dict[str, Remedy] = {}
    for change in search.guesses(refusals[0].reasons):
        if change.text in found:
            continue
        placed = search.placed(change.trial)
        if placed:
            found[change.text] = Remedy(change.text, placed, len(keys))
        if len(found) >= most or search.tries >= tries:
            break
    return tuple(sorted(found.values(), key=lambda remedy: -remedy.placed))


class _Search:
    """Guesses and trials for pods of one shape."""

    def __init__(self, trial: Trial, policy: Policy, keys: tuple[str, ...], wider: Catalog) -> None:
        self._trial = trial
        self._policy = policy
        self._keys = keys
        self._wider = wider
        self._pod: Pod = trial.snapshot.pods[keys[0]]
        #: A change of a workload's template changes all its pods that do not run yet.
        self._alike = tuple(
            sorted(
                key
                for key, pod in trial.snapshot.pods.items()
                if not pod.node_name and pod.namespace == self._pod.namespace and pod.shape == self._pod.shape
            )
        )
        self.tries = 0

    def guesses(self, reasons: Sequence[PoolRefusal]) -> Iterator[Change]:
        shape = self._pod.shape
        for reason in reasons:
            pool = self._trial.snapshot.pools.get(str(reason.pool))
            if pool is None:
                continue
            if reason.code == RefusalCode.INSUFFICIENT_RESOURCES:
                yield from larger_volume(self._trial, shape, pool)
                yield from self._smaller(shape, pool)
            if reason.code == RefusalCode.LIMITS_EXCEEDED:
                yield from self._raised(pool)
            yield from changes(self._trial, self._wider, self._alike, shape, reason)

    def placed(self, trial: Trial) -> int:
        """How many of the pods have a place after a change."""
        self.tries += 1
        plan = self._solve(trial)
        refused = {refusal.pod for refusal in plan.refusals}
        return sum(key not in refused for key in self._keys)

    def _solve(self, trial: Trial) -> Plan:
        return solve(trial.snapshot, trial.catalog, self._policy)

    def _smaller(self, shape: PodShape, pool: Pool) -> Iterator[Change]:
        """For each resource by itself the largest request that fits a new node of the pool."""
        for name, amount in shape.requests:
            if name == PODS:
                continue
            largest = self._largest(shape, pool, name, amount)
            if largest is not None:
                less = replace(shape, requests=_with_amount(shape, name, largest))
                text = (
                    f"request {name} {readable_amount(name, largest)} instead of "
                    f"{readable_amount(name, amount)} ({readable_amount(name, amount - largest)} less)"
                )
                yield Change(text, self._trial.with_shape(self._alike, less))

    def _largest(self, shape: PodShape, pool: Pool, name: str, amount: int) -> int | None:
        """The largest amount below the one requested with which the pod alone fits; None: not even none."""
        step = _STEPS.get(name, 1)

        def fits(steps: int) -> bool:
            requests = _with_amount(shape, name, steps * step)
            return self._alone(replace(shape, requests=requests), pool)

        low, high = 0, -(-amount // step)
        if not fits(low):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low * step if low else None

    def _alone(self, shape: PodShape, pool: Pool) -> bool:
        """Whether one pod gets a new node of a pool when there is nothing else."""
        alone = replace(self._pod, shape=replace(shape, spread=(), affinity=(), anti_affinity=()))
        before = self._trial.snapshot
        snapshot = replace(
            before,
            pods=Map({alone.key: alone}),
            pods_of_node=Map(),
            nodes=Map(),
            node_names=Map(),
            claims=Map(),
            claim_names=Map(),
            pools=Map({pool.key: pool}),
        )
        return not self._solve(Trial(snapshot, self._trial.catalog)).refusals

    def _raised(self, pool: Pool) -> Iterator[Change]:
        """Limits that hold what is used and what a plan without limits would launch."""
        free = self._trial.with_pool(replace(pool, limits=None))
        plan = self._solve(free)
        types = {instance_type.name: instance_type for instance_type in self._trial.catalog.get(pool.key, ())}
        mine = [node for node in plan.new_nodes if str(node.pool) == pool.key]
        added = total(types[node.instance_type].capacity for node in mine)
        used = pool_usage(self._trial.snapshot, pool)
        members = sum(claim.pool == pool.reference for claim in self._trial.snapshot.claims.values())
        needed: Resources = {**total((used, added)), NODES: members + len(mine)}
        limits = dict(pool.limits or {})
        raised = {name: max(limit, needed.get(name, 0)) for name, limit in limits.items()}
        raises = [
            f"{name} from {format_amount(name, limits[name])} to {format_amount(name, amount)}"
            for name, amount in sorted(raised.items())
            if amount > limits[name]
        ]
        if raises:
            text = f"raise the limit of {pool.reference} on {' and '.join(raises)}"
            yield Change(text, self._trial.with_pool(replace(pool, limits=raised)))


def _with_amount(shape: PodShape, name: str, amount: int) -> tuple[tuple[str, int], ...]:
    return tuple((each, amount if each == name else old) for each, old in shape.requests)
