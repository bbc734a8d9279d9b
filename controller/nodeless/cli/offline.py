"""`nodeless validate` and `nodeless convert`: the controller's own rules on files, without a cluster.

Data goes to stdout, remarks to stderr. Exit code 0: all is well; 1: something is invalid, or
could not be converted; 2: a file, or a document of one, cannot be read, or there is no object in any. What
can be read is looked at in each case.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

import typer

from nodeless.api.conversion import Conversion
from nodeless.api.conversion_back import convert_to_v1alpha5
from nodeless.api.conversion_classes import ClassContext
from nodeless.api.conversion_v1beta1 import ConvertedObject, convert_any_to_v1, kind_v1beta1
from nodeless.api.errors import FieldError, InvalidObject
from nodeless.api.foreign_kinds import foreign_warning, is_served_by_others
from nodeless.api.kinds import (
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
    KIND_OF_NAME,
    NODE_CLAIM,
    NODE_OVERLAY,
    NODE_POOL,
    PROVISIONER,
    V1BETA1,
    Kind,
)
from nodeless.api.reading import read_pool
from nodeless.api.rule_codes import RuleCode
from nodeless.api.validation import kind_of, subject_of, validate
from nodeless.api.validation_context import NOTHING_KNOWN, ValidationContext, context_warnings
from nodeless.api.validation_v1beta1 import as_v1, validate_v1beta1
from nodeless.api.workload_rules import is_own_workload
from nodeless.cli.commands.output import (
    DOCUMENTS,
    FINDINGS,
    JSON,
    PLAIN,
    TABLE,
    YAML,
    format_of,
    output_option,
    write_document,
    write_findings,
)
from nodeless.cli.commands.terms import refuse
from nodeless.cli.completion import object_names
from nodeless.cli.findings import INVALID, Checked, checked, fault_text, text_lines, unreadable
from nodeless.cli.folding import echo_folded
from nodeless.cli.manifests.documents import Document, FaultLine
from nodeless.cli.manifests.files import Reading, read_files
from nodeless.cli.manifests.generations import located, served_documents
from nodeless.cli.manifests.neighbors import neighbor_warnings
from nodeless.cli.manifests.yaml_writer import yaml_documents
from nodeless.cli.object_names import split_names
from nodeless.cli.progress import working
from nodeless.cloudprovider.aws.bundled_types import bundled_types

offline = typer.Typer()
_TO_V1 = (PROVISIONER, AWS_NODE_TEMPLATE, NODE_POOL, EC2_NODE_CLASS, NODE_CLAIM, *V1BETA1)
_TO_V1ALPHA5 = (NODE_POOL, EC2_NODE_CLASS)

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="YAML or JSON files, or folders with such files. - is stdin."),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        help="Path of a kubeconfig. If not set, $KUBECONFIG, then ~/.kube/config.",
        rich_help_panel="Which cluster",
    ),
]
_CHECKED, _CONVERTED = (*PLAIN, *FINDINGS), (YAML, JSON, *FINDINGS)


@offline.command(name="validate", rich_help_panel="Manifests")
def validate_files(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND/NAME|FILE...",
            help="YAML or JSON files, folders with such files, or objects of the cluster, such as "
            "nodepool/general. - is stdin.",
            autocompletion=object_names(tuple(KIND_OF_NAME), beside_files=True),
        ),
    ],
    kubeconfig: Kubeconfig = "",
    output: Annotated[str, output_option(*_CHECKED)] = TABLE,
) -> None:
    """Check manifests as the webhook and the API server do. Exit code 1: a manifest is invalid.

    It checks pools, node classes, and Kubernetes's own workloads: names, labels, selectors, resources and
    required fields.

    Each fault is a line `FILE:LINE:COL: error|warning: message [CODE]`. docs/rules.md explains the codes.
    Objects of the cluster are checked as `kubectl get -o yaml` shows them, together with the cluster's other
    pools.

    nodeless validate pools/ nodepool/general
    """
    output = format_of(output, formats=_CHECKED)
    with working("checking the files"):
        given, names = split_names(files, KIND_OF_NAME)
        reading = _read(given)
        around = _add_live_objects(reading, names, kubeconfig) if names else ()
        entries = [unreadable(problem) for problem in reading.broken]
        # What is around comes last: what is asked about does not repeat it.
        for document, faults in islice(faults_of([*reading.documents, *around]), len(reading.documents)):
            entries.append(checked(document, faults, skipped=_is_skipped(document.value)))
    # In the order of the files; what is broken stands where it is in its file.
    ranks = {file: rank for rank, file in enumerate(reading.files)}
    entries.sort(key=lambda entry: (ranks[entry.file], entry.line))
    if output in DOCUMENTS:
        write_document("ValidationReport", {"objects": [entry.to_json() for entry in entries]}, output)
    elif output in FINDINGS:
        write_findings(entries, reading.problems, output)
    else:
        for entry in entries:
            for line in text_lines(entry):
                echo_folded(line)
    _end(reading, any(entry.result == INVALID for entry in entries))


@offline.command(name="convert", rich_help_panel="Manifests")
def convert_files(
    files: Files,
    to: Annotated[str, typer.Option("--to", help="Target version: v1 or v1alpha5.")] = "v1",
    output: Annotated[str, output_option(*_CONVERTED)] = YAML,
    default_instance_profile: Annotated[
        str, typer.Option(help="Value of the setting aws.defaultInstanceProfile, which v1 does not have.")
    ] = "",
    role: Annotated[
        str, typer.Option(help="IAM role of the nodes, for node classes that name no instance profile.")
    ] = "",
) -> None:
    """Convert pools and node classes from v1alpha5 and v1beta1 to v1, or from v1 to v1alpha5.

    With --to v1, objects of v1 pass unchanged. What changes is reported on stderr, with its place. Exit code
    1: something cannot be converted. With -o github or -o sarif, only these reports are written, and no
    manifests.
    """
    _require(to in ("v1", "v1alpha5"), f"--to {to!r} is not known; hint: v1 or v1alpha5")
    output = format_of(output, formats=_CONVERTED)
    _require(
        not (role and default_instance_profile),
        "--role and --default-instance-profile exclude each other; hint: a node class has one of the two",
    )
    _require(
        to == "v1" or not (role or default_instance_profile),
        "--role and --default-instance-profile are for --to v1; hint: leave them out",
    )
    sources = _TO_V1 if to == "v1" else _TO_V1ALPHA5
    given: list[Any] = []
    failed = False
    with working("reading the files"):
        reading = _read(files)
    found = _Noted(shown=output not in FINDINGS)
    for problem in reading.broken:
        found.add(unreadable(problem), str(problem))
    sources_of: dict[str, Document] = {}
    for document in reading.documents:
        manifest = document.value
        convertible = any(kind.describes(manifest) for kind in sources)
        foreign = foreign_warning(manifest)
        if (
            foreign is None
            and not convertible
            and _kind_of(manifest) in (None, *V1BETA1)
            and _is_ours(manifest)
        ):
            fault = next(iter(validate(manifest)))
            found.note(document, fault, "not converted: ")
            failed = True
            continue
        if not convertible:
            if foreign is None:
                found.say(located(document, f"skipped: it does not convert to {to}"))
            else:
                found.note(document, foreign, "skipped: ")
            continue
        noted = _faults(manifest, NOTHING_KNOWN)
        faults = [fault for fault in noted if not fault.warning]
        for fault in faults:
            found.note(document, fault)
        # A pool that others serve is theirs in every version.
        for warning in noted if is_served_by_others(manifest) else ():
            found.note(document, warning, "note: ")
        failed = failed or bool(faults)
        given += [] if faults else [manifest]
        sources_of[subject_of(manifest)] = document
    context = ClassContext(default_instance_profile, role=role)
    with working("converting"):
        result: Conversion = convert_any_to_v1(given, context) if to == "v1" else convert_to_v1alpha5(given)
    if output == JSON:
        listed = {"apiVersion": "v1", "kind": "List", "items": result.manifests}
        typer.echo(json.dumps(listed, indent=2, ensure_ascii=False))
    elif output == YAML and result.manifests:
        typer.echo(yaml_documents(result.manifests), nl=False)
    for subject, note in result.notes:
        found.say(located(sources_of[subject], f"note: {note}"))
    for subject, change in result.changes:
        found.note(sources_of[subject], replace(change, warning=True), "note: ")
    for subject, loss in result.losses:
        found.note(sources_of[subject], loss, "not converted: ")
    if output in FINDINGS:
        write_findings(found.entries, reading.problems, output)
    _end(reading, failed or bool(result.losses))


class _Noted:
    """What a conversion says of its input: on stderr at once, or as findings in the end."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self.entries: list[Checked] = []

    def note(self, document: Document, fault: FieldError, start: str = "") -> None:
        """A fault, a loss or a change at its field."""
        text = str(fault).removeprefix("warning: ") if start == "note: " else str(fault)
        line = located(document, f"{start}{text}", fault.path)
        self.add(checked(document, [fault]), line if start else fault_text(FaultLine.of(line, fault.code)))

    def add(self, entry: Checked, line: str) -> None:
        """A finding, and the line that says it."""
        self.entries.append(entry)
        self.say(line)

    def say(self, line: str) -> None:
        """A line about no fault."""
        if self._shown:
            _remark(line)


