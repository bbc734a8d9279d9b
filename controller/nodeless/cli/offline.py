"""`nodeless validate` and `nodeless convert`: the controller's own rules on files, without a cluster.

Data goes to stdout, remarks to stderr. Exit code 0: all is well; 1: something is invalid, or
could not be converted; 2: a file, or a document of one, cannot be read, or there is no object in any. What
can be read is looked at in each case.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
import yaml

from nodeless.api.conversion import Conversion
from nodeless.api.conversion_back import convert_to_v1alpha5
from nodeless.api.conversion_classes import ClassContext
from nodeless.api.conversion_v1beta1 import ConvertedObject, convert_any_to_v1, kind_v1beta1
from nodeless.api.errors import FieldError, InvalidObject
from nodeless.api.foreign_kinds import foreign_warning
from nodeless.api.kinds import (
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
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
from nodeless.cli.commands.output import DOCUMENTS, JSON, TEXT, YAML, format_of, write_document
from nodeless.cli.findings import INVALID, checked, github_lines, text_lines, unreadable
from nodeless.cli.folding import echo_folded
from nodeless.cli.manifests.documents import Document
from nodeless.cli.manifests.files import Reading, read_files
from nodeless.cli.manifests.generations import located, served_documents
from nodeless.cli.manifests.neighbors import neighbor_warnings
from nodeless.cli.progress import working
from nodeless.cloudprovider.aws.bundled_types import bundled_types

offline = typer.Typer()
_TO_V1 = (PROVISIONER, AWS_NODE_TEMPLATE, NODE_POOL, EC2_NODE_CLASS, NODE_CLAIM, *V1BETA1)
_TO_V1ALPHA5 = (NODE_POOL, EC2_NODE_CLASS)

Files = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="YAML or JSON files, or folders of them; - is stdin")
]
GITHUB, SARIF = "github", "sarif"
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="text, json, yaml, sarif, or github: annotations of a workflow's run on its files",
    ),
]


@offline.command(name="validate", rich_help_panel="Manifests")
def validate_files(files: Files, output: Output = "text") -> None:
    """Check manifests as the webhook and the API server do; exit 1 when one is invalid.

    Each fault is a line `FILE:LINE:COL: error|warning: message [CODE]`; docs/rules.md explains the codes.
    """
    output = format_of(output, formats=(TEXT, JSON, YAML, GITHUB, SARIF))
    with working("checking the files"):
        reading = _read(files)
        entries = [unreadable(problem) for problem in reading.broken]
        for document, faults in faults_of(reading.documents):
            entries.append(checked(document, faults, skipped=_is_skipped(document.value)))
    # In the order of the files; what is broken stands where it is in its file.
    ranks = {file: rank for rank, file in enumerate(reading.files)}
    entries.sort(key=lambda entry: (ranks[entry.file], entry.line))
    if output in DOCUMENTS:
        write_document("ValidationReport", {"objects": [entry.to_json() for entry in entries]}, output)
    elif output == SARIF:
        # Imported here: the texts of all rules go into it.
        from nodeless.cli.sarif import sarif  # noqa: PLC0415

        typer.echo(json.dumps(sarif(entries, reading.problems), indent=2, ensure_ascii=False))
    else:
        lines_of, write = (github_lines, typer.echo) if output == GITHUB else (text_lines, echo_folded)
        for entry in entries:
            for line in lines_of(entry):
                write(line)
    _end(reading, any(entry.result == INVALID for entry in entries))


@offline.command(name="convert", rich_help_panel="Manifests")
def convert_files(
    files: Files,
    to: Annotated[str, typer.Option("--to", help="v1 or v1alpha5")] = "v1",
    output: Annotated[str, typer.Option("--output", "-o", help="yaml or json")] = "yaml",
    default_instance_profile: Annotated[
        str, typer.Option(help="Setting aws.defaultInstanceProfile, which v1 does not have")
    ] = "",
    role: Annotated[
        str, typer.Option(help="IAM role of the nodes, for node classes that name no instance profile")
    ] = "",
) -> None:
    """Convert pools and node classes of v1alpha5 and v1beta1 to v1, or those of v1 to v1alpha5.

    What is of v1 goes through as it is. What changes is noted on stderr, with its place; exit 1 when
    something cannot be said.
    """
    _require(to in ("v1", "v1alpha5"), f"--to {to!r} is not known; hint: v1 or v1alpha5")
    _require(output in ("yaml", "json"), f"--output {output!r} is not known; hint: yaml or json")
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
    for problem in reading.broken:
        _remark(str(problem))
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
            _remark(located(document, f"not converted: {fault}", fault.path))
            failed = True
            continue
        if not convertible:
            text = f"skipped: {foreign or f'it does not convert to {to}'}"
            _remark(located(document, text, "" if foreign is None else foreign.path))
            continue
        faults = [fault for fault in _faults(manifest, NOTHING_KNOWN) if not fault.warning]
        for fault in faults:
            _remark(located(document, str(fault), fault.path))
        failed = failed or bool(faults)
        given += [] if faults else [manifest]
        sources_of[subject_of(manifest)] = document
    context = ClassContext(default_instance_profile, role=role)
    with working("converting"):
        result: Conversion = convert_any_to_v1(given, context) if to == "v1" else convert_to_v1alpha5(given)
    if output == "json":
        typer.echo(json.dumps(result.manifests, indent=2, ensure_ascii=False))
    elif result.manifests:
        typer.echo(yaml.safe_dump_all(result.manifests, sort_keys=False, allow_unicode=True), nl=False)
    for subject, note in result.notes:
        _remark(located(sources_of[subject], f"note: {note}"))
    for subject, change in result.changes:
        _remark(located(sources_of[subject], f"note: {change}", change.path))
    for subject, loss in result.losses:
        _remark(located(sources_of[subject], f"not converted: {loss}", loss.path))
    _end(reading, failed or bool(result.losses))


def faults_of(documents: Sequence[Document]) -> Iterator[tuple[Document, list[FieldError]]]:
    """The faults and warnings of each object, as it would be in a cluster with the others.

    Objects that are not of our groups have none; those of kinds that are known and not read have a warning.
    """
    converted = [as_v1(document.value) for document in documents]
    manifests = [each.manifest for each in converted]
    around, overlays = _validation_context(manifests), _overlay_warnings(manifests)
    neighbors = neighbor_warnings(documents)
    for document, one in zip(documents, converted, strict=True):
        if _is_skipped(document.value):
            foreign = foreign_warning(document.value)
            yield document, [] if foreign is None else [foreign]
        else:
            found = [*_faults(document.value, around, one), *_repeated(document, documents)]
            if NODE_OVERLAY.describes(document.value):
                found = found or overlays.get(subject_of(document.value), [])
            found += neighbors.get(subject_of(document.value), ())
            yield document, found


def _overlay_warnings(manifests: Sequence[Any]) -> dict[str, list[FieldError]]:
    if not any(NODE_OVERLAY.describes(manifest) for manifest in manifests):
        return {}
    # Imported here: they are laid over the whole catalog.
    from nodeless.cli.manifests.overlays import overlay_warnings  # noqa: PLC0415

    return overlay_warnings(manifests)


def _is_skipped(manifest: Any) -> bool:
    """Whether an object is none that the rules are about."""
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


def _repeated(document: Document, documents: Sequence[Document]) -> Iterator[FieldError]:
    """A warning for the later of two objects of one name, in whichever versions of their kind."""
    kind = _kind_of(document.value)
    metadata = document.value.get("metadata") if kind is not None else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if kind is None or not name:
        return
    alike = (each for each in documents if _is_of(kind, each.value))
    first = next(each for each in alike if subject_of(each.value) == subject_of(document.value))
    if first is not document:
        fault = f"is the name of the {kind.kind} at {first.at()}, too"
        hint = "applied in turn, this one replaces it"
        yield FieldError("metadata.name", name, fault, hint, warning=True, code=RuleCode.REPEATED_NAME)


def _is_of(kind: Kind, manifest: Any) -> bool:
    """Whether a manifest is of a kind, in any of its versions: a cluster has one object for all of them."""
    other = _kind_of(manifest)
    return other is not None and (other.group, other.kind) == (kind.group, kind.kind)


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
