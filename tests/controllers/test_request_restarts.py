"""A leader is killed while room is booked, and after that: the next one goes on from the conditions."""

import pytest

from localenv.kubernetes import is_established
from localenv.kueue import provisioning_request_definition
from localenv.progress import silent
from nodeless.api.times import format_time, parse_time
from tests.controllers.buffers import a_pod_template
from tests.controllers.process import leads, lease_path
from tests.controllers.requests import CHECK, DEFINITION, GROUP, a_request
from tests.controllers.world import CLAIMS, Kubelets, a_provisioner, a_template

pytestmark = pytest.mark.cluster
EVERY = ("pending", "running", "stopping", "stopped", "shutting-down", "terminated")


class Requests:
    """A cluster with the definition, its kubelets, and replicas with the gate on."""

    def __init__(self, api, network, namespace, replicas):
        self.api, self.network, self.namespace = api, network, namespace
        self.path = f"/apis/{GROUP}/v1/namespaces/{namespace}/provisioningrequests/job"
        self._replicas, self._kubelets = replicas, Kubelets(api, network)

    def lead(self, identity):
        process = self._replicas(identity, FEATURE_GATES="ProvisioningRequest=true")
        leads(self.api, self.namespace, identity)
        return process

    def kill(self, process):
        process.kill()
        process.wait(timeout=120)
        # The dead leader's lease is shortened, so that the test need not wait its fifteen seconds.
        self.api.patch(lease_path(self.namespace), {"spec": {"leaseDurationSeconds": 1}})

    def until(self, condition, what):
        def seen():
            self._kubelets.turn()
            return condition()

        return self.api.wait(seen, timeout=90, what=what)

    def condition(self, type_):
        given = self.api.get(self.path).get("status", {}).get("conditions") or []
        return next((each for each in given if (each["type"], each["status"]) == (type_, "True")), None)

    def passes(self, identity):
        """Wait until a leader has planned: it answers a check for which there is no room."""
        name = f"check-{identity}"
        once = {"noRetry": "true"}
        self.api.create(a_request(self.namespace, name, count=500, class_name=CHECK, parameters=once))
        path = self.path.removesuffix("job") + name
        self.until(lambda: "status" in self.api.get(path), f"a pass of {identity}")

    def age(self, type_, seconds):
        """Have a condition be so much older."""
        status = self.api.get(self.path)["status"]
        for each in status["conditions"]:
            if each["type"] == type_:
                each["lastTransitionTime"] = format_time(parse_time(each["lastTransitionTime"]) - seconds)
        self.api.patch(self.path, {"status": status}, subresource="status")


@pytest.fixture
def world(api, network, namespace, replicas):
    api.apply(provisioning_request_definition(silent))
    api.wait(DEFINITION, is_established)
    yield Requests(api, network, namespace, replicas)
    api.delete(DEFINITION, missing_ok=True)
    api.wait_gone(DEFINITION)


def test_booked_room_outlives_its_controller_and_ends_on_time_by_the_next_one(world, api, namespace):
    pool = a_provisioner(ttlSecondsAfterEmpty=1)
    first = world.lead("first")
    for document in (a_template(), pool, a_pod_template(namespace), a_request(namespace)):
        api.create(document)
    booked = world.until(lambda: world.condition("Provisioned"), "the room to be booked")
    (claim,) = api.list(CLAIMS)
    world.kill(first)

    # While it is booked: another leader keeps the node though it is empty, and buys no second one.
    second = world.lead("second")
    world.passes("second")
    assert [each["metadata"]["uid"] for each in api.list(CLAIMS)] == [claim["metadata"]["uid"]]
    assert world.condition("Provisioned") == booked
    assert world.condition("BookingExpired") is None
    world.kill(second)

    # The booking's time passes while nobody leads.
    world.age("Provisioned", 601)
    third = world.lead("third")
    world.until(lambda: world.condition("BookingExpired"), "the booking to end")
    world.until(lambda: not api.list(CLAIMS), "the empty node to end")
    world.kill(third)

    # Once it is over, nobody launches for it again.
    world.lead("fourth")
    world.passes("fourth")
    assert not api.list(CLAIMS)
    assert len(world.network.instances(*EVERY)) == 1
