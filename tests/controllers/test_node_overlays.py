"""NodeOverlays on a real API server: what it refuses, what conditions say, and what is bought by them."""

import pytest

from localenv.kubernetes import ApiError
from tests.api.test_node_overlay import ACCEPTED, REFUSED
from tests.controllers.world import CLAIMS, NODES, OVERLAYS, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster

SLICE = "example.com/gpu-slice"
ON = {"node_overlays": True}


def an_overlay(name, *types, **spec):
    chosen = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [*types]}
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": [chosen] if types else [], **spec},
    }


def condition(overlay, type_="ValidationSucceeded"):
    found = {each["type"]: each for each in (overlay or {}).get("status", {}).get("conditions", ())}
    return found.get(type_, {})


async def until_valid(rig, name, status="True"):
    """Wait until the condition has a status; gives back the overlay."""
    return await rig.until(
        lambda: rig.api.find(f"{OVERLAYS}/{name}"), lambda seen: condition(seen).get("status") == status
    )


def test_the_api_server_refuses_what_the_command_refuses_and_takes_the_rest(api, definitions):
    def document(spec):
        whole = an_overlay("tried", "m5.large")
        return {**whole, "spec": {**whole["spec"], **spec}}

    for spec, path, _ in REFUSED:
        with pytest.raises(ApiError) as caught:
            api.create(document(spec))
        assert caught.value.status == 422, spec
        member = ".".join(path.partition("[")[0].split(".")[:2])
        assert member in str(caught.value), spec
    for spec in ACCEPTED:
        api.create(document(spec))
        api.delete(f"{OVERLAYS}/tried")


def test_a_node_is_of_the_type_that_an_overlay_makes_cheap_until_the_overlay_is_gone(scene):
    async def scenario(rig, namespace):
        cheap = an_overlay("cheap", "m5.xlarge", price="0.001")
        await rig.create(a_template(), a_provisioner(), cheap)
        overlay = await until_valid(rig, "cheap")
        assert condition(overlay, "Ready")["status"] == "True"
        assert condition(overlay)["observedGeneration"] == overlay["metadata"]["generation"]
        await rig.create(a_pod("web", namespace))
        claim = await rig.claim()
        assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.xlarge"
        assert claim["metadata"]["annotations"]["karpenter.sh/price-overlay-applied"] == "true"
        assert "karpenter.sh/capacity-overlay-applied" not in claim["metadata"]["annotations"]
        rig.api.delete(f"{OVERLAYS}/cheap")
        await rig.until(lambda: rig.cluster.snapshot.applied_overlays == ())
        (pool,) = rig.cluster.snapshot.pools.values()
        (node_class,) = rig.cluster.snapshot.node_classes.values()
        types = await rig.cloud.catalog(pool, node_class)
        assert all(offering.price > 0.001 for each in types for offering in each.offerings)
        assert "Drifted" not in {each["type"] for each in claim["status"]["conditions"]}

    scene(scenario, settings=ON)


def test_an_overlay_that_names_the_id_of_a_zone_is_for_that_zone(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner())
        await rig.until(lambda: rig.cluster.snapshot.node_classes)
        (node_class,) = rig.cluster.snapshot.node_classes.values()
        *_, subnet = sorted((await rig.cloud.resolve(node_class)).subnets, key=lambda subnet: subnet.zone)
        cheap = an_overlay("cheap", "m5.xlarge", price="0.001")
        cheap["spec"]["requirements"].append(
            {"key": "topology.k8s.aws/zone-id", "operator": "In", "values": [subnet.zone_id]}
        )
        await rig.create(cheap)
        await until_valid(rig, "cheap")
        assert condition(rig.api.find(f"{OVERLAYS}/cheap")).get("message", "") == ""
        await rig.create(a_pod("web", namespace))
        claim = await rig.claim()
        assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.xlarge"
        assert claim["metadata"]["labels"]["topology.kubernetes.io/zone"] == subnet.zone

    scene(scenario, settings=ON)


def test_a_pod_that_asks_for_a_slice_gets_a_node_once_an_overlay_tells_of_slices(scene):
    async def scenario(rig, namespace):
        asks = {"requests": {"cpu": "1", SLICE: "1"}, "limits": {SLICE: "1"}}
        pod = a_pod("web", namespace)
        pod["spec"]["containers"][0]["resources"] = asks
        await rig.create(a_template(), a_provisioner(), pod)
        await rig.event(namespace, "web", "FailedScheduling", SLICE)
        await rig.create(an_overlay("sliced", "m5.xlarge", capacity={SLICE: "4"}))
        claim = await rig.claim("Registered")
        assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.xlarge"
        assert claim["metadata"]["annotations"]["karpenter.sh/capacity-overlay-applied"] == "true"
        assert claim["status"]["capacity"][SLICE] == "4"

        def waits(seen):
            return {each.get("reason") for each in seen["status"]["conditions"]} >= {"ResourceNotRegistered"}

        name = claim["metadata"]["name"]
        await rig.until(lambda: rig.api.get(f"{CLAIMS}/{name}"), waits)
        # The device plugin comes up.
        node = rig.api.get(f"{CLAIMS}/{name}")["status"]["nodeName"]
        amounts = {"capacity": {SLICE: "4"}, "allocatable": {SLICE: "4"}}
        rig.api.patch(f"{NODES}/{node}", {"status": amounts}, kind="strategic", subresource="status")
        await rig.claim("Initialized")
        assert await rig.running(namespace, "web") == node

    scene(scenario, settings=ON)


def test_of_two_that_contradict_the_later_says_so_and_counts_once_the_other_is_gone(scene):
    async def scenario(rig, _namespace):
        await rig.create(
            a_template(),
            a_provisioner(),
            an_overlay("b", "m5.large", price="0.5"),
            an_overlay("a", "m5.large", "m5.xlarge", priceAdjustment="-10%"),
            # Of no rule that the API server knows.
            an_overlay("broken", "m5.large", price="9" * 400),
            an_overlay("idle", "none.large", price="1", weight=3),
        )
        refused = await until_valid(rig, "a", "False")
        told = condition(refused)
        assert told["reason"] == "Conflict"
        assert "conflict with NodeOverlay b" in told["message"]
        assert "m5.large in Provisioner/default" in told["message"]
        assert condition(refused, "Ready")["status"] == "False"
        broken = condition(await until_valid(rig, "broken", "False"))
        assert (broken["reason"], "spec.price" in broken["message"]) == ("RuntimeValidation", True)
        assert "no instance type of any pool" in condition(await until_valid(rig, "idle"))["message"]
        await until_valid(rig, "b")
        assert rig.cluster.snapshot.applied_overlays == ("idle", "b")
        rig.api.delete(f"{OVERLAYS}/b")
        await until_valid(rig, "a")
        assert rig.cluster.snapshot.applied_overlays == ("idle", "a")

    scene(scenario, settings=ON)


def test_with_the_gate_off_nothing_is_watched_and_nothing_changes(scene):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(), an_overlay("cheap", "m5.xlarge", price="0.001"))
        await rig.create(a_pod("web", namespace))
        claim = await rig.claim()
        assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.large"
        assert "nodeoverlays" not in {kind.name for kind in rig.kinds}
        assert "status" not in rig.api.get(f"{OVERLAYS}/cheap")

    scene(scenario)
