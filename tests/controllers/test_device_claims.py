"""Claims on devices on a real API server: kube-scheduler allocates what was planned.

The drivers are those of the local environment: their daemons come up on each node and publish what it
has. Where a test needs a driver as there is none, it publishes ResourceSlices itself.
"""

import json

import pytest

from localenv import device_drivers
from nodeless.kube.decoding import decode_pod
from nodeless.model.labels import DEVICES
from tests.controllers.test_node_overlays import ON, an_overlay, condition, until_valid
from tests.controllers.world import CLAIMS, NODES, OVERLAYS, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
DRA = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.nvidia.com"
TYPES = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "g4dn.12xlarge"]}
SELECTOR = (
    f"device.attributes['{DRIVER}'].productName.lowerAscii().matches('t4') && "
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('14Gi')) >= 0"
)


@pytest.fixture
def drivers(api):
    """What the charts of all drivers bring."""
    device_drivers.install(api)
    yield
    device_drivers.remove(api)
    for pod in api.list("/api/v1/namespaces/kube-system/pods"):
        path = f"/api/v1/namespaces/kube-system/pods/{pod['metadata']['name']}"
        api.delete(path, grace_seconds=0, missing_ok=True)
    forget_slices(api)


def forget_slices(api):
    """Delete what drivers have published: the nodes go by force, and what they own a moment later."""
    for found in api.list(f"{DRA}/resourceslices"):
        api.delete(f"{DRA}/resourceslices/{found['metadata']['name']}", missing_ok=True)


@pytest.fixture
def device_class(api):
    """The class that the driver's chart brings, without the driver."""
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
    made = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    api.create(made)
    yield
    api.delete(f"{DRA}/deviceclasses/{DRIVER}", missing_ok=True)
    forget_slices(api)


def a_claim_template(namespace, count=1, selector=SELECTOR, name="gpu", **fields):
    request = {"deviceClassName": DRIVER, "count": count, "selectors": [{"cel": {"expression": selector}}]}
    request |= fields
    devices = {"requests": [{"name": "gpu", "exactly": request}]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": devices}},
    }


def a_claiming_pod(name, namespace, template="gpu"):
    made = a_pod(name, namespace, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": template}])
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return made


def a_device(name, node, memory="15360Mi", **fields):
    return {
        "name": name,
        "attributes": {
            "type": {"string": "gpu"},
            "productName": {"string": "Tesla T4"},
            "uuid": {"string": f"GPU-{node}-{name}"},
            "cudaComputeCapability": {"version": "7.5.0"},
        },
        "capacity": {"memory": {"value": memory}},
        **fields,
    }


def slices_of(node, devices, counters=(), driver=DRIVER):
    """What the driver of a node publishes; the API wants counters in a slice of their own."""
    parts = [{"devices": devices}, *([{"sharedCounters": counters}] if counters else [])]
    pool = {"name": node, "generation": 1, "resourceSliceCount": len(parts)}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{driver}-{number}"},
            "spec": {"driver": driver, "nodeName": node, "pool": pool, **part},
        }
        for number, part in enumerate(parts)
    ]


def four_shared_gpus(node):
    """Claims share the memory of each."""
    devices = [a_device(f"gpu-{number}", node, allowMultipleAllocations=True) for number in range(4)]
    return slices_of(node, devices)


def two_gpus_in_parts(node):
    """Each of them whole, or in four parts."""
    devices, counters = [], []
    for gpu in range(2):
        name = f"gpu-{gpu}"
        counters.append({"name": name, "counters": {"parts": {"value": "4"}}})

        def takes(parts, name=name):
            return [{"counterSet": name, "counters": {"parts": {"value": str(parts)}}}]

        devices.append(a_device(name, node, consumesCounters=takes(4)))
        devices += [
            a_device(f"{name}-part-{part}", node, "3840Mi", consumesCounters=takes(1)) for part in range(4)
        ]
    return slices_of(node, devices, counters)


