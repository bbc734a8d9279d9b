"""The annotation `nodeless.dev/devices` of a NodeOverlay: the devices that nodes of its types will publish.

Its value is YAML: a list with an entry for each driver, in the words of a ResourceSlice
(`resource.k8s.io/v1`): `driver`, `devices` and `sharedCounters`. A device has `attributes`, `capacity`,
`allowMultipleAllocations` and `consumesCounters`, as there; instead of a name it has a `count` (1 where it is
absent), and what `consumesCounters` names is in `sharedCounters` of its entry.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from nodeless.api.bounds import DocumentBounds
from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.names import qualified_name_defects
from nodeless.api.rule_codes import RuleCode
from nodeless.api.yaml_bounds import check_yaml
from nodeless.model.devices import (
    Amounts,
    CounterSet,
    Device,
    DeviceAttribute,
    DriverDevices,
    RequestPolicy,
    qualified,
)
from nodeless.model.labels import DEVICES
from nodeless.model.quantity import QuantityError, parse_milli

PATH = at("metadata.annotations", DEVICES)
#: Devices of one driver on a node, and attributes with capacities of a device, at most (the API's limits).
_MOST_DEVICES, _MOST_ATTRIBUTES = 128, 32
_BOUNDS = DocumentBounds(values=50_000, depth=20)
_VALUES: Mapping[str, type] = {"string": str, "int": int, "bool": bool, "version": str}
_ENTRY = ("driver", "devices", "sharedCounters")
_DEVICE = ("count", "attributes", "capacity", "allowMultipleAllocations", "consumesCounters")


def devices_errors(text: object) -> Iterator[FieldError]:
    """The faults of an annotation's value, each with its place in the value."""
    yield from _Reader(text).errors


def read_devices(text: str) -> tuple[DriverDevices, ...]:
    """The devices by driver that a value without faults describes."""
    return _Reader(text).found


