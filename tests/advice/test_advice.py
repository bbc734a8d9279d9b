"""Advice: what it names, what it saves, and that no dollar is counted twice."""

import copy
import json

import pytest
import yaml
from typer.testing import CliRunner

from nodeless import __version__
from nodeless.cli.main import app
from nodeless.explain.decisions import Situation, write
from nodeless.model.labels import INSTANCE_TYPE
from nodeless.model.requirements import IN, Requirement
from nodeless.scheduling import Policy
from tests.controllers.planning import a_workload
from tests.scheduling.factories import FAMILY, pods, pool, snapshot


def advise(*arguments):
    return CliRunner().invoke(app, ["advise", *map(str, arguments)])


def advice(*arguments):
    ended = advise(*arguments, "--least", "0", "-o", "json")
    assert ended.exit_code == 0, ended.stderr
    return json.loads(ended.stdout)


def found(made, code):
    return {one["subject"]: one for one in made["advice"] if one["code"] == code}


def a_pool(name="general", requirements=(), **spec):
    base = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
    ]
    keys = {term["key"] for term in requirements}
    terms = [*(term for term in base if term["key"] not in keys), *requirements]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"nodeClassRef": reference, "requirements": terms, **spec.pop("template", {})}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def a_type(*names):
    return {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(names)}


def a_node(name, kind="m5.xlarge", pool="general", zone="us-east-1a", cpu="3900m", memory="15Gi"):
    size = {"cpu": cpu, "memory": memory, "pods": "58"}
    labels = {
        "node.kubernetes.io/instance-type": kind,
        "topology.kubernetes.io/zone": zone,
        "karpenter.sh/nodepool": pool,
        "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"aws:///{zone}/i-{name}"},
        "status": {
            "allocatable": size,
            "capacity": size,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_pod(name, node="", cpu="500m", memory="1Gi", workload="web", annotations=None, **spec):
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": workload,
        "uid": workload,
        "controller": True,
    }
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    metadata = {"name": name, "namespace": "shop", "labels": {"app": workload}, "ownerReferences": [owner]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "annotations": annotations or {}},
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "app", "image": "i", "resources": requests}],
            **spec,
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def written(folder, *objects, name="cluster.yaml"):
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects))
    return path


def patched(objects, fragment):
    """The objects after a merge patch, as `kubectl patch --type merge` has it."""
    identity = (fragment["kind"], fragment["metadata"]["name"])
    return [
        merged(one, fragment) if (one["kind"], one["metadata"]["name"]) == identity else one
        for one in objects
    ]


def merged(value, patch):
    if not isinstance(patch, dict):
        return patch
    result = copy.deepcopy(value) if isinstance(value, dict) else {}
    for key, below in patch.items():
        if below is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), below)
    return result


