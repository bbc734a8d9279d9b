"""As many provisioning requests and capacity buffers as a pass takes in are planned and answered at once.

Where each of them looks at the whole plan, it takes many minutes: the limit of one is far from both.
"""

import asyncio
from collections import Counter

import pytest

from nodeless.controllers.provisioning.capacity_buffers import Buffers
from nodeless.controllers.provisioning.provisioning_requests import Requests
from nodeless.kube.cluster import Cluster
from nodeless.model import events
from nodeless.model.buffers import CapacityBuffer
from nodeless.model.plan import Plan, Refusal, RefusalCode
from nodeless.operator.timing import Timing
from nodeless.scheduling import Policy, with_placeholders
from nodeless.scheduling.pods.requests import MOST_IN_ALL, Planners, planned_whole
from nodeless.state import apply
from tests.scheduling.factories import NOW
from tests.scheduling.test_provisioning_requests import TEMPLATE, a_request, asked

pytestmark = pytest.mark.timeout(60)
EACH = 2
MANY = [a_request(EACH, name=f"job-{at}", created_at=NOW + at) for at in range(MOST_IN_ALL // EACH)]


class Client(dict):
    """An API server that has what was written last, by path."""

    async def patch(self, path, body):
        self[path] = body
        return body


def refusing(seen):
    return Plan(refusals=tuple(Refusal(key, RefusalCode.NO_POOL_FITS, (), "no") for key in sorted(seen.pods)))


def test_requests_of_which_none_can_be_had_are_all_refused_whole():
    plan = planned_whole(with_placeholders(asked(requests=MANY)), Planners(*[refusing] * 4))
    assert len(plan.refusals) == MOST_IN_ALL
    assert {refusal.code for refusal in plan.refusals} == {RefusalCode.GROUP_INCOMPLETE}


def test_all_requests_of_a_pass_are_answered():
    seen, client = asked(requests=MANY), Client()
    requests = Requests(client, timing=Timing(wall_clock=lambda: NOW))
    placed = [f"{request.key}^{at}" for request in MANY[::2] for at in range(EACH)]
    refused = [Refusal(f"{request.key}^0", RefusalCode.GROUP_INCOMPLETE, (), "no") for request in MANY[1::2]]
    plan = Plan(placements=dict.fromkeys(placed, "on-its-way"), refusals=tuple(refused))
    asyncio.run(requests.tell(seen, plan, Policy()))
    reasons = Counter(
        condition["reason"]
        for body in client.values()
        for condition in body["status"]["conditions"]
        if condition["type"] == "Provisioned"
    )
    half = len(MANY) // 2
    assert reasons == {"CapacityIsBeingLaunched": half, "CapacityIsNotFound": half}


def test_all_buffers_of_a_pass_are_answered():
    seen, client = asked(), Client()
    for at in range(MOST_IN_ALL):
        source = {"source": TEMPLATE.key, "source_kind": TEMPLATE.kind}
        buffer = CapacityBuffer(f"team-{at % 3}", f"spare-{at}", replicas=1, **source)
        seen = apply(seen, events.CapacityBufferSeen(buffer))
    plan = Plan(placements={f"{key}~0": "on-its-way" for key in seen.capacity_buffers})
    asyncio.run(Buffers(client, Cluster()).tell(seen, plan))
    assert len(client) == MOST_IN_ALL
