"""Shells complete names of objects, out of the files given or of the cluster: real shells and terminals."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from nodeless.explain import what_if
from nodeless.model.events import PodSeen, PoolSeen
from tests.controllers.planning import EXAMPLES, saved_events
from tests.scheduling.factories import pods, pool

_CONTROLS = re.compile(
    r"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\\\)|[()][A-Z0-9]|[=>])|[\r\x08\x00]"
)
PATIENCE = 120
#: How each is started without what the user has set up, and told of the command.
SHELLS = {
    "bash": (("--norc", "--noprofile", "-i"), 'eval "$(_NODELESS_COMPLETE=source_bash nodeless)"'),
    "zsh": (
        ("-f", "-i"),
        'autoload -U compinit; compinit -u -D; eval "$(_NODELESS_COMPLETE=source_zsh nodeless)"',
    ),
}


class Shell:
    """A shell as a person types into it."""

    def __init__(self, end):
        self._end, self._shown = end, ""

    def type(self, text):
        os.write(self._end, text.encode())

    def until(self, text):
        deadline = monotonic() + PATIENCE
        while text not in _CONTROLS.sub("", self._shown):
            ready, _, _ = select.select([self._end], [], [], max(deadline - monotonic(), 0))
            assert ready, f"{text} is not shown, but: {self._shown!r}"
            self._shown += os.read(self._end, 65536).decode(errors="replace")

    def forget(self):
        self._shown = ""


@contextmanager
def shell(name, folder, **more):
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    arguments, set_up = SHELLS[name]
    end, theirs = pty.openpty()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        "PATH": path,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        **more,
    }
    inherited = {
        key: os.environ[key] for key in ("LD_LIBRARY_PATH", "PYTHONPYCACHEPREFIX") if key in os.environ
    }
    process = subprocess.Popen(
        [program, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**inherited, **environment},
        start_new_session=True,
    )
    os.close(theirs)
    opened = Shell(end)
    try:
        # What is told back is not what is typed.
        opened.type(f"{set_up}; echo rea''dy\n")
        opened.until("ready")
        opened.forget()
        yield opened
    finally:
        process.kill()
        process.wait()
        os.close(end)


@pytest.fixture
def cluster(tmp_path):
    several = [*pods(1, name="web", namespace="shop"), *pods(1, name="wiki", namespace="docs")]
    return saved_events(tmp_path, PoolSeen(pool("general")), *map(PodSeen, several))


@pytest.mark.parametrize("name", SHELLS)
def test_names_are_those_of_the_snapshot_given(name, cluster):
    with shell(name, cluster.parent) as opened:
        opened.type(f"nodeless why --snapshot {cluster} provisioner/gen\t")
        opened.until("provisioner/general")
        opened.type("\x15")
        opened.forget()
        opened.type(f"nodeless why --snapshot {cluster} -n docs pod/w\t")
        opened.until("pod/wiki-0")


def test_names_are_those_of_the_files_behind(tmp_path):
    """Bash alone tells what is behind."""
    with shell("bash", tmp_path) as opened:
        line = f"nodeless why deploy/model- {EXAMPLES}"
        opened.type(line + "\x02" * (len(str(EXAMPLES)) + 1) + "\t")
        # What stands behind it is written anew.
        opened.until("server ")


@pytest.mark.parametrize("name", SHELLS)
def test_forms_are_completed(name, tmp_path):
    with shell(name, tmp_path) as opened:
        opened.type("nodeless validate -o sa\t")
        opened.until("-o sarif")


def told_by_fish(line, folder):
    """What fish would offer for a line."""
    program = shutil.which("fish")
    if program is None:
        pytest.skip("fish is not installed")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    told = subprocess.run(
        [
            program,
            "--no-config",
            "-c",
            "_NODELESS_COMPLETE=source_fish nodeless | source; complete -C $argv[1]",
            line,
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(folder)},
    )
    return told.stdout.split()


def test_fish_completes_names_and_forms(cluster):
    for line, offered in (
        (f"nodeless why --snapshot {cluster} provisioner/gen", "provisioner/general"),
        (f"nodeless why --snapshot {cluster} -n docs pod/w", "pod/wiki-0"),
        ("nodeless validate -o sa", "sarif"),
    ):
        assert told_by_fish(line, cluster.parent) == [offered]


def completed(line, folder, **more):
    """What a shell is told for the end of a line, and on stderr."""
    words = line.split(" ")
    ended = subprocess.run(
        [sys.executable, "-m", "nodeless"],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={
            **{key: value for key, value in os.environ.items() if key != "KUBECONFIG"},
            "HOME": str(folder),
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_NODELESS_COMPLETE": "complete_bash",
            **more,
        },
    )
    return ended.stdout.split(), ended.stderr


def test_kinds_are_offered_where_objects_alone_are_named(tmp_path):
    assert completed("nodeless why no", tmp_path) == (["node/", "nodeclaim/", "nodepool/"], "")
    assert completed("nodeless top no", tmp_path) == ([], "")


@pytest.mark.parametrize("command", ["why", "top", "validate", "drift --removed"])
def test_nothing_is_said_where_there_is_no_cluster(command, tmp_path):
    assert completed(f"nodeless {command} nodepool/", tmp_path) == ([], "")
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text("no: kubeconfig")
    assert completed(f"nodeless {command} nodepool/", tmp_path, KUBECONFIG=str(nowhere)) == ([], "")


def test_files_that_cannot_be_read_complete_nothing(tmp_path):
    (tmp_path / "snapshot.json").write_text("{}")
    assert completed("nodeless why --snapshot snapshot.json pod/", tmp_path) == ([], "")


def test_the_only_kind_that_is_begun_is_completed_with_its_names(cluster):
    assert completed("nodeless why --snapshot cluster.json prov", cluster.parent) == (
        ["provisioner/general"],
        "",
    )


PLAN = "nodeless plan --snapshot cluster.json --what-if"


@pytest.mark.parametrize("name", SHELLS)
def test_changes_are_completed_with_what_they_work_on(name, cluster):
    with shell(name, cluster.parent) as opened:
        for begun, whole in (("packing=few", "packing=fewest-nodes"), ("limit=gen", "limit=general")):
            opened.type(f"{PLAN} {begun}\t")
            opened.until(f"--what-if {whole}")
            opened.type("\x15")
            opened.forget()


def test_fish_completes_changes(cluster):
    (cluster.parent / "web.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: server}\n"
    )

    assert told_by_fish(f"{PLAN} without-pool=gen", cluster.parent) == ["without-pool=general"]
    assert told_by_fish("nodeless plan web.yaml --what-if scale=deploy/s", cluster.parent) == [
        "scale=deploy/server"
    ]


@pytest.mark.parametrize(
    ("begun", "offered"),
    [
        ("without-s", ["without-spot"]),
        ("without-p", ["without-pool="]),
        ("sca", ["scale="]),
        ("packing = ", ["fewest-nodes", "lowest-price"]),
        ("packing =", ["fewest-nodes", "lowest-price"]),
        ("packing = few", ["fewest-nodes"]),
        ("without-pool = ", ["general"]),
        ("limit = gen", ["general"]),
        ("without-type = m5.24x", ["m5.24xlarge"]),
        ("without-type = m7gd", ["m7gd.*"]),
        ("only-type = m5.24xlarge,m7gd", ["m5.24xlarge,m7gd.*"]),
        ("price = c5.24", ["c5.24xlarge"]),
        ("scale = d", ["deploy/server"]),
        ("node-fee = ", []),
        ("no-such-change = ", []),
        ("packing = fewest-nodes --what-if without-pool = gen", ["general"]),
        ("limit = general : cpu = 100 --what-if packing = few", ["fewest-nodes"]),
    ],
)
def test_what_bash_parts_is_completed_as_one_word(begun, offered, cluster):
    """Bash parts words at = and :, and wants what comes behind."""
    (cluster.parent / "web.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: server}\n"
    )
    given = "nodeless plan web.yaml" if begun.startswith("scale") else "nodeless plan --snapshot cluster.json"

    found, errors = completed(f"{given} --what-if {begun}", cluster.parent)
    assert (sorted(found), errors) == (offered, "")


def test_manifests_and_folders_are_offered_to_be_added(tmp_path):
    (tmp_path / "shop").mkdir()
    for name in ("shop/web.yaml", "web.json", "notes.txt"):
        (tmp_path / name).write_text("{}")

    assert completed("nodeless plan --what-if add = ", tmp_path) == (["shop/", "web.json"], "")
    assert completed("nodeless plan --what-if add = shop/", tmp_path) == (["shop/web.yaml"], "")
    assert completed("nodeless plan --what-if add = nowhere/", tmp_path) == ([], "")


def test_zones_are_those_of_the_command(tmp_path):
    line = "nodeless plan --zones us-east-1a,us-east-1b --what-if without-zone = us-east-1b"
    assert completed(line, tmp_path) == (["us-east-1b"], "")


def test_every_change_is_completed():
    offered, _ = completed("nodeless plan --what-if ", Path.cwd())
    assert {word.removesuffix("=") for word in offered} == {*what_if.WORDS}


def test_loading_the_client_takes_nothing_of_the_time_that_the_cluster_is_given(tmp_path):
    """On a slow machine loading takes longer than that, and no name would ever be completed."""
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], "
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}], users: [{name: u, user: {}}]}"
    )
    program = """
import asyncio, sys
from nodeless.cli.completion import NODES, object_names
wait_for = asyncio.wait_for
async def timed(awaitable, seconds):
    before = {*sys.modules}
    try:
        return await wait_for(awaitable, seconds)
    finally:
        late = [name for name in sys.modules if name not in before and name.startswith("nodeless")]
        print(seconds, late, file=sys.__stdout__)
asyncio.wait_for = timed
object_names(NODES)(type("Context", (), {"params": {"kubeconfig": sys.argv[1]}}), "node/")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, nowhere], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines() == ["2.0 []"]
