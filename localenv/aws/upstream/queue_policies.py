"""A queue keeps the policy that a change of its other attributes does not name.

moto sets the policy to what the call says, so a call that says nothing of it takes it away. SQS changes the
attributes that are named.

Source: SQS API reference, SetQueueAttributes; `Queue._set_attributes` in moto/sqs/models.py.
"""

from __future__ import annotations

from typing import Any

from moto.sqs.models import Queue

from localenv.aws.upstream import replace_method

_set = Queue._set_attributes


def _set_attributes(self: Any, attributes: dict[str, Any], now: float | None = None) -> None:
    kept = self.policy if hasattr(self, "_policy_json") else None
    _set(self, attributes, now)
    if "Policy" not in attributes:
        self.policy = kept


def patch() -> None:
    replace_method(Queue, "_set_attributes", _set_attributes)
