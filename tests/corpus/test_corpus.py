"""The manifests of the corpus are read as Kubernetes, its operators and Karpenter would read them."""

import json
from pathlib import Path

import pytest
import yaml

from nodeless.cli.bounded_files import files_below
from nodeless.model.resources import parse_resources
from tests.corpus.reading import read_file
from tests.corpus.run import main

CORPUS = Path(__file__).parent
MANIFESTS = CORPUS / "manifests"
EXPECTED = yaml.safe_load((CORPUS / "expected.yaml").read_text())
FEATURES = ("pods", "running", "priority", "host_ports", "spread", "affinity", "volumes", "tolerations")
SELECTING = ("selects", "alternatives")


def parsed(workloads):
    """Workloads with amounts as numbers, without those of none."""
    return {name: _parsed(members) for name, members in workloads.items()}


def _parsed(members):
    others = {name: value for name, value in members.items() if name in (*FEATURES, *SELECTING)}
    amounts = parse_resources({name: value for name, value in members.items() if name not in others})
    return {**others, **{name: amount for name, amount in amounts.items() if amount}}


def test_the_corpus_has_sixty_manifests_and_says_of_each_what_must_be_read():
    names = [path.name for path in files_below(MANIFESTS)]

    assert len(names) >= 60
    assert sorted(EXPECTED) == sorted(names)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_manifest_is_read_as_kubernetes_would_read_it(name):
    read, expected = read_file(MANIFESTS / name), EXPECTED[name]

    assert parsed(read.workloads) == parsed(expected.get("workloads", {}))
    assert parsed(read.daemon_sets) == parsed(expected.get("daemon_sets", {}))
    assert read.pools == expected.get("pools", [])
    assert read.node_classes == expected.get("node_classes", [])
    assert read.overlays == expected.get("overlays", [])
    assert read.skipped == expected.get("skipped", {})
    for found, parts in ((read.faults, "faults"), (read.warnings, "warnings")):
        assert len(found) == len(expected.get(parts, [])), found
        for text, part in zip(found, expected.get(parts, []), strict=True):
            assert part in text


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_is_invalid_is_refused_by_a_plan_too(name):
    read = read_file(MANIFESTS / name)

    assert not read.invalid or read.faults


def test_any_folder_is_read_file_by_file(capsys):
    assert main([str(MANIFESTS)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(EXPECTED) + 1
    assert "web-hpa.yaml: 3 pods; skipped Service (1)" in lines
    assert lines[-1].startswith(f"files {len(EXPECTED)}; pods ")
    assert lines[-1].endswith("crashed 0")


def test_any_folder_is_read_for_machines(capsys):
    assert main([str(MANIFESTS), "--json"]) == 0

    read = json.loads(capsys.readouterr().out)
    assert read["totals"]["files"] == len(EXPECTED)
    assert read["files"]["web-hpa.yaml"]["workloads"]["Deployment/web"]["pods"] == 3
    assert read["crashed"] == {}


def test_an_unforeseen_error_names_the_file_and_exits_with_1(tmp_path, capsys):
    def broken(path):
        raise KeyError(path.name)

    (tmp_path / "given.yaml").write_text("kind: Pod\n")

    assert main([str(tmp_path)], read=broken) == 1
    assert "given.yaml: CRASHED: KeyError: 'given.yaml'" in capsys.readouterr().out
