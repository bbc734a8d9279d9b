"""`nodeless run` as a process: how it starts, what it says when it cannot, how it ends, who takes over."""

import signal
import socket

import pytest

from localenv.ports import free_port
from nodeless.operator.settings import SETTINGS_NAME
from tests.controllers.process import environment, leads, lease_path, refused, settings
from tests.controllers.world import CLAIMS, NODES, Kubelets, a_pod, a_provisioner, a_template

pytestmark = pytest.mark.cluster
REFUSED = "FailedScheduling"


def test_sigterm_releases_the_lease_and_ends_in_order(replicas, api, namespace):
    process = replicas("first")
    leads(api, namespace, "first")
    api.wait(lambda: "cluster state is in sync" in process.log.read_text(), what="the watches")
    process.terminate()
    assert process.wait(timeout=120) == 0
    assert api.get(lease_path(namespace))["spec"].get("holderIdentity", "") == ""
    log = process.log.read_text()
    assert "stopping" in log
    for noise in ("Traceback", "Task was destroyed", "never retrieved", "Unclosed"):
        assert noise not in log


def test_a_follower_ends_in_order_too(replicas, api, namespace):
    replicas("first")
    leads(api, namespace, "first")
    follower = replicas("second")
    api.wait(lambda: "waiting for leadership" in follower.log.read_text(), what="the follower")
    follower.send_signal(signal.SIGINT)
    assert follower.wait(timeout=120) == 0
    assert api.get(lease_path(namespace))["spec"]["holderIdentity"] == "first"


def test_events_that_wait_when_the_process_is_ended_are_written_also_after_a_second_signal(
    replicas, api, namespace
):
    process = replicas("first", KUBE_CLIENT_QPS="1", KUBE_CLIENT_BURST="20")
    leads(api, namespace, "first")
    names = {f"web-{number}" for number in range(60)}
    for name in names:
        api.create(a_pod(name, namespace))

    def told():
        events = api.list(f"/api/v1/namespaces/{namespace}/events")
        return {
            each["involvedObject"]["name"]
            for each in events
            if each["reason"] == REFUSED and each["source"].get("component") == "karpenter"
        }

    def refused():
        return process.log.read_text().count("no capacity for pod") >= len(names)

    api.wait(refused, timeout=90, what="every pod to be refused")
    assert told() < names
    process.terminate()
    process.terminate()
    assert process.wait(timeout=120) == 0
    assert told() == names
    log = process.log.read_text()
    assert "not written" not in log and "could not be written" not in log
    assert "Traceback" not in log
    assert api.get(lease_path(namespace))["spec"].get("holderIdentity", "") == ""


def test_a_replica_that_loses_the_lease_ends_at_once_with_one_line(replicas, api, namespace):
    process = replicas("first")
    leads(api, namespace, "first")
    api.wait(lambda: "cluster state is in sync" in process.log.read_text(), what="the watches")
    api.patch(lease_path(namespace), {"spec": {"holderIdentity": "thief"}})
    assert process.wait(timeout=120) == 2
    assert process.log.read_text().splitlines()[-1] == (
        "nodeless: lost the lease; exiting so that only one replica acts"
    )
    assert api.get(lease_path(namespace))["spec"]["holderIdentity"] == "thief"


def test_a_leader_killed_between_the_fleet_request_and_its_record_is_succeeded_without_a_second_node(
    replicas, api, aws, network, namespace
):
    first = replicas("first")
    leads(api, namespace, "first")
    second = replicas("second")
    aws.set_faults(delay={"CreateFleet": 30.0})
    for document in (a_template(), a_provisioner(), a_pod("web", namespace)):
        api.create(document)
    (launched,) = api.wait(network.instances, timeout=40, what="an instance")
    (claim,) = api.list(CLAIMS)
    assert not claim.get("status", {}).get("providerID")
    first.kill()
    aws.set_faults()
    # The dead leader's lease is shortened, so that the test need not wait its fifteen seconds.
    api.patch(lease_path(namespace), {"spec": {"leaseDurationSeconds": 1}})
    leads(api, namespace, "second")
    kubelets = Kubelets(api, network)

    def running():
        kubelets.turn()
        return api.get(f"/api/v1/namespaces/{namespace}/pods/web")["status"].get("phase") == "Running"

    api.wait(running, timeout=40, what="the pod to run")
    (recorded,) = api.list(CLAIMS)
    assert recorded["metadata"]["uid"] == claim["metadata"]["uid"]
    assert recorded["status"]["providerID"].endswith(launched)
    every = network.instances("pending", "running", "stopping", "stopped", "shutting-down", "terminated")
    assert list(every) == [launched]
    assert len(api.list(NODES)) == 1
    assert second.poll() is None


def test_a_taken_port_is_named(control_plane, aws, namespace):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = refused(environment(control_plane, aws, namespace, METRICS_PORT=port))
    assert f"cannot serve metrics on 127.0.0.1:{port}" in line
    assert "hint:" in line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no way to the cluster"),
        ("", "no way to the cluster"),
        ("clusters: [", "no way to the cluster"),
        ("- a\n- b\n", "no way to the cluster"),
        (
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n",
            "http://127.0.0.1:1",
        ),
    ],
    ids=["missing", "empty", "broken", "no mapping", "unreachable"],
)
def test_a_kubeconfig_that_leads_nowhere_is_named(control_plane, aws, namespace, tmp_path, content, said):
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    line = refused(environment(control_plane, aws, namespace, KUBECONFIG=str(file)))
    assert said in line


def test_without_kubeconfig_outside_a_pod_the_line_says_what_to_set(control_plane, aws, namespace):
    env = environment(control_plane, aws, namespace)
    del env["KUBECONFIG"]
    env.pop("KUBERNETES_SERVICE_HOST", None)
    assert "set KUBECONFIG" in refused(env)


def test_flags_that_cannot_be_used_are_named_all_at_once(control_plane, aws, namespace, api):
    api.create(settings(namespace))
    bad = {"BATCH_MAX_DURATION": "soon", "VM_MEMORY_OVERHEAD_PERCENT": "much"}
    line = refused(environment(control_plane, aws, namespace, **bad))
    assert "BATCH_MAX_DURATION" in line
    assert "VM_MEMORY_OVERHEAD_PERCENT" in line


def test_settings_that_cannot_be_used_keep_no_process_from_leading(replicas, api, namespace):
    config_map = f"/api/v1/namespaces/{namespace}/configmaps/{SETTINGS_NAME}"
    api.patch(config_map, {"data": {"batchMaxDuration": "soon"}})
    process = replicas("first")
    leads(api, namespace, "first")
    api.wait(
        lambda: "InvalidSetting" in {each["reason"] for each in api.events(namespace, SETTINGS_NAME)},
        what="the event",
    )
    assert "batchMaxDuration='soon'" in process.log.read_text()
    assert process.poll() is None


def test_a_server_older_than_the_oldest_asked_for_is_refused(control_plane, aws, namespace, api):
    api.create(settings(namespace))
    ports = {"DISABLE_WEBHOOK": "false", "WEBHOOK_PORT": str(free_port())}
    line = refused(environment(control_plane, aws, namespace, KUBERNETES_MIN_VERSION="1.99.0-0", **ports))
    assert "KUBERNETES_MIN_VERSION requires 1.99.0 or later" in line
    line = refused(environment(control_plane, aws, namespace, KUBERNETES_MIN_VERSION="latest", **ports))
    assert "KUBERNETES_MIN_VERSION" in line
    assert "is not a version" in line
