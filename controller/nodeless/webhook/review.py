"""One question of the API server, one answer (`admission.k8s.io/v1` AdmissionReview). Pure.

Never refused: deletions, subresources, and updates that leave `spec` alone or happen
while the object is being deleted. An object that an older rule let in can so always get
its status, its finalizers and its end. Defaulting answers with a JSON patch that holds
nothing but the defaults. It also refuses what the schema is about to refuse, because the
schema would name its own faults only and the user would meet the others on the next try.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nodeless.api.defaulting import default, missing_requirements
from nodeless.api.errors import FieldError
from nodeless.api.validation import (
    MOST_FAULTS,
    breaks_schema,
    leaves_spec_alone,
    subject_of,
    validate,
)
from nodeless.api.validation_context import NOTHING_KNOWN, ValidationContext, context_warnings
from nodeless.webhook.access import Json
from nodeless.webhook.config_maps import SettingsCheck, config_map_faults, config_map_warnings

REVIEW_VERSION = "admission.k8s.io/v1"
#: Faults that an answer names; of the others it says how many there are.
SHOWN_FAULTS = 50
#: Characters of one fault and of one warning; a path or a name may be as long as an object.
_LONGEST_LINE = 1000


class UnreadableReviewError(ValueError):
    """A request body that is no AdmissionReview: there is no uid to answer to."""


def read_request(body: bytes) -> Json:
    """The `request` of a review. Raises UnreadableReviewError."""
    try:
        review = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableReviewError(f"the body is not JSON: {error}") from error
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise UnreadableReviewError("the body is no AdmissionReview")
    if review.get("apiVersion") != REVIEW_VERSION:
        raise UnreadableReviewError(f"the AdmissionReview is not of {REVIEW_VERSION}")
    request = review.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]:
        raise UnreadableReviewError("the AdmissionReview has no request with a uid")
    return request


class _Metadata(msgspec.Struct):
    deletion: Any = msgspec.field(default=None, name="deletionTimestamp")


class _Object(msgspec.Struct):
    metadata: _Metadata | None = None


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str = ""
    sub_resource: str | None = None
    object: _Object | None = None


class _Review(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    request: _Request


_REVIEW = msgspec.json.Decoder(_Review)


def refuse_unread(body: bytes, message: str) -> Json:
    """The answer to a review too large to be read: no, unless the object must be let go whatever it holds.

    Only the members that this takes are read of it; the rest is passed over.

    Raises:
        UnreadableReviewError: Not even these can be read.
    """
    try:
        review = _REVIEW.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UnreadableReviewError(f"the body is not JSON of an AdmissionReview: {error}") from error
    if review.kind != "AdmissionReview" or review.api_version != REVIEW_VERSION or not review.request.uid:
        raise UnreadableReviewError(f"the body is no AdmissionReview of {REVIEW_VERSION} with a uid")
    asked, metadata = review.request, review.request.object.metadata if review.request.object else None
    answered = {"uid": asked.uid}
    ends = metadata is not None and metadata.deletion is not None
    if asked.operation not in ("CREATE", "UPDATE") or asked.sub_resource or ends:
        return allow(answered)
    return refuse(answered, message, code=413)


def review_default(request: Json) -> Json:
    """Fill in defaults."""
    if _never_refused(request):
        return allow(request)
    manifest = request.get("object")
    defaulted = default(manifest) if isinstance(manifest, Mapping) else manifest
    if breaks_schema(defaulted):
        return deny(request, defaulted, validate(defaulted))
    return allow(request, patch=default_patch(manifest) if isinstance(manifest, Mapping) else [])


def review_validate(request: Json, around: ValidationContext = NOTHING_KNOWN) -> Json:
    """Refuse an object with faults, all of them in one message; pass on warnings about any other."""
    if _never_refused(request):
        return allow(request)
    manifest = request.get("object")
    if errors := validate(manifest):
        return deny(request, manifest, errors)
    texts = (_line(each).removeprefix("warning: ") for each in context_warnings(manifest, around))
    return allow(request, warnings=_first(texts))


def review_config_map(
    request: Json,
    check_settings: SettingsCheck | None = None,
    advise_on_settings: SettingsCheck | None = None,
) -> Json:
    """Refuse settings of ours that the controller could not read; pass on warnings about any other."""
    manifest = request.get("object")
    if request.get("operation") not in ("CREATE", "UPDATE") or not isinstance(manifest, Mapping):
        return allow(request)
    faults = config_map_faults(manifest, check_settings)
    if not faults:
        return allow(request, warnings=_first(map(_cut, config_map_warnings(manifest, advise_on_settings))))
    lines = "\n".join(f"  {fault}" for fault in _first(map(_cut, faults)))
    return refuse(request, f"{subject_of(manifest)} is invalid:\n{lines}")


def default_patch(manifest: Mapping[str, Any]) -> list[Json]:
    """The JSON patch that adds the missing requirements and touches nothing else."""
    missing = missing_requirements(manifest)
    if not missing:
        return []
    if isinstance(manifest["spec"].get("requirements"), list):
        return [{"op": "add", "path": "/spec/requirements/-", "value": one} for one in missing]
    return [{"op": "add", "path": "/spec/requirements", "value": missing}]


def allow(request: Json, *, patch: list[Json] | None = None, warnings: list[str] | None = None) -> Json:
    """The answer yes."""
    response: Json = {"uid": request["uid"], "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    if warnings:
        response["warnings"] = warnings
    return _review(response)


def deny(request: Json, manifest: Any, errors: list[FieldError]) -> Json:
    """The answer no, with the faults on a line of their own each and, for programs, as causes.

    The first `SHOWN_FAULTS` by path are named, and how many more there are.
    """
    lines = _first(map(_line, errors), at_least=len(errors) >= MOST_FAULTS)
    causes = [
        {"reason": "FieldValueInvalid", "field": _cut(error.path), "message": line}
        for error, line in zip(errors[:SHOWN_FAULTS], lines, strict=False)
    ]
    message = "\n".join([f"{_cut(subject_of(manifest))} is invalid:", *(f"  {line}" for line in lines)])
    return refuse(request, message, details={"causes": causes})


def _first(lines: Iterable[str], *, at_least: bool = False) -> list[str]:
    """The first lines, and one that counts the others."""
    given = list(lines)
    shown = given[:SHOWN_FAULTS]
    if len(given) > SHOWN_FAULTS:
        shown.append(f"... and {'at least ' if at_least else ''}{len(given) - SHOWN_FAULTS} more")
    return shown


def _line(error: FieldError) -> str:
    """A fault with the code of its rule, which is never cut off."""
    return f"{_cut(str(error))} [{error.code}]"


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def refuse(request: Json, message: str, *, code: int = 400, details: Json | None = None) -> Json:
    """The answer no."""
    reason = {400: "BadRequest", 413: "RequestEntityTooLarge"}.get(code, "InternalError")
    status: Json = {"status": "Failure", "code": code, "reason": reason, "message": message}
    if details:
        status["details"] = details
    return _review({"uid": request["uid"], "allowed": False, "status": status})


def _review(response: Json) -> Json:
    return {"apiVersion": REVIEW_VERSION, "kind": "AdmissionReview", "response": response}


def _never_refused(request: Json) -> bool:
    if request.get("operation") not in ("CREATE", "UPDATE") or request.get("subResource"):
        return True
    updates = request.get("operation") == "UPDATE"
    return updates and leaves_spec_alone(request.get("object"), request.get("oldObject"))
