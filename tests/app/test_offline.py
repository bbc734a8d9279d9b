"""The commands `nodeless validate` and `nodeless convert`, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from nodeless.app.cli import app
from nodeless.app.yaml_files import read_documents
from tests.api.manifests import article, ec2_node_class, node_pool, node_template, provisioner

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


def nodeless(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, [*arguments], input=stdin)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(*manifests: Any) -> str:
        path = tmp_path / "given.yaml"
        path.write_text(yaml.safe_dump_all(manifests))
        return str(path)

    return write


def test_valid_files_of_both_generations_exit_with_0(file: Any) -> None:
    result = nodeless("validate", file(provisioner(), node_template(), node_pool(), ec2_node_class()))

    assert result.exit_code == 0, result.output
    assert result.stdout.count(": valid\n") == 4


def test_every_fault_of_an_invalid_file_is_told_and_it_exits_with_1(file: Any) -> None:
    result = nodeless("validate", file(article()))

    assert result.exit_code == 1
    assert "Provisioner/default: invalid" in result.stdout
    assert "spec.requirements[2].operator: is required" in result.stdout
    assert "spec.provider.subnetSelector: is required" in result.stdout


def test_json_has_the_paths(file: Any) -> None:
    result = nodeless("validate", "-o", "json", file(node_pool(weight=101)))

    (entry,) = json.loads(result.stdout)
    assert (result.exit_code, entry["result"]) == (1, "invalid")
    assert [(fault["path"], fault["severity"]) for fault in entry["faults"]] == [("spec.weight", "error")]


def test_other_kinds_are_passed_over_and_misspelt_ones_are_not(file: Any) -> None:
    passed = nodeless("validate", file(CONFIG_MAP))
    misspelt = nodeless("validate", file(node_pool() | {"kind": "Nodepool"}))

    assert (passed.exit_code, passed.stdout.strip().endswith("passed over")) == (0, True)
    assert misspelt.exit_code == 1
    assert "did you mean karpenter.sh/v1 NodePool?" in misspelt.stdout


def test_stdin_and_lists_are_read() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [node_pool(), ec2_node_class()]}

    result = nodeless("validate", "-", stdin=json.dumps(listed))

    assert (result.exit_code, result.stdout.count(": valid\n")) == (0, 2)


@pytest.mark.parametrize("content", ["a: [", "\t- x"])
def test_what_is_no_yaml_exits_with_2(content: str) -> None:
    assert nodeless("validate", "-", stdin=content).exit_code == 2
    assert nodeless("validate", "/nowhere/at/all.yaml").exit_code == 2


def test_a_converted_file_is_valid(file: Any) -> None:
    profile = ("--default-instance-profile", "nodes")
    result = nodeless("convert", *profile, file(provisioner(), node_template(), CONFIG_MAP))

    assert result.exit_code == 0, result.output
    assert [each["kind"] for each in yaml.safe_load_all(result.stdout)] == ["EC2NodeClass", "NodePool"]
    assert "ConfigMap/x passed over" in result.stderr
    assert nodeless("validate", "-", stdin=result.stdout).exit_code == 0
    back = nodeless("convert", "--to", "v1alpha5", "-", stdin=result.stdout)
    assert back.exit_code == 0, back.output
    assert nodeless("validate", "-", stdin=back.stdout).exit_code == 0


def test_a_loss_is_listed_and_exits_with_1(file: Any) -> None:
    result = nodeless("convert", file(node_template()))

    assert result.exit_code == 1
    assert "AWSNodeTemplate/default: not converted: spec.instanceProfile" in result.stderr


def test_an_invalid_object_is_not_converted(file: Any) -> None:
    result = nodeless("convert", file(provisioner(weight=101)))

    assert (result.exit_code, result.stdout) == (1, "")
    assert "spec.weight: 101 must be from 1 to 100" in result.stderr


def test_8_2_a_key_that_is_given_twice_is_a_fault_as_kubectl_has_it(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\nname: one\nname: two\n")

    result = nodeless("validate", str(path))

    assert result.exit_code == 2
    assert "name is given twice" in result.stderr
    assert "line 5" in result.stderr


def test_8_1_text_that_lost_its_indentation_is_no_yaml(tmp_path: Path) -> None:
    path = tmp_path / "provisioner.yaml"
    path.write_text("spec:\nrequirements:\n- key: a\noperator: In\n- key: b\noperator: In\n")

    result = nodeless("validate", str(path))

    assert result.exit_code == 2
    assert "is not YAML" in result.stderr


@pytest.mark.parametrize(
    ("text", "read"),
    [("2026-01-01", "2026-01-01"), ("12:30", "12:30"), ("0x10", 16), ("1e3", 1000.0), ("yes", True)],
)
def test_scalars_are_what_kubectl_makes_of_them(text: str, read: Any) -> None:
    assert list(read_documents(f"a: {text}\n---\n")) == [{"a": read}]


def test_c_20_a_version_that_is_not_served_is_not_passed_over_in_silence(file: Any) -> None:
    result = nodeless("convert", file(node_pool() | {"apiVersion": "karpenter.sh/v1beta1"}))

    assert (result.exit_code, result.stdout) == (1, "")
    assert "NodePool/default: not converted: kind" in result.stderr
    assert "did you mean karpenter.sh/v1 NodePool?" in result.stderr


def test_pools_of_the_files_are_each_others_neighbours(file: Any) -> None:
    other = provisioner()
    other["metadata"] = {"name": "other"}

    result = nodeless("validate", file(provisioner(), other))

    assert result.exit_code == 0
    assert "overlaps with Provisioner/other, of the same weight" in result.stdout
    assert "overlaps with Provisioner/default, of the same weight" in result.stdout
