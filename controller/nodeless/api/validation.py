"""Every fault of an object at once: form, then rules, then what is legal but suspicious.

`validate` is what admission, `reading` and a preview all ask. Rules that compare an
object with its former self are few: an update that leaves `spec` alone is never refused,
so that an object that became invalid can still get its status, its finalizers and its end.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from nodeless.api.aws_rules import node_template_errors
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.ec2_rules import ec2_node_class_errors
from nodeless.api.errors import ABSENT, FieldError, InvalidObject, at, in_order
from nodeless.api.kinds import (
    ALL,
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
    NODE_CLAIM,
    NODE_OVERLAY,
    NODE_POOL,
    PROVISIONER,
    V1BETA1,
    Kind,
)
from nodeless.api.metadata_rules import metadata_errors
from nodeless.api.names import label_object_name_defect, object_name_defect
from nodeless.api.node_overlay_rules import node_overlay_errors
from nodeless.api.node_pool_rules import node_pool_errors
from nodeless.api.provisioner_rules import provisioner_errors
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schema_validation import structural_errors
from nodeless.api.suggestions import did_you_mean
from nodeless.api.warnings import suspicions
from nodeless.model.labels import DEVICES
from nodeless.model.packing import PACKING_ANNOTATION, PACKINGS

#: Faults that are looked for in one object. With so many it is wrong in a way that no longer list makes
#: clearer, and each takes memory and time: an object of 1.5 MiB can have a million.
MOST_FAULTS = 1000


def validate(manifest: Any, old: Any = None) -> list[FieldError]:
    """The faults of an object, sorted by path; empty when it is acceptable.

    No more than `MOST_FAULTS` are looked for.

    When there is a fault, the warnings are listed among the faults as well, marked as such: one round of
    correction should do.

    Args:
        manifest: The object as it would be stored; anything at all is allowed here.
        old: The object as it is stored now, for an update.
    """
    if old is not None and leaves_spec_alone(manifest, old):
        return []
    kind = kind_of(manifest)
    if kind is None:
        return [_unknown_kind(manifest)]
    meant = drop_nulls(manifest)
    found = chain(
        structural_errors(manifest, kind),
        _metadata_errors(meant, kind),
        _annotation_errors(meant, kind),
        _rule_errors(meant, kind, old),
    )
    errors = list(islice(found, MOST_FAULTS))
    rest = MOST_FAULTS - len(errors)
    return in_order([*_without_echoes(errors), *islice(suspicions(meant), rest)]) if errors else []


def advice(manifest: Any) -> list[FieldError]:
    """What is legal in an object, but probably not meant; no more than `MOST_FAULTS`."""
    if kind_of(manifest) is None:
        return []
    return in_order(islice(suspicions(drop_nulls(manifest)), MOST_FAULTS))


def warnings(manifest: Any) -> list[str]:
    """The same, one line each."""
    return [str(suspicion).removeprefix("warning: ") for suspicion in advice(manifest)]


def breaks_schema(manifest: Any) -> bool:
    """Whether the API server would refuse the object by its schema, asking no validating webhook."""
    kind = kind_of(manifest)
    return kind is not None and next(structural_errors(manifest, kind), None) is not None


def leaves_spec_alone(manifest: Any, old: Any) -> bool:
    """Whether an update changes nothing that is validated: same spec, or the object is being deleted."""
    if not isinstance(manifest, Mapping) or not isinstance(old, Mapping):
        return False
    metadata = manifest.get("metadata")
    deleted = isinstance(metadata, Mapping) and metadata.get("deletionTimestamp") is not None
    return deleted or (manifest.get("spec") == old.get("spec") and _read_of(manifest) == _read_of(old))


def _read_of(manifest: Mapping[str, Any]) -> tuple[Any, ...]:
    """The annotations that are validated."""
    metadata = manifest.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    read = annotations if isinstance(annotations, Mapping) else {}
    return tuple(map(read.get, (PACKING_ANNOTATION, DEVICES)))


def require_valid(manifest: Mapping[str, Any], kind: Kind) -> None:
    """Raises InvalidObject with all faults, also when the manifest is of another kind."""
    errors = validate(manifest) if kind.describes(manifest) else [_unknown_kind(manifest, kind)]
    if errors:
        raise InvalidObject(subject_of(manifest), errors)


def kind_of(manifest: Any) -> Kind | None:
    """The kind of ours that a manifest is of."""
    return next((kind for kind in ALL if kind.describes(manifest)), None)


def subject_of(manifest: Any) -> str:
    """Kind and name, as in `Provisioner/default`."""
    if not isinstance(manifest, Mapping):
        return "the object"
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"{manifest.get('kind') or 'object'}/{name or 'without a name'}"


def _rule_errors(manifest: Mapping[str, Any], kind: Kind, old: Any) -> Iterator[FieldError]:
    if kind is PROVISIONER:
        yield from provisioner_errors(manifest)
    elif kind is AWS_NODE_TEMPLATE:
        yield from node_template_errors(manifest)
    elif kind is NODE_POOL:
        yield from node_pool_errors(manifest, old)
    elif kind is EC2_NODE_CLASS:
        yield from ec2_node_class_errors(manifest)
    elif kind is NODE_OVERLAY:
        yield from node_overlay_errors(manifest)


def _metadata_errors(manifest: Mapping[str, Any], kind: Kind) -> Iterator[FieldError]:
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if not name and not prefix:
        yield FieldError(
            "metadata.name", ABSENT, "is required", "name the object", code=RuleCode.MISSING_FIELD
        )
    # A NodeClaim is named after its pool, which may be any DNS name.
    dns_named = kind in (NODE_POOL, EC2_NODE_CLASS, NODE_OVERLAY, NODE_CLAIM)
    defect_of = label_object_name_defect if dns_named else object_name_defect
    if isinstance(name, str) and name and (defect := defect_of(name)):
        yield FieldError("metadata.name", name, defect, code=RuleCode.INVALID_NAME)
    if isinstance(prefix, str) and prefix and (defect := defect_of(prefix, prefix=True)):
        yield FieldError("metadata.generateName", prefix, defect, code=RuleCode.INVALID_NAME)
    yield from metadata_errors(metadata)


def _annotation_errors(manifest: Mapping[str, Any], kind: Kind) -> Iterator[FieldError]:
    """Annotations of ours on a pool itself; those of others are nobody's business."""
    metadata = manifest.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if kind not in (PROVISIONER, NODE_POOL) or not isinstance(annotations, Mapping):
        return
    packing = annotations.get(PACKING_ANNOTATION)
    if packing is not None and packing not in PACKINGS:
        path = at("metadata.annotations", PACKING_ANNOTATION)
        yield FieldError(
            path, packing, "is not a packing", f"use {' or '.join(PACKINGS)}", code=RuleCode.UNSUPPORTED_VALUE
        )


def _without_echoes(errors: list[FieldError]) -> list[FieldError]:
    """Only the first fault of those with the same path and words: form and rules may both miss a member."""
    first: dict[tuple[str, str], FieldError] = {}
    for error in errors:
        first.setdefault((error.path, error.message), error)
    return list(first.values())


def _unknown_kind(manifest: Any, wanted: Kind | None = None) -> FieldError:
    if not isinstance(manifest, Mapping):
        return FieldError(
            "the object", manifest, "must be an object with apiVersion and kind", code=RuleCode.WRONG_TYPE
        )
    known = [f"{kind.api_version} {kind.kind}" for kind in ([wanted] if wanted else ALL)]
    for member in ("apiVersion", "kind"):
        if not manifest.get(member):
            return FieldError(
                member, ABSENT, "is required", f"known: {', '.join(known)}", code=RuleCode.MISSING_FIELD
            )
    given = f"{manifest['apiVersion']} {manifest['kind']}"
    if any(kind.describes(manifest) for kind in V1BETA1):
        hint = "convert it to v1 with `nodeless convert`"
    else:
        hint = did_you_mean(given, known, f"known: {', '.join(known)}")
    return FieldError("kind", given, "is not served here", hint, code=RuleCode.UNKNOWN_KIND)
