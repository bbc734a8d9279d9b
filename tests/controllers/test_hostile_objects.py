"""Objects that the API server accepts and nobody expects, beside an honest pod: that runs, and they end."""

import asyncio

import pytest

from nodeless.model.labels import DRAIN_GRACE, TERMINATION_FINALIZER
from tests.controllers.world import CLAIMS, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster

#: As JSON each `<` has six bytes, so that this object is one line of more than 8 MiB.
ESCAPED = "<" * 1_400_000
ANY = [{"key": "topology.kubernetes.io/zone", "operator": "Exists"}]


def a_claim(name, requirements=ANY, annotations=None, **spec):
    """One that has begun its life: it does not end without its controller."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "none"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "finalizers": [TERMINATION_FINALIZER],
            "labels": {"karpenter.sh/nodepool": "none"},
            "annotations": annotations or {},
        },
        "spec": {"nodeClassRef": reference, "requirements": requirements, **spec},
    }


HOSTILE = [
    a_claim("endless", terminationGracePeriod="99999999h", expireAfter="99999999h"),
    a_claim("digits", terminationGracePeriod="9" * 400 + "h"),
    a_claim("annotated", annotations={DRAIN_GRACE: "9" * 5000}),
    a_claim("unreadable", [{"key": "a", "operator": "Gt"}]),
    a_claim("contradiction", [{"key": "a", "operator": "Gt", "values": ["9" * 30]}]),
]


def test_an_honest_pod_runs_beside_hostile_objects_and_hostile_claims_end(scene):
    async def scenario(rig, namespace):
        large = a_pod("large", namespace)
        large["spec"]["containers"][0]["env"] = [{"name": "X", "value": ESCAPED}]
        await rig.create(large, *HOSTILE)
        await rig.create(a_template(), a_provisioner(), a_pod("web", namespace))
        await rig.running(namespace, "web")
        told = await rig.event(namespace, "large", "FailedScheduling", "MiB")
        assert "hint: move large values" in told["message"]
        names = [claim["metadata"]["name"] for claim in HOSTILE]
        for name in names:
            # Most end by themselves, since their pool does not exist.
            await asyncio.to_thread(rig.api.delete, f"{CLAIMS}/{name}", missing_ok=True)
        for name in names:
            await rig.until_gone(f"{CLAIMS}/{name}")
        rig.check()

    scene(scenario)
