"""What the program may make new nodes of."""

from dataclasses import dataclass

from nodeless.scheduling.capacity.pool_table import PoolTable


@dataclass(frozen=True, slots=True)
class Offer:
    """A type of a pool."""

    table: PoolTable
    row: int
