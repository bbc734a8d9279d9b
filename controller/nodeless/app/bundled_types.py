"""What this distribution knows of instance types without asking anyone: the table `types.json`.

For warnings and offline checks only. What is launched is decided by what EC2 says.
"""

import json
from functools import cache
from importlib.resources import files

from nodeless.api.known_types import KnownTypes
from nodeless.model.requirements import Requirement, Requirements


@cache
def bundled_types() -> KnownTypes:
    """The labels of the types that EC2 described when the table was written."""
    table = json.loads(files("nodeless.app").joinpath("types.json").read_text(encoding="utf-8"))
    keys: list[str] = table["labels"]
    types = {
        row[0]: Requirements(
            Requirement(key, False, frozenset(values)) for key, values in zip(keys, row[1:], strict=True)
        )
        for row in table["types"]
    }
    return KnownTypes(types, f"{len(types)} types of {table['region']} are known")
