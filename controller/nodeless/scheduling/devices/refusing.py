"""Why no node has the devices that a pod claims: the selector that none meets, the number, the constraint."""

from collections.abc import Sequence

from nodeless.model.devices import Amounts, ClaimedDevices, Device
from nodeless.model.pods import PodResourceClaim
from nodeless.model.resources import format_amount
from nodeless.scheduling.devices.expressions import SelectorError, meets
from nodeless.scheduling.devices.groups import DevicePlace, devices_of
from nodeless.scheduling.devices.selections import Selection

NO_DEVICE = "no node has all the devices at once that the pod's claims ask for"
COMMON_TAKEN = (
    "the devices that several nodes reach and that meet the pod's claims are all allocated; hint: it gets one"
    " when another pod ends; publish more of them if it must not wait"
)
_SHOWN = 160


def why_no_device(
    claimed: Sequence[ClaimedDevices],
    named: Sequence[PodResourceClaim],
    ways: Sequence[Sequence[Sequence[Selection]]],
    places: Sequence[DevicePlace],
) -> str:
    """What no place meets; empty where each request is met somewhere.

    Args:
        claimed: What is claimed together.
        named: The claims, as the pod names them.
        ways: The combinations of alternatives.
        places: The devices of every type and node.
    """
    if not any(places):
        return "no instance type of any pool is known to have devices, and no node publishes any"
    claims = ", ".join(map(str, named))
    for number, one in enumerate(claimed):
        for at, request in enumerate(one.requests):
            tried = dict.fromkeys(way[number][at] for way in ways)
            reasons = [_why_not(selection, places) for selection in tried]
            if all(reasons):
                return f"request {request.name} of {claims}: {'; or '.join(dict.fromkeys(reasons))}"
        for constraint in one.constraints:
            attribute = constraint.match_attribute or constraint.distinct_attribute
            if not any(
                attribute == known.name for _, device in devices_of(places) for known in device.attributes
            ):
                return f"{claims}: no device is known to have the attribute {attribute} of a constraint"
    return ""


def why_not_served(
    resource: str,
    device_class: str,
    claimed: ClaimedDevices,
    way: Sequence[Sequence[Selection]],
    places: Sequence[DevicePlace],
) -> str:
    """Why devices of the class that serves an extended resource which no node announces are nowhere."""
    reasons = [_why_not(way[0][at], places) for at in range(len(claimed.requests))] if any(places) else []
    why = next(
        filter(None, reasons), NO_DEVICE if reasons else "no instance type or node is known to have any"
    )
    return (
        f"{resource}: no node announces it, nor does an instance type of any pool; DeviceClass "
        f"{device_class} serves it by devices: {why}"
    )


def _why_not(selection: Selection, places: Sequence[DevicePlace]) -> str:
    """Why no place has enough devices for one request; empty: one has."""
    devices = list(dict.fromkeys(devices_of(places)))
    for selector in selection.selectors:
        outcomes = [_outcome(selector, driver, device) for driver, device in devices]
        if not any(outcome is True for outcome in outcomes):
            faults = [outcome for outcome in outcomes if isinstance(outcome, str)]
            # What fails for every device is wrong with the expression; else with the devices.
            fault = f" ({faults[0]})" if len(faults) == len(outcomes) else ""
            return f"no known device meets {_shown(selector)}{fault}"
    asked = selection.alternative.capacity
    if asked and not any(selection.has_capacity(device) for _, device in devices):
        return f"no known device has {_capacity(asked)} for one request"
    counts = [
        sum(group.count for group in place.groups if selection.accepts(group.driver, group.device))
        for place in places
    ]
    most, number = max(counts), selection.alternative.count or 1
    if not most:
        return "no known device meets all its selectors at once"
    return f"it asks for {number} devices of one node, which has {most} at most" if most < number else ""


def _capacity(asked: Amounts) -> str:
    return ", ".join(
        f"{format_amount(name, amount // 1000) if amount % 1000 == 0 else f'{amount}m'} of {name}"
        for name, amount in asked
    )


def _outcome(selector: str, driver: str, device: Device) -> bool | str:
    try:
        return meets(selector, driver, device)
    except SelectorError as error:
        return str(error)


def _shown(selector: str) -> str:
    text = " ".join(selector.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
