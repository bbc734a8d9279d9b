"""The policy pack: `pulumi up --policy-pack policy`. What it checks is `pulumi_nodeless.checks`.

Stacks whose name begins with `prod` pass the checks for production, too.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pulumi
from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    PolicyResource,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError

from pulumi_nodeless.checks import ALWAYS, PRODUCTION, Check, Resource


def policy(name: str, check: Check) -> StackValidationPolicy:
    """One check as a policy of the pack."""

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        # Asked here: the pack learns the stack's name only when it is handed one to look at.
        if name in PRODUCTION and not pulumi.get_stack().startswith("prod"):
            return
        resources = [Resource(each.resource_type, each.name, _properties(each)) for each in args.resources]
        urns: dict[str, str] = {each.name: each.urn for each in args.resources}
        for violation in check(resources):
            report(violation.message, urns.get(violation.resource))

    return StackValidationPolicy(name=name, description=_first_line(check), validate=validate)


def _properties(resource: PolicyResource) -> Mapping[str, Any]:
    """The properties; of a tag those alone that are known.

    Looking at one that is not known ends the whole check, and in the first preview of a stack nobody knows
    yet what the discovery tag is put on.
    """
    if resource.resource_type != "aws:ec2/tag:Tag":
        return resource.props
    known: dict[str, Any] = {}
    for name in resource.props:
        with suppress(UnknownValueError):
            known[name] = resource.props[name]
    return known


def _first_line(check: Callable[..., object]) -> str:
    return (check.__doc__ or "").partition("\n")[0]


PolicyPack(
    name="nodeless",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[policy(name, check) for name, check in (ALWAYS | PRODUCTION).items()],
)
