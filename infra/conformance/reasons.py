"""Specs that cannot run here, and why: real hardware, real images, or more machines than one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from infra.conformance.specs import Spec


@dataclass(frozen=True, slots=True)
class NotHere:
    """Specs that are left out.

    Attributes:
        pattern: A regular expression, searched for in a spec's name (`suite: text`).
        reason: Why.
    """

    pattern: str
    reason: str


NOT_HERE: tuple[NotHere, ...] = (
    NotHere(r"^ipv6: ", "the local cluster has IPv4 alone"),
    NotHere(r"^localzone: ", "the local AWS has no local zones"),
    NotHere(r"^scale: ", "hundreds of nodes: `make soak` is the test of that size here"),
    NotHere(
        r"^integration: Extended Resources .* requests "
        r"(nvidia\.com/gpu|amd\.com/gpu|aws\.amazon\.com/neuron|habana\.ai/gaudi|vpc\.amazonaws\.com/efa)",
        "device plugins need the devices",
    ),
)


def not_here(spec: Spec) -> str:
    """Why a spec is left out; empty when it is run."""
    return next((each.reason for each in NOT_HERE if re.search(each.pattern, spec.name)), "")
