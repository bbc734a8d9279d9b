"""What is said of capacity buffers, pass after pass."""

import asyncio
import json
from dataclasses import replace

from nodeless.controllers.provisioning.capacity_buffers import Buffers, buffer_status
from nodeless.controllers.provisioning.plan_shares import Share
from nodeless.kube.buffers import decode_buffer
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.plan import Plan
from nodeless.scheduling.pods.buffers import resolution
from nodeless.state import apply
from tests.scheduling.factories import NOW, node, pool
from tests.scheduling.test_capacity_buffers import DEPLOYMENT, TEMPLATE, buffered, planned

CHUNK = replace(TEMPLATE, generation=1)


def a_buffer(status=None, **spec):
    metadata = {"name": "spare", "namespace": "default", "uid": "uid", "generation": 1}
    return decode_buffer(
        json.dumps({"metadata": metadata, "spec": {"replicas": 2, **spec}, "status": status}).encode()
    )


def patched(buffer, source, status=None):
    """The status of a buffer after a pass that found room for it."""
    seen = apply(buffered(node("one"), buffer=buffer, source=CHUNK), events.PodSourceSeen(source))
    found = resolution(seen, buffer)
    patch = buffer_status(seen, buffer, found, Share(["one"] * found.replicas), NOW)
    return {name: value for name, value in ({**(status or {}), **patch}).items() if value is not None}


def test_the_generation_of_a_template_is_told_though_nothing_else_changes():
    spec = {"podTemplateRef": {"name": "chunk"}}
    first = patched(a_buffer(**spec), CHUNK)
    assert first["podTemplateRef"] == {"name": "chunk"}
    assert (first["podTemplateGeneration"], first["replicas"]) == (1, 2)
    assert first["provisioningStrategy"] == "buffer.x-k8s.io/active-capacity"
    again = patched(a_buffer(first, **spec), replace(CHUNK, generation=2), first)
    assert again == {**first, "podTemplateGeneration": 2}
    assert patched(a_buffer(again, **spec), replace(CHUNK, generation=2)) == {}


def test_a_buffer_that_names_a_workload_instead_names_its_template_no_more():
    first = patched(a_buffer(podTemplateRef={"name": "chunk"}), CHUNK)
    workload = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}}
    after = patched(a_buffer(first, **workload), DEPLOYMENT, first)
    assert after["replicas"] == 2
    assert not {"podTemplateRef", "podTemplateGeneration"} & after.keys()


class Client(dict):
    """An API server that has what was written last, by path."""

    async def patch(self, path, body):
        self[path] = body["status"]
        return body


def told(seen, plan, cluster):
    """What a pass has written, by path."""
    client = Client()
    asyncio.run(Buffers(client, cluster).tell(seen, plan))
    return client


def provisioning(written):
    (status,) = written.values()
    return next(each for each in status["conditions"] if each["type"] == "Provisioning")


def test_the_condition_says_why_there_is_no_room_and_none_is_made():
    seen = buffered(
        pool(limits={"cpu": "2"}), buffer=a_buffer(podTemplateRef={"name": "chunk"}), source=CHUNK
    )
    condition = provisioning(told(seen, planned(seen), Cluster()))
    assert condition["reason"] == "RequiresNewCapacity"
    assert condition["message"].startswith("existing nodes have room for 0 of 2; 1 cannot be placed: ")
    assert "limit" in condition["message"]


def test_what_an_earlier_pass_found_stands_while_the_pods_of_a_buffer_are_set_aside():
    seen, cluster = (
        buffered(node("one"), buffer=a_buffer(podTemplateRef={"name": "chunk"}), source=CHUNK),
        Cluster(),
    )
    first = told(seen, planned(seen), cluster)
    assert provisioning(first)["status"] == "True"
    assert set(cluster.snapshot.buffered) == {"one"}
    (status,) = first.values()
    seen = apply(seen, events.CapacityBufferSeen(a_buffer(status, podTemplateRef={"name": "chunk"})))
    assert not told(seen, Plan(placements={"greedy/web-0": "two"}), cluster)
    assert set(cluster.snapshot.buffered) == {"one"}
    gone = apply(seen, events.CapacityBufferGone("default/spare"))
    told(gone, Plan(), cluster)
    assert not cluster.snapshot.buffered
