"""`nodeless plan`: the pods of objects that are none of Kubernetes' own workloads."""

from collections import Counter

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


def a_knative_service(kind="Service", **annotations):
    names = {f"autoscaling.knative.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    template = {"metadata": {"annotations": names}, "spec": {"containers": [CONTAINER]}}
    return an_object("serving.knative.dev/v1", kind, template=template)


def a_scaled_job(job=None, **spec):
    target = {"template": TEMPLATE, **(job or {})}
    return an_object("keda.sh/v1alpha1", "ScaledJob", jobTargetRef=target, triggers=[], **spec)


def a_runner_set(**spec):
    return an_object("actions.github.com/v1alpha1", "AutoscalingRunnerSet", template=TEMPLATE, **spec)


def a_training_job(kind="PyTorchJob", member="pytorchReplicaSpecs", roles=None, **spec):
    groups = {
        role: {"replicas": number, "template": TEMPLATE}
        for role, number in (roles or {"Master": 1, "Worker": 3}).items()
    }
    return an_object("kubeflow.org/v1", kind, **{member: groups}, **spec)


def a_container(name, cpu=None, **limits):
    return {"name": name, "resources": {"requests": {"cpu": cpu} if cpu else None, "limits": limits}}


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
    ("manifest", "requested"),
    [
        (a_prometheus(containers=[a_container("prometheus", "5")]), {"prometheus-web": [5000]}),
        (a_prometheus(containers=[{"name": "prometheus", "args": ["a"]}]), {"prometheus-web": [2000]}),
        (a_prometheus(containers=[a_container("proxy", "250m")]), {"prometheus-web": [2250]}),
        (a_prometheus(containers=[a_container("config-reloader", "30m")]), {"prometheus-web": [2030]}),
        (a_prometheus(thanos={}), {"prometheus-web": [2000]}),
        (a_prometheus(thanos={"resources": {"requests": {"cpu": "300m"}}}), {"prometheus-web": [2300]}),
        (
            a_prometheus(thanos={}, containers=[a_container("thanos-sidecar", "1")]),
            {"prometheus-web": [3000]},
        ),
        (a_prometheus("PrometheusAgent", replicas=2), {"prom-agent-web": [2000, 2000]}),
        (
            a_prometheus("PrometheusAgent", shards=2),
            {"prom-agent-web": [2000], "prom-agent-web-shard-1": [2000]},
        ),
        (a_prometheus("ThanosRuler", replicas=2), {"thanos-ruler-web": [2000, 2000]}),
        (
            a_prometheus("Alertmanager", containers=[a_container("alertmanager", "3")]),
            {"alertmanager-web": [3000]},
        ),
    ],
)
def test_containers_change_those_of_prometheus_operator_that_have_their_name(manifest, requested):
    assert cpus(manifest) == {f"StatefulSet/{name}": amounts for name, amounts in requested.items()}


@pytest.mark.parametrize(
    ("kind", "spec", "mebibytes"),
    [
        ("Alertmanager", {}, 200),
        ("ThanosRuler", {"resources": {"requests": {"cpu": "1"}}}, 200),
        ("Alertmanager", {"resources": {"requests": {"memory": "50Mi"}}}, 50),
    ],
)
def test_alertmanagers_and_thanos_rulers_request_memory_by_themselves(kind, spec, mebibytes):
    manifest = an_object("monitoring.coreos.com/v1", kind, **spec)
    (pod,) = read_documents(documents_of("given.yaml", yaml.safe_dump(manifest))).snapshot.pods.values()

    assert dict(pod.shape.requests)["memory"] == mebibytes * 2**20