def faults_of(documents: Sequence[Document]) -> Iterator[tuple[Document, list[FieldError]]]:
    """The faults and warnings of each object, as it would be in a cluster with the others.

    Objects of other groups than ours have none, but for Kubernetes' own workloads; those of kinds that are
    known and not read have a warning.
    """
    converted = [as_v1(document.value) for document in documents]
    manifests = [each.manifest for each in converted]
    around, overlays = _validation_context(manifests), _overlay_warnings(manifests)
    neighbors = neighbor_warnings(documents)
    first: dict[tuple[str, str, str], Document] = {}
    identities = [_identity(document.value) for document in documents]
    for document, identity in zip(documents, identities, strict=True):
        if identity is not None:
            first.setdefault(identity, document)
    for document, identity, one in zip(documents, identities, converted, strict=True):
        if is_own_workload(document.value):
            yield document, _workload_faults(document.value)
        elif _is_skipped(document.value):
            foreign = foreign_warning(document.value)
            yield document, [] if foreign is None else [foreign]
        else:
            found = [
                *_faults(document.value, around, one),
                *_repeated(document, first.get(identity) if identity else None),
            ]
            if NODE_OVERLAY.describes(document.value):
                found = found or overlays.get(subject_of(document.value), [])
            found += neighbors.get(subject_of(document.value), ())
            yield document, found


