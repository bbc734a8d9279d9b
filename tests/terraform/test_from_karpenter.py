"""From the submodule karpenter of terraform-aws-eks to this module: the state goes on, as the guide says."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localenv.opentofu import Tofu
from tests.terraform.conftest import MODULE, ROOT, Cloud, actions

pytestmark = pytest.mark.cluster

GUIDE = ROOT / "docs" / "guides" / "install-with-terraform.md"
_RULES = {
    "health_event": "HealthEvent",
    "spot_interrupt": "SpotInterrupt",
    "instance_rebalance": "InstanceRebalance",
    "instance_state_change": "InstanceStateChange",
}
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "ec2.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


def _of_the_submodule() -> dict[str, Any]:
    """What version 21 of the submodule makes as it comes, by its addresses and names; policies in short."""
    trust = json.dumps(_TRUST)
    rights = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"}],
        }
    )
    rules = {key: f"Karpenter{name}-" for key, name in _RULES.items()}
    role = {"assume_role_policy": trust, "force_detach_policies": True}
    one: dict[str, Any] = {"count": 1}
    return {
        "resource": {
            "aws_iam_role": {
                "controller": {
                    **one,
                    **role,
                    "name_prefix": "KarpenterController-",
                    "description": "Karpenter controller IAM role",
                },
                "node": {**one, **role, "name_prefix": "Karpenter-demo-"},
            },
            "aws_iam_policy": {
                "controller": {
                    **one,
                    "name_prefix": "KarpenterController-",
                    "description": "Karpenter controller IAM policy",
                    "policy": rights,
                }
            },
            "aws_iam_role_policy_attachment": {
                "controller": {
                    **one,
                    "role": "${aws_iam_role.controller[0].name}",
                    "policy_arn": "${aws_iam_policy.controller[0].arn}",
                },
                "node": {
                    "for_each": {
                        name: f"arn:aws:iam::aws:policy/{name}"
                        for name in (
                            "AmazonEKSWorkerNodePolicy",
                            "AmazonEC2ContainerRegistryPullOnly",
                            "AmazonEKS_CNI_Policy",
                        )
                    },
                    "role": "${aws_iam_role.node[0].name}",
                    "policy_arn": "${each.value}",
                },
            },
            "aws_eks_pod_identity_association": {
                "karpenter": {
                    **one,
                    "cluster_name": "demo",
                    "namespace": "kube-system",
                    "service_account": "karpenter",
                    "role_arn": "${aws_iam_role.controller[0].arn}",
                }
            },
            "aws_eks_access_entry": {
                "node": {
                    **one,
                    "cluster_name": "demo",
                    "principal_arn": "${aws_iam_role.node[0].arn}",
                    "type": "EC2_LINUX",
                }
            },
            "aws_sqs_queue": {
                "this": {
                    **one,
                    "name": "Karpenter-demo",
                    "message_retention_seconds": 300,
                    "sqs_managed_sse_enabled": True,
                }
            },
            "aws_sqs_queue_policy": {
                "this": {**one, "queue_url": "${aws_sqs_queue.this[0].url}", "policy": rights}
            },
            "aws_cloudwatch_event_rule": {
                "this": {
                    "for_each": rules,
                    "name_prefix": "${each.value}",
                    "description": "Karpenter interrupt",
                    "event_pattern": json.dumps({"source": ["aws.ec2"]}),
                }
            },
            "aws_cloudwatch_event_target": {
                "this": {
                    "for_each": rules,
                    "rule": "${aws_cloudwatch_event_rule.this[each.key].name}",
                    "target_id": "KarpenterInterruptionQueueTarget",
                    "arn": "${aws_sqs_queue.this[0].arn}",
                }
            },
        }
    }


@pytest.fixture
def taken_over(cloud: Cloud, tmp_path: Path) -> Iterator[Tofu]:
    """A root module that was applied with the submodule and now has ours, with the variables of the guide."""
    root = tmp_path / "root"
    root.mkdir()
    before = root / "before"
    before.mkdir()
    (before / "main.tf.json").write_text(json.dumps(_of_the_submodule()))
    shutil.copytree(MODULE, root / "nodeless", ignore=shutil.ignore_patterns(".terraform*", "examples"))
    (root / "main.tf").write_text(_THE_SUBMODULE)
    tofu = Tofu(root, tmp_path / "tofu", cloud.aws.environment())
    tofu.apply({}, state="karpenter")
    (root / "main.tf").write_text(_block_of_the_guide())
    tofu.run("init", "-input=false", "-backend=false")
    yield tofu
    tofu.destroy({}, state="karpenter")


_THE_SUBMODULE = 'module "karpenter" {\n  source = "./before"\n}\n'


def _block_of_the_guide() -> str:
    """The guide's module block that takes the submodule's place, for the cluster of these tests."""
    found = re.search(r'^module "karpenter" \{.*?^\}', GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    block = re.sub(r'source\s*= "[^"]*"', 'source = "./nodeless"', found[0])
    return block.replace("module.eks.cluster_name", '"demo"') + "\n"


def test_nothing_that_nodes_or_pods_hold_on_to_is_replaced(taken_over: Tofu) -> None:
    plan = taken_over.plan({}, state="karpenter")
    done = actions(plan)
    gone = {address for address, what in done.items() if "delete" in what}
    assert gone == {
        'module.karpenter.aws_iam_role_policy_attachment.node["AmazonEC2ContainerRegistryPullOnly"]'
    }
    made = {address for address, what in done.items() if what == ["create"]}
    assert made == {
        'module.karpenter.aws_cloudwatch_event_rule.this["capacity_reservation_interruption"]',
        'module.karpenter.aws_cloudwatch_event_target.this["capacity_reservation_interruption"]',
        'module.karpenter.aws_iam_role_policy_attachment.node["AmazonEC2ContainerRegistryReadOnly"]',
        'module.karpenter.aws_iam_role_policy_attachment.node["AmazonSSMManagedInstanceCore"]',
    }
    assert done["module.karpenter.aws_iam_policy.controller[0]"] == ["update"]
    assert done["module.karpenter.aws_iam_role.controller[0]"] == ["update"]


def test_an_attachment_can_be_kept_under_another_address(taken_over: Tofu) -> None:
    """By the two pieces of the guide: none of the policies that nodes have is taken away for a moment."""
    text = GUIDE.read_text()
    kept = re.search(r"node_iam_role_additional_policies = \{.*\}", text)
    moved = re.search(r"^  moved \{.*?^  \}", text, re.MULTILINE | re.DOTALL)
    assert kept is not None
    assert moved is not None
    block = _block_of_the_guide().rstrip().removesuffix("}")
    (taken_over.folder / "main.tf").write_text(f"{block}\n{kept[0]}\n}}\n{moved[0]}\n")
    done = actions(taken_over.plan({}, state="karpenter"))
    assert [address for address, what in done.items() if "delete" in what] == []


def test_after_the_apply_nothing_is_left_to_do(taken_over: Tofu, cloud: Cloud) -> None:
    taken_over.apply({}, state="karpenter")
    assert actions(taken_over.plan({}, state="karpenter")) == {}
    queues = cloud.client("sqs").list_queues(QueueNamePrefix="Karpenter-demo")["QueueUrls"]
    assert [Path(url).name for url in queues] == ["Karpenter-demo"]


def test_the_way_back_replaces_nothing_either(taken_over: Tofu) -> None:
    taken_over.apply({}, state="karpenter")
    (taken_over.folder / "main.tf").write_text(_THE_SUBMODULE)
    taken_over.run("init", "-input=false", "-backend=false")
    done = actions(taken_over.plan({}, state="karpenter"))
    gone = {address.removeprefix("module.karpenter.") for address, what in done.items() if "delete" in what}
    assert gone == {
        'aws_cloudwatch_event_rule.this["capacity_reservation_interruption"]',
        'aws_cloudwatch_event_target.this["capacity_reservation_interruption"]',
        'aws_iam_role_policy_attachment.node["AmazonEC2ContainerRegistryReadOnly"]',
        'aws_iam_role_policy_attachment.node["AmazonSSMManagedInstanceCore"]',
    }
