"""The files that a user names: folders, stdin, Lists, the encodings of editors and shells.

What cannot be read is told, all of it, and keeps nothing else from being read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nodeless.cli.bounded_files import ENDINGS, STDIN, UnreadableFileError, files_below, read_text
from nodeless.cli.manifests.documents import Document, Problem, readable_documents
from nodeless.cli.manifests.kustomize import build, is_kustomization, kustomizations_below
from nodeless.cli.manifests.yaml_files import HELM_HINT, is_template

_CHART = "Chart.yaml"


@dataclass(slots=True)
class Reading:
    """What was found.

    Attributes:
        documents: The objects in order, the items of Lists one by one.
        files: The names of the files, in order.
        problems: One line for each file that cannot be read.
        broken: The parts of files that can, and are no manifests.
        remarks: One line for each that can, and probably is not what was meant.
    """

    documents: list[Document] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    broken: list[Problem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def read_files(names: Sequence[str]) -> Reading:
    """Read files, folders with all that is below them, folders of Kustomize as built, and stdin (`-`)."""
    reading = Reading()
    for name in names:
        files, remarks = listed_files(name)
        reading.files += files
        for file in files:
            try:
                text = text_of_listed(file)
            except UnreadableFileError as error:
                reading.problems.append(str(error))
            else:
                _read_text(file, text, reading)
        reading.remarks += remarks
    return reading


def listed_files(name: str) -> tuple[list[str], list[str]]:
    """What is read for a name: itself, or the files below it in the order of their paths; and remarks on it.

    It is probably not meant that a folder holds nothing, or that one of Kustomize or Helm is read as files.
    """
    folder = Path(name)
    if name == STDIN or not folder.is_dir() or is_kustomization(folder) or is_chart(folder):
        return [name], []
    found = files_below(folder)
    remarks = [] if found else [f"{name} contains no file that ends in {', '.join(ENDINGS)}"]
    remarks += [
        f"{below} is a Kustomize folder, but its files are read as they are; hint: give that folder"
        for below in kustomizations_below(folder)
    ]
    charts = [file.parent for file in found if file.name == _CHART]
    remarks += [
        f"{chart} is a Helm chart, and its templates are not manifests; hint: helm template {chart}"
        for chart in charts
    ]
    return list(map(str, found)), remarks


def is_chart(folder: Path) -> bool:
    """Whether a folder is a Helm chart."""
    return (folder / _CHART).is_file()


def text_of_listed(name: str) -> str:
    """The text of a file, of stdin, or of what a folder of Kustomize makes.

    Raises UnreadableFileError, for a Helm chart too.
    """
    if name != STDIN and Path(name).is_dir() and is_kustomization(Path(name)):
        return build(Path(name))
    if name != STDIN and is_chart(Path(name)):
        raise UnreadableFileError(
            f"{name} is a Helm chart, and its templates are not manifests; "
            f"hint: helm template {name} | nodeless plan -"
        )
    return read_text(name)


def _read_text(file: str, text: str, reading: Reading) -> None:
    documents, problems = readable_documents(file, text)
    reading.documents += documents
    reading.broken += problems
    if not documents and not problems:
        reading.remarks.append(f"{file} contains no object")
    if is_template(text) and not problems:
        reading.remarks.append(f"{file} contains expressions in {{{{ }}}}; {HELM_HINT}")
