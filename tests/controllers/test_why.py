"""`nodeless why`: why a pod has its place or none, and why a node is what it is."""

import json
import re

import pytest

from nodeless import __version__
from nodeless.explain.decisions import Situation, write
from nodeless.model.events import ClaimSeen, NodeSeen, PodSeen, PoolSeen
from nodeless.scheduling import Policy
from nodeless.state.expected import uid_digest
from tests.api.manifests import node_template, provisioner
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
    assert "new-99 is neither pod, workload nor node; hint: there is new-" in result.stderr
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
    assert "node/n7 is neither pod, workload nor node" in why("node/n7", EXAMPLES).stderr


@pytest.mark.parametrize("change", ["without-pool=nodepool/general", "limit=nodepools/general:cpu=0"])
def test_a_change_names_a_pool_as_kubectl_does(change):
    changed = nodeless(EXAMPLES, "--what-if", change)

    assert f"as if: {change}" in changed.stdout
    assert "new node of NodePool/general" not in why("shop/web-0", EXAMPLES, "--what-if", change).stdout