def is_initialized(claim):
    conditions = claim.get("status", {}).get("conditions", ())
    return ("Initialized", "True") in {(each["type"], each["status"]) for each in conditions}


def held_devices(rig, namespace):
    """By node: how many of its devices are allocated to claims of a namespace."""
    held = {}
    for claim in rig.api.list(f"{DRA}/namespaces/{namespace}/resourceclaims"):
        for result in claim["status"]["allocation"]["devices"]["results"]:
            held.setdefault(result["pool"], set()).add(result["device"])
    return {node: len(devices) for node, devices in held.items()}


async def publish(rig, nodes, published):
    """The driver on so many nodes: it comes up once the node is Ready, and stays as it is."""

    def ready():
        return [
            node["metadata"]["name"]
            for node in rig.api.list(NODES)
            if any(
                c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ())
            )
        ]

    names = await rig.until(ready, lambda found: len(found) == nodes)
    there = {found["spec"].get("nodeName") for found in rig.api.list(f"{DRA}/resourceslices")}
    for name in names:
        if name not in there:
            await rig.create(*published(name))


def test_pods_that_claim_devices_get_nodes_on_which_kube_scheduler_allocates_them(scene, drivers):
    """Six pods, four devices a node: two nodes, and a pod of four on a third."""

    async def scenario(rig, namespace):
        await rig.create(a_claim_template(namespace), a_claim_template(namespace, 4, name="four"))
        names = [f"web-{number}" for number in range(6)]
        await rig.create(*(a_claiming_pod(name, namespace) for name in names))
        await rig.create(a_claiming_pod("whole", namespace, "four"))
        # With the pool last, all pods are planned in one pass, however slowly they came.
        await rig.create(a_template(), a_provisioner(requirements=[TYPES]))
        await rig.running(namespace, *names, "whole")
        assert sorted(held_devices(rig, namespace).values()) in ([2, 4, 4], [3, 3, 4])
        await rig.create(a_claiming_pod("late", namespace))
        await rig.running(namespace, "late")
        assert len(rig.api.list(CLAIMS)) == 3, "the third node had two devices left"

    scene(scenario)


