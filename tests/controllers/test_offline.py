"""The commands `nodeless validate` and `nodeless convert`, run as a user runs them."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from nodeless.cli.main import app
from nodeless.cli.manifests.documents import documents_of
from nodeless.cli.manifests.yaml_files import read_documents
from tests.api.manifests import (
    article,
    ec2_node_class,
    ec2_node_class_v1beta1,
    inline,
    node_pool,
    node_pool_v1beta1,
    node_template,
    provisioner,
)

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

    (entry,) = json.loads(result.stdout)["objects"]
    assert (result.exit_code, entry["result"]) == (1, "invalid")
    assert [(fault["path"], fault["severity"]) for fault in entry["faults"]] == [("spec.weight", "error")]


def test_other_kinds_are_passed_over_and_misspelt_ones_are_not(file: Any) -> None:
    passed = nodeless("validate", file(CONFIG_MAP))
    misspelt = nodeless("validate", file(node_pool() | {"kind": "Nodepool"}))

    assert (passed.exit_code, passed.stdout.strip().endswith("skipped")) == (0, True)
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
    assert "ConfigMap/x: skipped" in result.stderr
    assert nodeless("validate", "-", stdin=result.stdout).exit_code == 0
    back = nodeless("convert", "--to", "v1alpha5", "-", stdin=result.stdout)
    assert back.exit_code == 0, back.output
    assert nodeless("validate", "-", stdin=back.stdout).exit_code == 0


def test_a_loss_is_listed_and_exits_with_1(file: Any) -> None:
    result = nodeless("convert", file(node_template()))

    assert result.exit_code == 1
    assert "AWSNodeTemplate/default: not converted: spec.instanceProfile" in result.stderr


def test_a_role_takes_the_place_of_the_instance_profile_that_a_node_class_does_not_name(file: Any) -> None:
    named = node_template(instanceProfile="own") | {"metadata": {"name": "named"}}
    pool = inline() | {"metadata": {"name": "pool"}}

    result = nodeless("convert", "--role", "nodes", file(node_template(), named, pool))

    assert result.exit_code == 0, result.output
    classes = [each for each in yaml.safe_load_all(result.stdout) if each["kind"] == "EC2NodeClass"]
    given = [(each["spec"].get("role"), each["spec"].get("instanceProfile")) for each in classes]
    assert given == [("nodes", None), (None, "own"), ("nodes", None)]
    assert nodeless("validate", "-", stdin=result.stdout).exit_code == 0


def test_every_node_class_without_role_and_profile_is_named_with_its_line_and_both_options(
    tmp_path: Path,
) -> None:
    other = node_template() | {"metadata": {"name": "other"}}
    one = written(tmp_path, "one.yaml", yaml.safe_dump_all([node_template(), other]).encode())
    two = written(tmp_path, "two.yaml", yaml.safe_dump(inline() | {"metadata": {"name": "pool"}}).encode())

    result = nodeless("convert", one, two)

    lines = [each for each in result.stderr.splitlines() if ": not converted: " in each]
    assert result.exit_code == 1
    assert [line.partition(": not converted")[0] for line in lines] == [
        f"{one}:6:3: AWSNodeTemplate/default",
        f"{one}:15:3: AWSNodeTemplate/other",
        f"{two}:7:5: Provisioner/pool",
    ]
    assert all("--role NAME" in line and "--default-instance-profile NAME" in line for line in lines)


@pytest.mark.parametrize(
    "options",
    [("--role", "a", "--default-instance-profile", "b"), ("--to", "v1alpha5", "--role", "a")],
    ids=["both", "v1alpha5"],
)
def test_options_that_make_no_sense_together_are_refused(file: Any, options: tuple[str, ...]) -> None:
    result = nodeless("convert", *options, file(node_template()))

    assert (result.exit_code, result.stdout) == (2, "")
    assert "--default-instance-profile" in result.stderr


def test_an_invalid_object_is_not_converted(file: Any) -> None:
    result = nodeless("convert", file(provisioner(weight=101)))

    assert (result.exit_code, result.stdout) == (1, "")
    assert "spec.weight: 101 must be from 1 to 100" in result.stderr


def test_8_2_a_key_that_is_given_twice_is_a_fault_as_kubectl_has_it(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\nname: one\nname: two\n")

    result = nodeless("validate", str(path))

    assert result.exit_code == 2
    assert f"{path}:5:1: error: not YAML: name is given twice [InvalidYaml]" in result.stdout


def test_8_1_text_that_lost_its_indentation_is_no_yaml(tmp_path: Path) -> None:
    path = tmp_path / "provisioner.yaml"
    path.write_text("spec:\nrequirements:\n- key: a\noperator: In\n- key: b\noperator: In\n")

    result = nodeless("validate", str(path))

    assert result.exit_code == 2
    assert ": error: not YAML: " in result.stdout


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T12:30:00Z", "2026-01-01T12:30:00Z"),
        ("!!timestamp 2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("12:30:45.5", "12:30:45.5"),
        ("0x10", 16),
        ("017", 15),
        ("0o17", 15),
        ("0O17", 15),
        ("-0X1f", -31),
        ("0089", 89),
        ("098765432109", 98765432109),
        ("2e5", 200000),
        ("+.5", 0.5),
        ("0_8e1", 80),
        ("1_000", 1000),
        ("1e3", 1000.0),
        ("1.5e1", 15),
        ("=", "="),
        ("[=, ==, <=]", ["=", "==", "<="]),
        ("!!binary aGVsbG8=", "hello"),
        ("yes", True),
        ("on", True),
        ("y", True),
        ("N", False),
        ("off", False),
        ("'y'", "y"),
        ("yn", "yn"),
        ("{on: 1, 2: two, 1.5: x, =: c}", {"true": 1, "2": "two", "1.5": "x", "=": "c"}),
        ("{<<: {b: 1, c: 2}, c: 3}", {"b": 1, "c": 3}),
        ("{c: 3, <<: {b: 1, c: 2}}", {"b": 1, "c": 2}),
        ("{b: 3, <<: [{b: 1}, {b: 2, c: 2}], c: 4}", {"b": 1, "c": 4}),
    ],
)
def test_scalars_are_what_kubectl_makes_of_them(text: str, read: Any) -> None:
    """The same for `validate` and `convert` as for `plan`."""
    assert list(read_documents(f"a: {text}\n---\n")) == [{"a": read}]
    assert [document.value for document in documents_of("f", f"a: {text}\n---\n")] == [{"a": read}]


@pytest.mark.parametrize(("text", "whole"), [("3.0", True), ("1e3", True), ("1.5", False), ("1e21", False)])
def test_a_number_without_a_fraction_is_a_whole_one_as_json_has_it(text: str, whole: bool) -> None:
    (read,) = read_documents(f"a: {text}")

    assert isinstance(read["a"], int) == whole


def test_strings_stay_strings_for_kubectl_when_they_are_converted(tmp_path: Path) -> None:
    """An account with a leading zero is a number to kubectl, and `y` is true, unless they are in quotes."""
    tags = {"owner": "098765432109", "env": "y", "costcenter": "0089", "release": "2e5", "n": "no", "N": "5"}
    tags |= {"host": "10.0.0.1", "none": "~", "day": "2026-01-01", "empty": "", "hex": "0X1F"}
    given = json.dumps(ec2_node_class_v1beta1(tags=tags)).encode()
    result = nodeless("convert", written(tmp_path, "given.json", given))

    assert result.exit_code == 0, result.stderr
    (read,) = read_documents(result.stdout)
    assert read["spec"]["tags"] == tags
    for quoted in ("'098765432109'", "'y'", "'0089'", "'2e5'", "'no'", "'N': '5'", "'~'", "'0X1F'"):
        assert quoted in result.stdout
    assert "host: 10.0.0.1\n" in result.stdout


def test_a_number_of_digits_is_no_string_without_quotes(tmp_path: Path) -> None:
    """kubectl sends the number 98765432109, and the API server refuses it."""
    text = yaml.safe_dump(ec2_node_class(tags={"owner": "x098765432109"})).replace("x0987", "0987")
    result = nodeless("validate", written(tmp_path, "given.yaml", text.encode()))

    assert result.exit_code == 1
    assert "spec.tags.owner: 98765432109 must be a string" in result.stdout.replace("\n", " ")


def test_values_that_end_with_a_line_break_are_refused_as_by_the_api_server(tmp_path: Path) -> None:
    """Of a block scalar (`|`)."""
    pool = node_pool()
    pool["spec"] |= {"disruption": {"consolidateAfter": "30s\n", "budgets": [{"nodes": "10%\n"}]}}
    pool["spec"]["template"] |= {"metadata": {"labels": {"team": "a\n"}}}
    pool["spec"]["template"]["spec"] |= {"expireAfter": "720h\n"}
    result = nodeless("validate", written(tmp_path, "given.json", json.dumps(pool).encode()))

    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    for path in ("disruption.consolidateAfter", "budgets[0].nodes", "labels.team", "spec.expireAfter"):
        assert f"{path}: " in result.stdout


def test_a_node_claim_may_be_named_after_any_pool(tmp_path: Path) -> None:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "2xl.spot-abcde"},
        "spec": {"nodeClassRef": reference, "requirements": []},
    }
    result = nodeless("validate", written(tmp_path, "claim.json", json.dumps(claim).encode()))
    assert result.exit_code == 0, result.stdout


def test_a_static_pool_overlaps_with_no_other(file: Any) -> None:
    """No pod makes it launch a node."""
    static = {**node_pool(replicas=3), "metadata": {"name": "static"}}
    result = nodeless("validate", file(node_pool(), static))
    assert result.exit_code == 0
    assert "overlaps with" not in result.stdout


def test_converted_objects_are_a_list_in_json_that_can_be_applied_and_read(tmp_path: Path, file: Any) -> None:
    result = nodeless("convert", "-o", "json", file(ec2_node_class_v1beta1(), node_pool_v1beta1()))
    made = json.loads(result.stdout)
    assert (made["apiVersion"], made["kind"]) == ("v1", "List")
    assert [item["kind"] for item in made["items"]] == ["EC2NodeClass", "NodePool"]
    again = nodeless("validate", written(tmp_path, "made.json", result.stdout.encode()))
    assert again.exit_code == 0, again.stdout


def test_the_kind_of_each_object_is_looked_up_a_few_times_however_many_there_are(tmp_path: Path) -> None:
    """And not once for each of the others."""
    asked = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        asked[frame.f_code.co_name] += event == "call"

    pools = [{**node_pool(weight=number + 1), "metadata": {"name": f"p{number}"}} for number in range(40)]
    text = "---\n".join(json.dumps(one) + "\n" for one in [*pools, pools[7]])
    given = written(tmp_path, "given.yaml", text.encode())
    sys.setprofile(count)
    try:
        result = nodeless("validate", given)
    finally:
        sys.setprofile(None)

    assert result.stdout.count("is also the name of the NodePool at") == 1
    assert 0 < asked["kind_of"] < 10 * len(pools)


def test_a_tab_is_called_one(tmp_path: Path) -> None:
    path = written(tmp_path, "given.yaml", b"apiVersion: v1\nkind: Pod\nmetadata:\n\tname: web\n")

    result = nodeless("validate", path)
    assert (
        f"{path}:4:1: error: not YAML: a tab where a value or spaces are expected; hint: indent by spaces"
        in (result.stdout)
    )


def test_c_20_a_version_that_is_not_served_is_not_passed_over_in_silence(file: Any) -> None:
    unknown = nodeless("convert", file(node_pool() | {"apiVersion": "karpenter.sh/v2"}))
    two_steps = nodeless("convert", "--to", "v1alpha5", file(node_pool_v1beta1()))

    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert "NodePool/default: not converted: kind" in unknown.stderr
    assert "did you mean karpenter.sh/v1 NodePool?" in unknown.stderr
    assert (two_steps.exit_code, two_steps.stdout) == (1, "")
    assert "convert it to v1 with `nodeless convert`" in two_steps.stderr


V1BETA1 = """# of an older cluster
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata:
  name: default
