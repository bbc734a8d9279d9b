"""`nodeless plan`: with how many pods is a workload planned that an autoscaler scales?"""

import pytest

from tests.api.manifests import node_template, provisioner
from tests.controllers.planning import EXAMPLES, a_workload, nodeless, report

TEMPLATE = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
WEB = {"kind": "Deployment", "name": "web"}
KEDAS = {"kind": "ScaledObject", "name": "scaler", "uid": "u", "apiVersion": "keda.sh/v1alpha1"}


def an_object(api_version, kind, name, **spec):
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def an_hpa(name="scaler", version="v2", target=WEB, **limits):
    return an_object(
        f"autoscaling/{version}", "HorizontalPodAutoscaler", name, scaleTargetRef=target, **limits
    )


def a_scaled_object(target=None, **limits):
    target = {"name": "web"} if target is None else target
    return an_object("keda.sh/v1alpha1", "ScaledObject", "scaler", scaleTargetRef=target, **limits)


def a_rollout(**spec):
    return an_object("argoproj.io/v1alpha1", "Rollout", "canary", **spec)


def planned(file, *manifests, mode="current"):
    made = report(file(provisioner(), node_template(), *manifests), "--replicas", mode)
    return sum(landing["pods"] for landing in made["landings"])


def notes(file, *manifests):
    return report(file(provisioner(), node_template(), *manifests))["notes"]


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize(
    ("replicas", "limits", "numbers"),
    [
        (None, {"minReplicas": 12, "maxReplicas": 40}, (12, 12, 40)),
        (20, {"minReplicas": 12, "maxReplicas": 40}, (12, 20, 40)),
        (50, {"minReplicas": 12, "maxReplicas": 40}, (12, 40, 40)),
        (None, {"maxReplicas": 3}, (1, 1, 3)),
        (0, {"minReplicas": 2, "maxReplicas": 3}, (0, 0, 0)),
        (0, {"minReplicas": 0, "maxReplicas": 3}, (0, 0, 3)),
    ],
)
def test_a_horizontal_pod_autoscaler_keeps_the_number_in_its_range(file, version, replicas, limits, numbers):
    """Kubernetes: spec.replicas 0 turns an autoscaler off, unless its minimum is 0."""
    given = (a_workload(replicas=replicas), an_hpa(version=version, **limits))

    assert tuple(planned(file, *given, mode=mode) for mode in ("min", "current", "max")) == numbers


@pytest.mark.parametrize(
    ("replicas", "limits", "numbers"),
    [
        (None, {}, (0, 1, 100)),
        (0, {"minReplicaCount": 2, "maxReplicaCount": 4}, (2, 2, 4)),
        (9, {"maxReplicaCount": 4}, (0, 4, 4)),
    ],
)
def test_a_scaled_object_keeps_the_number_in_its_range(file, replicas, limits, numbers):
    given = (a_workload(replicas=replicas), a_scaled_object(**limits))

    assert tuple(planned(file, *given, mode=mode) for mode in ("min", "current", "max")) == numbers


def test_the_notes_say_which_number_out_of_which_range(file):
    given = (a_workload(), an_hpa(minReplicas=12, maxReplicas=40))

    said = "Deployment/web in shop: planned with 12 replicas, of 12 to 40 (HorizontalPodAutoscaler/scaler)"
    assert said in notes(file, *given)


def test_the_notes_say_what_the_ends_of_the_range_add(file):
    given = (provisioner(), node_template(), a_workload(replicas=3), an_hpa(minReplicas=2, maxReplicas=9))
    path = file(*given)
    said = report(path)["notes"]

    for mode, words in (("min", "minimum"), ("max", "maximum")):
        added = report(path, "--replicas", mode)["cost"]["perHour"]["added"]
        assert f"at the {words} of the autoscalers: {added:.4f} USD/h added" in said
    beyond = report(path, "--what-if", "only-type=m5.large")["notes"]
    assert not [note for note in beyond if "of the autoscalers" in note]


