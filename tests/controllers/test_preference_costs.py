"""What preferences cost, on the command line: each figure against a plan of manifests without the rule."""

import json
import re
from copy import deepcopy
from random import Random

import pytest

from nodeless.explain.decisions import Situation, write
from nodeless.model.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from nodeless.scheduling import Policy
from tests.api.manifests import node_template, provisioner
from tests.controllers.planning import a_workload, nodeless, report, why
from tests.controllers.test_document_schemas import obeys
from tests.disruption.drawn_clusters import NAMED, TYPES
from tests.disruption.test_validating import ON_DEMAND_ONLY
from tests.disruption.world import a_node_pool, cluster, node_of, on
from tests.scheduling.factories import NOW, spread

FAMILY = "karpenter.k8s.aws/instance-family"
SOFT_AFFINITY = "preferredDuringSchedulingIgnoredDuringExecution"
#: What is told of a plan at least, as docs/plan.md has it.
LEAST_SHARE, LEAST_MONTH, HOURS = 0.01, 1.0, 730


def a_pool(name="default", **spec):
    families = [{"key": FAMILY, "operator": "In", "values": ["m5", "m6i", "c6a", "t3a"]}]
    return {**provisioner(requirements=families, **spec), "metadata": {"name": name}}


def selecting(name):
    return {"labelSelector": {"matchLabels": {"app": name}}}


def soft_spread(name, key):
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **selecting(name)}


def rather(name, key):
    return {"weight": 10, "podAffinityTerm": {"topologyKey": key, **selecting(name)}}


def rather_on(family):
    return {
        "weight": 20,
        "preference": {"matchExpressions": [{"key": FAMILY, "operator": "In", "values": [family]}]},
    }


def drawn(seed):
    """Manifests of a small cluster with soft rules of every kind, and room on some existing nodes."""
    chance = Random(seed)
    taints = [{"key": "team", "value": "batch", "effect": "PreferNoSchedule"}]
    objects = [node_template(), a_pool(), a_pool("soft", taints=taints, weight=10)]
    for number in range(chance.randint(0, 2)):
        objects.append(an_existing_node(f"old-{number}"))
    for name in ("web", "api", "cart", "mail")[: chance.randint(1, 4)]:
        affinity = {}
        if chance.random() < 0.5:
            terms = [rather(name, chance.choice((HOSTNAME, ZONE)))]
            affinity["podAntiAffinity"] = {SOFT_AFFINITY: terms}
        if chance.random() < 0.3:
            affinity["podAffinity"] = {SOFT_AFFINITY: [rather("web", ZONE)]}
        if chance.random() < 0.5:
            affinity["nodeAffinity"] = {SOFT_AFFINITY: [rather_on(chance.choice(("m5", "m6i")))]}
        pod = {"affinity": affinity} if affinity else {}
        keys = [key for key in (HOSTNAME, ZONE) if chance.random() < 0.5]
        if keys:
            pod["topologySpreadConstraints"] = [soft_spread(name, key) for key in keys]
        cpu = chance.choice(("100m", "250m", "700m"))
        objects.append(a_workload(name=name, cpu=cpu, replicas=chance.randint(1, 9), pod=pod))
    return objects


