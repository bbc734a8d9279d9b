"""Both bills on the same pods, the pods that would behave differently, and the steps."""

import random

import pytest
import yaml

from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from tests.migration.running import (
    INPUT,
    a_nodegroup,
    a_scaling_group,
    a_template,
    an_autoscaler,
    faults_of,
    left_of,
    migrate,
    migration,
    pools_of,
    written,
)

SOLD = bundled_catalog().with_spot_percent(40)
#: Dollars an hour of 20 GiB of gp3 in us-east-1, the volume of a node whose group says nothing.
VOLUME = 20 * 0.08 / 730


@pytest.fixture(scope="module")
def shop():
    return migration(INPUT)


def differing(made, code):
    return {one["workload"]: one for one in made["differences"] if one["code"] == code}


def test_the_bill_before_is_the_sum_of_list_prices_and_volumes(shop):
    spot = SOLD.spot["c5.2xlarge", "us-east-1a"]
    instances = 3 * SOLD.on_demand["m5.xlarge"] + 2 * spot + 2 * SOLD.on_demand["r5.large"]
    # A month: 50 GiB of gp3; 100 GiB with 4,000 IOPS and 250 MiB/s; 80 GiB of gp2.
    volumes = 3 * 50 * 0.08 + 2 * (100 * 0.08 + 1000 * 0.005 + 125 * 0.04) + 2 * 80 * 0.10
    expected = instances + volumes / 730
    assert shop["cost"]["perHour"]["before"] == pytest.approx(expected, abs=1e-6)
    assert shop["cost"]["perMonth"]["before"] == pytest.approx(expected * 730, abs=0.01)


def test_the_bill_after_is_that_of_the_plan_on_the_same_pods(shop):
    launched = sum(one["count"] * one["price"] for one in shop["plan"]["launches"])
    assert shop["cost"]["perHour"]["after"] == pytest.approx(launched)
    assert sum(one["pods"] for one in shop["plan"]["landings"]) == 16
    assert shop["cost"]["perHour"]["anyType"] <= shop["cost"]["perHour"]["after"]


@pytest.mark.parametrize(
    ("code", "workload", "change"),
    [
        ("GroupLabel", "shop/web (Deployment)", "karpenter.sh/nodepool: web"),
        ("GroupLabel", "batch/report (Job)", "karpenter.sh/capacity-type: spot"),
        ("SafeToEvict", "shop/cart (Deployment)", 'karpenter.sh/do-not-disrupt: "true"'),
        ("LocalStorage", "shop/cache (StatefulSet)", "karpenter.sh/do-not-disrupt"),
        ("SystemPod", "kube-system/coredns (Deployment)", "PodDisruptionBudget"),
        ("NoController", "old/shell (Pod)", "Deployment or Job"),
        ("Overprovisioning", "old/reserve (Deployment)", "CapacityBuffer"),
        ("BudgetExhausted", "old/ledger (StatefulSet)", "allow one"),
    ],
)
def test_pods_that_would_behave_differently_are_named_with_what_to_do(shop, code, workload, change):
    assert change in differing(shop, code)[workload]["change"]


def a_pod(name, **spec):
    annotations = spec.pop("annotations", {})
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": {"containers": [container], **spec},
    }


def with_pods(folder, *objects):
    dump = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return migration(written(folder, "web.json", a_nodegroup()), written(folder, "dump.yaml", dump))


@pytest.mark.parametrize(("ready", "named"), [("True", True), ("False", False)])
def test_a_budget_that_always_allows_the_eviction_of_pods_that_are_not_ready_holds_the_others(
    tmp_path, ready, named
):
    text = (INPUT / "cluster.yaml").read_text()
    start, end = text.index("    name: ledger-0"), text.index("    name: shell")
    pod = text[start:end].replace("'True'", f"'{ready}'")
    policy = "    unhealthyPodEvictionPolicy: AlwaysAllow\n"
    changed = (text[:start] + pod + text[end:]).replace(
        "    maxUnavailable: 0\n", "    maxUnavailable: 0\n" + policy
    )
    (tmp_path / "cluster.yaml").write_text(changed)
    made = migration(*(path for path in INPUT.iterdir() if path.suffix == ".json"), tmp_path / "cluster.yaml")
    assert bool(differing(made, "BudgetExhausted")) == named


