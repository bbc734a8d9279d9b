"""Times as AWS writes them.

A record of an instance has three. botocore finds out anew for each how it is written, which is a third of
the work of reading 500 instances; nearly all are written as ISO 8601 says, and Python reads those at once.
"""

from contextlib import suppress
from datetime import datetime
from typing import Any

from botocore.utils import parse_timestamp

_DATE = len("2026-01-31")


def read_time(value: Any) -> datetime:
    """The moment that a text or a number of an answer means, as botocore reads it.

    Raises:
        ValueError: It means none.
    """
    if isinstance(value, str) and value[_DATE : _DATE + 1] == "T":
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    return parse_timestamp(value)