def test_pods_that_request_gpus_have_them_of_a_driver_where_no_device_plugin_announces_them(scene, drivers):
    """Three pods request a GPU and two claim one: of two nodes with four each, which are initialized.

    kube-scheduler takes the node whose driver publishes first, so which pods share a node is open.
    """

    async def scenario(rig, namespace):
        requests = [a_pod(f"web-{number}", namespace) for number in range(3)]
        for pod in requests:
            gpu = {"nvidia.com/gpu": "1"}
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", **gpu}, "limits": gpu}
        claiming = [a_claiming_pod(f"claiming-{number}", namespace) for number in range(2)]
        await rig.create(a_claim_template(namespace), *requests, *claiming)
        await rig.create(a_template(), a_provisioner(requirements=[TYPES]))
        names = [pod["metadata"]["name"] for pod in (*requests, *claiming)]
        await rig.running(namespace, *names)
        await rig.until(
            lambda: rig.api.list(CLAIMS), lambda claims: [*map(is_initialized, claims)] == [True, True]
        )
        for node in rig.api.list(NODES):
            assert "nvidia.com/gpu" not in node["status"]["allocatable"]
        status = rig.api.get(f"/api/v1/namespaces/{namespace}/pods/web-0")["status"]
        assert status["extendedResourceClaimStatus"]["resourceClaimName"].startswith("web-0-extended-")
        held = sorted(held_devices(rig, namespace).values())
        assert held in ([1, 4], [2, 3])
        left = 4 - held[0]
        late = a_pod("late", namespace)
        (container,) = late["spec"]["containers"]
        container |= {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
        late["spec"]["containers"].append({**container, "name": "second"})
        starting = {"resources": {"limits": {"nvidia.com/gpu": str(left)}}}
        late["spec"]["initContainers"] = [{**container, "name": "first", **starting}]
        await rig.create(late)
        await rig.running(namespace, "late")
        assert len(rig.api.list(CLAIMS)) == 2, f"{left} GPUs were left on one node"
        late = rig.api.get(f"/api/v1/namespaces/{namespace}/pods/late")
        name = late["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        claim = rig.api.get(f"{DRA}/namespaces/{namespace}/resourceclaims/{name}")
        counts = [each["exactly"]["count"] for each in claim["spec"]["devices"]["requests"]]
        assert decode_pod(json.dumps(late).encode()).extended_parts == (("nvidia.com/gpu", tuple(counts)),)

    scene(scenario)


def test_pods_that_name_one_claim_go_to_the_node_on_which_it_is_allocated(scene, drivers):
    """One that has no room there waits: no other node would help it."""

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(requirements=[TYPES]))
        devices = a_claim_template(namespace)["spec"]["spec"]
        metadata = {"name": "shared", "namespace": namespace}
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
        await rig.create({**claim, "spec": devices})
        pods = {name: a_claiming_pod(name, namespace) for name in ("first", "second", "large")}
        for pod in pods.values():
            pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
        pods["large"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "47"
        await rig.create(pods["first"], pods["second"])
        node = await rig.running(namespace, "first", "second")
        assert await rig.running(namespace, "second") == node
        await rig.create(pods["large"])
        await rig.event(namespace, "large", "FailedScheduling", about="No capacity for this pod")
        assert len(rig.api.list(CLAIMS)) == 1

    scene(scenario)


def test_a_pod_whose_devices_no_node_has_is_told_which_selector_fails(scene, drivers):
    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(requirements=[TYPES]))
        large = f"device.capacity['{DRIVER}'].memory.isGreaterThan(quantity('80Gi'))"
        await rig.create(a_claim_template(namespace, selector=large), a_claiming_pod("web", namespace))
        said = await rig.event(namespace, "web", "FailedScheduling", about="no known device meets")
        assert "80Gi" in said["message"]
        assert not rig.api.list(CLAIMS)

    scene(scenario)


PART = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('4Gi')) < 0"


@pytest.mark.parametrize(
    ("published", "wanted", "fit"),
    [
        (four_shared_gpus, {"selector": "true", "capacity": {"requests": {"memory": "5Gi"}}}, 9),
        (two_gpus_in_parts, {"selector": PART}, 4),
    ],
    ids=["shared", "parts"],
)
def test_parts_of_devices_are_planned_as_kube_scheduler_allocates_them(
    scene, device_class, published, wanted, fit
):
    """One pod has a whole GPU of the first node; of the rest so many parts are had, then a node is bought."""

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(requirements=[TYPES]))
        await rig.create(a_claim_template(namespace), a_claim_template(namespace, name="part", **wanted))
        await rig.create(a_claiming_pod("whole", namespace))
        await publish(rig, 1, published)
        first = await rig.running(namespace, "whole")
        names = [f"part-{number}" for number in range(fit + 1)]
        for name in names:
            pod = a_claiming_pod(name, namespace, "part")
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100m"
            await rig.create(pod)
        await publish(rig, 2, published)
        await rig.running(namespace, *names)
        nodes = [rig.api.find(f"/api/v1/namespaces/{namespace}/pods/{name}") for name in names]
        assert [pod["spec"]["nodeName"] == first for pod in nodes].count(True) == fit
        assert len(rig.api.list(CLAIMS)) == 2

    scene(scenario)


@pytest.mark.parametrize(
    ("lost", "told"),
    [(1, "it asks for 4 devices of one node, which has 3 at most"), (4, "no known device meets")],
    ids=["one", "all"],
)
def test_devices_that_did_not_come_with_the_node_are_not_bought_again(scene, drivers, lost, told):
    """The driver finds fewer GPUs, or none: the pod is told so, and one node was enough to learn it."""

    async def scenario(rig, namespace):
        rig.kubelets.lost_devices = lost
        await rig.create(a_template(), a_provisioner(requirements=[TYPES]))
        await rig.create(a_claim_template(namespace, 4), a_claiming_pod("web", namespace))
        await rig.event(namespace, "web", "FailedScheduling", about=told)
        assert len(rig.api.list(CLAIMS)) == 1

    scene(scenario)


