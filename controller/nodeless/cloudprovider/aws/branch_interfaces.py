"""Branch network interfaces by instance type: how many pods may have a security group of their own. Pure.

No API of EC2 tells this number. The table is the one that the VPC resource controller works by, which
creates these interfaces; `branch_interfaces.json` holds its source and date. A type that it does not
know, or that takes no trunk interface, has none.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

POD_ENI = "vpc.amazonaws.com/pod-eni"


def branch_interfaces(instance_type: str) -> int:
    """The branch interfaces of a type; 0 for one that is not known."""
    return _table().get(instance_type, 0)


@lru_cache(maxsize=1)
def _table() -> Mapping[str, int]:
    text = files("nodeless.cloudprovider.aws").joinpath("branch_interfaces.json").read_text(encoding="utf-8")
    table: dict[str, int] = json.loads(text)["branchInterfaces"]
    return table
