"""The index of messages has an entry for every code that a user can see, and none that is gone."""

import ast
import re
from pathlib import Path

import pytest

from nodeless.cli import message_index
from nodeless.cloudprovider.aws import launch_failures
from nodeless.model.disruption import DisruptionReason, VerdictCode
from nodeless.model.plan import RefusalCode, RelaxationCode
from nodeless.operator.event_reasons import EVENT_RULES
from nodeless.scheduling.pods.buffers import BufferReason

CONTROLLER = Path(__file__).parents[2] / "controller" / "nodeless"
#: Where reasons of conditions are written, or chosen for those who write them.
WRITERS = [
    *(CONTROLLER / "nodeclaim").glob("*.py"),
    *(CONTROLLER / "controllers" / "nodepool").glob("*.py"),
    CONTROLLER / "controllers" / "error_boundary.py",
    CONTROLLER / "controllers" / "executor" / "claim_writes.py",
    CONTROLLER / "controllers" / "nodeclaim" / "launcher.py",
    CONTROLLER / "disruption" / "commands.py",
    *(CONTROLLER / "cloudprovider" / "aws" / f"{name}.py" for name in ("selectors", "resolving")),
    *(CONTROLLER / "cloudprovider" / "aws" / f"{name}.py" for name in ("instance_profiles", "images")),
    CONTROLLER / "cloudprovider" / "aws" / "placement_groups.py",
    CONTROLLER / "launch" / "checking.py",
]
#: Calls that take the reason of a condition as an argument.
MAKERS = {"Condition", "changed_condition", "_false", "NodeClassUnresolved", "Fault", "_with_reason"}
WORD = re.compile(r"[A-Z][A-Za-z]+")
TWO_WORDS = re.compile(r"(?=[A-Z].*[A-Z])(?=.*[a-z])[A-Za-z]+")
#: Types of conditions, which are the reasons of those that hold.
TYPES = {"NodeRegistrationHealthy"}
#: Words of these modules that are no reasons: statuses, members of AWS' documents, effects, names of classes.
OTHER_WORDS = {
    *("True", "False", "Unknown"),
    *("NoSchedule", "NoExecute", "CordonAndDrain", "NoAction", "CheckFailed", "ReadyForProvisioning"),
    *("CreationDate", "DeprecationTime", "ImageId", "IncludeDeprecated", "ParameterNotFound"),
    "PlatformDetails",
    *("GroupId", "GroupName", "GroupIds", "GroupNames", "PartitionCount", "PlacementGroups"),
    *("CloudError", "NodeClaim", "ClaimView", "RegistrationHealth", "NodeShape", "FailedInit"),
    *("ErrorBoundary", "ProcessMustEnd"),
}


def written_reasons() -> dict[str, str]:
    """Words of the code that are, or may be, reasons of conditions, and where each is."""
    found = {}
    for module in WRITERS:
        for node in ast.walk(ast.parse(module.read_text())):
            arguments = []
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS:
                arguments = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
            words = [each for each in arguments if isinstance(each, ast.Constant)]
            found |= {str(each.value): module.name for each in words if WORD.fullmatch(str(each.value))}
            if isinstance(node, ast.Constant) and TWO_WORDS.fullmatch(str(node.value)):
                found[str(node.value)] = module.name
    return found


def test_every_event_has_an_entry():
    assert set(message_index.EVENT_REMEDIES) == {rule.reason for rule in EVENT_RULES}


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        (message_index.REFUSALS, RefusalCode),
        (message_index.RELAXATIONS, RelaxationCode),
        (message_index.VERDICTS, VerdictCode),
        (message_index.DISRUPTION, DisruptionReason),
        (message_index.BUFFERS, BufferReason),
    ],
    ids=["refusals", "relaxations", "verdicts", "disruption", "buffers"],
)
def test_every_code_has_an_entry(table, codes):
    assert set(table) == set(codes)


def test_every_reason_of_a_condition_has_an_entry():
    known = {entry.reason for entry in message_index.CONDITION_REASONS}
    events = {rule.reason for rule in EVENT_RULES}
    written = written_reasons()
    assert {"SubnetsNotFound", "NodeNotFound", "AMIDrift", "RoleNotFound", "Validating"} <= set(written)
    missing = {
        word: file for word, file in written.items() if word not in known | events | TYPES | OTHER_WORDS
    }
    assert missing == {}


def test_every_reason_of_a_refused_launch_has_an_entry():
    assert {entry.code for entry in message_index.entries()} >= launch_failures.REASONS


def test_no_entry_is_for_a_condition_reason_that_is_gone():
    text = "\n".join(module.read_text() for module in CONTROLLER.rglob("*.py") if module.parent.name != "cli")
    # The dry run of a call names its reason after the call.
    gone = [
        entry.reason
        for entry in message_index.CONDITION_REASONS
        if f'"{entry.reason.removesuffix("AuthCheckFailed")}"' not in text
    ]
    assert gone == []


def test_every_entry_says_in_sentences_what_it_means_and_what_to_do():
    for entry in message_index.entries():
        for sentence in (entry.meaning, entry.remedy):
            assert sentence[0].isupper() or sentence.startswith(("`", "nodeless ")), entry
            assert sentence.endswith("."), entry
        assert len(entry.meaning.split()) > 2, entry


def test_every_code_leads_from_the_list_of_events_to_its_entry():
    docs = CONTROLLER.parents[1] / "docs"
    anchors = re.findall(r"messages\.md#(\w+)", (docs / "events.md").read_text())
    headings = {
        line[3:].lower() for line in (docs / "messages.md").read_text().splitlines() if line[:3] == "## "
    }
    assert len(anchors) == len(EVENT_RULES)
    assert set(anchors) <= headings
