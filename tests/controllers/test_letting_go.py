"""`nodeless sweep --finalizers`: what a controller that is gone for good holds in the cluster."""

import threading
import time
from datetime import UTC, datetime

import pytest

from localenv.kubernetes import ApiError
from nodeless.controllers.executor.teardown_guard import GUARD_NAME
from nodeless.model.object_names import LEASE_NAME
from tests.controllers.world import CLAIMS, NODES, POOLS

pytestmark = pytest.mark.cluster

TERMINATION = "karpenter.sh/termination"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
def orphaned(api, aws, claimed):
    """Pool, claim and node are held, the guard is being deleted, and a webhook asks who is not there."""
    where = [f"{POOLS}/default", f"{CLAIMS}/default-{claimed}", f"{NODES}/n1-{claimed}"]
    for path in where:
        # Somebody else's finalizer is somebody else's to take off.
        api.patch(path, {"metadata": {"finalizers": [TERMINATION, "example.com/own"]}})
    guard = {"name": GUARD_NAME, "namespace": claimed, "finalizers": ["nodeless.dev/teardown"]}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": guard})
    where.append(f"/api/v1/namespaces/{claimed}/configmaps/{GUARD_NAME}")
    api.delete(where[-1])
    api.create(a_webhook(claimed))
    api.wait(lambda: refused(api), what="changes of pools to be refused")
    yield where
    api.delete(f"{WEBHOOKS}/validation.webhook.karpenter.sh", missing_ok=True)


def a_webhook(namespace):
    rule = {"apiGroups": ["karpenter.sh"], "apiVersions": ["v1alpha5"], "resources": ["provisioners"]}
    service = {"name": "nobody", "namespace": namespace}
    webhook = {
        "name": "validation.webhook.karpenter.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "rules": [{**rule, "operations": ["CREATE", "UPDATE"], "scope": "Cluster"}],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": webhook["name"]},
        "webhooks": [webhook],
    }


def refused(api):
    try:
        api.patch(f"{POOLS}/default", {"metadata": {"annotations": {"asked": str(time.time())}}})
    except ApiError:
        return True
    return False


def test_without_yes_it_names_what_is_held_and_lets_nothing_go(api, claimed, nodeless, orphaned):
    told = nodeless("sweep", "--cluster", "demo", "--finalizers")
    assert told.exit_code == 1, told.output
    assert f"finalizers left: Provisioner/default, NodeClaim/default-{claimed}, Node/n1-" in told.stdout
    assert f"ConfigMap/{GUARD_NAME}" in told.stdout
    assert all(api.find(path) for path in orphaned)


def test_with_yes_the_objects_are_free_though_the_webhooks_of_the_dead_refuse_all(
    api, claimed, nodeless, orphaned
):
    told = nodeless("sweep", "--cluster", "demo", "--finalizers", "--yes")
    assert told.exit_code == 0, told.output
    assert "finalizers removed: Provisioner/default" in told.stdout
    *living, guard = orphaned
    assert api.find(guard) is None
    for path in living:
        assert api.get(path)["metadata"]["finalizers"] == ["example.com/own"]
    assert not refused(api)


def test_what_eks_auto_mode_holds_is_left_to_its_own_controller(api, claimed, nodeless, orphaned):
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"auto-{claimed}", "finalizers": [TERMINATION]},
        "spec": {
            "nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"},
            "requirements": [],
        },
    }
    labels = {"eks.amazonaws.com/compute-type": "auto"}
    node = {"name": f"auto-{claimed}", "labels": labels, "finalizers": [TERMINATION]}
    api.create(claim)
    api.create({"apiVersion": "v1", "kind": "Node", "metadata": node})
    theirs = [f"{CLAIMS}/auto-{claimed}", f"{NODES}/auto-{claimed}"]
    try:
        told = nodeless("sweep", "--cluster", "demo", "--finalizers", "--yes")
        assert told.exit_code == 0, told.output
        assert "auto-" not in told.stdout
        assert [api.get(path)["metadata"]["finalizers"] for path in theirs] == [[TERMINATION]] * 2
    finally:
        for path in theirs:
            api.patch(path, {"metadata": {"finalizers": []}})
            api.delete(path)


def test_while_a_controller_leads_nothing_is_let_go(api, claimed, nodeless, orphaned):
    over = threading.Event()
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{claimed}/leases"
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE_NAME, "namespace": claimed},
        "spec": {"holderIdentity": "karpenter-1", "leaseDurationSeconds": 15},
    }
    api.create(lease)

    def renew():
        while not over.wait(1):
            moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            api.patch(f"{leases}/{LEASE_NAME}", {"spec": {"renewTime": moment}})

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        told = nodeless("sweep", "--cluster", "demo", "--finalizers", "--yes")
    finally:
        over.set()
        renewing.join()
    assert told.exit_code == 2
    assert "a controller leads: karpenter-1; hint: " in told.stderr
    assert all(api.find(path) for path in orphaned)
