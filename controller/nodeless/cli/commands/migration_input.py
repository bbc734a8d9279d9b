"""The files of a migration: answers of the AWS CLI and objects of Kubernetes, mixed as they come."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_POOL, PROVISIONER, V1BETA1
from nodeless.cli.bounded_files import UnreadableFileError
from nodeless.cli.manifests.documents import BadManifests, Document, documents_of
from nodeless.cli.manifests.files import listed_files, text_of_listed
from nodeless.cli.manifests.members import metadata_of, namespace_of
from nodeless.cli.manifests.workloads import is_workload, pod_sets_of
from nodeless.explain.migration.answers import COMMANDS, Answers, is_answer
from nodeless.explain.migration.autoscaler import (
    Autoscaler,
    is_autoscaler,
    is_priorities,
    read_autoscaler,
    read_priorities,
)
from nodeless.explain.migration.behavior import Template
from nodeless.explain.migration.ledger import BadAnswer, Ledger
from nodeless.explain.words import listed
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of

_POOLS = (
    PROVISIONER,
    AWS_NODE_TEMPLATE,
    NODE_POOL,
    EC2_NODE_CLASS,
    *(kind for kind in V1BETA1 if kind.kind != "NodeClaim"),
)
_READ = listed(sorted(COMMANDS.values()), len(COMMANDS))
_CUT = "hint: was the output cut off? Run the command again"
_START = yaml.Mark("(proposed)", 0, 0, 0, None, 0)
#: Answers that do not name the group that they are about.
_NAMELESS = {"WarmPoolConfiguration": "aws autoscaling describe-warm-pool"}


@dataclass(slots=True)
class MigrationInput:
    """What the files hold.

    Attributes:
        answers: Those of the AWS CLI.
        pools: Pools and node classes of Karpenter, of any generation.
        objects: Other objects of Kubernetes.
        remarks: What is probably not what was meant.
        faults: One line for each fault, with its file.
    """

    answers: Answers = field(default_factory=Answers)
    pools: list[Document] = field(default_factory=list)
    objects: list[Document] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def planned(self) -> list[Document]:
        """The objects without the autoscaler and its settings, which go when the migration is done."""
        return [one for one in self.objects if not (is_autoscaler(one.value) or is_priorities(one.value))]

    def autoscaler(self, ledger: Ledger) -> Autoscaler:
        """What the Deployment of Cluster Autoscaler and its priorities say."""
        found = next(
            (read_autoscaler(one.value, ledger) for one in self.objects if is_autoscaler(one.value)),
            Autoscaler(),
        )
        for document in self.objects:
            if is_priorities(document.value):
                read_priorities(document.value, found, ledger)
        return found


def read_migration(names: Sequence[str], ledger: Ledger) -> MigrationInput:
    """Read files, folders and stdin; every fault of every file is found."""
    given = MigrationInput()
    for name in names:
        files, remarks = listed_files(name)
        given.remarks += remarks
        for file in files:
            try:
                _read(file, text_of_listed(file), given, ledger)
            except UnreadableFileError as error:
                given.faults.append(str(error))
            except BadManifests as error:
                given.faults += error.faults
            except BadAnswer as error:
                given.faults.append(str(error))
    return given


def _read(file: str, text: str, given: MigrationInput, ledger: Ledger) -> None:
    if text.lstrip().startswith(("{", "[")):
        _check_json(file, text)
    documents = list(documents_of(file, text))
    if not documents:
        given.faults.append(
            f"{file} contains no object; hint: did the command that made it fail, or is the namespace wrong?"
        )
    for document in documents:
        value = document.value
        if is_answer(value):
            given.answers.add(value, file)
        elif isinstance(value, Mapping) and any(name in value for name in _NAMELESS):
            name = next(name for name in _NAMELESS if name in value)
            reason = "it does not name its group; describe-auto-scaling-groups returns it with the group"
            ledger.leave(_NAMELESS[name], name, value[name], reason)
        elif isinstance(value, Mapping) and isinstance(value.get("kind"), str):
            (given.pools if any(kind.describes(value) for kind in _POOLS) else given.objects).append(document)
        else:
            given.faults.append(
                f"{document.at()}: neither a Kubernetes object nor a known output of the AWS CLI; "
                f"hint: kubectl get -o yaml, or {_READ}"
            )


def _check_json(file: str, text: str) -> None:
    """A better word for JSON that is cut off than that of a parser of YAML. Raises BadManifests."""
    decoder, position = json.JSONDecoder(), 0
    try:
        while rest := text[position:].lstrip():
            _, position = decoder.raw_decode(text, len(text) - len(rest))
    except RecursionError:
        return  # the parser of YAML has bounds, and says so
    except ValueError as error:
        try:
            # What begins like JSON may be YAML all the same.
            yaml.safe_load(text)
        except yaml.YAMLError:
            where = (
                f"{file}:{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else file
            )
            message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise BadManifests([f"{where}: not JSON: {message}; {_CUT}"]) from None


def templates_of(objects: Sequence[Document], snapshot: Snapshot) -> Iterator[Template]:
    """What the objects say of pods: pods themselves, and templates of workloads."""
    for document in objects:
        manifest = document.value
        if manifest["kind"] == "Pod":
            metadata = metadata_of(manifest)
            pod = snapshot.pods.get(f"{namespace_of(manifest)}/{metadata.get('name')}")
            if pod is not None:
                yield Template(
                    workload_of(pod), _map(metadata, "annotations"), _map(manifest, "spec"), bool(pod.owners)
                )
        elif is_workload(manifest):
            workload = Workload(
                namespace_of(manifest), str(manifest["kind"]), str(metadata_of(manifest).get("name"))
            )
            for pod_set in pod_sets_of(manifest):
                annotations = _map(_map(pod_set.template, "metadata"), "annotations")
                yield Template(workload, annotations, _map(pod_set.template, "spec"), owned=True)


def _map(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}


def proposed_document(manifest: Mapping[str, Any]) -> Document:
    """A manifest of our own as a document of no file."""
    return Document(
        "(proposed)", dict(manifest), yaml.MappingNode("tag:yaml.org,2002:map", [], _START, _START)
    )
