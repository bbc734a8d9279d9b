"""`KubernetesApi`: the client that waits, for labs, tests and the local Pulumi provider."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from localenv.kubernetes.connection import ApiError, ApiUnreachable, Connection, Identity, read_kubeconfig
from localenv.kubernetes.discovery import Discovery
from localenv.kubernetes.verbs import Object, Objects, Propagation, Verbs

#: Objects asked for at once: an unpaged list of a big collection is cut off by the server's timeout.
_PAGE = 500
_POLL_SECONDS = 0.1


class ConditionNotMet(TimeoutError):
    """What was waited for did not come true in time.

    Attributes:
        last: The last state seen; None when there was none.
    """

    def __init__(self, what: str, timeout: float, last: Any) -> None:
        self.last = last
        super().__init__(f"waited {timeout:g} s for {what}; last seen: {last!r:.4000}")


class KubernetesApi(Verbs[Object]):
    """A client of one API server under one identity; may be used by several threads.

    Attributes:
        patience: A factor of all timeouts of `wait`: more than 1 where the machine may be slow or busy.
    """

    patience = 1.0

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._discovery = Discovery(lambda path: connection.request("GET", path))

    @classmethod
    def from_kubeconfig(cls, file: Path | str, context: str | None = None) -> KubernetesApi:
        """The client that a kubeconfig describes.

        Raises:
            ValueError: The kubeconfig is incomplete; the message says what is missing.
        """
        return cls(Connection(*read_kubeconfig(Path(file), context)))

    @property
    def endpoint(self) -> str:
        """URL of the API server."""
        return self.connection.endpoint

    def with_token(self, token: str) -> KubernetesApi:
        """The same API server, seen by the bearer of `token`."""
        return KubernetesApi(self.connection.with_identity(Identity(token=token)))

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Any request; options and errors as for `Connection.request`, which has more of them."""
        return self.connection.request(method, path, **options)

    def path(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """The path of an object, or of a collection when `name` is None; see `Discovery.path`."""
        return self._discovery.path(api_version, kind, namespace, name, subresource)

    def path_of(self, obj: Mapping[str, Any]) -> str:
        """The path of an object; one of a namespaced kind without a namespace lies in `default`."""
        api_version, kind, metadata = obj["apiVersion"], obj["kind"], obj["metadata"]
        return self.path(api_version, kind, self._namespace(obj), metadata["name"])

    def find(self, path: str) -> Object | None:
        """The object at `path`, or None when there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self, path: str, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Objects:
        """The objects of a collection, in pages, each with its apiVersion and kind."""
        found: Objects = []
        following: str | None = None
        while True:
            query = {
                "limit": _PAGE,
                "continue": following,
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
            }
            page = self.request("GET", path, query=query)
            kind = {"apiVersion": page["apiVersion"], "kind": page["kind"].removesuffix("List")}
            found += [kind | item for item in page.get("items") or ()]
            following = page["metadata"].get("continue")
            if not following:
                return found

    def create(
        self,
        obj: Mapping[str, Any],
        *,
        path: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> Object:
        """As `Verbs.create`; `path` may be left out when the object says its kind."""
        where = path or self.path(obj["apiVersion"], obj["kind"], self._namespace(obj))
        return super().create(obj, path=where, dry_run=dry_run, field_manager=field_manager)

    def replace(self, obj: Mapping[str, Any], *, subresource: str | None = None) -> Object:
        """Put an object in the place of its former self; conflicts when metadata.resourceVersion is old."""
        path = self.path_of(obj) + (f"/{subresource}" if subresource else "")
        answer: Object = self.request("PUT", path, body=obj, query={"fieldValidation": "Strict"})
        return answer

    def apply(
        self,
        obj: Mapping[str, Any],
        *,
        path: str | None = None,
        field_manager: str = "nodeless-local",
        force: bool = True,
        dry_run: bool = False,
        subresource: str | None = None,
    ) -> Object:
        """As `Verbs.apply`; the path is the object's own, with a subresource such as "status"."""
        where = (path or self.path_of(obj)) + (f"/{subresource}" if subresource else "")
        return super().apply(obj, path=where, field_manager=field_manager, force=force, dry_run=dry_run)

    def delete(
        self,
        path: str,
        *,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        uid: str | None = None,
        missing_ok: bool = False,
    ) -> Object:
        """As `Verbs.delete`; with `missing_ok` an object that is gone already is no error."""
        try:
            return super().delete(path, propagation=propagation, grace_seconds=grace_seconds, uid=uid)
        except ApiError as error:
            if not (missing_ok and error.status == 404):
                raise
            return {}

    def events(self, namespace: str, name: str) -> Objects:
        """The events about the objects called `name`, oldest first; cluster objects' lie in `default`."""
        found = self.list(
            f"/api/v1/namespaces/{namespace}/events", field_selector=f"involvedObject.name={name}"
        )
        return sorted(found, key=_event_time)

    def token(
        self,
        namespace: str,
        service_account: str,
        *,
        audiences: tuple[str, ...] = (),
        seconds: int = 3600,
    ) -> str:
        """A fresh token of a service account; for the API server itself when no audience is given."""
        spec = {"audiences": [*audiences], "expirationSeconds": seconds}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.create(body, path=path)["status"]["token"])

    def wait(
        self,
        subject: str | Callable[[], Any],
        predicate: Callable[[Any], bool] = bool,
        *,
        timeout: float = 90.0,
        what: str | None = None,
    ) -> Any:
        """Look at `subject` every 100 ms until `predicate` holds of it.

        Args:
            subject: The path of an object (None is seen while it is missing), or what makes the state.
            predicate: Whether that is what is waited for; by default that there is something.
            timeout: Seconds, times `patience`.
            what: Words for the message.

        Returns:
            The state for which it held.

        Raises:
            ConditionNotMet: The time is over; the message shows the last state.
        """
        path = subject if isinstance(subject, str) else None
        look = subject if callable(subject) else lambda: self.find(str(path))
        timeout *= self.patience
        deadline = time.monotonic() + timeout
        last: Any = None
        while True:
            try:
                last = look()
                if predicate(last):
                    return last
            except ApiUnreachable as error:  # a control plane that restarts comes back
                last = error
            if time.monotonic() > deadline:
                raise ConditionNotMet(what or path or "a condition", timeout, last)
            time.sleep(_POLL_SECONDS)

    def wait_gone(self, path: str, *, timeout: float = 90.0) -> None:
        """Wait until there is no object at `path`; errors as for `wait`."""
        self.wait(path, lambda found: found is None, timeout=timeout, what=f"{path} to be gone")

    def close(self) -> None:
        """Close the connections; the client may still be used and opens new ones."""
        self.connection.close()

    def _namespace(self, obj: Mapping[str, Any]) -> str | None:
        if not self._discovery.resource(obj["apiVersion"], obj["kind"]).namespaced:
            return None
        return str(obj.get("metadata", {}).get("namespace") or "default")


def is_established(definition: Mapping[str, Any] | None) -> bool:
    """Whether the objects of a CustomResourceDefinition are served."""
    conditions = ((definition or {}).get("status") or {}).get("conditions") or ()
    return any(
        condition["type"] == "Established" and condition["status"] == "True" for condition in conditions
    )


def _event_time(event: Mapping[str, Any]) -> str:
    metadata = event.get("metadata", {})
    return str(
        event.get("lastTimestamp") or event.get("eventTime") or metadata.get("creationTimestamp") or ""
    )
