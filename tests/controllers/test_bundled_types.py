"""What the controller ships of instance types, and how fast it answers."""

from __future__ import annotations

import subprocess
import sys

from localenv.bundled_catalog import BUNDLED, LABELS, labels_text
from nodeless.cloudprovider.aws.bundled_types import bundled_types
from nodeless.cloudprovider.aws.catalog_file import bundled_catalog, known_types
from nodeless.model.requirements import Requirement


def test_rules_and_plans_know_the_same_types() -> None:
    assert set(bundled_types().names) == {each.name for each in bundled_catalog().facts}


def test_it_is_known_where_boto3_is_not_installed() -> None:
    code = (
        "import sys; sys.modules['boto3'] = sys.modules['botocore'] = None\n"
        "from nodeless.cloudprovider.aws.bundled_types import bundled_types\n"
        "print(len(bundled_types().names))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, int(run.stdout or 0) > 1300) == (0, True), run.stderr


def test_windows_is_a_system_of_x86_types_and_of_no_build_alone() -> None:
    types = bundled_types()
    windows = types.listed(types.meeting(Requirement.of("kubernetes.io/os", "In", ["windows"])))
    assert "m5.large" in windows
    assert "m6g.large" not in windows
    build = Requirement.of("node.kubernetes.io/windows-build", "In", ["10.0.20348"])
    assert types.meeting(build) == types.everything


def test_sets_of_types_are_those_whose_labels_meet_the_requirement() -> None:
    types = bundled_types()
    cpu, family = "karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-family"

    large = types.meeting_all(
        [
            Requirement.of(family, "In", ["m5"]),
            Requirement.of(cpu, "Gt", ["4"]),
            Requirement.of(cpu, "Lt", ["33"]),
        ]
    )

    assert types.listed(large) == ["m5.2xlarge", "m5.4xlarge", "m5.8xlarge"]
    assert types.meeting(Requirement.of("example.com/team", "In", ["a"])) == types.everything
    assert types.meeting(Requirement.of("topology.kubernetes.io/zone", "In", ["nowhere"])) == types.everything
    without_gpu = types.meeting(Requirement.of("karpenter.k8s.aws/instance-gpu-name", "DoesNotExist"))
    assert "m5.large" in types.listed(without_gpu)
    assert not {"p3.2xlarge", "g4dn.xlarge"} & set(types.listed(without_gpu))
    assert types.listed(types.meeting(Requirement.of(family, "NotIn", ["m5"])) & large) == []


def test_the_labels_that_are_brought_are_those_of_the_catalog() -> None:
    """Else: `python -m localenv.bundled_catalog`, which writes both."""
    assert LABELS.read_text() == labels_text(BUNDLED.read_text())
    known, brought = known_types(bundled_catalog()), bundled_types()
    assert known.to_index() == brought.to_index()
    assert list(brought.values("node.kubernetes.io/instance-type")) == list(known.names)
    assert brought.listed(brought.bearing("node.kubernetes.io/instance-type", "m5.large")) == ["m5.large"]
    assert brought.spot == known.spot
