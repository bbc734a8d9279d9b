"""Small instance types for tests."""

from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_SIZE, INSTANCE_TYPE, ZONE
from nodeless.model.requirements import Requirement, Requirements


def a_type(
    name: str,
    *,
    on_demand: float | None = None,
    spot: float | None = None,
    zones: str = "ab",
    **capacity: int,
) -> InstanceType:
    """A type of 4 cores, sold in zones us-east-1a and so on, at the prices given."""
    prices = {"on-demand": on_demand, "spot": spot}
    names = [f"us-east-1{zone}" for zone in zones]
    return InstanceType(
        name=name,
        requirements=Requirements(
            [
                Requirement.of(INSTANCE_TYPE, "In", [name]),
                Requirement.of(INSTANCE_SIZE, "In", [name.partition(".")[2]]),
                Requirement.of(ARCH, "In", ["amd64"]),
                Requirement.of(ZONE, "In", names),
                Requirement.of(CAPACITY_TYPE, "In", [kind for kind, price in prices.items() if price]),
            ]
        ),
        capacity={
            "cpu": 4000,
            "pods": 29,
            **{key.replace("_", "/"): value for key, value in capacity.items()},
        },
        overhead={"cpu": 80},
        offerings=tuple(
            Offering(zone, kind, price) for zone in names for kind, price in prices.items() if price
        ),
    )
