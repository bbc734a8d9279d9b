"""`nodeless top`: the cluster at a glance, once for a pipe and again and again on a terminal."""

import json
import re
from functools import reduce

import pytest
from typer.testing import CliRunner

from nodeless.cli.commands.top_view import age
from nodeless.cli.main import app
from nodeless.explain.decisions import Situation, write
from nodeless.model.bill import Bill, BillPart, PriceSource
from nodeless.model.events import ClaimSeen, NodeSeen, PodSeen, PoolSeen
from nodeless.model.instance_types import Offering
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, PROVISIONER_NAME, ZONE
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy
from nodeless.state import apply
from nodeless.state.expected import uid_digest
from tests.controllers.planning import EXAMPLES, saved_events
from tests.scheduling.factories import claim, instance_type, node, pods, pool, running


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


def labels_of(type_name):
    return {PROVISIONER_NAME: "default", INSTANCE_TYPE: type_name, ZONE: "z1", CAPACITY_TYPE: "on-demand"}


def test_the_bill_of_the_nodes_is_told_by_part_with_what_is_not_known(tmp_path):
    """Two nodes with a bill each, and one of a type that nobody sells."""
    listed = PriceSource("AWS Price List API", "2026-11-26T10:00:00Z")
    claims = (claim(f"default-{name}", provider_id=f"aws:///z1/i-{name}") for name in ("n1", "n2"))
    bill = Bill(0.1, (BillPart("volumes", 0.002), BillPart("public IPv4", None, "subnets decide")))
    offering = Offering("z1", "on-demand", 0.102, bill=bill, source=listed)
    kinds = {pool().key: (instance_type("large", offerings=(offering,)),)}
    snapshot = reduce(
        apply,
        [
            PoolSeen(pool()),
            *map(ClaimSeen, claims),
            *(NodeSeen(node(name, labels=labels_of("large"))) for name in ("n1", "n2")),
            NodeSeen(node("n3", labels=labels_of("unheard.of"))),
        ],
        Snapshot(),
    )
    file = tmp_path / "snapshot.json"
    file.write_bytes(write(Situation(snapshot, kinds, Policy(node_fee=0.01), 1e9), "test"))

    told = json.loads(top("--snapshot", file, "--json").stdout)
    assert told["parts"] == {"instance": 0.2, "volumes": 0.004, "node fee": 0.02}
    assert told["price"] == pytest.approx(sum(told["parts"].values()))
    assert told["unknown_parts"] == {"instance": 1, "public IPv4": 2}
    printed = top("--snapshot", file).stdout.splitlines()
    assert (
        "by part: instance 0.2000, volumes 0.0040, node fee 0.0200 USD/h; not known: public IPv4 of 2 nodes"
        in printed
    )
    assert (
        "prices: instance by AWS Price List API (2026-11-26T10:00:00Z), node fee by nodeless.nodeFee"
        in printed
    )
    why = CliRunner().invoke(app, ["why", "provisioner/default", "--snapshot", str(file)]).stdout
    assert "  by part: instance 0.2000, volumes 0.0040, node fee 0.0200 USD/h; not known: public IPv4" in why
    why = CliRunner().invoke(app, ["why", "node/n1", "--snapshot", str(file)]).stdout
    assert "bill: 0.1120 = instance 0.1000 + volumes 0.0020 + node fee 0.0100, not known: public IPv4" in why
    assert "prices: instance by AWS Price List API" in why


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