spec:
  disruption:
    expireAfter: 24h
  template:
    spec:
      nodeClassRef:
        name: default
      requirements: []
      kubelet:
        maxPods: 20
---
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata:
  name: default
spec:
  amiFamily: AL2
  role: nodes
  subnetSelectorTerms:
  - id: subnet-1
  securityGroupSelectorTerms:
  - id: sg-1
"""


def test_v1beta1_converts_to_v1_and_every_change_has_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "pools.yaml", V1BETA1.encode())

    result = nodeless("convert", path)

    assert result.exit_code == 0, result.output
    made = list(yaml.safe_load_all(result.stdout))
    assert [each["apiVersion"] for each in made] == ["karpenter.k8s.aws/v1", "karpenter.sh/v1"]
    (note,) = result.stderr.splitlines()
    assert note.startswith(
        f'{path}:8:18: NodePool/default: note: spec.disruption.expireAfter: "24h" is final in v1'
    )
    checked = nodeless("validate", "-", stdin=result.stdout)
    assert (checked.exit_code, checked.stdout.count("warning")) == (0, 0)
    again = nodeless("convert", "-", stdin=result.stdout)
    assert (again.exit_code, again.stdout, again.stderr) == (0, result.stdout, "")


def test_v1beta1_is_valid_with_one_warning_that_names_convert(tmp_path: Path) -> None:
    path = written(tmp_path, "pools.yaml", V1BETA1.encode())

    result = nodeless("validate", path)

    assert result.exit_code == 0
    warnings = [line for line in result.stdout.splitlines() if "warning" in line]
    assert [line.split(": warning: ")[0] for line in warnings] == [f"{path}:2:13", f"{path}:17:13"]
    assert all("convert it to v1 with `nodeless convert` [OldApiVersion]" in line for line in warnings)
    assert "did you mean" not in result.stdout


def test_a_fault_of_v1beta1_has_its_own_field_and_line(tmp_path: Path) -> None:
    text = V1BETA1.replace("expireAfter: 24h", "expireAfter: 1d").replace("amiFamily: AL2", "amiFamily: al2")
    path = written(tmp_path, "pools.yaml", text.encode())

    told = nodeless("validate", path)
    refused = nodeless("convert", path)

    assert (told.exit_code, refused.exit_code, refused.stdout) == (1, 1, "")
    assert f'{path}:8:18: error: spec.disruption.expireAfter: "1d" does not match' in told.stdout
    assert (
        f'{path}:22:14: error: spec.amiFamily: "al2" is not supported; hint: did you mean AL2? ['
        in told.stdout
    )
    assert f'{path}:8:18: error: NodePool/default: spec.disruption.expireAfter: "1d"' in refused.stderr


def test_a_pool_of_auto_mode_is_converted_to_itself_and_told(tmp_path: Path) -> None:
    pool = node_pool(
        template={"nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}}
    )
    result = nodeless("convert", written(tmp_path, "auto.yaml", yaml.safe_dump(pool).encode()))
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["spec"] == pool["spec"]
    assert "note: spec.template.spec.nodeClassRef.group" in result.stderr
    assert "EKS Auto Mode, whose controller serves this pool" in result.stderr


BARE_NUMBERS = """apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {name: default}
      requirements: []
      kubelet:
        kubeReserved: {cpu: 1}
        systemReserved: {memory: 0.5}
        evictionHard: {memory.available: 5}
        evictionSoft: {nodefs.available: 10}
        evictionSoftGracePeriod: {nodefs.available: 1m}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
  kubelet:
    kubeReserved: {cpu: 2}
    systemReserved: {pid: 100}
    evictionHard: {memory.available: 100}
