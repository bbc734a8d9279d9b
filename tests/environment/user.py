"""What a test does on a running environment, in a user's words: make pools, run pods, look at what is told.

Every wait has a deadline, and its message shows what was seen last. Cleaning up waits until
no claim, node or instance of a pool is left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from localenv.environment import Environment
from localenv.kubernetes import ApiError, Object, Objects

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOLS = "/apis/karpenter.sh/v1alpha5/provisioners"
TEMPLATES = "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates"
NODES = "/api/v1/nodes"
OF_A_POOL = "karpenter.sh/provisioner-name"
LIVING = ("pending", "running", "stopping", "stopped", "shutting-down")
EVERY = (*LIVING, "terminated")
COMPONENT = "karpenter"


class User:
    """Makes things in a namespace of its own and tells what became of them."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.api = environment.api
        self.discovery = {"karpenter.sh/discovery": environment.options.cluster_name}
        made = self.api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
        )
        self.namespace: str = made["metadata"]["name"]
        self._log_sizes = {log: log.stat().st_size for log in environment.controller_logs()}
        self._former = {*self.instances(*EVERY)}

    # What a user makes.

    def pool(self, name: str = "small", *, template: Object | None = None, **spec: Any) -> None:
        """A Provisioner of small on-demand machines and its AWSNodeTemplate (`template`: its spec)."""
        for manifest in pool_manifests(name, template or self.template(), **spec):
            self.api.create(manifest)

    def template(self, **spec: Any) -> Object:
        """The spec of a node template that selects what the stack has tagged."""
        return {"subnetSelector": self.discovery, "securityGroupSelector": self.discovery, **spec}

    def deploy(self, name: str, replicas: int = 1, *, cpu: str = "1") -> None:
        """A Deployment whose pods sleep."""
        self.api.create(deployment_manifest(name, self.namespace, replicas, cpu))

    # What a user sees.

    def pods(self, name: str) -> Objects:
        """The pods of a deployment."""
        return self.api.list(f"/api/v1/namespaces/{self.namespace}/pods", label_selector=f"app={name}")

    def runs(self, name: str, replicas: int = 1, *, timeout: float = 60) -> set[str]:
        """Wait until all pods of a deployment run; give the names of their nodes."""

        def all_run(pods: Objects) -> bool:
            return len(pods) == replicas and all(pod["status"].get("phase") == "Running" for pod in pods)

        pods = self.api.wait(
            lambda: self.pods(name), all_run, timeout=timeout, what=f"{replicas} pods of {name} to run"
        )
        return {pod["spec"]["nodeName"] for pod in pods}

    def pending(self, name: str) -> Object:
        """Wait for the one pod of a deployment that no node takes."""
        (pod,) = self.api.wait(
            lambda: self.pods(name),
            lambda pods: len(pods) == 1 and _unschedulable(pods[0]),
            what=f"the pod of {name} to be pending",
        )
        return dict(pod)

    def told(
        self, about: Object, reason: str, *words: str, component: str = COMPONENT, timeout: float = 40
    ) -> Object:
        """Wait for an event about an object, with a reason and with words in its message."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")

        def matching() -> Objects:
            return [
                event
                for event in self.api.events(namespace, metadata["name"])
                if event["involvedObject"].get("uid") == metadata["uid"]
                and event["reason"] == reason
                and event["source"].get("component") == component
                and all(word in event["message"] for word in words)
            ]

        def seen() -> Any:
            return matching() or [
                (event["reason"], event["message"]) for event in self.api.events(namespace, metadata["name"])
            ]

        found = self.api.wait(
            seen,
            lambda events: bool(events) and isinstance(events[0], dict),
            timeout=timeout,
            what=f"{reason} with {words} about {metadata['name']}",
        )
        return dict(found[-1])

    def still_pending(self, pod: Object) -> bool:
        """Whether a pod exists unchanged and waits for a node."""
        found = self.api.find(self.api.path_of(pod))
        return (
            found is not None
            and found["metadata"]["uid"] == pod["metadata"]["uid"]
            and not found["spec"].get("nodeName")
        )

    def logged(self, *words: str, timeout: float = 40) -> str:
        """Wait for a line of the controller's replicas, of this test's time, with all these words."""

        def found() -> str:
            return next((line for line in self.log_messages() if all(word in line for word in words)), "")

        return str(self.api.wait(found, timeout=timeout, what=f"a log line with {words}"))

    def log_messages(self) -> list[str]:
        """The messages that the controller's replicas have logged since the test began."""
        return list(_messages(self.environment.controller_logs(), self._log_sizes))

    def claims(self) -> Objects:
        return self.api.list(CLAIMS)

    def nodes(self) -> list[str]:
        """Names of the nodes that belong to pools."""
        return sorted(node["metadata"]["name"] for node in self.api.list(NODES, label_selector=OF_A_POOL))

    def instances(self, *states: str) -> list[str]:
        """Ids of the instances that were launched for claims, by default those that live."""
        filters = [
            {"Name": "instance-state-name", "Values": [*(states or LIVING)]},
            {"Name": "tag-key", "Values": [OF_A_POOL]},
        ]
        pages = self.environment.aws.client("ec2").get_paginator("describe_instances")
        return [
            instance["InstanceId"]
            for page in pages.paginate(Filters=filters)
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        ]

    def launched(self) -> list[str]:
        """Ids of all instances that were launched since the test began, the terminated ones included."""
        return sorted({*self.instances(*EVERY)} - self._former)

    # Afterwards.

    def clear(self) -> None:
        """Delete everything of the test and wait until pools, claims, nodes and instances are gone."""
        api = self.api
        for deployment in api.list(f"/apis/apps/v1/namespaces/{self.namespace}/deployments"):
            api.delete(api.path_of(deployment), propagation="Background", missing_ok=True)
        with suppress(ApiError):  # a test may leave the cluster without the kinds
            for collection in (POOLS, TEMPLATES):
                for item in api.list(collection):
                    api.delete(f"{collection}/{item['metadata']['name']}", missing_ok=True)
            api.wait(
                lambda: [*api.list(POOLS), *self.claims(), *self.nodes(), *self.instances()],
                lambda left: not left,
                timeout=90,
                what="pools, claims, nodes and instances to go",
            )
        api.delete(f"/api/v1/namespaces/{self.namespace}")


