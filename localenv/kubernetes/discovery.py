"""From (apiVersion, kind, namespace, name) to the API path, by asking the server what it serves.

Answers are kept; a kind that is not among them is asked for again, so that the kinds of
a CustomResourceDefinition are found as soon as the server serves them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from localenv.kubernetes.connection import ApiError


class UnknownKind(LookupError):
    """The API server serves no such kind.

    Attributes:
        api_version: As asked for.
        kind: As asked for.
    """

    def __init__(self, api_version: str, kind: str) -> None:
        self.api_version, self.kind = api_version, kind
        super().__init__(
            f"the API server does not serve kind {kind!r} of {api_version!r}; "
            "hint: is its CustomResourceDefinition applied and established?"
        )


@dataclass(frozen=True, slots=True)
class Resource:
    """How a kind is served.

    Attributes:
        plural: Its name in paths.
        namespaced: Whether its objects live in namespaces.
    """

    plural: str
    namespaced: bool


class Discovery:
    """The kinds of one API server; may be used by several threads."""

    def __init__(self, get: Callable[[str], Any]) -> None:
        """Args: get: answers an API path, raising `ApiError` when the server refuses."""
        self._get = get
        self._known: dict[tuple[str, str], Resource] = {}
        self._lock = threading.Lock()

    def resource(self, api_version: str, kind: str) -> Resource:
        """How `kind` is served.

        Raises:
            UnknownKind: It is not.
        """
        with self._lock:
            if (api_version, kind) not in self._known:
                self._read(api_version)
            found = self._known.get((api_version, kind))
        if found is None:
            raise UnknownKind(api_version, kind)
        return found

    def path(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """The path of an object, or of a collection when `name` is None.

        A namespace given for a kind without namespaces is left out. Without a namespace
        the collection of a namespaced kind is that of all namespaces.

        Raises:
            UnknownKind: The server does not serve the kind.
            ValueError: An object of a namespaced kind without its namespace.
        """
        served = self.resource(api_version, kind)
        if served.namespaced and name is not None and namespace is None:
            raise ValueError(f"{kind} {name!r}: the kind is namespaced; hint: give metadata.namespace")
        parts = [_root(api_version)]
        if served.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(served.plural)
        parts += [quote(one, safe="/") for one in (name, subresource) if one is not None]
        return "/".join(parts)

    def _read(self, api_version: str) -> None:
        try:
            answer = self._get(_root(api_version))
        except ApiError as error:
            if error.status == 404:
                return
            raise
        for resource in answer.get("resources", ()):
            if "/" not in resource["name"]:
                self._known[api_version, resource["kind"]] = Resource(
                    resource["name"], bool(resource["namespaced"])
                )


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
