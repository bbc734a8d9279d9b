"""The local environment as the suites want to find it, before the first spec and again after each.

A suite expects the controller in kube-system on tainted nodes that are not its own, Karpenter's gates open,
an empty namespace `default`, no pools and no node classes, and the kinds of objects that it cleans up. What a
spec that failed left behind is removed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from operator import not_
from pathlib import Path
from typing import Any

import yaml

from localenv import addons
from localenv.conformance.modules import Release, Source
from localenv.conformance.network import name_network
from localenv.environment import Environment, Options
from localenv.golang import module_folder
from localenv.kubernetes import ApiError, KubernetesApi, is_established
from localenv.node_group import node_group
from localenv.progress import Report

#: Kinds of other projects of which the suites remove what they made.
_FOREIGN_KINDS = {"github.com/aws/amazon-vpc-resource-controller-k8s": "config/crd/bases"}
#: The nodes that a suite finds: enough for a roll-out of replicas that never share one.
_SYSTEM_NODES = 3
_SYSTEM_TAINT = "CriticalAddonsOnly=true:NoSchedule"
#: As Karpenter's suites are run upstream: its gates are open.
_SETTINGS = {
    "featureGates.driftEnabled": "true",
    "nodeless.capacityBuffers": "true",
    "nodeless.nodeOverlays": "true",
    "nodeless.nodeRepair": "true",
    "nodeless.spotToSpotConsolidation": "true",
}
#: None takes the controller, which runs on the system's nodes.
_FARGATE = [
    {"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
    {"namespace": "kube-system", "labels": {"app.kubernetes.io/name": "aws-load-balancer-controller"}},
]
_CONFIG = {
    "nodeless:controllerNamespace": "kube-system",
    "nodeless:fargateProfiles": json.dumps([{"name": "kube-system", "selectors": _FARGATE}]),
}
#: Under which the suites look for the role of experiments.
_EXPERIMENTS_ROLE = "FISInterruptionRole"
#: Collections that a failed spec may leave something in; owners before what they own.
_LEFTOVERS = (
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/statefulsets",
    "/apis/apps/v1/namespaces/default/daemonsets",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/namespaces/default/podtemplates",
    "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers",
    "/apis/karpenter.sh/v1/nodepools",
    "/apis/karpenter.sh/v1/nodeclaims",
    "/apis/karpenter.sh/v1alpha1/nodeoverlays",
    "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
)
#: By which specs keep nodes from registering and status from being written.
_POLICIES = "/apis/admissionregistration.k8s.io/v1"
_FINALIZER = "testing/finalizer"
_TWO_PROCESSORS = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]}
_CLEAN_SECONDS = 120.0


@contextmanager
def cluster(
    release: Release, source: Source, go: Path, packing: str, report: Report
) -> Iterator[Environment]:
    """An environment as a release's suites expect it.

    Args:
        release: Whose suites are run.
        source: Its provider's module.
        go: The go command.
        packing: The controller's.
        report: Hears of what is started.
    """
    settings = json.dumps({**_SETTINGS, **dict(release.settings), "nodeless.packing": packing})
    config = {**_CONFIG, "nodeless:controllerSettings": settings}
    options = Options(boot_seconds=1.0, with_stack=False, config=config)
    with Environment.start(report=report, options=options) as environment:
        with node_group(environment, "system", _SYSTEM_NODES, _SYSTEM_TAINT):
            environment.up()
        _install_kinds(environment.api, source, go)
        name_network(environment)
        _install_volume_driver(environment)
        _make_experiments_role(environment)
        _enable_zonal_shift(environment)
        yield environment


def _install_volume_driver(environment: Environment) -> None:
    """Have EKS install the driver whose daemon labels nodes with the zone of their volumes."""
    eks, name = environment.aws.client("eks"), environment.options.cluster_name
    eks.create_addon(clusterName=name, addonName="aws-ebs-csi-driver")
    addons.install(environment.api, eks, name)


def _make_experiments_role(environment: Environment) -> None:
    """Make the role by which upstream's account lets experiments interrupt spot instances."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "fis.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    environment.aws.client("iam").create_role(
        RoleName=_EXPERIMENTS_ROLE, AssumeRolePolicyDocument=json.dumps(policy)
    )


