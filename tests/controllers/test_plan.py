"""`nodeless plan`: manifests in, a plan, its cost and reasons out."""

import json
import re

import pytest
import yaml

from tests.api.manifests import ec2_node_class, node_pool, node_template, provisioner, requirement
from tests.controllers.buffers import a_pod_template
from tests.controllers.planning import EXAMPLES, SETTINGS, a_workload, nodeless, nodes_of, report
from tests.controllers.requests import CHECK, a_request


def test_the_examples_are_planned_with_exit_code_1_for_the_server_that_has_no_place():
    result = nodeless(EXAMPLES)

    assert result.exit_code == 1, result.output
    assert "prices of us-east-1, " in result.stdout
    assert re.search(r"shop/web \(Deployment\) +12 +new-", result.stdout)
    assert "Not placed: 2 pods of shop/model-server (Deployment)" in result.stdout
    assert "NodePool/general: kubernetes.io/arch In [arm64] does not overlap" in result.stdout
    assert "would fit: let NodePool/general allow kubernetes.io/arch arm64" in result.stdout
    assert "Placed 24 of 26 pods." in result.stdout
    assert not [line for line in result.stdout.splitlines() if line != line.rstrip()]


def test_what_all_have_a_place_exits_with_0():
    result = nodeless(EXAMPLES / "pools.yaml", EXAMPLES / "workloads.yaml")

    assert result.exit_code == 0, result.output
    assert "Not placed" not in result.stdout


@pytest.mark.parametrize(
    ("kind", "spec", "number"),
    [
        ("Deployment", {"replicas": 3}, 3),
        ("Deployment", {}, 1),
        ("ReplicaSet", {"replicas": 2}, 2),
        ("StatefulSet", {"replicas": 2}, 2),
        ("Job", {"parallelism": 4, "completions": 2}, 2),
        ("Job", {"suspend": True}, 0),
        ("CronJob", {"parallelism": 5}, 5),
    ],
)
def test_every_workload_becomes_its_pods(file, kind, spec, number):
    made = report(file(provisioner(), node_template(), a_workload(kind, **spec)))

    assert sum(landing["pods"] for landing in made["landings"]) == number
    assert all(landing["workload"]["kind"] == kind for landing in made["landings"])


def test_daemon_sets_take_their_part_of_every_new_node(file):
    agent = a_workload("DaemonSet", "agent", cpu="700m")
    made = report(file(provisioner(), node_template(), a_workload(), agent))

    (new,) = made["nodes"]
    assert new["daemons"]["cpu"] == 700


def a_buffer(name, namespace="shop", **spec):
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def test_room_is_planned_for_capacity_buffers_too(file):
    web = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    path = file(
        provisioner(),
        node_template(),
        a_workload(replicas=4),
        a_buffer("headroom", scalableRef=web, percentage=50),
        a_buffer("lost", podTemplateRef={"name": "nowhere"}, replicas=1),
        a_buffer("empty", scalableRef=web),
    )

    assert [
        (landing["workload"]["kind"], landing["workload"]["name"], landing["pods"])
        for landing in report(path)["landings"]
    ] == [("CapacityBuffer", "headroom", 2), ("Deployment", "web", 4)]
    told = nodeless(path).stdout
    assert "capacity buffer shop/lost reserves no capacity: PodTemplate/shop/nowhere does not exist" in told
    assert (
        "capacity buffer shop/empty reserves no capacity: replicas, percentage and limits result in 0 "
        "pods" in told
    )


def test_the_pods_of_provisioning_requests_are_planned_whole_or_not_at_all(file):
    shop = "shop"
    path = file(
        provisioner(limits={"resources": {"cpu": "16"}}),
        node_template(),
        a_pod_template(shop),
        a_request(shop, "small", count=3, version="v1beta1"),
        a_request(shop, "large", count=500),
        a_request(shop, "checked", class_name=CHECK),
        a_request(shop, "foreign", class_name="queued-provisioning.gke.io"),
        a_request(shop, "lost", podSets=[{"podTemplateRef": {"name": "nowhere"}, "count": 1}]),
        a_request(shop, "odd", parameters={"ValidUntilSeconds": "soon"}),
    )

    planned = report(path)
    assert [
        (landing["workload"]["name"], landing["pods"], landing["refused"])
        for landing in planned["landings"]
        if landing["workload"]["kind"] == "ProvisioningRequest"
    ] == [("large", 500, 500), ("small", 3, 0)]
    told = nodeless(path).stdout
    for name, why in (
        ("checked", "its class only checks existing capacity"),
        ("foreign", "class queued-provisioning.gke.io or instance is another autoscaler's"),
        ("lost", "PodTemplate/shop/nowhere does not exist"),
        ("odd", "spec.parameters.ValidUntilSeconds is 'soon'"),
    ):
        assert f"provisioning request shop/{name} is not planned: {why}" in told


