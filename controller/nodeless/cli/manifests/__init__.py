"""Manifests from files as a snapshot: what `nodeless plan` reads when there is no cluster."""
