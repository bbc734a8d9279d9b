"""Kubernetes quantities (`500m`, `2Gi`, `1e3`) as exact integers, and back.

Inside nodeless a quantity is an `int`: CPU in millicores, everything else in whole
units (bytes, pieces), rounded up as Kubernetes' scheduler rounds a request
(apimachinery, `resource.Quantity.Value` and `MilliValue`).
"""

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

_PATTERN = re.compile(r"^([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$")
_SUFFIXES = {
    "n": Decimal(10) ** -9,
    "u": Decimal(10) ** -6,
    "m": Decimal(10) ** -3,
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}
#: Beyond any amount that Kubernetes can hold (63 bits), and cheap to compute with.
_LARGEST_EXPONENT = 30
_MOST_EXPONENT_DIGITS = 8
#: Before the point: more are beyond any amount even with the smallest exponent; a million overflow a Decimal.
_MOST_WHOLE_DIGITS = 60
#: Larger quantities count as this: more than Kubernetes computes with, and cheap for us.
LARGEST = Decimal(2**70)
#: Characters of a text that is no quantity which are shown.
_SHOWN = 64
#: How many amounts are kept as they were read, and how many characters each has at most.
_KEPT, _LONGEST_KEPT = 4096, 32
_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


class QuantityError(ValueError):
    """A text that is no Kubernetes quantity; `text` is what was given."""

    def __init__(self, text: str) -> None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        super().__init__(
            f"{shown!r} is not a quantity; hint: write a number with an optional suffix, as 500m, 2 or 4Gi"
        )
        self.text = text


def parse_decimal(text: str | int | float) -> Decimal:
    """The exact value of a quantity, of `LARGEST` at most in magnitude. Raises QuantityError."""
    if isinstance(text, int):
        return Decimal(min(max(text, -int(LARGEST)), int(LARGEST)))
    text = str(text)
    return _read_again(text) if len(text) <= _LONGEST_KEPT else _read(text)


def _read(text: str) -> Decimal:
    match = _PATTERN.match(text.strip())
    if match is None:
        raise QuantityError(text)
    sign, number, exponent, suffix = match.groups()
    if exponent and len(exponent) > _MOST_EXPONENT_DIGITS:
        raise QuantityError(text)
    if exponent and abs(int(exponent[1:])) > _LARGEST_EXPONENT:
        raise QuantityError(text)
    if len(number.partition(".")[0].lstrip("0")) > _MOST_WHOLE_DIGITS:
        return -LARGEST if sign == "-" else LARGEST
    value = min(Decimal(number + (exponent or "")) * _SUFFIXES[suffix or ""], LARGEST)
    return -value if sign == "-" else value


#: The pods of a workload name the same amounts, each pod in each of its events.
_read_again = lru_cache(_KEPT)(_read)


def parse_units(text: str | int | float) -> int:
    """A quantity in whole units (bytes, pieces), rounded up. Raises QuantityError."""
    return int(parse_decimal(text).to_integral_value(ROUND_CEILING))


def parse_milli(text: str | int | float) -> int:
    """A quantity in thousandths (millicores), rounded up. Raises QuantityError."""
    return int((parse_decimal(text) * 1000).to_integral_value(ROUND_CEILING))


def format_milli(value: int) -> str:
    """Millicores in canonical form: `1500m`, `2`."""
    return str(value // 1000) if value % 1000 == 0 else f"{value}m"


def format_units(value: int) -> str:
    """Whole units in canonical binary form: `20Gi`, `1536Mi`, `5`."""
    if value and value % 1024 == 0:
        for suffix in _BINARY:
            unit = int(_SUFFIXES[suffix])
            if value % unit == 0:
                return f"{value // unit}{suffix}"
    return str(value)
