"""`nodeless plan` and `nodeless why`, run as a user runs them, and what they are run on."""

import json
from functools import reduce
from pathlib import Path

from typer.testing import CliRunner

from nodeless import __version__
from nodeless.cli.main import app
from nodeless.explain.decisions import Situation, write
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy
from nodeless.state import apply
from tests.scheduling.factories import FAMILY

EXAMPLES = Path(__file__).parents[2] / "examples" / "plan"


def nodeless(*arguments, stdin=""):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)], input=stdin)


def report(*arguments, stdin=""):
    return json.loads(nodeless(*arguments, "--json", stdin=stdin).stdout)


def a_workload(kind="Deployment", name="web", cpu="1", namespace="shop", **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    pod = {"containers": [container], **spec.pop("pod", {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    body = {"template": template, **spec}
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": body}}
    group = "batch/v1" if kind.endswith("Job") else "apps/v1"
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": body,
    }


def types_of(made):
    return {launch["instance_type"] for launch in made["launches"] for _ in range(launch["count"])}


def nodes_of(made):
    return sum(launch["count"] for launch in made["launches"])


SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpenter-global-settings"}}


def pods_of(made, name):
    return sum(each["pods"] for each in made["landings"] if each["workload"]["name"] == name)


def uses(made, member, value):
    return any(value in launch[member] for launch in made["launches"])


def why(*arguments):
    return CliRunner().invoke(app, ["why", *map(str, arguments)])


def saved_events(folder, *events):
    """A snapshot file of what these events add up to, as watches would tell them."""
    seen = reduce(apply, events, Snapshot())
    path = folder / "cluster.json"
    path.write_bytes(write(Situation(seen, dict.fromkeys(seen.pools, FAMILY), Policy(), 0.0), __version__))
    return path
