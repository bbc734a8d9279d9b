"""The controller on a cluster without its kinds: each is named once, and all works once they are there."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import ApiError, KubernetesApi
from localenv.ports import free_port
from nodeless.api.crds import all_crds
from tests.controllers.world import (
    CLAIMS,
    CLUSTER,
    POOLS,
    TEMPLATES,
    Kubelets,
    Network,
    a_pod,
    a_provisioner,
    a_template,
)

pytestmark = pytest.mark.environment

NODELESS = Path(sys.executable).with_name("nodeless")
SETTINGS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "karpenter-global-settings", "namespace": "default"},
    "data": {
        "aws.clusterName": CLUSTER,
        "aws.clusterEndpoint": "https://demo.example",
        "aws.defaultInstanceProfile": "nodes",
    },
}


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane on which nothing was ever installed."""
    with ControlPlane.start(tmp_path / "control-plane") as plane:
        yield plane


@pytest.fixture
def aws(bare: ControlPlane, tmp_path: Path) -> Iterator[LocalAws]:
    """An account that knows the control plane."""
    authority = base64.b64encode(bare.certificate_authority.read_bytes()).decode()
    with LocalAws.start(tmp_path / "aws") as aws:
        aws.set_cluster(endpoint=bare.endpoint, certificate_authority_data=authority, issuer=bare.issuer)
        yield aws


@pytest.fixture
def network(aws: LocalAws) -> Network:
    """A cluster and what its instances need."""
    network = Network(aws)
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    role = aws.client("iam").create_role(RoleName="cluster", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    of_network = [{"Name": "vpc-id", "Values": [network.vpc]}]
    subnets = [each["SubnetId"] for each in network.ec2.describe_subnets(Filters=of_network)["Subnets"]]
    aws.client("eks").create_cluster(
        name=CLUSTER, version="1.32", roleArn=role, resourcesVpcConfig={"subnetIds": subnets}
    )
    return network


@pytest.fixture
def api(bare: ControlPlane) -> Iterator[KubernetesApi]:
    client = bare.client()
    client.apply(SETTINGS)
    yield client
    client.close()


@pytest.fixture
def log(
    bare: ControlPlane, aws: LocalAws, network: Network, api: KubernetesApi, tmp_path: Path
) -> Iterator[Path]:
    """The log of a controller that runs on the bare control plane."""
    environment = {
        **os.environ,
        **aws.environment(),
        "KUBECONFIG": str(bare.kubeconfig),
        "SYSTEM_NAMESPACE": "default",
        "POD_IP": "127.0.0.1",
        "METRICS_PORT": str(free_port()),
        "HEALTH_PROBE_PORT": str(free_port()),
        "DISABLE_WEBHOOK": "true",
    }
    file = tmp_path / "nodeless.log"
    with file.open("wb") as output:
        process = subprocess.Popen(
            [NODELESS, "run"], env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    yield file
    assert process.poll() is None, file.read_text()
    process.kill()
    process.wait()


def messages(log: Path) -> list[str]:
    *whole, _ = log.read_text().split("\n")
    return [json.loads(line)["message"] for line in whole]


def all_served(api: KubernetesApi) -> bool:
    try:
        return all(api.list(path) == [] for path in (CLAIMS, POOLS, TEMPLATES))
    except ApiError:
        return False


def test_missing_kinds_are_named_with_what_to_do_and_pods_get_a_node_once_they_are_installed(
    log: Path, api: KubernetesApi, network: Network
) -> None:
    api.create(a_pod("web", "default"))
    lines = [
        f"the cluster does not serve /apis/{path}; hint: install the CRDs (kubectl apply -f controller/crds)"
        for path in (
            "karpenter.sh/v1alpha5/provisioners",
            "karpenter.k8s.aws/v1alpha1/awsnodetemplates",
            "karpenter.sh/v1/nodeclaims",
        )
    ]
    api.wait(lambda: set(lines) <= set(messages(log)), what="the missing kinds to be named")
    event = api.wait(
        lambda: [
            each
            for each in api.events("default", "web")
            if each["source"].get("component") == "karpenter" and "install the CRDs" in each["message"]
        ],
        what="the pod to be told",
    )[0]
    assert (event["type"], event["reason"]) == ("Warning", "FailedScheduling")
    for crd in all_crds():
        api.apply(crd)
    api.wait(lambda: all_served(api), what="the kinds to be served")
    for manifest in (a_template(), a_provisioner()):
        api.create(manifest)
    kubelets = Kubelets(api, network)

    def running() -> bool:
        kubelets.turn()
        return bool(api.get("/api/v1/namespaces/default/pods/web")["status"].get("phase") == "Running")

    api.wait(running, timeout=60, what="the pod to run")
    assert len(network.instances()) == 1
    for line in lines:
        assert messages(log).count(line) == 1
