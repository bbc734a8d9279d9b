"""Manifests from files as a snapshot: what `nodeless plan` reads when there is no cluster."""

from nodeless.cli.manifests.documents import BadManifests, Document, documents_of
from nodeless.cli.manifests.reading import Given, given_by

__all__ = ["BadManifests", "Document", "Given", "documents_of", "given_by"]