def pool_manifests(name: str, template: Object, **spec: Any) -> tuple[Object, Object]:
    """An AWSNodeTemplate of Bottlerocket, if it does not say otherwise, and a Provisioner that uses it."""
    requirements = [
        _requirement("node.kubernetes.io/instance-type", "m5.large", "m5.xlarge"),
        _requirement("karpenter.sh/capacity-type", "on-demand"),
    ]
    return (
        {
            "apiVersion": "karpenter.k8s.aws/v1alpha1",
            "kind": "AWSNodeTemplate",
            "metadata": {"name": name},
            "spec": {"amiFamily": "Bottlerocket", **template},
        },
        {
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": {"name": name},
            "spec": {"providerRef": {"name": name}, "requirements": requirements, **spec},
        },
    )


def deployment_manifest(name: str, namespace: str, replicas: int, cpu: str) -> Object:
    """A Deployment whose pods ask for CPU and do nothing."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [
                        {
                            "name": "pause",
                            "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.2",
                            "resources": {"requests": {"cpu": cpu}},
                        }
                    ],
                },
            },
        },
    }


def _requirement(key: str, *values: str) -> Object:
    return {"key": key, "operator": "In", "values": [*values]}


def _unschedulable(pod: Object) -> bool:
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False"
        for each in pod["status"].get("conditions", ())
    )


def _messages(logs: Iterable[Path], sizes: dict[Path, int]) -> Iterable[str]:
    for log in logs:
        with log.open("rb") as file:
            file.seek(sizes.get(log, 0))
            lines = file.read().decode(errors="replace").splitlines()
        for line in lines:
            yield _message(line)


def _message(line: str) -> str:
    """The message of a structured line; other lines (of a process that ends) are their own message."""
    try:
        return str(json.loads(line)["message"])
    except (ValueError, KeyError, TypeError):
        return line