@pytest.mark.parametrize("pools", [(provisioner(), node_template()), (node_pool(), ec2_node_class())])
def test_pools_of_both_generations_make_nodes(file, pools):
    made = report(file(*pools, a_workload(replicas=2)))

    assert made["complete"]
    assert made["launches"][0]["pool"] == f"{pools[0]['kind']}/default"


def test_a_list_on_stdin_with_nodes_and_running_pods_is_a_cluster(file):
    machine = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "labels": {
                "node.kubernetes.io/instance-type": "m5.xlarge",
                "topology.kubernetes.io/zone": "us-east-1a",
                "karpenter.sh/capacity-type": "on-demand",
                "karpenter.sh/provisioner-name": "default",
                "karpenter.sh/initialized": "true",
                "karpenter.sh/registered": "true",
            },
        },
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {"allocatable": {"cpu": "4", "memory": "14Gi", "pods": "58"}, "capacity": {"cpu": "4"}},
    }
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    run = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "old", "namespace": "shop"},
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"phase": "Running"},
    }
    wanting = {**run, "metadata": {"name": "young"}, "spec": {"containers": [container]}, "status": {}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [machine, run, wanting]}

    made = report("-", file(provisioner(), node_template()), stdin=yaml.safe_dump(listed))

    assert made["launches"] == []
    assert made["landings"][0]["on_existing"] == [["n1", 1]]
    # The instance, and its root volume of 20 GiB.
    now = pytest.approx(0.192 + 20 * 0.08 / 730)
    assert made["cost"]["perHour"] == {"before": now, "added": 0, "after": now}


def test_pods_of_a_workload_that_are_there_are_not_made_again(file):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f", "controller": True, "uid": "u"}
    there = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-5f-x",
            "namespace": "shop",
            "labels": {"pod-template-hash": "5f"},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    made = report(file(provisioner(), node_template(), a_workload(replicas=3), there))

    assert sum(landing["pods"] for landing in made["landings"]) == 3


def test_what_is_not_in_the_files_is_assumed_and_said(file):
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3"}}
    stateful = a_workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[claim])
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}}
    result = nodeless(file(node_pool(), stateful, service))

    assert result.exit_code == 0, result.output
    assert "EC2NodeClass/default of NodePool/default is not in the files" in result.stdout
    assert "storage class gp3 is not in the files" in result.stdout
    assert "ignored: Service (1)" in result.stdout


@pytest.mark.parametrize("provisioner_name", ["efs.csi.aws.com", "ebs.csi.aws.com"])
def test_claims_of_a_class_that_waits_for_no_pod_are_planned_as_bound(file, provisioner_name):
    """The provisioner creates their volumes before the pods have nodes; a file cannot show that."""
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "at-once"},
        "provisioner": provisioner_name,
    }
    spec = {"storageClassName": "at-once"}
    meta = {"name": "shared", "namespace": "shop"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    mounts = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}]}
    data = {"metadata": {"name": "data"}, "spec": spec}
    stateful = a_workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[data])
    made = report(file(node_pool(), storage, claim, a_workload(replicas=2, pod=mounts), stateful))

    assert sum(landing["refused"] for landing in made["landings"]) == 0
    assert [note for note in made["notes"] if note.startswith("storage class at-once creates volumes before")]


def test_a_claim_that_names_a_volume_of_the_files_is_planned_as_bound_to_it(file):
    """A static volume, as of S3 or FSx; the control plane binds the claim once both are there."""
    static = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "bucket"},
        "spec": {"csi": {"driver": "s3.csi.aws.com"}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "bucket", "namespace": "shop"},
        "spec": {"storageClassName": "", "volumeName": "bucket"},
    }
    mounts = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "bucket"}}]}
    made = report(file(node_pool(), static, claim, a_workload(pod=mounts)))

    assert [landing["refused"] for landing in made["landings"]] == [0]
    assert "persistent volume claim shop/bucket: planned as bound to its volume bucket" in made["notes"]


