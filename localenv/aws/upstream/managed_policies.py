"""AWS's managed policies are read for the partition that is used, and once.

moto reads all of them for every partition as soon as one is touched, which takes seconds at the start, and
again after each reset, a fifth of a second each time. In AWS each partition has its own account and its own
policies.

Source: measured; `IAMBackend._init_aws_policies` in moto/iam/models.py. IAM user guide, "Partitions".
"""

from __future__ import annotations

from copy import copy
from typing import Any

from moto.iam.models import IAMBackend

from localenv.aws.upstream import replace_method

PARTITION = "aws"
_load = IAMBackend._init_aws_policies
#: The policies as they were read, by account.
_read: dict[str, list[Any]] = {}


def _init_aws_policies(self: Any) -> Any:
    if self.region_name != PARTITION:
        return []
    if self.account_id not in _read:
        _read[self.account_id] = _load(self)
    return [_as_read(policy) for policy in _read[self.account_id]]


def _as_read(policy: Any) -> Any:
    """A policy to attach, tag and give versions to, while the one that was read stays as it is."""
    made = copy(policy)
    made.tags = dict(policy.tags)
    made.versions = [copy(version) for version in policy.versions]
    return made


def patch() -> None:
    replace_method(IAMBackend, "_init_aws_policies", _init_aws_policies)
