"""The time before the first plan: until every kind has been listed once, nothing can be decided.

Usually that takes a fraction of a second. When it does not (a kind is not served, a watch
is not allowed), pods that wait are told why, as they are of every other obstacle.
"""

import asyncio

from nodeless.explain import events as texts
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import PublishEvent

#: A cluster that is being set up has this long before its pods are told.
PATIENCE_SECONDS = 5.0


async def wait_for_cache_sync(cluster: Cluster, recorder: Recorder) -> None:
    """Wait until every kind has been listed once, and tell pods what is in the way meanwhile."""
    waiting = asyncio.ensure_future(cluster.wait_for_sync())
    try:
        while not (await asyncio.wait({waiting}, timeout=PATIENCE_SECONDS))[0]:
            _tell(cluster, recorder)
        await waiting
    finally:
        waiting.cancel()


def _tell(cluster: Cluster, recorder: Recorder) -> None:
    problems = "; ".join(cluster.problems())
    if not problems:
        return
    for pod in cluster.snapshot.pods.values():
        if pod.provisionable:
            recorder.publish(
                PublishEvent(
                    "watch",
                    "Pod",
                    pod.name,
                    "Warning",
                    texts.FAILED_SCHEDULING,
                    f"No capacity for this pod: {problems}",
                    pod.namespace,
                    pod.uid,
                )
            )