@pytest.mark.parametrize(
    ("start", "zones"), [(None, {"us-east-1c"}), (2, {"us-east-1c"}), (7, {"us-east-1a"})]
)
def test_a_member_of_a_stateful_set_gets_the_claim_of_its_name_that_is_there(file, start, zones):
    """As after a scale-down, which leaves the claims: its node has to be in the zone of the volume."""
    name = f"data-db-{2 if start == 2 else 0}"
    zone = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["us-east-1c"]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "csi": {"driver": "ebs.csi.aws.com"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"storageClassName": "gp3", "volumeName": "pv"},
    }
    ordinals = {} if start is None else {"ordinals": {"start": start}}
    data = {"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3"}}
    stateful = a_workload("StatefulSet", "db", replicas=1, volumeClaimTemplates=[data], **ordinals)
    made = report(file(node_pool(), stateful, volume, claim))
    assert {zone for launch in made["launches"] for zone in launch["zones"]} == zones


def test_a_claim_template_takes_the_place_of_a_volume_of_its_name(file):
    """Kubernetes' StatefulSet controller replaces the volume of the pod template."""
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3"}}
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "cache", "persistentVolumeClaim": {"claimName": "cache"}},
    ]
    stateful = a_workload("StatefulSet", "db", volumeClaimTemplates=[claim], pod={"volumes": volumes})
    notes = report(file(node_pool(), stateful))["notes"]

    assert [note for note in notes if "claim shop/cache is not in the files" in note]
    assert not [note for note in notes if "claim shop/shared" in note]


def test_pods_on_the_hosts_network_share_no_node_for_one_port(file):
    """The API server would fill the host port in; a manifest does not show it."""
    port = {"name": "c", "image": "i", "ports": [{"containerPort": 8080}]}
    ingress = a_workload(replicas=2, pod={"hostNetwork": True, "containers": [port]})
    assert nodes_of(report(file(provisioner(), node_template(), ingress))) == 2