SHOP = [
    a_pool("general", [a_type("m5.xlarge", "m5.2xlarge")]),
    a_workload(name="web", cpu="900m", replicas=11),
    a_workload(name="api", cpu="1700m", replicas=4),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return advice(written(tmp_path_factory.mktemp("shop"), *SHOP))


def test_each_figure_is_that_of_a_plan_with_the_change_applied(shop, tmp_path):
    assert {one["code"] for one in shop["advice"]} >= {"AllowSpot", "AllowNewerTypes"}
    for one in shop["advice"]:
        objects = SHOP
        for fragment in one["change"]:
            objects = patched(objects, fragment)
        after = advice(written(tmp_path, *objects))["now"]["perHour"]
        assert shop["now"]["perHour"] - after == pytest.approx(one["alone"]["perHour"], abs=2e-6), one[
            "title"
        ]


def test_what_all_advice_saves_together_is_counted_once(shop, tmp_path):
    taken = [one for one in shop["advice"] if one["onTop"] and one["onTop"]["perHour"] > 0]
    objects = SHOP
    requirements = {}
    for one in taken:
        for fragment in one["change"]:
            before = {json.dumps(term) for term in SHOP[0]["spec"]["template"]["spec"]["requirements"]}
            terms = fragment["spec"]["template"]["spec"]["requirements"]
            keys = {term["key"] for term in terms}
            for term in terms:
                if json.dumps({**term}) not in before:
                    requirements[term["key"]] = term
            dropped = {json.loads(term)["key"] for term in before} - keys
            requirements |= dict.fromkeys(dropped)
    kept = [
        term
        for term in SHOP[0]["spec"]["template"]["spec"]["requirements"]
        if term["key"] not in requirements
    ]
    pool = copy.deepcopy(SHOP[0])
    pool["spec"]["template"]["spec"]["requirements"] = [
        *kept,
        *(term for term in requirements.values() if term),
    ]
    objects = [pool, *SHOP[1:]]
    after = advice(written(tmp_path, *objects))["now"]["perHour"]

    assert sum(one["onTop"]["perHour"] for one in taken) == pytest.approx(
        shop["together"]["perHour"], abs=1e-5
    )
    assert shop["now"]["perHour"] - after == pytest.approx(shop["together"]["perHour"], abs=1e-5)
    assert shop["together"]["perHour"] < sum(one["alone"]["perHour"] for one in shop["advice"])


def test_advice_that_excludes_other_advice_says_so_and_is_counted_once(shop):
    types = [
        one for one in shop["advice"] if one["code"] in ("AllowNewerTypes", "AllowAnyType", "AllowArm64")
    ]
    assert len(types) >= 2
    for one in types:
        assert set(one["excludes"]) == {other["title"] for other in types} - {one["title"]}
    assert sum(one["onTop"] is not None for one in types) == 1


def test_every_piece_of_advice_has_its_risk_its_change_and_how_it_was_found(shop):
    assert all(one["risk"] and one["change"] and "USD/h" in one["how"] for one in shop["advice"])
    spot = found(shop, "AllowSpot")["NodePool/general"]
    assert "spot is assumed to cost 40 % of on-demand" in spot["how"]


def test_advice_is_ranked_by_dollars_and_small_savings_can_be_left_out(shop, tmp_path):
    alone = [one["alone"]["perMonth"] for one in shop["advice"] if one["onTop"] is not None]
    assert alone == sorted(alone, reverse=True)
    path = written(tmp_path, *SHOP)
    dear = json.loads(advise(path, "--least", "1000000", "-o", "json").stdout)
    assert dear["advice"] == []
    assert "nothing that was tried saves money" in advise(path, "--least", "1000000").stdout


def test_zones_that_a_pool_leaves_out(tmp_path):
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}
    made = advice(written(tmp_path, a_pool("general", [zone]), a_workload(replicas=3)))
    assert any("use all zones" in title for title in made["triedInVain"]) or found(made, "AllowAllZones")


def test_packing_by_the_fewest_nodes(tmp_path):
    pool = a_pool("general")
    pool["metadata"]["annotations"] = {"nodeless.dev/packing": "fewest-nodes"}
    objects = [pool, a_workload(name="a", cpu="7", replicas=5), a_workload(name="b", cpu="900m", replicas=9)]
    made = advice(written(tmp_path, *objects))
    one = found(made, "PackForPrice")["NodePool/general"]
    after = advice(written(tmp_path, *patched(objects, one["change"][0])))["now"]["perHour"]
    assert made["now"]["perHour"] - after == pytest.approx(one["alone"]["perHour"], abs=2e-6)


def test_weights_that_keep_pods_in_a_dearer_pool(tmp_path):
    dear = a_pool("dear", [a_type("m5.4xlarge")], weight=50)
    cheap = a_pool("cheap", [a_type("m5.large")])
    objects = [dear, cheap, a_workload(replicas=1)]
    made = advice(written(tmp_path, *objects))
    one = found(made, "DropWeights")["NodePool/dear"]
    after = advice(written(tmp_path, *patched(objects, one["change"][0])))["now"]["perHour"]
    assert one["alone"]["perHour"] == pytest.approx(made["now"]["perHour"] - after, abs=2e-6)
    assert after < made["now"]["perHour"]


def test_pools_that_shadow_and_pools_that_overlap_are_named(tmp_path):
    pools = [
        a_pool("first", weight=10),
        a_pool("second", [a_type("m5.large")]),
        a_pool("third", [a_type("m5.large")]),
    ]
    made = advice(written(tmp_path, *pools, a_workload(replicas=1)))
    assert any("NodePool/second is shadowed by NodePool/first" in line for line in made["remarks"])
    assert any("NodePool/second and NodePool/third take the same pods" in line for line in made["remarks"])


def test_a_static_pool_takes_no_pods_and_overlaps_with_none(tmp_path):
    made = advice(written(tmp_path, a_pool("first"), a_pool("static", replicas=2), a_workload(replicas=1)))

    assert not [line for line in made["remarks"] if "static" in line]


def test_pools_with_taints_of_their_own_shadow_nobody(tmp_path):
    taints = {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}
    pools = [a_pool("first", weight=10, template=taints), a_pool("second", [a_type("m5.large")])]
    assert advice(written(tmp_path, *pools, a_workload(replicas=1)))["remarks"] == []


#: A node of m5.xlarge an hour: the instance, and 20 GiB of gp3.
NODE = 0.192 + 20 * 0.08 / 730
THIN = [a_pool("general", [a_type("m5.xlarge")]), a_node("n1"), a_node("n2"), a_node("n3")]