def _enable_zonal_shift(environment: Environment) -> None:
    """Let shifts away from a zone be started, as in upstream's account."""
    eks, name = environment.aws.client("eks"), environment.options.cluster_name
    eks.update_cluster_config(name=name, zonalShiftConfig={"enabled": True})


def _install_kinds(api: KubernetesApi, source: Source, go: Path) -> None:
    """Install the kinds that the suites know and the stack does not."""
    published = _documents(source.folder / "pkg" / "apis" / "crds")
    for document in (*published, *_foreign_kinds(source, go)):
        with_name = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{document['metadata']['name']}"
        if api.find(with_name) is None:
            api.create(document)
            api.wait(with_name, is_established)


def variables(environment: Environment) -> dict[str, str]:
    """What a suite's process is told of its cluster."""
    return {
        **environment.variables(),
        "AWS_REGION": "us-east-1",
        "CLUSTER_NAME": environment.options.cluster_name,
        "CLUSTER_ENDPOINT": environment.control_plane.endpoint,
        "INTERRUPTION_QUEUE": environment.options.cluster_name,
        "ENABLE_ZONAL_SHIFT": "true",
    }


def node_class_arguments(
    environment: Environment, provider: Source, *, small: bool = False
) -> tuple[str, ...]:
    """What suites for any provider are told of the one here: the defaults of the provider's module.

    With `small` the pool is narrowed to machines of two processors, as specs that count nodes have it of the
    provider for which they were written.
    """
    shipped = provider.folder / "test" / "pkg" / "environment" / "aws"
    text = (shipped / "default_ec2nodeclass.yaml").read_text()
    node_class = environment.directory / "default_ec2nodeclass.yaml"
    node_class.write_text(text.replace("$CLUSTER_NAME", environment.options.cluster_name))
    node_pool = shipped / "default_nodepool.yaml"
    if small:
        document = yaml.safe_load(node_pool.read_text())
        document["spec"]["template"]["spec"]["requirements"].append(_TWO_PROCESSORS)
        node_pool = environment.directory / "small_nodepool.yaml"
        node_pool.write_text(yaml.safe_dump(document))
    return f"-default-nodeclass={node_class}", f"-default-nodepool={node_pool}"


def clean(environment: Environment) -> bool:
    """Remove what a spec left behind; whether nothing is left of it in time."""
    api = environment.api
    api.delete(f"{_POLICIES}/validatingadmissionpolicybindings/admission-policy-binding", missing_ok=True)
    api.delete(f"{_POLICIES}/validatingadmissionpolicies/admission-policy", missing_ok=True)
    left = [path for path in _LEFTOVERS if _items(api, path)]
    for path in left:
        for item in _items(api, path):
            _delete(api, f"{path}/{item['metadata']['name']}", item)
    try:
        for path in left:
            api.wait(partial(_items, api, path), not_, timeout=_CLEAN_SECONDS, what=f"{path} to be empty")
    except TimeoutError:
        return False
    environment.aws.set_faults()
    return True


def _delete(api: KubernetesApi, path: str, item: dict[str, Any]) -> None:
    finalizers = item["metadata"].get("finalizers") or []
    if _FINALIZER in finalizers:
        others = [finalizer for finalizer in finalizers if finalizer != _FINALIZER]
        api.patch(path, {"metadata": {"finalizers": others}}, kind="merge")
    api.delete(path, propagation="Background", missing_ok=True)


def _items(api: KubernetesApi, path: str) -> list[dict[str, Any]]:
    try:
        return list(api.list(path))
    except ApiError as error:
        if error.status != 404:
            raise
        return []


def _foreign_kinds(source: Source, go: Path) -> Iterator[dict[str, Any]]:
    """Those of modules that the suites' own go.mod requires, in the version that it requires."""
    for module, folder in _FOREIGN_KINDS.items():
        yield from _documents(module_folder(go, source.folder, module) / folder)


def _documents(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.yaml")):
        yield from (document for document in yaml.safe_load_all(file.read_text()) if document)