"""


def test_bare_numbers_of_a_kubelet_are_told_with_their_place_and_the_quotes_that_they_need(
    tmp_path: Path,
) -> None:
    """The API server refuses them, for these are maps of strings."""
    path, old = written(tmp_path, "pools.yaml", BARE_NUMBERS.encode()), "spec.template.spec.kubelet"
    faults = [
        ("10:29", f"{old}.kubeReserved.cpu", "1"),
        ("11:34", f"{old}.systemReserved.memory", "0.5"),
        ("12:42", f'{old}.evictionHard["memory.available"]', "5"),
        ("13:42", f'{old}.evictionSoft["nodefs.available"]', "10"),
        ("25:25", "spec.kubelet.kubeReserved.cpu", "2"),
        ("26:27", "spec.kubelet.systemReserved.pid", "100"),
        ("27:38", 'spec.kubelet.evictionHard["memory.available"]', "100"),
    ]
    told, refused, planned = (nodeless(verb, path) for verb in ("validate", "convert", "plan"))

    assert (told.exit_code, refused.exit_code, planned.exit_code) == (1, 1, 2)
    for place, field, value in faults:
        fault = f'{field}: {value} must be a string; hint: put it in quotes: "{value}"'
        assert f"{path}:{place}: error: {fault} [WrongType]" in told.stdout
        for result in (refused, planned):
            (said,) = [said for said in result.stderr.splitlines() if said.endswith(f": {fault} [WrongType]")]
            assert said.startswith(f"{path}:{place}: error: ")
    assert "7 faults in the manifests" in planned.stderr

    quoted = re.sub(r": ([0-9.]+)}", r': "\1"}', BARE_NUMBERS).encode()
    good = nodeless("validate", written(tmp_path, "quoted.yaml", quoted))
    assert good.exit_code == 0, good.output


@pytest.mark.parametrize("bad", [None, [], "x", 3, {"a": None}, [None]])
@pytest.mark.parametrize(
    "path",
    ["spec", "metadata", "spec.disruption", "spec.template", "spec.template.spec", "spec.template.metadata"]
    + [f"spec.template.spec.{name}" for name in ("nodeClassRef", "requirements", "kubelet", "taints")]
    + [
        "spec.template.spec.nodeClassRef.apiVersion",
        "spec.template.spec.nodeClassRef.group",
        "spec.disruption.budgets",
        "spec.limits",
        "metadata.annotations",
    ],
)
def test_v1beta1_of_any_form_is_never_a_stack_trace(file: Any, path: str, bad: Any) -> None:
    manifest = node_pool_v1beta1(disruption={"budgets": []}, metadata={"labels": {}}, limits={})
    *holders, last = path.split(".")
    holder = manifest
    for name in holders:
        holder = holder[name]
    holder[last] = bad
    given = file(manifest, ec2_node_class_v1beta1())

    for command in ("validate", "convert", "plan", "windows"):
        result = nodeless(command, given)

        assert isinstance(result.exception, SystemExit | None), (command, result.exception)
        assert (result.exit_code == 0) or f"{given}:" in result.output


AUTO_MODE = {"apiVersion": "eks.amazonaws.com/v1", "kind": "NodeClass", "metadata": {"name": "auto"}}


@pytest.mark.parametrize(
    ("manifest", "said"),
    [(AUTO_MODE, "is the node class of EKS Auto Mode")],
    ids=["EKS Auto Mode"],
)
def test_a_kind_that_is_not_read_is_warned_about_and_keeps_no_other_from_being_read(
    tmp_path: Path, manifest: Any, said: str
) -> None:
    text = yaml.safe_dump_all([manifest, node_pool(), ec2_node_class()], sort_keys=False)
    path = written(tmp_path, "given.yaml", text.encode())
    subject = f"{manifest['kind']}/{manifest['metadata']['name']}"

    checked, converted = nodeless("validate", path), nodeless("convert", path)

    assert (checked.exit_code, converted.exit_code) == (0, 0)
    assert checked.stdout.startswith(f"{path}: {subject}: skipped\n{path}:2:7: warning: kind: ")
    assert said in checked.stdout
    assert checked.stdout.count(": valid\n") == 2
    assert f"{path}:2:7: {subject}: skipped: warning: kind: " in converted.stderr
    assert len(list(yaml.safe_load_all(converted.stdout))) == 2


def test_what_differs_in_a_node_class_of_auto_mode_is_said(file: Any) -> None:
    spec = {
        "role": "nodes",
        "subnetSelectorTerms": [],
        "ephemeralStorage": {"size": "80Gi"},
        "networkPolicy": "DefaultAllow",
        "snatPolicy": "Random",
    }
    told = nodeless("validate", file(AUTO_MODE | {"spec": spec})).stdout

    assert (
        "amiSelectorTerms are required there; spec.ephemeralStorage is spec.blockDeviceMappings there" in told
    )
    assert "; spec.networkPolicy, spec.snatPolicy: not there [KindNotRead]" in told


def test_a_pool_of_auto_mode_is_said_to_be_its_own(file: Any) -> None:
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    told = nodeless("validate", file(node_pool(template={"nodeClassRef": reference}))).stdout

    assert told.count("[NotSupported]") == 1
    assert "belongs to EKS Auto Mode, whose controller serves this pool: nodeless creates no nodes" in told


def test_pools_of_the_files_are_each_others_neighbors(file: Any) -> None:
    other = provisioner()
    other["metadata"] = {"name": "other"}

    result = nodeless("validate", file(provisioner(), other))

    assert result.exit_code == 0
    assert "overlaps with Provisioner/other, which has the same weight" in result.stdout
    assert "overlaps with Provisioner/default, which has the same weight" in result.stdout


def written(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


ONE = yaml.safe_dump(provisioner(weight=101)).encode()


def test_every_fault_stands_at_its_line(tmp_path: Path) -> None:
    text = """# a comment
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata:
  name: default
