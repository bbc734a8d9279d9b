"""`nodeless plan`: the pods of Kafka, Spark, Flink, Tekton and databases, by the rules of their operators."""

import pytest
import yaml

from nodeless.cli.manifests.documents import BadManifests, documents_of
from nodeless.cli.manifests.pod_templates import ReplicasMode
from nodeless.cli.manifests.reading import read_documents
from nodeless.cli.manifests.skipped import skipped_lines
from nodeless.model.workloads import workload_of

MIB = 2**20
CPU = {"requests": {"cpu": "1"}}
STEP = {"name": "a", "computeResources": CPU}


def an_object(api_version, kind, spec, *, name="x", labels=None, annotations=None, status=None):
    metadata = {"name": name, "namespace": "shop", "labels": labels or {}, "annotations": annotations or {}}
    more = {} if status is None else {"status": status}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, **more}


def a_kafka(*, replicas=3, name="x", annotations=None, broker=None, **spec):
    broker = {"replicas": replicas, "resources": CPU, **(broker or {})}
    spec = {"kafka": broker, **spec}
    return an_object("kafka.strimzi.io/v1beta2", "Kafka", spec, name=name, annotations=annotations)


def a_node_pool(cluster="x", name="pool", **spec):
    labels = {"strimzi.io/cluster": cluster}
    return an_object(
        "kafka.strimzi.io/v1beta2", "KafkaNodePool", {"replicas": 2, **spec}, name=name, labels=labels
    )


def a_spark(status=None, executor=None, driver=None, **spec):
    spec = {"type": "Scala", "driver": driver or {}, "executor": executor or {}, **spec}
    return an_object("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec, status=status)


def a_flink(job=None, *, slots=None, jobs=None, tasks=None, **spec):
    settings = {} if slots is None else {"flinkConfiguration": {"taskmanager.numberOfTaskSlots": slots}}
    roles = {"jobManager": jobs or {}, "taskManager": tasks or {}}
    spec = {**settings, **roles, **({} if job is None else {"job": job}), **spec}
    return an_object("flink.apache.org/v1beta1", "FlinkDeployment", spec)


def a_task_run(*steps, status=None, task=None, **spec):
    task = {"steps": list(steps or (STEP,)), **(task or {})}
    return an_object("tekton.dev/v1", "TaskRun", {"taskSpec": task, **spec}, status=status)


def read(*manifests, mode="current"):
    text = "---\n".join(map(yaml.safe_dump, manifests))
    return read_documents(documents_of("given.yaml", text), replicas=ReplicasMode(mode))


def pods(*manifests, mode="current"):
    return list(read(*manifests, mode=mode).snapshot.pods.values())


def numbers(*manifests, mode="current"):
    """The number of pods, by what they are of."""
    found = {}
    for pod in pods(*manifests, mode=mode):
        name = workload_of(pod).name
        found[name] = found.get(name, 0) + 1
    return found


def requests(manifest, resource):
    """What the pods request, the least first."""
    return sorted(dict(pod.shape.requests)[resource] for pod in pods(manifest))


def fault(*manifests):
    with pytest.raises(BadManifests) as refused:
        read(*manifests)
    line, *_ = refused.value.faults  # Flink's resources are requests and limits: both are wrong then
    return line.partition(": ")[2]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ([a_kafka()], {"x-kafka": 3}),
        ([a_kafka(annotations={"strimzi.io/node-pools": "enabled"})], {}),
        ([a_kafka(replicas=None)], {}),
        ([a_kafka(), a_node_pool()], {"x-pool": 2}),
        ([a_kafka(), a_node_pool("other")], {"x-kafka": 3, "other-pool": 2}),
        ([a_kafka(replicas=1, zookeeper={"replicas": 5})], {"x-kafka": 1, "x-zookeeper": 5}),
        (
            [a_kafka(annotations={"strimzi.io/kraft": "enabled"}, zookeeper={"replicas": 5})],
            {"x-kafka": 3},
        ),
        ([a_kafka(replicas=1, entityOperator={})], {"x-kafka": 1}),
        ([a_kafka(replicas=1, entityOperator={"userOperator": {}})], {"x-kafka": 1, "x-entity-operator": 1}),
        (
            [a_kafka(replicas=1, cruiseControl={}, kafkaExporter={})],
            {"x-kafka": 1, "x-cruise-control": 1, "x-kafka-exporter": 1},
        ),
        ([an_object("kafka.strimzi.io/v1", "KafkaConnect", {})], {"x-connect": 3}),
        ([an_object("kafka.strimzi.io/v1", "KafkaBridge", {})], {"x-bridge": 1}),
    ],
)
def test_kafka_has_brokers_and_what_helps_them(given, made):
    assert numbers(*given) == made


