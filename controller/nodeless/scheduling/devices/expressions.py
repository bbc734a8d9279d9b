"""CEL expressions that select devices, evaluated as kube-scheduler does.

The variable is `device` with `driver`, `attributes` and `capacity` by domain and name; an unknown domain is
an empty map
(https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-claim-v1/,
CELDeviceSelector). Beside CEL's own functions there are Kubernetes' quantities, semantic versions and
strings. Optional values, `cel.bind`, loops with two variables and other functions are not known here: an
expression with them counts as one that fails.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import semver

from nodeless.model.devices import Device, DeviceAttribute
from nodeless.model.quantity import QuantityError, parse_milli

#: Characters of an expression at most (Kubernetes' own limit), and steps that its loops may take.
_LONGEST, _MOST_STEPS = 10 * 1024, 1_000_000
#: Characters of a text that an expression may make.
_LONGEST_TEXT = 100_000
#: Elements that a map of attributes may have, at least as many as the API allows for a device.
_ELEMENTS = 64
_SHOWN = 200
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(")
_DOMAIN = re.compile(r"(attributes|capacity)\s*\[\s*(['\"])([^'\"]+)\2\s*\]")
_Value = Mapping[str, Any]


class SelectorError(ValueError):
    """An expression that cannot be evaluated: what is wrong with it, without the expression."""


def meets(expression: str, driver: str, device: Device) -> bool:
    """Whether a device meets an expression. Raises SelectorError."""
    outcome = _evaluated(expression, driver, device.attributes, device.capacity, device.multiple)
    if isinstance(outcome, str):
        raise SelectorError(outcome)
    return outcome


@lru_cache(maxsize=20_000)
def _evaluated(
    expression: str,
    driver: str,
    attributes: tuple[DeviceAttribute, ...],
    capacity: tuple[tuple[str, int], ...],
    multiple: bool,
) -> bool | str:
    """Whether it is met, or why that cannot be said."""
    program = _compiled(expression)
    if isinstance(program, str):
        return program
    try:
        answer = program(_variables(expression, driver, attributes, capacity, multiple=multiple))
    except Exception as error:  # whatever an expression does wrong, it is its own trouble alone
        return _one_line(error)
    return answer if isinstance(answer, bool) else "it is neither true nor false"


@lru_cache(maxsize=2_000)
def _compiled(expression: str) -> Callable[[_Value], Any] | str:
    """What evaluates an expression, or why nothing can."""
    if len(expression) > _LONGEST:
        return f"it is longer than {_LONGEST} characters"
    loops = len(_LOOP.findall(expression))
    if max(_ELEMENTS, expression.count(",") + 1) ** loops > _MOST_STEPS:
        return "its loops may take too many steps"
    # The library imports its command line, too: only where a pod claims devices.
    import cel  # noqa: PLC0415

    try:
        program = cel.compile(expression)
    except Exception as error:
        return _one_line(error)

    def evaluate(variables: _Value) -> Any:
        context = cel.Context(variables=dict(variables))
        for name, function in _FUNCTIONS.items():
            context.add_function(name, function)
        return program.execute(context)

    return evaluate


def _variables(
    expression: str,
    driver: str,
    attributes: tuple[DeviceAttribute, ...],
    capacity: tuple[tuple[str, int], ...],
    *,
    multiple: bool,
) -> _Value:
    maps: dict[str, dict[str, dict[str, Any]]] = {"attributes": {}, "capacity": {}}
    for kind, _, domain in _DOMAIN.findall(expression):
        maps[kind][domain] = {}
    for attribute in attributes:
        domain, _, name = attribute.name.partition("/")
        maps["attributes"].setdefault(domain, {})[name] = _value(attribute)
    for qualified, amount in capacity:
        domain, _, name = qualified.partition("/")
        maps["capacity"].setdefault(domain, {})[name] = {"quantity": amount}
    return {"device": {"driver": driver, "allowMultipleAllocations": multiple, **maps}}


def _value(attribute: DeviceAttribute) -> Any:
    if attribute.version is not None:
        return _version(attribute.version)
    given = (attribute.string, attribute.integer, attribute.boolean)
    return next((value for value in given if value is not None), None)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    text = f"key {text} is missing" if isinstance(error, KeyError) else text
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# Quantities and versions are maps of one member, which tells them apart.


def _quantity(text: str) -> _Value:
    return {"quantity": parse_milli(text)}


def _is_quantity(text: str) -> bool:
    try:
        parse_milli(text)
    except QuantityError:
        return False
    return True


def _version(text: str, normalize: bool = False) -> _Value:
    """Build metadata does not count: versions that differ in it are equal."""
    parsed = semver.Version.parse(_normalized(text) if normalize else text)
    return {"version": str(parsed.replace(build=None))}


def _is_version(text: str, normalize: bool = False) -> bool:
    return semver.Version.is_valid(_normalized(text) if normalize else text)


def _normalized(text: str) -> str:
    """A version without `v` and leading zeros, and with all its three numbers: `v1.02` is 1.2.0."""
    bare = text.removeprefix("v")
    core = re.split("[-+]", bare, maxsplit=1)[0]
    numbers = [number.lstrip("0") or "0" for number in core.split(".")]
    return ".".join([*numbers, "0", "0"][: max(3, len(numbers))]) + bare[len(core) :]


def _compared(left: _Value, right: _Value) -> int:
    if "version" in left:
        return int(semver.Version.parse(str(left["version"])).compare(str(right["version"])))
    mine, other = int(left["quantity"]), int(right["quantity"])
    return (mine > other) - (mine < other)


def _part(name: str) -> Callable[[_Value], int]:
    return lambda value: int(getattr(semver.Version.parse(value["version"]), name))


def _added(left: _Value, right: _Value | int, sign: int = 1) -> _Value:
    other = right * 1000 if isinstance(right, int) else right["quantity"]
    return {"quantity": left["quantity"] + sign * other}


def _replaced(text: str, old: str, new: str, most: int = -1) -> str:
    times = text.count(old) if most < 0 else min(text.count(old), most)
    if len(text) + times * (len(new) - len(old)) > _LONGEST_TEXT:
        raise ValueError(f"a text in it becomes longer than {_LONGEST_TEXT} characters")
    return text.replace(old, new, most)


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    return text.split(separator, most - 1 if most > 0 else -1) if most else []


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError(f"a text in it has no characters {start} to {end}")
    return text[start:end]


def _character(text: str, place: int) -> str:
    return _substring(text, place, min(place + 1, max(len(text), place)))


def _integer(value: _Value) -> int:
    if value["quantity"] % 1000:
        raise ValueError("a quantity in it is not a whole number")
    return int(value["quantity"]) // 1000


def _in_ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(each) if each.isascii() else each for each in text)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "semver": _version,
    "isSemver": _is_version,
    "compareTo": _compared,
    "isGreaterThan": lambda left, right: _compared(left, right) > 0,
    "isLessThan": lambda left, right: _compared(left, right) < 0,
    "sign": lambda value: _compared(value, {"quantity": 0}),
    "isInteger": lambda value: value["quantity"] % 1000 == 0,
    "asInteger": _integer,
    "asApproximateFloat": lambda value: value["quantity"] / 1000,
    "add": _added,
    "sub": lambda left, right: _added(left, right, -1),
    "major": _part("major"),
    "minor": _part("minor"),
    "patch": _part("patch"),
    "lowerAscii": _in_ascii(str.lower),
    "upperAscii": _in_ascii(str.upper),
    "trim": str.strip,
    "replace": _replaced,
    "split": _split,
    "substring": _substring,
    "join": lambda parts, separator="": separator.join(parts),
    "indexOf": str.find,
    "lastIndexOf": str.rfind,
    "charAt": _character,
}
