"""The cluster as we know it: `apply(snapshot, event) -> snapshot`.

Pure: the shell feeds it events (package `kube`), the solver and the lifecycle read the
snapshots. Applying the same event twice changes nothing; events about different
objects may come in any order.
"""

from nodeless.state.applying import apply
from nodeless.state.readiness import PoolUnusable, usable, usable_for
from nodeless.state.usage import pool_members, pool_usage

__all__ = ["PoolUnusable", "apply", "pool_members", "pool_usage", "usable", "usable_for"]
