"""Pages as EC2 gives them: `MaxResults`, `NextToken`, and a default page size where EC2 has one.

moto gives all subnets and security groups in one page whatever is asked for, so that forgotten paging
goes unnoticed. EC2 gives pages where they are asked for, and refuses a page size below 1 and a token it
never gave.

Source: EC2 API reference, "Pagination" and DescribeSubnets, DescribeSecurityGroups (5 to 1000 a page).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from localenv.aws.calls import AwsError, Call, Handlers

T = TypeVar("T")


def page(
    items: Sequence[T], parameters: Mapping[str, Any], *, default: int | None, maximum: int
) -> tuple[list[T], str | None]:
    """The page that the parameters ask for, and the token of the next one.

    Raises:
        AwsError: `InvalidParameterValue` for a page size below 1 or a token never given. A page size above
        the
            maximum is cut to it.
    """
    token = parameters.get("NextToken")
    size = parameters.get("MaxResults")
    if size is not None and int(size) < 1:
        raise AwsError("InvalidParameterValue", f"Value ( {size} ) for parameter maxResults is invalid.")
    limit = min(int(size), maximum) if size is not None else default
    start = 0
    if token:
        if not str(token).startswith("page-") or not str(token)[5:].isdigit():
            raise AwsError("InvalidParameterValue", "Unable to parse pagination token")
        start = int(str(token)[5:])
    end = len(items) if limit is None else start + limit
    return list(items[start:end]), f"page-{end}" if end < len(items) else None


def _paginate(key: str, maximum: int) -> Callable[[Call], dict[str, Any]]:
    def describe(call: Call) -> dict[str, Any]:
        answer = call.forward(MaxResults=None, NextToken=None)
        answer[key], token = page(answer[key], call.parameters, default=None, maximum=maximum)
        answer.pop("NextToken", None)
        return answer | ({"NextToken": token} if token else {})

    return describe


HANDLERS: Handlers = {
    ("ec2", "DescribeSecurityGroups"): _paginate("SecurityGroups", 1000),
    ("ec2", "DescribeSubnets"): _paginate("Subnets", 1000),
}
