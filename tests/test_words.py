"""Documents and messages use the words of Kubernetes, Karpenter, EC2 and Pulumi, and plain English."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Words of a private dialect, and what to write instead.
BANNED = {
    r"wish(es|ed)?": "preference, or request",
    r"(?<!by )hands": "executes, passes",
    r"told|tell(s|ing)? (of|that|which|the)": "said, shown, reported",
    r"nodes that stand|stands?|stood": "existing nodes; is, exists, remains",
    r"mend(s|ed|ing)?": "fix",
    r"bears?|bore": "has",
    r"plays? no part|passed over|passes over": "ignored, skipped",
    r"a change counts|counts from": "takes effect",
    r"equal ones": "deduplicated",
    r"giv(e|es|en|ing) up|gave up": "relaxed, or failed",
    r"giv(e|es|en|ing) back|gave back": "released",
    r"rooms": "packages",
    r"turns? of the wheel|the house": "control loop, layout",
    r"homeless|restless|stillness": "unschedulable, rate limited, consolidated",
    r"truth values?": "booleans",
    r"lets? go( of)?|letting go": "released, finalizers removed",
    r"holds? nothing back": "informational only",
    r"(has|have) a right to stay": "evictable",
}
DIALECT = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in BANNED), re.IGNORECASE)
#: The changelog keeps the words of its time.
#: Its tables quote names and failures of Karpenter's specs.
SUITES = ROOT / "docs" / "conformance.md"
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"})
MODULES = sorted(
    file
    for folder in ("controller", "components")
    for file in (ROOT / folder).rglob("*.py")
    if "tests" not in file.parts
)


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def found(text: str) -> list[str]:
    return [match.group() for match in DIALECT.finditer(text)]


def messages(module: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module that people may read: those of several words, without the docstrings."""
    tree = ast.parse(module.read_text())
    comments = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in comments:
            continue
        if " " in node.value.strip():
            yield node.lineno, node.value


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_a_page_is_written_in_the_fields_words(page: Path) -> None:
    lines = enumerate(page.read_text().splitlines(), 1)
    own = [(number, line) for number, line in lines if page != SUITES or not line.startswith("|")]
    assert [(number, word) for number, line in own for word in found(line)] == []


def test_messages_are_written_in_the_fields_words() -> None:
    wrong = [
        f"{ids(module)}:{line}: {word}: {text[:80]}"
        for module in MODULES
        for line, text in messages(module)
        for word in found(text)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wishes that it gave up", ["Wishes", "gave up"]),
        ("nodes that stand", ["nodes that stand"]),
        ("by hands; standard, understands, handed, sentence", []),
        ("it lets go of it", ["lets go of"]),
    ],
)
def test_whole_words_are_looked_for(text: str, words: list[str]) -> None:
    assert found(text) == words
