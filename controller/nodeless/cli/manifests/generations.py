"""Objects of v1beta1 among the documents as v1 says them; kinds of others that are not read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeless.api.conversion import Conversion
from nodeless.api.conversion_v1beta1 import convert_v1beta1, kind_v1beta1
from nodeless.api.foreign_kinds import foreign_warning
from nodeless.api.kinds import NODE_CLAIM
from nodeless.api.validation import subject_of
from nodeless.api.validation_v1beta1 import validate_v1beta1
from nodeless.cli.manifests.documents import Document, FaultLine
from nodeless.cli.manifests.skipped import Skipped


@dataclass(slots=True)
class ServedDocuments:
    """What of some documents the controller reads.

    Attributes:
        documents: The documents of kinds that are served, and what those of v1beta1 convert to.
        notes: One line for each that is converted or not read, with its place.
        unread: Those of kinds that are known and not read.
        faults: One line for each fault of an object of v1beta1, with its place.
    """

    documents: list[Document] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unread: list[Skipped] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def served_documents(documents: Iterable[Document]) -> ServedDocuments:
    """Convert the objects of v1beta1, and leave out kinds that are known and not read."""
    found = ServedDocuments()
    older: list[Document] = []
    for document in documents:
        if (warning := foreign_warning(document.value)) is not None:
            found.notes.append(located(document, str(warning), warning.path))
            kind, subject = str(document.value["kind"]), subject_of(document.value)
            found.unread.append(Skipped(document.at(), subject, kind, warning.message))
        elif kind_v1beta1(document.value) is None:
            found.documents.append(document)
        else:
            faults = [fault for fault in validate_v1beta1(document.value) if not fault.warning]
            found.faults += [
                FaultLine.of(located(document, str(fault), fault.path), fault.code) for fault in faults
            ]
            older += [] if faults else [document]
    _convert(older, found)
    return found


def located(document: Document, text: str, path: str = "") -> str:
    """One line about an object: `FILE:LINE:COL: Kind/name: text`."""
    return f"{document.at(path)}: {subject_of(document.value)}: {text}"


def _convert(older: list[Document], found: ServedDocuments) -> None:
    places = {subject_of(document.value): document for document in older}
    result = Conversion()
    served = [document.value for document in found.documents if isinstance(document.value, dict)]
    convert_v1beta1([*served, *(document.value for document in older)], result)
    for subject, loss in result.losses:
        line = located(places[subject], f"not converted: {loss}", loss.path)
        found.faults.append(FaultLine.of(line, loss.code))
    for subject, manifest in zip(result.subjects, result.manifests, strict=True):
        document = places[subject]
        read = _as_it_runs(manifest, document.value) if NODE_CLAIM.describes(manifest) else manifest
        found.documents.append(Document(document.file, read, document.node))
    for document in older:
        text = f"{document.value['apiVersion']} is read as `nodeless convert` writes it in v1"
        found.notes.append(located(document, text))


def _as_it_runs(claim: Mapping[str, Any], older: Mapping[str, Any]) -> dict[str, Any]:
    """A converted claim with what the API server and the controller wrote: which node it became, and when.

    What is to be applied has none of it. Without it a claim of a dump would be a node that is yet to come.
    """
    written = {name: value for name, value in older["metadata"].items() if name != "annotations"}
    made = {**claim, "metadata": {**written, **claim["metadata"]}}
    return {**made, "status": older["status"]} if older.get("status") is not None else made
