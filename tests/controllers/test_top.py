"""`nodeless top`: the cluster at a glance, once for a pipe and again and again on a terminal."""

import json
import re

import pytest
from typer.testing import CliRunner

from nodeless.cli.commands.top_view import age
from nodeless.cli.main import app
from nodeless.model.events import ClaimSeen, NodeSeen, PodSeen, PoolSeen
from nodeless.state.expected import uid_digest
from tests.controllers.planning import EXAMPLES, saved_events
from tests.scheduling.factories import claim, node, pods, pool, running


def top(*arguments):
    return CliRunner().invoke(app, ["top", *map(str, arguments)])


@pytest.fixture
def cluster(tmp_path):
    """A node that is half as planned, another one, a claim that starts, and a pod that waits."""
    here, away, waiting = pods(3, "1500m")
    digests = ",".join(uid_digest(pod.uid) for pod in (here, away))
    planned = {"nodeless.dev/planned-pods": digests}
    claims = (
        claim("default-full", annotations=planned, provider_id="aws:///z1/i-n1"),
        claim("default-other", provider_id="aws:///z1/i-n2"),
        claim("default-starts", provider_id="aws:///z1/i-n3"),
    )
    there = [running(here, "n1"), running(away, "n2"), waiting]
    return saved_events(
        tmp_path,
        PoolSeen(pool()),
        *map(ClaimSeen, claims),
        NodeSeen(node("n1")),
        NodeSeen(node("n2")),
        *map(PodSeen, there),
    )


def test_each_node_has_its_fill_price_and_what_holds_it(cluster):
    told = json.loads(top("--snapshot", cluster, "--json").stdout)

    rows = {row["name"]: row for row in told["nodes"]}
    assert set(rows) == {"n1", "n2", "default-starts"}
    assert rows["n1"]["pods"] == 1
    assert rows["n1"]["cpu"] > 0
    assert (rows["n1"]["planned"], rows["n1"]["kept"]) == (2, 1)
    assert rows["default-starts"]["code"] == "Starting"
    assert all(row["code"] for row in rows.values())
    assert told["realized"] == 0.5
    assert told["placed"] + told["launch"]["pods"] == 1
    priced = [row["price"] for row in rows.values() if row["price"] is not None]
    assert told["price"] == pytest.approx(sum(priced))
    assert told["unpriced"] == len(rows) - len(priced)


def test_the_summary_stands_before_the_nodes_and_every_line_is_whole_in_a_pipe(cluster):
    printed = top("--snapshot", cluster).stdout.splitlines()

    assert printed[0].startswith("3 nodes, ")
    assert "50% of the pods run on the node that was launched for them" in printed
    header = next(line for line in printed if line.startswith("NODE"))
    assert re.split(r"\s{2,}", header)[-2:] == ["AS PLANNED", "DISRUPTION"]
    assert any(line.startswith("n1 ") and " 1/2 " in line for line in printed)


def test_pods_that_wait_are_told_with_what_would_be_launched_for_them():
    printed = top(EXAMPLES).stdout

    assert re.search(r"to launch: \d+ nodes? for \d+ pods, \+[\d.,]+ USD/h", printed)
    assert re.search(r"\d+ pods? cannot be placed: see `nodeless plan`", printed)


@pytest.mark.parametrize("key", ["price", "cpu", "memory", "pods", "age", "name"])
def test_nodes_are_sorted_by_what_is_asked_for(cluster, key):
    printed = top("--snapshot", cluster, "--sort", key).stdout.splitlines()
    begin = next(index for index, line in enumerate(printed) if line.startswith("NODE")) + 1
    names = [line.split()[0] for line in printed[begin:] if not line.startswith(" ")]
    rows = {row["name"]: row for row in json.loads(top("--snapshot", cluster, "--json").stdout)["nodes"]}
    values = [rows[name][key] or 0 for name in names]
    assert values == sorted(values, reverse=key != "name")


def test_a_key_that_is_not_known_is_refused(cluster):
    result = top("--snapshot", cluster, "--sort", "color")
    assert result.exit_code == 2
    assert "--sort 'color' is not known; hint: price, cpu" in result.stderr


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (61, "1m1s"),
        (599, "9m59s"),
        (601, "10m"),
        (86400 * 3 + 7200, "3d2h"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds, text):
    assert age(seconds) == text


def names_of(printed):
    return {row["name"] for row in json.loads(printed.stdout)["nodes"]}


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (["node/n2"], {"n2"}),
        (["no/n1", "nodeclaim/default-other"], {"n1", "n2"}),
        (["nodeclaims/default-starts"], {"default-starts"}),
        (["provisioner/default"], {"n1", "n2", "default-starts"}),
        (["provisioner/default", "node/n1"], {"n1", "n2", "default-starts"}),
    ],
)
def test_some_nodes_and_pools_are_shown_alone(cluster, asked, shown):
    assert names_of(top(*asked, "--snapshot", cluster, "--json")) == shown


def test_what_is_about_other_nodes_is_not_counted_with_those_that_are_named(cluster):
    told = json.loads(top("node/n1", "--snapshot", cluster, "--json").stdout)
    assert (told["placed"], told["refused"], told["launch"]["nodes"]) == (0, 0, 0)
    assert top("node/n1", "--snapshot", cluster).stdout.startswith("1 node, 1 pod, ")


def test_a_pool_is_shown_with_what_is_launched_for_it():
    everything, general = top(EXAMPLES, "--json"), top("nodepool/general", EXAMPLES, "--json")
    launched = json.loads(general.stdout)["launch"]
    assert 0 < launched["pods"] < json.loads(everything.stdout)["launch"]["pods"]


def test_a_node_that_is_not_there_is_named_with_those_that_are(cluster):
    result = top("node/n9", "--snapshot", cluster)
    assert result.exit_code == 2
    assert result.stderr == (
        "nodeless: Node/n9: there is no such object; "
        "hint: nodes: default-starts, n1, n2; pools: Provisioner/default\n"
    )


def test_a_file_of_that_name_is_a_file(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "node"
    folder.mkdir()
    (folder / "n1").write_text((EXAMPLES / "pools.yaml").read_text())
    assert names_of(top("node/n1", "--json")) == set()
