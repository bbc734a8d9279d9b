"""What is asked of an API server, verb by verb: paths, queries, bodies.

How a request is sent says who inherits `Verbs`: `client.KubernetesApi` gives the answer, and
`aio.AsyncKubernetesApi` an awaitable of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeAlias, TypeVar

Object: TypeAlias = dict[str, Any]
Objects: TypeAlias = list[dict[str, Any]]
Propagation: TypeAlias = Literal["Foreground", "Background", "Orphan"]
PatchKind: TypeAlias = Literal["merge", "json", "strategic"]
AnswerT = TypeVar("AnswerT")

_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Verbs(ABC, Generic[AnswerT]):
    """Requests to one API server under one identity.

    What is sent raises `ApiError` where the server refuses and `ApiUnreachable` where no answer comes.
    """

    @abstractmethod
    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> AnswerT:
        """Send any request; parameters of the query that are None are left out."""

    def get(self, path: str, **query: str) -> AnswerT:
        """The document at `path`."""
        return self.request("GET", path, query=query)

    def create(
        self, obj: Mapping[str, Any], *, path: str, dry_run: bool = False, field_manager: str | None = None
    ) -> AnswerT:
        """Create an object; unknown fields are refused.

        Args:
            obj: The object.
            path: The collection, or a subresource that is created (token, eviction, binding).
            dry_run: Only let the server say whether it would.
            field_manager: Who owns the fields from now on; the server calls the client something by default.
        """
        query = _write_parameters(dry_run) | {"fieldManager": field_manager}
        return self.request("POST", path, body=obj, query=query)

    def apply(
        self,
        obj: Mapping[str, Any],
        *,
        path: str,
        field_manager: str = "nodeless-local",
        force: bool = True,
        dry_run: bool = False,
    ) -> AnswerT:
        """Server-side apply; unknown fields are refused.

        Args:
            obj: The fields that `field_manager` wants to own, with apiVersion, kind and name.
            path: The object, or a subresource of it.
            field_manager: Who owns them from now on.
            force: Take fields from other managers instead of a conflict (409).
            dry_run: Only let the server say what would come out.
        """
        query = _write_parameters(dry_run) | {"fieldManager": field_manager, "force": force}
        return self.request("PATCH", path, body=obj, query=query, content_type="application/apply-patch+yaml")

    def patch(
        self, path: str, change: Any, *, kind: PatchKind = "merge", subresource: str | None = None
    ) -> AnswerT:
        """Change an object by a JSON merge patch, a JSON patch (a list) or a strategic merge patch."""
        where = path + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", where, body=change, content_type=_PATCH_TYPES[kind])

    def delete(
        self,
        path: str,
        *,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        uid: str | None = None,
    ) -> AnswerT:
        """Ask for the deletion of an object; finalizers and grace periods may keep it for a while.

        Args:
            path: The object.
            propagation: What becomes of the objects it owns.
            grace_seconds: Instead of the object's own grace period; 0 removes a pod at once.
            uid: Refuse (409) when it is another object of the same name by now.
        """
        options = _drop_absent(
            propagationPolicy=propagation,
            gracePeriodSeconds=grace_seconds,
            preconditions=_drop_absent(uid=uid) or None,
        )
        return self.request("DELETE", path, body={"apiVersion": "v1", "kind": "DeleteOptions", **options})

    def evict(self, namespace: str, pod: str, *, grace_seconds: int | None = None) -> AnswerT:
        """Evict a pod; refused with status 429 and cause "DisruptionBudget" while a budget forbids it."""
        body: Object = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        if grace_seconds is not None:
            body["deleteOptions"] = {"gracePeriodSeconds": grace_seconds}
        return self.request("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body=body)

    def scale(self, path: str, replicas: int) -> AnswerT:
        """Set the replicas of a Deployment or whatever else has a `scale` subresource."""
        return self.patch(path, {"spec": {"replicas": replicas}}, subresource="scale")


def _write_parameters(dry_run: bool) -> Object:
    return {"fieldValidation": "Strict", "dryRun": "All" if dry_run else None}


def _drop_absent(**values: Any) -> Object:
    return {name: value for name, value in values.items() if value is not None}
