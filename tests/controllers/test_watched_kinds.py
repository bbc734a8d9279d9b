"""What is watched in a cluster without gangs, requests, buffers, overlays and autoscalers' kinds."""

import asyncio
from collections import Counter

import pytest

from localenv.kubernetes import is_established
from localenv.kueue import provisioning_request_definition
from localenv.progress import silent
from localenv.rbac.calls import read_events
from tests.controllers.gangs import PATHS as GANG_DEFINITIONS
from tests.controllers.gangs import gang_definitions
from tests.controllers.requests import DEFINITION as REQUEST_DEFINITION
from tests.rights import USER

pytestmark = pytest.mark.cluster
#: Once each: the kinds that every cluster of ours serves, and of devices those that Kubernetes itself serves.
ALWAYS = Counter(
    {
        "pods": 1,
        "nodes": 1,
        "namespaces": 1,
        "configmaps": 1,
        "persistentvolumeclaims": 1,
        "persistentvolumes": 1,
        "daemonsets.apps": 1,
        "jobs.batch": 1,
        "poddisruptionbudgets.policy": 1,
        "storageclasses.storage.k8s.io": 1,
        "csinodes.storage.k8s.io": 1,
        "volumeattachments.storage.k8s.io": 1,
        "resourceclaims.resource.k8s.io": 1,
        "resourceclaimtemplates.resource.k8s.io": 1,
        "resourceslices.resource.k8s.io": 1,
        "deviceclasses.resource.k8s.io": 1,
        "nodeclaims.karpenter.sh": 1,
        "nodepools.karpenter.sh": 1,
        "provisioners.karpenter.sh": 1,
        "awsnodetemplates.karpenter.k8s.aws": 1,
        "ec2nodeclasses.karpenter.k8s.aws": 1,
    }
)
PODS_THAT_REQUESTS_NAME = Counter({"podtemplates": 1})
REQUESTS = "provisioningrequests.autoscaling.x-k8s.io"
GANGS = {"podgroups.scheduling.x-k8s.io", "jobsets.jobset.x-k8s.io"}


@pytest.fixture
def watches(control_plane):
    """The watches that the API server has begun for the controller since the test began, by kind."""
    log = control_plane.audit_log
    start = log.stat().st_size if log.exists() else 0

    def begun():
        found = (
            event
            for event in read_events(log, start)
            if (event["user"]["username"], event["verb"], event["stage"])
            == (USER, "watch", "ResponseStarted")
        )
        about = (event["objectRef"] for event in found if event["responseStatus"]["code"] == 200)
        return Counter(".".join(filter(None, (each["resource"], each.get("apiGroup")))) for each in about)

    return begun


@pytest.fixture
def later(api):
    """Install definitions; they are removed afterwards."""
    installed = []

    def install(*definitions):
        for path, definition in definitions:
            installed.append(path)
            api.apply(definition)
            api.wait(path, is_established)

    yield install
    for path in installed:
        api.delete(path, missing_ok=True)
        api.wait_gone(path)


def test_with_all_of_it_turned_off_nothing_more_is_watched_than_without_it(scene, watches):
    async def scenario(rig, _namespace):
        await rig.until(watches, lambda found: found >= ALWAYS)
        assert watches() == ALWAYS

    scene(scenario, act=False)


def test_kinds_that_are_not_served_are_watched_once_they_are(scene, watches, later):
    async def scenario(rig, _namespace):
        await rig.until(watches, lambda found: found >= ALWAYS + PODS_THAT_REQUESTS_NAME)
        assert watches().keys() == (ALWAYS + PODS_THAT_REQUESTS_NAME).keys()
        definitions = zip(GANG_DEFINITIONS, gang_definitions(), strict=True)
        await asyncio.to_thread(
            later, (REQUEST_DEFINITION, provisioning_request_definition(silent)), *definitions
        )
        await rig.until(watches, lambda found: found.keys() >= {REQUESTS} | GANGS)

    scene(scenario, act=False, settings={"provisioning_requests": True})
