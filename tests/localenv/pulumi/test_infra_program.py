"""The project's own program, unchanged, on the local parts.

Nodes, pods and the controller are played by stand-ins here: pods are called ready as they
come, and the teardown guard is let go at once. The environment's tests have the real ones.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.pulumi import ResourceStep, Stack, StackFailed
from localenv.pulumi.faults import FirstAttempts
from tests.localenv.pulumi.ready_pods import ReadyPods

pytestmark = [pytest.mark.cluster, pytest.mark.long]

#: A controller on nodes, where it may get its role by EKS Pod Identity as well.
ON_NODES = {
    "controllerSettings": '{"batchMaxDuration": "30s"}',
    "fargateProfiles": json.dumps(
        [
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
    ),
}
#: What says by which way the controller gets its role; all else stays when the way changes.
BEARERS_OF_IDENTITY = {
    "nodeless-identity-role",
    "nodeless-controller-service-account",
    "nodeless-controller-deployment",
}
#: The engine's words for steps that change something.
CHANGES = {"create", "update", "delete", "replace", "create-replacement", "delete-replaced"}
GUARD = "/api/v1/namespaces/karpenter/configmaps/nodeless-teardown"


@contextmanager
def guard_let_go(api: KubernetesApi) -> Iterator[None]:
    """What the controller does when the stack goes and there is no capacity."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            found = api.find(GUARD)
            if found and found["metadata"].get("deletionTimestamp"):
                api.patch(GUARD, {"metadata": {"finalizers": None}})
                return

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def settings(aws: LocalAws, **more: str) -> dict[str, str]:
    return {
        "nodeless:defaultPool": "false",  # a pool needs the controller's webhooks
        "nodeless:controllerEnvironment": json.dumps(aws.environment()),
        **{f"nodeless:{key}": value for key, value in more.items()},
    }


def resumed(stack: Stack, attempts: int) -> dict[str, int]:
    """Brings the stack up, again and again until nothing fails any more."""
    for _ in range(attempts):
        try:
            return stack.up()
        except StackFailed as failure:
            assert "the cloud does not answer" in str(failure)
    raise AssertionError(f"the stack still fails after {attempts} attempts")


def changed_names(stack: Stack) -> dict[str, set[str]]:
    """What bringing the stack up does to which resources, by operation."""
    steps: list[ResourceStep] = []
    stack.up(steps.append)
    done = [step for step in steps if step.done and step.type != "pulumi:pulumi:Stack"]
    return {each.operation: {step.name for step in done if step.operation == each.operation} for each in done}


def more_zones_and_another_cluster_replace_nothing(with_settings: Callable[..., Stack]) -> None:
    """A preview in which subnets are still to come and the cluster changes."""
    steps: list[ResourceStep] = []
    more = {"zoneCount": "4", "publicAccessCidrs": '["10.0.0.0/8"]', "clusterLogTypes": '["audit"]'}
    with_settings(**more).preview(steps.append)
    foreseen = {(step.operation, step.name) for step in steps if step.operation in CHANGES}
    assert {operation for operation, _ in foreseen} == {"create", "update"}
    assert {name for operation, name in foreseen if operation == "create" and "-3" not in name} == set()
    assert ("update", "nodeless-cluster-eks-eksCluster") in foreseen
    assert not [name for _, name in foreseen if "fargate" in name or "discovery" in name]


def the_way_to_the_role_changes_and_back(
    with_settings: Callable[..., Stack], aws: LocalAws, cluster: str
) -> None:
    """From a token to EKS Pod Identity, in a step of its own, and back."""
    associations = {"nodeless-identity-association", "nodeless-identity-pod-identity-agent"}
    assert changed_names(with_settings(**ON_NODES, controllerIdentity="pod-identity")) == {
        "create": associations,
        "update": BEARERS_OF_IDENTITY,
    }
    listed = aws.client("eks").list_pod_identity_associations(clusterName=cluster)["associations"]
    assert [(each["namespace"], each["serviceAccount"]) for each in listed] == [("karpenter", "karpenter")]
    assert changed_names(with_settings(**ON_NODES)) == {
        "update": BEARERS_OF_IDENTITY,
        "delete": associations,
    }


