"""The whole environment with EKS Pod Identity instead of IAM roles for service accounts.

The controller runs on machines of a node group then, since Fargate has no agent that hands credentials out.
It runs in kube-system, where Karpenter's documentation has it: a namespace that the stack neither makes nor
deletes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from localenv.environment import Environment, Options
from localenv.node_group import LABEL, node_group
from tests.environment.heard import Heard
from tests.environment.test_stack import what_aws_has
from tests.environment.user import User

pytestmark = [pytest.mark.environment, pytest.mark.drawn("environments of their own")]

#: As docs/guides/controller-on-nodes.md says it.
CONFIG = {
    "nodeless:controllerNamespace": "kube-system",
    "nodeless:controllerIdentity": "pod-identity",
    "nodeless:fargateProfiles": json.dumps(
        [
            {
                "name": "kube-system",
                "selectors": [{"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}],
            }
        ]
    ),
}


def controllers_calls(environment: Environment) -> list[dict[str, Any]]:
    """What was asked of AWS in the name of the controller's role."""
    role = f":assumed-role/{environment.stack.outputs()['controllerRoleName']}/"
    return [call for call in environment.aws.calls() if role in call["principal"]]


def test_on_nodes_of_a_group_the_controller_gets_its_role_by_pod_identity_and_makes_a_node(
    tmp_path: Path,
) -> None:
    options = Options(with_stack=False, config=CONFIG)
    with Environment.start(tmp_path, report=Heard(), options=options) as environment:
        with node_group(environment, "control", 2):
            assert set(environment.up()) == {"create"}
        user = User(environment)
        user.pool()
        user.deploy("web", 2)

        (node,) = user.runs("web", 2)

        assert user.nodes() == [node]
        assert len(user.launched()) == 1
        assert on_the_group(environment, "control") == environment.controller_pods()
        assert no_role_is_assumed_by_token(environment)
        calls = controllers_calls(environment)
        assert "CreateFleet" in {call["action"] for call in calls}
        sessions = {call["principal"].rpartition("/")[2] for call in calls}
        named_by_eks = f"eks-{options.cluster_name}-karpenter-"
        assert {each for each in sessions if not each.startswith(named_by_eks)} == set()
        (operation,) = environment.up()
        assert operation == "same"
        destroy_goes_on_by_a_sweep_when_the_nodes_of_the_controller_went_first(environment)


def destroy_goes_on_by_a_sweep_when_the_nodes_of_the_controller_went_first(environment: Environment) -> None:
    """With its node group the controller is gone for good, while a node, its claim and its pool stand."""
    api, guard = (
        environment.api,
        f"/api/v1/namespaces/{environment.options.namespace}/configmaps/nodeless-teardown",
    )
    end(environment, "control")
    with ThreadPoolExecutor(1) as aside:
        destroying = aside.submit(environment.destroy)
        api.wait(
            lambda: api.get(guard)["metadata"].get("deletionTimestamp"),
            timeout=60,
            what="the engine to delete the guard",
        )
        swept = sweep(environment)
        assert not destroying.done() or destroying.exception() is None
        destroying.result(timeout=240)
    assert "1 instance, 1 launch template" in swept
    for held in ("Provisioner/small", "NodeClaim/small-", "Node/", "ConfigMap/nodeless-teardown"):
        assert held in swept.partition("finalizers removed: ")[2]
    assert what_aws_has(environment) == {}
    assert api.get("/api/v1/namespaces/kube-system")["status"]["phase"] == "Active"
    api.wait(
        lambda: api.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        lambda left: not left,
        timeout=60,
        what="the kinds to be gone",
    )


def end(environment: Environment, name: str) -> None:
    """End the machines of a node group, and wait until no pod of the controller runs."""
    nodes = environment.api.list("/api/v1/nodes", label_selector=f"{LABEL}={name}")
    ids = [node["spec"]["providerID"].rpartition("/")[2] for node in nodes]
    environment.aws.client("ec2").terminate_instances(InstanceIds=ids)
    environment.api.wait(
        lambda: on_the_group(environment, name) or environment.controller_pods(),
        lambda left: not left,
        timeout=60,
        what="the controller's pods to go with their nodes",
    )


def sweep(environment: Environment) -> str:
    """What `nodeless sweep` says that it did, as an administrator runs it."""
    cluster = environment.options.cluster_name
    command = [sys.executable, "-m", "nodeless", "sweep", "--cluster", cluster, "--yes", "--finalizers"]
    command += ["--namespace", environment.options.namespace]
    variables = {**os.environ, **environment.variables()}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_the_group(environment: Environment, name: str) -> list[str]:
    """The controller's pods that run on machines of a node group."""
    nodes = environment.api.list("/api/v1/nodes", label_selector=f"{LABEL}={name}")
    names = {node["metadata"]["name"] for node in nodes}
    pods = pods_of_the_controller(environment)
    return sorted(pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") in names)


def pods_of_the_controller(environment: Environment) -> list[dict[str, Any]]:
    path = f"/api/v1/namespaces/{environment.options.namespace}/pods"
    return list(environment.api.list(path, label_selector="app.kubernetes.io/name=karpenter"))


def no_role_is_assumed_by_token(environment: Environment) -> bool:
    """Whether neither the service account nor a pod of it says that its token stands for a role."""
    account = environment.api.get(
        f"/api/v1/namespaces/{environment.options.namespace}/serviceaccounts/karpenter"
    )
    pods = pods_of_the_controller(environment)
    variables = {
        each["name"]
        for pod in pods
        for container in pod["spec"]["containers"]
        for each in container.get("env") or ()
    }
    annotations = account["metadata"].get("annotations") or {}
    return not {key for key in annotations if "role" in key} and "AWS_ROLE_ARN" not in variables
