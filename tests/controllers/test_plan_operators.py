"""`nodeless plan`: the pods of objects that are none of Kubernetes' own workloads."""

import pytest
import yaml

from nodeless.cli.manifests.documents import documents_of
from nodeless.cli.manifests.reading import read_documents
from nodeless.model.workloads import workload_of
from tests.api.manifests import node_template, provisioner
from tests.controllers.planning import a_workload, nodeless, report

CONTAINER = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [CONTAINER]}}


def an_object(api_version, kind, name="web", **spec):
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def a_prometheus(kind="Prometheus", **spec):
    return an_object("monitoring.coreos.com/v1", kind, resources={"requests": {"cpu": "2"}}, **spec)


def a_job_set(**jobs):
    job = {"spec": {"parallelism": 3, "template": TEMPLATE}}
    replicated = [{"name": "workers", "replicas": 2, "template": job, **jobs}]
    return an_object("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=replicated)


def a_leader_worker_set(replicas=2, size=4, **template):
    both = {"size": size, "workerTemplate": TEMPLATE, **template}
    return an_object(
        "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=replicas, leaderWorkerTemplate=both
    )


def a_ray_cluster(spec=None, **group):
    groups = [{"groupName": "small", "template": TEMPLATE, **group}]
    head = {"template": TEMPLATE}
    more = {} if spec is None else spec
    return an_object("ray.io/v1", "RayCluster", headGroupSpec=head, workerGroupSpecs=groups, **more)


def a_ray_job(group=None, **spec):
    cluster = a_ray_cluster(**({"replicas": 2} if group is None else group))["spec"]
    return an_object("ray.io/v1", "RayJob", **{"rayClusterSpec": cluster, **spec})


def planned(file, *manifests, mode="current"):
    made = report(file(provisioner(), node_template(), *manifests), "--replicas", mode)
    return sum(landing["pods"] for landing in made["landings"])


def cpus(manifest):
    """The milli-CPUs that the pods of a manifest request, by what owns them."""
    found = {}
    documents = documents_of("given.yaml", yaml.safe_dump(manifest))
    for pod in read_documents(documents).snapshot.pods.values():
        workload = workload_of(pod)
        found.setdefault(f"{workload.kind}/{workload.name}", []).append(dict(pod.shape.requests)["cpu"])
    return {name: sorted(amounts) for name, amounts in found.items()}


def notes(file, *manifests):
    return report(file(provisioner(), node_template(), *manifests))["notes"]


@pytest.mark.parametrize(
    ("manifest", "number"),
    [
        (an_object("argoproj.io/v1alpha1", "Rollout", template=TEMPLATE, replicas=5), 5),
        (an_object("argoproj.io/v1alpha1", "Rollout", template=TEMPLATE), 1),
        (an_object("apps.kruise.io/v1alpha1", "CloneSet", template=TEMPLATE, replicas=3), 3),
        (an_object("apps.kruise.io/v1beta1", "StatefulSet", template=TEMPLATE, replicas=2), 2),
        (an_object("example.com/v1", "Whatever", template=TEMPLATE, replicas=0), 0),
        (an_object(None, "Whatever", template=TEMPLATE), 1),
        (a_prometheus(), 1),
        (a_prometheus(replicas=2, shards=3), 6),
        (a_prometheus("Alertmanager", replicas=3), 3),
        (a_job_set(), 6),
        (a_job_set(replicas=None), 3),
        (a_leader_worker_set(), 8),
        (a_leader_worker_set(leaderTemplate=TEMPLATE, size=1), 2),
        (a_ray_cluster(replicas=3), 4),
        (a_ray_cluster(minReplicas=2), 3),
        (a_ray_cluster(replicas=3, numOfHosts=2), 7),
        (a_ray_cluster(), 1),
        (a_ray_cluster(replicas=9, maxReplicas=4), 5),
        (a_ray_cluster(replicas=1, minReplicas=2, maxReplicas=4, numOfHosts=3), 7),
        (a_ray_cluster(replicas=3, minReplicas=2, suspend=True), 1),
        (a_ray_cluster({"suspend": True}, replicas=3), 0),
        (an_object("ray.io/v1", "RayService", rayClusterConfig=a_ray_cluster(replicas=2)["spec"]), 3),
        (a_ray_job(), 4),
        (a_ray_job(submissionMode="K8sJobMode"), 4),
        (a_ray_job(submissionMode="HTTPMode"), 3),
        (a_ray_job(submissionMode="InteractiveMode"), 3),
        (a_ray_job(submissionMode="SidecarMode"), 3),
        (a_ray_job(suspend=True), 0),
        (a_ray_job(clusterSelector={"ray.io/cluster": "there"}), 1),
        (a_ray_job(rayClusterSpec=None, clusterSelector={"ray.io/cluster": "there"}), 1),
        (a_ray_job(clusterSelector={"ray.io/cluster": "there"}, submissionMode="HTTPMode"), 0),
    ],
)
def test_the_pods_of_operators_are_planned(file, manifest, number):
    assert planned(file, manifest) == number


def test_the_parts_of_a_group_have_their_own_requests(file):
    large = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "30"}}}]}}
    plain, leading = a_leader_worker_set(1, 2), a_leader_worker_set(1, 2, leaderTemplate=large)

    for manifest, code in ((plain, 0), (leading, 1)):
        path = file(provisioner(), node_template(), manifest)
        assert nodeless(path, "--what-if", "only-type=m5.xlarge").exit_code == code


