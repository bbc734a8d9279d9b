"""Other autoscalers among manifests: warnings at the pools of which they can take pods, too."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodeless.api.errors import FieldError
from nodeless.api.foreign_kinds import is_served_by_others
from nodeless.api.rule_codes import RuleCode
from nodeless.cli.manifests.documents import BadManifests, Document
from nodeless.model.labels import AUTO_MODE, COMPUTE_TYPE
from nodeless.model.neighbors import program_of

_TEMPLATES = (("spec", "template", "spec"), ("spec",))


def neighbor_warnings(documents: Sequence[Document]) -> dict[str, list[FieldError]]:
    """The warnings by the key of their pool; objects that cannot be read tell nothing."""
    if not any(_is_sign(document.value) for document in documents):
        return {}
    # Imported here: manifests without another autoscaler are checked without the reading of workloads.
    from nodeless.cli.manifests.reading import read_documents  # noqa: PLC0415
    from nodeless.explain.neighbors import neighbors_of  # noqa: PLC0415

    try:
        snapshot = read_documents(documents).snapshot
    except BadManifests:
        readable = [document for document in documents if _is_readable(document)]
        try:
            snapshot = read_documents(readable).snapshot
        except BadManifests:
            return {}
    found: dict[str, list[FieldError]] = {}
    for neighbor in neighbors_of(snapshot):
        for key in neighbor.rivals:
            name = key.partition("/")[2]
            fault = FieldError(
                "metadata.name",
                name,
                f"is a pool beside another autoscaler: {neighbor.finding(key)}",
                neighbor.hint,
                warning=True,
                code=RuleCode.OTHER_AUTOSCALER,
            )
            found.setdefault(key, []).append(fault)
    return found


def _is_readable(document: Document) -> bool:
    from nodeless.cli.manifests.reading import read_documents  # noqa: PLC0415

    try:
        read_documents([document])
    except BadManifests:
        return False
    return True


def _is_sign(manifest: Any) -> bool:
    """Whether another autoscaler may be known by an object."""
    if not isinstance(manifest, Mapping):
        return False
    if manifest.get("kind") == "Node":
        labels = _at(manifest, ("metadata", "labels"))
        return isinstance(labels, Mapping) and labels.get(COMPUTE_TYPE) == AUTO_MODE
    if manifest.get("kind") == "NodePool":
        return is_served_by_others(manifest)
    return any(map(program_of, _images(manifest)))


def _images(manifest: Mapping[str, Any]) -> Iterator[str]:
    for path in _TEMPLATES:
        spec = _at(manifest, path)
        containers = spec.get("containers") if isinstance(spec, Mapping) else None
        for container in containers if isinstance(containers, list) else ():
            image = container.get("image") if isinstance(container, Mapping) else None
            if isinstance(image, str):
                yield image


def _at(manifest: Any, path: Sequence[str]) -> Any:
    for name in path:
        manifest = manifest.get(name) if isinstance(manifest, Mapping) else None
    return manifest
