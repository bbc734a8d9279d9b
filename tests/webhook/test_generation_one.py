"""The v1 kinds on the real API server: its schema and CEL rules alone, no webhook asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localenv.kubernetes import ApiError, KubernetesApi
from nodeless.api.cel import VALIDATIONS
from nodeless.api.crds import all_crds
from nodeless.api.kinds import EC2_NODE_CLASS, NODE_POOL
from tests.api.generation_one import CASES, IDS
from tests.api.manifests import ec2_node_class, node_pool

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def clean(api: KubernetesApi, definitions: None) -> Iterator[None]:
    yield
    for kind in (NODE_POOL, EC2_NODE_CLASS):
        api.delete(kind.path("default"), missing_ok=True)
        api.wait_gone(kind.path("default"))


@pytest.mark.parametrize(("row", "manifest", "path"), CASES, ids=IDS)
def test_rule(api: KubernetesApi, row: str, manifest: dict[str, Any], path: str) -> None:
    if not path:
        api.create(manifest, dry_run=True)
        return
    with pytest.raises(ApiError) as caught:
        api.create(manifest, dry_run=True)
    assert path in str(caught.value)


def test_every_rule_of_the_definitions_was_broken_once(api: KubernetesApi) -> None:
    """No CEL rule is there that no case of the table makes the server speak."""
    said = ""
    for _, manifest, path in CASES:
        if path:
            with pytest.raises(ApiError) as caught:
                api.create(manifest, dry_run=True)
            said += str(caught.value)
    unspoken = [
        entry["message"]
        for crd in all_crds()
        if crd["spec"]["names"]["kind"] in ("NodePool", "EC2NodeClass")
        for entry in _rules(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        if "oldSelf" not in entry["rule"] and entry["message"] not in said
    ]
    assert [message for message in unspoken if not message.startswith("amiFamily must be ")] == []


def _rules(schema: Any) -> Iterator[dict[str, str]]:
    if isinstance(schema, dict):
        yield from schema.get(VALIDATIONS, ())
        for member in schema.values():
            yield from _rules(member)


def test_the_server_fills_in_the_defaults_of_a_node_pool(api: KubernetesApi) -> None:
    spec = api.create(node_pool())["spec"]

    assert spec["disruption"] == {
        "budgets": [{"nodes": "10%"}],
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
    }
    assert spec["template"]["spec"]["expireAfter"] == "720h"


def test_the_server_fills_in_the_metadata_options_of_a_node_class(api: KubernetesApi) -> None:
    expected = {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }
    partial = ec2_node_class(metadataOptions={"httpTokens": "optional"})

    assert api.create(ec2_node_class(), dry_run=True)["spec"]["metadataOptions"] == expected
    stored = api.create(partial, dry_run=True)
    assert stored["spec"]["metadataOptions"] == {**expected, "httpTokens": "optional"}


@pytest.mark.parametrize(("member", "value"), [("group", "example.com"), ("kind", "Other")])
def test_7_2_the_kind_of_a_pools_node_class_never_changes(
    api: KubernetesApi, member: str, value: str
) -> None:
    api.create(node_pool())

    with pytest.raises(ApiError, match=f"{member} cannot be changed"):
        api.patch(
            NODE_POOL.path("default"), {"spec": {"template": {"spec": {"nodeClassRef": {member: value}}}}}
        )
    api.patch(NODE_POOL.path("default"), {"spec": {"template": {"spec": {"nodeClassRef": {"name": "b"}}}}})


def test_7_2_replicas_neither_appear_nor_go(api: KubernetesApi) -> None:
    api.create(node_pool())

    with pytest.raises(ApiError, match="replicas can neither be added nor removed"):
        api.patch(NODE_POOL.path("default"), {"spec": {"replicas": 3}})


def test_7_1_a_static_pool_can_be_scaled(api: KubernetesApi) -> None:
    api.create(node_pool(replicas=1))

    api.scale(NODE_POOL.path("default"), 3)

    assert api.get(NODE_POOL.path("default"))["spec"]["replicas"] == 3


def test_status_and_conditions_are_stored(api: KubernetesApi) -> None:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    api.create(node_pool())
    status = {
        "resources": {"cpu": "1"},
        "nodes": 1,
        "nodeClassObservedGeneration": 1,
        "conditions": [condition],
    }
    stored = api.patch(NODE_POOL.path("default"), {"status": status}, subresource="status")
    assert stored["status"] == status
    api.create(ec2_node_class())
    found = {
        "subnets": [{"id": "subnet-1", "zone": "a", "zoneID": "use1-az1"}],
        "securityGroups": [{"id": "sg-1", "name": "nodes"}],
        "amis": [
            {"id": "ami-1", "name": "x", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}
        ],
        "instanceProfile": "nodes",
        "conditions": [condition],
    }
    stored = api.patch(EC2_NODE_CLASS.path("default"), {"status": found}, subresource="status")
    assert stored["status"] == found


def test_users_see_the_columns_of_karpenter(api: KubernetesApi) -> None:
    columns = {
        crd["spec"]["names"]["kind"]: [
            (column["name"], column.get("priority", 0))
            for column in crd["spec"]["versions"][0].get("additionalPrinterColumns", ())
        ]
        for crd in all_crds()
    }
    assert columns["NodePool"] == [
        ("NodeClass", 0),
        ("Nodes", 0),
        ("Ready", 0),
        ("Age", 0),
        ("Weight", 1),
        ("CPU", 1),
        ("Memory", 1),
    ]
    assert columns["EC2NodeClass"] == [("Ready", 0), ("Age", 0), ("Role", 1)]
    discovery = api.get("/apis/karpenter.k8s.aws/v1")["resources"]
    (names,) = (each["shortNames"] for each in discovery if each["name"] == "ec2nodeclasses")
    assert names == ["ec2nc", "ec2ncs"]