class _Reader:
    """Reads as much as can be read, and notes each fault."""

    def __init__(self, text: object) -> None:
        self.errors: list[FieldError] = []
        self.found: tuple[DriverDevices, ...] = ()
        entries = self._entries(text)
        made = [self._entry(entry, at(PATH, number)) for number, entry in enumerate(entries)]
        self.found = tuple(one for one in made if one is not None)
        drivers = [one.driver for one in self.found]
        for driver in sorted({driver for driver in drivers if drivers.count(driver) > 1}):
            self._fault(PATH, driver, "has several entries", "write one entry for each driver")

    def _fault(
        self,
        path: str,
        value: object,
        message: str,
        hint: str = "",
        code: RuleCode = RuleCode.INVALID_DEVICES,
    ) -> None:
        self.errors.append(FieldError(path, value, message, hint, code=code))

    def _entries(self, text: object) -> list[Any]:
        if not isinstance(text, str):
            return []  # the form of metadata tells
        try:
            check_yaml(text, _BOUNDS)
            document = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:
            self._fault(PATH, ABSENT, f"is not YAML: {' '.join(str(error).split())}")
            return []
        return self._list(document, PATH)

    def _entry(self, entry: Any, path: str) -> DriverDevices | None:
        members = self._object(entry, path, _ENTRY)
        driver = members.get("driver")
        if not isinstance(driver, str) or not driver:
            self._fault(at(path, "driver"), members.get("driver", ABSENT), "must be the name of a driver")
            return None
        for defect in qualified_name_defects(driver):
            self._fault(at(path, "driver"), driver, defect)
        sets = self._counter_sets(members.get("sharedCounters"), at(path, "sharedCounters"), "name")
        known = {(one.name, name) for one in sets for name, _ in one.counters}
        devices: list[Device] = []
        where = at(path, "devices")
        for number, device in enumerate(self._list(members.get("devices"), where)):
            devices += self._devices(device, at(where, number), driver, known)
        if len(devices) > _MOST_DEVICES:
            self._fault(where, len(devices), f"are too many: a driver may publish {_MOST_DEVICES} of a node")
        return DriverDevices(driver, tuple(devices[:_MOST_DEVICES]), sets)

    def _devices(self, device: Any, path: str, driver: str, known: set[tuple[str, str]]) -> list[Device]:
        members = self._object(device, path, _DEVICE)
        count = members.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST_DEVICES:
            self._fault(at(path, "count"), count, f"must be a whole number from 1 to {_MOST_DEVICES}")
            count = 1
        attributes = self._attributes(members.get("attributes"), at(path, "attributes"), driver)
        given = self._object(members.get("capacity"), at(path, "capacity"))
        if len(attributes) + len(given) > _MOST_ATTRIBUTES:
            self._fault(path, ABSENT, f"has more than {_MOST_ATTRIBUTES} attributes and capacities")
        capacity: dict[str, int] = {}
        policies: dict[str, RequestPolicy] = {}
        for name, one in given.items():
            where = at(at(path, "capacity"), name)
            parts = self._object(one, where, ("value", "requestPolicy"))
            self._name(name, where)
            capacity[qualified(name, driver)] = self._quantity(parts.get("value"), at(where, "value")) or 0
            if parts.get("requestPolicy") is not None:
                policies[qualified(name, driver)] = self._policy(
                    parts["requestPolicy"], at(where, "requestPolicy")
                )
        multiple = members.get("allowMultipleAllocations", False)
        if not isinstance(multiple, bool):
            self._fault(at(path, "allowMultipleAllocations"), multiple, "must be true or false")
        if policies and multiple is not True:
            where = at(at(path, "capacity"), next(iter(given)))
            self._fault(
                at(where, "requestPolicy"),
                ABSENT,
                "is for devices that are allocated several times alone",
                "set allowMultipleAllocations to true, or leave the policy out",
            )
        consumes = self._counter_sets(
            members.get("consumesCounters"), at(path, "consumesCounters"), "counterSet"
        )
        for one in consumes:
            for name, _ in one.counters:
                if (one.name, name) not in known:
                    where = at(path, "consumesCounters")
                    self._fault(
                        where, f"{one.name}/{name}", "is not a counter of sharedCounters of this driver"
                    )
        return [
            Device(
                f"{path}-{number}",
                attributes,
                tuple(sorted(capacity.items())),
                (),
                multiple is True,
                tuple(sorted(policies.items())),
                consumes,
                tuple(sorted(qualified(name, driver) for name in given if "/" not in name)),
            )
            for number in range(count)
        ]

    def _attributes(self, given: Any, path: str, driver: str) -> tuple[DeviceAttribute, ...]:
        found = []
        for name, value in self._object(given, path).items():
            where = at(path, name)
            self._name(name, where)
            members = self._object(value, where, tuple(_VALUES))
            if len(members) != 1:
                self._fault(where, value, f"must have exactly one of {', '.join(_VALUES)}")
                continue
            ((kind, text),) = members.items()
            if kind in _VALUES and type(text) is not _VALUES[kind]:
                self._fault(
                    at(where, kind), text, f"must be of the kind {kind}", "quote it, or use another kind"
                )
                continue
            member = {"int": "integer", "bool": "boolean"}.get(kind, kind)
            if kind in _VALUES:
                found.append(DeviceAttribute(qualified(name, driver), **{member: text}))
        return tuple(sorted(found, key=lambda attribute: attribute.name))

    def _policy(self, given: Any, path: str) -> RequestPolicy:
        members = self._object(given, path, ("default", "validValues", "validRange"))
        where = at(path, "validRange")
        allowed = self._object(members.get("validRange"), where, ("min", "max", "step"))
        values = self._list(members.get("validValues"), at(path, "validValues"))
        amounts = [
            self._quantity(one, at(at(path, "validValues"), number)) for number, one in enumerate(values)
        ]
        if (values or allowed) and members.get("default") is None:
            self._fault(at(path, "default"), ABSENT, "is required beside validValues and validRange")
        if values and allowed:
            self._fault(path, ABSENT, "has both validValues and validRange", "leave one of them out")
        return RequestPolicy(
            self._quantity(members.get("default"), at(path, "default"), required=False),
            tuple(sorted(amount for amount in amounts if amount is not None)),
            self._quantity(allowed.get("min"), at(where, "min"), required=bool(allowed)),
            self._quantity(allowed.get("max"), at(where, "max"), required=False),
            self._quantity(allowed.get("step"), at(where, "step"), required=False),
        )

    def _counter_sets(self, given: Any, path: str, key: str) -> tuple[CounterSet, ...]:
        found = []
        for number, one in enumerate(self._list(given, path)):
            where = at(path, number)
            members = self._object(one, where, (key, "counters"))
            name = members.get(key)
            if not isinstance(name, str) or not name:
                self._fault(at(where, key), members.get(key, ABSENT), "must be the name of a counter set")
                continue
            found.append(CounterSet(name, self._counters(members.get("counters"), at(where, "counters"))))
        return tuple(found)

    def _counters(self, given: Any, path: str) -> Amounts:
        counters: dict[str, int] = {}
        for name, one in self._object(given, path).items():
            members = self._object(one, at(path, name), ("value",))
            counters[name] = self._quantity(members.get("value"), at(at(path, name), "value")) or 0
        return tuple(sorted(counters.items()))

    def _quantity(self, given: Any, path: str, *, required: bool = True) -> int | None:
        """Thousandths; None where there is none, which is a fault where it is required."""
        if given is None:
            if required:
                self._fault(path, ABSENT, "is required", code=RuleCode.MISSING_FIELD)
            return None
        try:
            amount = parse_milli(given) if isinstance(given, str | int | float) else -1
        except QuantityError as error:
            self._fault(path, given, str(error).partition(" ")[2])
            return None
        if amount < 0 or isinstance(given, bool):
            self._fault(path, given, "must be a quantity of 0 or more")
            return None
        return amount

    def _name(self, name: str, path: str) -> None:
        for defect in qualified_name_defects(name):
            self._fault(path, name, defect)

    def _list(self, given: Any, path: str) -> list[Any]:
        if given is None:
            return []
        if not isinstance(given, list):
            self._fault(path, given, "must be a list", code=RuleCode.WRONG_TYPE)
            return []
        return given

    def _object(self, given: Any, path: str, known: tuple[str, ...] = ()) -> dict[str, Any]:
        """The members of an object; those that are not known are faults, where any are named."""
        if given is None:
            return {}
        if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
            self._fault(path, given, "must be an object", code=RuleCode.WRONG_TYPE)
            return {}
        for name in given if known else ():
            if name not in known:
                hint = f"known: {', '.join(known)}"
                self._fault(at(path, name), given[name], "is not known here", hint, RuleCode.UNKNOWN_FIELD)
        return given
