"""Each identifier of a row that a test names is explained in docs/acceptance, and each row is tested."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance import test_register as admission
from tests.cloudprovider import test_register as aws

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "acceptance").glob("*.md"))
ROW = re.compile(r'^\| <a id="([^"]*)"></a>(.+?) \| (.+) \| (.+) \|$', re.MULTILINE)
#: Files whose strings list rows without being their tests.
LISTS = {
    "tests/test_acceptance_rows.py",
    "tests/acceptance/test_register.py",
    "tests/cloudprovider/test_register.py",
}
FAMILIES = "rq|pe|sc|rx|tp|af|vo|ds|li|if|st|nd|mc|ex|dr|em|co|dn|tm|wk|pb"
_PAIR = re.compile(rf"(?<=_)({FAMILIES})_(\d\d)(?=_)")
_AWS = re.compile(r"^test_aws_(\d+(?:_\d+)?)_(?!\d)")
_NUMBERS = re.compile(r"^test_((?:\d+_)+)")
_CONVERSION = re.compile(r"^test_((?:c_\d+_)+)")
_LETTERS = re.compile(rf"(?<![\w-])((?:{FAMILIES.upper()})-\d\d|[PNA]-\d+[abc]?|AWS-\d+(?:\.\d+)?)(?![\d.])")
_FUNCTION = re.compile(rf"def test_(?:(?:\w+_)?(?:{FAMILIES})_\d\d_|aws_\d|c_\d|\d)")
#: Numbers at the beginning of a case's name; elsewhere they may be figures.
_NUMBER = re.compile(r"^(\d\.\d)(?:(-\d)(?!\d)|[ -])")
NUMBERED = ("tests/api/", "tests/webhook/", "tests/acceptance/")


class Row(NamedTuple):
    """A line of a table in docs/acceptance."""

    page: Path
    anchor: str
    identifier: str
    promise: str
    files: tuple[str, ...]


@cache
def rows() -> tuple[Row, ...]:
    return tuple(
        Row(page, anchor, identifier, promise, tuple(re.findall(r"\]\(\.\./\.\./([^)]+)\)", files)))
        for page in PAGES
        for anchor, identifier, promise, files in ROW.findall(page.read_text())
    )


def of_name(function: str) -> set[str]:
    """The identifiers in the name of a test."""
    if found := _AWS.match(function):
        return {f"AWS-{found[1].replace('_', '.')}"}
    if found := _CONVERSION.match(function):
        return {f"C-{number}" for number in re.findall(r"\d+", found[1])}
    if found := _NUMBERS.match(function):
        numbers = found[1].strip("_").split("_")
        if len(numbers) % 2:
            return {f"{numbers[0]}.{numbers[1]}-{numbers[2]}"} if len(numbers) > 1 else set()
        return {".".join(pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)}
    return {f"{family.upper()}-{number}" for family, number in _PAIR.findall(function)}


def of_case(text: str, *, numbered: bool) -> set[str]:
    """The identifiers in a string, such as the name of a case; numbers count at its beginning alone."""
    found = set(_LETTERS.findall(text))
    if numbered and (number := _NUMBER.match(text)):
        found.add(number[1] + (number[2] or "") if number[1] == "8.1" else number[1])
    return found


def of_strings(text: str, file: str) -> bool:
    """Whether the text of a file may have a string that names a row."""
    return bool(_LETTERS.search(text) or (file.startswith(NUMBERED) and re.search(r"[\"']\d\.\d", text)))


def identifiers(file: str, tree: ast.Module) -> Iterator[str]:
    """What the tests of a file and the names of their cases say."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield from of_name(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from of_case(node.value, numbered=file.startswith(NUMBERED))


@cache
def texts() -> dict[str, str]:
    """The text of each of the tests' modules, by path."""
    return {str(file.relative_to(ROOT)): file.read_text() for file in sorted(ROOT.glob("tests/**/*.py"))}


@cache
def named() -> dict[str, set[str]]:
    """The files in which each identifier is named."""
    found: dict[str, set[str]] = {}
    for file, text in texts().items():
        # Most files name none: these are not parsed.
        if file not in LISTS and (_FUNCTION.search(text) or of_strings(text, file)):
            for identifier in identifiers(file, ast.parse(text)):
                found.setdefault(identifier, set()).add(file)
    return found


