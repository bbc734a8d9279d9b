"""Kubernetes quantities as exact decimals: what a kubelet needs to add up requests.

Pure. Reads the suffixes of `k8s.io/apimachinery/pkg/api/resource`; prints plain integers, or milli-CPUs.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

Resources = dict[str, Decimal]

_SUFFIXES: dict[str, Decimal] = {
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
}


def parse_quantity(text: str | int | float) -> Decimal:
    """Return the number a quantity stands for, in base units (cores, bytes, counts).

    Raises:
        ValueError: if the text is no quantity.
    """
    string = str(text).strip()
    for suffix, factor in _SUFFIXES.items():
        if string.endswith(suffix):
            return _decimal(string[: -len(suffix)], string) * factor
    return _decimal(string, string)


def _decimal(number: str, whole: str) -> Decimal:
    try:
        return Decimal(number)
    except InvalidOperation:
        raise ValueError(f"{whole!r} is not a quantity; hint: write it like 500m, 2 or 1.5Gi") from None


def parse_resources(quantities: Mapping[str, str | int | float] | None) -> Resources:
    """Return a resource list with every quantity as a number."""
    return {name: parse_quantity(quantity) for name, quantity in (quantities or {}).items()}


def format_quantity(resource: str, amount: Decimal) -> str:
    """Print an amount as the API server would: milli-CPUs where needed, integers elsewhere."""
    if resource == "cpu" and amount != amount.to_integral_value():
        return f"{int(amount * 1000)}m"
    return str(int(amount))


def total(lists: Iterable[Mapping[str, Decimal]]) -> Resources:
    """Return the sum of resource lists, key by key."""
    result: Resources = {}
    for resources in lists:
        for name, amount in resources.items():
            result[name] = result.get(name, Decimal(0)) + amount
    return result


def maximum(lists: Iterable[Mapping[str, Decimal]]) -> Resources:
    """Return the largest amount of each key over resource lists."""
    result: Resources = {}
    for resources in lists:
        for name, amount in resources.items():
            result[name] = max(result.get(name, Decimal(0)), amount)
    return result