def test_a_selector_of_eksctl_is_that_of_the_pool_of_its_group(tmp_path):
    tags = [{"Key": "alpha.eksctl.io/nodegroup-name", "Value": "general", "PropagateAtLaunch": True}]
    group = a_scaling_group(AutoScalingGroupName="eksctl-shop-NodeGroup-1ABC", Tags=tags)
    pod = a_pod("cart", nodeSelector={"alpha.eksctl.io/nodegroup-name": "general"})
    files = [
        written(tmp_path, "template.json", a_template()),
        written(tmp_path, "group.json", group),
        written(tmp_path, "dump.yaml", pod),
    ]
    made = migration(*files, "--role", "nodes")
    assert made["plan"]["unplaced"] == []
    (entry,) = differing(made, "GroupLabel").values()
    assert "ask for karpenter.sh/nodepool: eksctl-shop-nodegroup-1abc instead" in entry["change"]


def on_nodes(*expressions, required=True):
    """Node affinity by these expressions."""
    term = {"matchExpressions": list(expressions)}
    if required:
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    else:
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    return {"nodeAffinity": affinity}


@pytest.mark.parametrize(
    ("operator", "values", "required", "reason", "change"),
    [
        ("In", ["web"], True, "without a change they stay pending", "ask for karpenter.sh/nodepool: web"),
        ("In", ["web"], False, "the preference has no effect", "prefer karpenter.sh/nodepool: web"),
        ("NotIn", ["web"], True, "nothing keeps them off these", "avoid karpenter.sh/nodepool: web"),
        ("DoesNotExist", [], True, "nothing keeps them off these", "require that karpenter.sh/nodepool does"),
    ],
)
def test_what_affinity_to_a_group_becomes_is_told_by_its_operator(
    tmp_path, operator, values, required, reason, change
):
    expression = {"key": "eks.amazonaws.com/nodegroup", "operator": operator, "values": values}
    made = with_pods(tmp_path, a_pod("a", affinity=on_nodes(expression, required=required)))
    (entry,) = differing(made, "GroupLabel").values()
    assert reason in entry["reason"]
    assert entry["change"].startswith(change)


def test_pods_that_avoid_a_group_avoid_its_pool(tmp_path):
    expression = {"key": "eks.amazonaws.com/nodegroup", "operator": "NotIn", "values": ["web"]}
    made = with_pods(tmp_path, a_nodegroup("jobs"), a_pod("a", affinity=on_nodes(expression)))
    assert [launch["pool"] for launch in made["plan"]["launches"]] == ["NodePool/jobs"]


def test_a_label_that_the_pool_has_too_makes_no_difference(tmp_path):
    lifecycle = {"node.kubernetes.io/lifecycle": "spot"}
    files = [
        written(tmp_path, "web.json", a_nodegroup(labels=lifecycle, capacityType="SPOT")),
        written(tmp_path, "dump.yaml", a_pod("a", nodeSelector=lifecycle)),
    ]
    made = migration(*files)
    assert differing(made, "GroupLabel") == {}
    assert made["plan"]["unplaced"] == []


LOCAL = [{"name": "data", "emptyDir": {}}]


@pytest.mark.parametrize(
    ("annotations", "volumes", "flags", "differs"),
    [
        ({}, LOCAL, (), True),
        ({}, LOCAL, ("--skip-nodes-with-local-storage=false",), False),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, LOCAL, (), False),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "data"}, LOCAL, (), False),
        ({}, [{"name": "data", "emptyDir": {"medium": "Memory"}}], (), False),
        ({}, [{"name": "data", "hostPath": {"path": "/x"}}], (), True),
    ],
)
def test_local_storage_keeps_a_node_for_cluster_autoscaler_only(
    tmp_path, annotations, volumes, flags, differs
):
    made = with_pods(tmp_path, a_pod("a", annotations=annotations, volumes=volumes), an_autoscaler(*flags))
    assert bool(differing(made, "LocalStorage")) == differs


SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def a_node(name):
    labels = {
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "us-east-1a",
        "eks.amazonaws.com/nodegroup": "web",
    }
    size = {"cpu": "2", "memory": "7Gi", "pods": "29"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {"allocatable": size, "capacity": size},
    }


