"""Clocks, periods, delays and deadlines of the controllers, in seconds.

Every controller takes what it uses of them as an argument. Production goes by the defaults: no setting
changes them, for they are what Karpenter's users rely on. Tests give other ones.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from nodeless.disruption.command_history import VALIDATION_SECONDS
from nodeless.nodeclaim.deadlines import DEADLINES, Deadlines
from nodeless.operator import clock


@dataclass(frozen=True, slots=True)
class Timing:
    """When controllers look, and for how long they wait."""

    #: Seconds since the epoch, by the API server.
    wall_clock: Callable[[], float] = clock.wall_clock
    #: Seconds since any moment, never set back.
    steady_clock: Callable[[], float] = time.monotonic
    claims: Deadlines = DEADLINES

    #: A leader that could not renew its lease for so long stops leading (Karpenter's deadline).
    lease_renewal: float = 10.0
    #: Between two attempts to get or to renew the lease (Karpenter's period).
    lease_retry: float = 2.0

    #: Between two looks of disruption when the last one found nothing (Karpenter's period).
    disruption_look: float = 10.0
    #: Between a move that saves money and the second look at it (Karpenter's period).
    disruption_validation: float = VALIDATION_SECONDS
    #: Between two steps of the commands under way.
    disruption_step: float = 1.0
    #: Between two looks at drift (Karpenter's period).
    drift: float = 300.0

    #: Between two rounds of garbage collection (Karpenter's periods): at first, when a crash may just have
    #: happened, and after a list that lacks something;
    collection_eager: float = 10.0
    #: and otherwise.
    collection_calm: float = 120.0
    #: Between two looks at which reserved nodes are in their reservations (Karpenter v1).
    reservations: float = 60.0
    #: Between two looks at which NodeOverlays count, and when types of a pool were not known.
    overlays: float = 300.0
    overlays_retry: float = 10.0
    #: Between two looks at nodes that were launched for gangs.
    gangs: float = 10.0
    #: Between two looks at nodes that were launched for provisioning requests.
    request_nodes: float = 10.0
    #: Until a gang whose nodes were released is planned again; twice as long each time,
    gang_pause: float = 300.0
    #: up to this.
    longest_gang_pause: float = 3600.0
    #: Between two looks at what other autoscalers serve the cluster.
    neighbors: float = 60.0
    #: After a request that tagged an instance, or failed to (Karpenter v1).
    tagging: float = 1.0

    #: Until an interruption queue that could not be read is asked again; twice as long each time,
    interruption_retry: float = 5.0
    #: up to this.
    interruption_longest_retry: float = 60.0

    #: The longest wait until an eviction that was refused is asked for again (Karpenter's eviction queue).
    longest_eviction_wait: float = 10.0
    #: How long whoever deleted the guard has for making it again.
    guard_restore: float = 60.0


#: What production goes by.
TIMING = Timing()
