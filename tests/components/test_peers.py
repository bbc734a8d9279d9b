"""Bugs that users of comparable packages met, each with the test that would have caught it here.

The rows are PB-01 to PB-18 of docs/acceptance/aws.md. A row's identifier is in the test's name; rows
whose tests are elsewhere are in `ELSEWHERE`.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pulumi._types import input_type_py_to_pulumi_names

from localenv.pulumi.input_check import arguments_class
from nodeless.cloudprovider.aws.interruption_messages import read_message
from nodeless.model.interruptions import InterruptionKind
from nodeless.operator.config_sources import ConfigSources
from nodeless.operator.process_settings import PROCESS_SETTINGS
from nodeless.operator.settings import SETTINGS, GlobalSettings, unknown_keys
from pulumi_nodeless import Environment
from pulumi_nodeless.interruption import RULES
from pulumi_nodeless.permissions import permissions_page
from pulumi_nodeless.schema import package_schema
from tests.components.conftest import CONFIG, ROOT, program
from tests.components.recorder import Recorder, run

GOLDEN = ROOT / "tests" / "components" / "urns.txt"

#: Row to the tests that show it, by file.
ELSEWHERE = {
    1: ("components/test_environment.py", ["test_exactly_one_security_group_can_be_discovered"]),
    4: (
        "components/test_environment.py",
        ["test_warnings_about_instances_reach_the_controller_through_one_queue"],
    ),
    5: (
        "cloudprovider/test_permissions.py",
        [
            "test_both_policies_grant_every_call_and_grant_nothing_that_is_never_called",
            "test_instances_of_others_may_be_neither_ended_nor_rebooted",
            "test_only_the_nodes_role_may_be_passed_and_only_to_ec2",
        ],
    ),
    6: ("components/test_environment.py", ["test_the_controllers_role_trusts_its_service_account_alone"]),
    7: (
        "components/test_pod_identity.py",
        ["test_pod_identity_for_a_controller_on_fargate_is_one_error_that_names_the_argument"],
    ),
    8: (
        "components/test_environment.py",
        [
            "test_fargate_takes_controller_and_dns_but_no_workloads",
            "test_nodes_and_fargate_live_in_private_subnets_only",
        ],
    ),
    9: ("components/test_environment.py", ["test_no_resource_uses_a_default_provider"]),
    10: (
        "components/test_environment.py",
        [
            "test_the_guard_outlives_nothing_that_the_controller_needs",
            "test_pools_go_before_all_that_the_controller_needs",
        ],
    ),
    11: ("components/test_environment.py", ["test_growing_by_a_zone_only_adds"]),
    12: ("components/test_environment.py", ["test_a_first_preview_passes_with_nothing_known"]),
    13: (
        "localenv/pulumi/test_crd_upgrade.py",
        [
            "test_an_upgrade_of_the_definitions_changes_them_in_place_and_keeps_every_object",
            "test_no_field_of_an_earlier_definition_is_gone_or_takes_less",
        ],
    ),
    14: (
        "localenv/pulumi/test_other_languages.py",
        ["test_a_network_from_another_language_without_its_host_is_made_once_and_destroyed_whole"],
    ),
    15: (
        "components/test_project_files.py",
        [
            "test_every_key_read_is_declared_and_every_declared_key_is_read",
            "test_stack_files_set_declared_keys_to_values_of_their_type",
        ],
    ),
    16: ("components/test_helpers.py", ["test_a_real_client_takes_its_token_from_the_kubeconfig"]),
    17: (
        "localenv/pulumi/test_infra_program.py",
        ["test_the_environment_resumes_at_every_resource_changes_no_more_than_asked_and_leaves_nothing"],
    ),
    18: (
        "environment/test_stack.py",
        ["test_destroy_leaves_nothing_though_a_pools_pods_run_and_up_brings_it_all_back"],
    ),
}


@pytest.mark.parametrize("row", sorted(ELSEWHERE))
def test_each_row_has_its_test(row: int) -> None:
    file, tests = ELSEWHERE[row]
    functions = re.findall(r"^(?:async )?def (\w+)", (ROOT / "tests" / file).read_text(), re.MULTILINE)
    assert {*tests} <= {*functions}


def test_every_row_is_shown_here_or_elsewhere() -> None:
    here = {int(row) for row in re.findall(r"^def test_pb_(\d+)_", Path(__file__).read_text(), re.MULTILINE)}
    assert here | {*ELSEWHERE} == {*range(1, 19)}


def rules_that_match(event: dict[str, Any]) -> list[str]:
    """Names of the rules whose pattern an event meets, as EventBridge compares lists of values."""
    return [
        name
        for name, pattern in RULES.items()
        if all(event.get(key) in values for key, values in pattern.items())
    ]


@pytest.mark.parametrize(
    ("rule", "source", "detail_type", "detail"),
    [
        ("spot-interruption", "aws.ec2", "EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}),
        ("rebalance", "aws.ec2", "EC2 Instance Rebalance Recommendation", {"instance-id": "i-1"}),
        (
            "state-change",
            "aws.ec2",
            "EC2 Instance State-change Notification",
            {"instance-id": "i-1", "state": "stopping"},
        ),
        (
            "reservation",
            "aws.ec2",
            "EC2 Capacity Reservation Instance Interruption Warning",
            {"instance-id": "i-1"},
        ),
        (
            "scheduled-change",
            "aws.health",
            "AWS Health Event",
            {
                "service": "EC2",
                "eventTypeCategory": "scheduledChange",
                "affectedEntities": [{"entityValue": "i-1"}],
            },
        ),
    ],
)
def test_pb_02_each_warning_that_the_controller_reads_is_matched_by_its_rule_alone(
    rule: str, source: str, detail_type: str, detail: dict[str, Any]
) -> None:
    event = {"source": source, "detail-type": detail_type, "detail": detail, "time": "2026-03-01T12:00:00Z"}
    assert rules_that_match(event) == [rule]
    assert read_message(json.dumps({"version": "0", **event})).kind is not InterruptionKind.NONE


@pytest.mark.parametrize(
    ("source", "detail_type"),
    [
        ("aws.ec2", "EBS Volume Notification"),
        ("aws.ec2", "C2 Instance State-change Notification"),
        ("aws.autoscaling", "EC2 Instance Rebalance Recommendation"),
    ],
)
def test_pb_02_no_rule_matches_anything_else(source: str, detail_type: str) -> None:
    assert rules_that_match({"source": source, "detail-type": detail_type}) == []


def test_pb_03_the_controller_reads_every_setting_that_the_stack_writes(environment: Recorder) -> None:
    data = environment.one("kubernetes:core/v1:ConfigMap", "karpenter-global-settings").inputs["data"]
    settings = GlobalSettings.from_config_map(data, ConfigSources({}, {}))
    assert settings.cluster_name == data["aws.clusterName"]
    assert settings.interruption_queue_name == data["aws.interruptionQueueName"] == "demo"
    assert unknown_keys(data) == ()


def test_pb_03_the_controller_reads_every_variable_that_its_pods_get(environment: Recorder) -> None:
    pod = environment.one("kubernetes:apps/v1:Deployment").inputs["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    read = {process_setting.variable for process_setting in (*PROCESS_SETTINGS.values(), *SETTINGS.values())}
    assert {each["name"] for each in container["env"]} <= read
    assert not [arg for arg in container["args"] if arg.startswith("-")], "flags need a row of their own"


def test_pb_01_tags_of_everything_make_nothing_discoverable() -> None:
    recorder = run(program, config={**CONFIG, "nodeless:tags": json.dumps({"team": "web"})})
    tagged = [
        each for each in recorder.custom() if "karpenter.sh/discovery" in (each.inputs.get("tags") or {})
    ]
    assert {each.token for each in tagged} == {"aws:ec2/subnet:Subnet"}
    (tag,) = recorder.of("aws:ec2/tag:Tag")
    assert tag.inputs["resourceId"] == "sg-cluster"


def test_pb_05_the_documented_statements_are_those_of_the_policies() -> None:
    assert (ROOT / "docs" / "components" / "permissions.md").read_text() == permissions_page()


def test_pb_14_the_schema_is_the_committed_one() -> None:
    committed = json.loads((ROOT / "components" / "schema.json").read_text())
    assert package_schema() == committed, "run `python -m pulumi_nodeless generate`"


def test_pb_11_no_resource_is_renamed_without_an_alias(environment: Recorder) -> None:
    """A URN that is gone from the list would be replaced in users' stacks: give its successor an alias."""
    made = {
        urn.partition("::nodeless::")[2].replace("pulumi:pulumi:Stack$", "") for urn in environment.resources
    }
    golden = {line for line in GOLDEN.read_text().splitlines() if line and not line.startswith("#")}
    assert golden - made == set(), "renamed or gone: add an alias, then take the line out of urns.txt"
    assert made - golden == set(), "new: add the line to urns.txt"


def test_the_guide_says_of_every_input_of_pulumi_eks_where_it_is_here() -> None:
    page = (ROOT / "docs" / "guides" / "from-other-packages.md").read_text()
    reported = {*re.findall(r"`(\w+)`", page)}
    inputs = input_type_py_to_pulumi_names(arguments_class("eks:index:Cluster")).values()
    assert sorted({*inputs} - reported) == []


def test_the_guide_speaks_of_outputs_that_the_environment_has() -> None:
    page = (ROOT / "docs" / "guides" / "from-other-packages.md").read_text()
    (sentence,) = re.findall(r"The outputs name what was made: (.*?) and \[", page, re.DOTALL)
    reported = re.findall(r"`(\w+)`", sentence)
    assert len(reported) > 3
    assert {*reported} <= {*Environment.__annotations__}
