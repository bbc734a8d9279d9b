"""Rules for `spec.kubeletConfiguration`: eviction signals, reserved resources, image garbage collection."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.kubelet_constants import DURATION, RESERVABLE, SIGNALS
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schema_validation import amount_of, is_quantity
from nodeless.api.suggestions import did_you_mean

#: A decimal number; Python would also read blanks, underscores and other scripts' digits.
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_SOFT, _GRACE = "evictionSoft", "evictionSoftGracePeriod"
_HIGH, _LOW = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"


def kubelet_errors(kubelet: Any, path: str) -> Iterator[FieldError]:
    """The faults of a kubelet configuration."""
    if not isinstance(kubelet, Mapping):
        return
    for name in ("evictionHard", _SOFT):
        for signal, threshold in _members(kubelet, name):
            yield from _signal_errors(signal, at(path, name))
            yield from _threshold_errors(threshold, at(at(path, name), signal))
    for signal, period in _members(kubelet, _GRACE):
        yield from _signal_errors(signal, at(path, _GRACE))
        if isinstance(period, str) and not re.fullmatch(DURATION, period):
            where = at(at(path, _GRACE), signal)
            yield FieldError(
                where,
                period,
                "is not a duration",
                "write it as 90s, 1m30s or 2h",
                code=RuleCode.INVALID_FORMAT,
            )
    yield from _pair_errors(kubelet, path)
    for name in ("kubeReserved", "systemReserved"):
        yield from _reserved_errors(kubelet, name, path)
    yield from _image_errors(kubelet, path)


def kubelet_value_errors(kubelet: Any, path: str) -> Iterator[FieldError]:
    """The faults of thresholds and reserved amounts alone, which no CEL rule of generation v1 reads."""
    if not isinstance(kubelet, Mapping):
        return
    for name in ("evictionHard", _SOFT):
        for signal, threshold in _members(kubelet, name):
            yield from _threshold_errors(threshold, at(at(path, name), signal))
    for name in ("kubeReserved", "systemReserved"):
        for resource, amount in _members(kubelet, name):
            if isinstance(amount, str) and not is_quantity(amount):
                yield FieldError(
                    at(at(path, name), resource),
                    amount,
                    "is not a quantity",
                    "write it as 100m or 1Gi",
                    code=RuleCode.INVALID_FORMAT,
                )


def _members(kubelet: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    members = kubelet.get(name)
    found = members.items() if isinstance(members, Mapping) else ()
    return [(key, value) for key, value in found if isinstance(key, str)]


def _signal_errors(signal: str, path: str) -> Iterator[FieldError]:
    if signal not in SIGNALS:
        listed = f"use one of {', '.join(SIGNALS)}"
        yield FieldError(
            at(path, signal),
            ABSENT,
            "is not an eviction signal",
            did_you_mean(signal, SIGNALS, listed),
            code=RuleCode.INVALID_KUBELET_SETTING,
        )


def _threshold_errors(threshold: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(threshold, str):
        return
    if not threshold.endswith("%"):
        if not is_quantity(threshold):
            yield FieldError(
                path,
                threshold,
                "is neither a quantity nor a percentage",
                "write it as 100Mi or 5%",
                code=RuleCode.INVALID_FORMAT,
            )
        return
    if not re.fullmatch(_NUMBER, threshold[:-1]):
        yield FieldError(
            path, threshold, "is not a percentage", "write it as 5%", code=RuleCode.INVALID_FORMAT
        )
    elif not 0 <= float(threshold[:-1]) <= 100:
        yield FieldError(path, threshold, "must be from 0% to 100%", code=RuleCode.OUT_OF_RANGE)


def _pair_errors(kubelet: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    soft = dict(_members(kubelet, _SOFT))
    grace = dict(_members(kubelet, _GRACE))
    for signal in soft.keys() - grace.keys():
        where = at(at(path, _SOFT), signal)
        yield FieldError(
            where,
            soft[signal],
            f"has no grace period in {_GRACE}",
            "add one, as 1m30s",
            code=RuleCode.INCOMPLETE_FIELDS,
        )
    for signal in grace.keys() - soft.keys():
        where = at(at(path, _GRACE), signal)
        yield FieldError(
            where,
            grace[signal],
            f"has no threshold in {_SOFT}",
            "add one, or leave this out",
            code=RuleCode.INCOMPLETE_FIELDS,
        )


def _reserved_errors(kubelet: Mapping[str, Any], name: str, path: str) -> Iterator[FieldError]:
    for resource, amount in _members(kubelet, name):
        where = at(at(path, name), resource)
        if resource not in RESERVABLE:
            listed = f"use one of {', '.join(RESERVABLE)}"
            hint = did_you_mean(resource, RESERVABLE, listed)
            yield FieldError(
                where,
                ABSENT,
                "is not a resource that can be reserved",
                hint,
                code=RuleCode.INVALID_KUBELET_SETTING,
            )
        if (number := amount_of(amount)) is not None and number < 0:
            yield FieldError(where, amount, "must not be negative", code=RuleCode.OUT_OF_RANGE)


def _image_errors(kubelet: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    high, low = kubelet.get(_HIGH), kubelet.get(_LOW)
    low = 0 if low is None else low
    if isinstance(high, int) and isinstance(low, int) and high < low:
        yield FieldError(
            at(path, _HIGH), high, f"must not be below {_LOW} ({low})", code=RuleCode.INVALID_KUBELET_SETTING
        )
        yield FieldError(
            at(path, _LOW), low, f"must not be above {_HIGH} ({high})", code=RuleCode.INVALID_KUBELET_SETTING
        )
