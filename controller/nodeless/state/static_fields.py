"""Digests of what a node takes from its pool and node class when it is made, and never again.

A claim carries the digests of its time as annotations (Karpenter's names). When they differ
from those of today, the node has drifted. The version says how a digest is made: digests of
different versions say nothing about each other.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from nodeless.model.labels import (
    NODE_CLASS_HASH,
    NODE_CLASS_HASH_VERSION,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
)
from nodeless.model.pools import PROVISIONER, NodeClass, Pool

#: Change it whenever the digests of unchanged objects would change.
HASH_VERSION = "nodeless-3"
#: What is compared with the cloud's answer instead, or says nothing about nodes.
_NOT_STATIC = frozenset(
    (
        "reference",
        "generation",
        "deletion_timestamp",
        "invalid",
        "conditions",
        "finalizers",
        "subnets",
        "security_groups",
        "images",
        "image_release",
        "capacity_reservations",
        "placement_group",
        "ipv4_prefixes",
    )
)
#: Lists whose order says nothing about nodes.
_UNORDERED = frozenset(("block_devices", "network_interfaces"))


def pool_digest(pool: Pool) -> str:
    """Labels, annotations, taints, startup taints, node class, kubelet; of a NodePool also its life spans."""
    spans = (
        ()
        if pool.reference.kind == PROVISIONER
        else (pool.ttl_seconds_until_expired, pool.termination_grace_period)
    )
    parts = (
        sorted(pool.labels.items()),
        sorted(pool.annotations.items()),
        sorted(map(str, pool.taints)),
        sorted(map(str, pool.startup_taints)),
        str(pool.node_class),
        pool.kubelet,
        spans,
    )
    return _digest(parts)


def class_digest(node_class: NodeClass) -> str:
    """Everything of a node class but its selectors and what Karpenter leaves out."""
    parts = [
        (field.name, _without_order(field.name, getattr(node_class, field.name)))
        for field in fields(node_class)
        if field.name not in _NOT_STATIC
    ]
    return _digest(parts)


def _without_order(name: str, value: Any) -> object:
    return tuple(sorted(value, key=repr)) if name in _UNORDERED else value


def digests(pool: Pool, node_class: NodeClass | None) -> dict[str, str]:
    """The annotations of a claim that is made now."""
    notes = {NODE_POOL_HASH: pool_digest(pool), NODE_POOL_HASH_VERSION: HASH_VERSION}
    if node_class is not None:
        notes |= {NODE_CLASS_HASH: class_digest(node_class), NODE_CLASS_HASH_VERSION: HASH_VERSION}
    return notes


def has_changed(annotations: Mapping[str, str], now: Mapping[str, str], key: str) -> bool:
    """Whether the digest under a key differs; False when either is missing or of another version."""
    version = f"{key}-version"
    return (
        key in annotations
        and key in now
        and annotations.get(version) == now.get(version)
        and annotations[key] != now[key]
    )


def _digest(parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
