"""Voluntary moves, carried out: look, wait, look again, begin; and every second the next steps.

Moves that make the cluster cheaper are looked at again 15 seconds later on the fresh snapshot
(Karpenter's period) before anything is done. Meanwhile other moves go on: nothing is kept in
this process but the move that waits.
"""

import asyncio
import time
from dataclasses import replace

from nodeless.app.cluster import Cluster
from nodeless.app.hands import Hands, wall_clock
from nodeless.app.logs import logger
from nodeless.app.pool_catalogs import pool_catalogs, pool_subnets
from nodeless.app.recorder import Recorder
from nodeless.app.settings import GlobalSettings
from nodeless.app.solver_settings import policy_of
from nodeless.cloud import CloudError, CloudProvider
from nodeless.disruption import DisruptionPolicy, Stillness, advance, begin, disrupt, still_right
from nodeless.model.disruption import EMPTY, UNDERUTILIZED, Decisions, Move
from nodeless.model.events import Nominated
from nodeless.model.instance_types import Catalog
from nodeless.model.instructions import CreateClaim, PublishEvent
from nodeless.model.snapshot import Snapshot
from nodeless.watch import ApiError, ApiUnavailable

#: Between two looks when the last one found nothing (Karpenter's period).
LOOK_SECONDS = 10.0
#: Between a move that saves money and the second look at it (Karpenter's consolidation TTL).
VALIDATION_SECONDS = 15.0
_ADVANCE_SECONDS = 1.0
#: What is told on a node, by the code of its verdict; the others are the ordinary course of things.
_EVENTS = {
    "Unconsolidatable": "Unconsolidatable",
    "ConsolidationDisabled": "Unconsolidatable",
    "NodeProtected": "DisruptionBlocked",
    "PodProtected": "DisruptionBlocked",
    "BudgetExhausted": "DisruptionBlocked",
    "SeveralBudgets": "DisruptionBlocked",
    "Budget": "DisruptionBlocked",
    "NoReplacement": "DisruptionBlocked",
    "Paused": "DisruptionBlocked",
    "PriceUnknown": "DisruptionBlocked",
}
#: The same verdict on the same node is told once in this time (Karpenter's deduplication).
_TELL_AGAIN = 900.0


class DisruptionLoop:
    """The loop that makes moves."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: CloudProvider,
        hands: Hands,
        recorder: Recorder,
        settings: GlobalSettings,
    ) -> None:
        self._cluster = cluster
        self._cloud = cloud
        self._hands = hands
        self._recorder = recorder
        self._policy = _policy(settings)
        self._told: dict[str, tuple[str, float]] = {}
        self._still: Stillness | None = None
        self._acting = asyncio.Lock()
        self._log = logger("disruption")

    def use(self, settings: GlobalSettings) -> None:
        """Judge by other settings from the next look on."""
        self._policy = _policy(settings)
        self._still = None

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._advance())
            while True:
                acted = False
                try:
                    acted = await self.look_once()
                except (ApiError, ApiUnavailable, CloudError) as error:
                    self._log.warning(f"disruption failed, trying again: {error}")
                await asyncio.sleep(_ADVANCE_SECONDS if acted else LOOK_SECONDS)

    async def _advance(self) -> None:
        """The next step of every command, also of those that another leader has begun."""
        while True:
            await asyncio.sleep(_ADVANCE_SECONDS)
            async with self._acting:
                try:
                    await self._hands.carry_out(advance(self._cluster.snapshot, wall_clock()))
                except (ApiError, ApiUnavailable, CloudError) as error:
                    if not (isinstance(error, ApiError) and error.status == 409):
                        self._log.warning(f"a move could not go on, trying again: {error}")

    async def look_once(self) -> bool:
        """One look; whether a move was begun."""
        snapshot = self._cluster.snapshot
        if snapshot.teardown or (self._still is not None and self._still.holds(snapshot, time.monotonic())):
            return False
        decisions = await self._decide(snapshot)
        self._tell(decisions, snapshot)
        begun = [move for move in decisions.moves if await self._carry_out(move)]
        if not decisions.moves:
            self._still = Stillness(snapshot, time.monotonic())
        return bool(begun)

    async def _decide(self, snapshot: Snapshot) -> Decisions:
        catalog, policy = await self._market(snapshot)
        return await asyncio.to_thread(disrupt, snapshot, catalog, policy, wall_clock())

    async def _market(self, snapshot: Snapshot) -> tuple[Catalog, DisruptionPolicy]:
        """What may be bought, and how to judge by what there is of subnets."""
        catalog, _ = await pool_catalogs(self._cloud, snapshot)
        subnets = await pool_subnets(self._cloud, snapshot, catalog)
        return catalog, replace(self._policy, solving=replace(self._policy.solving, subnets=subnets))

    async def _carry_out(self, move: Move) -> bool:
        if move.reason in (EMPTY, UNDERUTILIZED):
            await asyncio.sleep(VALIDATION_SECONDS)
            snapshot = self._cluster.snapshot
            catalog, policy = await self._market(snapshot)
            valid = await asyncio.to_thread(still_right, move, snapshot, catalog, policy, wall_clock())
            if valid is None:
                self._log.info(f"not right any more: {move.message}", nodes=_nodes(snapshot, move))
                return False
            move = valid
        await self._begin(move)
        return True

    async def _begin(self, move: Move) -> None:
        snapshot, now = self._cluster.snapshot, wall_clock()
        if snapshot.teardown:
            return
        self._log.info(
            f"disrupting by {move.action}: {move.message}",
            reason=move.reason,
            nodes=_nodes(snapshot, move),
            replacements=[node.instance_type for node in move.replacements],
        )
        instructions = begin(move, snapshot, dict(snapshot.pools), now)
        async with self._acting:
            for instruction in instructions:
                await self._hands.carry_out((instruction,))
                if isinstance(instruction, CreateClaim):
                    # Pods come to it only once their old node is drained.
                    self._cluster.handle(Nominated(instruction.claim.name, now + LOOK_SECONDS))

    def _tell(self, decisions: Decisions, snapshot: Snapshot) -> None:
        now = time.monotonic()
        for name, verdict in decisions.verdicts.items():
            claim = snapshot.claims.get(name)
            node = snapshot.node_of(claim) if claim is not None else None
            reason = _EVENTS.get(verdict.code)
            said, at = self._told.get(name, ("", 0.0))
            if node is None or reason is None or (said == verdict.code and now - at < _TELL_AGAIN):
                continue
            self._told[name] = (verdict.code, now)
            self._recorder.publish(
                PublishEvent("disruption", "Node", node.name, "Normal", reason, verdict.message, uid=node.uid)
            )
        for name in set(self._told) - set(snapshot.claims):
            del self._told[name]


def _policy(settings: GlobalSettings) -> DisruptionPolicy:
    """Simulations take the floor plan: what it does not find cheaper is not worth a move."""
    solving = replace(policy_of(settings), time_box=0.0)
    return DisruptionPolicy(solving=solving, drift_of_provisioners=settings.drift_enabled)


def _nodes(snapshot: Snapshot, move: Move) -> list[str]:
    return [snapshot.claims[name].node_name for name in move.claims if name in snapshot.claims]
