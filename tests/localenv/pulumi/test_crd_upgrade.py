"""An upgrade in place: the definitions of an earlier version become today's under objects that stand.

`earlier_crds` holds the definitions as the first version of the controller had them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pulumi_kubernetes as k8s
import pytest
import yaml

from localenv.control_plane import ControlPlane
from localenv.kubernetes import ApiError, KubernetesApi, UnknownKind
from localenv.pulumi import ResourceStep
from localenv.pulumi.project import ROOT
from nodeless.api.crds import all_crds
from pulumi_nodeless import pools
from pulumi_nodeless.controller import taken_over
from pulumi_nodeless.default_pools import DEFAULT_NODE_TEMPLATES, DEFAULT_PROVISIONERS
from tests.localenv.pulumi.conftest import Program, Shop
from tests.localenv.pulumi.programs import in_cluster

EARLIER = [
    yaml.safe_load(path.read_text())
    for path in sorted(Path(__file__).with_name("earlier_crds").glob("*.yaml"))
]
CLAIM = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "default-x7k2p"},
    "spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "AWSNodeTemplate", "name": "default"},
        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
    },
}


def by_name(definitions: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {definition["metadata"]["name"]: definition for definition in definitions}


def installing(control_plane: ControlPlane, definitions: Sequence[dict[str, Any]]) -> Program:
    """A program with the definitions, as the component `Controller` registers them in an environment."""

    def program() -> None:
        options = in_cluster(control_plane, upserts=True)
        for name, definition in by_name(definitions).items():
            k8s.apiextensions.v1.CustomResourceDefinition(
                name, metadata=taken_over(definition["metadata"]), spec=definition["spec"], opts=options
            )

    return program


def manifests() -> Iterator[dict[str, Any]]:
    """Objects as users have them: our kinds in the examples, each under a name of its own."""
    yield CLAIM
    for path in sorted((ROOT / "examples").glob("*/*.yaml")):
        # Two are no input: a program, and a manifest whose faults are its point.
        skipped = path.name in {"Pulumi.yaml", "provisioner-as-printed.yaml"}
        documents = () if skipped else yaml.safe_load_all(path.read_text())
        for index, document in enumerate(documents):
            if document and "karpenter" in document["apiVersion"]:
                name = f"{path.parent.name}-{path.stem}-{index}"
                yield {**document, "metadata": {**document["metadata"], "name": name}}


def of_a_stack() -> Iterator[dict[str, Any]]:
    """The pools that this version's stack makes when it is told nothing."""
    discovery = {"karpenter.sh/discovery": "demo"}
    for template in DEFAULT_NODE_TEMPLATES:
        yield {
            "apiVersion": pools.NODE_TEMPLATE_API,
            "kind": "AWSNodeTemplate",
            "metadata": {"name": template["name"]},
            "spec": pools.node_template_spec(template, discovery),
        }
    for provisioner in DEFAULT_PROVISIONERS:
        yield {
            "apiVersion": pools.PROVISIONER_API,
            "kind": "Provisioner",
            "metadata": {"name": provisioner["name"]},
            "spec": pools.provisioner_spec(provisioner),
        }


@pytest.mark.cluster
def test_an_upgrade_of_the_definitions_changes_them_in_place_and_keeps_every_object(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    (balanced,) = (manifest for manifest in manifests() if manifest["kind"] == "NodePool")
    policy = {"consolidationPolicy": "Balanced", "consolidateAfter": "0s"}
    balanced = {**balanced, "metadata": {"name": "balanced"}}
    balanced["spec"] = {**balanced["spec"], "disruption": policy}

    shop.program = installing(control_plane, EARLIER)
    shop.stack.up()
    before = [api.create(manifest) for manifest in manifests()]
    assert {each["kind"] for each in before} == {each["spec"]["names"]["kind"] for each in EARLIER}
    for manifest in of_a_stack():
        # The engine's preview of an upgrade lets the server judge pools by the definitions of before.
        api.apply(manifest, dry_run=True)
    with pytest.raises(ApiError, match="Balanced"):
        api.create(balanced)

    shop.program = installing(control_plane, all_crds())
    steps: list[ResourceStep] = []
    shop.stack.up(steps.append)

    earlier, today = by_name(EARLIER), by_name(all_crds())
    done = {(step.operation, step.name) for step in steps if step.done and step.operation != "same"}
    changed = {name for name in today if name in earlier and today[name] != earlier[name]}
    made = today.keys() - earlier.keys()
    assert changed, "the two versions are the same: keep an earlier one"
    assert {step for step in done if step[1] in today} == {
        *(("update", name) for name in changed),
        *(("create", name) for name in made),
    }
    for kept in before:
        path = api.path(kept["apiVersion"], kept["kind"], None, kept["metadata"]["name"])
        found = api.get(path)
        assert (found["metadata"]["uid"], found["spec"]) == (kept["metadata"]["uid"], kept["spec"])
    for manifest in manifests():
        api.apply(manifest, dry_run=True)
    api.create(balanced)


@pytest.mark.cluster
def test_definitions_that_a_chart_left_behind_are_taken_over_with_their_objects(
    shop: Shop, control_plane: ControlPlane, api: KubernetesApi
) -> None:
    for definition in EARLIER:
        api.apply(definition, field_manager="helm")
    pool, *_ = (manifest for manifest in manifests() if manifest["kind"] == "Provisioner")
    api.wait(lambda: _accepted(api, pool), what="the definitions to be served")
    left = api.create(pool)

    shop.program = installing(control_plane, all_crds())
    shop.stack.up()

    found = api.get(api.path_of(left))
    assert (found["metadata"]["uid"], found["spec"]) == (left["metadata"]["uid"], left["spec"])
    for name, definition in by_name(all_crds()).items():
        served = api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        assert served["spec"]["versions"][0]["schema"] == definition["spec"]["versions"][0]["schema"]


def _accepted(api: KubernetesApi, manifest: dict[str, Any]) -> bool:
    try:
        api.apply(manifest, dry_run=True)
    except (ApiError, UnknownKind):
        return False
    return True


def test_no_field_of_an_earlier_definition_is_gone_or_takes_less() -> None:
    today = by_name(all_crds())
    for name, earlier in by_name(EARLIER).items():
        for version in earlier["spec"]["versions"]:
            (kept,) = (one for one in today[name]["spec"]["versions"] if one["name"] == version["name"])
            old, new = (one["schema"]["openAPIV3Schema"] for one in (version, kept))
            assert list(narrowed(old, new, name)) == []


def narrowed(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    """Every way in which a schema takes less than an earlier one."""
    if old.get("type") != new.get("type"):
        yield f"{path}: was {old.get('type')}, is {new.get('type')}"
    yield from (
        f"{path}.{name}: is required now" for name in {*new.get("required", ())} - {*old.get("required", ())}
    )
    if "enum" in new:
        yield from (
            f"{path}: {value} is refused now" for value in old.get("enum", [None]) if value not in new["enum"]
        )
    for limit, less in (
        ("maxItems", -1),
        ("maximum", -1),
        ("maxLength", -1),
        ("minItems", 1),
        ("minimum", 1),
    ):
        if limit in new and (limit not in old or less * new[limit] > less * old[limit]):
            yield f"{path}: {limit} was {old.get(limit)}, is {new[limit]}"
    for name, schema in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            yield f"{path}.{name}: is gone"
        else:
            yield from narrowed(schema, new["properties"][name], f"{path}.{name}")
    for member in ("items", "additionalProperties"):
        if isinstance(old.get(member), dict):
            yield from narrowed(old[member], new.get(member, {}), f"{path}.{member}")
