"""The published schemas of the API server's kinds, with their references resolved as they are followed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

from localenv.kubernetes import KubernetesApi

Schema = Mapping[str, Any]
_PREFIX = "#/components/schemas/"
_KINDS = "x-kubernetes-group-version-kind"


class Schemas:
    """OpenAPI 3 documents of one API server, each read once."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._documents = cache(self._document)

    def of(self, api_version: str, kind: str) -> Schema:
        """The schema of a kind.

        Raises:
            KeyError: The server does not serve it.
        """
        group, _, version = api_version.rpartition("/")
        wanted = {"group": group, "version": version, "kind": kind}
        for schema in self._documents(api_version).values():
            if wanted in schema.get(_KINDS, ()):
                return Resolved(schema, self._documents(api_version))
        raise KeyError(f"{api_version} {kind}")

    def _document(self, api_version: str) -> Mapping[str, Schema]:
        root = "apis" if "/" in api_version else "api"
        document = self._api.get(f"/openapi/v3/{root}/{api_version}")
        schemas: Mapping[str, Schema] = document["components"]["schemas"]
        return schemas


class Resolved(dict[str, Any]):
    """A schema that knows where its references lead; `name` is that of the reference that led here."""

    def __init__(self, schema: Schema, named: Mapping[str, Schema], name: str = "") -> None:
        merged: dict[str, Any] = {}
        for part in (schema, *schema.get("allOf", ())):
            reference = part.get("$ref", "")
            if reference:
                name = reference.removeprefix(_PREFIX)
                merged |= named.get(name, {})
            merged |= {key: value for key, value in part.items() if key not in ("$ref", "allOf")}
        super().__init__(merged)
        self.name = name
        self._named = named

    def below(self, schema: Schema) -> Resolved:
        """A part of this schema."""
        return Resolved(schema, self._named)

    @cached_property
    def properties(self) -> dict[str, Resolved]:
        """Members that are declared, by name."""
        return {name: self.below(schema) for name, schema in self.get("properties", {}).items()}

    @cached_property
    def items_of(self) -> Resolved | None:
        """What a list holds."""
        return self.below(self["items"]) if isinstance(self.get("items"), Mapping) else None

    @cached_property
    def values_of(self) -> Resolved | None:
        """What a map holds."""
        found = self.get("additionalProperties")
        return self.below(found) if isinstance(found, Mapping) else None
