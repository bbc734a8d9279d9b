"""What settings choose of prices: it is kept with a situation, so that what is added to it costs alike."""

from dataclasses import dataclass

from nodeless.model.bill import DEFAULT_MODE, LEAST_MEMORY, PARTS
from nodeless.scheduling.capacity.pricing import PriceAdjustment


@dataclass(frozen=True, slots=True)
class PriceTerms:
    """The settings by which catalogs are priced; the defaults are those of the settings.

    The node fee and commitments are not among them: they are in the policy.
    """

    parts: frozenset[str] = frozenset(PARTS)
    """`nodeless.billParts`."""
    credit_mode: str = DEFAULT_MODE
    """`nodeless.cpuCredits`."""
    cpu_use: float = 100.0
    """`nodeless.burstableCPUUse`."""
    adjustments: tuple[PriceAdjustment, ...] = ()
    """`nodeless.priceAdjustments`."""
    least_memory: int = LEAST_MEMORY
    """`nodeless.leastMemory`."""
    price_book: str = "{}"
    """`nodeless.priceBook`, a JSON object."""