def _workload_faults(manifest: Any) -> list[FieldError]:
    # Imported here: pools and node classes do without the decoder of pods.
    from nodeless.cli.manifests.workload_checks import workload_faults  # noqa: PLC0415

    return workload_faults(manifest)


def _overlay_warnings(manifests: Sequence[Any]) -> dict[str, list[FieldError]]:
    if not any(NODE_OVERLAY.describes(manifest) for manifest in manifests):
        return {}
    # Imported here: they are laid over the whole catalog.
    from nodeless.cli.manifests.overlays import overlay_warnings  # noqa: PLC0415

    return overlay_warnings(manifests)


def _is_skipped(manifest: Any) -> bool:
    """Whether an object is none that the rules are about."""
    if is_own_workload(manifest):
        return False
    if foreign_warning(manifest) is not None:
        return True
    return _kind_of(manifest) is None and not _is_ours(manifest)


def _kind_of(manifest: Any) -> Kind | None:
    """The kind of a manifest that the commands know: one of ours, or of v1beta1."""
    return kind_of(manifest) or kind_v1beta1(manifest)


def _faults(
    manifest: Any, around: ValidationContext, converted: ConvertedObject | None = None
) -> list[FieldError]:
    """The faults of an object of any generation; its warnings, when it has none."""
    if kind_v1beta1(manifest) is not None:
        return validate_v1beta1(manifest, around, converted)
    return validate(manifest) or context_warnings(manifest, around)


