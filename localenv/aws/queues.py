"""sqs.SetQueueAttributes: what is not named stays; moto drops the queue's policy."""

from __future__ import annotations

from typing import Any

from localenv.aws.calls import Call, Handlers


def set_queue_attributes(call: Call) -> dict[str, Any]:
    """sqs.SetQueueAttributes."""
    url, given = call.parameters["QueueUrl"], dict(call.parameters.get("Attributes") or {})
    present = call.client().get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])
    if "Policy" not in given and "Policy" in present.get("Attributes", {}):
        given["Policy"] = present["Attributes"]["Policy"]
    return call.forward(Attributes=given)


HANDLERS: Handlers = {("sqs", "SetQueueAttributes"): set_queue_attributes}
