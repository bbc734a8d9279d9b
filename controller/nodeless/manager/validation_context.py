"""What the webhook knows besides the object it is asked about: instance types and the cluster's pools.

Every replica has it, leading or not. Nothing is fetched while a user waits, and nothing that fails here can
delay or refuse an admission: what is not known is passed over (docs/decisions).
"""

import asyncio

from nodeless.api.validation_context import ValidationContext
from nodeless.cloudprovider.aws.bundled_types import bundled_types
from nodeless.kube import ApiClient, Reflector
from nodeless.kube.kinds import watched_pools
from nodeless.model import events
from nodeless.model.events import Event
from nodeless.model.pools import Pool


class ValidationContextWatch:
    """Follows the pools; `current` gives what is known now, at once."""

    def __init__(self, client: ApiClient) -> None:
        # An invalid pool is told of by the replica that leads.
        kinds = watched_pools(lambda _manifest, _error: None)
        self._reflectors = [Reflector(client, kind, self._handle, quiet=True) for kind in kinds]
        self._pools: dict[str, Pool] = {}

    def current(self) -> ValidationContext:
        """Safe to call from any thread: the pools are a copy of their own."""
        return ValidationContext(bundled_types(), dict(self._pools))

    async def run(self) -> None:
        """Follow until cancelled."""
        await asyncio.to_thread(bundled_types)  # some 20 ms, before the first question needs it
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run(), name=f"surroundings {reflector.watched.name}")

    def _handle(self, event: Event) -> None:
        match event:
            case events.PoolSeen(pool):
                self._pools[pool.key] = pool
            case events.PoolGone(key):
                self._pools.pop(key, None)
