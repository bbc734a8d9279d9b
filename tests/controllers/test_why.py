"""`nodeless why`: why a pod has its place or none, and why a node is what it is."""

import json
import re
from dataclasses import replace

import pytest
from immutables import Map

from nodeless import __version__
from nodeless.explain.decisions import Situation, write
from nodeless.model.events import ClaimSeen, NodeSeen, PodSeen, PoolSeen
from nodeless.model.pools import Budget, NodeClass
from nodeless.model.resources import parse_resources
from nodeless.scheduling import Policy
from nodeless.state.expected import uid_digest
from tests.api.manifests import ec2_node_class, node_pool, node_template, provisioner
from tests.controllers.planning import EXAMPLES, a_workload, nodeless, report, saved_events, why
from tests.scheduling.factories import FAMILY, claim, node, pods, pool, running, snapshot


@pytest.fixture
def wishing(file):
    """Two pods that would rather be in a zone where no pool makes nodes."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1f"]}
    term = {"weight": 8, "preference": {"matchExpressions": [zone]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    return file(provisioner(), node_template(), a_workload(replicas=2, pod={"affinity": affinity}))


GIVEN_UP = (
    "preferred node affinity topology.kubernetes.io/zone In [us-east-1f] (weight 8): "
    "no pool can make such a node"
)


def test_what_pods_gave_up_for_their_place_is_told(wishing, tmp_path):
    path = tmp_path / "report.html"
    result = nodeless(wishing, "--html", path)

    assert result.exit_code == 0, result.output
    assert f"  2 x web: {GIVEN_UP} [PreferredNodeAffinity]" in result.stdout
    assert GIVEN_UP in path.read_text()
    (lost,) = report(wishing)["relaxed"]
    assert (lost["code"], lost["message"], len(lost["pods"])) == ("PreferredNodeAffinity", GIVEN_UP, 2)


def test_why_of_a_pod_tells_what_it_gave_up(wishing):
    assert f"relaxed: {GIVEN_UP} [PreferredNodeAffinity]" in why("web-0", wishing).stdout
    told = json.loads(why("shop/web-0", wishing, "--json").stdout)
    assert [lost["message"] for lost in told["relaxed"]] == [GIVEN_UP]
    assert told["node"]["name"] == "new-1"
    assert len(told["launch"]["next_best"]) == 3
    assert all(each["price"] >= told["launch"]["price"] for each in told["launch"]["next_best"])


def test_a_node_of_no_pool_takes_no_license_of_a_pool(file):
    types = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]}]
    windows = ec2_node_class(amiSelectorTerms=[{"alias": "windows2022@latest"}])
    labels = {
        "node.kubernetes.io/instance-type": "m5.xlarge",
        "topology.kubernetes.io/zone": "us-east-1a",
        "kubernetes.io/os": "linux",
    }
    there = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}}
    told = why("node/n1", file(node_pool(template={"requirements": types}), windows, there)).stdout

    unknown = ", ".join(f"{name} (node class not known)" for name in ("volumes", "public IPv4"))
    assert f"bill: 0.1920 = instance 0.1920, not known: {unknown}" in told


def test_why_of_a_refused_pod_is_data_too():
    told = json.loads(why("shop/model-server-0", EXAMPLES, "--json").stdout)

    assert told["placed"] is False
    assert {each["code"] for each in told["unplaced"]["obstacles"]} == {
        "TaintNotTolerated",
        "RequirementsConflict",
    }
    assert "drop kubernetes.io/arch In [arm64] from the pod" in told["unplaced"]["remedies"]


def test_a_name_that_several_namespaces_have_is_asked_back(file):
    several = (a_workload(namespace=namespace) for namespace in ("shop", "blog"))
    result = why("web-0", file(provisioner(), node_template(), *several))

    assert result.exit_code == 2
    assert "web-0 is the name of several pods; hint: say which: blog/web-0, shop/web-0" in result.stderr


def test_why_a_pod_has_no_place_and_what_would_help():
    result = why("shop/model-server-0", EXAMPLES)

    assert result.exit_code == 1, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[1] == "has no place"
    assert "would fit: let NodePool/general allow kubernetes.io/arch arm64" in lines
    assert "would fit: drop kubernetes.io/arch In [arm64] from the pod" in lines


def test_why_a_pod_lands_where_it_does_and_why_the_node_is_what_it_is():
    pod, machine = why("nightly-0", EXAMPLES), why("new-1", EXAMPLES, "--json")

    assert (pod.exit_code, machine.exit_code) == (0, 0)
    assert re.search(r"lands on new-\d+, a new node of Provisioner/batch", pod.stdout)
    told = json.loads(machine.stdout)["reasons"]
    assert any(line.startswith(("cheapest that holds them: ", "cheapest that holds it: ")) for line in told)
    assert sum(line.startswith("next: ") for line in told) == 3


def test_why_of_a_node_that_stands(tmp_path):
    seen = snapshot(own := pool(), node("n1"), [running(pod, "n1") for pod in pods(2)])
    path = tmp_path / "cluster.json"
    path.write_bytes(write(Situation(seen, {own.key: FAMILY}, Policy(), 0.0), __version__))

    assert "default/web-0 (Pod): 1 pod" in why("n1", "--snapshot", path).stdout
    assert "runs on n1" in why("web-0", "--snapshot", path).stdout


def test_why_of_a_node_that_stands_tells_what_its_claim_remembers(saved):
    because = "1 pod of Provisioner/default needs cpu 1; next: large, spot in z1, 0.5 USD/h"
    own = claim("default-abcde", annotations={"nodeless.dev/planned-because": because})
    told = why("default-abcde", "--snapshot", saved(pool(), own)).stdout

    assert "when it was planned: 1 pod of Provisioner/default needs cpu 1\n" in told
    assert "when it was planned: next: large, spot in z1, 0.5 USD/h\n" in told


def test_why_of_a_node_tells_when_its_capacity_block_ends(saved):
    ends = {"nodeless.dev/instance-ends": "2026-01-02T11:00:00Z"}
    told = why("default-abcde", "--snapshot", saved(pool(), claim("default-abcde", annotations=ends))).stdout
    assert "its instance ends at 2026-01-02T11:00:00Z\n" in told


def test_why_of_a_node_that_stands_tells_where_the_pods_went_that_it_was_planned_for(tmp_path):
    here, there, waiting, gone = pods(4)
    digests = ",".join(uid_digest(pod.uid) for pod in (here, there, waiting, gone))
    own = claim(
        "default-abcde", annotations={"nodeless.dev/planned-pods": digests}, provider_id="aws:///z1/i-n1"
    )
    on = [running(here, "n1"), running(there, "n2"), waiting]
    events = [ClaimSeen(own), NodeSeen(node("n1")), NodeSeen(node("n2")), *map(PodSeen, on), PoolSeen(pool())]
    path = saved_events(tmp_path, *events)

    assert (
        "of the 4 pods that it was planned for 1 run here; 1 wait for it; "
        "1 went elsewhere: default/web-1 (n2); 1 are gone\n"
    ) in why("n1", "--snapshot", path).stdout


def test_why_of_what_is_not_there_names_what_is_near():
    result = why("new-99", EXAMPLES)

    assert result.exit_code == 2
    assert "new-99 is neither pod, workload, node nor pool; hint: there is new-" in result.stderr
    assert "hint: there is shop/web-0, shop/web-1, " in why("web", EXAMPLES).stderr


@pytest.mark.parametrize("name", ["deploy/web", "Deployment/web", "shop/deployments/web"])
def test_why_of_a_workload_tells_of_one_of_its_pods(name):
    result = why(name, EXAMPLES / "pools.yaml", EXAMPLES / "workloads.yaml")

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("shop/web (Deployment), 12 pods; shop/web-0, of shop/web (Deployment), ")
    assert "lands on new-" in result.stdout


def test_why_of_a_workload_tells_of_a_pod_without_a_place_first():
    result = why("deploy/model-server", EXAMPLES)

    assert result.exit_code == 1
    assert result.stdout.startswith(
        "shop/model-server (Deployment), 2 pods, 2 without a place; shop/model-server-"
    )
    assert "has no place" in result.stdout


def test_why_of_a_workload_that_two_namespaces_have_asks_which(file):
    webs = [a_workload(namespace=namespace) for namespace in ("blue", "green")]
    result = why("deploy/web", file(provisioner(), node_template(), *webs))

    assert result.exit_code == 2
    assert "hint: say NAMESPACE/KIND/NAME: blue/web (Deployment), green/web (Deployment)" in result.stderr


@pytest.mark.parametrize("name", ["pod/web-0", "po/web-0", "Pods/web-0", "shop/pod/web-0", "shop/web-0"])
def test_a_pod_goes_by_the_names_that_kubectl_takes(name, file):
    several = (a_workload(name=each, namespace=where) for each, where in (("web", "shop"), ("node", "blog")))
    result = why(name, file(provisioner(), node_template(), *several))

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("shop/web-0, of shop/web (Deployment), ")


@pytest.mark.parametrize("name", ["node/n1", "no/n1", "nodes/n1", "nodeclaim/default-abcde", "n1"])
def test_a_node_goes_by_the_names_that_kubectl_takes(name, tmp_path):
    own = claim("default-abcde", provider_id="aws:///z1/i-n1")
    path = saved_events(tmp_path, PoolSeen(pool()), ClaimSeen(own), NodeSeen(node("n1")))

    assert why(name, "--snapshot", path).stdout.startswith("n1, ")


def test_a_node_that_is_not_there_is_told_as_it_was_asked_for():
    assert "node/n7 is neither pod, workload, node nor pool" in why("node/n7", EXAMPLES).stderr


@pytest.mark.parametrize("change", ["without-pool=nodepool/general", "limit=nodepools/general:cpu=0"])
def test_a_change_names_a_pool_as_kubectl_does(change):
    changed = nodeless(EXAMPLES, "--what-if", change)

    assert f"as if: {change}" in changed.stdout
    assert "new node of NodePool/general" not in why("shop/web-0", EXAMPLES, "--what-if", change).stdout


@pytest.fixture
def two_namespaces(file):
    """The same names in `shop` and in `blog`, and a manifest that names no namespace."""
    loose = a_workload(name="loose")
    del loose["metadata"]["namespace"]
    return file(
        provisioner(),
        node_template(),
        *(a_workload(namespace=name, replicas=2) for name in ("shop", "blog")),
        loose,
    )


@pytest.mark.parametrize("name", ["web-0", "pod/web-0", "po/web-0"])
@pytest.mark.parametrize("namespace", ["shop", "blog"])
def test_a_pod_is_that_of_the_namespace_asked_about(two_namespaces, name, namespace):
    result = why(name, two_namespaces, "--namespace", namespace)
    assert result.exit_code == 0, result.output
    assert f"{namespace}/web-0, of {namespace}/web (Deployment)" in result.stdout


def test_a_workload_is_that_of_the_namespace_asked_about(two_namespaces):
    assert "say NAMESPACE/KIND/NAME" in why("deploy/web", two_namespaces).stderr
    assert why("deploy/web", two_namespaces, "-n", "blog").stdout.startswith(
        "blog/web (Deployment), 2 pods; "
    )


def test_a_namespace_in_the_name_comes_first(two_namespaces):
    assert why("shop/pod/web-0", two_namespaces, "-n", "blog").stdout.startswith("shop/web-0, ")
    assert why("shop/deploy/web", two_namespaces, "-n", "blog").stdout.startswith("shop/web ")


def test_a_manifest_without_a_namespace_is_in_the_one_asked_about(two_namespaces):
    result = why("deploy/loose", two_namespaces, "-n", "docs")
    assert result.stdout.startswith("docs/loose (Deployment), 1 pod; docs/loose-0, ")


def test_what_is_not_in_the_namespace_asked_about_is_not_taken_from_another(two_namespaces):
    result = why("pod/web-1", two_namespaces, "-n", "docs")
    assert result.exit_code == 2
    assert (
        "pod/web-1 is neither pod, workload, node nor pool, or not of namespace docs; hint: " in result.stderr
    )


def test_nodes_are_in_no_namespace(two_namespaces):
    assert why("new-1", two_namespaces, "-n", "docs").stdout.startswith("new-1, ")


MONDAY = 1_774_864_800.0  # 2026-03-30, 10:00 UTC


@pytest.fixture
def two_pools(tmp_path):
    """A pool with limits, budgets, two nodes and a pod that it refuses, beside another one."""
    budgets = (Budget("50%"), Budget("0", ("Underutilized",), "0 9 * * *", 8 * 3600))
    own = pool(
        "default",
        limits={"cpu": "12", "nodes": "5"},
        weight=10,
        budgets=budgets,
        consolidation_enabled=True,
        consolidate_after=0,
    )
    other = pool("cheap", weight=20, taints=())
    gone = pool("broken", invalid="spec.weight: 101 must be from 1 to 100")
    labels = {
        "node.kubernetes.io/instance-type": "large",
        "karpenter.sh/capacity-type": "spot",
        "topology.kubernetes.io/zone": "z1",
    }
    amounts = parse_resources({"cpu": "4", "memory": "16Gi"})
    claims = [
        claim(f"default-{n}", labels=labels, capacity=amounts, provider_id=f"aws:///z1/i-{n}")
        for n in ("n1", "n2")
    ]
    there = node("n1", ready=True, labels={**node("n1").labels, **labels})
    elsewhere, large = pods(1, selector={"shop": "yes"}), pods(1, "900", name="large")
    seen = snapshot(own, other, gone, claims, there, elsewhere, large, running(pods(1, name="db")[0], "n1"))
    seen = replace(
        seen,
        node_names=Map({"aws:///z1/i-n1": "n1"}),
        claim_names=Map({c.provider_id: c.name for c in claims}),
        node_classes=Map({"AWSNodeTemplate/default": NodeClass(own.node_class)}),
    )
    path = tmp_path / "cluster.json"
    catalog = dict.fromkeys((own.key, other.key), FAMILY)
    path.write_bytes(write(Situation(seen, catalog, Policy(), MONDAY), __version__))
    return path


def test_why_of_a_pool_tells_its_state_limits_nodes_budgets_and_neighbors(two_pools):
    result = why("provisioner/default", "--snapshot", two_pools)

    assert result.exit_code == 0, result.output
    subject, *lines = [line.strip() for line in result.stdout.splitlines()]
    assert subject == "Provisioner/default"
    assert lines[0] == f"is ready, weight 10, {len(FAMILY)} instance types"
    assert "limit: cpu 8 of at most cpu 12" in lines
    assert "limit: nodes 2 of at most nodes 5" in lines
    has = next(index for index, line in enumerate(lines) if line.startswith("has 2 nodes, "))
    assert {line.partition(":")[0] for line in lines[has + 1 : has + 3]} == {"n1", "default-n2"}
    assert any(line.startswith("n1: large, spot, z1, ") and line.endswith("1 pod") for line in lines)
    (refused,) = [line for line in lines if line.startswith("refused 1 pod of default/web-0 (Pod): ")]
    assert refused.endswith("[RequirementsConflict]")
    assert (
        "budgets for Underutilized: 0 more now (0 of at most 0 are disrupted), "
        "from Mon 2026-03-30 17:00 UTC on more"
    ) in lines
    assert any(line.startswith("budgets for Empty, Drifted") and "1 more now" in line for line in lines)
    shared = f"{len(FAMILY)} instance types"
    assert f"comes after Provisioner/cheap (weight 20), with which it shares {shared}" in lines


def test_why_of_a_pool_is_data_too(two_pools):
    told = json.loads(why("provisioners/default", "--snapshot", two_pools, "--json").stdout)["pool"]
    assert told["ready"] is True
    assert {limit["resource"]: limit["used"] for limit in told["limits"]} == {"cpu": 8000, "nodes": 2}
    assert sorted(each["name"] for each in told["nodes"]) == ["default-n2", "n1"]


def test_why_of_a_pool_that_makes_no_nodes_says_what_is_in_the_way(two_pools):
    result = why("Provisioner/broken", "--snapshot", two_pools)
    assert result.exit_code == 1
    assert "  is not ready: spec.weight: 101 must be from 1 to 100\n" in result.stdout


def test_why_of_a_pool_without_its_class_and_of_one_that_is_not_there(saved):
    lost = why("provisioner/default", "--snapshot", saved(pool()))
    assert lost.exit_code == 1
    assert "is not ready: AWSNodeTemplate/default does not exist; hint: create it" in lost.stdout
    missing = why("nodepool/other", "--snapshot", saved(pool()))
    assert missing.exit_code == 2
    assert "nodepool/other is neither pod, workload, node nor pool; hint: there is " in missing.stderr


def test_why_of_a_pool_says_what_is_launched_for_it():
    result = why("nodepool/general", EXAMPLES)
    assert re.search(r"^  to launch: \d+ nodes? for \d+ pods?, \+[\d.]+ USD/h$", result.stdout, re.MULTILINE)
    assert re.search(r"^  refused 2 pods of shop/model-server \(Deployment\): ", result.stdout, re.MULTILINE)
