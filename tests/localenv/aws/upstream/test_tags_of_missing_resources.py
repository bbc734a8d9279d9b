"""Tags of what does not exist."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError


def test_tags_of_a_missing_instance_are_refused(ec2: Any) -> None:
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        ec2.create_tags(Resources=["i-00000000000000000"], Tags=[{"Key": "a", "Value": "b"}])