spec:
  providerRef:
    name: default
  weight: 101
  requirements:
  - key: kubernetes.io/arch
    operator: Is
"""
    file = written(tmp_path, "given.yaml", text.encode())

    told = nodeless("validate", file).stdout
    (entry,) = json.loads(nodeless("validate", "-o", "json", file).stdout)["objects"]

    assert f'{file}:13:15: error: spec.requirements[0].operator: "Is"' in told
    assert f"{file}:10:11: error: spec.weight: 101 must be" in told
    assert entry["line"] == 3
    assert {fault["path"]: fault["line"] for fault in entry["faults"] if fault["severity"] == "error"} == {
        "spec.requirements[0].operator": 13,
        "spec.weight": 10,
    }


@pytest.mark.parametrize("content", [b"", b"---\n---\n# nothing\n", b" \n"])
@pytest.mark.parametrize("command", ["validate", "convert"])
def test_a_file_without_an_object_is_not_taken_for_a_good_one(
    tmp_path: Path, command: str, content: bytes
) -> None:
    result = nodeless(command, written(tmp_path, "empty.yaml", content))

    assert result.exit_code == 2
    assert "empty.yaml contains no object" in result.stderr
    assert "there is no object to look at" in result.stderr


def test_a_folder_is_read_with_all_that_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "pools").mkdir()
    written(tmp_path, "a.yaml", yaml.safe_dump(node_template()).encode())
    written(tmp_path / "pools", "b.yml", ONE)
    written(tmp_path, "c.json", json.dumps(node_pool()).encode())
    written(tmp_path, "README.md", b"| no | yaml |")

    result = nodeless("validate", str(tmp_path))

    assert result.exit_code == 1
    assert result.stdout.count(": valid\n") == 2
    assert f"{tmp_path / 'pools' / 'b.yml'}: Provisioner/default: invalid" in result.stdout
    (tmp_path / "none").mkdir()
    assert "contains no file that ends in .yaml" in nodeless("validate", str(tmp_path / "none")).stderr


@pytest.mark.parametrize(
    "content",
    [ONE.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + ONE, ONE.decode().encode("utf-16")],
    ids=["line ends of Windows", "byte order mark", "UTF-16"],
)
def test_what_editors_and_shells_of_windows_write_is_read(tmp_path: Path, content: bytes) -> None:
    result = nodeless("validate", written(tmp_path, "given.yaml", content))

    assert result.exit_code == 1
    assert "spec.weight: 101 must be from 1 to 100" in result.stdout


def test_one_file_that_cannot_be_read_keeps_no_other_from_being_looked_at(tmp_path: Path) -> None:
    good, bad = written(tmp_path, "good.yaml", ONE), written(tmp_path, "bad.yaml", b"a: [")

    result = nodeless("validate", bad, str(tmp_path / "nowhere.yaml"), good)

    assert result.exit_code == 2
    assert f"{bad}:2:1: error: not YAML: " in result.stdout
    assert "nowhere.yaml cannot be read: No such file or directory" in result.stderr
    assert "spec.weight: 101 must be from 1 to 100" in result.stdout


def test_lists_of_the_api_server_and_json_objects_in_a_row_are_read(tmp_path: Path) -> None:
    listed = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "ProvisionerList", "items": [provisioner()]}
    row = f"{json.dumps(node_pool())}\n{json.dumps(ec2_node_class(), indent=2)}\n{json.dumps(listed)}"

    result = nodeless("validate", "-", stdin=row)

    assert (result.exit_code, result.stdout.count(": valid\n")) == (0, 3)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\r\n\x00", "is not UTF-8; hint: is it a text file?"),
        (b"kind: List\napiVersion: v1\nitems: 3\n", "the items of a List are not a list"),
        (b"a: " + b"[" * 20_000, "more than 200 levels deep"),
        (b"&a [*a]", "an alias refers to what contains it"),
        (
            b"a: &a [x]\n"
            + b"".join(
                b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(8)
            ),
            "aliases make more than 1000000 values",
        ),
        (b"name: {{ .Values.name }}\n{{- if .x }}\n", "check what `helm template` prints"),
    ],
    ids=["no text", "no list", "deep", "endless", "huge", "helm"],
)
def test_what_no_one_can_read_is_one_clear_line(tmp_path: Path, content: bytes, said: str) -> None:
    for command in ("validate", "convert"):
        result = nodeless(command, written(tmp_path, "given.yaml", content))

        assert result.exit_code == 2
        (line,) = [each for each in result.output.splitlines() if "given.yaml" in each and ": " in each][-1:]
        assert said in line


def test_expressions_of_a_template_in_good_yaml_are_noted(tmp_path: Path) -> None:
    manifest = provisioner() | {"metadata": {"name": "{{ .Values.name }}"}}

    result = nodeless("validate", written(tmp_path, "given.yaml", yaml.safe_dump(manifest).encode()))

    assert result.exit_code == 1
    assert "check what `helm template` prints" in result.stderr


@pytest.mark.parametrize(
    ("manifest", "missing"),
    [
        ({"a": 1}, "apiVersion"),
        ({"apiVersion": "karpenter.sh/v1"}, "kind"),
        ({"apiVersion": [1], "kind": {}}, "kind"),
    ],
)
def test_an_object_that_does_not_say_what_it_is_is_not_passed_over(
    tmp_path: Path, manifest: Any, missing: str
) -> None:
    result = nodeless("validate", written(tmp_path, "given.yaml", yaml.safe_dump(manifest).encode()))

    assert result.exit_code == 1
    assert f"{missing}: is required; hint: known: karpenter.sh/v1alpha5 Provisioner" in result.stdout


def test_two_objects_of_one_name_are_told_where_they_stand(file: Any) -> None:
    path = file(provisioner(), node_template(), provisioner(weight=7))

    result = nodeless("validate", path)

    assert result.exit_code == 0
    (line,) = [each for each in result.stdout.splitlines() if "metadata.name" in each]
    assert f'warning: metadata.name: "default" is also the name of the Provisioner at {path}:1:1' in line


def test_two_versions_of_one_pool_are_one_object_of_the_cluster(file: Any) -> None:
    older = node_pool() | {"apiVersion": "karpenter.sh/v1beta1"}
    path = file(node_pool(), older)

    result = nodeless("validate", path)

    assert f'metadata.name: "default" is also the name of the NodePool at {path}:1:1' in result.stdout


def test_items_that_are_no_objects_are_faults_each() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [3, None, "x", [], {"kind": "NodePool"}] * 2}

    result = nodeless("validate", "-", stdin=json.dumps(listed))

    assert result.exit_code == 1
    assert result.stdout.count(": invalid\n") == 10


def test_objects_that_would_get_one_name_are_a_loss(file: Any) -> None:
    others = node_template(instanceProfile="others")

    result = nodeless("convert", file(node_template(instanceProfile="nodes"), others))

    assert result.exit_code == 1
    assert "would name a second EC2NodeClass that differs from the first" in result.stderr


WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: Web}
spec:
  replicas: 1000000
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: api}
    spec:
      containers:
        - name: web
          resources:
            requests: {cpu: 2}
            limits: {cpu: 1}
"""