def an_existing_node(name):
    labels = {
        HOSTNAME: name,
        ZONE: "us-east-1a",
        INSTANCE_TYPE: "m5.large",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "karpenter.sh/provisioner-name": "default",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/capacity-type": "on-demand",
    }
    room = {"cpu": "1900m", "memory": "7Gi", "pods": "29"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"aws:///us-east-1a/i-{name}"},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def without(objects, code, key):
    """The manifests as somebody would change them who does not want the rule."""
    changed = deepcopy(objects)
    for each in changed:
        if code == "PreferNoSchedule" and each["kind"] == "Provisioner":
            each["spec"].pop("taints", None)
        pod = each.get("spec", {}).get("template", {}).get("spec", {})
        if code == "ScheduleAnyway" and "topologySpreadConstraints" in pod:
            kept = [one for one in pod["topologySpreadConstraints"] if one["topologyKey"] != key]
            pod["topologySpreadConstraints"] = kept
        affinity = pod.get("affinity", {})
        if code == "PreferredNodeAffinity":
            affinity.pop("nodeAffinity", None)
        for own, member in (
            ("PreferredPodAffinity", "podAffinity"),
            ("PreferredPodAntiAffinity", "podAntiAffinity"),
        ):
            terms = affinity.get(member, {}).get(SOFT_AFFINITY, [])
            if code == own and any(term["podAffinityTerm"]["topologyKey"] == key for term in terms):
                del affinity[member]
    return changed


RULES = [
    ("ScheduleAnyway", HOSTNAME),
    ("ScheduleAnyway", ZONE),
    ("PreferredPodAntiAffinity", HOSTNAME),
    ("PreferredPodAntiAffinity", ZONE),
    ("PreferredPodAffinity", ZONE),
    ("PreferredNodeAffinity", FAMILY),
    ("PreferNoSchedule", "team=batch"),
]


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(8))
def test_what_is_told_is_what_the_same_manifests_cost_without_the_rule(seed, file):
    objects = drawn(seed)
    made = report(file(*objects), "--preference-costs", "always")
    price = made["cost"]["perHour"]["added"]
    costs = made.get("preferences", {"costs": []})
    told = {(each["code"], each["key"]): each["price"] for each in costs["costs"]}
    assert told.keys() <= set(RULES)
    bare = objects
    for code, key in RULES:
        bare = without(bare, code, key)
        if (code, key) not in told and "together" not in costs:
            continue
        other = report(file(*without(objects, code, key)), "--preference-costs", "never")
        extra = price - other["cost"]["perHour"]["added"]
        if (code, key) in told:
            assert told[code, key]["extra"] == pytest.approx(extra, abs=1e-9)
            assert told[code, key]["extra_per_month"] == pytest.approx(HOURS * extra)
            assert told[code, key]["share"] == pytest.approx(extra / (price - extra))
        else:
            assert extra < LEAST_SHARE * (price - extra) or extra * HOURS < LEAST_MONTH
    extra = price - report(file(*bare))["cost"]["perHour"]["added"]
    if "together" in costs:
        assert costs["together"]["extra"] == pytest.approx(extra, abs=1e-9)
    else:
        assert extra < LEAST_SHARE * (price - extra) or extra * HOURS < LEAST_MONTH


def spreading():
    """A web server that would rather not have two of its pods on a host."""
    pod = {"topologySpreadConstraints": [soft_spread("web", HOSTNAME)]}
    return [node_template(), a_pool(), a_workload(cpu="100m", replicas=6, pod=pod)]


TOLD = r"ScheduleAnyway over hosts: \+\d+ %, \d+ USD a month \(6 x web\)"


def test_the_plan_tells_it_before_the_cost(file):
    result = nodeless(file(*spreading()))
    assert result.exit_code == 0, result.output
    assert re.search(rf"\nWhat preferences cost\n  {TOLD}\n\nCost\n", result.stdout)


def test_a_plan_whose_preferences_cost_nothing_does_not_speak_of_them(file):
    plain = [node_template(), a_pool(), a_workload(cpu="100m", replicas=6)]
    for objects in (
        plain,
        [*plain[:2], a_workload(pod={"topologySpreadConstraints": [soft_spread("web", ZONE)]})],
    ):
        assert "preferences cost" not in nodeless(file(*objects)).stdout
        assert "preferences" not in report(file(*objects))


def test_the_document_has_them_as_its_schema_says(file):
    made = report(file(*spreading()))
    obeys(made)
    (cost,) = made["preferences"]["costs"]
    assert (cost["code"], cost["key"], cost["pods"]) == ("ScheduleAnyway", HOSTNAME, 6)
    assert made["preferences"]["together"] == cost["price"]


