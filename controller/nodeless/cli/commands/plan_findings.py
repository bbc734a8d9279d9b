"""What plans find in manifests: workloads whose pods have no place, and pools whose nodes would drift."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from nodeless.api.validation import subject_of
from nodeless.cli.findings import INVALID, Checked, Finding
from nodeless.cli.manifests.documents import Document, Region
from nodeless.cli.manifests.members import metadata_of, namespace_of
from nodeless.explain.drift_preview import DriftPreview
from nodeless.explain.report import Unplaced
from nodeless.explain.words import count, listed
from nodeless.model.workloads import Workload

_NOWHERE = Region(1, 1)


def unplaced_findings(unplaced: Iterable[Unplaced], documents: Iterable[Document]) -> list[Checked]:
    """An error for each workload with pods that have no place; without a place where no document has it."""
    places = {_workload(document.value): document for document in documents}
    return [
        _unplaced(group, workload, pods, places.get(workload))
        for group in unplaced
        for workload, pods in group.workloads
    ]


def drift_findings(preview: DriftPreview, documents: Iterable[Document]) -> list[Checked]:
    """What `unplaced_findings` has, and a warning for each pool and each reason for which its nodes drift."""
    given = list(documents)
    places = {subject_of(document.value): document for document in given}
    counted: dict[tuple[str, str, str], int] = {}
    for node in preview.drifting:
        reason = (node.pool, node.reason, node.message)
        counted[reason] = counted.get(reason, 0) + 1
    found = []
    for (pool, code, message), nodes in counted.items():
        text = f"{count(nodes, 'node')} of {pool} would drift: {message}"
        found.append(_found(pool, places.get(pool), Finding(code, True, "", text, "", text, _NOWHERE)))
    return [*found, *unplaced_findings(preview.unplaced, given)]


def _unplaced(group: Unplaced, workload: Workload, pods: int, document: Document | None) -> Checked:
    reasons = "; ".join(
        f"{f'{listed(obstacle.pools, 3)}: ' if obstacle.pools else ''}{obstacle.message}"
        for obstacle in group.obstacles
    )
    message = f"{count(pods, 'pod')} of {workload} not placed: {reasons}"
    hint = "; or ".join(group.remedies)
    text = f"{message}; hint: {hint}" if hint else message
    finding = Finding(group.code, False, "", message, hint, text, _NOWHERE)
    return _found(f"{workload.kind}/{workload.name}", document, finding)


def _found(subject: str, document: Document | None, finding: Finding) -> Checked:
    """A finding about an object: at its name, where a document has it."""
    if document is None:
        return Checked("", _NOWHERE.line, subject, INVALID, (finding,))
    region = document.region("metadata.name")
    placed = replace(finding, path="metadata.name", region=region)
    return Checked(document.file, region.line, subject, INVALID, (placed,))


def _workload(manifest: Any) -> Workload | None:
    if not isinstance(manifest, dict):
        return None
    name = metadata_of(manifest).get("name")
    return Workload(namespace_of(manifest), str(manifest.get("kind")), str(name))
