"""Texts of settings as values: what each spelling means, and what is wrong with one that means nothing.

The spellings are Go's, because users write these settings for Karpenter: `1m30s`, `true`, `t`.
"""

import base64
import ipaddress
import json
import math
import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from nodeless.api.logging_config import LEVELS

_DURATION_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
#: Asked first: parts are looked for anew at each character, which takes hours in a million digits.
_DURATION = re.compile(f"(?:{_DURATION_PART.pattern})+")
#: Seconds: the longest duration that Go has (`time.ParseDuration` refuses more).
_LONGEST = (2**63 - 1) / 1e9
#: Digits of a whole number that can be meant.
_MOST_DIGITS = 9
#: Seconds; Karpenter v1 allows no less.
_LEAST_REFRESH = 60.0
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?:[-+].*)?")
BOOLEANS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


class UnusableValue(ValueError):
    """A text means nothing to its setting: what is wrong, and what to write instead."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(f"{problem}; hint: {hint}")
        self.problem = problem
        self.hint = hint


def text(value: str) -> str:
    """Any text, as it is."""
    return value


def boolean(value: str) -> bool:
    """Go's spellings of true and false; an empty text is false."""
    if value and value not in BOOLEANS:
        raise UnusableValue("is neither true nor false", "write true or false")
    return BOOLEANS.get(value, False)


def duration(value: str) -> float:
    """A positive Go duration, in seconds."""
    seconds = _any_duration(value)
    if seconds <= 0:
        raise UnusableValue("must be positive", "write for example 1s")
    return seconds


def _any_duration(value: str) -> float:
    """A Go duration, 0 allowed, in seconds."""
    if _DURATION.fullmatch(value) is None:
        raise UnusableValue("is not a duration", "write for example 10s or 1m30s")
    parts = _DURATION_PART.findall(value)
    seconds = sum(float(figure) * _DURATION_UNITS[unit] for figure, unit in parts)
    if seconds > _LONGEST:
        raise UnusableValue("is longer than any duration", "at most 2562047h")
    return float(seconds)


def refresh_interval(value: str) -> float:
    """A Go duration of a minute or more, in seconds."""
    seconds = duration(value)
    if seconds < _LEAST_REFRESH:
        raise UnusableValue("is less than a minute", "write for example 1m or 15m")
    return seconds


def gang_timeout(value: str) -> float:
    """Seconds; ten minutes where nothing is given."""
    return duration(value or "10m")


def termination_wait(value: str) -> float:
    """Seconds, 0 allowed; 30 where nothing is given."""
    return 0.0 if value == "0" else _any_duration(value or "30s")


def certificate_authority(value: str) -> str:
    """Base64 of a PEM with certificates, as kubeconfigs have it; empty for none."""
    try:
        pem = base64.b64decode(value, validate=True)
    except ValueError:
        raise UnusableValue("is not base64", "give the PEM as base64, as a kubeconfig has it") from None
    if value and b"-----BEGIN CERTIFICATE-----" not in pem:
        raise UnusableValue("is not base64 of a PEM with certificates", "write: base64 -w0 ca.crt")
    return value


def optional_duration(value: str) -> float | None:
    """A positive Go duration, in seconds; None for an empty text."""
    return duration(value) if value else None


def fraction(value: str) -> float:
    """A number from 0 to below 1."""
    figure = number(value)
    if not 0 <= figure < 1:
        raise UnusableValue("must be a fraction from 0 to below 1", "0.075 is 7.5 percent")
    return figure


def count(value: str) -> int:
    """A whole number, 0 or more."""
    if not (value.isascii() and value.isdigit()):
        raise UnusableValue("is not a whole number", "write for example 1")
    if len(value) > _MOST_DIGITS:
        raise UnusableValue("is too large", f"at most {_MOST_DIGITS} digits")
    return int(value)


def positive(value: str) -> int:
    """A whole number above 0."""
    whole = count(value)
    if whole == 0:
        raise UnusableValue("must be above 0", "write for example 200")
    return whole


def port(value: str) -> int:
    """A TCP port."""
    if not (value.isascii() and value.isdigit() and len(value) < 6 and int(value) < 65536):
        raise UnusableValue("is not a port", "a number below 65536")
    return int(value)


def address_to_listen_on(value: str) -> str:
    """All addresses of the family of a pod's own: `kubectl port-forward` comes to a loopback address.

    A loopback address, and a name, stays as it is.
    """
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return value
    if address.is_loopback:
        return value
    return "::" if address.version == 6 else "0.0.0.0"


def url(value: str) -> str:
    """An absolute URL with a host, or nothing."""
    try:
        host = urlsplit(value).hostname
    except ValueError:
        host = None
    if value and not host:
        raise UnusableValue("is not an absolute URL", "write https://HOST")
    return value


def tags(value: str) -> Mapping[str, str]:
    """A JSON object of strings; nothing is the empty one."""
    if not value:
        return {}
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict) or not all(isinstance(item, str) for item in parsed.values()):
        raise UnusableValue("is not a JSON object of strings", 'write {"team": "platform"}')
    return parsed


def log_level(value: str) -> str:
    """A word for a level of the log, in any case; empty for none."""
    if value and value.lower() not in LEVELS:
        raise UnusableValue("is not a level", f"use one of {', '.join(LEVELS)}")
    return value.lower()


def one_of(*choices: str) -> Callable[[str], str]:
    """A reader of one of a few words."""

    def choice(value: str) -> str:
        if value not in choices:
            raise UnusableValue("is not known", f"use one of {', '.join(choices)}")
        return value

    return choice


def number(value: str) -> float:
    """A number in decimal digits, as other tools read it too; NaN for any other text.

    Python's `float` takes more: `1_0` as 10, and digits of all scripts.
    """
    value = value.strip()
    return float(value) if _NUMBER.fullmatch(value) else math.nan


def version(value: str) -> tuple[int, int, int]:
    """Major, minor and patch of a version such as `v1.24.0` or `1.19.0-0`.

    What follows a hyphen does not count: vendors put their builds there (`v1.31.2-eks-7f9249a`).
    """
    match = _VERSION.fullmatch(value)
    if match is None:
        raise UnusableValue("is not a version", "write for example 1.24.0")
    major, minor, patch = match.groups(default="0")
    return int(major), int(minor), int(patch)
