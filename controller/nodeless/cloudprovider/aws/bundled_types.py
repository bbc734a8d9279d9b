"""What this distribution knows of instance types without asking anyone: the labels in its catalog.

For warnings and offline checks only. What is launched is decided by what EC2 says. The labels are worked out
when the catalog is made, for `nodeless validate` starts more often than that (`known_types.json`).
"""

import json
import pkgutil
from functools import cache

from nodeless.api.known_types import KnownTypes

FILE = "known_types.json"


@cache
def bundled_types() -> KnownTypes:
    """The labels of the types that EC2 described when the catalog was written."""
    # Not by `importlib.resources`, which takes longer to import than this to read.
    content = pkgutil.get_data(__package__, FILE)
    if content is None:
        raise FileNotFoundError(FILE)
    return KnownTypes.from_index(json.loads(content))


def index_text(known: KnownTypes) -> str:
    """The file of what is known: JSON, a label a line."""
    index = known.to_index()
    labels = ",\n".join(
        f" {json.dumps(key)}: {json.dumps(values, separators=(',', ':'))}"
        for key, values in index["bearers"].items()
    )
    head = f'"source": {json.dumps(index["source"])},\n"names": {json.dumps(index["names"])}'
    return f'{{{head},\n"bearers": {{\n{labels}\n}}}}\n'
