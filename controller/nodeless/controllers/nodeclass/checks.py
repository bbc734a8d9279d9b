"""Has the cloud asked, beside all other work, whether launches with the node classes would be allowed.

No pod waits for the answer: until it is there a node class counts as good, and only one that was refused
holds its pools. What is known stands in condition ValidationSucceeded (`object_status`).
"""

import asyncio
from collections.abc import Callable, Sequence

from nodeless.cloudprovider import CloudError, CloudProvider, NodeClassUnresolved
from nodeless.kube.cluster import Cluster
from nodeless.model.pools import NodeClass, Pool
from nodeless.model.snapshot import Snapshot
from nodeless.operator.logs import logger

#: A class that no pool uses is checked a little later: mostly its pool is on the way, and says with what.
_LONELY_SECONDS = 10.0
#: Between two tries where the cloud gives no answer, or one that says nothing of permissions.
_UNANSWERED_SECONDS = 60.0


class NodeClassChecks:
    """One check of a class at a time; `again(key, seconds)` has a class looked at."""

    def __init__(self, cloud: CloudProvider, cluster: Cluster, again: Callable[[str, float], None]) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._again = again
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._lonely: set[str] = set()
        #: Why nothing is known, by class and generation; such a class rests until its entry is dropped.
        self._unanswered: dict[tuple[str, int], CloudError] = {}
        self._resting: set[tuple[str, int]] = set()
        self._log = logger("pools")

    def problem(self, node_class: NodeClass) -> CloudError | None:
        """Why it is not known whether launches are allowed; None while nobody was asked."""
        return self._unanswered.get((node_class.key, node_class.generation))

    def begin(self, node_class: NodeClass, shown: str | None) -> None:
        """Check a class, if that is due.

        Args:
            node_class: A living node class.
            shown: What its status says: empty for allowed, None for not known yet, else why not.
        """
        key, snapshot = node_class.key, self._cluster.snapshot
        resting = (key, node_class.generation) in self._resting
        if resting or key in self._tasks or snapshot.teardown or node_class.deletion_timestamp is not None:
            return
        pools = _pools_of(snapshot, node_class)
        if not pools and key not in self._lonely:
            self._lonely.add(key)
            self._again(key, _LONELY_SECONDS)
            return
        task = asyncio.create_task(self._check(node_class, pools, shown))
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def wait_for_end(self, key: str = "") -> None:
        """Wait for the check of a class, or for all: what it makes must not come after a clean-up."""
        tasks = [task for each, task in self._tasks.items() if not key or each == key]
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """End all checks."""
        for task in self._tasks.values():
            task.cancel()

    async def _check(self, node_class: NodeClass, pools: Sequence[Pool], shown: str | None) -> None:
        known = (node_class.key, node_class.generation)
        message = ""
        try:
            await self._cloud.validate(pools, node_class)
            self._unanswered.pop(known, None)
        except NodeClassUnresolved as error:
            message = str(error)
            self._unanswered.pop(known, None)
        except CloudError as error:
            self._log.warning(f"{node_class.key}: not known whether launches are allowed: {error}")
            message = self._give_up(known, error)
        except Exception as error:  # a defect in the check is said where the answer would have stood
            self._log.exception(f"{node_class.key}: the check whether launches are allowed has failed")
            message = self._give_up(known, _defect(error))
        if message != shown:
            self._again(node_class.key, 0.0)

    def _give_up(self, known: tuple[str, int], error: CloudError) -> str:
        """Leave the class for a while; what its status is to say."""
        self._unanswered[known] = error
        self._rest(known)
        return str(error)

    def _rest(self, known: tuple[str, int]) -> None:
        def wake() -> None:
            self._resting.discard(known)
            self._again(known[0], 0.0)

        self._resting.add(known)
        asyncio.get_running_loop().call_later(_UNANSWERED_SECONDS, wake)


def _defect(error: Exception) -> CloudError:
    text = f"the check itself has failed ({type(error).__name__}: {error})"
    return CloudError(
        text, "report this as a bug, with the traceback from the controller's log", "CheckFailed"
    )


def _pools_of(snapshot: Snapshot, node_class: NodeClass) -> list[Pool]:
    """The pools that may buy with the class, by name."""
    return [
        pool
        for _, pool in sorted(snapshot.pools.items())
        if str(pool.node_class) == node_class.key and not pool.invalid and pool.deletion_timestamp is None
    ]
