"""EKS Pod Identity: from a pod's admission to the credentials of its service account's role."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import CredentialRetrievalError

from localenv.kubelets.pod_identity import AGENT_AUDIENCE, AGENT_DIRECTORY
from localenv.kubelets.pod_identity_agent import ADDON
from pulumi_nodeless.policies import pod_identity_trust
from tests.localenv.kubelets.world import CLUSTER, IMAGE, REGION, World

pytestmark = pytest.mark.cluster

ACCOUNT = "controller"
URL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"


@pytest.fixture
def role(world: World, namespace: str) -> str:
    """The role of a service account, associated as the component `ControllerIdentity` does it."""
    eks = world.aws.client("eks")
    if ADDON not in eks.list_addons(clusterName=CLUSTER)["addons"]:
        eks.create_addon(clusterName=CLUSTER, addonName=ADDON)
    cluster = eks.describe_cluster(name=CLUSTER)["cluster"]["arn"]
    made = world.aws.client("iam").create_role(
        RoleName=f"role-{namespace}",
        AssumeRolePolicyDocument=json.dumps(pod_identity_trust(cluster, namespace, ACCOUNT)),
    )["Role"]["Arn"]
    for account in (ACCOUNT, "other"):
        world.api.create(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": account, "namespace": namespace},
            }
        )
        eks.create_pod_identity_association(
            clusterName=CLUSTER, namespace=namespace, serviceAccount=account, roleArn=made
        )
    return str(made)


def admitted(world: World, namespace: str, account: str) -> dict[str, Any]:
    """A pod as the API server would take it, webhooks included."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asking", "namespace": namespace},
        "spec": {"serviceAccountName": account, "containers": [{"name": "main", "image": "main"}]},
    }
    path = f"/api/v1/namespaces/{namespace}/pods"
    found: dict[str, Any] = world.api.request("POST", path, body=pod, query={"dryRun": "All"})
    return found


def variables(pod: dict[str, Any]) -> dict[str, str]:
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in container.get("env") or []}


def told(world: World, namespace: str, account: str = ACCOUNT) -> dict[str, Any]:
    """The pod once the kubelets know of the association."""
    pod: dict[str, Any] = world.api.wait(
        lambda: admitted(world, namespace, account),
        lambda found: URL in variables(found),
        what=f"a pod with {URL}",
    )
    return pod


def token_of(world: World, namespace: str, account: str, audience: str = AGENT_AUDIENCE) -> str:
    """What the kubelet would put into the projected volume."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [audience]},
    }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return str(world.api.request("POST", path, body=request)["status"]["token"])


def credentials(url: str, token: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """What AWS's SDK finds in a container with these variables and nothing else."""
    file = tmp_path / "token"
    file.write_text(token)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    monkeypatch.setenv(URL, url)
    monkeypatch.setenv(FILE, str(file))
    session = botocore.session.Session()
    session.get_credentials()
    return session


def test_a_pod_of_an_associated_service_account_becomes_its_role(
    world: World, namespace: str, role: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pod = told(world, namespace)
    (volume,) = (volume for volume in pod["spec"]["volumes"] if volume["name"] == "eks-pod-identity-token")
    assert volume["projected"]["sources"][0]["serviceAccountToken"]["audience"] == AGENT_AUDIENCE
    (container,) = pod["spec"]["containers"]
    assert AGENT_DIRECTORY in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert variables(pod)[FILE].startswith(f"{AGENT_DIRECTORY}/")
    assert variables(pod)["AWS_REGION"] == REGION

    token = token_of(world, namespace, ACCOUNT)
    session = credentials(variables(pod)[URL], token, monkeypatch, tmp_path)
    sts = session.create_client(
        "sts", region_name=REGION, endpoint_url=world.aws.endpoint_url, config=Config(proxies={})
    )
    assumed = role.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")
    assert sts.get_caller_identity()["Arn"].startswith(f"{assumed}/eks-{CLUSTER}-")


@pytest.mark.parametrize(
    ("account", "audience", "why"),
    [
        (ACCOUNT, "sts.amazonaws.com", "audience"),
        ("other", AGENT_AUDIENCE, "does not trust"),
        ("default", AGENT_AUDIENCE, "No pod identity association"),
    ],
)
def test_what_eks_would_refuse_gets_no_credentials(
    world: World,
    namespace: str,
    role: str,
    account: str,
    audience: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    url = variables(told(world, namespace))[URL]
    token = token_of(world, namespace, account, audience)
    with pytest.raises(CredentialRetrievalError, match=why):
        credentials(url, token, monkeypatch, tmp_path)


def test_a_pod_on_fargate_is_not_told_of_an_agent_that_is_not_there(
    world: World, fargate_namespace: str, namespace: str, role: str
) -> None:
    world.aws.client("eks").create_pod_identity_association(
        clusterName=CLUSTER, namespace=fargate_namespace, serviceAccount="default", roleArn=role
    )
    told(world, namespace)  # by then the other association is known, too
    assert URL not in variables(admitted(world, fargate_namespace, "default"))


def test_a_process_on_a_node_finds_its_role_by_what_the_pod_was_given(
    world: World, namespace: str, role: str
) -> None:
    node = world.ready_node(world.launch(world.bootstrap()))
    told(world, namespace)
    asking = "import boto3; print('I am', boto3.client('sts').get_caller_identity()['Arn'])"
    container = {
        "name": "main",
        "image": f"{IMAGE}:1.0",
        "command": ["python", "-c", asking],
        "env": [{"name": "AWS_ENDPOINT_URL", "value": world.aws.endpoint_url}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"asking-{namespace}", "namespace": namespace},
        "spec": {
            "serviceAccountName": ACCOUNT,
            "nodeName": node["metadata"]["name"],
            "restartPolicy": "Never",
            "containers": [container],
        },
    }
    world.api.create(pod)
    log = world.kubelets.log_of(f"asking-{namespace}")
    world.api.wait(
        f"/api/v1/namespaces/{namespace}/pods/asking-{namespace}",
        lambda found: found["status"].get("phase") in ("Succeeded", "Failed"),
        what="the process to end",
    )
    assert f":assumed-role/role-{namespace}/eks-{CLUSTER}-asking" in log.read_text()
    world.aws.client("ec2").terminate_instances(InstanceIds=[node["spec"]["providerID"].rpartition("/")[2]])
