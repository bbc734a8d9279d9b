"""Names of objects on which several parts must agree."""

from typing import Final

LEASE_NAME: Final = "karpenter-leader-election"
"""The Lease whose holder acts."""
