"""The shell against the real API server and the local AWS: one client a test, on a loop of its own."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from localenv.aws import LocalAws
from localenv.kubernetes import ApiError
from localenv.kubernetes.discovery import UnknownKind
from nodeless import __version__
from nodeless.api.crds import all_crds
from nodeless.cli.main import app
from nodeless.explain.decisions import Situation, write
from nodeless.kube import ApiClient
from nodeless.operator.timing import TIMING
from nodeless.scheduling import Policy
from tests.controllers.process import TRUST, Replicas, a_cluster, settings
from tests.controllers.world import (
    CLAIMS,
    CLUSTER,
    NODES,
    OVERLAYS,
    POOLS,
    TEMPLATES,
    Network,
    a_pod,
    a_provisioner,
    a_rig,
    a_template,
    changeable,
)
from tests.lent_facts import fetch_once
from tests.rights import as_the_controller, nothing_refused
from tests.scheduling.factories import FAMILY, snapshot

LABELS = {
    "karpenter.sh/provisioner-name": "default",
    "karpenter.sh/registered": "true",
    "karpenter.sh/initialized": "true",
    "karpenter.sh/capacity-type": "on-demand",
    "node.kubernetes.io/instance-type": "m5.large",
    "topology.kubernetes.io/zone": "us-east-1a",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
}
RESOURCES = {"cpu": "2", "memory": "7Gi", "pods": "29"}


@pytest.fixture
def on_cluster(
    control_plane, namespace, monkeypatch
) -> Callable[[Callable[[ApiClient], Awaitable[object]]], object]:
    """Run a scenario that gets a client with the controller's rights; within the time of a slow machine."""
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(as_the_controller(control_plane, namespace)))

    def run(scenario):
        async def connected():
            client = await ApiClient.connect()
            try:
                return await asyncio.wait_for(scenario(client), 400)
            finally:
                await client.close()

        return asyncio.run(connected())

    return run


@pytest.fixture
def aws(aws_process, monkeypatch) -> LocalAws:
    """An empty AWS that boto3's ordinary chain finds by the environment."""
    aws_process.reset()
    for name, value in aws_process.environment().items():
        monkeypatch.setenv(name, value)
    fetch_once(aws_process)
    return aws_process


@pytest.fixture(scope="session")
def definitions(api) -> None:
    """The kinds that we serve are known to the API server, and served."""
    for crd in all_crds():
        api.apply(crd)
    for path in (CLAIMS, POOLS, TEMPLATES, OVERLAYS):
        api.wait(lambda path=path: served(api, path), what=f"{path} to be served")


def served(api, path) -> bool:
    try:
        api.list(path)
    except ApiError:
        return False
    return True


def discovered(api, obj) -> bool:
    """Whether discovery names the kind of an object: a moment after its path is served."""
    try:
        api.path_of(obj)
    except UnknownKind:
        return False
    return True


@pytest.fixture
def network(aws) -> Network:
    return Network(aws)


