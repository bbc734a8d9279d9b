"""What the module makes in AWS is what the components make for the same settings, statement by statement.

The module is applied by the real OpenTofu on a local AWS, and what AWS has then is read from it. The
components run as the engine would run them, in the same account and region. Both are brought into one form:
roles by name with their trust and policies, the queue with its policy, the rules by their patterns. Two
things differ, and nothing else may: the names of the rules, which the engine ends with random letters and
the provider with a time; and `force_detach_policies`, which only Terraform knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pytest

from localenv.opentofu import Tofu
from tests.components.conftest import CONFIG, program
from tests.components.recorder import ACCOUNT, Recorder, ensure_event_loop, run
from tests.terraform.conftest import Cloud

pytestmark = pytest.mark.cluster

TAGS = {"team": "platform"}
SETTINGS = {**CONFIG, "nodeless:tags": json.dumps(TAGS)}
DNS = [
    {
        "name": "kube-system",
        "selectors": [
            {"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
            {
                "namespace": "kube-system",
                "labels": {"app.kubernetes.io/name": "aws-load-balancer-controller"},
            },
        ],
    }
]
POD_IDENTITY = {
    **SETTINGS,
    "nodeless:controllerIdentity": "pod-identity",
    "nodeless:fargateProfiles": json.dumps(DNS),
}
ROLES = ("KarpenterControllerRole-demo", "KarpenterNodeRole-demo")


@pytest.fixture(scope="module", params=["irsa", "pod-identity"])
def mechanism(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def component(mechanism: str) -> Recorder:
    ensure_event_loop()
    return run(program, config=SETTINGS if mechanism == "irsa" else POD_IDENTITY)


@pytest.fixture(scope="module")
def applied(mechanism: str, module: Tofu, cloud: Cloud) -> Iterator[Cloud]:
    """AWS, in which the module was applied."""
    assert cloud.account == ACCOUNT
    variables = {
        "cluster_name": "demo",
        "tags": TAGS,
        "create_instance_profile": True,
        "enable_irsa": mechanism == "irsa",
        "enable_pod_identity": mechanism != "irsa",
        "irsa_oidc_provider_arn": cloud.issuer_arn,
    }
    module.apply(variables, state=f"same-{mechanism}")
    yield cloud
    module.destroy(variables, state=f"same-{mechanism}")


def test_the_roles_are_the_same(component: Recorder, applied: Cloud) -> None:
    theirs = {name: recorded_role(component, name) for name in ROLES}
    ours = {name: role_in(applied, name) for name in ROLES}
    assert ours == theirs
    assert ours[ROLES[0]]["statements"]
    assert ours[ROLES[1]]["attached"]


def test_the_instance_profile_is_the_same(component: Recorder, applied: Cloud) -> None:
    inputs = component.one("aws:iam/instanceProfile:InstanceProfile").inputs
    profile = applied.client("iam").get_instance_profile(InstanceProfileName=inputs["name"])[
        "InstanceProfile"
    ]
    assert [role["RoleName"] for role in profile["Roles"]] == [inputs["role"]]
    assert pairs(profile["Tags"]) == inputs["tags"]


def test_the_queue_and_its_policy_are_the_same(component: Recorder, applied: Cloud) -> None:
    inputs = component.one("aws:sqs/queue:Queue").inputs
    sqs = applied.client("sqs")
    url = sqs.get_queue_url(QueueName=inputs["name"])["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["MessageRetentionPeriod"] == str(int(inputs["messageRetentionSeconds"]))
    assert (attributes["SqsManagedSseEnabled"] == "true") is inputs["sqsManagedSseEnabled"]
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == inputs["tags"]

    recorded = json.loads(component.one("aws:sqs/queuePolicy:QueuePolicy").inputs["policy"])
    patterns = {arn_of(rule): rule["eventPattern"] for rule in recorded_rules(component)}
    in_aws = {rule["Arn"]: rule["EventPattern"] for rule in rules_in(applied)}
    assert statements(json.loads(attributes["Policy"]), in_aws) == statements(recorded, patterns)


def test_the_rules_and_their_targets_are_the_same(component: Recorder, applied: Cloud) -> None:
    targets = {
        each.inputs["rule"]: (each.inputs["targetId"], each.inputs["arn"])
        for each in component.of("aws:cloudwatch/eventTarget:EventTarget")
    }
    theirs = [
        (normal(rule["eventPattern"]), rule["description"], targets[rule["name"]], rule["tags"])
        for rule in recorded_rules(component)
    ]
    events = applied.client("events")
    ours = []
    for rule in rules_in(applied):
        (target,) = events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
        tags = pairs(events.list_tags_for_resource(ResourceARN=rule["Arn"])["Tags"])
        ours.append((normal(rule["EventPattern"]), rule["Description"], (target["Id"], target["Arn"]), tags))
    assert sorted(ours, key=str) == sorted(theirs, key=str)


def test_the_access_entry_is_the_same(component: Recorder, applied: Cloud) -> None:
    inputs = component.one("aws:eks/accessEntry:AccessEntry").inputs
    entry = applied.client("eks").describe_access_entry(
        clusterName="demo", principalArn=inputs["principalArn"]
    )["accessEntry"]
    assert (entry["type"], entry["tags"]) == (inputs["type"], inputs["tags"])


def test_the_association_is_the_same(mechanism: str, component: Recorder, applied: Cloud) -> None:
    recorded = component.of("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    theirs = [
        tuple(each.inputs[key] for key in ("namespace", "serviceAccount", "roleArn")) for each in recorded
    ]
    eks = applied.client("eks")
    listed = eks.list_pod_identity_associations(clusterName="demo")["associations"]
    ours = []
    for each in listed:
        found = eks.describe_pod_identity_association(
            clusterName="demo", associationId=each["associationId"]
        )["association"]
        ours.append((found["namespace"], found["serviceAccount"], found["roleArn"]))
    assert ours == theirs
    assert len(ours) == (mechanism == "pod-identity")


def recorded_role(component: Recorder, name: str) -> dict[str, Any]:
    (role,) = [each for each in component.of("aws:iam/role:Role") if each.inputs["name"] == name]
    attached = {
        each.inputs["policyArn"]
        for each in component.of("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
        if each.inputs["role"] == name
    }
    own = {
        f"arn:aws:iam::{ACCOUNT}:policy/{each.inputs['name']}": each.inputs
        for each in component.of("aws:iam/policy:Policy")
    }
    return {
        "description": role.inputs["description"],
        "tags": role.inputs["tags"],
        "trust": statements(json.loads(role.inputs["assumeRolePolicy"])),
        "attached": sorted(attached),
        "statements": {
            arn: statements(json.loads(own[arn]["policy"])) for arn in sorted(attached & own.keys())
        },
        "descriptions": {arn: own[arn]["description"] for arn in sorted(attached & own.keys())},
    }


def role_in(cloud: Cloud, name: str) -> dict[str, Any]:
    iam = cloud.client("iam")
    role = iam.get_role(RoleName=name)["Role"]
    attached = {
        each["PolicyArn"] for each in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    }
    own = {arn: iam.get_policy(PolicyArn=arn)["Policy"] for arn in attached if f"::{ACCOUNT}:" in arn}
    documents = {
        arn: iam.get_policy_version(PolicyArn=arn, VersionId=policy["DefaultVersionId"])["PolicyVersion"]
        for arn, policy in own.items()
    }
    return {
        "description": role["Description"],
        "tags": pairs(role["Tags"]),
        "trust": statements(document(role["AssumeRolePolicyDocument"])),
        "attached": sorted(attached),
        "statements": {arn: statements(document(documents[arn]["Document"])) for arn in sorted(own)},
        "descriptions": {arn: own[arn]["Description"] for arn in sorted(own)},
    }


def recorded_rules(component: Recorder) -> list[dict[str, Any]]:
    rules = component.of("aws:cloudwatch/eventRule:EventRule")
    return [{"name": each.name, **each.inputs} for each in rules]


def arn_of(rule: Mapping[str, Any]) -> str:
    return f"arn:aws:events:us-east-1:{ACCOUNT}:rule/{rule['name']}"


def rules_in(cloud: Cloud) -> list[dict[str, Any]]:
    """The rules that fill the queue of the cluster."""
    events = cloud.client("events")
    queue = f"arn:aws:sqs:us-east-1:{ACCOUNT}:demo"
    return [
        events.describe_rule(Name=name)
        for name in events.list_rule_names_by_target(TargetArn=queue)["RuleNames"]
    ]


def document(given: Any) -> dict[str, Any]:
    """A policy, which boto3 decodes where AWS encodes it."""
    return json.loads(unquote(given)) if isinstance(given, str) else given


def statements(policy: Mapping[str, Any], rules: Mapping[str, str] | None = None) -> list[str]:
    """A policy's statements, in a form in which equal ones are equal: lists sorted, rules by pattern."""
    assert policy["Version"] == "2012-10-17"
    return sorted(json.dumps(_sorted(each, rules or {}), sort_keys=True) for each in policy["Statement"])


def _sorted(value: Any, rules: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(each, rules) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(each, rules) for each in value), key=str)
    return normal(rules[value]) if value in rules else value


def normal(pattern: str) -> str:
    return json.dumps(json.loads(pattern), sort_keys=True)


def pairs(tags: list[dict[str, str]]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags}
