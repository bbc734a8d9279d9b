"""The first pool: what an environment has where its arguments name no pools, or no node templates."""

from collections.abc import Sequence
from typing import Any, Final, cast

from pulumi_nodeless.environment_args import EnvironmentArgs
from pulumi_nodeless.pools import NodeTemplateArgs, ProvisionerArgs

#: Bottlerocket: AWS publishes its images for every Kubernetes version of EKS. Those of AL2, the family of
#: templates that name none, end with 1.32, and an AWSNodeTemplate cannot name AL2023.
DEFAULT_NODE_TEMPLATES: Final[Sequence[NodeTemplateArgs]] = (
    {"name": "default", "ami_family": "Bottlerocket"},
)
DEFAULT_PROVISIONERS: Final[Sequence[ProvisionerArgs]] = (
    {
        "name": "default",
        "node_template": "default",
        "requirements": [
            {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
            {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]},
        ],
    },
)


def with_default_pools(args: EnvironmentArgs) -> EnvironmentArgs:
    """The arguments that are given, with the first pool and its node template where those are not.

    What is None is not given. NodePools stand for the first pool. The template `default` is there for
    Provisioners of the user's own, too; an empty list is a list that was given.
    """
    v1 = _any(args.get("node_pools"))
    may_lack = EnvironmentArgs.__optional_keys__
    given = {name: value for name, value in args.items() if value is not None or name not in may_lack}
    filled = cast("EnvironmentArgs", given)
    if "provisioners" not in filled:
        filled["provisioners"] = () if v1 else DEFAULT_PROVISIONERS
    if "node_templates" not in filled:
        needed = not v1 or _any(args.get("provisioners"))
        filled["node_templates"] = DEFAULT_NODE_TEMPLATES if needed else ()
    return filled


def _any(given: Any) -> bool:
    """Whether something is given; what is no list is not empty, and is refused later on."""
    return given is not None and not (isinstance(given, Sequence) and not given)
