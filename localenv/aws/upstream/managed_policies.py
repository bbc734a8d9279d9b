"""AWS's managed policies are read for the partition that is used.

moto reads all of them for every partition as soon as one is touched, which takes seconds at the start. In AWS
each partition has its own account and its own policies.

Source: measured; `IAMBackend._init_aws_policies` in moto/iam/models.py. IAM user guide, "Partitions".
"""

from __future__ import annotations

from typing import Any

from moto.iam.models import IAMBackend

from localenv.aws.upstream import replace_method

PARTITION = "aws"
_load = IAMBackend._init_aws_policies


def _init_aws_policies(self: Any) -> Any:
    return _load(self) if self.region_name == PARTITION else []


def patch() -> None:
    replace_method(IAMBackend, "_init_aws_policies", _init_aws_policies)
