"""Amounts of memory as programs of the JVM are given them: `2g`, `512m`, always powers of two."""

import re
from typing import Any

from nodeless.cli.manifests.members import Unusable

_SIZE = re.compile(r"(\d+)\s*([a-z]*)")
_MIB = 2**20
_UNITS = {"b": 1, "k": 2**10, "m": _MIB, "g": 2**30, "t": 2**40}
#: Behind the first letter of a unit: `mb`, `mib`, and as Kubernetes writes it, `Mi`.
_ENDINGS = ("", "b", "i", "ib")


def mebibytes(given: Any, path: str, unit: str) -> int:
    """The MiB that an amount is, rounded up; `unit` is that of a plain number. Raises Unusable."""
    found = _SIZE.fullmatch(str(given).strip().lower())
    letters = (found.group(2) or unit) if found else ""
    if found is None or letters[0] not in _UNITS or letters[1:] not in _ENDINGS:
        raise Unusable(path, f"{path}: {given!r} is not an amount of memory; hint: 512m or 4g")
    return -(-int(found.group(1)) * _UNITS[letters[0]] // _MIB)
