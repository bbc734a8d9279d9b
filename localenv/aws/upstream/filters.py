"""Filters of equal names, and filters of DescribeInstances that moto refuses.

moto makes a mapping of the filters, so that the last one of a name counts, and fails on one without a name.
EC2 joins all filters by AND and the values of each by OR, and refuses a filter without a name.

Source: EC2 user guide, "List and filter using the CLI and API"; API reference, DescribeInstances
(`client-token`, `instance-lifecycle`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moto.core.exceptions import ServiceException
from moto.ec2.responses._base_response import EC2BaseResponse
from moto.ec2.utils import filter_dict_attribute_mapping

from localenv.aws.upstream import replace_method


class EveryFilter(dict[str, list[str]]):
    """A filter map that keeps filters of equal names: `items()` yields each, so that they are ANDed."""

    def __init__(self, filters: Iterable[Mapping[str, Any]]) -> None:
        self._pairs = [(str(f["Name"]), [str(v) for v in f.get("Values", [])]) for f in filters]
        super().__init__(self._pairs)

    def items(self) -> Any:
        return list(self._pairs)


def _filters_from_querystring(self: Any) -> Any:
    filters = self._get_param("Filters", []) or self._get_param("Filter", [])
    if any("Name" not in f for f in filters):
        raise ServiceException("InvalidParameterValue", "The filter 'null' is invalid.")
    names = [f["Name"] for f in filters]
    if len(names) == len(set(names)):
        return {f["Name"]: f.get("Values", []) for f in filters}
    return EveryFilter(filters)


def patch() -> None:
    filter_dict_attribute_mapping.update({"client-token": "client_token", "instance-lifecycle": "lifecycle"})
    replace_method(EC2BaseResponse, "_filters_from_querystring", _filters_from_querystring)
