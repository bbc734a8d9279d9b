"""Helm releases, recorded in the cluster as Helm records them.

Helm keeps each revision of a release as a Secret: the release as JSON, compressed, twice in base64. The local
provider writes that record, so that `helm list` and a second `up` see the release; the chart itself comes
from the internet and is not rendered, so nothing that it would install is there.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from localenv.kubernetes import KubernetesApi, Object
from localenv.pulumi.resources import Inputs, Outputs, Resource

#: The type that Helm gives the Secrets of its releases.
SECRET_TYPE = "helm.sh/release.v1"


class Release(Resource[KubernetesApi]):
    """One release: its chart, version and values; a change of them is its next revision."""

    token = "kubernetes:helm.sh/v3:Release"
    required = frozenset({"chart"})
    in_place = frozenset({"chart", "version", "values", "repositoryOpts", "timeout", "cleanupOnFail"})
    optional = in_place | {"compat", "name", "namespace"}
    computed = ("status",)
    physical_name = "name"

    def create(self, backend: KubernetesApi, inputs: Inputs) -> str:
        backend.create(record(inputs, 1))
        return f"{_namespace(inputs)}/{inputs['name']}"

    def read(self, backend: KubernetesApi, identity: str, inputs: Inputs) -> Outputs | None:
        newest = max(self._revisions(backend, identity), key=_revision, default=None)
        if newest is None:
            return None
        written = content(newest)
        return {
            "status": {
                "name": written["name"],
                "namespace": written["namespace"],
                "revision": written["version"],
                "chart": inputs["chart"],
                "version": inputs.get("version", ""),
                "status": written["info"]["status"],
            }
        }

    def update(self, backend: KubernetesApi, identity: str, old: Inputs, new: Inputs) -> None:
        del old
        revisions = self._revisions(backend, identity)
        backend.create(record(new, 1 + max(map(_revision, revisions), default=0)))
        for revision in revisions:
            backend.patch(backend.path_of(revision), {"metadata": {"labels": {"status": "superseded"}}})

    def delete(self, backend: KubernetesApi, identity: str, state: Inputs) -> None:
        del state
        for revision in self._revisions(backend, identity):
            backend.delete(backend.path_of(revision))

    def _revisions(self, backend: KubernetesApi, identity: str) -> list[Object]:
        namespace, _, name = identity.partition("/")
        secrets = backend.path("v1", "Secret", namespace)
        return list(backend.list(secrets, label_selector=f"owner=helm,name={name}"))


def record(inputs: Inputs, revision: int) -> Object:
    """The Secret of a release's revision."""
    name, namespace = str(inputs["name"]), _namespace(inputs)
    now = datetime.now(UTC).isoformat()
    release = {
        "name": name,
        "namespace": namespace,
        "version": revision,
        "chart": {"metadata": {"name": inputs["chart"], "version": inputs.get("version", "")}},
        "config": inputs.get("values") or {},
        "info": {"status": "deployed", "first_deployed": now, "last_deployed": now},
        "manifest": "",
    }
    packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": {
            "name": f"sh.helm.release.v1.{name}.v{revision}",
            "namespace": namespace,
            "labels": {"owner": "helm", "name": name, "status": "deployed", "version": str(revision)},
        },
        "data": {"release": base64.b64encode(packed).decode()},
    }


def content(secret: Mapping[str, Any]) -> dict[str, Any]:
    """The release that a Secret of Helm's holds."""
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    release: dict[str, Any] = json.loads(gzip.decompress(packed))
    return release


def _revision(secret: Mapping[str, Any]) -> int:
    return int(secret["metadata"]["labels"]["version"])


def _namespace(inputs: Inputs) -> str:
    return str(inputs.get("namespace") or "default")