def test_consolidation_is_worth_the_distance_to_what_is_planned_anew(tmp_path):
    objects = [*THIN, *(a_pod(f"web-{n}", f"n{n}") for n in (1, 2, 3))]
    made = advice(written(tmp_path, *objects))
    (one,) = found(made, "Consolidate").values()
    assert made["now"]["perHour"] == pytest.approx(3 * NODE, abs=1e-6)
    assert one["alone"]["perHour"] == pytest.approx(2 * NODE, abs=1e-6)


def test_pods_beyond_a_limit_that_was_lowered_are_no_saving(tmp_path):
    pool = a_pool(limits={"cpu": "4"})
    pods = [a_pod(f"web-{n}", f"n{n % 2}") for n in range(12)]
    made = advice(written(tmp_path, pool, a_node("n0"), a_node("n1"), *pods))
    spot = found(made, "AllowSpot")["NodePool/general"]["alone"]["perHour"]
    assert 0 < spot < 0.6 * 0.388384 / 2, "what one of the two nodes costs"
    assert not found(made, "Consolidate")
    assert any("that run would have no place if planned again" in note for note in made["notes"])


def test_a_protected_pod_holds_its_node_and_says_what_that_costs(tmp_path):
    keep = {"karpenter.sh/do-not-disrupt": "true"}
    pods = [a_pod("web-1", "n1"), a_pod("db-0", "n2", workload="db", annotations=keep), a_pod("web-2", "n3")]
    pods.append(a_pod("old-0", "n3", workload="old", annotations=keep))
    made = advice(written(tmp_path, *THIN, *pods))
    held = found(made, "AllowDisruption")
    assert held["shop/db (StatefulSet)"]["alone"]["perHour"] == pytest.approx(NODE, abs=1e-6)
    assert {one["node"] for one in made["heldNodes"]} == {"n2", "n3"}
    annotations = held["shop/db (StatefulSet)"]["change"][0]["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"karpenter.sh/do-not-disrupt": None}


def test_a_budget_that_allows_no_eviction_says_what_it_costs(tmp_path):
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": 0},
    }
    pool = a_pool("general", [a_type("m5.xlarge", "m5.2xlarge")])
    nodes = [a_node("n1"), a_node("n2", "m5.2xlarge", cpu="7900m", memory="30Gi")]
    pods = [a_pod("web-1", "n1"), a_pod("db-0", "n2", workload="db")]
    made = advice(written(tmp_path, pool, *nodes, *pods, budget))
    one = found(made, "AllowEviction")["PodDisruptionBudget/shop/db"]
    assert one["alone"]["perHour"] == pytest.approx(0.192)
    least = {**budget, "spec": {**budget["spec"], "minAvailable": "100%"}}
    del least["spec"]["maxUnavailable"]
    # A budget with both is refused.
    assert patched([least], one["change"][0])[0]["spec"].keys() == {"selector", "maxUnavailable"}


@pytest.mark.parametrize(("tolerated", "holds"), [("", False), ("node.kubernetes.io/unschedulable", True)])
def test_a_budget_holds_no_node_for_a_pod_that_a_drain_leaves_alone(tmp_path, tolerated, holds):
    metadata = {"name": "db", "namespace": "shop"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
    budget["spec"] = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}}
    pod = a_pod("db-1", "n1", workload="db", tolerations=[{"operator": "Exists", "key": tolerated}])
    made = advice(written(tmp_path, *THIN, pod, a_pod("web-1", "n3"), budget))
    assert {one["node"] for one in made["heldNodes"]} == ({"n1"} if holds else set())


