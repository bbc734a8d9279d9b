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
SUITES = {*(ROOT / "docs").glob("conformance*.md")}
#: Its headings are codes, which stay as they are once they are shown.
CODES = ROOT / "docs" / "messages.md"
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"})
MODULES = sorted(
    file
    for folder in ("controller", "components")
    for file in (ROOT / folder).rglob("*.py")
    if "tests" not in file.parts
)


#: Names of the private dialect for functions, classes, parameters and variables, and what is used instead.
BANNED_NAMES = {
    "Ask": "LaunchClaim",
    "Audience": "PodSelector",
    "Claim": "NodeClaim",
    "Deciding": "DisruptionMethods",
    "Demand": "PodRequirements",
    "Floor": "FirstFitPlan",
    "Foresight": "DriftPreview",
    "GivenUp": "RelaxedPreferences",
    "Ground": "PackingContext",
    "Hands": "InstructionExecutor",
    "Kinds": "PodClass",
    "Leftovers": "Orphans",
    "Lives": "LifecycleMetrics",
    "Look": "DisruptionContext",
    "LookAround": "ContextSource",
    "Looked": "CloudObservations",
    "Making": "CandidateBuilder",
    "Move": "Command",
    "Moves": "Command",
    "OpenedNode": "InFlightNodeClaim",
    "Order": "LaunchRequest",
    "Outlook": "InFlightNode",
    "Placing": "ClassPlacer",
    "Preparer": "LaunchRequestBuilder",
    "Settled": "ScheduledSnapshot",
    "Site": "SchedulingInput",
    "Standing": "ExistingNodeRepack",
    "Supply": "ReservationManager",
    "Surroundings": "ValidationContext",
    "Tally": "TopologyGroup",
    "TroubleLoop": "InstanceStatusController",
    "Unplannable": "UnschedulableReason",
    "Walk": "ConsolidationPath",
    "Way": "ReservationOption",
    "Wish": "NodeRequirements",
    "Worth": "BalancedScore",
    "as_they_run": "with_observed_requests",
    "carried_plan": "anti_affinity_first_plan",
    "carriers": "inverse_anti_affinity",
    "first_generation": "is_v1alpha5",
    "given_up": "relaxed",
    "grudgingly": "include_prefer_no_schedule",
    "handicaps": "weight_penalties",
    "hands": "executor",
    "hear_date": "sync_from_date_header",
    "homeless": "unschedulable_pod",
    "let_go": "remove_finalizers",
    "look_once": "reconcile_once",
    "mates": "pods of the group",
    "moves": "commands",
    "quietness": "last_pod_event_time",
    "restless": "rate_limited_workloads",
    "says_something_new": "is_new_cause",
    "seats": "max_pods",
    "still_right": "validate_command",
    "stillness": "consolidation_state",
    "succession": "replacement_for",
    "surroundings": "validation_context",
    "takers": "target_nodes",
    "tallies": "topology_groups",
    "tally": "topology_group",
    "telling": "command_events",
    "troubles": "impaired_instances",
    "twins_of": "duplicates_of",
    "warns": "has_interruption_queue",
    "wish": "node_requirements",
    "wish_of": "node_requirements_of",
    "wishes": "preferences or alternatives",
    "without_nulls": "drop_nulls",
}
SOURCES = sorted(
    file for folder in ("controller", "components", "localenv") for file in (ROOT / folder).rglob("*.py")
)


def identifiers(module: Path) -> Iterator[tuple[int, str]]:
    """The names that a module defines or uses, without their leading underscores."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name.lstrip("_")
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg.lstrip("_")
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr.lstrip("_")
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id.lstrip("_")


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
    quoted = "|" if page in SUITES else "## " if page == CODES else "\0"
    own = [(number, line) for number, line in lines if not line.startswith(quoted)]
    assert [(number, word) for number, line in own for word in found(line)] == []


def test_messages_are_written_in_the_fields_words() -> None:
    wrong = [
        f"{ids(module)}:{line}: {word}: {text[:80]}"
        for module in MODULES
        for line, text in messages(module)
        for word in found(text)
    ]
    assert wrong == []


def test_identifiers_are_the_fields_words() -> None:
    wrong = [
        f"{ids(module)}:{line}: {name}: {BANNED_NAMES[name]}"
        for module in SOURCES
        for line, name in identifiers(module)
        if name in BANNED_NAMES
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ["Move", "look_once"])
def test_a_banned_identifier_is_found_wherever_it_is_used(tmp_path: Path, name: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"class Plan:\n    def _{name}(self, {name}=0):\n        self.{name} = {name}\n")
    assert [found for _, found in identifiers(module)].count(name) == 4


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
