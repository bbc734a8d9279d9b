"""The controller's rights beside what it asked of the API server in a whole life: none missing, none unused.

It runs in its pods, with the token of its service account and what the stack granted. The API server's
audit log is the record. `a_whole_life` goes where the rights are needed that no plain day needs.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.environment import CONTROLLER, Environment, Options
from localenv.kubernetes import Object, is_established
from localenv.kueue import provisioning_request_definition
from localenv.progress import silent
from localenv.rbac import Call, Right, common_rights, compare, own_rights, read_calls
from nodeless.api.crds import all_crds
from nodeless.controllers.disruption.gang_pauses import PAUSES_NAME
from nodeless.controllers.nodeclaim.measured_capacity import MEASURED_NAME
from nodeless.model.labels import GANG_SIZE, SURGE
from nodeless.model.neighbors import AUTOSCALER_STATUS
from nodeless.scheduling.pods.gangs import GROUP_LABELS
from tests.api.manifests import ec2_node_class, node_pool
from tests.controllers.buffers import DEFINITION, GROUP, a_buffer, a_definition, a_pod_template
from tests.controllers.gangs import PATHS as GANG_DEFINITIONS
from tests.controllers.gangs import gang_definitions
from tests.controllers.process import Replicas, a_cluster, settings
from tests.controllers.requests import CHECK, a_request
from tests.controllers.requests import DEFINITION as REQUEST_DEFINITION
from tests.controllers.test_node_overlays import an_overlay
from tests.controllers.vertical_autoscalers import DEFINITION as VERTICAL_DEFINITION
from tests.controllers.vertical_autoscalers import a_vertical_definition
from tests.controllers.world import (
    OVERLAYS,
    Kubelets,
    Network,
    a_budget,
    a_pod,
    a_provisioner,
    a_template,
)
from tests.environment.heard import Heard
from tests.environment.user import CLAIMS, NODES, User, deployment_manifest
from tests.rights import FORBIDDEN, USER, right_to_surge

pytestmark = pytest.mark.environment

OF_ITS_NAMESPACE = f"/api/v1/namespaces/{CONTROLLER.namespace}"
GATES = {
    "nodeless.capacityBuffers": "true",
    "nodeless.nodeOverlays": "true",
    "nodeless.provisioningRequests": "true",
    "nodeless.verticalPodAutoscalers": "true",
    "nodeless.gangTimeout": "1s",
}


@dataclass(frozen=True)
class Life:
    """What a controller was granted, and what it asked for until the stack was destroyed.

    Attributes:
        rights: Bound to its service account.
        common: What every service account may do.
        calls: What it asked for, with the worst status that was answered.
    """

    rights: frozenset[Right]
    common: frozenset[Right]
    calls: dict[Call, int]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    options = Options(audited=True, config={"nodeless:controllerSettings": json.dumps(GATES)})
    directory = tmp_path_factory.mktemp("rights")
    with Environment.start(directory, report=Heard(), options=options) as environment:
        a_whole_life(environment)
        rights = own_rights(environment.api, CONTROLLER)
        common = common_rights(environment.api, CONTROLLER)
        # The pools of both generations are still there: the controller deletes them.
        environment.destroy()
        yield Life(rights, common, read_calls(environment.control_plane.audit_log, CONTROLLER.user))


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Call, int]]:
    """What a controller with these rights asks of an API server without streaming lists, until a pod runs."""
    directory, namespace = tmp_path_factory.mktemp("older"), CONTROLLER.namespace
    with (
        ControlPlane.start(
            directory / "control-plane", audited_users=(USER,), streaming_lists=False
        ) as plane,
        LocalAws.start(directory / "aws") as aws,
    ):
        api, network = plane.client(), Network(aws)
        a_cluster(plane, aws, network)
        asked_by_kueue = provisioning_request_definition(silent)
        others = (a_definition(), a_vertical_definition(), asked_by_kueue, *gang_definitions())
        for manifest in (*all_crds(), *others, a_namespace(namespace)):
            api.apply(manifest)
        for definition in (REQUEST_DEFINITION, *GANG_DEFINITIONS):
            api.wait(definition, is_established)
        api.wait(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        api.create(settings(namespace, **GATES))
        replicas = Replicas(plane, aws, namespace, directory)
        replicas("only")
        for manifest in (a_template(), a_provisioner(), a_pod("web", namespace)):
            api.create(manifest)
        kubelets = Kubelets(api, network)

        def running() -> bool:
            kubelets.turn()
            return api.get(f"/api/v1/namespaces/{namespace}/pods/web")["status"].get("phase") == "Running"

        api.wait(running, what="the pod to run")
        replicas.end()
        api.close()
        yield read_calls(plane.audit_log, USER)


def test_the_controller_asks_for_nothing_that_it_may_not_do(life: Life) -> None:
    assert compare(life.rights, life.calls, life.common).missing == ()
    assert [str(call) for call, status in life.calls.items() if status == FORBIDDEN] == []


def test_on_a_server_that_streams_no_lists_it_asks_for_nothing_more(
    life: Life, older: dict[Call, int]
) -> None:
    assert {call.verb for call in older} >= {"list", "watch"}
    assert compare(life.rights, older, life.common).missing == ()
    assert [str(call) for call, status in older.items() if status == FORBIDDEN] == []


def test_the_controller_has_no_right_that_it_does_not_use(life: Life, older: dict[Call, int]) -> None:
    assert [str(right) for right in compare(life.rights, [*life.calls, *older]).unused] == []


def test_each_right_of_the_controller_would_be_missed(life: Life, older: dict[Call, int]) -> None:
    """No right is granted twice: without any one of them something is refused."""
    calls = [*life.calls, *older]
    spare = [
        str(right)
        for right in sorted(life.rights)
        if not compare(life.rights - {right}, calls, life.common).missing
    ]
    assert spare == []


def a_whole_life(environment: Environment) -> None:
    """From the first start, which makes lease, certificate and CA bundles, up to the teardown."""
    user = User(environment)
    for manifest in right_to_surge(user.namespace):
        user.api.create(manifest)
    user.api.apply(a_definition())
    user.api.apply(a_vertical_definition())
    user.api.apply(provisioning_request_definition(silent))
    for definition in (DEFINITION, VERTICAL_DEFINITION, REQUEST_DEFINITION):
        user.api.wait(definition, is_established)
    user.pool("small")
    for manifest in a_pool_of_short_drains(user):
        user.api.create(manifest)
    a_webhook_certificate_is_lost(user)
    for manifest in (
        a_pod_template(user.namespace),
        a_buffer(user.namespace, replicas=1),
        a_request(user.namespace, count=1, class_name=CHECK),
        an_overlay("of-nothing", "none.large", price="1"),
        one_that_surges(user),
        one_behind_a_budget(user),
        a_budget("held", user.namespace, app="held"),
    ):
        user.api.create(manifest)
    user.deploy("web", 2)
    # Usually one: on a slow machine the pods may be planned one after the other.
    nodes = {min(user.runs("web", 2)), *user.runs("shop")}
    user.runs("held")
    what_nodes_have_is_kept(user)
    room_stands_ready(user)
    requests_are_answered(user)
    overlays_are_looked_at(user)
    another_autoscaler_is_seen(user)
    a_gang_is_released(user)
    two_nodes_are_planned_at_once(user)
    for node in sorted(nodes):
        a_node_is_deleted(user, node)
    a_drain_takes_too_long(user)
    another_replica_leads(user)


def a_namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def a_pool_of_short_drains(user: User) -> tuple[Object, Object]:
    """A NodePool, whose nodes wait a second for their pods, and its EC2NodeClass."""
    selected = {"tags": user.discovery}
    node_class = ec2_node_class(
        subnetSelectorTerms=[selected],
        securityGroupSelectorTerms=[selected],
        instanceProfile=user.environment.stack.outputs()["instanceProfileName"],
    )
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
    pool = node_pool(
        template={
            "requirements": [types],
            "taints": [{"key": "held", "effect": "NoSchedule"}],
            "terminationGracePeriod": "1s",
        }
    )
    return node_class, pool


def one_that_surges(user: User) -> Object:
    """A Deployment whose one pod shares a node with `web`, and leaves it after its successor is ready."""
    manifest = deployment_manifest("shop", user.namespace, 1, "100m")
    near = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    template = manifest["spec"]["template"]
    template["metadata"]["annotations"] = {SURGE: "true"}
    template["spec"]["affinity"] = {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": near}]
        }
    }
    return manifest


def one_behind_a_budget(user: User) -> Object:
    """A Deployment on the NodePool."""
    manifest = deployment_manifest("held", user.namespace, 1, "1")
    manifest["spec"]["template"]["spec"] |= {
        "tolerations": [{"key": "held", "operator": "Exists"}],
        "nodeSelector": {"karpenter.sh/nodepool": "default"},
    }
    return manifest


def a_webhook_certificate_is_lost(user: User) -> None:
    """Somebody empties the Secret: it is filled again."""
    path = f"{OF_ITS_NAMESPACE}/secrets/karpenter-cert"
    user.api.patch(path, {"data": None})
    user.api.wait(path, lambda secret: secret.get("data"), what="the certificate to be made anew")


def what_nodes_have_is_kept(user: User) -> None:
    user.api.wait(f"{OF_ITS_NAMESPACE}/configmaps/{MEASURED_NAME}")


def room_stands_ready(user: User) -> None:
    path = f"/apis/{GROUP}/v1beta1/namespaces/{user.namespace}/capacitybuffers/spare"
    user.api.wait(path, lambda buffer: buffer.get("status"), what="the buffer to have a status")


def requests_are_answered(user: User) -> None:
    path = f"/apis/{GROUP}/v1/namespaces/{user.namespace}/provisioningrequests/job"
    user.api.wait(path, lambda request: request.get("status"), what="the request to be answered")


def overlays_are_looked_at(user: User) -> None:
    path = f"{OVERLAYS}/of-nothing"
    user.api.wait(path, lambda overlay: overlay.get("status"), what="the overlay to have a status")


def another_autoscaler_is_seen(user: User) -> None:
    """Its pod waits for a label that no node bears; its groups are asked for all the same."""
    pod = a_pod("cluster-autoscaler", "kube-system", nodeSelector={"none": "such"})
    pod["spec"]["containers"][0]["image"] = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
    user.api.create(pod)
    log = user.environment.control_plane.audit_log

    def asked() -> bool:
        return any(call.name == AUTOSCALER_STATUS for call in read_calls(log, CONTROLLER.user))

    user.api.wait(asked, what="the autoscaler's groups to be asked for")
    user.api.delete("/api/v1/namespaces/kube-system/pods/cluster-autoscaler", grace_seconds=0)


def a_gang_is_released(user: User) -> None:
    """Nobody binds its pods, for which no node has room: their nodes end, and until when it waits is kept."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    for name in ("gang-0", "gang-1"):
        pod = a_pod(name, user.namespace, cpu="3", schedulerName="nobody")
        pod["metadata"] |= {"annotations": {GANG_SIZE: "2"}, "labels": {GROUP_LABELS[0]: "gang"}}
        path = user.api.path_of(user.api.create(pod))
        user.api.patch(path, {"status": {"conditions": [refused]}}, kind="strategic", subresource="status")
    user.api.wait(f"{OF_ITS_NAMESPACE}/configmaps/{PAUSES_NAME}")
    for name in ("gang-0", "gang-1"):
        user.api.delete(f"/api/v1/namespaces/{user.namespace}/pods/{name}", grace_seconds=0)


