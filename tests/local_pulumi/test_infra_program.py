"""The project's own program, unchanged, on the local parts.

Nodes, pods and the controller are played by stand-ins here: pods are called ready as they
come, and the teardown guard is let go at once. The environment's tests have the real ones.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.local.aws import LocalAws
from infra.local.control_plane import ControlPlane
from infra.local.kubernetes_api import KubernetesApi
from infra.local.pulumi import ResourceStep, Stack
from tests.local_pulumi.ready_pods import ReadyPods

pytestmark = pytest.mark.cluster

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


def test_the_environment_goes_up_stays_as_it_is_and_leaves_nothing(
    tmp_path: Path, control_plane: ControlPlane, aws: LocalAws, api: KubernetesApi
) -> None:
    authority = base64.b64encode(control_plane.certificate_authority.read_bytes()).decode()
    aws.set_cluster(
        endpoint=control_plane.endpoint,
        certificate_authority_data=authority,
        issuer=control_plane.issuer,
        service_account_key=None,
    )
    config = {
        "nodeless:defaultPool": "false",  # a pool needs the controller's webhooks
        "nodeless:controllerEnvironment": json.dumps(aws.environment()),
    }
    before = {one["metadata"]["name"] for one in api.list("/api/v1/namespaces")}
    stack = Stack(tmp_path, control_plane, aws, config=config)
    with ReadyPods(api), guard_let_go(api):
        made = stack.up()
        assert set(made) == {"create"}
        deployment = api.get("/apis/apps/v1/namespaces/karpenter/deployments/karpenter")
        assert deployment["status"]["availableReplicas"] == 2

        outputs = stack.outputs()
        assert outputs["clusterEndpoint"] == control_plane.endpoint
        user = outputs["kubeconfig"]["users"][0]["user"]
        assert user["exec"]["command"] == "aws", "the output signs in as on AWS"
        cluster = aws.client("eks").describe_cluster(name=outputs["clusterName"])["cluster"]
        assert cluster["resourcesVpcConfig"]["clusterSecurityGroupId"] == outputs["clusterSecurityGroupId"]

        assert stack.up() == {"same": made["create"]}

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
