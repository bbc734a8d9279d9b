"""What the settings choose of a bill."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodeless.cloudprovider.billing.book import PRICE_BOOK, PriceBook, bundled_book, read_book
from nodeless.model.bill import DEFAULT_MODE, LEAST_MEMORY, PARTS
from nodeless.operator.settings import GlobalSettings, read_settings
from nodeless.operator.solver_policy import price_terms_of

if TYPE_CHECKING:
    from nodeless.explain.price_terms import PriceTerms
    from nodeless.scheduling import PriceAdjustment

MIB = 2**20


@dataclass(frozen=True, slots=True)
class BillTerms:
    """Which parts count, and how they are reckoned."""

    parts: frozenset[str] = frozenset(PARTS)
    """Those of `PARTS` that count."""
    credit_mode: str = DEFAULT_MODE
    """How T families are run: `unlimited`, `standard` (slowed down instead of charged), or AWS's defaults:
    T2 standard, the others unlimited."""
    cpu_use: float = 100.0
    """Percent of its CPU that a T instance is taken to use.

    What a node will hold is not known when its type is priced: 100 is a node full of pods that use their
    requests."""
    adjustments: tuple["PriceAdjustment", ...] = ()
    """Discounts, surcharges and commitments, applied to the price of the instance in their order."""
    least_memory: int = LEAST_MEMORY
    """Bytes that must be left for pods on a type that no pool and no pod names; 0: any type is bought."""
    book: PriceBook = field(default_factory=bundled_book)
    """What AWS charges."""

    def name_for(self, pool: str) -> str:
        """A pool's name where an adjustment is for some pools, else nothing: such pools pay the same."""
        return pool if any(adjustment.pools for adjustment in self.adjustments) else ""


def bill_terms(settings: GlobalSettings) -> BillTerms:
    """What the controller's settings choose."""
    return terms_of(price_terms_of(settings))


def terms_of(prices: "PriceTerms") -> BillTerms:
    """What the settings chose by which a situation was priced."""
    return BillTerms(
        parts=prices.parts,
        credit_mode=prices.credit_mode,
        cpu_use=prices.cpu_use,
        adjustments=prices.adjustments,
        least_memory=prices.least_memory,
        book=read_book(prices.price_book),
    )


def price_book_warnings(data: Mapping[str, str]) -> list[str]:
    """What the data of the settings' ConfigMap says in vain of prices."""
    settings, _ = read_settings(data)
    return [f"data: {PRICE_BOOK}: {fault}" for fault in read_book(settings.price_book).faults]
