"""Amounts of resources by Kubernetes name: what pods request and nodes have.

A `Resources` is a plain mapping; `cpu` counts millicores, every other resource whole
units. A missing name means zero.
"""

from collections.abc import Iterable, Mapping

from nodeless.model.quantity import format_milli, format_units, parse_milli, parse_units

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
_MI = 2**20

Resources = Mapping[str, int]
"""Resource name to amount: millicores for `cpu`, whole units otherwise."""


def parse_resources(quantities: Mapping[str, str | int | float] | None) -> dict[str, int]:
    """Amounts from a Kubernetes resource list. Raises QuantityError."""
    return {
        name: parse_milli(text) if name == CPU else parse_units(text)
        for name, text in (quantities or {}).items()
    }


def format_resources(resources: Resources) -> dict[str, str]:
    """A Kubernetes resource list in canonical spelling, sorted by name."""
    return {name: format_amount(name, resources[name]) for name in sorted(resources)}


def format_amount(name: str, amount: int) -> str:
    """One amount in canonical spelling."""
    return format_milli(amount) if name == CPU else format_units(amount)


def readable_amount(name: str, amount: int) -> str:
    """One amount for a sentence: bytes in binary units, rounded up to whole Mi where they are none."""
    if name in (MEMORY, EPHEMERAL_STORAGE) and amount > _MI and amount % _MI:
        return format_units(-(-amount // _MI) * _MI)
    return format_amount(name, amount)


def add(*many: Resources) -> dict[str, int]:
    """The sum, resource by resource."""
    return total(many)


def total(many: Iterable[Resources]) -> dict[str, int]:
    """The sum of any number of resource mappings."""
    result: dict[str, int] = {}
    for resources in many:
        for name, amount in resources.items():
            result[name] = result.get(name, 0) + amount
    return result


def subtract(left: Resources, right: Resources) -> dict[str, int]:
    """`left - right`; may go below zero."""
    result = dict(left)
    for name, amount in right.items():
        result[name] = result.get(name, 0) - amount
    return result


def maximum(left: Resources, right: Resources) -> dict[str, int]:
    """The larger amount of each resource."""
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {**left, **right}}


def fits(requests: Resources, available: Resources) -> bool:
    """Whether every requested amount is available; a zero request of an unknown resource fits."""
    return all(amount <= available.get(name, 0) for name, amount in requests.items() if amount > 0)
