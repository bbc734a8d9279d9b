"""A claim that the API server refuses holds up those pods alone because of which it is refused."""

import asyncio

import pytest

from tests.controllers.world import CLAIMS, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
ZONE = "topology.kubernetes.io/zone"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
TEAM = {"key": "example.com/team", "operator": "Exists"}
TYPES = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]}


def preferring(key, *values):
    preference = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": preference}]
            }
        }
    }


def without_labels(number):
    expressions = [{"key": f"example.com/no-{each}", "operator": "DoesNotExist"} for each in range(number)]
    term = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}}


@pytest.mark.parametrize(
    "odd", [preferring("example.com/team", "no label value!"), preferring(ZONE, "ü"), without_labels(105)]
)
def test_what_a_pod_may_say_and_a_claim_may_not_is_left_out_of_the_claim(scene, odd):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(requirements=[TYPES, TEAM]))
        await rig.create(*(a_pod(f"web-{each}", namespace, cpu="100m") for each in range(3)))
        await rig.create(a_pod("odd", namespace, cpu="100m", **odd))
        await rig.running(namespace, "odd", "web-0", "web-1", "web-2")

    scene(scenario)


def refusing(name, expression, *, group="karpenter.sh", resource="nodeclaims", operation="CREATE"):
    """A policy of the cluster's owner that refuses some writes, and its binding."""
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": [operation],
        "resources": [resource],
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "not in this cluster"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return (
        kind | {"kind": "ValidatingAdmissionPolicy", "spec": policy},
        kind | {"kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    )


def test_the_others_get_their_node_and_the_culprit_is_told_why_it_waits(scene):
    policy, binding = refusing("no-zones", f"!object.spec.requirements.exists(each, each.key == '{ZONE}')")

    async def scenario(rig, namespace):
        await rig.create(policy, binding, a_template())
        await rig.until(lambda: refused(rig.api))
        pods = [a_pod(f"web-{each}", namespace, cpu="100m") for each in range(5)]
        bad = a_pod("bad", namespace, cpu="100m", nodeSelector={ZONE: "us-east-1a"})
        await rig.create(bad, *pods)
        await rig.create(a_provisioner())
        await rig.running(namespace, *(pod["metadata"]["name"] for pod in pods))
        assert "not in this cluster" in (await rig.event(namespace, "bad", "Quarantined"))["message"]

    try:
        scene(scenario)
    finally:
        scene(taking_back("no-zones"))


def taking_back(policy):
    """A scenario that deletes a policy and its binding."""

    async def scenario(rig, _namespace):
        for path in (f"{POLICIES.replace('policies', 'policybindings')}/{policy}", f"{POLICIES}/{policy}"):
            await asyncio.to_thread(rig.api.delete, path)

    return scenario


def refused(api):
    """Whether the policy is in force: it takes some seconds."""
    spec = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "none"},
        "requirements": [{"key": ZONE, "operator": "Exists"}],
    }
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "probe"},
        "spec": spec,
    }
    try:
        api.create(claim)
    except Exception as error:
        return "not in this cluster" in str(error)
    api.delete(f"{CLAIMS}/probe")
    return False
