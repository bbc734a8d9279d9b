"""AWS's managed policies are read for the partition that is used, and once.

moto reads all of them for every partition as soon as one is touched, which takes seconds at the start, and
again after each reset, a fifth of a second each time. In AWS each partition has its own account and its own
policies. After a reset only those are made anew that somebody has attached, tagged or given versions.

Source: measured; `IAMBackend._init_aws_policies` in moto/iam/models.py. IAM user guide, "Partitions".
"""

from __future__ import annotations

from copy import copy
from typing import Any

from moto.iam.models import IAMBackend

from localenv.aws.upstream import replace_method

PARTITION = "aws"
_load = IAMBackend._init_aws_policies
#: The policies as they were read, by account; and those that were given out last.
_read: dict[str, list[Any]] = {}
_given: dict[str, list[Any]] = {}


def _init_aws_policies(self: Any) -> Any:
    if self.region_name != PARTITION:
        return []
    if self.account_id not in _read:
        _read[self.account_id] = _load(self)
        _given[self.account_id] = [_as_read(policy) for policy in _read[self.account_id]]
    pairs = zip(_given[self.account_id], _read[self.account_id], strict=True)
    given = [last if _state(last) == _state(read) else _as_read(read) for last, read in pairs]
    _given[self.account_id] = given
    return list(given)


def _state(policy: Any) -> tuple[object, ...]:
    """What calls can change of a policy of AWS's."""
    versions = [(version.version_id, version.is_default) for version in policy.versions]
    return policy.attachment_count, policy.tags, policy.default_version_id, policy.next_version_num, versions


def _as_read(policy: Any) -> Any:
    """A policy to attach, tag and give versions to, while the one that was read stays as it is."""
    made = copy(policy)
    made.tags = dict(policy.tags)
    made.versions = [copy(version) for version in policy.versions]
    return made


def patch() -> None:
    replace_method(IAMBackend, "_init_aws_policies", _init_aws_policies)
