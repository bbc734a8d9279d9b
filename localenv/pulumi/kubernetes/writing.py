"""How the real Kubernetes provider writes: a create that refuses what is there, then server-side apply.

Up to pulumi-kubernetes 4.28 every write was an apply, which takes over what is there; an engine that makes a
renamed resource anew and then deletes the old one so deleted the object it had just made. Since 4.29 a create
is a create, unless the provider resource has `upsertExistingObjects`. Updates are applies, which fields of
other owners refuse. Previews ask the API server by a dry run; what only their order refuses is passed over.

Source: pulumi/pulumi-kubernetes v4, `Creation`, `ssaUpdate`, `fixCSAFieldManagers` and `patchForce` in
`provider/pkg/await/await.go`; `Create` and `Update` in `provider/pkg/provider/provider.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localenv.kubernetes import ApiError, KubernetesApi, Object, UnknownKind
from localenv.pulumi import wire
from localenv.pulumi.resources import ResourceFailed

#: Owner of the fields that a program sets.
FIELD_MANAGER = "pulumi-kubernetes"
#: Fields are taken from other owners where an object bears this.
_PATCH_FORCE = "pulumi.com/patchForce"
_ALREADY_EXISTS = (
    "\nhint: a renamed resource needs an alias; what is to be taken over is imported, or its provider has"
    " upsertExistingObjects"
)


@dataclass(frozen=True, slots=True)
class Writing:
    """What a provider resource says about writing.

    Attributes:
        upserts: Whether a create takes over what is there (`upsertExistingObjects`).
        forces: Whether every write takes fields from other owners (`enablePatchForce`).
    """

    upserts: bool = False
    forces: bool = False

    @classmethod
    def of(cls, provider_inputs: Mapping[str, Any]) -> Writing:
        """What a provider resource says."""
        given = [provider_inputs.get(key) for key in ("upsertExistingObjects", "enablePatchForce")]
        return cls(*(each is True or each == "true" for each in given))

    def create(self, api: KubernetesApi, obj: Object) -> Object:
        """Make an object.

        Raises:
            ResourceFailed: The API server refuses it, as one is there or for another reason.
        """
        try:
            if self.upserts:
                return api.apply(obj, field_manager=FIELD_MANAGER, force=self._is_forced(obj))
            return api.create(obj, field_manager=FIELD_MANAGER)
        except ApiError as error:
            raise _refusal(obj, error) from error

    def update(self, api: KubernetesApi, obj: Object) -> Object:
        """Change an object.

        Raises:
            ResourceFailed: The API server refuses it, as a field is another's or for another reason.
        """
        try:
            _own_by_apply(api, obj)
            return api.apply(obj, field_manager=FIELD_MANAGER, force=self._is_forced(obj))
        except ApiError as error:
            raise _refusal(obj, error) from error

    def foresee_create(self, api: KubernetesApi, obj: Object) -> None:
        """Ask the API server whether it would make an object.

        Raises:
            ResourceFailed: It would not.
        """
        if not _can_ask(api, obj):
            return
        try:
            if self.upserts:
                api.apply(obj, field_manager=FIELD_MANAGER, force=True, dry_run=True)
            else:
                api.create(obj, field_manager=FIELD_MANAGER, dry_run=True)
        except ApiError as error:
            # There is one that this very update may replace; the namespace comes with this update.
            immutable = error.status == 422 and "immutable" in error.message
            if not (immutable or error.status in (403, 404) or error.reason == "AlreadyExists"):
                raise _refusal(obj, error) from error

    def foresee_update(self, api: KubernetesApi, obj: Object) -> None:
        """Ask the API server whether it would change an object.

        Raises:
            ResourceFailed: It would not.
        """
        if not _can_ask(api, obj):
            return
        live = api.find(api.path_of(obj))
        forced = self._is_forced(obj) or (live is not None and _made_by_create(live) is not None)
        try:
            api.apply(obj, field_manager=FIELD_MANAGER, force=forced, dry_run=True)
        except ApiError as error:
            if error.status not in (403, 404):
                raise _refusal(obj, error) from error

    def _is_forced(self, obj: Object) -> bool:
        return self.forces or (obj["metadata"].get("annotations") or {}).get(_PATCH_FORCE) == "true"


def _refusal(obj: Object, error: ApiError) -> ResourceFailed:
    hint = _ALREADY_EXISTS if error.reason == "AlreadyExists" else ""
    return ResourceFailed(f"{obj['kind']} {obj['metadata'].get('name', '')}: {error.message}{hint}")


def _can_ask(api: KubernetesApi, obj: Object) -> bool:
    """Whether all of an object is known, and its kind."""
    if wire.is_unknown(obj) or "name" not in obj["metadata"]:
        return False
    try:
        api.path_of(obj)
    except UnknownKind:
        return False
    return True


def _own_by_apply(api: KubernetesApi, obj: Object) -> None:
    """Turn the ownership that a create left into that of an apply, which alone can take fields away."""
    path = api.path_of(obj)
    live = api.find(path)
    at = None if live is None else _made_by_create(live)
    if at is not None:
        where = f"/metadata/managedFields/{at}/operation"
        api.patch(path, [{"op": "replace", "path": where, "value": "Apply"}], kind="json")


def _made_by_create(live: Object) -> int | None:
    """Where among the owners is this provider as one that made the object, and has not applied it since."""
    ours = [
        (number, managed_field["operation"])
        for number, managed_field in enumerate(live["metadata"].get("managedFields") or [])
        if managed_field.get("manager") == FIELD_MANAGER and not managed_field.get("subresource")
    ]
    return ours[0][0] if [operation for _, operation in ours] == ["Update"] else None
