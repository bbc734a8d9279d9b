"""NodeOverlays: what users say of prices, capacity and devices of types (`karpenter.sh/v1alpha1`)."""

from dataclasses import dataclass, field

from nodeless.model.conditions import Condition
from nodeless.model.devices import DriverDevices
from nodeless.model.requirements import Requirements
from nodeless.model.resources import Resources


@dataclass(frozen=True, slots=True)
class PriceChange:
    """What is added to a price: US dollars an hour, or percent of it; less than 0 takes away."""

    amount: float
    percent: bool = False

    def of(self, price: float) -> float:
        """The price after the change, never below 0 (Karpenter core, `AdjustedPrice`)."""
        return max(0.0, price * (1 + self.amount / 100) if self.percent else price + self.amount)


@dataclass(frozen=True, slots=True)
class NodeOverlay:
    """Prices and capacity of the instance types, or of their offerings, that meet requirements."""

    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    requirements: Requirements = field(default_factory=Requirements)
    """On labels of a type, of its offerings, and of the pool that uses it."""
    price: float | None = None
    """US dollars an hour in place of what the offering costs."""
    price_change: PriceChange | None = None
    capacity: Resources = field(default_factory=dict, hash=False)
    """Resources that nodes have besides: those of device plugins, huge pages."""
    devices: tuple[DriverDevices, ...] = ()
    """The devices that nodes will publish, for drivers of dynamic resource allocation."""
    weight: int = 0
    """Of two overlays, the one of higher weight counts."""
    deletion_timestamp: float | None = None
    conditions: tuple[Condition, ...] = ()
    invalid: str = ""
    """Why the object cannot be used: then it changes nothing."""

    @property
    def prices(self) -> bool:
        """Whether it says anything of prices."""
        return self.price is not None or self.price_change is not None

    def adjust_price(self, price: float) -> float:
        """What an offering costs by it."""
        if self.price is not None:
            return self.price
        return price if self.price_change is None else self.price_change.of(price)
