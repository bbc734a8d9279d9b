"""`nodeless snapshot` and `nodeless replay`: what was decided on a live cluster can be decided again."""

import asyncio
import gzip
import json
import os
import re

import pytest
from typer.testing import CliRunner

from nodeless.cli.live_cluster import live_situation
from nodeless.cli.main import app
from nodeless.explain.decisions import Situation, read, same_plan, write
from nodeless.manager.decision_files import DecisionFiles
from nodeless.scheduling import Policy
from tests.controllers.conftest import clear
from tests.controllers.process import settings
from tests.controllers.world import CLAIMS, a_pod, a_provisioner, a_template
from tests.scheduling.factories import FAMILY, pods, pool, snapshot


def nodeless(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


_ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["nowhere"]}
_TERM = {"weight": 9, "preference": {"matchExpressions": [_ZONE]}}
#: A wish that nobody can grant.
NOWHERE = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_TERM]}}


async def all_refused_by_the_scheduler(rig, namespace, number):
    def unschedulable(snapshot):
        return (
            sum(pod.unschedulable for pod in snapshot.pods.values() if pod.namespace == namespace) == number
        )

    await rig.until(lambda: rig.cluster.snapshot, unschedulable)


@pytest.mark.cluster
def test_the_plan_from_a_snapshot_is_to_the_bit_what_the_live_loop_does(scene, eks, tmp_path):
    decisions = DecisionFiles(tmp_path / "decisions", keep=5)

    async def scenario(rig, namespace):
        await rig.create(settings(namespace), a_template(), a_provisioner())
        sizes = ("300m", "1", "1", "1500m", "700m", "64")
        await rig.create(
            *(a_pod(f"web-{i}", namespace, cpu=size, affinity=NOWHERE) for i, size in enumerate(sizes))
        )
        await all_refused_by_the_scheduler(rig, namespace, len(sizes))
        situation = await live_situation(namespace, "us-east-1", remark=lambda text: None)

        live = asyncio.create_task(rig.provisioning.run())
        rig.tasks.append(live)
        await rig.until(lambda: sorted((tmp_path / "decisions").glob("*.json.gz")))
        saved = read(write(situation, "test"))
        planned = saved.situation.plan()
        claims = await rig.until(
            lambda: rig.api.list(CLAIMS), lambda seen: len(seen) >= len(planned.new_nodes)
        )
        because = claims[0]["metadata"]["annotations"]["nodeless.dev/planned-because"]
        assert re.search(r"cheapest that holds (it|them): m5\.", because)
        assert await rig.event(namespace, "web-5", "FailedScheduling", "\nwould fit: request cpu 3920m")
        told = [(await rig.event(namespace, f"web-{i}", "Nominated"))["message"] for i in range(5)]
        lost = (
            "\nrelaxed: preferred node affinity topology.kubernetes.io/zone In [nowhere] (weight 9): "
            "no pool can make such a node"
        )
        assert all(message.endswith(lost) for message in told)
        assert any("; next: m5.xlarge 0.1942" in message for message in told)
        return planned, claims

    planned, claims = scene(scenario, act=False, record=decisions.record)

    first = min((tmp_path / "decisions").glob("*.json.gz"))
    recorded = nodeless("replay", first)
    assert (recorded.exit_code, recorded.stdout.count("same plan")) == (0, 1), recorded.output
    decided = read(gzip.decompress(first.read_bytes())).plan
    assert same_plan(planned, decided)
    assert len(planned.new_nodes) == len(claims) > 0
    assert [refusal.pod.partition("/")[2] for refusal in planned.refusals] == ["web-5"]


@pytest.mark.cluster
def test_the_command_saves_the_cluster_and_the_catalog(
    control_plane, api, definitions, eks, namespace, monkeypatch, tmp_path
):
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(control_plane.kubeconfig))
    made = [settings(namespace), a_template(), a_provisioner("saved"), a_pod("web", namespace)]
    for document in made:
        api.create(document)
    try:
        result = nodeless("snapshot", "--namespace", namespace, "--region", "us-east-1")
    finally:
        clear(api, namespace)
    assert result.exit_code == 0, result.output
    saved = read(result.stdout.encode())
    assert f"{namespace}/web" in saved.situation.snapshot.pods
    assert {kind.name for kind in saved.situation.catalog["Provisioner/saved"]} == {"m5.large", "m5.xlarge"}
    assert "instance types" in result.stderr


def test_a_cluster_that_cannot_be_reached_is_told_with_exit_code_2(tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "KUBECONFIG", "put back afterwards")
    missing = tmp_path / "missing"
    result = nodeless("snapshot", "--kubeconfig", missing)

    assert result.exit_code == 2
    assert f"nodeless: --kubeconfig {missing}: there is no such file" in result.stderr


def a_situation(now=1_700_000_000.25):
    return Situation(snapshot(pods(3), pool()), {"Provisioner/default": FAMILY}, Policy(), now)


@pytest.fixture
def decision(tmp_path):
    """A recorded decision in a file, and a way to change it."""
    situation = a_situation()
    path = tmp_path / "decision.json"
    path.write_bytes(write(situation, "0.0.1", situation.plan()))

    def changed(**members):
        path.write_text(json.dumps({**json.loads(path.read_text()), **members}))
        return path

    return changed


def test_a_recorded_decision_is_repeated(decision):
    result = nodeless("replay", decision())

    assert result.exit_code == 0, result.output
    assert "same plan: 1 new node" in result.stdout


def test_another_plan_is_shown_as_a_difference_with_exit_code_1(decision):
    result = nodeless("replay", decision(plan={}))

    assert result.exit_code == 1
    assert "another plan" in result.stdout
    assert "+ node of Provisioner/default: " in result.stdout
    assert "recorded by release 0.0.1" in result.stdout


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"format": "other"}, "not a saved situation; hint: make the file with `nodeless snapshot`"),
        ({"version": 99}, "version 99 is not known"),
        ({"snapshot": None}, "snapshot is missing"),
        ({"now": "noon"}, "now: Expected `float`, got `str`"),
        ({"plan": None}, "contains no decision"),
    ],
)
def test_a_file_that_is_no_decision_is_told_with_exit_code_2(decision, members, told):
    path = decision(**members)
    result = nodeless("replay", path)

    assert result.exit_code == 2
    assert f"nodeless: {path}: " in result.stderr
    assert told in result.stderr


def test_only_the_newest_decisions_are_kept(tmp_path):
    files = DecisionFiles(tmp_path / "kept", keep=2)
    written = []
    for second in range(4):
        situation = a_situation(1_700_000_000.0 + second)
        written.append(files.record(situation, situation.plan()))

    assert sorted((tmp_path / "kept").iterdir()) == written[2:]


def test_a_folder_that_cannot_be_written_never_stops_a_pass(tmp_path):
    (tmp_path / "file").write_text("")
    situation = a_situation()

    assert DecisionFiles(tmp_path / "file", keep=2).record(situation, situation.plan()) is None
