"""Rules for `metadata`, as the API server has them for every kind: a file was checked by nobody.

The object's own name is a matter of its kind (`validation`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.names import label_value_defects, qualified_name_defects
from nodeless.api.rule_codes import RuleCode

#: Bytes of all annotations together (Kubernetes, `TotalAnnotationSizeLimitB`).
_MOST_ANNOTATION_BYTES = 256 * 1024
_EXCLUSIVE = ("orphan", "foregroundDeletion")


def metadata_errors(metadata: Mapping[str, Any], path: str = "metadata") -> Iterator[FieldError]:
    """The faults of labels, annotations and finalizers; members of a wrong type are `schema_validation`'s."""
    yield from label_errors(metadata.get("labels"), f"{path}.labels")
    size, annotations = 0, f"{path}.annotations"
    for key, value in _text_keys(metadata.get("annotations")):
        size += len(key.encode(errors="replace")) + len(str(value).encode(errors="replace"))
        for defect in qualified_name_defects(key.lower()):
            yield FieldError(at(annotations, key), key, defect, code=RuleCode.INVALID_ANNOTATION)
    if size > _MOST_ANNOTATION_BYTES:
        message = f"holds {size} bytes; the API server stores at most {_MOST_ANNOTATION_BYTES}"
        yield FieldError(annotations, ABSENT, message, code=RuleCode.INVALID_ANNOTATION)
    yield from _finalizer_errors(metadata.get("finalizers"))


def label_errors(labels: Any, path: str) -> Iterator[FieldError]:
    """The faults of a map of labels, or of those that a selector asks for."""
    for key, value in _text_keys(labels):
        for defect in qualified_name_defects(key):
            yield FieldError(at(path, key), key, defect, code=RuleCode.INVALID_LABEL)
        for defect in label_value_defects(value) if isinstance(value, str) else ():
            yield FieldError(at(path, key), value, defect, code=RuleCode.INVALID_LABEL)


def _finalizer_errors(finalizers: Any) -> Iterator[FieldError]:
    listed = (
        [finalizer for finalizer in finalizers if isinstance(finalizer, str)]
        if isinstance(finalizers, list)
        else []
    )
    for position, finalizer in enumerate(listed):
        for defect in qualified_name_defects(finalizer):
            yield FieldError(
                at("metadata.finalizers", position), finalizer, defect, code=RuleCode.INVALID_FINALIZER
            )
    if all(name in listed for name in _EXCLUSIVE):
        yield FieldError(
            "metadata.finalizers",
            listed,
            f"cannot hold both {' and '.join(_EXCLUSIVE)}",
            code=RuleCode.INVALID_FINALIZER,
        )


def _text_keys(members: Any) -> list[tuple[str, Any]]:
    found = members.items() if isinstance(members, Mapping) else ()
    return [(key, value) for key, value in found if isinstance(key, str)]
