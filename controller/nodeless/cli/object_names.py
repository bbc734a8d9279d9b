"""Arguments that name objects of the cluster, `KIND/NAME` as kubectl has them, among names of files."""

from collections.abc import Collection, Sequence
from pathlib import Path

from nodeless.model.workloads import kind_called


def split_names(arguments: Sequence[str], kinds: Collection[str]) -> tuple[list[str], list[str]]:
    """The files among some arguments, and the objects as `Kind/name`.

    What is there as a file or a folder is one.

    Args:
        arguments: As they were given.
        kinds: Of objects that may be named.
    """
    files, names = list[str](), list[str]()
    for argument in arguments:
        kind, slash, name = argument.partition("/")
        called = kind_called(kind)
        if slash and name and "/" not in name and called in kinds and not Path(argument).exists():
            names.append(f"{called}/{name}")
        else:
            files.append(argument)
    return files, names