def _repeated(document: Document, first: Document | None) -> Iterator[FieldError]:
    """A warning for the later of two objects of one name, in whichever versions of their kind."""
    kind = _kind_of(document.value)
    if kind is not None and first is not None and first is not document:
        fault = f"is also the name of the {kind.kind} at {first.at()}"
        hint = "if you apply both, this one replaces it"
        name = document.value["metadata"]["name"]
        yield FieldError("metadata.name", name, fault, hint, warning=True, code=RuleCode.REPEATED_NAME)


def _identity(manifest: Any) -> tuple[str, str, str] | None:
    """Group, kind and name of an object of ours: a cluster has one of them in all of its versions."""
    kind = _kind_of(manifest)
    metadata = manifest.get("metadata") if kind is not None else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return (kind.group, kind.kind, str(name)) if kind is not None and name else None


def _validation_context(manifests: list[Any]) -> ValidationContext:
    """The pools of the files, as v1 says them, are each other's neighbors, as they would be in a cluster."""
    pools = {}
    for manifest in manifests:
        if PROVISIONER.describes(manifest) or NODE_POOL.describes(manifest):
            with contextlib.suppress(InvalidObject):
                pool, _ = read_pool(manifest)
                pools[pool.key] = pool
    return ValidationContext(bundled_types(), pools)


def documents(files: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """File and manifest of every object; ends the command when a file cannot be read."""
    reading = read_files(files)
    unread = [*reading.problems, *map(str, reading.broken)]
    _require(not unread, "; ".join(unread))
    served = served_documents(reading.documents)
    _require(not served.faults, "; ".join(served.faults))
    for note in served.notes:
        _remark(f"nodeless: note: {note}")
    for document in served.documents:
        yield document.file, document.value


def _read(files: Sequence[str]) -> Reading:
    reading = read_files(files)
    for problem in reading.problems:
        _remark(f"nodeless: {problem}")
    for remark in reading.remarks:
        _remark(f"nodeless: note: {remark}")
    return reading


def _add_live_objects(reading: Reading, names: Sequence[str], kubeconfig: str) -> Sequence[Document]:
    """Read objects of the cluster, too; returns what is around them. Ends the command where it cannot."""
    # Imported here: files need no cluster.
    from nodeless.cli.kubeconfig import ClusterUnreadable, use_kubeconfig  # noqa: PLC0415
    from nodeless.cli.live_objects import live_objects  # noqa: PLC0415
    from nodeless.kube import ApiError, ApiUnavailable  # noqa: PLC0415

    try:
        use_kubeconfig(kubeconfig)
        found, around, missing = live_objects(names)
    except (ClusterUnreadable, ApiError, ApiUnavailable) as error:
        refuse(str(error))
    reading.documents += found
    reading.files += [document.file for document in found]
    reading.problems += missing
    for line in missing:
        _remark(f"nodeless: {line}")
    return around


def _end(reading: Reading, failed: bool) -> None:
    """The exit code: what cannot be read weighs most, for nothing is known of it."""
    unread = bool(reading.problems or reading.broken)
    if not reading.documents and not unread:
        _remark("nodeless: there is no object to look at")
    if unread or not reading.documents:
        raise typer.Exit(2)
    if failed:
        raise typer.Exit(1)


def _is_ours(manifest: Any) -> bool:
    """Whether a manifest is of one of our groups, or of no group at all: then its kind is a fault of it."""
    if not isinstance(manifest, dict):
        return True
    version = manifest.get("apiVersion") or ""
    if not isinstance(version, str) or not isinstance(manifest.get("kind"), str):
        return True
    return version.partition("/")[0] in ("", PROVISIONER.group, AWS_NODE_TEMPLATE.group)


def _remark(text: str) -> None:
    typer.echo(text, err=True)


def _require(holds: bool, message: str) -> None:
    if not holds:
        _remark(f"nodeless: {message}")
        raise typer.Exit(2)
