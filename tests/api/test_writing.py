"""Claims written for the API server, and read back."""

from __future__ import annotations

from nodeless.api.reading import read_claim
from nodeless.api.writing import claim_status, conditions_to_api, write_claim
from nodeless.model.nodes import Condition, NodeClaim
from nodeless.model.pools import Reference
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.taints import Taint

POOL = Reference("Provisioner", "default", "u-1")
CLAIM = NodeClaim(
    name="default-abcde",
    pool=POOL,
    node_class=Reference("AWSNodeTemplate", "default"),
    requirements=Requirements([Requirement.of("zone", "In", ["b", "a"]), Requirement.of("cpu", "Gt", ["3"])]),
    requests={"cpu": 1500, "memory": 2**30, "pods": 3},
    labels={"team": "a"},
    annotations={"note": "x"},
    taints=(Taint("team", "NoSchedule", "a"),),
    startup_taints=(Taint("boot", "NoExecute"),),
)


def test_a_claim_is_written_whole() -> None:
    assert write_claim(CLAIM) == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "default-abcde",
            "labels": {"team": "a", "karpenter.sh/provisioner-name": "default"},
            "annotations": {"note": "x"},
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [
                {
                    "apiVersion": "karpenter.sh/v1alpha5",
                    "kind": "Provisioner",
                    "name": "default",
                    "uid": "u-1",
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "AWSNodeTemplate", "name": "default"},
            "requirements": [
                {"key": "cpu", "operator": "Gt", "values": ["3"]},
                {"key": "zone", "operator": "In", "values": ["a", "b"]},
            ],
            "expireAfter": "Never",
            "resources": {"requests": {"cpu": "1500m", "memory": "1Gi", "pods": "3"}},
            "taints": [{"key": "team", "effect": "NoSchedule", "value": "a"}],
            "startupTaints": [{"key": "boot", "effect": "NoExecute"}],
        },
    }


def test_an_inline_class_is_referred_to_as_its_provisioner() -> None:
    inline = NodeClaim("c", POOL, node_class=POOL)

    reference = write_claim(inline)["spec"]["nodeClassRef"]

    assert reference == {"group": "karpenter.sh", "kind": "Provisioner", "name": "default"}
    assert read_claim(write_claim(inline)).node_class == POOL


def test_a_pool_without_uid_is_no_owner() -> None:
    manifest = write_claim(NodeClaim("c", Reference("Provisioner", "default"), POOL))

    assert "ownerReferences" not in manifest["metadata"]
    assert read_claim(manifest).pool == POOL


def test_status_says_what_is_known_and_nothing_else() -> None:
    assert claim_status(CLAIM) == {}
    launched = NodeClaim("c", POOL, POOL, provider_id="aws:///us-east-1a/i-1", capacity={"memory": 2**30})
    assert claim_status(launched) == {"providerID": "aws:///us-east-1a/i-1", "capacity": {"memory": "1Gi"}}


def test_a_condition_always_has_a_reason() -> None:
    assert conditions_to_api([Condition("Launched", "True", last_transition_time=1682942400.9)]) == [
        {
            "type": "Launched",
            "status": "True",
            "reason": "Launched",
            "message": "",
            "lastTransitionTime": "2023-05-01T12:00:00Z",
        }
    ]