@pytest.mark.parametrize(
    ("hpa", "reason"),
    [
        (an_hpa(target={**WEB, "name": "other"}, maxReplicas=4), "its target Deployment/other is not in the"),
        (
            an_hpa(target={**WEB, "kind": "StatefulSet"}, maxReplicas=4),
            "its target StatefulSet/web is not in",
        ),
        (an_hpa(target={**WEB, "kind": "Job"}, maxReplicas=4), "its target Job/web has no spec.replicas"),
    ],
)
def test_a_target_that_cannot_be_scaled_is_a_note(file, hpa, reason):
    given = (a_workload(), a_workload("Job"), hpa)

    assert planned(file, *given) == 2
    (said,) = [note for note in notes(file, *given) if note.startswith("ignored")]
    assert f"HorizontalPodAutoscaler (1): {reason}" in said


def test_the_target_is_looked_for_in_the_autoscalers_namespace(file):
    elsewhere = a_workload(namespace="other")

    assert planned(file, elsewhere, an_hpa(minReplicas=5, maxReplicas=9)) == 1


@pytest.mark.parametrize(
    ("replicas", "numbers"),
    [({"min": 3, "max": 30}, (3, 4, 30)), ({"max": 6}, (0, 4, 6)), (None, (0, 4, 100))],
)
def test_what_kedas_add_on_for_http_scales_is_between_its_ends(file, replicas, numbers):
    """It makes a ScaledObject of it, which may be in a dump as well."""
    members = {"scaleTargetRef": {"name": "web", "kind": "Deployment", "apiVersion": "apps/v1"}}
    scaler = an_object(
        "http.keda.sh/v1alpha1",
        "HTTPScaledObject",
        "scaler",
        **members,
        **({"replicas": replicas} if replicas else {}),
    )
    web = a_workload(replicas=4)
    modes = ("min", "current", "max")
    assert tuple(planned(file, web, scaler, mode=mode) for mode in modes) == numbers
    made = a_scaled_object(minReplicaCount=5, maxReplicaCount=7)
    assert tuple(planned(file, web, scaler, made, mode=mode) for mode in modes) == (5, 5, 7)


def test_a_range_for_http_that_is_none_is_told(file):
    members = {"scaleTargetRef": {"name": "web"}, "replicas": {"min": 5, "max": 2}}
    scaler = an_object("http.keda.sh/v1alpha1", "HTTPScaledObject", "scaler", **members)
    said = nodeless(file(provisioner(), node_template(), a_workload(), scaler)).stderr
    assert "spec.replicas.min: 5 is more than spec.replicas.max: 2" in said


@pytest.mark.parametrize(
    ("annotations", "numbers"),
    [
        ({"autoscaling.keda.sh/paused": "true"}, (4, 4, 4)),
        ({"autoscaling.keda.sh/paused": "false"}, (6, 6, 9)),
        ({"autoscaling.keda.sh/paused-replicas": "2"}, (2, 2, 2)),
        ({"autoscaling.keda.sh/paused-replicas": "0", "autoscaling.keda.sh/paused": "true"}, (0, 0, 0)),
    ],
)
def test_a_paused_scaled_object_leaves_the_workload_alone(file, annotations, numbers):
    """KEDA: with a number the workload has that many replicas, without one it stays as it is."""
    paused = a_scaled_object(minReplicaCount=6, maxReplicaCount=9)
    paused["metadata"]["annotations"] = annotations
    given = (a_workload(replicas=4), paused)

    assert tuple(planned(file, *given, mode=mode) for mode in ("min", "current", "max")) == numbers


def test_the_number_of_a_pause_is_a_number(file):
    paused = a_scaled_object()
    paused["metadata"]["annotations"] = {"autoscaling.keda.sh/paused-replicas": "all"}
    refused = nodeless(file(provisioner(), node_template(), a_workload(), paused))
    assert refused.exit_code == 2
    assert (
        "metadata.annotations[autoscaling.keda.sh/paused-replicas]: 'all' is not a number of pods"
        in refused.stderr
    )


@pytest.mark.parametrize(("replicas", "numbers"), [(0, (0, 0, 9)), (1, (0, 6, 9)), (7, (0, 7, 9))])
def test_an_idle_workload_has_fewer_replicas_than_the_minimum_and_none_between(file, replicas, numbers):
    scaler = a_scaled_object(idleReplicaCount=0, minReplicaCount=6, maxReplicaCount=9)
    given = (a_workload(replicas=replicas), scaler)
    assert tuple(planned(file, *given, mode=mode) for mode in ("min", "current", "max")) == numbers