@pytest.mark.parametrize("pool_first", [True, False])
def test_a_node_pool_has_what_it_leaves_open_from_its_kafka(pool_first):
    rack = {"topologyKey": "topology.kubernetes.io/zone"}
    pod = {"tolerations": [{"key": "team", "operator": "Exists"}]}
    kafka = a_kafka(broker={"rack": rack, "template": {"pod": pod}})
    given = [kafka, a_node_pool(replicas=1)]
    (made,) = pods(*(reversed(given) if pool_first else given))

    assert dict(made.shape.requests)["cpu"] == 1000
    assert [each.key for each in made.shape.tolerations] == ["team"]
    assert [term.topology_key for term in made.shape.anti_affinity] == ["topology.kubernetes.io/zone"]


def test_a_node_pool_of_another_namespace_has_nothing_from_a_kafka():
    pool = a_node_pool(replicas=1, resources={"requests": {"cpu": "3"}})
    pool["metadata"]["namespace"] = "elsewhere"

    assert numbers(a_kafka(), pool) == {"x-kafka": 3, "x-pool": 1}


def test_disks_of_brokers_are_volumes():
    disks = [{"id": 0, "type": "persistent-claim", "class": "gp3"}, {"id": 1, "type": "ephemeral"}]
    (made,) = pods(a_node_pool(replicas=1, storage={"type": "jbod", "volumes": disks}))

    assert [name for _, name in made.shape.ephemeral_volumes] == ["gp3"]


