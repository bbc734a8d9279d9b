"""The files that a user names: folders, stdin, Lists, the encodings of editors and shells.

What cannot be read is told, all of it, and keeps nothing else from being read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from nodeless.cli.bounded_files import ENDINGS, STDIN, UnreadableFileError, files_below, read_text
from nodeless.cli.manifests.documents import BadManifests, Document, objects_of
from nodeless.cli.manifests.yaml_files import HELM_HINT, is_template, problem_of, read_nodes


@dataclass(slots=True)
class Reading:
    """What was found.

    Attributes:
        documents: The objects in order, the items of Lists one by one.
        problems: One line for each file that cannot be read.
        remarks: One line for each that can, and probably is not what was meant.
    """

    documents: list[Document] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def read_files(names: Sequence[str]) -> Reading:
    """Read files, folders with all that is below them, and stdin (`-`)."""
    reading = Reading()
    for name in names:
        for file in _files_of(name, reading):
            try:
                text = read_text(file)
            except UnreadableFileError as error:
                reading.problems.append(str(error))
            else:
                _read_text(file, text, reading)
    return reading


def _files_of(name: str, reading: Reading) -> Iterator[str]:
    folder = Path(name)
    if name == STDIN or not folder.is_dir():
        yield name
        return
    found = files_below(folder)
    if not found:
        reading.remarks.append(f"{name} holds no file that ends in {', '.join(ENDINGS)}")
    yield from map(str, found)


def _read_text(file: str, text: str, reading: Reading) -> None:
    template = is_template(text)
    try:
        found = list(read_nodes(text))
    except yaml.YAMLError as error:
        reading.problems.append(
            f"{file} is not YAML: {problem_of(error)}" + (f"; {HELM_HINT}" if template else "")
        )
        return
    if not found:
        reading.remarks.append(f"{file} holds no object")
    if template:
        reading.remarks.append(f"{file} holds expressions in {{{{ }}}}; {HELM_HINT}")
    for value, node in found:
        try:
            reading.documents += objects_of(file, value, node)
        except BadManifests as error:
            reading.problems += error.faults