@pytest.mark.parametrize(
    ("group", "numbers"),
    [
        ({"replicas": 4, "minReplicas": 2, "maxReplicas": 7}, (2, 4, 7)),
        ({"replicas": 1, "minReplicas": 2, "maxReplicas": 3, "numOfHosts": 2}, (4, 4, 6)),
        ({"replicas": 5, "maxReplicas": 3}, (0, 3, 3)),
        ({"replicas": 2}, (0, 2, 2)),
        ({"replicas": 2, "maxReplicas": 2**31 - 1}, (0, 2, 2)),
        ({"replicas": 2, "minReplicas": 1, "maxReplicas": 3, "suspend": True}, (0, 0, 0)),
    ],
)
def test_workers_of_a_ray_cluster_that_scales_itself_are_within_their_range(file, group, numbers):
    cluster, fixed = a_ray_cluster({"enableInTreeAutoscaling": True}, **group), a_ray_cluster(**group)
    modes = ("min", "current", "max")

    assert tuple(planned(file, cluster, mode=mode) - 1 for mode in modes) == numbers
    assert {planned(file, fixed, mode=mode) - 1 for mode in modes} == {numbers[1]}


def test_the_range_of_ray_workers_is_said_with_what_its_ends_cost(file):
    job = a_ray_job({"spec": {"enableInTreeAutoscaling": True}, "minReplicas": 1, "maxReplicas": 9})
    said = notes(file, job)

    assert "RayJob/web: planned as 3 pods" in said
    assert "RayJob/web: group small: planned with 1 replica, of 1 to 9 (enableInTreeAutoscaling)" in said
    assert [note for note in said if note.startswith("at the maximum of the autoscalers: ")]
    unbounded = a_ray_cluster({"enableInTreeAutoscaling": True}, replicas=2)
    (told,) = [note for note in notes(file, unbounded) if "group small" in note]
    assert told.endswith(
        "planned with 2 replicas, of 0 or more (enableInTreeAutoscaling without maxReplicas)"
    )
    assert not [note for note in notes(file, a_ray_job()) if "group" in note or "of the autoscalers" in note]


