"""What the module makes of its variables, and what it refuses: planned by the real OpenTofu."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from localenv.opentofu import Tofu, TofuFailed
from pulumi_nodeless import names
from pulumi_nodeless.arguments import MARKING_TAGS
from pulumi_nodeless.policies import Subject
from pulumi_nodeless.policy_parts import part_of, parts
from pulumi_nodeless.scoped_policy import scoped_controller_policy
from tests.terraform.conftest import MODULE, Cloud, actions, planned

pytestmark = pytest.mark.cluster

CLUSTER = {"cluster_name": "demo"}
ISSUER_ARN = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/EXAMPLE"
IRSA = {"enable_pod_identity": False, "enable_irsa": True, "irsa_oidc_provider_arn": ISSUER_ARN}
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
GIVEN_ROLE = "arn:aws:iam::123456789012:role/team/nodes"
ROLE, NODE_ROLE, POLICY = "aws_iam_role.controller[0]", "aws_iam_role.node[0]", "aws_iam_policy.controller[0]"
QUEUE, ENTRY = "aws_sqs_queue.this[0]", "aws_eks_access_entry.node[0]"
ASSOCIATION, PROFILE = "aws_eks_pod_identity_association.karpenter[0]", "aws_iam_instance_profile.this[0]"


def test_it_is_formatted(module: Tofu) -> None:
    assert module.run("fmt", "-check", "-recursive", MODULE) == ""


def test_module_and_example_are_valid(module: Tofu, example: Tofu) -> None:
    for root in (module, example):
        answer = json.loads(root.run("validate", "-json"))
        assert answer["diagnostics"] == []


#: Variables, addresses that there are, beginnings of addresses that there are not.
VARIANTS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "as-it-comes": (
        {},
        [ROLE, POLICY, NODE_ROLE, QUEUE, "aws_sqs_queue_policy.this[0]", ENTRY, ASSOCIATION],
        ["aws_iam_instance_profile", "aws_iam_policy.controller[1]"],
    ),
    "irsa": (IRSA, [ROLE, POLICY, QUEUE], ["aws_eks_pod_identity_association"]),
    "both-mechanisms": ({**IRSA, "enable_pod_identity": True}, [ROLE, ASSOCIATION], []),
    "association-elsewhere": ({"create_pod_identity_association": False}, [ROLE], [ASSOCIATION]),
    "no-queue": (
        {"enable_spot_termination": False},
        [ROLE, POLICY],
        ["aws_sqs", "aws_cloudwatch_event"],
    ),
    "no-controller-role": (
        {"create_iam_role": False},
        [NODE_ROLE, QUEUE, ENTRY],
        ["aws_iam_role.controller", "aws_iam_policy", "aws_eks_pod_identity_association"],
    ),
    "no-access-entry": ({"create_access_entry": False}, [NODE_ROLE], ["aws_eks_access_entry"]),
    "instance-profile": ({"create_instance_profile": True}, [PROFILE], []),
    "nothing": ({"create": False, "cluster_name": ""}, [], ["aws_"]),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_made(module: Tofu, variant: str) -> None:
    variables, there, missing = VARIANTS[variant]
    found = planned(module.plan({**CLUSTER, **variables}))
    assert set(there) <= set(found)
    assert [address for address in found for start in missing if address.startswith(start)] == []


def test_names_are_those_of_the_component(module: Tofu) -> None:
    found = planned(module.plan({**CLUSTER, "create_instance_profile": True}))
    assert found[ROLE]["name"] == names.controller_role("demo")
    assert found[POLICY]["name"] == names.controller_policy("demo")
    assert found[NODE_ROLE]["name"] == names.node_role("demo")
    assert found[PROFILE]["name"] == names.instance_profile("demo")
    assert found[QUEUE]["name"] == names.interruption_queue("demo")


def test_long_names_are_shortened_as_the_component_shortens_them(module: Tofu) -> None:
    cluster = "c" * names.CLUSTER_NAME_LIMIT
    found = planned(module.plan({"cluster_name": cluster, "create_instance_profile": True}))
    assert found[ROLE]["name"] == names.controller_role(cluster)
    assert found[POLICY]["name"] == names.controller_policy(cluster)
    assert found["aws_iam_policy.controller[1]"]["name"] == names.controller_policy(cluster, 2)
    assert found[NODE_ROLE]["name"] == names.node_role(cluster)
    assert found[PROFILE]["name"] == names.instance_profile(cluster)
    assert found[QUEUE]["name"] == names.interruption_queue(cluster)


@pytest.mark.parametrize("length", [39, 40, 60, 61, 79, 80, names.CLUSTER_NAME_LIMIT])
def test_statements_divide_into_policies_as_the_component_divides_them(
    module: Tofu, cloud: Cloud, length: int
) -> None:
    cluster = "c" * length
    variables = {"cluster_name": cluster, "create_node_iam_role": False, "node_iam_role_arn": GIVEN_ROLE}
    found = planned(module.plan({**variables, "enable_spot_termination": False}))
    policies = [
        json.loads(found[address]["policy"])
        for address in sorted(found)
        if address.startswith("aws_iam_policy.controller")
    ]
    whole = scoped_controller_policy(
        Subject(
            partition="aws",
            region="us-east-1",
            account=cloud.account,
            dns_suffix="amazonaws.com",
            cluster=cluster,
            node_role_arn=GIVEN_ROLE,
        )
    )
    assert policies == [part_of(whole, sids) for sids in parts(scoped_controller_policy, cluster)]


def test_names_that_are_given_are_used(module: Tofu) -> None:
    given = {
        "iam_role_name": "controller",
        "iam_policy_name": "rights",
        "node_iam_role_name": "nodes",
        "queue_name": "warnings",
        "rule_name_prefix": "Team",
        "create_instance_profile": True,
    }
    found = planned(module.plan({**CLUSTER, **given}))
    addresses = (ROLE, POLICY, NODE_ROLE, PROFILE, QUEUE)
    assert [found[address]["name"] for address in addresses] == [
        "controller",
        "rights",
        "nodes",
        "nodes",
        "warnings",
    ]
    prefixes = {
        values["name_prefix"]
        for address, values in found.items()
        if address.startswith("aws_cloudwatch_event_rule")
    }
    assert prefixes == {
        f"Team{rule}-"
        for rule in (
            "HealthEvent",
            "SpotInterrupt",
            "InstanceRebalance",
            "InstanceStateChange",
            "CRInterruption",
        )
    }


def test_names_are_generated_where_a_prefix_is_asked_for(module: Tofu) -> None:
    flags = ("iam_role_use_name_prefix", "iam_policy_use_name_prefix", "node_iam_role_use_name_prefix")
    variables = {**CLUSTER, "create_instance_profile": True, **dict.fromkeys(flags, True)}
    found = planned(module.plan(variables))
    addresses = (ROLE, POLICY, NODE_ROLE, PROFILE)
    assert [found[address]["name_prefix"] for address in addresses] == [
        "KarpenterController-",
        "KarpenterController-",
        "Karpenter-demo-",
        "Karpenter-demo-",
    ]
    assert not {"name"} & found[ROLE].keys()


def test_everything_that_can_have_tags_has_them(module: Tofu) -> None:
    variables = {
        **CLUSTER,
        "tags": {"team": "a"},
        "iam_role_tags": {"of": "controller"},
        "node_iam_role_tags": {"of": "nodes"},
        "create_instance_profile": True,
    }
    found = planned(module.plan(variables))
    taggable = {address: values["tags"] for address, values in found.items() if "tags_all" in values}
    further = {ROLE: {"of": "controller"}, NODE_ROLE: {"of": "nodes"}, PROFILE: {"of": "nodes"}}
    assert taggable == {address: {"team": "a", **further.get(address, {})} for address in taggable}
    assert {ROLE, POLICY, NODE_ROLE, PROFILE, QUEUE, ENTRY, ASSOCIATION} <= set(taggable)


def test_paths_boundaries_sessions_and_further_policies(module: Tofu) -> None:
    variables = {
        **CLUSTER,
        "iam_role_path": "/controllers/",
        "iam_policy_path": "/rights/",
        "node_iam_role_path": "/nodes/",
        "iam_role_permissions_boundary_arn": BOUNDARY,
        "node_iam_role_permissions_boundary": BOUNDARY,
        "iam_role_max_session_duration": 7200,
        "iam_role_policies": {"keys": BOUNDARY},
        "node_iam_role_additional_policies": {"logs": BOUNDARY},
        "node_iam_role_attach_cni_policy": False,
    }
    found = planned(module.plan(variables))
    assert [found[address]["path"] for address in (ROLE, POLICY, NODE_ROLE)] == [
        "/controllers/",
        "/rights/",
        "/nodes/",
    ]
    assert {found[address]["permissions_boundary"] for address in (ROLE, NODE_ROLE)} == {BOUNDARY}
    assert found[ROLE]["max_session_duration"] == 7200
    attached = {
        address: values.get("policy_arn")
        for address, values in found.items()
        if address.startswith("aws_iam_role_policy_attachment")
    }
    assert attached['aws_iam_role_policy_attachment.controller_additional["keys"]'] == BOUNDARY
    assert attached['aws_iam_role_policy_attachment.node_additional["logs"]'] == BOUNDARY
    assert not [arn for arn in attached.values() if arn and "CNI" in arn]


def test_an_existing_role_of_the_nodes_is_used(module: Tofu) -> None:
    variables = {
        **CLUSTER,
        "create_node_iam_role": False,
        "node_iam_role_arn": GIVEN_ROLE,
        "enable_spot_termination": False,
        "create_instance_profile": True,
    }
    plan = module.plan(variables)
    found = planned(plan)
    assert NODE_ROLE not in found
    assert found[ENTRY]["principal_arn"] == GIVEN_ROLE
    assert found[PROFILE]["role"] == "nodes"
    (passed,) = [
        statement
        for statement in json.loads(found[POLICY]["policy"])["Statement"]
        if statement["Sid"] == "PassNodeIAMRole"
    ]
    assert passed["Resource"] == GIVEN_ROLE
    outputs = plan["planned_values"]["outputs"]
    assert outputs["node_iam_role_name"]["value"] == "nodes"
    assert outputs["node_iam_role_arn"]["value"] == GIVEN_ROLE


def test_windows_nodes_and_ipv6(module: Tofu, cloud: Cloud) -> None:
    found = planned(module.plan({**CLUSTER, "access_entry_type": "EC2_WINDOWS", "cluster_ip_family": "ipv6"}))
    assert found[ENTRY]["type"] == "EC2_WINDOWS"
    own = 'aws_iam_role_policy_attachment.node["AmazonEKS_CNI_IPv6_Policy"]'
    assert found[own]["policy_arn"] == f"arn:aws:iam::{cloud.account}:policy/AmazonEKS_CNI_IPv6_Policy"
    assert 'aws_iam_role_policy_attachment.node["AmazonEKS_CNI_Policy"]' not in found


def test_a_key_of_ones_own_encrypts_the_queue(module: Tofu) -> None:
    variables = {"queue_kms_master_key_id": "alias/mine", "queue_kms_data_key_reuse_period_seconds": 600}
    found = planned(module.plan({**CLUSTER, **variables}))[QUEUE]
    assert (found["kms_master_key_id"], found["kms_data_key_reuse_period_seconds"]) == ("alias/mine", 600)
    assert found.get("sqs_managed_sse_enabled") is None


def test_another_region_is_that_of_queue_rules_and_conditions(module: Tofu) -> None:
    found = planned(
        module.plan(
            {
                **CLUSTER,
                "region": "eu-west-1",
                "create_node_iam_role": False,
                "node_iam_role_arn": GIVEN_ROLE,
                "enable_spot_termination": False,
            }
        )
    )
    assert found[ENTRY]["region"] == "eu-west-1"
    statements = json.loads(found[POLICY]["policy"])["Statement"]
    assert not [statement for statement in statements if "us-east-1" in json.dumps(statement)]
    assert found[ASSOCIATION]["region"] == "eu-west-1"


#: Variables, and what the refusal says.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no-cluster": (
        {"cluster_name": ""},
        "set it to the name of the cluster, for example module.eks.cluster_name",
    ),
    "cluster": ({"cluster_name": "-x"}, 'cluster_name is "-x"'),
    "irsa": ({"enable_irsa": True}, "enable_irsa is true, but irsa_oidc_provider_arn is not set"),
    "issuer": ({**IRSA, "irsa_oidc_provider_arn": "https://oidc.eks"}, "do not use the issuer's URL"),
    "nobody": ({"enable_pod_identity": False}, "No pod could assume the controller's role"),
    "no-role": (
        {"create_node_iam_role": False},
        "create_node_iam_role is false, but node_iam_role_arn is not set",
    ),
    "profile": (
        {"create_node_iam_role": False, "node_iam_role_arn": "arn:aws:iam::123456789012:instance-profile/x"},
        "do not use an instance profile",
    ),
    "unused-role": ({"node_iam_role_arn": GIVEN_ROLE}, "set create_node_iam_role to false"),
    "reserved-tag": ({"tags": {"aws:x": "1"}}, "a prefix that AWS reserves"),
    "marking-tag": (
        {"tags": {"karpenter.sh/discovery": "x"}},
        "set that tag only on the resources that should be selected",
    ),
    "path": ({"iam_role_path": "teams"}, "iam_role_path must begin and end with /"),
    "policy-path": ({"iam_policy_path": "teams"}, "iam_policy_path must begin and end with /"),
    "node-path": ({"node_iam_role_path": "/teams"}, "node_iam_role_path must begin and end with /"),
    "session": (
        {"iam_role_max_session_duration": 60},
        "iam_role_max_session_duration is outside the range that IAM allows",
    ),
    "node-session": (
        {"node_iam_role_max_session_duration": 60},
        "node_iam_role_max_session_duration is outside the range that IAM allows",
    ),
    "boundary": (
        {"iam_role_permissions_boundary_arn": "x"},
        "iam_role_permissions_boundary_arn is not the ARN of a",
    ),
    "node-boundary": (
        {"node_iam_role_permissions_boundary": "x"},
        "node_iam_role_permissions_boundary is not the ARN",
    ),
    "role-name": ({"iam_role_name": "a b"}, "iam_role_name is not a valid role name"),
    "role-prefix": (
        {"iam_role_name": "r" * 38, "iam_role_use_name_prefix": True},
        "is longer than 37 characters",
    ),
    "policy-prefix": (
        {"iam_policy_name": "p" * 102, "iam_policy_use_name_prefix": True},
        "is longer than 101 characters",
    ),
    "node-role-name": ({"node_iam_role_name": "a/b"}, "node_iam_role_name is not a valid role name"),
    "node-role-prefix": (
        {"cluster_name": "c" * 30, "node_iam_role_use_name_prefix": True},
        "set a shorter node_iam_role_name",
    ),
    "namespace": ({"namespace": "Karpenter"}, "set it to the namespace of the chart's release"),
    "service-account": ({"service_account": "a_b"}, "set it to the name of the chart's service account"),
    "queue": ({"queue_name": "a.fifo"}, "queue_name is not a valid name of a standard queue"),
    "reuse": (
        {"queue_kms_data_key_reuse_period_seconds": 60},
        "has no effect without queue_kms_master_key_id",
    ),
    "reuse-range": (
        {"queue_kms_master_key_id": "x", "queue_kms_data_key_reuse_period_seconds": 1},
        "60 to 86400 seconds",
    ),
    "rules": ({"rule_name_prefix": "r" * 19}, "the rest of the 64 characters is"),
    "policy-name": ({"iam_policy_name": "a b"}, "iam_policy_name is not a valid policy name"),
    "family": ({"cluster_ip_family": "dual"}, "hint: use ipv4 or ipv6"),
    "entry": ({"access_entry_type": "STANDARD"}, "hint: use EC2_LINUX, or EC2_WINDOWS for the role of"),
}


@pytest.mark.parametrize("beginning", MARKING_TAGS)
def test_tags_by_which_single_resources_are_found_are_refused(module: Tofu, beginning: str) -> None:
    with pytest.raises(TofuFailed, match="set that tag only on"):
        module.plan({**CLUSTER, "tags": {f"{beginning}x": "1"}})


def test_generated_names_fit_into_what_their_service_allows(module: Tofu) -> None:
    """With the longest beginnings that are accepted; the provider adds 26 characters."""
    flags = ("iam_role_use_name_prefix", "iam_policy_use_name_prefix", "node_iam_role_use_name_prefix")
    longest = {
        "iam_role_name": "r" * 37,
        "node_iam_role_name": "n" * 37,
        "iam_policy_name": "p" * 101,
        "rule_name_prefix": "e" * 18,
    }
    variables = {**CLUSTER, "create_instance_profile": True, **dict.fromkeys(flags, True), **longest}
    found = planned(module.plan(variables))
    limits = {"aws_iam_role": 64, "aws_iam_policy": 128, "aws_iam_instance_profile": 128}
    limits["aws_cloudwatch_event_rule"] = 64
    lengths = {
        address: len(values["name_prefix"]) + 26 - limits[address.partition(".")[0]]
        for address, values in found.items()
        if values.get("name_prefix")
    }
    assert len(lengths) == 3 + 1 + 5
    assert [address for address, excess in lengths.items() if excess > 0] == []


#: What a plan finds out, not a variable by itself.
BY_THE_PLAN = "nobody"
#: Variables with conditions on another one.
RELATED = {"create_node_iam_role": "node_iam_role_arn", "irsa_oidc_provider_arn": "enable_irsa"}


def _about(case: str) -> set[str]:
    return {RELATED.get(name, name) for name in REFUSED[case][0]}


def _groups() -> list[list[str]]:
    """Cases that can be refused by one plan: no two of them are about one variable."""
    groups: list[list[str]] = []
    for case in REFUSED:
        for group in groups:
            taken = {name for other in group for name in _about(other)}
            if not taken & _about(case) and BY_THE_PLAN not in (case, *group):
                group.append(case)
                break
        else:
            groups.append([case])
    return groups


@pytest.mark.parametrize("group", _groups(), ids=lambda group: group[0])
def test_bad_values_are_refused_with_what_to_do(module: Tofu, group: list[str]) -> None:
    variables: dict[str, Any] = dict(CLUSTER)
    for case in group:
        variables |= REFUSED[case][0]
    with pytest.raises(TofuFailed) as refused:
        module.plan(variables)
    found = [" ".join(part.split()) for part in str(refused.value).replace("│", " ").split("Error: ")]
    for case in group:
        message = re.compile(rf"(?<!\w){re.escape(REFUSED[case][1])}")
        told = [part for part in found if message.search(part)]
        assert len(told) == 1, case
        assert "hint: " in told[0], case


def test_every_validation_of_a_variable_is_tried() -> None:
    """Each condition of variables.tf has its case above."""
    messages = [
        line.partition('"')[2].replace('\\"', '"')
        for line in (MODULE / "variables.tf").read_text().splitlines()
        if line.strip().startswith("error_message")
    ]
    told = [message for _, message in REFUSED.values()]
    assert messages
    assert [message for message in messages if not any(part in message for part in told)] == []


def test_what_is_applied_is_complete_and_can_be_taken_away(module: Tofu, cloud: Cloud) -> None:
    variables = {
        **CLUSTER,
        "create_instance_profile": True,
        "tags": {"team": "a"},
        "iam_role_name": "applied",
    }
    variables |= {
        "node_iam_role_name": "applied-nodes",
        "iam_policy_name": "applied",
        "queue_name": "applied",
    }
    variables |= {"service_account": "applied"}
    module.apply(variables, state="applied")
    assert actions(module.plan(variables, state="applied")) == {}
    changed = {**variables, "tags": {"team": "b"}, "enable_spot_termination": False}
    plan = module.plan(changed, state="applied")
    assert not [done for done in actions(plan).values() if "create" in done]
    module.apply(changed, state="applied")
    assert actions(module.plan(changed, state="applied")) == {}
    roles = {role["RoleName"] for role in cloud.client("iam").list_roles()["Roles"]}
    assert {"applied", "applied-nodes"} <= roles
    module.destroy(changed, state="applied")
    left = {role["RoleName"] for role in cloud.client("iam").list_roles()["Roles"]}
    assert not {"applied", "applied-nodes"} & left
