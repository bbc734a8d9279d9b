"""What the Terraform module takes from the components: policies, trusts, event rules and names.

The module's own files lay out resources; what those grant, trust and listen to is written here as
`terraform/policies.tf.json`, so that a role made by Terraform may do what one made by Pulumi may, to the
statement. Terraform reads each text in such a file, keys too, as a template: the functions that make the
documents are called with expressions (`${local.partition}`) for what the module knows when it is applied.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pulumi_nodeless import names, policies
from pulumi_nodeless.interruption import RETENTION_SECONDS, RULES, TARGET_ID, rule_description
from pulumi_nodeless.policy_parts import parts
from pulumi_nodeless.scoped_policy import scoped_controller_policy

MODULE: Final = Path("terraform")
RULE_KEYS: Final[Mapping[str, tuple[str, str]]] = {
    "scheduled-change": ("health_event", "HealthEvent"),
    "spot-interruption": ("spot_interrupt", "SpotInterrupt"),
    "rebalance": ("instance_rebalance", "InstanceRebalance"),
    "state-change": ("instance_state_change", "InstanceStateChange"),
    "reservation": ("capacity_reservation_interruption", "CRInterruption"),
}
"""Keys and names of the rules in the submodule karpenter of terraform-aws-eks, by our keys: a state that was
made by that one finds its rules again."""
_CLUSTER: Final = "${var.cluster_name}"
_SUBJECT: Final = policies.Subject(
    partition="${local.partition}",
    region="${local.region}",
    account="${local.account_id}",
    dns_suffix="${local.dns_suffix}",
    cluster=_CLUSTER,
    node_role_arn="${local.node_role_arn}",
    interruption_queue_arn="${local.queue_arn}",
)
_RULE_ARNS: Final = "${local.rule_arns}"
_EC2_SERVICES: Final = '${distinct(["ec2.amazonaws.com", "ec2.${local.dns_suffix}"])}'


def module_files() -> dict[Path, str]:
    """Every derived file of the module, relative to the repository, with its text."""
    document = {
        "//": "Made by `python -m pulumi_nodeless generate` from the components; change those instead.",
        "locals": {
            "controller_statements": _controller_statements(),
            "controller_policy_sizes": _policy_sizes(),
            "pod_identity_statements": policies.pod_identity_trust(
                _SUBJECT.cluster_arn, "${var.namespace}", "${var.service_account}"
            )["Statement"],
            "irsa_statements": policies.service_account_trust(
                "${var.irsa_oidc_provider_arn}",
                "${local.oidc_issuer}",
                "${var.namespace}",
                "${var.service_account}",
            )["Statement"],
            "node_trust": policies.node_trust(_SUBJECT.dns_suffix),
            "node_managed_policies": {
                name: policies.managed_policy_arn(name, _SUBJECT.partition)
                for name in policies.NODE_MANAGED_POLICIES
            },
            "queue_policy": _queue_policy(),
            "queue_retention_seconds": RETENTION_SECONDS,
            "event_rules": _event_rules(),
            "event_target_id": TARGET_ID,
            "policy_version": policies.VERSION,
            "full_names": _full_names(),
        },
    }
    return {MODULE / "policies.tf.json": json.dumps(document, indent=2) + "\n"}


def _controller_statements() -> list[policies.Document]:
    """The controller's; EC2's names are one expression, which lists each of them once."""
    statements: list[policies.Document] = scoped_controller_policy(_SUBJECT)["Statement"]
    (passing,) = [statement for statement in statements if statement["Sid"] == "PassNodeIAMRole"]
    passing["Condition"]["StringEquals"]["iam:PassedToService"] = _EC2_SERVICES
    return statements


def _policy_sizes() -> list[dict[str, Any]]:
    """How the controller's statements divide into managed policies, by the length of the cluster's name.

    Each entry serves names up to its `longest_cluster_name`; its policies list statements by Sid.
    """
    sizes: list[dict[str, Any]] = []
    order = [statement["Sid"] for statement in scoped_controller_policy(_SUBJECT)["Statement"]]
    for length in range(1, names.CLUSTER_NAME_LIMIT + 1):
        divided = parts(scoped_controller_policy, "c" * length)
        found = [[sid for sid in order if sid in part] for part in divided]
        if sizes and sizes[-1]["policies"] == found:
            sizes[-1]["longest_cluster_name"] = length
        else:
            sizes.append({"longest_cluster_name": length, "policies": found})
    return sizes


def _queue_policy() -> policies.Document:
    """The queue's policy; its list of rules is one expression that gives the list."""
    made = policies.interruption_queue_policy(_SUBJECT.interruption_queue_arn, [_RULE_ARNS])
    made["Statement"][0]["Condition"]["ArnEquals"]["aws:SourceArn"] = _RULE_ARNS
    return made


def _event_rules() -> dict[str, dict[str, Any]]:
    return {
        RULE_KEYS[key][0]: {
            "name": RULE_KEYS[key][1],
            "description": rule_description(key),
            "pattern": dict(pattern),
        }
        for key, pattern in RULES.items()
    }


def _full_names() -> dict[str, dict[str, Any]]:
    """Physical names before they are shortened, with the most characters that each may have."""
    return {
        "node_role": {"name": names.node_role(_CLUSTER), "limit": names.ROLE_LIMIT},
        "controller_role": {"name": names.controller_role(_CLUSTER), "limit": names.ROLE_LIMIT},
        "controller_policy": {"name": names.controller_policy(_CLUSTER), "limit": names.POLICY_LIMIT},
        "instance_profile": {
            "name": names.instance_profile(_CLUSTER),
            "limit": names.INSTANCE_PROFILE_LIMIT,
        },
        "queue": {"name": names.interruption_queue(_CLUSTER), "limit": names.QUEUE_LIMIT},
    }