@pytest.fixture
def eks(aws, network):
    """The cluster as EKS knows it, which the provider asks for its version."""
    role = aws.client("iam").create_role(RoleName="cluster", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    subnets = [
        each["SubnetId"] for each in network.ec2.describe_subnets()["Subnets"] if each["VpcId"] == network.vpc
    ]
    return aws.client("eks").create_cluster(
        name=CLUSTER, version="1.32", roleArn=role, resourcesVpcConfig={"subnetIds": subnets}
    )


@pytest.fixture
def scene(on_cluster, control_plane, api, definitions, network, namespace):
    """Run a scenario with a `Rig` and a namespace; nothing of it is left in the cluster afterwards."""

    def run(scenario, **options):
        async def on_rig(client):
            async with a_rig(client, api, network, namespace, **options) as rig:
                return await scenario(rig, namespace)

        with nothing_refused(control_plane):
            return on_cluster(on_rig)

    yield run
    clear(api, namespace)


@pytest.fixture
def clocks():
    """Seconds by which the controllers', and the cloud's, clock is ahead; and their times."""
    ahead = SimpleNamespace(controllers=0.0, cloud=0.0)
    timing = changeable(TIMING)
    timing.gangs = timing.request_nodes = 0.2
    timing.wall_clock = lambda: time.time() + ahead.controllers
    ahead.options = {"timing": timing, "clock": lambda: time.time() + ahead.cloud}
    return ahead


@pytest.fixture
def replicas(control_plane, api, aws, network, namespace, definitions, tmp_path) -> Iterator[Replicas]:
    """Start replicas by identity; all are killed and everything they made is removed afterwards."""
    a_cluster(control_plane, aws, network)
    api.create(settings(namespace))
    started = Replicas(control_plane, aws, namespace, tmp_path)
    try:
        with nothing_refused(control_plane):
            yield started
            started.end()
    finally:
        clear(api, namespace)


def clear(api, namespace) -> None:
    """Delete what is cluster-scoped by force, and the pods whose nodes are no more."""
    for path in (POOLS, CLAIMS, TEMPLATES, NODES, OVERLAYS, f"/api/v1/namespaces/{namespace}/configmaps"):
        for found in api.list(path):
            where = f"{path}/{found['metadata']['name']}"
            with suppress(ApiError):
                api.patch(where, {"metadata": {"finalizers": None}})
            api.delete(where, missing_ok=True)
    for pod in api.list(f"/api/v1/namespaces/{namespace}/pods"):
        where = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
        api.delete(where, grace_seconds=0, missing_ok=True)
    for path in (POOLS, CLAIMS, TEMPLATES, NODES):
        api.wait(lambda path=path: not api.list(path), what=f"{path} to be empty")


async def eventually(condition, seconds=400):
    """Wait until a condition holds, looking after each turn of the loop."""
    async with asyncio.timeout(seconds):
        while not (found := condition()):  # noqa: ASYNC110 - conditions are plain functions
            await asyncio.sleep(0.02)
        return found


@pytest.fixture
def cluster(control_plane, api, definitions, namespace, monkeypatch):
    """A namespace of a cluster with one node of ours, on which `old` runs, and a pool; nothing stays."""
    monkeypatch.setitem(os.environ, "KUBECONFIG", "put back afterwards")
    machine = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n1-{namespace}", "labels": LABELS},
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {"capacity": RESOURCES, "allocatable": RESOURCES},
    }
    api.create(machine)
    for document in (a_template(), a_provisioner(), a_pod("old", namespace, nodeName=f"n1-{namespace}")):
        api.create(document)
    yield namespace
    clear(api, namespace)


@pytest.fixture
def nodeless(control_plane, cluster):
    """The command, pointed at the cluster by its options alone."""

    def run(*arguments):
        by_options = (
            "--kubeconfig",
            control_plane.kubeconfig,
            "--controller-namespace",
            cluster,
            "--region",
            "us-east-1",
        )
        return CliRunner().invoke(app, [*map(str, (*arguments, *by_options))])

    return run


@pytest.fixture
def claimed(api, cluster):
    """The same, with the node's claim as the controller would have written it."""
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": f"default-{cluster}",
            "labels": LABELS,
            "ownerReferences": [
                {
                    "apiVersion": "karpenter.sh/v1alpha5",
                    "kind": "Provisioner",
                    "name": "default",
                    "uid": api.get(f"{POOLS}/default")["metadata"]["uid"],
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeClassRef": {
                "group": "karpenter.k8s.aws",
                "kind": "AWSNodeTemplate",
                "name": "default",
            },
            "requirements": [],
        },
    }
    api.create(claim)
    path = f"{CLAIMS}/default-{cluster}"
    ready = {"type": "Launched", "status": "True", "reason": "Launched", "message": ""}
    status = {
        "providerID": "aws:///us-east-1a/i-1",
        "nodeName": f"n1-{cluster}",
        "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    api.patch(path, {"status": status}, subresource="status")
    return cluster


@pytest.fixture
def file(tmp_path):
    def write_file(*manifests, name="given.yaml"):
        path = tmp_path / name
        path.write_text(yaml.safe_dump_all(manifests))
        return path

    return write_file


@pytest.fixture
def saved(tmp_path):
    """Writes a snapshot of things, all pools buying FAMILY unless a catalog is given."""

    def write_snapshot(*things, catalog=None):
        seen = snapshot(*things)
        bought = dict.fromkeys(seen.pools, FAMILY) if catalog is None else catalog
        path = tmp_path / "cluster.json"
        path.write_bytes(write(Situation(seen, bought, Policy(), 0.0), __version__))
        return path

    return write_snapshot
