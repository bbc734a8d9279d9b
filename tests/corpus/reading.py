"""One file as `nodeless plan` and `nodeless validate` read it, as a plain result."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from nodeless.cli.bounded_files import UnreadableFileError, read_text
from nodeless.cli.main import app
from nodeless.cli.manifests.documents import BadManifests, documents_of
from nodeless.cli.manifests.reading import FileContents, read_documents
from nodeless.model.pods import DaemonSet, Pod
from nodeless.model.resources import format_resources, total
from nodeless.model.workloads import workload_of

_DEFAULT = "default"
_NO_OBJECT = "there is no object to look at"


@dataclass(frozen=True, slots=True)
class FileResult:
    """What is read of one file.

    Attributes:
        workloads: Of each workload its number of pods, their total requests, and what else its pods have.
        daemon_sets: Of each DaemonSet the requests of a pod.
        pools: The pools, of every API generation.
        node_classes: The node classes that the file holds.
        overlays: Its NodeOverlays.
        skipped: Kinds that a plan leaves out, and how many of each.
        notes: What a plan assumes, converts or says of the file otherwise.
        faults: Why a plan refuses the file.
        invalid: Faults that `validate` finds in pools and node classes; in the whole file, if it is no YAML.
        warnings: What `validate` warns of.
    """

    workloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    daemon_sets: dict[str, dict[str, str]] = field(default_factory=dict)
    pools: list[str] = field(default_factory=list)
    node_classes: list[str] = field(default_factory=list)
    overlays: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def pods(self) -> int:
        return sum(workload["pods"] for workload in self.workloads.values())

    def as_dict(self) -> dict[str, Any]:
        """The result without what is empty, for machines."""
        return {name: value for name, value in asdict(self).items() if value}


def read_file(path: Path) -> FileResult:
    """What is read of a file. Raises only what no one foresaw."""
    invalid, warnings = _validated(path)
    try:
        contents = _planned(path)
    except BadManifests as error:
        faults = [_local(fault, path) for fault in error.faults]
        return FileResult(faults=faults, invalid=invalid, warnings=warnings)
    snapshot = contents.snapshot
    given = [name for name in snapshot.node_classes if not any(name in note for note in _assumed(contents))]
    return FileResult(
        workloads=_workloads(pod for pod in snapshot.pods.values() if not pod.terminal),
        daemon_sets=dict(sorted(_daemon_set(daemon_set) for daemon_set in snapshot.daemon_sets.values())),
        pools=sorted(snapshot.pools),
        node_classes=sorted(given),
        overlays=sorted(snapshot.node_overlays),
        skipped=dict(sorted(Counter(one.kind for one in (*contents.skipped, *contents.unread)).items())),
        notes=[_local(note, path) for note in contents.assumed],
        invalid=invalid,
        warnings=warnings,
    )


def _planned(path: Path) -> FileContents:
    try:
        text = read_text(str(path))
    except UnreadableFileError as error:
        raise BadManifests([str(error)]) from None
    return read_documents(list(documents_of(str(path), text)))


def _validated(path: Path) -> tuple[list[str], list[str]]:
    """Faults and warnings of `nodeless validate`."""
    result = CliRunner().invoke(app, ["validate", "-o", "json", str(path)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    faults = [fault for entry in json.loads(result.stdout)["objects"] for fault in entry["faults"]]
    texts = {
        severity: [fault["text"] for fault in faults if fault["severity"] == severity]
        for severity in ("error", "warning")
    }
    remarks = [_local(line.removeprefix("nodeless: "), path) for line in result.stderr.splitlines()]
    notes = [line.removeprefix("note: ") for line in remarks if line.startswith("note: ")]
    problems = [line for line in remarks if not line.startswith("note: ") and line != _NO_OBJECT]
    return [*texts["error"], *problems], [*texts["warning"], *notes]


def _local(text: str, path: Path) -> str:
    """A text that names the file without its folder."""
    return text.replace(str(path), path.name)


def _assumed(contents: FileContents) -> Iterator[str]:
    return (note for note in contents.assumed if "is not in the files" in note)


def _workloads(pods: Iterable[Pod]) -> dict[str, dict[str, Any]]:
    made: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        workload = workload_of(pod)
        made[_subject(workload.kind, workload.namespace, workload.name)].append(pod)
    return {
        name: {"pods": len(each), **_amounts(total(pod.requests for pod in each)), **_features(each)}
        for name, each in sorted(made.items())
    }


def _daemon_set(daemon_set: DaemonSet) -> tuple[str, dict[str, str]]:
    name = _subject("DaemonSet", daemon_set.namespace, daemon_set.name)
    return name, _amounts(dict(daemon_set.shape.requests))


def _amounts(requests: dict[str, int]) -> dict[str, str]:
    """Requests in canonical spelling, without the place of the pod itself."""
    asked = {name: amount for name, amount in requests.items() if name != "pods" and amount}
    return {"cpu": "0", "memory": "0"} | format_resources(asked)


def _features(pods: list[Pod]) -> dict[str, Any]:
    """What the pods of a workload have besides requests, without what none of them has."""
    shape = pods[0].shape
    features = {
        "running": sum(1 for pod in pods if pod.node_name),
        "priority": pods[0].priority,
        "host_ports": [port.port for port in shape.host_ports],
        "spread": len(shape.spread),
        "affinity": len(shape.affinity) + len(shape.anti_affinity),
        "volumes": len(shape.claims) + len(shape.ephemeral_volumes),
        "tolerations": len(shape.tolerations),
        "selects": dict(shape.node_selector),
        "alternatives": len(shape.required_terms),
    }
    return {name: value for name, value in features.items() if value}


def _subject(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{name}" if namespace == _DEFAULT else f"{kind}/{namespace}/{name}"
