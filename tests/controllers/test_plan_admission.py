"""`nodeless plan`: what the API server fills into pods, where the files say what it is."""

import pytest
import yaml

from nodeless.cli.manifests.documents import documents_of
from nodeless.cli.manifests.reading import read_documents
from tests.api.manifests import node_template, provisioner
from tests.controllers.planning import a_workload, nodeless


def an_object(api_version, kind, name="given", namespace="shop", **rest):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def a_class(name="high", value=1000, **rest):
    return an_object("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **rest)


def a_limit_range(namespace="shop", kind="Container", **amounts):
    return an_object("v1", "LimitRange", namespace=namespace, spec={"limits": [{"type": kind, **amounts}]})


def the_pod(*manifests):
    contents = read_documents(documents_of("given.yaml", yaml.safe_dump_all(manifests)))
    assert not contents.skipped
    (pod,) = contents.snapshot.pods.values()
    return pod


def a_container(**resources):
    return {"containers": [{"name": "c", "resources": resources}]}


@pytest.mark.parametrize(
    ("pod", "priority", "name"),
    [
        ({"priorityClassName": "high"}, 1000, "high"),
        ({"priorityClassName": "low"}, -5, "low"),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000, "system-node-critical"),
        ({"priorityClassName": "unknown"}, 0, "unknown"),
        ({"priorityClassName": "high", "priority": 7}, 7, "high"),
        ({}, 50, "usual"),
    ],
)
def test_a_priority_class_gives_pods_their_priority(pod, priority, name):
    classes = (a_class(), a_class("low", -5), a_class("usual", 50, globalDefault=True))
    found = the_pod(*classes, a_workload(pod=pod))

    assert (found.priority, found.priority_class) == (priority, name)


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_default_priority_classes_the_lowest_counts(order):
    classes = [a_class("usual", 50, globalDefault=True), a_class("least", -7, globalDefault=True)]
    found = the_pod(*classes[::order], a_workload())

    assert (found.priority, found.priority_class) == (-7, "least")


@pytest.mark.parametrize(
    ("amounts", "resources", "cpu"),
    [
        ({"defaultRequest": {"cpu": "300m"}}, {}, 300),
        ({"default": {"cpu": "400m"}}, {}, 400),
        ({"default": {"cpu": "400m"}, "defaultRequest": {"cpu": "300m"}}, {}, 300),
        ({"max": {"cpu": "2"}}, {}, 2000),
        ({"min": {"cpu": "100m"}}, {}, 100),
        ({"defaultRequest": {"cpu": "300m"}}, {"requests": {"cpu": "1"}}, 1000),
        ({"defaultRequest": {"cpu": "300m"}}, {"limits": {"cpu": "2"}}, 2000),
        ({"defaultRequest": {"cpu": "300m"}, "kind": "Pod"}, {}, 0),
        ({"defaultRequest": {"cpu": "300m"}, "namespace": "other"}, {}, 0),
    ],
)
def test_a_limit_range_gives_containers_their_requests(amounts, resources, cpu):
    found = the_pod(a_limit_range(**amounts), a_workload(pod=a_container(**resources)))

    assert found.requests.get("cpu", 0) == cpu