def test_a_gpu_and_an_interface_of_its_pcie_root_are_had_of_a_node_that_is_launched_for_them(scene, drivers):
    """Once a node without interfaces is there, with GPUs to spare."""

    async def scenario(rig, namespace):
        await rig.create(a_template(), a_provisioner(requirements=[TYPES]))
        pair = a_claim_template(namespace, name="pair")
        devices = pair["spec"]["spec"]["devices"]
        devices["requests"].append({"name": "efa", "exactly": {"deviceClassName": "efa.networking.k8s.aws"}})
        devices["constraints"] = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
        await rig.create(a_claim_template(namespace), pair, a_claiming_pod("alone", namespace))
        first = await rig.running(namespace, "alone")
        await rig.create(a_claiming_pod("paired", namespace, "pair"))
        assert await rig.running(namespace, "paired") != first
        assert len(rig.api.list(CLAIMS)) == 2

    scene(scenario)


def test_a_claim_has_a_gpu_of_its_node_and_a_device_that_all_nodes_reach(scene, drivers, api):
    """Of these there is one: of two pods one gets a node."""
    driver = "fabric.example.com"
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": driver},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}]},
    }
    (fabric,) = slices_of("fabric", [{"name": "link"}], driver=driver)
    del fabric["spec"]["nodeName"]
    fabric["spec"]["allNodes"] = True

    async def scenario(rig, namespace):
        await rig.create(device_class, fabric, a_template(), a_provisioner(requirements=[TYPES]))
        both = a_claim_template(namespace)
        link = {"name": "link", "exactly": {"deviceClassName": driver}}
        both["spec"]["spec"]["devices"]["requests"].append(link)
        await rig.create(both, a_claiming_pod("first", namespace))
        await rig.running(namespace, "first")
        (claim,) = rig.api.list(f"{DRA}/namespaces/{namespace}/resourceclaims")
        had = {result["driver"] for result in claim["status"]["allocation"]["devices"]["results"]}
        assert had == {DRIVER, driver}
        await rig.create(a_claiming_pod("second", namespace))
        await rig.event(namespace, "second", "FailedScheduling", about="are all allocated")
        assert len(rig.api.list(CLAIMS)) == 1

    try:
        scene(scenario)
    finally:
        api.delete(f"{DRA}/deviceclasses/{driver}", missing_ok=True)


def test_a_node_is_bought_for_devices_that_a_user_says_its_type_has(scene, api):
    """First with a fault in what is said, then without."""
    driver = "fpga.example.com"
    expression = f"device.driver == '{driver}'"
    api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": driver},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
    )

    def said(count):
        return {DEVICES: json.dumps([{"driver": driver, "devices": [{"count": count}]}])}

    async def scenario(rig, namespace):
        overlay = an_overlay("fpgas", "m5.large")
        overlay["metadata"]["annotations"] = said(0)
        await rig.create(a_template(), a_provisioner(requirements=[TYPES]), overlay)
        await rig.create(a_claim_template(namespace, selector="true", deviceClassName=driver))
        broken = await until_valid(rig, "fpgas", "False")
        assert "devices[0].count" in condition(broken)["message"]
        await rig.create(a_claiming_pod("web", namespace))
        await rig.event(namespace, "web", "FailedScheduling", about="no known device meets")
        rig.api.patch(f"{OVERLAYS}/fpgas", {"metadata": {"annotations": said(1)}})
        await until_valid(rig, "fpgas")
        await publish(rig, 1, lambda node: slices_of(node, [{"name": "fpga-0"}], driver=driver))
        await rig.running(namespace, "web")
        (claim,) = rig.api.list(CLAIMS)
        assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.large"

    try:
        scene(scenario, settings=ON)
    finally:
        api.delete(f"{DRA}/deviceclasses/{driver}", missing_ok=True)
        forget_slices(api)