def test_an_agent_of_prometheus_may_be_on_every_node():
    agent = a_prometheus("PrometheusAgent", mode="DaemonSet", tolerations=[{"operator": "Exists"}])
    found = read_documents(documents_of("given.yaml", yaml.safe_dump(agent))).snapshot

    (daemon_set,) = found.daemon_sets.values()
    assert (daemon_set.name, dict(daemon_set.shape.requests)["cpu"]) == ("prom-agent-web", 2000)
    assert len(daemon_set.shape.tolerations) == 1
    assert not found.pods


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (
            an_object("x.io/v1", "Rollout", template=TEMPLATE, replicas=-1),
            "spec.replicas: -1 is not a number",
        ),
        (
            an_object("x.io/v1", "Rollout", template=TEMPLATE, replicas="3"),
            "spec.replicas: '3' is not a number",
        ),
        (an_object("x.io/v1", "Rollout", template=TEMPLATE, replicas=10**30), "is not a number of pods"),
        (a_prometheus(shards="many"), "spec.shards: 'many' is not a number"),
        (
            an_object("monitoring.coreos.com/v1", "Prometheus", resources={"requests": {"cpu": "x"}}),
            "spec.resources.requests.cpu: 'x'",
        ),
        (a_prometheus(storage=3), "spec.storage: 3 is not an object"),
        (an_object("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs={}), "is not a list"),
        (an_object("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=["a"]), "[0]: 'a' is not an object"),
        (a_job_set(template={}), "spec.replicatedJobs[0].template.spec: is required"),
        (a_job_set(replicas=999_999), "spec.replicatedJobs[0].replicas: 2999997 is not a number"),
        (a_leader_worker_set(size=0), "spec.leaderWorkerTemplate.size: 0 is too few"),
        (a_leader_worker_set(size=True), "size: True is not a number"),
        (a_leader_worker_set(workerTemplate=[]), "workerTemplate: [] is not an object"),
        (a_ray_cluster(replicas="x"), "spec.workerGroupSpecs[0].replicas: 'x' is not a number"),
        (
            a_ray_cluster(minReplicas=3, maxReplicas=2),
            "[0].minReplicas: 3 is more than spec.workerGroupSpecs[0].m",
        ),
        (a_ray_cluster(maxReplicas=-1), "spec.workerGroupSpecs[0].maxReplicas: -1 is not a number"),
        (a_ray_cluster(template=[]), "spec.workerGroupSpecs[0].template: [] is not an object"),
        (
            a_ray_cluster({"enableInTreeAutoscaling": True, "autoscalerOptions": 3}),
            "spec.autoscalerOptions: 3 is not an object",
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
        (a_knative_service(min_scale="many"), "min-scale\"]: 'many' is not a number of pods"),
        (a_knative_service(min_scale="3", max_scale="2"), "min-scale 3 is more than autoscaling"),
        (a_scaled_job({"template": None}), "spec.jobTargetRef.template: is required"),
        (
            a_scaled_job({"parallelism": 999}, maxReplicaCount=99999, minReplicaCount=9999),
            "is not a number of",
        ),
        (an_object("postgresql.cnpg.io/v1", "Cluster", instances="x"), "spec.instances: 'x' is not a number"),
        (
            an_object("postgresql.cnpg.io/v1", "Cluster", resources={"requests": {"cpu": "x"}}),
            "spec.resources.requests.cpu: 'x'",
        ),
        (
            an_object("elasticsearch.k8s.elastic.co/v1", "Elasticsearch", nodeSets=[{"count": -1}]),
            "spec.nodeSets[0].count: -1 is not a number",
        ),
        (a_runner_set(minRunners=3, maxRunners=1), "spec: minRunners 3 is more than maxRunners 1"),
        (a_training_job(member="replicaSpecs"), "spec: has no member ...ReplicaSpecs"),
        (
            a_training_job(roles={"Worker": "x"}),
            "spec.pytorchReplicaSpecs.Worker.replicas: 'x' is not a number",
        ),
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
        ({**a_prometheus(), "spec": "x"}, "spec: 'x' is not an object"),
        ({**a_prometheus(), "kind": 3}, "kind: 3 is not a name of a kind"),
        ({**a_prometheus(), "kind": ["Pod"]}, "kind: ['Pod'] is not a name of a kind"),
        (a_prometheus(thanos=3), "spec.thanos: 3 is not an object"),
        (a_prometheus(containers=[{"name": {}}]), "Prometheus/web: "),
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


def owned_by(kind, manifest, owner="web"):
    reference = {"apiVersion": "x/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [reference]}}


def a_running_pod(name, kind, owner, **labels):
    pod = an_object("v1", "Pod", name, nodeName="there", containers=[CONTAINER])
    return owned_by(kind, {**pod, "metadata": {**pod["metadata"], "labels": labels}}, owner)


def counted(*manifests):
    """The pods of a file, planned and running, by workload."""
    documents = documents_of("given.yaml", yaml.safe_dump_all(manifests))
    found = read_documents(documents).snapshot.pods.values()
    return Counter(f"{workload.kind}/{workload.name}" for workload in map(workload_of, found))


def test_a_rollout_of_a_dump_has_the_replicas_that_its_autoscaler_wants():
    target = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"}
    scaler = an_object(
        "autoscaling/v2", "HorizontalPodAutoscaler", minReplicas=7, maxReplicas=9, scaleTargetRef=target
    )
    rollout = an_object("argoproj.io/v1alpha1", "Rollout", template=TEMPLATE, replicas=2)
    made = [owned_by("Rollout", a_workload("ReplicaSet", f"web-{n}", replicas=n)) for n in (0, 2)]

    assert counted(rollout, *made, scaler) == {"Rollout/web": 7}


def test_the_pods_of_a_rollout_that_refers_to_a_deployment_are_counted_once():
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "base"}
    rollout = an_object("argoproj.io/v1alpha1", "Rollout", replicas=3, workloadRef=reference)
    deployment = a_workload(name="base", replicas=0)
    made = owned_by("Rollout", a_workload("ReplicaSet", "web-5f", replicas=3))
    pods = [
        a_running_pod(f"web-5f-{n}", "ReplicaSet", "web-5f", **{"rollouts-pod-template-hash": "5f"})
        for n in range(2)
    ]

    assert counted(rollout, deployment) == {"Deployment/base": 3}
    assert counted(rollout, deployment, made) == {"Deployment/base": 3}
    assert sum(counted(rollout, deployment, made, *pods).values()) == 3


def test_what_knative_makes_of_a_service_is_planned_once():
    """A dump has the Service, its Configuration, Revision and Deployment, and a Service of Kubernetes."""
    container = {"containers": [{"image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    knative = "serving.knative.dev/v1"
    service = an_object(knative, "Service", template={"spec": container})
    dump = [
        service,
        owned_by("Route", an_object("v1", "Service", type="ExternalName")),
        owned_by("Service", an_object(knative, "Route")),
        owned_by("Service", an_object(knative, "Configuration", template={"spec": container})),
        owned_by("Configuration", an_object(knative, "Revision", "web-1", **container)),
        owned_by("Revision", a_workload(name="web-1-deployment", replicas=2), "web-1"),
    ]

    for given in (dump, dump[::-1]):
        assert counted(*given) == {"Deployment/web-1-deployment": 2}
    assert counted(service) == {"Service/web": 1}


def a_finished_ray_job(status="Complete", **spec):
    job = a_ray_job(**spec)
    return {**job, "status": {"jobDeploymentStatus": status, "rayClusterName": "web-x2"}}


def a_rule(policy, status=None):
    return {"policy": policy, "condition": {"ttlSeconds": 60, **({"jobStatus": status} if status else {})}}


@pytest.mark.parametrize(
    ("job", "pods"),
    [
        (a_finished_ray_job("Running"), {"RayJob/web": 3, "Job/web": 1}),
        (a_finished_ray_job(), {"RayJob/web": 3}),
        (a_finished_ray_job("Failed"), {"RayJob/web": 3}),
        (a_finished_ray_job("ValidationFailed"), {}),
        (a_finished_ray_job(shutdownAfterJobFinishes=True), {}),
        (a_finished_ray_job("Failed", shutdownAfterJobFinishes=True), {}),
        (a_finished_ray_job(clusterSelector={"ray.io/cluster": "there"}), {}),
        (a_finished_ray_job(deletionStrategy={"onSuccess": {"policy": "DeleteWorkers"}}), {"RayJob/web": 1}),
        (a_finished_ray_job(deletionStrategy={"onFailure": {"policy": "DeleteSelf"}}), {"RayJob/web": 3}),
        (
            a_finished_ray_job(
                "Failed",
                deletionStrategy={
                    "deletionRules": [a_rule("DeleteWorkers", "FAILED"), a_rule("DeleteCluster", "SUCCEEDED")]
                },
            ),
            {"RayJob/web": 1},
        ),
        (a_finished_ray_job(deletionStrategy={"deletionRules": [a_rule("DeleteCluster")]}), {}),
        (
            a_finished_ray_job(deletionStrategy={"deletionRules": [["a"], a_rule({"a": 1})]}),
            {"RayJob/web": 3},
        ),
    ],
)
def test_of_a_ray_job_that_has_ended_there_are_the_pods_that_it_leaves(job, pods):
    assert counted(job) == pods


def test_what_an_ended_ray_job_leaves_is_said(file):
    told = notes(
        file, a_finished_ray_job(shutdownAfterJobFinishes=True), a_ray_job() | {"metadata": {"name": "b"}}
    )

    assert "RayJob/web: planned as 0 pods; the job is Complete, nothing of its cluster is left" in told
    assert "RayJob/b: planned as 4 pods" in told


def with_status(manifest, **status):
    return manifest | {"status": status}


def a_condition(name, status="True"):
    return {"conditions": [{"type": name, "status": status}]}


def a_job(**spec):
    return an_object("batch/v1", "Job", template=TEMPLATE, **spec)


@pytest.mark.parametrize(
    ("manifest", "number"),
    [
        (with_status(a_job_set(), **a_condition("Completed")), 0),
        (with_status(a_job_set(), **a_condition("Failed")), 0),
        (with_status(a_job_set(), **a_condition("Failed", "False")), 6),
        (with_status(a_job_set(), replicatedJobsStatus=[{"name": "workers", "succeeded": 1}]), 3),
        (with_status(a_job_set(), replicatedJobsStatus=[{"name": "others", "succeeded": 1}]), 6),
        (with_status(a_job(parallelism=4), **a_condition("SuccessCriteriaMet")), 0),
        (with_status(a_job(parallelism=4), **a_condition("FailureTarget")), 0),
        (with_status(a_job(parallelism=4), **a_condition("Suspended", "False")), 4),
    ],
)
def test_jobs_of_a_dump_have_the_pods_that_are_left(manifest, number):
    assert sum(counted(manifest).values()) == number


@pytest.mark.parametrize(
    ("make", "own"),
    [
        (a_job, "kubernetes.io/job-controller"),
        (
            lambda **spec: an_object("jobset.x-k8s.io/v1alpha2", "JobSet", **a_job_set()["spec"], **spec),
            "jobset.sigs.k8s.io/jobset-controller",
        ),
        (a_ray_job, "ray.io/kuberay-operator"),
    ],
)
def test_of_jobs_that_another_cluster_runs_no_pods_come(file, make, own):
    away = make(managedBy="kueue.x-k8s.io/multikueue")

    assert counted(away) == {}
    assert counted(make(managedBy=own)) == counted(make())
    said = "planned as 0 pods; kueue.x-k8s.io/multikueue runs it elsewhere"
    assert any(said in note for note in notes(file, away))


@pytest.mark.parametrize(
    ("running", "lacking"), [((1000, 4000), [4000, 4000]), ((4000,), [1000, 4000, 4000])]
)
def test_the_pods_that_a_group_lacks_are_those_that_are_not_there(running, lacking):
    """The head of a group is not planned once more where it runs, and neither are its workers."""

    def template(milli):
        return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": f"{milli}m"}}}]}}

    group = a_leader_worker_set(1, 4, leaderTemplate=template(1000), workerTemplate=template(4000))
    pods = [
        {
            **a_running_pod(f"web-{n}", "StatefulSet", "web", **{"leaderworkerset.sigs.k8s.io/name": "web"}),
            "spec": {"nodeName": "there", **template(milli)["spec"]},
        }
        for n, milli in enumerate(running)
    ]
    documents = documents_of("given.yaml", yaml.safe_dump_all([group, *pods]))
    found = read_documents(documents).snapshot.pods.values()

    assert sorted(dict(pod.shape.requests)["cpu"] for pod in found if not pod.node_name) == lacking


@pytest.mark.parametrize("has_cluster", [True, False])
def test_the_pods_of_a_ray_job_that_runs_are_not_made_again(has_cluster):
    job = a_finished_ray_job("Running")
    pods = [a_running_pod(f"web-x2-{name}", "RayCluster", "web-x2") for name in ("head", "worker")]
    cluster = a_ray_cluster(replicas=2) | {"metadata": {"name": "web-x2", "namespace": "shop"}}
    more = [owned_by("RayJob", cluster)] if has_cluster else []

    made = counted(job, *pods, *more)
    assert sum(number for name, number in made.items() if name.startswith("Ray")) == 3


def test_the_pods_of_a_ray_service_that_runs_are_not_made_again():
    service = an_object("ray.io/v1", "RayService", rayClusterConfig=a_ray_cluster(replicas=2)["spec"])
    service["status"] = {"activeServiceStatus": {"rayClusterName": "web-k"}}

    assert sum(counted(service, a_running_pod("web-k-head", "RayCluster", "web-k")).values()) == 3


@pytest.mark.parametrize(
    ("manifest", "numbers"),
    [
        (a_knative_service(), (0, 1, 1)),
        (a_knative_service(min_scale="3"), (3, 3, 3)),
        (a_knative_service(min_scale="3", max_scale="8"), (3, 3, 8)),
        (a_knative_service(minScale="2", maxScale="4"), (2, 2, 4)),
        (a_knative_service(max_scale="0"), (0, 1, 1)),
        (a_knative_service(initial_scale="6", max_scale="5"), (0, 5, 5)),
        (a_scaled_job(), (0, 0, 100)),
        (a_scaled_job(minReplicaCount=2, maxReplicaCount=7), (2, 2, 7)),
        (a_scaled_job({"parallelism": 3, "completions": 2}, maxReplicaCount=5), (0, 0, 10)),
        (a_runner_set(), (0, 0, 0)),
        (a_runner_set(minRunners=4, maxRunners=20), (4, 4, 20)),
    ],
)
def test_what_scales_itself_is_planned_within_its_range(file, manifest, numbers):
    assert tuple(planned(file, manifest, mode=mode) for mode in ("min", "current", "max")) == numbers


def test_the_range_of_what_scales_itself_is_said(file):
    said = notes(
        file, a_knative_service(min_scale="3"), a_scaled_job(minReplicaCount=1), a_runner_set(minRunners=2)
    )

    assert "Service/web: planned as 3 pods, without Knative's container queue-proxy" in said
    assert (
        "Service/web: planned with 3 replicas, of 3 or more (autoscaling.knative.dev without max-scale)"
        in said
    )
    assert "ScaledJob/web: planned with 1 Job, of 1 to 100 (its triggers)" in said
    assert "AutoscalingRunnerSet/web: planned as 2 pods, without its listener" in said
    paused = a_scaled_job(minReplicaCount=1)
    paused["metadata"] = paused["metadata"] | {"annotations": {"autoscaling.keda.sh/paused": "true"}}
    assert "ScaledJob/web: planned as 0 pods; it is paused" in notes(file, paused)


def a_volcano_job(phase="Running"):
    tasks = [{"name": "ps", "template": TEMPLATE}, {"name": "worker", "replicas": 4, "template": TEMPLATE}]
    return with_status(an_object("batch.volcano.sh/v1alpha1", "Job", tasks=tasks), state={"phase": phase})


@pytest.mark.parametrize(
    ("manifest", "number"),
    [
        (a_training_job(), 4),
        (a_training_job("TFJob", "tfReplicaSpecs", {"PS": 2, "Chief": None, "Worker": 5}), 8),
        (a_training_job("MPIJob", "mpiReplicaSpecs", {"Launcher": 1, "Worker": 0}), 1),
        (a_training_job(runPolicy={"suspend": True}), 0),
        (a_training_job(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}), 0),
        (with_status(a_training_job(), **a_condition("Succeeded")), 0),
        (with_status(a_training_job(), **a_condition("Running")), 4),
        (a_volcano_job(), 5),
        (a_volcano_job("Completed"), 0),
    ],
)
def test_jobs_of_roles_have_the_pods_of_each(manifest, number):
    assert sum(counted(manifest).values()) == number


def a_postgres(annotations=None, **spec):
    made = an_object("postgresql.cnpg.io/v1", "Cluster", resources={"requests": {"cpu": "2"}}, **spec)
    return made | {"metadata": made["metadata"] | {"annotations": annotations or {}}}


def an_elasticsearch(*node_sets):
    return an_object("elasticsearch.k8s.elastic.co/v1", "Elasticsearch", nodeSets=list(node_sets))


@pytest.mark.parametrize(
    ("manifest", "requested"),
    [
        (a_postgres(instances=3), {"Cluster/web": [2000] * 3}),
        (a_postgres(), {"Cluster/web": [2000]}),
        (a_postgres({"cnpg.io/hibernation": "on"}, instances=3), {}),
        (
            an_elasticsearch(
                {"name": "data", "count": 2, "podTemplate": TEMPLATE},
                {
                    "name": "ml",
                    "count": 1,
                    "podTemplate": {"spec": {"containers": [a_container("elasticsearch", "3")]}},
                },
            ),
            {"StatefulSet/web-es-data": [1000] * 2, "StatefulSet/web-es-ml": [3000]},
        ),
    ],
)
def test_databases_have_the_pods_of_their_instances(manifest, requested):
    assert cpus(manifest) == requested


def the_pods(manifest):
    return list(read_documents(documents_of("given.yaml", yaml.safe_dump(manifest))).snapshot.pods.values())


@pytest.mark.parametrize(
    ("affinity", "weights"),
    [
        (None, [100]),
        ({"podAntiAffinityType": "required"}, [None]),
        ({"enablePodAntiAffinity": False}, []),
    ],
)
def test_instances_of_postgres_keep_off_each_other(affinity, weights):
    storage = {"storage": {"size": "9Gi", "storageClass": "gp3"}, "walStorage": {"size": "1Gi"}}
    (pod,) = the_pods(a_postgres(affinity=affinity, **storage))

    assert [term.weight for term in pod.shape.anti_affinity] == weights
    assert [name for _, name in pod.shape.ephemeral_volumes] == ["gp3", None]


def test_a_node_of_elasticsearch_requests_memory_by_itself():
    plain, given = (
        {"name": "a", "count": 1, **more}
        for more in (
            {},
            {
                "podTemplate": {
                    "spec": {
                        "containers": [{"name": "elasticsearch", "resources": {"limits": {"memory": "4Gi"}}}]
                    }
                }
            },
        )
    )

    for nodes, gibibytes in ((plain, 2), (given, 4)):
        (pod,) = the_pods(an_elasticsearch(nodes))
        assert dict(pod.shape.requests)["memory"] == gibibytes * 2**30
        assert len(pod.shape.ephemeral_volumes) == 1


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


def test_a_number_that_is_not_given_is_said_where_the_kind_is_not_known(file):
    unknown, rollout = (
        an_object(version, kind, template=TEMPLATE)
        for version, kind in (("example.com/v1", "Widget"), ("argoproj.io/v1alpha1", "Rollout"))
    )
    said = notes(
        file, unknown, rollout, {**unknown, "kind": "Other", "spec": {**unknown["spec"], "replicas": 1}}
    )

    told = "planned as 1 pod; it has no spec.replicas; its operator may create another number"
    assert [note for note in said if "planned as" in note] == [f"Widget/web: {told}"]


def test_what_is_left_out_is_listed_with_the_reason(file):
    widget = an_object("example.com/v1", "Widget")
    service = an_object("v1", "Service")
    said = notes(file, widget, {**widget, "metadata": {"name": "other"}}, service, a_workload())

    assert "ignored: Service (1): they create no pods" in said
    assert (
        "ignored: Widget of example.com (2): it is not known whether they create pods; hint: add the "
        "workloads that their operator creates" in said
    )


def test_strict_refuses_what_may_change_the_plan_and_is_left_out(file):
    widget, quota = an_object("example.com/v1", "Widget"), an_object("v1", "ResourceQuota", "cap")
    pools = (provisioner(), node_template())
    auto_mode = an_object("eks.amazonaws.com/v1", "NodeClass", "auto")
    path = file(*pools, a_workload(), an_object("v1", "Service"), widget, quota, auto_mode)
    result = nodeless(path, "--strict")

    assert result.exit_code == 2
    lines = [line for line in result.stderr.splitlines() if line.startswith(f"{path}:")]
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        "NodeClass/auto",
        "Widget/web",
        "ResourceQuota/cap",
    ]
    assert all(line.removeprefix(f"{path}:").partition(":")[0].isdigit() for line in lines)
    assert "3 objects are ignored; hint:" in result.stderr
    assert nodeless(path).exit_code == 0


CONFIGURING = [
    ("v1", "Service"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("networking.istio.io/v1", "VirtualService"),
    ("cert-manager.io/v1", "Certificate"),
    ("external-secrets.io/v1", "ExternalSecret"),
    ("argoproj.io/v1alpha1", "AnalysisTemplate"),
    ("keda.sh/v1alpha1", "TriggerAuthentication"),
]


def test_strict_takes_objects_of_which_no_pods_come(file):
    others = [an_object(version, kind) for version, kind in CONFIGURING]
    given = file(provisioner(), node_template(), a_workload(), *others)

    assert nodeless(given, "--strict").exit_code == 0
    assert all("not known" not in note for note in notes(file, *others))


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("sparkoperator.k8s.io/v1alpha1", "SparkConnect"),
        ("flinkoperator.k8s.io/v1beta1", "FlinkCluster"),
        ("example.x-k8s.io/v1", "Sandbox"),
    ],
)
def test_of_kinds_of_operators_it_is_not_said_that_no_pods_come(file, version, kind):
    (said,) = [note for note in notes(file, an_object(version, kind)) if note.startswith("ignored")]

    assert said.startswith(
        f"ignored: {kind} of {version.partition('/')[0]} (1): it is not known whether they create pods"
    )