def test_the_environment_resumes_at_every_resource_changes_no_more_than_asked_and_leaves_nothing(
    tmp_path: Path,
    control_plane: ControlPlane,
    aws: LocalAws,
    api: KubernetesApi,
    is_drawn: Callable[[str], bool],
) -> None:
    """Of the resources, `make test` draws a third at whose making the cloud fails."""
    authority = base64.b64encode(control_plane.certificate_authority.read_bytes()).decode()
    aws.set_cluster(
        endpoint=control_plane.endpoint,
        certificate_authority_data=authority,
        issuer=control_plane.issuer,
        service_account_key=None,
    )
    before = {one["metadata"]["name"] for one in api.list("/api/v1/namespaces")}
    seen = set[str]()

    def fails(urn: str) -> bool:
        seen.add(urn)
        return is_drawn(urn)

    faults = FirstAttempts(fails)
    failing = Stack(tmp_path, control_plane, aws, config=settings(aws), faults=faults)
    stack = Stack(tmp_path, control_plane, aws, config=settings(aws))
    with ReadyPods(api), guard_let_go(api):
        # As many attempts as the longest chain of resources has members, and some more.
        resumed(failing, attempts=40)
        made = stack.up()
        assert set(made) == {"same"}, "an up after the last failure has nothing left to do"
        assert len(seen) > 80
        assert faults.failed == {urn for urn in seen if is_drawn(urn)}
        deployment = api.get("/apis/apps/v1/namespaces/karpenter/deployments/karpenter")
        assert deployment["status"]["availableReplicas"] == 2

        outputs = stack.outputs()
        assert outputs["clusterEndpoint"] == control_plane.endpoint
        user = outputs["kubeconfig"]["users"][0]["user"]
        assert user["exec"]["command"] == "aws", "the output signs in as on AWS"
        cluster = aws.client("eks").describe_cluster(name=outputs["clusterName"])["cluster"]
        assert cluster["resourcesVpcConfig"]["clusterSecurityGroupId"] == outputs["clusterSecurityGroupId"]

        def with_settings(**more: str) -> Stack:
            return Stack(tmp_path, control_plane, aws, config=settings(aws, **more))

        assert changed_names(with_settings(controllerSettings=ON_NODES["controllerSettings"])) == {
            "update": {"nodeless-controller-karpenter-global-settings", "nodeless-controller-deployment"}
        }
        more_zones_and_another_cluster_replace_nothing(with_settings)
        assert changed_names(with_settings(**ON_NODES)) == {"delete": {"nodeless-fargate-karpenter"}}
        the_way_to_the_role_changes_and_back(with_settings, aws, outputs["clusterName"])

        steps: list[ResourceStep] = []
        stack.destroy(steps.append)
    ends = [step.name for step in steps if step.done]
    assert ends.index("nodeless-teardown-guard") < ends.index("nodeless-controller-deployment")
    assert {one["metadata"]["name"] for one in api.list("/api/v1/namespaces")} == before
    assert api.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions") == []
    assert aws.client("eks").list_clusters()["clusters"] == []
    iam, ec2 = aws.client("iam"), aws.client("ec2")
    assert iam.list_roles()["Roles"] == []
    assert iam.list_instance_profiles()["InstanceProfiles"] == []
    assert iam.list_open_id_connect_providers()["OpenIDConnectProviderList"] == []
    assert [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")] == []
    assert ec2.describe_addresses()["Addresses"] == []
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert "QueueUrls" not in aws.client("sqs").list_queues()
    assert aws.client("events").list_rules()["Rules"] == []
