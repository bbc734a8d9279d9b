"""What the controller ships of instance types, and how fast it answers."""

from __future__ import annotations

from pathlib import Path

from infra.local.instance_facts import text
from nodeless.app import bundled_types as bundled
from nodeless.app.bundled_types import bundled_types
from nodeless.model.requirements import Requirement


def test_the_table_is_what_ec2_says() -> None:
    table = Path(bundled.__file__).with_name("types.json").read_text(encoding="utf-8")

    assert table == text(), "run `python -m infra.local.instance_facts`"


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
