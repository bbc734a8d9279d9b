"""What the status of a capacity buffer says, pass after pass."""

import json
from dataclasses import replace

from nodeless.controllers.provisioning.capacity_buffers import buffer_status
from nodeless.kube.buffers import decode_buffer
from nodeless.model import events
from nodeless.scheduling.pods.buffers import resolution
from nodeless.state import apply
from tests.scheduling.factories import NOW
from tests.scheduling.test_capacity_buffers import DEPLOYMENT, TEMPLATE, buffered

CHUNK = replace(TEMPLATE, generation=1)


def a_buffer(status=None, **spec):
    metadata = {"name": "spare", "namespace": "default", "uid": "uid", "generation": 1}
    return decode_buffer(
        json.dumps({"metadata": metadata, "spec": {"replicas": 2, **spec}, "status": status}).encode()
    )


def patched(buffer, source, status=None):
    """The status of a buffer after a pass that found room for it."""
    seen = apply(buffered(buffer=buffer, source=CHUNK), events.PodSourceSeen(source))
    found = resolution(seen, buffer)
    patch = buffer_status(buffer, found, found.replicas, NOW)
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