def a_cron_job(name, annotations, **spec):
    pod = a_pod(name, annotations=annotations, restartPolicy="Never", **spec)
    template = {"metadata": {"annotations": annotations}, "spec": pod["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}},
    }


def test_the_next_run_of_a_cron_job_is_protected_and_reselected_by_its_template(tmp_path):
    selector = {"eks.amazonaws.com/nodegroup": "web"}
    nightly = a_cron_job("nightly", {SAFE_TO_EVICT: "false"}, nodeSelector=selector)
    made = with_pods(tmp_path, a_node("node-1"), a_pod("a", nodeName="node-1"), nightly)
    assert list(differing(made, "SafeToEvict")) == ["shop/nightly (CronJob)"]
    assert list(differing(made, "GroupLabel")) == ["shop/nightly (CronJob)"]
    commands = [command for step in made["steps"] for command in step["commands"] if "nightly" in command]
    assert [command.partition(" --type")[0] for command in commands] == [
        "kubectl -n shop patch cronjob nightly"
    ] * 2
    assert all('{"spec":{"jobTemplate":{"spec":{"template":' in command for command in commands)


def test_pods_of_a_job_are_annotated_themselves(tmp_path):
    pod = a_pod("once-x", annotations={SAFE_TO_EVICT: "false"}, nodeName="node-1")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "once", "uid": "u", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    made = with_pods(tmp_path, a_node("node-1"), pod)
    (step,) = [one for one in made["steps"] if one["title"].startswith("Carry over the annotations")]
    annotate = "kubectl -n shop annotate pods -l job-name=once karpenter.sh/do-not-disrupt"
    assert (step["commands"], step["undo"]) == ([f"{annotate}=true"], [f"{annotate}-"])


def test_pods_that_are_protected_already_need_no_annotation(tmp_path):
    both = {SAFE_TO_EVICT: "false", "karpenter.sh/do-not-disrupt": "true"}
    made = with_pods(tmp_path, a_pod("a", annotations=both, volumes=LOCAL), an_autoscaler())
    assert made["differences"] == []


def test_pods_below_the_cutoff_get_nodes_now(tmp_path):
    made = with_pods(tmp_path, a_pod("a", priority=-20), an_autoscaler())
    assert "below -10" in differing(made, "Expendable")["shop/r (ReplicaSet)"]["reason"]


def test_pods_that_no_pool_can_take_are_named_and_the_exit_code_is_1(tmp_path):
    dump = {"apiVersion": "v1", "kind": "List", "items": [a_pod("a", nodeSelector={"disk": "fast"})]}
    files = [written(tmp_path, "web.json", a_nodegroup()), written(tmp_path, "dump.yaml", dump)]
    ended = migrate(*files)
    assert ended.exit_code == 1
    assert "Pods that would have no place" in ended.stdout
    assert "disk In [fast] is asked for" in ended.stdout


def test_nodes_of_other_groups_stay_and_are_named(tmp_path):
    dump = yaml.safe_load((INPUT / "cluster.yaml").read_text())
    files = [INPUT / "web.json", written(tmp_path, "dump.yaml", dump)]
    made = migration(*files)
    assert made["cost"]["perHour"]["before"] == pytest.approx(
        3 * (SOLD.on_demand["m5.xlarge"] + 50 * 0.08 / 730), abs=1e-6
    )
    assert made["cost"]["perHour"]["staying"] > 0
    assert (
        "describe-nodegroup --nodegroup-name batch" in left_of(made, "nodegroup/batch")["2 nodes"]["reason"]
    )


def test_without_nodes_the_bill_before_is_that_of_the_desired_size(tmp_path):
    made = migration(written(tmp_path, "web.json", a_nodegroup()))
    assert made["cost"]["perHour"]["before"] == pytest.approx(
        2 * (SOLD.on_demand["m5.large"] + VOLUME), abs=1e-6
    )
    assert made["cost"]["perHour"]["after"] is None


def test_every_step_says_how_to_see_that_it_worked_and_the_way_back(shop):
    assert all(step["check"] and step["undo"] for step in shop["steps"])
    titles = [step["title"] for step in shop["steps"]]
    stop, apply = (
        titles.index("Stop Cluster Autoscaler; its nodes keep running"),
        titles.index("Apply the proposed pools and node classes"),
    )
    moves = [number for number, title in enumerate(titles) if title.startswith("Move the pods of")]
    assert apply < stop < min(moves)
    assert len(moves) == 3


def test_sizes_are_set_back_to_what_they_were(shop):
    (step,) = [one for one in shop["steps"] if one["title"] == "Set nodegroup/web to no nodes"]
    assert "minSize=0,maxSize=10,desiredSize=0" in step["commands"][0]
    assert "minSize=2,maxSize=10,desiredSize=3" in step["undo"][0]


def test_selectors_are_patched_to_the_pool_and_back(shop):
    (step,) = [one for one in shop["steps"] if one["title"].startswith("Have pods select pools")]
    assert '"karpenter.sh/nodepool":"web"' in step["commands"][0]
    assert '"eks.amazonaws.com/nodegroup":"web"' in step["undo"][0]
    assert "batch/report (Job)" in step["title"]


def test_a_page_has_all_of_it(tmp_path):
    path = tmp_path / "page.html"
    assert migrate(INPUT, "--html", path).exit_code == 0
    text = path.read_text()
    assert "nodeless migrate" in text
    for part in ("Proposed pools", "Pods that would behave differently", "Not carried over", "Steps"):
        assert f">{part}</h2>" in text


TYPES = ("m5.large", "m5.xlarge", "c5.xlarge", "r5.large", "m6i.2xlarge", "c6a.large")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def drawn(seed):
    """Groups, their nodes, and pods that fill these."""
    draw = random.Random(seed)
    facts = {one.name: one for one in SOLD.facts}
    groups, objects, price, pods = [], [], 0.0, 0
    for number in range(draw.randint(1, 3)):
        name, spot = f"group-{number}", draw.random() < 0.4
        types, zones = draw.sample(TYPES, draw.randint(1, 3)), draw.sample(ZONES, draw.randint(1, 3))
        labels = {"team": f"t{number}"} if draw.random() < 0.5 else {}
        taint = draw.random() < 0.3
        taints = [{"key": "dedicated", "value": name, "effect": "NO_SCHEDULE"}] if taint else []
        count = draw.randint(1, 4)
        sizes = {"minSize": 0, "maxSize": count + draw.randint(0, 3), "desiredSize": count}
        group = a_nodegroup(
            name,
            instanceTypes=types,
            capacityType="SPOT" if spot else "ON_DEMAND",
            scalingConfig=sizes,
            labels=labels,
            taints=taints,
        )
        groups.append(group)
        for index in range(count):
            kind, zone, node = draw.choice(types), draw.choice(zones), f"node-{number}-{index}"
            price += VOLUME + (SOLD.spot[kind, zone] if spot else SOLD.on_demand[kind])
            size = {"cpu": str(facts[kind].cpus), "memory": f"{facts[kind].memory_mib}Mi", "pods": "58"}
            objects.append(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {
                        "name": node,
                        "labels": {
                            "node.kubernetes.io/instance-type": kind,
                            "topology.kubernetes.io/zone": zone,
                            "eks.amazonaws.com/nodegroup": name,
                            "eks.amazonaws.com/capacityType": "SPOT" if spot else "ON_DEMAND",
                            **labels,
                        },
                    },
                    "spec": {"providerID": f"aws:///{zone}/i-{number}{index}"},
                    "status": {"allocatable": size, "capacity": size},
                }
            )
            room = facts[kind].cpus * 850
            while room > 300 and draw.random() < 0.8:
                asked = draw.randint(100, min(room, 1500))
                room -= asked
                pod = a_pod(f"pod-{pods}", nodeName=node)
                pod["spec"]["containers"][0]["resources"]["requests"] = {
                    "cpu": f"{asked}m",
                    "memory": "128Mi",
                }
                pod["status"] = {"phase": "Running"}
                if taint:
                    pod["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
                if draw.random() < 0.3:
                    pod["spec"]["nodeSelector"] = {"eks.amazonaws.com/nodegroup": name}
                elif labels and draw.random() < 0.5:
                    pod["spec"]["nodeSelector"] = labels
                objects.append(pod)
                pods += 1
    return groups, {"apiVersion": "v1", "kind": "List", "items": objects}, price, pods


@pytest.mark.parametrize("seed", range(12))
def test_drawn_groups_become_pools_that_take_every_pod_or_name_it(tmp_path, seed):
    groups, dump, price, pods = drawn(seed)
    files = [written(tmp_path, f"{number}.json", group) for number, group in enumerate(groups)]
    made = migration(*files, written(tmp_path, "dump.yaml", dump), "--zones", ",".join(ZONES))

    assert faults_of(made["manifests"]) == []
    assert len(pools_of(made)) == len(groups)
    assert made["cost"]["perHour"]["before"] == pytest.approx(price, abs=1e-6)
    if pods:
        placed = sum(one["pods"] - one["refused"] for one in made["plan"]["landings"])
        named = {pod for group in made["plan"]["unplaced"] for pod in group["pods"]}
        assert placed + len(named) == pods
        assert named == set(), made["plan"]["unplaced"]
