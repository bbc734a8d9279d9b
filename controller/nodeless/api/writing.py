"""The model to manifests: claims and their status, as the API server takes them.

Objects of users are never written as a whole: they are patched, so that everything in
them stays as it was spelled.
"""

from collections.abc import Iterable
from typing import Any

from nodeless.api.kinds import GROUP_OF_KIND, NODE_CLAIM, VERSION_OF_KIND
from nodeless.api.times import format_life_span, format_time
from nodeless.model.labels import TERMINATION_FINALIZER
from nodeless.model.nodes import Condition, NodeClaim
from nodeless.model.pools import Reference
from nodeless.model.resources import format_resources
from nodeless.model.taints import Taint


def write_claim(claim: NodeClaim) -> dict[str, Any]:
    """The NodeClaim to create: metadata and spec; what the server owns (uid, times, status) is left out.

    It always has the termination finalizer, the label that names its pool, and its pool as owner when
    the pool's uid is known.
    """
    spec: dict[str, Any] = {
        "nodeClassRef": {
            "group": GROUP_OF_KIND[claim.node_class.kind],
            "kind": claim.node_class.kind,
            "name": claim.node_class.name,
        },
        "requirements": claim.requirements.to_api(),
        "expireAfter": format_life_span(claim.expire_after),
    }
    if claim.termination_grace_period is not None:
        spec["terminationGracePeriod"] = format_life_span(claim.termination_grace_period)
    if claim.requests:
        spec["resources"] = {"requests": format_resources(claim.requests)}
    if claim.taints:
        spec["taints"] = _taints(claim.taints)
    if claim.startup_taints:
        spec["startupTaints"] = _taints(claim.startup_taints)
    return {
        "apiVersion": NODE_CLAIM.api_version,
        "kind": NODE_CLAIM.kind,
        "metadata": _metadata(claim),
        "spec": spec,
    }


def claim_status(claim: NodeClaim) -> dict[str, Any]:
    """The content of `status`, for the status subresource; what is not known yet is left out."""
    status: dict[str, Any] = {
        "providerID": claim.provider_id,
        "nodeName": claim.node_name,
        "imageID": claim.image_id,
        "capacity": format_resources(claim.capacity),
        "allocatable": format_resources(claim.allocatable),
        "conditions": conditions_to_api(claim.conditions),
        "lastPodEventTime": format_time(claim.last_pod_event) if claim.last_pod_event is not None else "",
    }
    return {name: value for name, value in status.items() if value}


def conditions_to_api(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """Conditions as `metav1.Condition`, which wants a reason: by default the type says it again."""
    return [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason or condition.type,
            "message": condition.message,
            "lastTransitionTime": format_time(condition.last_transition_time),
        }
        | ({"observedGeneration": condition.observed_generation} if condition.observed_generation else {})
        for condition in conditions
    ]


def _metadata(claim: NodeClaim) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": claim.name,
        "labels": {**claim.labels, claim.pool.pool_label: claim.pool.name},
        "finalizers": list(dict.fromkeys([*claim.finalizers, TERMINATION_FINALIZER])),
    }
    if claim.annotations:
        metadata["annotations"] = dict(claim.annotations)
    if claim.pool.uid:
        metadata["ownerReferences"] = [owner_reference(claim.pool)]
    return metadata


def owner_reference(owner: Reference) -> dict[str, Any]:
    """The owner reference to a pool: its foreground deletion waits for what it owns."""
    return {
        "apiVersion": f"{GROUP_OF_KIND[owner.kind]}/{VERSION_OF_KIND[owner.kind]}",
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": True,
    }


def _taints(taints: Iterable[Taint]) -> list[dict[str, str]]:
    return [
        {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})
        for taint in taints
    ]