@cache
def functions() -> dict[str, set[str]]:
    """The files of each function, by its name."""
    found: dict[str, set[str]] = {}
    for file, text in texts().items():
        for name in re.findall(r"^ *(?:async )?def (\w+)", text, re.MULTILINE):
            found.setdefault(name, set()).add(file)
    return found


def peers() -> dict[int, tuple[str, list[str]]]:
    """The register of tests/components/test_peers.py, read without what that imports."""
    (assigned,) = [
        node.value
        for node in ast.parse(texts()["tests/components/test_peers.py"]).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ELSEWHERE"
    ]
    register: dict[int, tuple[str, list[str]]] = ast.literal_eval(assigned)
    return register


def registered() -> Iterator[tuple[str, str]]:
    """Rows of the registers, each with the name of its test, which need not say the row."""
    for row, test in admission.ROWS.items():
        yield row, test.partition("[")[0]
    for row, test in aws.ROWS.items():
        yield row.partition(" ")[0], test.partition("[")[0]
    for number, (_, tests) in peers().items():
        for test in tests:
            yield f"PB-{number:02}", test


@cache
def files_of_rows() -> dict[str, set[str]]:
    """The files in which each row is tested, by name or by register."""
    found = {identifier: set(files) for identifier, files in named().items()}
    for row, test in registered():
        files = {file for name, where in functions().items() if name.endswith(test) for file in where}
        found.setdefault(row, set()).update(files)
    return found


def test_identifiers_are_unique() -> None:
    assert rows()
    for values in ([row.identifier for row in rows()], [(row.page, row.anchor) for row in rows()]):
        assert [value for value, times in Counter(values).items() if times > 1] == []


def test_a_rows_anchor_is_its_identifier() -> None:
    assert [
        row for row in rows() if row.anchor != re.sub(r"[^a-z0-9]+", "-", row.identifier.lower()).strip("-")
    ] == []


def test_every_identifier_that_a_test_names_is_explained() -> None:
    explained = {row.identifier for row in rows()}
    explained |= {identifier.partition(" ")[0] for identifier in explained}
    unknown = {
        identifier: sorted(files)
        for identifier, files in files_of_rows().items()
        if identifier not in explained
    }
    assert unknown == {}, "write them into docs/acceptance"


def test_every_row_is_tested_in_exactly_the_files_that_it_lists() -> None:
    wrong = {
        row.identifier: (row.files, expected)
        for row in rows()
        if not row.files or row.files != (expected := tuple(sorted(files_of_rows().get(row.identifier, ()))))
    }
    assert wrong == {}, "listed in docs/acceptance, and where tests name them"


def test_a_row_that_differs_says_why() -> None:
    differing = [row for row in rows() if "*Differs:*" in row.promise]
    assert differing
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "compatibility.md").read_text(), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    for row in differing:
        assert {*re.findall(r"\(\.\./compatibility\.md#([^)]*)\)", row.promise)} & anchors, row.identifier


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_sc_07_the_larger_counts", {"SC-07"}),
        ("test_mc_04_nd_02_nd_03_a_node_waits", {"MC-04", "ND-02", "ND-03"}),
        ("test_c_3_c_5_disruption", {"C-3", "C-5"}),
        ("test_aws_16_10_an_instance", {"AWS-16.10"}),
        ("test_aws_13_each_call", {"AWS-13"}),
        ("test_8_1_5_one_list", {"8.1-5"}),
        ("test_8_1_text", {"8.1"}),
        ("test_8_3_8_4_values", {"8.3", "8.4"}),
        ("test_a_kind_that_is_not_served", set()),
    ],
)
def test_names_of_tests_are_read(name: str, expected: set[str]) -> None:
    assert of_name(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P-26 P-27 grace only", {"P-26", "P-27"}),
        ("RQ-03-In", {"RQ-03"}),
        ("AWS-2.1-x86", {"AWS-2.1"}),
        ("8.1-4 inline provider", {"8.1-4"}),
        ("3.7 tag keys", {"3.7"}),
        ("2.3-example.com/x", {"2.3"}),
        ("8.0 at 1.5 USD", {"8.0"}),
        ("OF-64", set()),
    ],
)
def test_names_of_cases_are_read(text: str, expected: set[str]) -> None:
    assert of_case(text, numbered=True) == expected
