"""Pods that no pool may serve, beside one that a pool may: told why or left alone, and in nobody's way."""

import asyncio

import pytest

from tests.controllers.world import CLAIMS, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster


def requiring(*expressions, fields=()):
    """Required node affinity of one term."""
    term = {"matchExpressions": [*expressions]} if expressions else {}
    if fields:
        term["matchFields"] = [*fields]
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        }
    }


BY_NAME = [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
NO_POOL = {"key": "karpenter.sh/provisioner-name", "operator": "DoesNotExist"}
POOL = a_provisioner(labels={"example.com/team": "a"})
#: Name of the pod, its spec, and what it is told (None: nothing at all).
LEFT = {
    "none-of-ours": (requiring(NO_POOL), None),
    "by-node-name": (requiring(fields=BY_NAME), "matchFields"),
    "p-17-restricted-key": (
        requiring({"key": "karpenter.sh/unknown", "operator": "Exists"}),
        "karpenter.sh/unknown",
    ),
    "p-21-no-number": (
        requiring({"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["many"]}),
        "hint: give one whole number",
    ),
    "volume-claim": (
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "nowhere"}}]},
        "nowhere does not exist",
    ),
    "misspelt-well-known-label": (
        {"nodeSelector": {"karpenter.k8s.aws/instance-famly": "m5"}},
        "did you mean karpenter.k8s.aws/instance-family?",
    ),
    "misspelt-label-of-the-pool": (
        {"nodeSelector": {"example.com/teem": "a"}},
        "did you mean example.com/team?",
    ),
}


def test_3_8_pods_that_no_pool_may_serve_get_no_node_and_keep_none_from_others(scene):
    """`wishing` is left alone by v0.27.3; here a preferred term on fields is a wish that stops nobody."""
    wish = [{"weight": 1, "preference": {"matchFields": BY_NAME}}]
    wishing = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wish}}}

    async def scenario(rig, namespace):
        left = [a_pod(name, namespace, **spec) for name, (spec, _) in LEFT.items()]
        await rig.create(a_template(), POOL, *left)
        for name, (_, told) in LEFT.items():
            if told is not None:
                event = await rig.event(namespace, name, "FailedScheduling", about="No capacity for this pod")
                assert told in event["message"]

        await rig.create(a_pod("wishing", namespace, **wishing))
        await rig.running(namespace, "wishing")

        assert len(await asyncio.to_thread(rig.api.list, CLAIMS)) == 1
        for name in LEFT:
            pod = await asyncio.to_thread(rig.api.get, f"/api/v1/namespaces/{namespace}/pods/{name}")
            assert "nodeName" not in pod["spec"]
        events = await asyncio.to_thread(rig.api.events, namespace, "none-of-ours")
        assert [each for each in events if each.get("reportingComponent") == "karpenter"] == []

    scene(scenario)
