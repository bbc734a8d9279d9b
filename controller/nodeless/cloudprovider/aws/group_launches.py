"""Launches of equal claims, gathered into one fleet request.

Every asker has one claim. Claims of one group that are asked for within a short window
go to EC2 together; a claim without a group goes at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from weakref import WeakValueDictionary

from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.batching import Batcher, BatchObserver
from nodeless.cloudprovider.aws.launch_requests import LaunchRequest
from nodeless.cloudprovider.aws.launching import Launcher, Outcome
from nodeless.launch.groups import MAX_GROUP
from nodeless.launch.results import FleetAnswer
from nodeless.model.nodes import Instance, NodeClaim
from nodeless.model.pools import NodeClass, Pool

#: Seconds that a group waits for the next of its claims; it is seldom needed, as groups know their size.
_IDLE = 0.1


@dataclass(frozen=True, slots=True)
class LaunchClaim:
    """One claim to launch; `first` and `claimed` as for `CloudProvider.launch`."""

    claim: NodeClaim
    pool: Pool
    node_class: NodeClass
    first: bool
    claimed: Container[str]


MakeOrder = Callable[[tuple[NodeClaim, ...], Pool, NodeClass], Awaitable[LaunchRequest]]


class GroupLaunches:
    """Gathers claims and launches them: `launch_request` makes their request, `on_answer` gets answers."""

    def __init__(
        self,
        launcher: Launcher,
        launch_request: MakeOrder,
        on_answer: Callable[[LaunchRequest, FleetAnswer], None],
        observe: BatchObserver | None = None,
    ) -> None:
        self._launcher = launcher
        self._launch_request = launch_request
        self._on_answer = on_answer
        self._batcher: Batcher[LaunchClaim, Instance] = Batcher(
            "create_fleet",
            self._launch,
            CloudError("EC2 did not answer the launch"),
            idle=_IDLE,
            limit=MAX_GROUP,
            observe=observe,
        )
        #: One launch of a group at a time: what one of them makes, the look-up of another must not take.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def launch(self, ask: LaunchClaim) -> Instance:
        """The claim's instance. Raises CloudError."""
        group = ask.claim.launch_group
        return await self._batcher.ask(
            ask.claim.name, ask, bucket=group or (ask.claim.name,), enough=ask.claim.launch_group_size
        )

    async def _launch(self, asked: Mapping[str, LaunchClaim]) -> Mapping[str, Outcome]:
        ask = next(iter(asked.values()))
        lock = self._locks.setdefault(ask.claim.launch_group or ask.claim.name, asyncio.Lock())
        async with lock:
            return await self._launch_alone(asked, ask)

    async def _launch_alone(
        self, asked: Mapping[str, LaunchClaim], ask: LaunchClaim
    ) -> Mapping[str, Outcome]:
        claims = tuple(launch_claim.claim for launch_claim in asked.values())
        launch_request = await self._launch_request(claims, ask.pool, ask.node_class)
        outcomes: dict[str, Outcome] = {}
        tried = launch_request.excluding([name for name, launch_claim in asked.items() if launch_claim.first])
        if tried.claims:
            outcomes.update(await self._launcher.find_living(tried, ask.claimed))
        launch_request = launch_request.excluding(outcomes)
        if launch_request.claims:
            outcomes.update(await self._launcher.launch(launch_request, self._on_answer, ask.claimed))
        return outcomes