@pytest.mark.parametrize(
    ("spec", "amounts"),
    [
        ({}, {"RayJob/web": [1000, 1000, 1000], "Job/web": [500]}),
        ({"submissionMode": "SidecarMode"}, {"RayJob/web": [1000, 1000, 1500]}),
        ({"submissionMode": "HTTPMode"}, {"RayJob/web": [1000, 1000, 1000]}),
        ({"submitterPodTemplate": TEMPLATE}, {"RayJob/web": [1000, 1000, 1000], "Job/web": [1000]}),
    ],
)
def test_the_submitter_of_a_ray_job_has_its_requests(spec, amounts):
    assert cpus(a_ray_job(**spec)) == amounts


@pytest.mark.parametrize(
    ("options", "head"), [(None, 1500), ({}, 1500), ({"resources": {"requests": {"cpu": "2"}}}, 3000)]
)
def test_the_autoscaler_of_a_ray_cluster_runs_beside_its_head(options, head):
    cluster = a_ray_cluster({"enableInTreeAutoscaling": True, "autoscalerOptions": options}, replicas=1)

    assert cpus(cluster) == {"RayCluster/web": [1000, head]}


def test_a_prometheus_is_planned_with_its_requests_and_its_volume(file):
    claim = {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}}
    said = notes(file, a_prometheus(replicas=2, storage={"volumeClaimTemplate": claim}))

    assert "Prometheus/web: planned as 2 pods, without the operator's container config-reloader" in said
    assert any(note.startswith("storage class fast is not in the files") for note in said)


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (an_object("x.io/v1", "Rollout", template=TEMPLATE, replicas=-1), "spec.replicas: -1 is no number"),
        (an_object("x.io/v1", "Rollout", template=TEMPLATE, replicas="3"), "spec.replicas: '3' is no number"),
        (an_object("x.io/v1", "Rollout", template=TEMPLATE, replicas=10**30), "is no number of pods"),
        (a_prometheus(shards="many"), "spec.shards: 'many' is no number"),
        (
            an_object("monitoring.coreos.com/v1", "Prometheus", resources={"requests": {"cpu": "x"}}),
            "spec.resources.requests.cpu: 'x'",
        ),
        (a_prometheus(storage=3), "spec.storage: 3 is no object"),
        (an_object("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs={}), "is no list"),
        (an_object("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=["a"]), "[0]: 'a' is no object"),
        (a_job_set(template={}), "spec.replicatedJobs[0].template.spec: is required"),
        (a_job_set(replicas=999_999), "spec.replicatedJobs[0].replicas: 2999997 is no number"),
        (a_leader_worker_set(size=0), "spec.leaderWorkerTemplate.size: 0 is too few"),
        (a_leader_worker_set(size=True), "size: True is no number"),
        (a_leader_worker_set(workerTemplate=[]), "workerTemplate: [] is no object"),
        (a_ray_cluster(replicas="x"), "spec.workerGroupSpecs[0].replicas: 'x' is no number"),
        (
            a_ray_cluster(minReplicas=3, maxReplicas=2),
            "[0].minReplicas: 3 is more than spec.workerGroupSpecs[0].m",
        ),
        (a_ray_cluster(maxReplicas=-1), "spec.workerGroupSpecs[0].maxReplicas: -1 is no number"),
        (a_ray_cluster(template=[]), "spec.workerGroupSpecs[0].template: [] is no object"),
        (
            a_ray_cluster({"enableInTreeAutoscaling": True, "autoscalerOptions": 3}),
            "spec.autoscalerOptions: 3 is no object",
        ),
        (
            a_ray_cluster(
                {
                    "enableInTreeAutoscaling": True,
                    "autoscalerOptions": {"resources": {"requests": {"cpu": "x"}}},
                }
            ),
            "spec.autoscalerOptions.resources.requests.cpu: 'x'",
        ),
        (a_ray_job(rayClusterSpec=None), "spec.rayClusterSpec: is required"),
        (
            a_ray_job(submissionMode="Mail"),
            "spec.submissionMode: 'Mail' is not known; hint: one of K8sJobMode",
        ),
        (
            a_ray_job(submissionMode="SidecarMode", clusterSelector={"ray.io/cluster": "there"}),
            "spec.submissionMode: SidecarMode needs a cluster of the job's own; hint: use K8sJobMode",
        ),
        (a_ray_job(submitterPodTemplate={"spec": {}}), "spec.submitterPodTemplate.spec"),
        (an_object("ray.io/v1", "RayCluster"), "spec.headGroupSpec.template: is required"),
        ({**a_prometheus(), "spec": "x"}, "spec: 'x' is no object"),
        ({**a_prometheus(), "kind": 3}, "kind: 3 is no name of a kind"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_line(file, manifest, told):
    path = file(provisioner(), node_template(), manifest)
    result = nodeless(path)

    assert result.exit_code == 2, result.output
    assert [line for line in result.stderr.splitlines() if line.startswith(f"{path}:") and told in line]


def test_a_workload_and_what_its_operator_made_of_it_are_planned_once(file):
    """A dump of a cluster has both."""

    def owned(manifest, kind, name="web"):
        owner = {"apiVersion": "x/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
        return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}}

    rollout = an_object("argoproj.io/v1alpha1", "Rollout", template=TEMPLATE, replicas=3)
    replica_set = owned(a_workload("ReplicaSet", "web-5f", replicas=3), "Rollout")
    assert planned(file, rollout, replica_set) == 3
    deployment = a_workload(replicas=3)
    assert planned(file, deployment, owned(a_workload("ReplicaSet", "web-5f", replicas=2), "Deployment")) == 3
    stateful = a_workload("StatefulSet", "prometheus-web", replicas=2)
    assert planned(file, a_prometheus(replicas=2), owned(stateful, "Prometheus")) == 2


def test_members_of_a_stateful_set_that_are_there_stay(file):
    there = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"prometheus-web-{ordinal}",
                "namespace": "shop",
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "prometheus-web", "uid": "u"}
                ],
            },
            "spec": {"containers": [CONTAINER]},
        }
        for ordinal in (1, 2)
    ]
    assert planned(file, a_prometheus(replicas=3), *there) == 3