def test_what_is_there_in_a_dump_is_not_made_again():
    """Strimzi's Deployments do not say of what they are, nor do the sets of its pods."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "resources": CPU}]}}
    helper = an_object("apps/v1", "Deployment", {"template": template}, name="x-entity-operator")
    broker = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "x-kafka-0",
            "namespace": "shop",
            "ownerReferences": [
                {
                    "apiVersion": "core.strimzi.io/v1beta2",
                    "kind": "StrimziPodSet",
                    "name": "x-kafka",
                    "uid": "u",
                }
            ],
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "kafka", "resources": CPU}]},
        "status": {"phase": "Running"},
    }
    pod_set = an_object("core.strimzi.io/v1beta2", "StrimziPodSet", {"pods": []}, name="x-kafka")
    given = [a_kafka(entityOperator={"topicOperator": {}}), helper, broker, pod_set]

    assert numbers(*given) == {"x-kafka": 3, "x-entity-operator": 1}
    assert len([pod for pod in pods(*given) if pod.node_name]) == 1


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (
            a_kafka(
                entityOperator={
                    "topicOperator": {},
                    "userOperator": {"resources": {"requests": {"cpu": "1x"}}},
                }
            ),
            "Kafka/x: spec.entityOperator.userOperator.resources.requests.cpu: ",
        ),
        (
            a_kafka(broker={"template": {"pod": {"tolerations": [{"operator": "Exists", "value": "a"}]}}}),
            "Kafka/x: spec.kafka.template.pod.tolerations[0].value: ",
        ),
        (a_node_pool(replicas="3"), "KafkaNodePool/pool: spec.replicas: '3' is not a number of pods"),
        (
            an_object("kafka.strimzi.io/v1", "Kafka", {}),
            "Kafka/x: spec.kafka: is required",
        ),
        (
            a_spark(executor={"memory": "8 lots"}),
            "SparkApplication/x: spec.executor.memory: '8 lots' is not an amount of memory; hint: 512m or 4g",
        ),
        (
            a_spark(dynamicAllocation={"enabled": True, "minExecutors": 3, "maxExecutors": 2}),
            "SparkApplication/x: spec.dynamicAllocation: minExecutors 3 is more than maxExecutors 2",
        ),
        (
            a_spark(sparkConf={"spark.executor.instances": "many"}),
            "SparkApplication/x: spec.sparkConf[\"spark.executor.instances\"]: 'many' is not a number",
        ),
        (
            a_spark(memoryOverheadFactor="some"),
            "SparkApplication/x: spec.memoryOverheadFactor: 'some' is not a number",
        ),
        (
            a_flink({"parallelism": 2}, slots="0"),
            'FlinkDeployment/x: spec.flinkConfiguration["taskmanager.numberOfTaskSlots"]: 0 is too few',
        ),
        (
            a_flink({"parallelism": 2}, tasks={"resource": {"cpu": "2x"}}),
            "FlinkDeployment/x: spec.taskManager.resource.requests.cpu: ",
        ),
        (
            a_task_run(STEP, {"name": "b", "computeResources": {"requests": {"cpu": "1x"}}}),
            "TaskRun/x: spec.taskSpec.steps[1].computeResources.requests.cpu: ",
        ),
    ],
)
def test_a_fault_is_told_with_its_place_in_the_object(manifest, said):
    assert fault(manifest).startswith(said)


@pytest.mark.parametrize(
    ("executor", "more", "mode", "number"),
    [
        ({}, {}, "current", 1),
        ({"instances": 4}, {}, "current", 4),
        ({}, {"sparkConf": {"spark.executor.instances": "6"}}, "max", 6),
        ({}, {"dynamicAllocation": {"enabled": True}}, "current", 0),
        ({"instances": 4}, {"dynamicAllocation": {"enabled": False, "maxExecutors": 9}}, "max", 4),
        ({"instances": 4}, {"dynamicAllocation": {"enabled": True, "maxExecutors": 9}}, "current", 4),
        ({"instances": 4}, {"dynamicAllocation": {"enabled": True, "maxExecutors": 9}}, "max", 9),
        (
            {},
            {"dynamicAllocation": {"enabled": True, "minExecutors": 2, "initialExecutors": 3}},
            "current",
            3,
        ),
        ({}, {"dynamicAllocation": {"enabled": True, "minExecutors": 2, "initialExecutors": 3}}, "min", 2),
    ],
)
def test_a_spark_application_has_a_driver_and_its_executors(executor, more, mode, number):
    assert numbers(a_spark(executor=executor, **more), mode=mode) == {"x": 1 + number}


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED"])
def test_a_spark_application_that_has_ended_or_waits_has_no_pods(state):
    ended = a_spark({"applicationState": {"state": state}})

    assert numbers(ended) == {}
    assert f"SparkApplication/x: planned as 0 pods; it is {state}" in read(ended).assumed
    assert numbers(a_spark(suspend=True)) == {}
    assert numbers(a_spark({"applicationState": {"state": "RUNNING"}})) == {"x": 2}


@pytest.mark.parametrize(
    ("role", "more", "mebibytes"),
    [
        ({}, {}, 1024 + 384),
        ({"memory": "512m"}, {}, 512 + 384),
        ({"memory": "8192"}, {}, 8192 + 819),
        ({"memory": "8G"}, {"type": "Python"}, 8192 + 3276),
        ({"memory": "8g", "memoryOverhead": "1g"}, {"type": "R"}, 9216),
        ({"memory": "8gb"}, {"memoryOverheadFactor": "0.5"}, 8192 + 4096),
        ({}, {"sparkConf": {"spark.driver.memory": "4g", "spark.driver.memoryOverhead": "2048k"}}, 4096 + 2),
    ],
)
def test_a_pod_of_spark_requests_the_heap_and_what_the_process_needs_besides(role, more, mebibytes):
    assert requests(a_spark(driver=role, executor={"instances": 0}, **more), "memory") == [mebibytes * MIB]


def test_a_pod_of_spark_has_the_processor_that_is_asked_for_first():
    executors = {"instances": 1, "cores": 4, "coreRequest": "3500m"}

    assert requests(a_spark(executor=executors), "cpu") == [1000, 3500]
    assert requests(a_spark(executor={"instances": 1, "cores": 4}), "cpu") == [1000, 4000]
    conf = {"spark.kubernetes.executor.request.cores": "2", "spark.driver.cores": "3"}
    assert requests(a_spark(sparkConf=conf), "cpu") == [2000, 3000]


def test_a_pod_of_spark_has_its_template_and_sidecars():
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"disk": "nvme"}}}
    sidecar = {"name": "logs", "resources": {"requests": {"cpu": "100m"}}}
    (driver,) = pods(
        a_spark(
            driver={"template": template, "sidecars": [sidecar]},
            executor={"instances": 0},
            nodeSelector={"team": "data"},
        )
    )

    assert dict(driver.shape.requests)["cpu"] == 1100
    assert driver.labels["a"] == "b"
    assert driver.labels["spark-role"] == "driver"


def test_executors_of_a_dump_are_those_of_their_application():
    """Their driver owns them; a label names the application."""
    executors = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"x-exec-{number}",
                "namespace": "shop",
                "labels": {"sparkoperator.k8s.io/app-name": "x"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "x-driver", "uid": "d", "controller": True}
                ],
            },
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "resources": CPU}]},
            "status": {"phase": "Running"},
        }
        for number in (1, 2)
    ]

    assert len(pods(a_spark(executor={"instances": 3}), *executors)) == 4


@pytest.mark.parametrize(
    ("manifest", "made"),
    [
        (a_flink({"parallelism": 5}, slots=2), {"x": 1 + 3}),
        (a_flink({"parallelism": 5}, slots="5"), {"x": 1 + 1}),
        (a_flink({"parallelism": 5}), {"x": 1 + 5}),
        (a_flink({}, flinkConfiguration={"parallelism.default": "3"}), {"x": 1 + 3}),
        (a_flink({"parallelism": 6}, flinkConfiguration={"taskmanager": {"numberOfTaskSlots": 3}}), {"x": 3}),
        (a_flink({"parallelism": 5}, tasks={"replicas": 7}, jobs={"replicas": 2}), {"x": 9}),
        (a_flink({"parallelism": 5, "state": "suspended"}), {}),
        (a_flink(), {"x": 1}),
        (a_flink(mode="standalone", tasks={"replicas": 2}), {"x": 1, "x-taskmanager": 2}),
        (a_flink(mode="standalone"), {"x": 1, "x-taskmanager": 1}),
    ],
)
def test_flink_has_as_many_task_managers_as_its_job_has_slots_for(manifest, made):
    assert numbers(manifest) == made


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (a_flink(), "its session creates task managers for its jobs"),
        (a_flink({"state": "suspended"}), "its job is suspended"),
        (
            a_flink({"parallelism": 1}, flinkConfiguration={"job.autoscaler.enabled": "true"}),
            "its autoscaler may change the number of task managers",
        ),
    ],
)
def test_it_is_said_where_flink_has_another_number(manifest, said):
    assert any(note.endswith(f"; {said}") for note in read(manifest).assumed)


@pytest.mark.parametrize(
    ("memory", "mebibytes"),
    [(None, 1600), ("2048m", 2048), ("2g", 2048), ("2Gi", 2048), ("2 gb", 2048), (2 * 2**30, 2048)],
)
def test_memory_of_flink_is_in_powers_of_two(memory, mebibytes):
    resource = {} if memory is None else {"resource": {"cpu": 1, "memory": memory}}
    (manager,) = requests(a_flink(jobs=resource), "memory")

    assert manager == mebibytes * MIB


def test_managers_of_flink_have_both_templates_and_keep_other_resources():
    main = {"name": "flink-main-container", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    shared = {"spec": {"nodeSelector": {"team": "data"}, "containers": [{"name": "logs", "resources": CPU}]}}
    tasks = {"podTemplate": {"spec": {"containers": [main]}}, "resource": {"cpu": 2, "memory": "1g"}}
    made = {
        pod.labels["component"]: pod
        for pod in pods(a_flink({"parallelism": 1}, podTemplate=shared, tasks=tasks))
    }

    assert [dict(made[role].shape.requests)["cpu"] for role in ("jobmanager", "taskmanager")] == [2000, 3000]
    assert dict(made["taskmanager"].shape.requests)["nvidia.com/gpu"] == 1
    assert all(dict(pod.shape.node_selector) == {"team": "data"} for pod in made.values())


@pytest.mark.parametrize(
    ("run", "cpus"),
    [
        (a_task_run(STEP, {"name": "b", "computeResources": CPU}), 2000),
        (a_task_run(STEP, {"name": "b"}), 1000),
        (a_task_run({"name": "a", "resources": CPU}), 1000),
        (a_task_run({"name": "a"}, {"name": "b"}, task={"stepTemplate": {"computeResources": CPU}}), 2000),
        (a_task_run(STEP, task={"sidecars": [{"name": "s", "computeResources": CPU}]}), 2000),
        (a_task_run(STEP, {**STEP, "name": "b"}, computeResources={"requests": {"cpu": "3"}}), 3000),
        (
            a_task_run(STEP, stepSpecs=[{"name": "a", "computeResources": {"requests": {"cpu": "7"}}}]),
            7000,
        ),
    ],
)
def test_the_pod_of_a_task_run_has_all_its_steps(run, cpus):
    assert requests(run, "cpu") == [cpus]


@pytest.mark.parametrize(
    ("more", "number"),
    [
        ({"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}, 0),
        ({"status": {"conditions": [{"type": "Succeeded", "status": "False"}]}}, 0),
        ({"status": {"conditions": [{"type": "Succeeded", "status": "Unknown"}]}}, 1),
    ],
)
def test_a_task_run_that_has_ended_has_no_pod(more, number):
    assert len(pods(a_task_run(**more))) == number


def test_a_task_run_has_the_volumes_of_its_workspaces_and_its_template():
    workspaces = [
        {"name": "src", "persistentVolumeClaim": {"claimName": "kept"}},
        {"name": "tmp", "volumeClaimTemplate": {"spec": {"storageClassName": "gp3"}}},
        {"name": "none", "emptyDir": {}},
    ]
    (pod,) = pods(a_task_run(workspaces=workspaces, podTemplate={"nodeSelector": {"team": "ci"}}))

    assert pod.shape.claims == ("kept",)
    assert [name for _, name in pod.shape.ephemeral_volumes] == ["gp3"]
    assert dict(pod.shape.node_selector) == {"team": "ci"}


def test_a_run_of_a_task_of_another_namespace_is_not_planned():
    task = an_object("tekton.dev/v1", "Task", {"steps": [STEP]}, name="build")
    run = an_object("tekton.dev/v1", "TaskRun", {"taskRef": {"name": "build"}})
    assert len(pods(task, run)) == 1

    task["metadata"]["namespace"] = "elsewhere"
    assert pods(task, run) == []


@pytest.mark.parametrize(
    ("manifest", "made", "cpus"),
    [
        (an_object("rabbitmq.com/v1beta1", "RabbitmqCluster", {}), {"x-server": 1}, [1000]),
        (
            an_object("rabbitmq.com/v1beta1", "RabbitmqCluster", {"replicas": 2, "resources": CPU}),
            {"x-server": 2},
            [1000, 1000],
        ),
        (an_object("acid.zalan.do/v1", "postgresql", {"numberOfInstances": 2}), {"x": 2}, [100, 100]),
        (
            an_object(
                "acid.zalan.do/v1",
                "postgresql",
                {"numberOfInstances": 1, "sidecars": [{"name": "s", "resources": CPU}]},
            ),
            {"x": 1},
            [1100],
        ),
    ],
)
def test_brokers_and_databases_have_the_pods_of_their_number(manifest, made, cpus):
    assert numbers(manifest) == made
    assert requests(manifest, "cpu") == cpus


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "said"),
    [
        (
            "psmdb.percona.com/v1",
            "PerconaServerMongoDB",
            {"replsets": [{"size": 3}, {"size": 2}]},
            "their operator makes 5 pods by spec.replsets[].size; hint: add the workloads that it creates",
        ),
        (
            "databases.spotahome.com/v1",
            "RedisFailover",
            {"redis": {"replicas": 3}, "sentinel": {"replicas": 1}},
            "their operator makes 3 pods by spec.redis.replicas, 1 pod by spec.sentinel.replicas; "
            "hint: add the workloads that it creates",
        ),
        (
            "tekton.dev/v1",
            "PipelineRun",
            {},
            "they create one pod for each of their tasks, one after another",
        ),
        (
            "argoproj.io/v1alpha1",
            "Workflow",
            {},
            "they create one pod for each of their steps, one after another",
        ),
        (
            "tekton.dev/v1",
            "TaskRun",
            {"taskRef": {"name": "build"}},
            "each creates a pod, with the steps of a task that is not in the files",
        ),
        (
            "mongodbcommunity.mongodb.com/v1",
            "MongoDBCommunity",
            {"members": "three"},
            "it is not known whether they create pods; hint: add the workloads that their operator creates",
        ),
    ],
)
def test_what_is_known_of_the_pods_of_kinds_that_are_not_read_is_said(api_version, kind, spec, said):
    (skipped,) = read(an_object(api_version, kind, spec)).skipped

    assert skipped.matters
    group = api_version.partition("/")[0]
    assert list(skipped_lines([skipped])) == [f"ignored: {kind} of {group} (1): {said}"]


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("kafka.strimzi.io/v1", "KafkaTopic"),
        ("rabbitmq.com/v1beta1", "Queue"),
        ("tekton.dev/v1", "Pipeline"),
        ("argoproj.io/v1alpha1", "WorkflowTemplate"),
    ],
)
def test_no_pods_come_of_what_configures_operators(api_version, kind):
    (skipped,) = read(an_object(api_version, kind, {})).skipped

    assert (skipped.matters, skipped.reason) == (False, "they create no pods")
