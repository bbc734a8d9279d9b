"""Tracebacks for the log: where something failed, and nothing of the data that made it fail."""

import traceback

#: Characters; the end of a traceback says where it failed.
_LONGEST = 8_000


def traceback_of(error: BaseException) -> str:
    """The traceback of an error as the interpreter writes it, its last 8,000 characters."""
    return "".join(traceback.format_exception(error))[-_LONGEST:].rstrip()