@pytest.mark.parametrize(("ready", "costs"), [("True", True), ("False", False)])
def test_a_budget_costs_nothing_that_always_allows_pods_to_leave_that_are_not_ready(tmp_path, ready, costs):
    policy = {"unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": {"app": "db"}}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"maxUnavailable": 0, **policy},
        "status": {"disruptionsAllowed": 0},
    }
    pool = a_pool("general", [a_type("m5.xlarge", "m5.2xlarge")])
    nodes = [a_node("n1"), a_node("n2", "m5.2xlarge", cpu="7900m", memory="30Gi")]
    pod = a_pod("db-0", "n2", workload="db")
    pod["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    made = advice(written(tmp_path, pool, *nodes, a_pod("web-1", "n1"), pod, budget))
    assert bool(found(made, "AllowEviction")) == costs
    assert {one["node"] for one in made["heldNodes"]} == ({"n2"} if costs else set())


@pytest.mark.parametrize(
    ("spec", "holds"),
    [
        ({"maxUnavailable": 1}, False),
        ({"maxUnavailable": "50%"}, False),
        ({"minAvailable": 1}, False),
        ({"minAvailable": "50%"}, False),
        ({"minAvailable": 2}, True),
        ({"minAvailable": "51%"}, True),
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"maxUnavailable": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, True),
    ],
)
def test_what_a_budget_of_manifests_allows_is_counted(tmp_path, spec, holds):
    """Only a cluster writes its status."""
    selector = {"matchLabels": {"app": "db"}}
    metadata = {"name": "db", "namespace": "shop"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
    budget["spec"] = {**spec, "selector": selector}
    pods = [a_pod(f"db-{n}", f"n{n}", workload="db") for n in (1, 2)]
    made = advice(written(tmp_path, *THIN, *pods, a_pod("web-1", "n3"), budget))

    assert {one["node"] for one in made["heldNodes"]} == ({"n1", "n2"} if holds else set())


@pytest.mark.parametrize("least", ["half", -1, "x%", True])
def test_a_budget_that_cannot_be_counted_is_told(tmp_path, least):
    metadata = {"name": "db", "namespace": "shop"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
    ended = advise(written(tmp_path, *THIN, budget | {"spec": {"minAvailable": least, "selector": {}}}))

    assert ended.exit_code == 2
    assert f"PodDisruptionBudget/db: spec.minAvailable: {least!r} is not a number of pods" in ended.stderr


def test_preferences_that_cost_money(tmp_path):
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
        }
    }
    workload = a_workload(name="web", cpu="500m", replicas=4, pod={"affinity": affinity})
    made = advice(written(tmp_path, a_pool("general", [a_type("m5.xlarge")]), workload))
    titles = {one["title"] for one in made["advice"]} | set(made["triedInVain"])
    assert "drop preferred pod affinity of shop/web (Deployment)" in titles


def test_changes_beyond_those_that_are_tried_are_counted(tmp_path):
    keep = {"karpenter.sh/do-not-disrupt": "true"}
    pods = [
        a_pod(f"job-{n}", "n1", cpu="10m", memory="8Mi", workload=f"job-{n}", annotations=keep)
        for n in range(58)
    ]
    made = advice(written(tmp_path, *THIN[:2], *pods))
    tried = len(made["advice"]) + len(made["triedInVain"]) - len(found(made, "Consolidate"))
    assert tried == 60
    assert any(line.endswith("not tried") for line in made["remarks"])


def test_a_plan_without_a_pool_is_refused(tmp_path):
    ended = advise(written(tmp_path, a_workload()))
    assert ended.exit_code == 2
    assert "there is no pool to advise on" in ended.stderr


def test_the_text_has_each_change_to_copy(shop, tmp_path):
    shown = advise(written(tmp_path, *SHOP)).stdout
    assert "1. let NodePool/general" in shown
    assert "   | kind: NodePool" in shown
    assert "excludes: let NodePool/general" in shown


def test_types_without_labels_of_their_category_are_advised_on(tmp_path):
    """Those of a snapshot have what its cloud said of them."""
    named = pool("default", Requirement.of(INSTANCE_TYPE, IN, ["small", "large"]))
    seen = snapshot(named, pods(3, cpu=1))
    saved = tmp_path / "cluster.json"
    saved.write_bytes(write(Situation(seen, dict.fromkeys(seen.pools, FAMILY), Policy(), 0.0), __version__))

    assert advice("--snapshot", saved)["now"]["perHour"] > 0


def test_advice_on_a_snapshot_says_that_it_knows_the_pools_types_alone(tmp_path):
    saved = tmp_path / "cluster.json"
    saved.write_bytes(write(Situation(snapshot(pool()), {}, Policy(), 0.0), __version__))
    made = advice("--snapshot", saved)

    assert "a snapshot contains only the types that pools allow, so no others are tried" in made["notes"]


def test_nodes_whose_claims_the_input_lacks_are_said_not_to_be_in_the_target(tmp_path):
    """`kubectl get pods,nodes` has none, and consolidation is about claims."""
    path = written(tmp_path, *THIN, *(a_pod(f"web-{n}", f"n{n}") for n in (1, 2, 3)))
    told = [CliRunner().invoke(app, ["plan", str(path), *more, "-o", "json"]) for more in ([], ["--target"])]
    notes = [json.loads(one.stdout)["notes"] for one in told]

    assert [note for note in notes[1] if note not in notes[0]] == [
        "3 nodes of pools without a NodeClaim or Machine in the input: not included in the target of "
        "consolidation; hint: add kubectl get nodeclaims -o yaml"
    ]
