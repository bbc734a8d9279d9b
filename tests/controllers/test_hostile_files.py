"""Files that would hang or end a reader: every command that reads files says in one line what is wrong."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some
from typer.testing import CliRunner

from nodeless.api.bounds import DocumentBounds
from nodeless.api.yaml_bounds import check_yaml
from nodeless.cli import bounded_files
from nodeless.cli.main import app
from nodeless.launch.al2023 import YamlError, user_data
from nodeless.launch.kubelet_arguments import Bootstrap, Cluster

#: The words before the file's name.
OF_MANIFESTS = (["validate"], ["convert"], ["plan"], ["windows"], ["why", "shop/web"])
OF_JSON = (
    ["replay"],
    ["plan", "--snapshot"],
    ["why", "shop/web", "--snapshot"],
    ["solve", "--problem"],
    ["plan", "--catalog"],
)
DEPTH = 100_000


def multiplied(link: str) -> str:
    """Lists, or objects that take in others, each nine times the one before."""
    lines = ["a0: &a0 {x: y}"]
    for number in range(1, 12):
        before = ", ".join([f"*a{number - 1}"] * 9)
        lines.append(f"a{number}: &a{number} " + link.format(before))
    return "\n".join(lines)


BOMBS = {
    "json-objects": '{"a":' * DEPTH + "1" + "}" * DEPTH,
    "json-lists": "[" * DEPTH + "]" * DEPTH,
    "json-without-end": '{"kind":"Pod","spec":' + "[" * DEPTH,
    "yaml-lists": "- " * DEPTH + "a",
    "yaml-keys": "? " * DEPTH + "a",
    "aliases": multiplied("[{}]"),
    "merge-keys": multiplied("{{<<: [{}]}}"),
    "long-texts": "\n".join(
        [f"a: &a {'x' * 100_000}", f"b: &b [{', '.join(['*a'] * 1000)}]", f"c: [{', '.join(['*b'] * 100)}]"]
    ),
    "itself": "&a [*a]",
    "itself-merged": "&a {b: 1, <<: *a}",
    "in-a-list": f"kind: List\napiVersion: v1\nitems:\n- {'[' * DEPTH}{']' * DEPTH}\n",
}


def said_by(words: list[str], file: Path | str) -> str:
    result = CliRunner().invoke(app, [*words, str(file)])
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return str(result.output)


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("words", OF_MANIFESTS, ids=lambda words: words[0])
def test_a_manifest_that_would_hang_or_end_its_reader_is_one_line(
    tmp_path: Path, words: list[str], bomb: str
) -> None:
    file = tmp_path / "given.yaml"
    file.write_text(BOMBS[bomb])

    said = said_by(words, file)

    assert re.search(r"levels deep|an alias refers to|aliases make more than|not YAML|not JSON", said)
    assert str(file) in said
    assert max(map(len, said.splitlines())) < 400


@pytest.mark.parametrize("bomb", [name for name in BOMBS if name.startswith("json")])
@pytest.mark.parametrize("words", OF_JSON, ids=" ".join)
def test_a_document_that_would_end_its_reader_is_one_line(
    tmp_path: Path, words: list[str], bomb: str
) -> None:
    file = tmp_path / "given.json"
    file.write_text(BOMBS[bomb])

    said = said_by(words, file)

    assert str(file) in said
    assert "hint: " in said


@pytest.mark.parametrize("words", [*OF_MANIFESTS, *OF_JSON], ids=" ".join)
@pytest.mark.parametrize("kind", ["plain", "gzip", "device"])
def test_what_has_no_end_is_not_read_to_it(
    tmp_path: Path, words: list[str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_files, "MOST_BYTES", 64 * 1024)
    file = tmp_path / "given.json"
    large = b" " * 100_000
    file.write_bytes(gzip.compress(large) if kind == "gzip" else large)

    said = said_by(words, "/dev/zero" if kind == "device" else file)

    assert "cannot be read: it is larger than" in said


@pytest.mark.parametrize("words", [*OF_MANIFESTS, *OF_JSON], ids=" ".join)
def test_what_is_no_file_is_one_line(tmp_path: Path, words: list[str]) -> None:
    torn = tmp_path / "torn.json"
    torn.write_bytes(gzip.compress(json.dumps({"a": "b" * 5000}).encode())[:-12])

    for file in (torn, tmp_path / "absent.json"):
        assert f"{file} cannot be read: " in said_by(words, file)


YAML = some.recursive(
    some.none() | some.booleans() | some.integers(-5, 5) | some.sampled_from(["a", "x" * 250]),
    lambda inner: (
        some.lists(inner, max_size=4) | some.dictionaries(some.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=20,
)


def counted(value: object) -> tuple[int, int]:
    """Values and depth of what is built, shared parts counted each time, 100 characters as one more."""
    if isinstance(value, str):
        return 1 + len(value) // 100, 0
    inner: list[object] = []
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list):
        inner = value
    else:
        return 1, 0
    found = [counted(each) for each in inner]
    return 1 + sum(size for size, _ in found), 1 + max((depth for _, depth in found), default=0)


@settings(deadline=None)
@given(YAML, some.integers(1, 5))
def test_aliases_are_counted_as_what_they_stand_for(value: object, times: int) -> None:
    """The same object several times in a list is written once, and then as aliases."""
    document = [value] * times
    text = yaml.safe_dump(document)
    size, depth = counted(document)

    check_yaml(text, DocumentBounds(size + 1, depth))
    if "*id" in text:
        with pytest.raises(yaml.YAMLError, match="aliases make more than"):
            check_yaml(text, DocumentBounds(size, depth))
    with pytest.raises(yaml.YAMLError, match="levels deep"):
        check_yaml(text, DocumentBounds(size + 1, depth - 1))


NODE_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n"
ARCHIVE = (
    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
    "--b\nContent-Type: application/node.eks.aws"
)


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize(
    "frame", ["{}", NODE_CONFIG.replace("{}", "{{}}") + "{}", ARCHIVE + "\n\n{}\n--b--\n"]
)
def test_user_data_that_would_hang_or_end_the_controller_is_refused_or_a_script(
    bomb: str, frame: str
) -> None:
    custom = frame.format(BOMBS[bomb])
    try:
        assert user_data(Bootstrap(Cluster("demo", "https://demo.example"), {}, (), custom=custom))
    except YamlError as error:
        assert "hint: " in str(error)
