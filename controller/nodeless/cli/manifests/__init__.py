"""Manifests from files as a snapshot: what `nodeless plan` reads when there is no cluster."""

from nodeless.cli.manifests.documents import BadManifests, Document, documents_of
from nodeless.cli.manifests.reading import FileContents, read_documents

__all__ = ["BadManifests", "Document", "FileContents", "documents_of", "read_documents"]