def test_workloads_of_one_name_are_both_planned(file):
    assert planned(file, a_workload(replicas=2), a_workload("StatefulSet", replicas=2)) == 4


def test_what_is_left_out_is_listed_with_the_reason(file):
    topic = an_object("kafka.strimzi.io/v1", "Kafka")
    service = an_object("v1", "Service")
    said = notes(file, topic, {**topic, "metadata": {"name": "other"}}, service, a_workload())

    assert "ignored: Service (1): no pods come of them" in said
    assert (
        "ignored: Kafka of kafka.strimzi.io (2): whether pods come of them is not known; "
        "hint: add the workloads that their operator makes" in said
    )


def test_strict_refuses_what_may_change_the_plan_and_is_left_out(file):
    topic, quota = an_object("kafka.strimzi.io/v1", "Kafka"), an_object("v1", "ResourceQuota", "cap")
    pools = (provisioner(), node_template())
    auto_mode = an_object("eks.amazonaws.com/v1", "NodeClass", "auto")
    path = file(*pools, a_workload(), an_object("v1", "Service"), topic, quota, auto_mode)
    result = nodeless(path, "--strict")

    assert result.exit_code == 2
    lines = [line for line in result.stderr.splitlines() if line.startswith(f"{path}:")]
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        "NodeClass/auto",
        "Kafka/web",
        "ResourceQuota/cap",
    ]
    assert all(line.removeprefix(f"{path}:").partition(":")[0].isdigit() for line in lines)
    assert "3 objects are ignored; hint:" in result.stderr
    assert nodeless(path).exit_code == 0


def test_strict_takes_objects_of_which_no_pods_come(file):
    given = file(provisioner(), node_template(), a_workload(), an_object("v1", "Service"))

    assert nodeless(given, "--strict").exit_code == 0