def two_nodes_are_planned_at_once(user: User) -> None:
    """Which pod goes to which of them is then said to kube-scheduler."""
    log = user.environment.control_plane.audit_log
    for name in ("alone", "apart"):
        # More than there can be nodes without a pod: one stands ready, and pods may have left others.
        manifest = deployment_manifest(name, user.namespace, 6, "100m")
        alone = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
        manifest["spec"]["template"]["spec"]["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}
        }
        user.api.create(manifest)
        user.runs(name, 6)
        # Unless their nodes came up one by one: then there was nothing to choose.
        if any(call.resource == "pods/status" for call in read_calls(log, CONTROLLER.user)):
            return


def a_node_is_deleted(user: User, node: str) -> None:
    """Its pods are evicted, or restarted elsewhere first."""
    user.api.delete(f"{NODES}/{node}")
    user.api.wait_gone(f"{NODES}/{node}")
    user.runs("web", 2)


def a_drain_takes_too_long(user: User) -> None:
    """A budget that never yields: the pod is deleted when the time is over."""
    (claim,) = user.api.list(CLAIMS, label_selector="karpenter.sh/nodepool=default")
    path = user.api.path_of(claim)
    user.api.delete(path)
    user.api.wait_gone(path)


def another_replica_leads(user: User) -> None:
    leader = user.environment.await_leader()
    os.kill(leader.pid, signal.SIGTERM)
    # The other replica, or the same pod's next process where that is faster.
    user.api.wait(
        user.environment.leader,
        lambda found: found is not None and found.pid != leader.pid,
        what="another process to lead",
    )