def test_a_pod_that_runs_was_admitted_before():
    running = an_object("v1", "Pod", spec={**a_container(), "nodeName": "n1"}, status={"phase": "Running"})

    assert "cpu" not in the_pod(a_limit_range(defaultRequest={"cpu": "1"}), running).requests


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (a_class(value="high"), "value: 'high' is not a priority"),
        (a_class(value=2**40), "is not a priority; hint: a whole number of 32 bits"),
        (a_limit_range(default={"cpu": "x"}), "spec.limits[0].default.cpu: 'x'"),
        (a_limit_range(default=[]), "spec.limits[0].default: [] is not an object"),
        ({**a_limit_range(), "spec": 3}, "spec: 3 is not an object"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_line(file, manifest, told):
    path = file(provisioner(), node_template(), manifest, a_workload())
    result = nodeless(path)

    assert result.exit_code == 2, result.output
    assert [line for line in result.stderr.splitlines() if line.startswith(f"{path}:") and told in line]


def a_runtime(name="kata", **rest):
    return an_object("node.k8s.io/v1", "RuntimeClass", name, handler=name, **rest)


KATA = a_runtime(
    overhead={"podFixed": {"cpu": "250m", "memory": "160Mi"}},
    scheduling={
        "nodeSelector": {"runtime": "kata", "zone": "a"},
        "tolerations": [{"key": "kata", "operator": "Exists"}],
    },
)


@pytest.mark.parametrize(
    ("pod", "cpu", "selector", "tolerations"),
    [
        ({"runtimeClassName": "kata"}, 1250, {"runtime": "kata", "zone": "a"}, 1),
        (
            {"runtimeClassName": "kata", "nodeSelector": {"zone": "b"}},
            1250,
            {"runtime": "kata", "zone": "b"},
            1,
        ),
        ({"runtimeClassName": "kata", "overhead": {"cpu": "10m"}}, 1010, {"runtime": "kata", "zone": "a"}, 1),
        (
            {"runtimeClassName": "kata", "tolerations": [{"operator": "Exists"}]},
            1250,
            {"runtime": "kata", "zone": "a"},
            2,
        ),
        ({"runtimeClassName": "plain"}, 1000, {}, 0),
        ({}, 1000, {}, 0),
    ],
)
def test_a_runtime_class_adds_its_overhead_and_its_nodes(pod, cpu, selector, tolerations):
    found = the_pod(KATA, a_runtime("plain"), a_workload(pod=pod))

    assert dict(found.shape.requests)["cpu"] == cpu
    assert dict(found.shape.node_selector) == selector
    assert len(found.shape.tolerations) == tolerations


@pytest.mark.parametrize(
    ("runtime", "told"),
    [
        (a_runtime(overhead=3), "overhead: 3 is not an object"),
        (a_runtime(overhead={"podFixed": {"cpu": "x"}}), "overhead.podFixed.cpu: 'x' is not a quantity"),
        (a_runtime(scheduling={"nodeSelector": ["a"]}), "scheduling.nodeSelector: ['a'] is not an object"),
        (a_runtime(scheduling={"tolerations": "all"}), "scheduling.tolerations: 'all' is not a list"),
    ],
)
def test_a_runtime_class_that_cannot_be_read_is_told(file, runtime, told):
    result = nodeless(file(provisioner(), node_template(), runtime))

    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


def test_classes_that_the_files_lack_are_said(file):
    pod = {"priorityClassName": "urgent", "runtimeClassName": "gvisor"}
    given = file(provisioner(), node_template(), KATA, a_class("usual"), a_workload(replicas=2, pod=pod))
    said = nodeless(given, "-o", "wide").stdout

    assert "priority class urgent is not in the files: its pods have priority 0" in said
    assert "runtime class gvisor is not in the files: its pods need nothing besides their own" in said
    plain = file(
        provisioner(), node_template(), a_workload(pod={"priorityClassName": "system-node-critical"})
    )
    assert " class " not in nodeless(plain, "-o", "wide").stdout


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_a_request_above_the_limit_of_a_limit_range_says_where_that_is_from(file, kind):
    limits = a_limit_range(default={"cpu": "500m"})
    workload = a_workload(cpu="3")
    if kind == "Pod":
        workload = an_object("v1", "Pod", spec=workload["spec"]["template"]["spec"])
    told = nodeless(file(provisioner(), node_template(), limits, workload)).stderr

    assert "is more than the limit 500m; hint: the limit is the default of a LimitRange" in told
    own = a_workload(pod=a_container(requests={"cpu": "3"}, limits={"cpu": "1"}))
    assert "LimitRange" not in nodeless(file(provisioner(), node_template(), limits, own)).stderr
