"""What a device must be like for a request: selectors, taints that it tolerates, capacity.

`combinations` are the choices of alternatives of all requests of a pod, as kube-scheduler tries them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from nodeless.model.devices import ClaimedDevices, Device, DeviceAlternative, DeviceClass, DeviceConstraint
from nodeless.model.taints import find_untolerated
from nodeless.scheduling.devices.expressions import SelectorError, meets

#: Combinations of the alternatives of all requests that are tried.
_MOST_COMBINATIONS = 64
#: Effects of device taints that keep a claim from a device.
_KEEPS_OFF = frozenset(("NoSchedule", "NoExecute"))


@dataclass(frozen=True, slots=True)
class Selection:
    """What a device must be like."""

    selectors: tuple[str, ...]
    """Those of the class first."""
    alternative: DeviceAlternative

    def accepts(self, driver: str, device: Device) -> bool:
        """Whether a device is like that, all of it free; one on which an expression fails is not."""
        return self.selects(driver, device) and self.tolerates(device)

    def selects(self, driver: str, device: Device) -> bool:
        """Whether a device is like that but for its taints."""
        return all(_meets(selector, driver, device) for selector in self.selectors) and self.has_capacity(
            device
        )

    def tolerates(self, device: Device) -> bool:
        """Whether it may have a device's taints."""
        hard = [taint for taint in device.taints if taint.effect in _KEEPS_OFF]
        return find_untolerated(hard, self.alternative.tolerations) is None

    def has_capacity(self, device: Device) -> bool:
        """Whether a device has the capacity that is asked for."""
        return not self.alternative.capacity or device.consumed(self.alternative.capacity) is not None


Chosen = tuple[tuple[Selection, ...], ...]
"""For each claim, one alternative of each of its requests."""


def combinations(
    claimed: Sequence[ClaimedDevices],
    classes: Mapping[str, DeviceClass],
    possible: Callable[[Selection], bool] | None = None,
) -> list[Chosen]:
    """Every choice of alternatives for all requests of some claims, those first that are asked for first.

    Of a request those alternatives are left out that are not `possible` (None: all are), as long as any is:
    of many requests with many alternatives only so many choices are tried.
    """
    options = []
    for request in (request for one in claimed for request in one.requests):
        known = [_selection(alternative, classes) for alternative in request.alternatives]
        options.append(list(filter(possible, known)) or known)
    sizes = [len(one.requests) for one in claimed]
    found = []
    for chosen in islice(product(*options), _MOST_COMBINATIONS):
        rest = iter(chosen)
        found.append(tuple(tuple(islice(rest, size)) for size in sizes))
    return found


def is_about(constraint: DeviceConstraint, request: str, alternative: str) -> bool:
    """Whether a constraint is about devices of a request, or of one of its alternatives."""
    named = constraint.requests
    return not named or request in named or f"{request}/{alternative}" in named


def selected_by(device_class: DeviceClass, driver: str, device: Device) -> bool:
    """Whether a device is one of a class; one on which an expression fails is not."""
    return all(_meets(selector, driver, device) for selector in device_class.selectors)


def _selection(alternative: DeviceAlternative, classes: Mapping[str, DeviceClass]) -> Selection:
    device_class = classes[alternative.device_class]
    return Selection((*device_class.selectors, *alternative.selectors), alternative)


def _meets(selector: str, driver: str, device: Device) -> bool:
    try:
        return meets(selector, driver, device)
    except SelectorError:
        return False