@pytest.mark.parametrize(("keys", "nodes"), [(("tenant",), 2), ((), 1)])
def test_tenants_keep_off_each_others_nodes(file, keys, nodes):
    """Each tenant's pods may share a node: `mismatchLabelKeys` means pods of other tenants."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchExpressions": [{"key": "tenant", "operator": "Exists"}]},
        "mismatchLabelKeys": list(keys),
    }
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] if keys else []}}
    tenants = []
    for name in ("red", "blue"):
        workload = a_workload(name=name, cpu="100m", replicas=2, pod={"affinity": anti})
        workload["spec"]["template"]["metadata"]["labels"]["tenant"] = name
        tenants.append(workload)
    made = report(file(provisioner(), node_template(), *tenants))
    assert nodes_of(made) == nodes
    assert sum(landing["pods"] for landing in made["landings"]) == 4


@pytest.mark.parametrize(("labels", "placed"), [({"team": "a"}, True), ({"team": "b"}, False), (None, False)])
def test_namespaces_among_the_manifests_tell_their_labels(file, labels, placed):
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    data = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data", "labels": labels}}
    workloads = (a_workload(name="db", namespace="data"), a_workload(pod={"affinity": near}))
    given = file(provisioner(), node_template(), *workloads, *([data] if labels else []))
    assert (nodeless(given).exit_code == 0) is placed
    said = "namespace data is not in the files: planned as one without labels"
    assert (said in nodeless(given).output) is (labels is None)


def claiming_devices(selector="true", count=1):
    """A template of claims, and a workload whose pods name it."""
    request = {
        "name": "gpu",
        "exactly": {
            "deviceClassName": "gpu.nvidia.com",
            "count": count,
            "selectors": [{"cel": {"expression": selector}}],
        },
    }
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "large", "namespace": "shop"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    claim = {"name": "gpu", "resourceClaimTemplateName": "large"}
    return template, a_workload(pod={"resourceClaims": [claim]})


def test_pods_that_claim_devices_are_planned_on_types_that_have_them(file):
    large = "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('30Gi'))"
    given = file(node_pool(), ec2_node_class(), *claiming_devices(large, count=2))
    made = report(given)
    (launch,) = made["launches"]
    assert launch["instance_type"] == "g7e.12xlarge", "on spot, the cheapest with two GPUs of more than 30 Gi"
    assert "DeviceClass gpu.nvidia.com is not in the files" in json.dumps(made["notes"])


def device_class(name, resource, created="2026-01-01T00:00:00Z"):
    expression = "device.driver == 'gpu.nvidia.com'"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"extendedResourceName": resource, "selectors": [{"cel": {"expression": expression}}]},
    }


def asking_for(resource, replicas=1):
    """A workload whose pods request an extended resource."""
    made = a_workload(replicas=replicas)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    return made


def test_pods_that_request_what_devices_serve_are_planned_on_types_that_have_these(file):
    gpu = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
    made = report(file(node_pool(), ec2_node_class(), asking_for(gpu)))
    (launch,) = made["launches"]
    assert launch["instance_type"].startswith("g")
    assert "DeviceClass gpu.nvidia.com is not in the files" in json.dumps(made["notes"])


def test_classes_that_serve_one_resource_or_none_are_named_in_the_plan(file):
    old, new = device_class("old", "x.com/gpu"), device_class("new", "x.com/gpu", "2026-02-01T00:00:00Z")
    odd = device_class("odd", "gpu")
    made = report(file(node_pool(), ec2_node_class(), old, new, odd, asking_for("x.com/gpu", replicas=2)))
    notes = json.dumps(made["notes"])
    assert (
        "DeviceClass old: spec.extendedResourceName x.com/gpu is served by DeviceClass new instead" in notes
    )
    assert "DeviceClass odd: spec.extendedResourceName gpu has no domain" in notes
    assert nodes_of(made) > 0


@pytest.mark.parametrize("present", [True, False])
def test_a_pod_that_claims_devices_is_refused_with_what_is_missing(file, present):
    template, workload = claiming_devices("device.driver == 'x.com'")
    made = report(file(node_pool(), ec2_node_class(), workload, *([template] if present else [])))
    assert nodes_of(made) == 0
    said = "no known device meets device.driver" if present else "ResourceClaimTemplate shop/large does not"
    assert said in json.dumps(made)


def test_settings_among_the_manifests_count(file):
    web = [provisioner(), node_template(), a_workload(replicas=40)]
    fewest = {**SETTINGS, "data": {"nodeless.packing": "fewest-nodes", "nodeless.nodeFee": "1"}}
    given = file(*web)
    plain, settled = report(given), report(file(*web, fewest, name="settled.yaml"))

    assert nodes_of(settled) < nodes_of(plain)
    assert settled["cost"]["perHour"]["added"] > nodes_of(settled)
    assert not [note for note in settled["notes"] if "ConfigMap" in note]
    assert nodes_of(report(given, "--what-if", "packing=fewest-nodes")) < nodes_of(plain)


def test_the_plan_says_what_fewer_nodes_cost_and_a_setting_bounds_it(file):
    services = [a_workload(name=f"app{each}", cpu=f"{500 + 250 * each}m", replicas=1) for each in range(16)]

    def planned(tolerance):
        settings = {**SETTINGS, "data": {"nodeless.fewerNodesTolerance": tolerance}}
        return file(provisioner(), node_template(), *services, settings, name=f"{tolerance}.yaml")

    many, few = report(planned("0")), report(planned("3"))
    given_up = few["cost"]["fewerNodes"]
    assert many["cost"]["fewerNodes"] is None
    assert nodes_of(many) - nodes_of(few) == given_up["nodes"] > 0
    added = many["cost"]["perHour"]["added"]
    assert few["cost"]["perHour"]["added"] == pytest.approx(added + given_up["perHour"])
    assert given_up["perHour"] <= 0.03 * added
    line = r"(\d+) nodes? fewer than the cheapest plan found, for 0\.\d{4} USD/h more"
    said = re.search(line, nodeless(planned("3")).stdout)
    assert int(said[1]) == given_up["nodes"]


def test_nothing_pending_is_no_failure(file):
    result = nodeless(file(provisioner(), node_template()))

    assert result.exit_code == 0
    assert "Nothing to plan" in result.stdout


def test_nodes_of_a_static_pool_are_launched_for_no_pod(file):
    pool = node_pool(replicas=2)
    result = nodeless(file(pool, ec2_node_class()))

    assert result.exit_code == 0, result.output
    assert "Launch 2 nodes" in result.stdout
    assert "No pod is pending." in result.stdout
    assert "Nothing to plan" not in result.stdout


def test_pods_wait_for_the_nodes_of_a_static_pool_that_are_launched_beside_them(file):
    large = [requirement("node.kubernetes.io/instance-type", "In", "m5.large")]
    pool = node_pool(replicas=2, template={"requirements": large})
    result = nodeless(file(pool, ec2_node_class(), a_workload(cpu="100m", replicas=3)))

    assert result.exit_code == 0, result.output
    assert "Launch 2 nodes\n" in result.stdout
    assert "Placed 3 of 3 pods." in result.stdout


def test_a_pod_that_wants_a_larger_disk_has_a_place_with_the_volume_that_is_advised(file):
    web = a_workload(cpu="1")
    web["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "25G"
    refused = nodeless(file(node_pool(), ec2_node_class(), web))

    assert "ephemeral-storage: 23842Mi requested, but the largest" in refused.stdout
    advice = re.search(
        r"a volume of (\d+Gi) instead of 20Gi \(blockDeviceMappings of EC2Node", refused.stdout
    )
    assert advice
    device = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": advice[1]}}
    larger = ec2_node_class(blockDeviceMappings=[device])
    assert nodeless(file(node_pool(), larger, web, name="larger.yaml")).exit_code == 0


def test_less_disk_is_advised_in_the_same_unit(file):
    web = a_workload(cpu="1")
    web["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "25G"
    refused = nodeless(file(node_pool(), ec2_node_class(), web))

    assert "request ephemeral-storage 17Gi instead of 23842Mi (6434Mi less)" in refused.stdout


def test_the_page_goes_to_stdout_alone(file):
    result = nodeless(file(provisioner(), node_template(), a_workload()), "--html", "-")

    assert result.exit_code == 0
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.rstrip().endswith("</html>")
    both = nodeless(file(provisioner(), node_template(), a_workload()), "--html", "-", "--json")
    assert both.exit_code == 2
    assert "--html - and -o json both write to stdout; hint: give --html a file" in both.stderr


def test_without_a_kubeconfig_the_command_says_where_it_looked(tmp_path, monkeypatch):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    result = nodeless()

    assert result.exit_code == 2
    assert f"KUBECONFIG is not set, and there is no {tmp_path}/.kube/config; hint: set" in result.stderr


@pytest.mark.parametrize(
    ("kind", "first", "second", "named"),
    [("Namespace", None, None, "Namespace/x"), ("Secret", None, "default", "Secret/default/x")],
)
def test_an_object_that_is_given_twice_is_named_with_its_namespace_if_it_has_one(
    file, kind, first, second, named
):
    def given(namespace):
        metadata = {"name": "x", **({"namespace": namespace} if namespace else {})}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata}

    result = nodeless(file(given(first), given(second)))

    assert result.exit_code == 2
    assert f": {named}: it is at " in result.stderr


def test_a_report_tells_the_parts_of_prices_and_what_is_not_known(file):
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "karpenter-global-settings", "namespace": "karpenter"},
        "data": {"nodeless.nodeFee": "0.01", "nodeless.priceAdjustments": '[{"percent": -10}]'},
    }
    path = file(a_workload(), provisioner(), node_template(), settings)
    made = report(path)

    (launch,) = made["launches"]
    parts = {part["name"]: part.get("dollars") for part in launch["parts"]}
    assert list(parts) == ["instance", "adjustments", "volumes", "public IPv4", "node fee"]
    assert parts["public IPv4"] is None
    assert parts["adjustments"] == pytest.approx(-parts["instance"] / 10)
    assert parts["node fee"] == pytest.approx(0.01)
    assert sum(filter(None, parts.values())) == pytest.approx(launch["price"])
    assert sum(made["cost"]["addedByPart"].values()) == pytest.approx(made["cost"]["perHour"]["added"])
    sources = {part["name"]: part.get("sources", []) for part in launch["parts"]}
    assert sources["instance"][0]["name"].endswith("catalog of us-east-1")
    assert sources["volumes"] == [{"name": "AWS's EBS prices", "date": "2021-07-14"}]
    assert sources["node fee"] == [{"name": "nodeless.nodeFee"}]
    assert sources["public IPv4"] == []
    text = nodeless(path).stdout
    assert "What a node costs an hour" in text
    assert "  volumes: AWS's EBS prices (2021-07-14)\n" in text[text.index("Where prices are from") :]
    assert "not known, and not included in any price: public IPv4 (subnets decide)" in text
    assert any(note.startswith("prices besides instances: addresses 20") for note in made["notes"])


@pytest.mark.parametrize(
    ("public", "parts", "said"),
    [
        (False, [], "Proved cheapest: no other plan for these pods costs less."),
        (
            None,
            ["public IPv4"],
            "Leaving out public IPv4, whose price is not known, no other plan for these pods costs less.",
        ),
    ],
)
def test_a_plan_is_proved_cheapest_as_far_as_prices_are_known(file, tmp_path, public, parts, said):
    path = file(a_workload(), node_pool(), ec2_node_class(associatePublicIPAddress=public))
    page = tmp_path / "plan.html"
    assert report(path)["cost"]["unknownParts"] == parts
    assert said in nodeless(path, "--html", str(page)).stdout
    assert said.removeprefix("Proved cheapest: ").removesuffix(".") in page.read_text()
    assert ("proved: " in page.read_text()) == (not parts)


def test_each_bill_of_a_type_is_told_with_its_pool(file, tmp_path):
    """Two pools that buy the same type, with and without 2 TiB and an address."""
    types = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    disk = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "2Ti", "volumeType": "gp3"}}
    dear = {"associatePublicIPAddress": True, "blockDeviceMappings": [disk]}
    objects = []
    for name, choices in (("small", {"associatePublicIPAddress": False}), ("big", dear)):
        made = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}
        template = {"requirements": types, "nodeClassRef": made}
        pool = node_pool(template=template, metadata={"labels": {"team": name}})
        objects += [{**each, "metadata": {"name": name}} for each in (pool, ec2_node_class(**choices))]
        objects.append(a_workload(name=name, pod={"nodeSelector": {"team": name}}))
    path, page = file(*objects), tmp_path / "page.html"
    text = nodeless(path, "--html", page).stdout

    bills = [
        "m5.xlarge, on-demand, NodePool/big: 0.4214 = instance 0.1920 + volumes 0.2244 (2048 GiB gp3)",
        "m5.xlarge, on-demand, NodePool/small: 0.1942 = instance 0.1920 + volumes 0.0022 (20 GiB gp3)",
    ]
    for bill in bills:
        assert f"  {bill}" in text
        assert bill in page.read_text()


def test_what_is_not_known_of_existing_nodes_is_told(file, tmp_path):
    labels = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m5.xlarge",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    there = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        for name in ("n1", "n2")
    ]
    path, page = file(node_pool(), ec2_node_class(), *there), tmp_path / "page.html"
    told = "Not known, and not included in what existing nodes cost: public IPv4 of 2 nodes"

    assert f"\n{told}\n" in nodeless(path, "--html", page).stdout
    assert told in page.read_text()


def test_commitments_are_told_where_nothing_is_launched(file):
    labels = {
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m5.xlarge",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    there = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}}
    commitment = {"name": "reserved", "instanceTypes": ["m5.xlarge"], "instances": 2}
    data = {"nodeless.commitments": json.dumps([commitment])}
    text = nodeless(file(node_pool(), ec2_node_class(), there, {**SETTINGS, "data": data})).stdout

    assert "Reserved Instances and Savings Plans\n  reserved: 1 of 2 instances used (50%)\n" in text


def test_a_report_tells_what_commitments_pay_and_how_much_of_them_is_used(file):
    (bought,) = report(file(a_workload(), provisioner(), node_template()))["launches"]
    commitments = [
        {"name": "reserved", "instanceTypes": [bought["instance_type"]], "instances": 1},
        {"name": "plan", "instanceTypes": ["m9x.*"], "dollarsPerHour": 1, "discountPercent": 30},
        {"name": "over", "dollarsPerHour": 9, "discountPercent": 30, "until": "2020-01-01"},
    ]
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "karpenter-global-settings", "namespace": "karpenter"},
        "data": {"nodeless.commitments": json.dumps(commitments)},
    }
    path = file(a_workload(), provisioner(), node_template(), settings)
    made = report(path)

    (covered,) = made["launches"]
    parts = {part["name"]: part.get("dollars") for part in covered["parts"]}
    assert parts["commitments"] == pytest.approx(-parts["instance"])
    assert covered["capacity_type"] == "on-demand"
    assert made["cost"]["addedByPart"]["commitments"] == pytest.approx(parts["commitments"])
    assert [(use["name"], use["used"], use["amount"]) for use in made["commitments"]] == [
        ("reserved", 1, 1),
        ("plan", 0, 1),
    ]
    assert "commitment over ended 2020-01-01" in made["notes"]
    text = nodeless(path).stdout
    told = text[text.index("Reserved Instances and Savings Plans") :]
    assert "reserved: 1 of 1 instances used (100%)" in told
    assert "plan: no pool buys an on-demand instance type that it is for" in told
    assert "over" not in told.split("Where prices are from")[0]


@pytest.mark.parametrize(("cpu", "refused", "text"), [("64", 0, ""), ("6", 8, " of 8 pods fit; pod ")])
def test_a_job_that_is_a_gang_is_planned_whole_or_not_at_all(file, cpu, refused, text):
    template = {
        "metadata": {"annotations": {"nodeless.dev/gang-size": "8"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": {"completions": 8, "parallelism": 8, "template": template},
    }
    path = file(provisioner(limits={"resources": {"cpu": cpu}}), node_template(), job)
    planned = report(path)
    assert [(landing["pods"], landing["refused"]) for landing in planned["landings"]] == [(8, refused)]
    told = nodeless(path).stdout
    assert ("gang shop/train: " in told) == bool(refused)
    assert text in told


GANG_TEMPLATE = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}],
    },
}
ASKS = {"nodeless.dev/gang": "true"}


def a_gang_job(labels=ASKS, **spec):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "labels": labels},
        "spec": {"completions": 8, "parallelism": 8, "template": GANG_TEMPLATE, **spec},
    }


def a_gang_job_set():
    jobs = {"spec": {"completions": 4, "parallelism": 4, "template": GANG_TEMPLATE}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "labels": ASKS},
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": jobs}]},
    }


def a_pod_group_and_its_pods(members=8):
    template = {**GANG_TEMPLATE, "metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}}
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"minMember": members},
    }
    return group, a_gang_job({}, template=template)


@pytest.mark.parametrize(("cpu", "refused"), [("64", 0), ("6", 8)])
@pytest.mark.parametrize(
    "gang", [(a_gang_job(),), (a_gang_job_set(),), a_pod_group_and_its_pods()], ids=["Job", "JobSet", "group"]
)
def test_gangs_of_files_have_the_size_that_their_owner_says(file, gang, cpu, refused):
    path = file(provisioner(limits={"resources": {"cpu": cpu}}), node_template(), *gang)
    planned = report(path)
    assert [(landing["pods"], landing["refused"]) for landing in planned["landings"]] == [(8, refused)]
    assert ("gang default/train: " in nodeless(path).stdout) == bool(refused)


def test_a_job_that_does_not_ask_is_planned_pod_by_pod(file):
    path = file(provisioner(limits={"resources": {"cpu": "6"}}), node_template(), a_gang_job({}))
    (landing,) = report(path)["landings"]
    assert 0 < landing["refused"] < 8
    assert "gang" not in nodeless(path).stdout


def test_the_groups_of_a_leader_worker_set_are_planned_each_for_itself(file):
    template = {**GANG_TEMPLATE, "metadata": {"annotations": {"nodeless.dev/gang-size": "owner"}}}
    workers = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve"},
        "spec": {"replicas": 3, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template}},
    }
    path = file(provisioner(limits={"resources": {"cpu": "10"}}), node_template(), workers)
    landings = report(path)["landings"]
    assert sum(landing["pods"] for landing in landings) == 12
    refused = sum(landing["refused"] for landing in landings)
    assert 0 < refused < 12
    assert refused % 4 == 0
    assert "gang default/serve-" in nodeless(path).stdout
