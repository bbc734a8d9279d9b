"""Kubernetes' own workloads are checked by the rules of the API server: names, labels, selectors."""

import json
from functools import reduce

import pytest
from hypothesis import given

from nodeless.api.rule_codes import RuleCode
from nodeless.api.workload_rules import LEFT_OUT, is_own_workload, workload_errors
from tests.api.test_properties import JSON, UNHURRIED

LABELS = {"app": "web"}
LONG = "x" * 64


def a_pod_spec(**spec):
    return {"containers": [{"name": "web", "image": "web"}], **spec}


def a_workload(kind="Deployment", *, name="web", labels=None, selector=None, metadata=None, pod=None, **spec):
    template = {
        "metadata": {"labels": LABELS if labels is None else labels},
        "spec": {"containers": [{"name": "web", "image": "web"}], **(pod or {})},
    }
    chosen = {"matchLabels": LABELS} if selector is None else selector
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"selector": chosen, "template": template, **spec},
    }


def a_job(kind="Job", name="web", **pod):
    job = {"template": {"spec": a_pod_spec(**{"restartPolicy": "Never", **pod})}}
    spec = job if kind == "Job" else {"schedule": "@daily", "jobTemplate": {"spec": job}}
    return {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def a_pod(name="web", metadata=None, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": a_pod_spec(**spec),
    }


def found(manifest):
    return [(str(error.code), error.path) for error in workload_errors(manifest)]


@pytest.mark.parametrize(
    "manifest",
    [
        a_workload(),
        a_workload("StatefulSet", name="web.example"),
        a_workload(labels={**LABELS, "tier": "front"}),
        a_workload(metadata={"labels": {"example.com/team": ""}, "namespace": "shop"}),
        a_workload(
            selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}
        ),
        a_workload(
            selector={"matchLabels": LABELS, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}
        ),
        a_workload(selector={"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]}),
        a_workload(name="x" * 253),
        a_workload(metadata={"name": None, "generateName": "web-"}),
        a_job(name="x" * 63),
        a_job("CronJob", name="x" * 52),
        a_job(restartPolicy="OnFailure"),
        a_pod(restartPolicy="Never"),
        {
            **a_workload("ReplicationController", selector=LABELS),
            "apiVersion": "v1",
        },
        {**a_workload(), "apiVersion": "extensions/v1beta1"},
    ],
)
def test_a_workload_as_it_should_be_has_no_faults(manifest):
    assert is_own_workload(manifest)
    assert found(manifest) == []


@pytest.mark.parametrize(
    ("manifest", "faults"),
    [
        (a_workload(name="Web"), [("InvalidName", "metadata.name")]),
        (a_workload(name="web_1"), [("InvalidName", "metadata.name")]),
        (a_workload(name="x" * 254), [("InvalidName", "metadata.name")]),
        (a_job(name="x" * 64), [("InvalidName", "metadata.name")]),
        (a_job("CronJob", name="x" * 53), [("InvalidName", "metadata.name")]),
        (a_workload(metadata={"generateName": "Web-"}), [("InvalidName", "metadata.generateName")]),
        (a_workload(metadata={"namespace": "shop.eu"}), [("InvalidName", "metadata.namespace")]),
        (a_workload(metadata={"labels": {"team": LONG}}), [("InvalidLabel", "metadata.labels.team")]),
        (a_workload(metadata={"labels": {"a b": "c"}}), [("InvalidLabel", 'metadata.labels["a b"]')]),
        (a_workload(metadata={"labels": {"team": True}}), [("WrongType", "metadata.labels.team")]),
        (
            a_workload(metadata={"annotations": {"-": "x"}}),
            [("InvalidAnnotation", 'metadata.annotations["-"]')],
        ),
        (
            a_workload(labels={**LABELS, "team": "a b"}),
            [("InvalidLabel", "spec.template.metadata.labels.team")],
        ),
        (
            a_workload(pod={"nodeSelector": {"disk": "a/b"}}),
            [("InvalidLabel", "spec.template.spec.nodeSelector.disk")],
        ),
        (
            a_workload(pod={"containers": [{"name": "my.web", "image": "web"}]}),
            [("InvalidName", "spec.template.spec.containers[0].name")],
        ),
        (
            a_job("CronJob", initContainers=[{"name": "A", "image": "a"}]),
            [("InvalidName", "spec.jobTemplate.spec.template.spec.initContainers[0].name")],
        ),
        (
            a_workload(pod={"restartPolicy": "Never"}),
            [("UnsupportedValue", "spec.template.spec.restartPolicy")],
        ),
        (a_job(restartPolicy="Always"), [("UnsupportedValue", "spec.template.spec.restartPolicy")]),
        (a_workload(labels={"app": "api"}), [("UnmatchedSelector", "spec.selector.matchLabels.app")]),
        (a_workload(labels={}), [("UnmatchedSelector", "spec.selector.matchLabels.app")]),
        (
            a_workload(
                "DaemonSet", labels={"app": "api", "tier": "x"}, selector={"matchLabels": {"tier": "y"}}
            ),
            [("UnmatchedSelector", "spec.selector.matchLabels.tier")],
        ),
        (
            {**a_workload("ReplicationController", selector={"app": "api"}), "apiVersion": "v1"},
            [("UnmatchedSelector", "spec.selector.app")],
        ),
        (
            a_workload(
                selector={"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}
            ),
            [("UnmatchedSelector", "spec.selector.matchExpressions[0]")],
        ),
        (
            a_workload(selector={"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
            [("UnmatchedSelector", "spec.selector.matchExpressions[0]")],
        ),
        (a_workload(selector={}), [("InvalidSelector", "spec.selector")]),
        (
            a_workload(selector={"matchExpressions": [{"key": "app", "operator": "Is", "values": ["web"]}]}),
            [("InvalidSelector", "spec.selector.matchExpressions[0].operator")],
        ),
        (
            a_workload(selector={"matchExpressions": [{"key": "app", "operator": "In"}]}),
            [("InvalidSelector", "spec.selector.matchExpressions[0].values")],
        ),
        (
            a_workload(selector={"matchExpressions": [{"operator": "Exists"}]}),
            [("InvalidSelector", "spec.selector.matchExpressions[0].key")],
        ),
        (
            a_workload(selector={"matchLabels": {"app": LONG}}),
            [("InvalidLabel", "spec.selector.matchLabels.app")],
        ),
    ],
)
def test_what_the_api_server_would_refuse_is_told_with_its_field(manifest, faults):
    assert found(manifest) == faults


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (a_workload(metadata={"name": None}), "metadata.name"),
        ({**a_workload(), "spec": {"template": a_workload()["spec"]["template"]}}, "spec.selector"),
        (a_workload(pod={"containers": [{"image": "web"}]}), "spec.template.spec.containers[0].name"),
        (a_workload(pod={"containers": [{"name": "web"}]}), "spec.template.spec.containers[0].image"),
        (a_job(restartPolicy=None), "spec.template.spec.restartPolicy"),
        (
            {**a_job("CronJob"), "spec": {"jobTemplate": a_job("CronJob")["spec"]["jobTemplate"]}},
            "spec.schedule",
        ),
    ],
)
def test_what_is_missing_is_told_as_that(manifest, path):
    (error,) = workload_errors(manifest)

    assert (error.code, error.path, error.hint) == (RuleCode.MISSING_FIELD, path, LEFT_OUT)


def test_the_value_that_the_template_has_is_told():
    (error,) = workload_errors(a_workload(labels={"app": "api"}))

    assert str(error) == (
        "spec.selector.matchLabels.app: \"web\" is 'api' in spec.template.metadata.labels, so the selector "
        "matches no pod of the template; hint: give both the same value"
    )


@pytest.mark.parametrize("name", ["${APP}", "RELEASE-NAME-web", "{{ .Release.Name }}-web", "YOUR_APP"])
def test_a_placeholder_is_no_fault_but_a_warning(name):
    (error,) = workload_errors(a_workload(name=name))

    assert (error.code, error.warning, error.path) == (RuleCode.UNFILLED_PLACEHOLDER, True, "metadata.name")


def test_nothing_is_said_of_what_the_api_server_has_admitted():
    assert found(a_workload(name="Old", metadata={"uid": "u"}, labels={"app": "api"})) == []


@pytest.mark.parametrize("said", ["banana", "-10h", "Never", "9000h", ""])
@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (a_pod(), "metadata"),
        (a_job(), "spec.template.metadata"),
        (a_job("CronJob"), "spec.jobTemplate.spec.template.metadata"),
        (a_workload(), "spec.template.metadata"),
    ],
)
def test_lost_work_that_means_nothing_is_warned_of(manifest, path, said):
    manifest = json.loads(json.dumps(manifest))
    *way, last = path.split(".")
    holder = reduce(dict.__getitem__, way, manifest)
    annotated = {**holder.get(last, {}), "annotations": {"nodeless.dev/lost-work": said}}
    holder[last] = annotated
    (warning,) = workload_errors(manifest)
    assert warning.warning
    assert warning.code == RuleCode.INVALID_LOST_WORK
    assert warning.path == f'{path}.annotations["nodeless.dev/lost-work"]'
    annotated["annotations"]["nodeless.dev/lost-work"] = "10h"
    assert list(workload_errors(manifest)) == []


@pytest.mark.parametrize(
    "manifest",
    [
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"},
        {"apiVersion": "example.com/v1", "kind": "Deployment"},
        {"apiVersion": "v1", "kind": "Deployment"},
        {"apiVersion": "v1", "kind": "Service"},
        {"apiVersion": 1, "kind": "Pod"},
        {"kind": "Pod"},
        {"apiVersion": "v1", "kind": ["Pod"]},
        "Pod",
    ],
)
def test_other_kinds_are_left_alone(manifest):
    assert not is_own_workload(manifest)


@UNHURRIED
@given(JSON)
def test_any_object_at_all_can_be_checked(value):
    for manifest in (a_workload(), a_job("CronJob"), a_pod()):
        text = json.dumps(manifest)
        for part in ("metadata", "spec"):
            list(workload_errors({**manifest, part: value}))
        spec = json.loads(text)["spec"]
        for member in list(spec):
            list(workload_errors({**manifest, "spec": {**spec, member: value}}))