def test_the_autoscaler_that_keda_makes_is_not_a_second_one(file):
    hpa = an_hpa("keda-hpa-scaler", minReplicas=1, maxReplicas=9)
    hpa["metadata"]["ownerReferences"] = [KEDAS]

    assert planned(file, a_workload(), hpa, a_scaled_object(minReplicaCount=3)) == 3


def test_a_rollout_that_refers_to_a_deployment_has_its_number_of_pods(file):
    rollout = a_rollout(workloadRef={**WEB, "apiVersion": "apps/v1"}, replicas=5)

    assert planned(file, rollout, a_workload(replicas=2)) == 5
    hpa = an_hpa(target={"kind": "Rollout", "name": "canary"}, minReplicas=7, maxReplicas=9)
    assert planned(file, rollout, a_workload(replicas=2), hpa) == 7
    assert "Deployment/web in shop: planned with 5 replicas, those of Rollout/canary" in notes(
        file, rollout, a_workload()
    )
    assert any("its Deployment/web is not in the files" in note for note in notes(file, rollout))


def test_an_autoscaler_scales_whatever_has_replicas(file):
    rollout = a_rollout(template=TEMPLATE)
    hpa = an_hpa(target={"kind": "Rollout", "name": "canary"}, minReplicas=3, maxReplicas=9)

    assert planned(file, rollout, hpa) == 3


@pytest.mark.parametrize(
    ("scaler", "told"),
    [
        (an_hpa(minReplicas=-1, maxReplicas=3), "spec.minReplicas: -1 is not a number of pods"),
        (an_hpa(minReplicas="2", maxReplicas=3), "spec.minReplicas: '2' is not a number of pods"),
        (an_hpa(maxReplicas=10**40), "is not a number of pods"),
        (an_hpa(maxReplicas=0), "spec.maxReplicas: 0 is too few"),
        (an_hpa(), "spec.maxReplicas: is required"),
        (an_hpa(minReplicas=5, maxReplicas=3), "spec.minReplicas: 5 is more than spec.maxReplicas: 3"),
        (a_scaled_object(minReplicaCount=101), "spec.minReplicaCount: 101 is more than spec.maxReplicaCount"),
        (an_hpa(target=3, maxReplicas=3), "spec.scaleTargetRef: 3 is not an object"),
        (an_hpa(target=None, maxReplicas=3), "spec.scaleTargetRef: is required"),
        (an_hpa(target={"name": "web"}, maxReplicas=3), "spec.scaleTargetRef.kind: is required"),
        (
            an_hpa(target={"kind": 3, "name": "web"}, maxReplicas=3),
            "spec.scaleTargetRef.kind: 3 is not a name",
        ),
        (a_scaled_object(target={"name": ["web"]}), "spec.scaleTargetRef.name: ['web'] is not a name"),
        ({**an_hpa(), "spec": []}, "spec: [] is not an object"),
        (a_rollout(workloadRef=3), "spec.workloadRef: 3 is not an object"),
        (a_rollout(workloadRef={"kind": "Deployment"}), "spec.workloadRef.name: is required"),
        (a_rollout(workloadRef=WEB, replicas="many"), "spec.replicas: 'many' is not a number of pods"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_line(file, scaler, told):
    path = file(provisioner(), node_template(), a_workload(), scaler)
    result = nodeless(path)

    assert result.exit_code == 2, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith(f"{path}:")]
    assert told in line


def test_two_autoscalers_of_one_workload_are_a_fault(file):
    path = file(provisioner(), node_template(), a_workload(), an_hpa(maxReplicas=3), a_scaled_object())
    result = nodeless(path)

    assert result.exit_code == 2
    assert "Deployment/web is scaled by HorizontalPodAutoscaler/scaler at " in result.stderr


def test_the_fault_of_a_scaled_workload_is_told(file):
    path = file(provisioner(), node_template(), a_workload(replicas=-1), an_hpa(maxReplicas=3))

    assert "spec.replicas: -1 is not a number of pods" in nodeless(path).stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([EXAMPLES, "--replicas", "most"], "--replicas 'most' is not known; hint: min, current, max"),
        (["--snapshot", "x", "--replicas", "max"], "apply only to manifests"),
    ],
)
def test_an_option_that_cannot_be_used_is_told(arguments, told):
    result = nodeless(*arguments)

    assert (result.exit_code, told in result.stderr) == (2, True)
