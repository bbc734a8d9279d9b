"""The settings of the solver: keys `nodeless.*` of the ConfigMap `karpenter-global-settings`.

| key | meaning | default |
|---|---|---|
| `nodeless.packing` | `lowest-price` or `fewest-nodes` | `NODELESS_PACKING`, else `lowest-price` |
| `nodeless.nodeFee` | US dollars an hour that every node costs besides its instance | 0 |
| `nodeless.timeBox` | seconds for the search of a cheaper plan; 0: none | 1 |
| `nodeless.priceAdjustments` | a JSON list of adjustments | `[]` |

An adjustment is an object with any of `pools`, `instanceTypes` and `capacityTypes` (lists of
strings that select; `*` is a wildcard in instance types) and either `price`, or `percent` and
`dollars` (`solve.pricing`), for example `[{"capacityTypes": ["on-demand"], "percent": -28}]`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeless.model.packing import packing_defect
from nodeless.solve import Policy, PriceAdjustment
from nodeless.solve.policy import DEFAULT_TIME_BOX

PACKING = "nodeless.packing"
NODE_FEE = "nodeless.nodeFee"
TIME_BOX = "nodeless.timeBox"
ADJUSTMENTS = "nodeless.priceAdjustments"
_LISTS = {"pools": "pools", "instanceTypes": "instance_types", "capacityTypes": "capacity_types"}
_NUMBERS = ("percent", "dollars", "price")
_EXAMPLE = 'write for example [{"instanceTypes": ["m5.*"], "percent": -20}]'

Fault = Callable[[str, str, str], None]
"""Takes the key of a setting, what is wrong with it, and what to do."""


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """What the ConfigMap says about planning; `packing` None: it says nothing."""

    packing: str | None = None
    node_fee: float = 0.0
    time_box: float = DEFAULT_TIME_BOX
    price_adjustments: tuple[PriceAdjustment, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, str], fault: Fault) -> "SolverSettings":
        """Read the keys that are there; what cannot be used is told to `fault` and left at its default."""
        packing = data.get(PACKING) or None
        if packing is not None and (defect := packing_defect(packing)):
            problem, _, hint = defect.partition("; hint: ")
            fault(PACKING, problem, hint)
            packing = None
        return cls(
            packing,
            _amount(data, NODE_FEE, 0.0, fault),
            _amount(data, TIME_BOX, DEFAULT_TIME_BOX, fault),
            _adjustments(data, fault),
        )

    def policy(self, packing: str) -> Policy:
        """The policy of every pass; `packing` is what the environment says."""
        return Policy(
            packing=self.packing or packing,
            node_fee=self.node_fee,
            time_box=self.time_box,
            price_adjustments=self.price_adjustments,
        )


def _amount(data: Mapping[str, str], key: str, default: float, fault: Fault) -> float:
    text = data.get(key, "")
    if not text:
        return default
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        fault(key, "is no number from 0 on", "write for example 0.01")
        return default
    return amount


def _adjustments(data: Mapping[str, str], fault: Fault) -> tuple[PriceAdjustment, ...]:
    text = data.get(ADJUSTMENTS, "")
    if not text:
        return ()
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    if not isinstance(listed, list):
        fault(ADJUSTMENTS, "is no JSON list", _EXAMPLE)
        return ()
    result = []
    for position, entry in enumerate(listed):
        try:
            result.append(_adjustment(entry))
        except ValueError as error:
            problem, _, hint = str(error).partition("; hint: ")
            fault(ADJUSTMENTS, f"entry {position}: {problem}", hint or _EXAMPLE)
    return tuple(result)


def _adjustment(entry: Any) -> PriceAdjustment:
    if not isinstance(entry, Mapping):
        raise ValueError("is no object")  # noqa: TRY004 - a fault like the others
    unknown = sorted(set(entry) - {*_LISTS, *_NUMBERS})
    if unknown:
        raise ValueError(f"unknown member {unknown[0]!r}; hint: use {', '.join((*_LISTS, *_NUMBERS))}")
    selections = {field: _strings(entry[name], name) for name, field in _LISTS.items() if name in entry}
    numbers = {name: _number(entry[name], name) for name in _NUMBERS if name in entry}
    if not numbers:
        raise ValueError("changes no price; hint: give percent, dollars or price")
    return PriceAdjustment(**selections, **numbers)  # type: ignore[arg-type]


def _strings(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f'{name} is no list of strings; hint: write ["NAME"]')
    return tuple(value)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is no number; hint: write it without quotes")  # noqa: TRY004
    return float(value)
