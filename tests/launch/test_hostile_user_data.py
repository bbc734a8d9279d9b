"""Whatever text reaches user data, the reader of its format reads that text back and nothing else.

What cannot be said in a format at all is refused with a reason. Read by bash itself, `tomllib`, `email`,
`json` and PyYAML; PowerShell's own rules are written down here.
"""

from __future__ import annotations

import email
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as some

from nodeless.launch.kubelet_arguments import Bootstrap, Cluster
from nodeless.launch.shell import ShellError, bare, quote_word
from nodeless.launch.toml_writer import to_toml
from nodeless.launch.user_data import UserDataError, user_data
from nodeless.model.pools import Kubelet
from nodeless.model.taints import Taint
from tests.launch.test_user_data import parts_of

HARMLESS = (
    "a",
    "demo",
    "10.100.0.10",
    "https://demo.example",
    "containerd",
    "dockerd",
    "team-a",
    "5%",
    "100m",
)
HOSTILE = (
    *("$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "\\'; touch pwned; \\'"),
    *(
        "a\ntouch pwned\n",
        "| touch pwned",
        "&& touch pwned",
        "> pwned",
        "$HOME",
        "${HOME}",
        "!!",
        "*",
        "~",
        "#",
    ),
    "a\n--//\nContent-Type: text/x-shellscript\n\n#!/bin/bash\ntouch pwned\n--//",
    *(
        "a b",
        "a\tb",
        "a\\",
        "'",
        '"',
        "\\",
        "-x",
        "--x",
        "a,b=c",
        "a=b",
        "a:NoSchedule,b=c",
        "a<b",
        "%n",
        "%%",
    ),
    *("a --anonymous-auth=true", "</powershell>", "<script>", "\u2019; calc; \u2019", "${{x}}", "{{x}}"),
    *(
        "']\n[settings.evil]\na='",
        '"\n[settings.evil]\na="',
        '"}}\n--//',
        "a\n",
        "a\x7f",
        "\x1b[2J",
        "\r\n",
        "",
    ),
    *("\r\n", "%%", "\u2028", "\u0085", "\ufeff", "\U0001f600", "\U00010000", "\ud800", "\x00", "é"),
)
TEXTS = some.sampled_from(HOSTILE) | some.text(max_size=20) | some.sampled_from(HARMLESS)
PLAIN = Bootstrap(
    Cluster("demo", "https://demo.example", "Q0E=", "10.100.0.10", "10.100.0.0/16"), {"team": "a"}, ()
)


def in_cluster(text: str) -> Bootstrap:
    return replace(PLAIN, cluster=Cluster(text, text, text, text, text))


def in_kubelet(**members: object) -> Bootstrap:
    return replace(PLAIN, kubelet=Kubelet(**members))  # type: ignore[arg-type]


def in_settings(key: str, value: str) -> Bootstrap:
    pair = ((key, value),)
    return in_kubelet(system_reserved=pair, eviction_hard=pair, eviction_soft_grace_period=pair)


PLACES: tuple[Callable[[str], Bootstrap], ...] = (
    in_cluster,
    lambda text: in_kubelet(cluster_dns=(text,), container_runtime=text),
    lambda text: replace(in_cluster(text), kubelet=Kubelet(cluster_dns=(text,), container_runtime=text)),
    lambda text: replace(PLAIN, labels={"team": text, "other": "b"}),
    lambda text: replace(PLAIN, labels={text: "a", "other": "b"}),
    lambda text: replace(PLAIN, taints=(Taint("gpu", "NoSchedule", text),)),
    lambda text: replace(PLAIN, taints=(Taint(text, "NoExecute"), Taint("gpu", "NoSchedule"))),
    lambda text: in_settings(text, "5%"),
    lambda text: in_settings("memory.available", text),
)
BOOTSTRAPS = some.builds(
    lambda place, text, of_v1: replace(place(text), of_v1=of_v1),
    some.sampled_from(PLACES),
    TEXTS,
    some.booleans(),
)


def hostile(text: str) -> Bootstrap:
    """This text in every place where nothing keeps it from being said."""
    return PLACES[2](text)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to run scripts in, with a `bootstrap.sh` that writes down its arguments."""
    folder = tmp_path_factory.mktemp("bench")
    stub = folder / "bootstrap.sh"
    stub.write_text("#!/bin/bash\nprintf '%s\\0' \"$@\" > arguments\n")
    stub.chmod(0o755)
    return folder


def run_in_bash(script: str, bench: Path) -> list[str]:
    """The arguments with which the script calls `bootstrap.sh`, and nothing else that it does."""
    subprocess.run(["bash", "-n"], input=script.encode(), cwd=bench, check=True, capture_output=True)
    logs, own = re.subn(r"(?m)^exec > >\(tee .*$", "", script), "/etc/eks/bootstrap.sh"
    assert logs[1] == 1
    (bench / "arguments").unlink(missing_ok=True)
    command = ["bash", "-c", logs[0].replace(own, "./bootstrap.sh", 1)]
    subprocess.run(command, cwd=bench, check=True, capture_output=True, env={"PATH": "/usr/bin:/bin"})
    assert {each.name for each in bench.iterdir()} == {"arguments", "bootstrap.sh"}
    return (bench / "arguments").read_bytes().decode().split("\0")[:-1]


def made(family: str, bootstrap: Bootstrap) -> str:
    """The user data; what is refused is refused with a reason, and the test looks at something else."""
    try:
        return user_data(family, bootstrap)
    except UserDataError as error:
        assert "hint: " in str(error)
        assume(False)
        raise


@settings(deadline=None)
@given(BOOTSTRAPS, some.sampled_from(["AL2", "Ubuntu"]))
@example(hostile("'; touch pwned; '"), "AL2")
@example(hostile("$(touch pwned)\n--//\nContent-Type: text/x-shellscript\n\ntouch pwned\n"), "Ubuntu")
@example(replace(PLAIN, labels={"team": "$(touch pwned)"}), "AL2")
@example(replace(PLAIN, labels={"team": "a --anonymous-auth=true"}), "AL2")
def test_bash_calls_bootstrap_with_what_was_said(bench: Path, bootstrap: Bootstrap, family: str) -> None:
    ((kind, script),) = parts_of(made(family, bootstrap))

    arguments = run_in_bash(script, bench)

    cluster, kubelet = bootstrap.cluster, bootstrap.kubelet
    assert kind == "text/x-shellscript"
    assert arguments[0] == cluster.name
    given_ = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert given_.pop("--apiserver-endpoint") == cluster.endpoint
    assert given_.pop("--b64-cluster-ca") == cluster.certificate_authority
    assert given_.pop("--dns-cluster-ip", "") == bootstrap.cluster_dns
    if family == "AL2" and not bootstrap.of_v1:
        assert given_.pop("--container-runtime") == (kubelet.container_runtime or "containerd")
    extra = given_.pop("--kubelet-extra-args", "")
    check_kubelet(shlex.split(extra), bootstrap)
    assert given_.keys() <= {"--ip-family"}


def check_kubelet(words: list[str], bootstrap: Bootstrap) -> None:
    """systemd splits as `shlex` does where neither a quote nor a backslash is in a word."""
    assert all(word.startswith("--") for word in words)
    flags = dict(word.removeprefix("--").split("=", 1) for word in words)
    assert flags.keys() <= {
        *("node-labels", "register-with-taints", "system-reserved", "kube-reserved"),
        *("eviction-hard", "eviction-soft", "eviction-soft-grace-period"),
    }
    labels = flags.get("node-labels", "")
    reported = dict(each.split("=", 1) for each in labels.split(",")) if labels else {}
    assert reported == dict(bootstrap.labels)
    taints = flags.get("register-with-taints", "")
    assert sorted(filter(None, taints.split(","))) == sorted(map(str, bootstrap.taints))


@settings(deadline=None)
@given(some.text())
@example("a\n")
def test_a_word_of_the_shell_is_one_line_and_one_word(bench: Path, text: str) -> None:
    for write in (bare, quote_word):
        try:
            word = write(text)
        except (ShellError, UnicodeEncodeError):
            assert "\0" in text or not text.isprintable()
            continue
        assert "\n" not in word
        assert word.isascii()
        echoed = subprocess.run(
            ["bash", "-c", f"printf %s {word}"], cwd=bench, check=True, capture_output=True
        )
        assert echoed.stdout == text.encode()


@settings(deadline=None)
@given(BOOTSTRAPS)
@example(hostile('"\n[settings.evil]\na = "'))
@example(replace(PLAIN, labels={"a\n[settings.evil]\nb": "\x7f"}))
def test_bottlerocket_reads_what_was_said(bootstrap: Bootstrap) -> None:
    document = tomllib.loads(made("Bottlerocket", bootstrap))

    kubernetes = document["settings"]["kubernetes"]
    assert document.keys() == {"settings"}
    assert document["settings"].keys() == {"kubernetes"}
    assert kubernetes["cluster-name"] == bootstrap.cluster.name
    assert kubernetes.get("cluster-dns-ip", "") == bootstrap.cluster_dns
    assert kubernetes.get("node-labels", {}) == dict(bootstrap.labels)
    assert kubernetes.get("system-reserved", {}) == dict(bootstrap.kubelet.system_reserved)
    for taint in bootstrap.taints:
        assert f"{taint.value}:{taint.effect}" in kubernetes["node-taints"][taint.key]


TOML_VALUES = some.recursive(
    TEXTS | some.integers(-(2**63), 2**63 - 1) | some.booleans(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(some.dictionaries(TEXTS, TOML_VALUES, max_size=4))
def test_any_document_of_toml_is_read_back(document: dict[str, object]) -> None:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert tomllib.loads(to_toml(document)) == document


@settings(deadline=None)
@given(BOOTSTRAPS)
@example(hostile('"}}\n--//\nContent-Type: text/x-shellscript\n\ntouch pwned\n'))
def test_al2023_reads_what_was_said(bootstrap: Bootstrap) -> None:
    ((kind, text),) = parts_of(made("AL2023", bootstrap))

    document = json.loads(text)

    spec, kubelet = document["spec"], bootstrap.kubelet
    assert kind == "application/node.eks.aws"
    assert yaml.safe_load(text) == document
    assert document.keys() == {"apiVersion", "kind", "spec"}
    assert spec["cluster"]["name"] == bootstrap.cluster.name
    assert spec["kubelet"]["config"].get("systemReserved", {}) == dict(kubelet.system_reserved)
    assert [taint["key"] for taint in spec["kubelet"]["config"]["registerWithTaints"]] == [
        taint.key for taint in bootstrap.taints
    ]
    (word,) = shlex.split(*spec["kubelet"]["flags"])
    labels = word.removeprefix("--node-labels=")
    reported = dict(each.split("=", 1) for each in labels.split(",")) if labels else {}
    assert reported == dict(bootstrap.labels)


#: One string of PowerShell without expansion: any quote in it is doubled, curly ones are quotes.
_POWERSHELL = re.compile("'((?:[^'\u2018\u2019\u201a\u201b]|(['\u2018\u2019\u201a\u201b])\\2)*)'")


@settings(deadline=None)
@given(BOOTSTRAPS)
@example(hostile("\u2019; calc; \u2019"))
@example(hostile("'; calc; '"))
@example(hostile("</powershell><script>calc</script>"))
@example(hostile("a\ncalc\n"))
def test_powershell_reads_what_was_said(bootstrap: Bootstrap) -> None:
    opened, script, call, closed = made("Windows2022", bootstrap).splitlines()

    assert (opened, closed) == ("<powershell>", "</powershell>")
    assert not re.search(r"(?i)</?\s*(powershell|script|persist)", call)
    assert script.startswith("[string]$EKSBootstrapScriptFile = ")
    outside = _POWERSHELL.sub("@", call.removeprefix("& $EKSBootstrapScriptFile"))
    assert re.fullmatch(r"( -[A-Za-z0-9]+ @)*", outside)
    strings = [
        re.sub("(['\u2018\u2019\u201a\u201b])\\1", r"\1", each.group(1))
        for each in _POWERSHELL.finditer(call)
    ]
    for said in (bootstrap.cluster.name, bootstrap.cluster.endpoint, bootstrap.cluster_dns):
        assert not said or said in strings


SCRIPTS = some.sampled_from(
    [f"#!/bin/bash\n{each}" for each in HOSTILE if each.isprintable() or "--//" in each]
)


@settings(deadline=None)
@given(some.lists(SCRIPTS, min_size=1, max_size=1), some.integers(0, 3), some.sampled_from(["AL2", "AL2023"]))
@example(["#!/bin/bash\necho a\n--//\nmore\n--//--\n--///\n"], 0, "AL2")
def test_no_line_of_a_users_text_ends_its_part(texts: list[str], slashes: int, family: str) -> None:
    custom = f"{texts[0]}\n--{'/' * slashes}\nlast"
    archive = email.message_from_string(made(family, replace(PLAIN, custom=custom)))

    first, second = (part for part in archive.walk() if not part.is_multipart())

    assert first.get_payload() == custom.replace("\r", "")
    assert second.get_content_type() in ("text/x-shellscript", "application/node.eks.aws")


@pytest.mark.parametrize("family", ["AL2", "Ubuntu", "AL2023", "Bottlerocket", "Windows2022"])
def test_what_a_format_cannot_hold_is_refused_and_nothing_fails(family: str) -> None:
    refused = set()
    for text in HOSTILE:
        for place in PLACES:
            try:
                assert user_data(family, place(text))
            except UserDataError as error:
                assert "hint: " in str(error)
                refused.add(text)
    assert refused <= {text for text in HOSTILE if not re.fullmatch(r"[A-Za-z0-9._-]+", text)}
    assert "\ud800" in refused
