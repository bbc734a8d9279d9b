"""A policy as the managed policies that it takes: IAM allows 6,144 characters in each.

How many it takes follows from the cluster's name alone, with all else as long as it may be: which resources a
stack has does not depend on what is known only after others are made. Pure.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from pulumi_nodeless import names
from pulumi_nodeless.policies import MANAGED_POLICY_LIMIT, Document, Subject, document

#: Of each partition the longest name of a region, and the domain.
_PLACES: Final = {
    "aws": ("ap-southeast-1", "amazonaws.com"),
    "aws-cn": ("cn-northwest-1", "amazonaws.com.cn"),
    "aws-us-gov": ("us-gov-west-1", "amazonaws.com"),
}
#: Characters of the path of a role, at most.
_ROLE_PATH: Final = 512
_ACCOUNT: Final = "1" * 12


def longest_subjects(cluster: str) -> list[Subject]:
    """The cluster in each partition, with every other name as long as it may be."""
    role = "p" * (_ROLE_PATH - 2) + "/" + "r" * names.ROLE_LIMIT
    return [
        Subject(
            partition=partition,
            region=region,
            account=_ACCOUNT,
            dns_suffix=suffix,
            cluster=cluster,
            node_role_arn=f"arn:{partition}:iam::{_ACCOUNT}:role/{role}",
            interruption_queue_arn=f"arn:{partition}:sqs:{region}:{_ACCOUNT}:{'q' * names.QUEUE_LIMIT}",
        )
        for partition, (region, suffix) in _PLACES.items()
    ]


def size(policy: Document) -> int:
    """The characters that IAM counts."""
    return len(json.dumps(policy, separators=(",", ":")))


def parts(make: Callable[[Subject], Document], cluster: str) -> tuple[frozenset[str], ...]:
    """The statements of each managed policy, by Sid, in their order: as few policies as will do."""
    longest = [make(subject)["Statement"] for subject in longest_subjects(cluster)]
    found: list[list[int]] = [[]]
    for number in range(len(longest[0])):
        wanted = [*found[-1], number]
        if max(_size_of(statements, wanted) for statements in longest) <= MANAGED_POLICY_LIMIT:
            found[-1] = wanted
        else:
            found.append([number])
    return tuple(frozenset(longest[0][number]["Sid"] for number in part) for part in found)


def part_of(policy: Document, sids: frozenset[str]) -> Document:
    """The part of a policy that has these statements."""
    return document(*(each for each in policy["Statement"] if each["Sid"] in sids))


def _size_of(statements: Sequence[Any], numbers: Sequence[int]) -> int:
    return size(document(*(statements[number] for number in numbers)))
