"""Series of instance types and their offerings: what the pools may buy, where, and at which estimated price.

Karpenter v1's names. There are two series for each type, zone and capacity type, so tens of thousands where
pools allow every type: they are written here, once for as long as the catalogs stay the same objects.
"""

from collections.abc import Iterable, Mapping

from nodeless.model.instance_types import InstanceType
from nodeless.model.resources import CPU, MEMORY

_AVAILABLE = "karpenter_cloudprovider_instance_type_offering_available"
_PRICE = "karpenter_cloudprovider_instance_type_offering_price_estimate"
_CORES = "karpenter_cloudprovider_instance_type_cpu_cores"
_MEMORY = "karpenter_cloudprovider_instance_type_memory_bytes"
_OFFERING_LABELS = ("instance_type", "capacity_type", "zone")
OFFERING_FAMILIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    _AVAILABLE: (
        "1 for each offering that a pool can launch now, 0 for one without capacity.",
        _OFFERING_LABELS,
    ),
    _PRICE: ("Estimated price of an offering in US dollars an hour.", _OFFERING_LABELS),
    _CORES: ("Number of CPUs of an instance type.", ("instance_type",)),
    _MEMORY: ("Memory of an instance type.", ("instance_type",)),
}
"""Meaning and labels by name."""

Catalogs = Mapping[str, tuple[InstanceType, ...]]


class OfferingMetrics:
    """Writes the series of the catalogs that were shown last."""

    def __init__(self) -> None:
        self._catalogs: tuple[tuple[InstanceType, ...], ...] = ()
        self._text = _format_families(())

    def show(self, catalogs: Catalogs) -> None:
        """Have the series be those of some pools' catalogs, by pool key."""
        shown = tuple(types for _, types in sorted(catalogs.items()))
        # Catalogs that did not change are the same objects.
        if len(shown) != len(self._catalogs) or any(map(_is_other, shown, self._catalogs)):
            self._catalogs, self._text = shown, _format_families(shown)

    def text(self) -> str:
        """All families, in Prometheus' text format."""
        return self._text


def _is_other(left: object, right: object) -> bool:
    return left is not right


def _format_families(catalogs: Iterable[tuple[InstanceType, ...]]) -> str:
    """The families; pools that share an offering share its series, available where one of them can buy it."""
    available: dict[str, bool] = {}
    prices: dict[str, float] = {}
    cores: dict[str, float] = {}
    memory: dict[str, float] = {}
    for instance_type in (type_ for types in catalogs for type_ in types):
        name = f'instance_type="{instance_type.name}"'
        cores[name] = instance_type.capacity.get(CPU, 0) / 1000
        memory[name] = instance_type.capacity.get(MEMORY, 0)
        for offering in instance_type.offerings:
            labels = f'{name},capacity_type="{offering.capacity_type}",zone="{offering.zone}"'
            available[labels] = available.get(labels, False) or offering.for_sale
            if offering.price_known:
                prices[labels] = offering.instance_price
    families: dict[str, Mapping[str, float]] = {
        _AVAILABLE: available,
        _PRICE: prices,
        _CORES: cores,
        _MEMORY: memory,
    }
    return "".join(_family(name, series) for name, series in families.items())


def _family(name: str, series: Mapping[str, float]) -> str:
    lines = "".join(f"{name}{{{labels}}} {float(value)!r}\n" for labels, value in series.items())
    return f"# HELP {name} {OFFERING_FAMILIES[name][0]}\n# TYPE {name} gauge\n{lines}"
