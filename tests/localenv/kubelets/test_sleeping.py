"""What a simulated pod's spec tells of its time: commands that only sleep, hooks that wait."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from localenv.kubelets.objects import Pod
from localenv.kubelets.pods import running_status
from localenv.kubelets.sleeping import pre_stop_seconds, seconds_to_end, slept


def pod(*containers: dict[str, Any], restart: str = "Never") -> Pod:
    return decoded(pod_document(*containers, restart=restart))


def decoded(document: dict[str, Any]) -> Pod:
    """As the watch decodes it."""
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


def pod_document(*containers: dict[str, Any], restart: str = "Never") -> dict[str, Any]:
    return {
        "metadata": {"name": "one"},
        "spec": {
            "containers": [{"name": f"c{n}", **container} for n, container in enumerate(containers)],
            "restartPolicy": restart,
        },
    }


@given(some.integers(0, 10**6), some.sampled_from([("", 1), ("s", 1), ("m", 60), ("h", 3600)]))
def test_a_sleep_is_known_in_any_shell(seconds: int, unit: tuple[str, int]) -> None:
    told = f"{seconds}{unit[0]}"
    wanted = seconds * unit[1]
    assert slept(["sleep", told]) == wanted
    assert slept(["/bin/sh", "-c", f"sleep {told}"]) == wanted
    assert slept(["bash", "-c", f"exec sleep {told};"]) == wanted


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["sleep"],
        ["sleep", "infinity"],
        ["sh", "-c", "sleep 3; serve"],
        ["sh", "-c", "serve"],
        ["serve", "3"],
    ],
)
def test_what_does_more_than_sleep_runs_for_ever(command: list[str]) -> None:
    assert slept(command) is None
    assert seconds_to_end(pod({"command": command})) is None


def test_a_pod_ends_with_its_last_container_unless_it_is_restarted() -> None:
    sleepers = ({"command": ["sleep", "3"]}, {"command": ["sh", "-c"], "args": ["sleep 30"]})
    assert seconds_to_end(pod(*sleepers)) == 30
    assert seconds_to_end(pod(*sleepers, restart="OnFailure")) == 30
    assert seconds_to_end(pod(*sleepers, restart="Always")) is None
    assert seconds_to_end(pod(*sleepers, {"command": ["serve"]})) is None


def test_hooks_run_side_by_side() -> None:
    waits: dict[str, Any] = {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}
    runs: dict[str, Any] = {"lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 7"]}}}}
    asks: dict[str, Any] = {"lifecycle": {"preStop": {"httpGet": {"port": 80}}}}
    assert pre_stop_seconds(pod({}, waits, runs, asks)) == 7
    assert pre_stop_seconds(pod({}, asks)) == 0


@pytest.mark.parametrize("probe", ["httpGet", "tcpSocket", "grpc", "exec"])
@pytest.mark.parametrize("image", ["registry.k8s.io/pause:3.10", "pause", "nginx", "example.com/pauses:1"])
def test_a_container_that_listens_nowhere_never_gets_ready(probe: str, image: str) -> None:
    asked: dict[str, Any] = {"readinessProbe": {probe: {"port": 80} if probe != "exec" else {"command": []}}}
    status = running_status(decoded(pod_document({"image": image, **asked}, {})), "10.0.0.1", "10.0.0.2")
    ready = [container_status["ready"] for container_status in status["containerStatuses"]]
    assert ready == [probe == "exec" or "pauses" in image or image == "nginx", True]
    (told,) = (condition["status"] for condition in status["conditions"] if condition["type"] == "Ready")
    assert told == str(all(ready))
