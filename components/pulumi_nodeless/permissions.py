"""The page on the controller's permissions, out of the policies themselves.

For a cluster `CLUSTER` in region `REGION` of account `ACCOUNT`: what each statement grants on what, and under
which condition.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulumi_nodeless.controller_identity import POLICIES
from pulumi_nodeless.policies import Subject

_TITLES: Final = {
    "guide": "The policy of Karpenter's v0.27 guide, with termination bound to the cluster's tags. It allows "
    "`ec2:CreateTags` on everything in EC2: whoever has the controller's credentials can give any "
    "instance of the account these tags, and then terminate it. It also allows launches of any size "
    "into any subnet, "
    "deleting every launch template, and reading every SSM parameter.",
    "article": "The statements of that guide to the letter, for Provisioners. It allows all that `guide` "
    "does, and terminating every instance that has the tag `karpenter.sh/provisioner-name`, whichever "
    "cluster's it is. It cannot terminate instances of NodePools. Nor can it create instance profiles (an "
    "EC2NodeClass must name one, its `role` is refused) or look up failed status checks; the log says so "
    "once.",
    "scoped": "The default. Limited by the tags of the cluster: it cannot change what has none of them, "
    "and it can tag only what it creates, in the request that creates it; its own instances "
    "also get the names of "
    "their node, claim and cluster. What remains to whoever has the "
    "controller's credentials: instances, spot requests and templates of this cluster, any number of them, "
    "with the role of its nodes, in any subnet; reading what the region has in EC2. An image that an "
    "EC2NodeClass names by an `ssmParameter` of your own (not of `/aws/service/`) needs one more policy: "
    "`ssm:GetParameter` on it.",
}
_SUBJECT: Final = Subject(
    partition="aws",
    region="REGION",
    account="ACCOUNT",
    dns_suffix="amazonaws.com",
    cluster="CLUSTER",
    node_role_arn="arn:aws:iam::ACCOUNT:role/KarpenterNodeRole-CLUSTER",
    interruption_queue_arn="arn:aws:sqs:REGION:ACCOUNT:CLUSTER",
)


def permissions_page() -> str:
    """The page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# What the controller may do in AWS"
    yield ""
    yield "<!-- Made by `python -m pulumi_nodeless generate`; change the policies instead. -->"
    yield ""
    yield "One of these policies is attached to the controller's role: the argument `permissions` of"
    yield "[ControllerIdentity](ControllerIdentity.md), config `nodeless:controllerPermissions`. Statement"
    yield "`InterruptionQueue` is there with an interruption queue only. A policy that would not fit into the"
    yield "6,144 characters of a managed policy becomes two, as `scoped` does for long names of clusters."
    for name, make in POLICIES.items():
        yield from ("", f"## {name}", "", _TITLES[name], "")
        yield from ("| statement | actions | on | where |", "|---|---|---|---|")
        for statement in make(_SUBJECT)["Statement"]:
            yield _row(statement)


def _row(statement: Mapping[str, Any]) -> str:
    conditions = [
        f"{key} {operator} {_format_list(value)}"
        for operator, tests in statement.get("Condition", {}).items()
        for key, value in tests.items()
    ]
    on, actions = _format_list(statement["Resource"]), _format_list(statement["Action"])
    cells = (statement["Sid"], actions, on, "<br>".join(conditions))
    return "| " + " | ".join(cells) + " |"


def _format_list(value: str | list[str]) -> str:
    return ", ".join(f"`{each}`" for each in ([value] if isinstance(value, str) else value))