def test_workloads_are_checked_as_the_api_server_checks_them(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(WEB)
    pod = "spec.template.spec.containers[0]"
    result = nodeless("validate", str(path))

    lines = [line.removeprefix(f"{path}:").partition(": error: ") for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert [(place, text.partition(": ")[0], text.rpartition(" ")[2]) for place, _, text in lines[1:]] == [
        ("3:18", "metadata.name", "[InvalidName]"),
        ("7:24", "spec.selector.matchLabels.app", "[UnmatchedSelector]"),
        ("13:11", f"{pod}.image", "[MissingField]"),
        ("15:29", f"{pod}.resources.requests.cpu", "[InvalidObject]"),
    ]
    assert lines[0][0].endswith("Deployment/Web: invalid")


def test_a_workload_with_faults_leaves_the_others_alone(file: Any) -> None:
    broken, sound = yaml.safe_load(WEB), yaml.safe_load(WEB)
    sound["metadata"]["name"] = sound["spec"]["template"]["metadata"]["labels"]["app"] = "web"
    sound["spec"]["template"]["spec"]["containers"] = [{"name": "web", "image": "web"}]
    result = nodeless("validate", "-o", "json", file(broken, sound, node_pool(), CONFIG_MAP))

    entries = json.loads(result.stdout)["objects"]
    assert [entry["result"] for entry in entries] == ["invalid", "valid", "valid", "skipped"]


def test_a_plan_refuses_names_and_selectors_with_their_code_and_does_without_images(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(WEB)
    result = nodeless("plan", str(path))

    assert result.exit_code == 2
    told = [line.rpartition(" ")[2] for line in result.stderr.splitlines() if ": error: " in line]
    assert told == ["[InvalidName]", "[UnmatchedSelector]", "[InvalidObject]"]
