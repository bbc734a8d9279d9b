"""The custom resource definitions, their generation and the files that are checked in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeless.api.crds import all_crds, crd_files
from nodeless.api.kinds import ALL, NODE_CLAIM, NODE_POOL, PROVISIONER

FOLDER = Path(__file__).parents[2] / "controller" / "crds"
PROPERTIES = {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0] for crd in all_crds()}


def property_of(kind: str, path: str) -> dict[str, Any]:
    schema = PROPERTIES[kind]["schema"]["openAPIV3Schema"]
    for part in path.split("."):
        schema = schema["items"] if part == "[]" else schema["properties"][part]
    return dict(schema)


def test_the_files_are_up_to_date() -> None:
    checked_in = {file.name: file.read_text() for file in FOLDER.iterdir()}

    assert checked_in == crd_files(), "run `nodeless crds controller/crds`"


def test_the_files_hold_the_definitions() -> None:
    assert [yaml.safe_load(text) for text in crd_files().values()] == all_crds()


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.kind)
def test_each_kind_is_served_under_its_name(kind: Any) -> None:
    (crd,) = (crd for crd in all_crds() if crd["metadata"]["name"] == kind.crd_name)

    spec = crd["spec"]
    assert spec["names"]["categories"] == ["karpenter"]
    assert (spec["group"], spec["scope"]) == (kind.group, "Cluster")
    (version,) = spec["versions"]
    assert version["name"] == kind.version
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"}
    assert version["subresources"] == {"status": {}} | ({"scale": scale} if kind is NODE_POOL else {})


def test_every_field_of_a_spec_is_described() -> None:
    def undescribed(schema: dict[str, Any], path: str) -> list[str]:
        found = [] if "description" in schema else [path]
        for name, member in schema.get("properties", {}).items():
            found += undescribed(member, f"{path}.{name}")
        if "properties" in schema.get("items", {}):
            found += undescribed(schema["items"], f"{path}[]")
        return found

    for kind in PROPERTIES:
        assert undescribed(property_of(kind, "spec"), f"{kind}.spec") == []
        assert undescribed(property_of(kind, "status"), f"{kind}.status") == []


def test_limits_of_the_provisioner_are_those_of_karpenter() -> None:
    weight = property_of("Provisioner", "spec.weight")
    assert (weight["minimum"], weight["maximum"]) == (1, 100)
    assert property_of("Provisioner", "spec.kubeletConfiguration.maxPods")["minimum"] == 0
    assert property_of("Provisioner", "spec.requirements.[]")["required"] == ["key", "operator"]
    assert property_of("Provisioner", "spec.taints.[]")["required"] == ["effect", "key"]
    assert property_of("Provisioner", "spec.provider")["x-kubernetes-preserve-unknown-fields"] is True
    cpu = property_of("Provisioner", "spec.limits.resources")["additionalProperties"]
    assert cpu["x-kubernetes-int-or-string"] is True


def test_the_spec_of_a_claim_is_immutable() -> None:
    rules = property_of("NodeClaim", "spec")["x-kubernetes-validations"]
    assert [rule["rule"] for rule in rules] == ["self == oldSelf"]
    columns = [column["name"] for column in PROPERTIES["NodeClaim"]["additionalPrinterColumns"]]
    assert columns[:6] == ["Type", "Capacity", "Zone", "Node", "Ready", "Age"]


def test_paths_are_those_of_the_api_server() -> None:
    assert PROVISIONER.path() == "/apis/karpenter.sh/v1alpha5/provisioners"
    assert NODE_CLAIM.path("a", subresource="status") == "/apis/karpenter.sh/v1/nodeclaims/a/status"
