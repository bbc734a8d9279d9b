"""What goes wrong around the controller is told in one clear line, the pod says why it waits, then all works.

Next to these: a cluster without the custom kinds (`test_bare_cluster`), a missing toolchain
(`tests/localenv/control_plane`).
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localenv.environment import NAMESPACE, Environment, EnvironmentFailed, Options
from tests.environment.heard import Heard
from tests.environment.user import POOLS, TEMPLATES, User

pytestmark = pytest.mark.environment

NOBODY = {"nodeless-test": "nobody"}


@contextmanager
def taken_port() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


@pytest.mark.parametrize(("option", "who"), [("port", "kube-apiserver"), ("aws_port", "the local AWS")])
def test_a_taken_port_is_said_in_one_line_and_nothing_is_started(
    tmp_path: Path, option: str, who: str
) -> None:
    with taken_port() as port, pytest.raises(EnvironmentFailed) as failure:
        Environment.start(tmp_path / "own", report=Heard(), options=Options(**{option: port}))
    said = str(failure.value)
    assert f"{who} cannot listen on 127.0.0.1:{port}: the port is taken" in said
    assert "hint:" in said
    assert len(said.splitlines()) == 1
    assert not any((tmp_path / "own").iterdir())


@pytest.mark.parametrize("program", ["kube-scheduler", "kube-apiserver", "kube-controller-manager", "etcd"])
def test_a_killed_program_of_the_control_plane_is_started_again_and_pods_get_their_node(
    user: User, program: str
) -> None:
    heard = user.environment.report
    assert isinstance(heard, Heard)
    before = len(heard.lines)
    user.pool()
    user.deploy("web", 2)
    os.kill(user.environment.control_plane.processes[program].pid, signal.SIGKILL)
    # The end of the program may come between the two pods, which are two batches then: each has its node.
    nodes = user.runs("web", 2, timeout=90)
    assert 1 <= len(nodes) <= 2
    assert len(user.launched()) == len(nodes)
    (line,) = user.api.wait(lambda: heard.lines[before:], what=f"a line about {program}")
    assert f"{program} was killed by SIGKILL: started again" in line


def test_a_launch_that_cannot_reach_aws_is_told_to_the_pod_and_made_up_for(user: User) -> None:
    user.pool()
    user.deploy("first")
    user.runs("first")
    user.environment.aws.set_faults(unreachable=True)
    user.deploy("web", cpu="3")
    pod = user.pending("web")
    unreachable = f"cannot reach ec2 at {user.environment.aws.endpoint_url}"
    event = user.told(pod, "FailedLaunch", unreachable, "hint: check AWS_ENDPOINT_URL")
    assert event["type"] == "Warning"
    user.logged("launch failed", unreachable, "hint:")
    assert user.still_pending(pod)
    user.environment.aws.set_faults()
    user.runs("web")
    assert len(user.launched()) == 2


def test_a_pool_made_while_aws_is_out_of_reach_is_told_so_and_used_once_it_is_back(user: User) -> None:
    user.environment.aws.set_faults(unreachable=True)
    # A selector of its own: what another pool's selector has found need not be looked up again.
    user.pool(template=user.template(subnetSelector={**user.discovery, "Name": "*"}))
    user.deploy("web")
    pod = user.pending("web")
    user.told(pod, "FailedScheduling", "Provisioner/small", "cannot reach", "hint: check AWS_ENDPOINT_URL")
    user.told(user.api.get(f"{POOLS}/small"), "NotReady", "cannot reach", "hint: check AWS_ENDPOINT_URL")
    assert user.still_pending(pod)
    user.environment.aws.set_faults()
    user.runs("web")


def test_a_role_that_does_not_trust_the_controller_is_told_and_works_once_it_does(user: User) -> None:
    environment = user.environment
    iam = environment.aws.client("iam")
    role = environment.stack.outputs()["controllerRoleArn"].rpartition("/")[2]
    trust = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(_for_another_account(trust)))
    try:
        # Whoever leads next, in this pod or the other, has no credentials yet; the leader's live for an hour.
        os.kill(environment.await_leader().pid, signal.SIGTERM)
        refused = "Not authorized to perform sts:AssumeRoleWithWebIdentity"
        user.logged("the cloud cannot be used yet", refused, "hint: check the trust policy of the role")
        user.pool()
        user.deploy("web")
        pod = user.pending("web")
        user.told(pod, "FailedScheduling", "Provisioner/small", refused)
        assert user.still_pending(pod)
    finally:
        iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(trust))
    user.runs("web")


def _for_another_account(trust: dict[str, object]) -> dict[str, object]:
    """A trust policy in which the service account has another name."""
    changed: dict[str, object] = json.loads(
        json.dumps(trust).replace(f"system:serviceaccount:{NAMESPACE}:", "system:serviceaccount:elsewhere:")
    )
    assert changed != trust
    return changed


@pytest.mark.parametrize(
    ("selector", "kind"), [("subnetSelector", "subnet"), ("securityGroupSelector", "security-group")]
)
def test_a_selector_that_finds_nothing_is_named_to_pod_pool_and_template_and_cured_by_tagging(
    user: User, selector: str, kind: str
) -> None:
    user.pool(template=user.template(**{selector: NOBODY}))
    user.deploy("web")
    pod = user.pending("web")
    words = (f"match {selector} nodeless-test=nobody", "hint: tag the")
    event = user.told(pod, "FailedScheduling", *words)
    assert event["type"] == "Warning"
    for path in (f"{POOLS}/small", f"{TEMPLATES}/small"):
        user.told(user.api.get(path), "NotReady", *words)
    user.logged(*words)
    assert user.still_pending(pod)
    with tagged(user, kind):
        user.runs("web")


@contextmanager
def tagged(user: User, kind: str) -> Iterator[None]:
    """Let the subnets or security groups of the stack bear the tag that the selector asks for."""
    ec2 = user.environment.aws.client("ec2")
    (key, cluster), *_ = user.discovery.items()
    filters = [
        {"Name": "resource-type", "Values": [kind]},
        {"Name": "key", "Values": [key]},
        {"Name": "value", "Values": [cluster]},
    ]
    ids = [each["ResourceId"] for each in ec2.describe_tags(Filters=filters)["Tags"]]
    assert ids
    tags = [{"Key": name, "Value": value} for name, value in NOBODY.items()]
    ec2.create_tags(Resources=ids, Tags=tags)
    try:
        yield
    finally:
        ec2.delete_tags(Resources=ids, Tags=tags)


def test_a_pod_that_no_type_fits_is_told_what_it_asks_for_and_what_the_largest_has(user: User) -> None:
    user.pool()
    user.deploy("huge", cpu="1000")
    pod = user.pending("huge")
    # Of the pool's two types an m5.xlarge is the larger: 4 vCPUs, 80 millicores of them the kubelet's.
    event = user.told(pod, "FailedScheduling", "cpu", "1000", "3920m")
    assert event["type"] == "Warning"
    user.logged("no capacity for pod", "cpu", "1000")
    assert user.still_pending(pod)
    assert user.launched() == []
    api = user.api
    small = [
        {"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/cpu", "value": "2"}
    ]
    api.patch(f"/apis/apps/v1/namespaces/{user.namespace}/deployments/huge", small, kind="json")
    user.runs("huge")


def test_a_leader_killed_between_the_fleet_request_and_its_record_leaves_one_node_and_no_orphan(
    user: User,
) -> None:
    environment = user.environment
    leader = environment.await_leader()
    environment.aws.set_faults(delay={"CreateFleet": 30.0})
    user.pool()
    user.deploy("web", 3)
    (instance,) = user.api.wait(user.launched, timeout=40, what="an instance")
    (claim,) = user.claims()
    assert not claim.get("status", {}).get("providerID"), "the answer is still on its way"
    os.kill(leader.pid, signal.SIGKILL)
    # Its pod goes too, as with its machine: started again, it would be the same replica.
    user.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{leader.pod}", grace_seconds=0)
    environment.aws.set_faults()
    environment.await_leader(other_than=leader.pod)
    nodes = user.runs("web", 3)
    assert user.nodes() == sorted(nodes)
    assert len(nodes) == 1
    assert user.launched() == user.instances() == [instance]
    (recorded,) = user.api.wait(
        user.claims,
        lambda claims: len(claims) == 1 and _initialized(claims[0]),
        what="the claim to be initialized",
    )
    assert recorded["metadata"]["uid"] == claim["metadata"]["uid"]
    assert recorded["status"]["providerID"].endswith(instance)
    assert recorded["status"]["nodeName"] in nodes


def _initialized(claim: dict[str, object]) -> bool:
    conditions = (claim.get("status") or {}).get("conditions") or []  # type: ignore[attr-defined]
    return any(each["type"] == "Initialized" and each["status"] == "True" for each in conditions)
