"""`nodeless validate` and `nodeless convert`: the controller's own rules on files, without a cluster.

Data goes to stdout, remarks to stderr. Exit code 0: all is well; 1: something is invalid, or
could not be converted; 2: a file cannot be read.
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from nodeless.api.conversion import Conversion, convert_to_v1
from nodeless.api.conversion_back import convert_to_v1alpha5
from nodeless.api.conversion_classes import ClassContext
from nodeless.api.errors import FieldError, InvalidObject
from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_POOL, PROVISIONER
from nodeless.api.reading import read_pool
from nodeless.api.surroundings import Surroundings, advice_around
from nodeless.api.validation import kind_of, subject_of, validate
from nodeless.app.bundled_types import bundled_types
from nodeless.app.yaml_files import read_documents

offline = typer.Typer()
_STDIN = "-"
_OLD, _NEW = (PROVISIONER, AWS_NODE_TEMPLATE), (NODE_POOL, EC2_NODE_CLASS)

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="YAML or JSON files; - is stdin")]
Output = Annotated[str, typer.Option("--output", "-o", help="text or json")]


@offline.command(name="validate", rich_help_panel="Manifests")
def validate_files(files: Files, output: Output = "text") -> None:
    """Check manifests as the webhook and the API server do; exit 1 when one is invalid."""
    _require(output in ("text", "json"), f"--output {output!r} is not known; hint: text or json")
    results: list[dict[str, Any]] = []
    listed = list(documents(files))
    around = _surroundings([manifest for _, manifest in listed])
    for file, manifest in listed:
        if kind_of(manifest) is None and not _is_ours(manifest):
            results.append(
                {"file": file, "object": subject_of(manifest), "result": "passed over", "faults": []}
            )
            continue
        faults = validate(manifest)
        invalid = any(not fault.warning for fault in faults)
        told = faults if invalid else advice_around(manifest, around)
        result = "invalid" if invalid else "valid"
        entry: dict[str, Any] = {"file": file, "object": subject_of(manifest), "result": result}
        results.append(entry | {"faults": [_fault(fault) for fault in told]})
    if output == "json":
        typer.echo(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        for entry in results:
            _print_result(entry)
    if any(entry["result"] == "invalid" for entry in results):
        raise typer.Exit(1)


@offline.command(name="convert", rich_help_panel="Manifests")
def convert_files(
    files: Files,
    to: Annotated[str, typer.Option("--to", help="v1 or v1alpha5")] = "v1",
    output: Annotated[str, typer.Option("--output", "-o", help="yaml or json")] = "yaml",
    default_instance_profile: Annotated[
        str, typer.Option(help="Setting aws.defaultInstanceProfile, which v1 does not have")
    ] = "",
) -> None:
    """Convert pools and node classes between v1alpha5 and v1; exit 1 when something cannot be said."""
    _require(to in ("v1", "v1alpha5"), f"--to {to!r} is not known; hint: v1 or v1alpha5")
    _require(output in ("yaml", "json"), f"--output {output!r} is not known; hint: yaml or json")
    sources = _OLD if to == "v1" else _NEW
    given: list[Any] = []
    failed = False
    for file, manifest in documents(files):
        if kind_of(manifest) is None and _is_ours(manifest):
            (fault,) = validate(manifest)
            _remark(f"{file}: {subject_of(manifest)}: not converted: {fault}")
            failed = True
            continue
        if not any(kind.describes(manifest) for kind in sources):
            _remark(f"{file}: {subject_of(manifest)} passed over: it is nothing that becomes {to}")
            continue
        faults = [fault for fault in validate(manifest) if not fault.warning]
        for fault in faults:
            _remark(f"{file}: {subject_of(manifest)}: {fault}")
        failed = failed or bool(faults)
        given += [] if faults else [manifest]
    context = ClassContext(default_instance_profile)
    result: Conversion = convert_to_v1(given, context) if to == "v1" else convert_to_v1alpha5(given)
    if output == "json":
        typer.echo(json.dumps(result.manifests, indent=2, ensure_ascii=False))
    elif result.manifests:
        typer.echo(yaml.safe_dump_all(result.manifests, sort_keys=False, allow_unicode=True), nl=False)
    for subject, note in result.notes:
        _remark(f"{subject}: note: {note}")
    for subject, loss in result.losses:
        _remark(f"{subject}: not converted: {loss}")
    if failed or result.losses:
        raise typer.Exit(1)


def _surroundings(manifests: list[Any]) -> Surroundings:
    """The pools of the files are each other's neighbours, as they would be in a cluster."""
    pools = {}
    for manifest in manifests:
        if PROVISIONER.describes(manifest) or NODE_POOL.describes(manifest):
            with contextlib.suppress(InvalidObject):
                pool, _ = read_pool(manifest)
                pools[pool.key] = pool
    return Surroundings(bundled_types(), pools)


def documents(files: list[str]) -> Iterator[tuple[str, Any]]:
    """Every document of every file, the items of a List one by one."""
    for file in files:
        try:
            text = sys.stdin.read() if file == _STDIN else Path(file).read_text(encoding="utf-8")
            documents = list(read_documents(text))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            _require(False, f"{file} cannot be read: {reason}; hint: give YAML or JSON files, or - for stdin")
        except yaml.YAMLError as error:
            _require(False, f"{file} is not YAML: {' '.join(str(error).split())}")
        for document in documents:
            listed = isinstance(document, dict) and document.get("kind") == "List"
            for manifest in document.get("items") or [] if listed else [document]:
                yield file, manifest


def _is_ours(manifest: Any) -> bool:
    """Whether a manifest is of one of our groups, or of no group at all: then its kind is a fault of it."""
    if not isinstance(manifest, dict):
        return True
    group = str(manifest.get("apiVersion") or "").partition("/")[0]
    return group in ("", PROVISIONER.group, AWS_NODE_TEMPLATE.group)


def _fault(fault: FieldError) -> dict[str, Any]:
    severity = "warning" if fault.warning else "error"
    return {
        "path": fault.path,
        "severity": severity,
        "message": fault.message,
        "hint": fault.hint,
        "text": str(fault),
    }


def _print_result(entry: dict[str, Any]) -> None:
    typer.echo(f"{entry['file']}: {entry['object']}: {entry['result']}")
    for fault in entry["faults"]:
        typer.echo(f"  {fault['text']}")


def _remark(text: str) -> None:
    typer.echo(text, err=True)


def _require(holds: bool, message: str) -> None:
    if not holds:
        _remark(f"nodeless: {message}")
        raise typer.Exit(2)
