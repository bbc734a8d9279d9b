"""Runs the project's Pulumi program on the real engine, with the local AWS and control plane as its cloud.

The engine is the real one, found or built by `localenv.binaries`; its state lies in a
folder; its providers are small servers in this process (`provider`) that carry the
resources out on the local parts. Start with `Stack`.
"""

from __future__ import annotations

import os

# gRPC reads this when it is imported, and would write notices about forks to standard error.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from localenv.pulumi.progress import Progress, ResourceStep
from localenv.pulumi.stack import Stack, StackFailed

__all__ = ["Progress", "ResourceStep", "Stack", "StackFailed"]
