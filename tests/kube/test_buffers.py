"""Capacity buffers and what they name, as the API server has them."""

import json

from nodeless.kube.buffers import decode_buffer, watched_buffers
from nodeless.model import events
from nodeless.model.labels import GANG_SIZE, LOST_WORK

CONTAINERS = [{"name": "c", "resources": {"requests": {"cpu": "250m"}}}]
SAID = {LOST_WORK: "10h", GANG_SIZE: "8"}
ANNOTATIONS = {**SAID, "karpenter.sh/do-not-disrupt": "true"}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}, "annotations": ANNOTATIONS},
    "spec": {"containers": CONTAINERS},
}


def a_buffer(**spec):
    metadata = {"name": "spare", "namespace": "shop", "uid": "u", "generation": 3}
    return decode_buffer(json.dumps({"metadata": metadata, "spec": spec}).encode())


def seen(kind, document):
    watched = next(each for each in watched_buffers() if each.name == kind)
    key, (event,) = watched.decode(json.dumps(document).encode())
    assert isinstance(event, events.PodSourceSeen)
    assert key == event.source.key
    return event.source


def test_a_buffer_names_a_pod_template_or_a_workload_of_its_namespace():
    assert a_buffer(podTemplateRef={"name": "chunk"}, replicas=2).source == "PodTemplate/shop/chunk"
    workload = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    buffer = a_buffer(scalableRef=workload, percentage=20, limits={"cpu": "2", "memory": "1Gi"})
    assert (buffer.source, buffer.percentage, buffer.replicas) == ("Deployment/shop/web", 20, None)
    assert buffer.limits == {"cpu": 2000, "memory": 2**30}


def test_a_workload_of_another_group_is_kept_by_name_only():
    buffer = a_buffer(scalableRef={"apiGroup": "argoproj.io", "kind": "Rollout", "name": "web"})
    assert (buffer.source, buffer.source_kind) == ("", "Rollout.argoproj.io")


def test_templates_and_workloads_tell_the_shape_of_their_pods():
    metadata = {"name": "web", "namespace": "shop", "generation": 7}
    template = seen("podtemplates", {"metadata": metadata, "template": TEMPLATE})
    assert dict(template.shape.requests) == {"cpu": 250, "pods": 1}
    assert (template.generation, template.labels) == (7, {"app": "web"})
    assert template.annotations == SAID
    spec = {"replicas": 4, "selector": {}, "template": TEMPLATE}
    for name, kind in (
        ("deployments", "Deployment"),
        ("statefulsets", "StatefulSet"),
        ("replicasets", "ReplicaSet"),
    ):
        workload = seen(name, {"metadata": metadata, "spec": spec})
        assert (workload.key, workload.replicas) == (f"{kind}/shop/web", 4)
        assert workload.shape is template.shape