def test_the_page_tells_it(file, tmp_path):
    path = tmp_path / "plan.html"
    nodeless(file(*spreading()), "--html", path)
    assert re.search(rf'<section id="preferences"[^>]*>.*?<bdi>{TOLD}</bdi>', path.read_text())


def test_why_tells_it_of_a_pod_of_its_workload_and_of_its_node(file):
    manifests = file(*spreading(), a_workload(name="api"))
    for name in ("pod/web-0", "deploy/web", "new-1"):
        result = why(name, manifests)
        assert re.search(rf"\n  preference: {TOLD}\n", result.stdout), result.output
    document = json.loads(why("deploy/web", manifests, "--json").stdout)
    obeys(document)
    assert document["preferences"]["costs"][0]["code"] == "ScheduleAnyway"
    assert "preference:" not in why("deploy/api", manifests).stdout


def test_never_and_always_are_heard_and_anything_else_is_refused(file):
    manifests = file(*spreading())
    assert "preferences cost" not in nodeless(manifests, "--preference-costs", "never").stdout
    assert "preferences cost" in nodeless(manifests, "--preference-costs", "always").stdout
    for refused in (
        nodeless(manifests, "--preference-costs", "sometimes"),
        why("deploy/web", manifests, "--preference-costs", "sometimes"),
    ):
        assert refused.exit_code == 2
        assert "--preference-costs 'sometimes' is not known; hint: auto, always, never" in refused.output


@pytest.mark.parametrize(
    "constraint",
    [
        {"topologyKey": HOSTNAME, "maxSkew": 0, "whenUnsatisfiable": "ScheduleAnyway"},
        {"topologyKey": "", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        {"topologyKey": HOSTNAME, "maxSkew": 1, "whenUnsatisfiable": "Sometimes"},
        {"topologyKey": "a b\u202e\x1b[31m" * 20, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        {"topologyKey": 7, "maxSkew": "much", "whenUnsatisfiable": None},
    ],
)
def test_a_rule_that_makes_no_sense_does_not_stop_the_plan(constraint, file):
    pod = {"topologySpreadConstraints": [constraint, soft_spread("web", HOSTNAME)]}
    objects = [node_template(), a_pool(), a_workload(cpu="100m", replicas=3, pod=pod), a_workload(name="api")]
    result = nodeless(file(*objects), "--preference-costs", "always")
    assert result.exit_code in (0, 1, 2), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "\x1b[31m" not in result.output


def test_the_target_of_consolidation_tells_what_preferences_of_running_pods_cost_there(tmp_path):
    rather_apart = spread(HOSTNAME, soft=True)
    pool = a_node_pool(requirements=ON_DEMAND_ONLY)

    def saved(name, **fields):
        wasteful = [
            [
                node_of(pool, node, "c.4xlarge", types=NAMED),
                on(node, cpu="900m", app="web", shape=fields),
            ]
            for node in "abc"
        ]
        path = tmp_path / name
        seen = cluster(pool, wasteful)
        path.write_bytes(write(Situation(seen, dict.fromkeys(seen.pools, TYPES), Policy(), NOW), "test"))
        return path

    soft, bare = saved("soft.json", spread=(rather_apart,)), saved("bare.json")
    made = report("--snapshot", soft, "--target")
    obeys(made)
    target = made["target"]
    other = report("--snapshot", bare, "--target")["target"]
    assert "preferences" not in other
    assert target["preferences"]["together"]["extra"] == pytest.approx(target["target"] - other["target"])
    assert re.search(
        r"\n  preference at the target: ScheduleAnyway over hosts: \+\d+ %, \d+ USD a month \(",
        nodeless("--snapshot", soft, "--target").stdout,
    )
    assert (
        "preferences" not in report("--snapshot", soft, "--target", "--preference-costs", "never")["target"]
    )
