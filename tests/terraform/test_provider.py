"""The provider that tests plan and apply with is as strict as hashicorp/aws, as far as that can be seen here.

Pulumi's AWS package is made from the schemas of hashicorp/aws 6: what ours calls an attribute has to be one
there, and is required here where it is required there. What the real one refuses by its own code is known
from its source and is tried one by one.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pulumi_aws as aws
import pytest

from localenv.opentofu import Tofu, TofuFailed
from tests.terraform.conftest import Cloud

pytestmark = pytest.mark.cluster

PEERS: dict[str, tuple[Any, str]] = {
    "aws_cloudwatch_event_rule": (aws.cloudwatch, "EventRule"),
    "aws_cloudwatch_event_target": (aws.cloudwatch, "EventTarget"),
    "aws_eks_access_entry": (aws.eks, "AccessEntry"),
    "aws_eks_addon": (aws.eks, "Addon"),
    "aws_eks_fargate_profile": (aws.eks, "FargateProfile"),
    "aws_eks_pod_identity_association": (aws.eks, "PodIdentityAssociation"),
    "aws_iam_instance_profile": (aws.iam, "InstanceProfile"),
    "aws_iam_policy": (aws.iam, "Policy"),
    "aws_iam_role": (aws.iam, "Role"),
    "aws_iam_role_policy_attachment": (aws.iam, "RolePolicyAttachment"),
    "aws_sqs_queue": (aws.sqs, "Queue"),
    "aws_sqs_queue_policy": (aws.sqs, "QueuePolicy"),
}
#: Pulumi's other names: plurals of lists.
PLURALS = {"selector": "selectors"}
#: An attribute that every resource has, and no class of Pulumi's.
OWN = {"id"}
#: Required of the real provider too; the engine would make names of its own.
NAMED_BY_THE_ENGINE = {"fargate_profile_name"}
_DATA: dict[str, Any] = {
    "aws_caller_identity": aws.GetCallerIdentityResult,
    "aws_eks_cluster": aws.eks.GetClusterResult,
    "aws_iam_openid_connect_provider": aws.iam.GetOpenIdConnectProviderResult,
    "aws_partition": aws.GetPartitionResult,
    "aws_region": aws.GetRegionResult,
}
DATA_PLURALS = {
    "certificate_authority": "certificate_authorities",
    "identity": "identities",
    "client_id_list": "client_id_lists",
}


@pytest.fixture(scope="module")
def schemas(module: Tofu) -> dict[str, Any]:
    document = json.loads(module.run("providers", "schema", "-json"))
    found: dict[str, Any] = document["provider_schemas"]["registry.opentofu.org/hashicorp/aws"]
    return found


def test_every_resource_has_its_peer(schemas: dict[str, Any]) -> None:
    assert set(schemas["resource_schemas"]) == set(PEERS)
    assert set(schemas["data_source_schemas"]) == set(_DATA)


@pytest.mark.parametrize("kind", PEERS)
def test_a_resource_has_no_attribute_of_its_own_and_requires_what_the_real_one_does(
    schemas: dict[str, Any], kind: str
) -> None:
    package, name = PEERS[kind]
    parameters = inspect.signature(getattr(package, f"{name}Args").__init__).parameters
    inputs = set(parameters) - {"__self__"}
    needed = {each for each, found in parameters.items() if found.default is inspect.Parameter.empty}
    outputs = {each for each in vars(getattr(package, name)) if not each.startswith("_")}
    block = schemas["resource_schemas"][kind]["block"]
    attributes = block["attributes"]
    nested = block.get("block_types", {})
    ours = {PLURALS.get(each, each) for each in (*attributes, *nested)} - OWN
    assert ours - outputs == set()
    required = {each for each, found in attributes.items() if found.get("required")}
    required |= {PLURALS.get(each, each) for each, found in nested.items() if found.get("min_items")}
    assert required - NAMED_BY_THE_ENGINE == needed - {"__self__"}
    settable = {each for each, found in attributes.items() if found.get("optional") or found.get("required")}
    assert {PLURALS.get(each, each) for each in settable} - OWN - inputs <= {"tags_all"}


@pytest.mark.parametrize("kind", _DATA)
def test_a_data_source_has_no_attribute_of_its_own(schemas: dict[str, Any], kind: str) -> None:
    outputs = {each for each in vars(_DATA[kind]) if not each.startswith("_")}
    ours = schemas["data_source_schemas"][kind]["block"]["attributes"]
    assert {DATA_PLURALS.get(each, each) for each in ours} - outputs == set()


#: Attributes of a resource that the real provider refuses, and what the refusal says.
REFUSED = {
    "both-names": (
        "aws_iam_role",
        'name = "a"\n name_prefix = "b"\n assume_role_policy = "{}"',
        "conflicts with",
    ),
    "long-name": (
        "aws_iam_role",
        f'name = "{"r" * 65}"\n assume_role_policy = "{{}}"',
        "to be in the range (1 - 64)",
    ),
    "long-prefix": (
        "aws_iam_role",
        f'name_prefix = "{"r" * 39}"\n assume_role_policy = "{{}}"',
        "to be in the range (1 - 38)",
    ),
    "name": (
        "aws_iam_role",
        'name = "a b"\n assume_role_policy = "{}"',
        "characters that such a name may not have",
    ),
    "trust": ("aws_iam_role", 'assume_role_policy = "Allow"', "contains an invalid JSON policy"),
    "no-trust": ("aws_iam_role", 'name = "a"', '"assume_role_policy" is required'),
    "session": ("aws_iam_role", 'max_session_duration = 60\n assume_role_policy = "{}"', "(3600 - 43200)"),
    "boundary": (
        "aws_iam_role",
        'permissions_boundary = "x"\n assume_role_policy = "{}"',
        "is an invalid ARN",
    ),
    "unknown": (
        "aws_iam_role",
        'colour = "red"\n assume_role_policy = "{}"',
        'An argument named "colour" is not',
    ),
    "read-only": (
        "aws_iam_role",
        'arn = "x"\n assume_role_policy = "{}"',
        "Value for unconfigurable attribute",
    ),
    "policy": ("aws_iam_policy", 'policy = "[]"', "contains an invalid JSON policy"),
    "attachment": ("aws_iam_role_policy_attachment", 'role = "a"\n policy_arn = "x"', "is an invalid ARN"),
    "two-keys": (
        "aws_sqs_queue",
        'kms_master_key_id = "x"\n sqs_managed_sse_enabled = true',
        "conflicts with",
    ),
    "retention": ("aws_sqs_queue", "message_retention_seconds = 30", "(60 - 1209600)"),
    "queue-policy": ("aws_sqs_queue_policy", 'queue_url = "x"\n policy = "x"', "contains an invalid JSON"),
    "no-pattern": (
        "aws_cloudwatch_event_rule",
        'name = "a"',
        "one of `event_pattern,schedule_expression` must be",
    ),
    "pattern": ("aws_cloudwatch_event_rule", 'event_pattern = "x"', "contains an invalid JSON"),
    "rule-name": (
        "aws_cloudwatch_event_rule",
        'name = "a b"\n event_pattern = "{}"',
        "characters that such a name",
    ),
    "target": ("aws_cloudwatch_event_target", 'rule = "a"\n arn = "queue"', "is an invalid ARN"),
    "entry-type": (
        "aws_eks_access_entry",
        'cluster_name = "a"\n principal_arn = "arn:aws:iam::123456789012:role/a"\n type = "LINUX"',
        "expected type to be one of",
    ),
    "cluster": (
        "aws_eks_access_entry",
        'cluster_name = "-a"\n principal_arn = "arn:aws:iam::123456789012:role/a"',
        "is no name of a cluster",
    ),
    "association": (
        "aws_eks_pod_identity_association",
        'cluster_name = "a"\n namespace = "a"\n role_arn = "arn:aws:iam::123456789012:role/a"',
        '"service_account" is required',
    ),
    "profile": (
        "aws_eks_fargate_profile",
        'cluster_name = "a"\n fargate_profile_name = "a"\n pod_execution_role_arn = "x"',
        'At least 1 "selector" blocks are required',
    ),
}


@pytest.fixture(scope="module")
def scratch(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Tofu:
    """OpenTofu in a module that tests write."""
    folder = tmp_path_factory.mktemp("scratch")
    needs = 'required_providers {\n aws = {\n source = "hashicorp/aws"\n }\n }'
    (folder / "versions.tf").write_text(f"terraform {{\n {needs}\n}}\n")
    return Tofu(folder, tmp_path_factory.mktemp("scratch-tofu") / "tofu", cloud.aws.environment())


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_real_one_refuses_is_refused(scratch: Tofu, case: str) -> None:
    kind, body, message = REFUSED[case]
    (scratch.folder / "main.tf").write_text(f'resource "{kind}" "it" {{\n {body}\n}}\n')
    with pytest.raises(TofuFailed) as refused:
        scratch.run("validate")
    assert message in re.sub(r"\s+", " ", str(refused.value).replace("│", " "))


def test_a_name_that_sqs_does_not_take_is_refused_by_the_plan(scratch: Tofu) -> None:
    (scratch.folder / "main.tf").write_text('resource "aws_sqs_queue" "it" {\n name = "a b"\n}\n')
    with pytest.raises(TofuFailed, match="invalid queue name"):
        scratch.plan({})


def test_it_serves_no_aws_but_the_local_one(cloud: Cloud, scratch: Tofu, tmp_path: Path) -> None:
    environment = cloud.aws.environment()
    del environment["AWS_ENDPOINT_URL"]
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "versions.tf").write_text((scratch.folder / "versions.tf").read_text())
    (tmp_path / "root" / "main.tf").write_text('data "aws_partition" "it" {}\n')
    away = Tofu(tmp_path / "root", tmp_path / "tofu", environment)
    with pytest.raises(TofuFailed, match=r"serves\s+the\s+local\s+AWS\s+alone|AWS_ENDPOINT_URL is not set"):
        away.plan({})
