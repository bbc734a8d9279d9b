"""What the resources of EKS have in common: tags by ARN, and a status to wait for.

Everything takes its time on AWS, so every change here waits for the state that EKS
reports. The resources stand in `eks_cluster` and `eks`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from localenv.pulumi.aws.clients import AwsClients, AwsResource, changed_tags
from localenv.pulumi.resources import Inputs, ResourceFailed

_POLL_SECONDS = 0.1
#: The real provider waits thirty minutes for a cluster, the longest of them.
_WAIT_SECONDS = 1800.0
#: States in which EKS goes on by itself.
_MOVING = frozenset({"CREATING", "UPDATING", "DELETING", "PENDING"})


class EksResource(AwsResource):
    """A resource that has an ARN, tags by ARN, and a status to wait for."""

    def update(self, backend: AwsClients, identity: str, old: Inputs, new: Inputs) -> None:
        removed, added = changed_tags(old.get("tags"), new.get("tags"))
        if not removed and not added:
            return
        outputs = self.read(backend, identity, new) or {}
        arn = next(outputs[key] for key in ("arn", "accessEntryArn", "associationArn") if key in outputs)
        if removed:
            backend.eks.untag_resource(resourceArn=arn, tagKeys=removed)
        if added:
            backend.eks.tag_resource(resourceArn=arn, tags=added)


def wait(look: Callable[[], dict[str, Any] | None], what: str, state: str | None) -> None:
    """Wait until the status is `state`; None means until it is gone."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        found = look()
        status = found["status"] if found else None
        if status == state:
            return
        if status not in _MOVING and not (state is None and status == "ACTIVE"):
            health = (found or {}).get("health", {}).get("issues", [])
            raise ResourceFailed(f"{what} is {status or 'gone'}, not {state}: {health}")
        if time.monotonic() > deadline:
            raise ResourceFailed(f"{what} is still {status} after {_WAIT_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)


def instant(value: Any) -> str:
    """A time as text, as Pulumi takes it."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value or "")
