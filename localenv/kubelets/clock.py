"""Times as the Kubernetes API writes them."""

from datetime import UTC, datetime


def timestamp() -> str:
    """Return now as `metav1.Time`: whole seconds, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp() -> str:
    """Return now as `metav1.MicroTime`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
