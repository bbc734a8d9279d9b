"""Requirements, taints and label keys as generation v1 spells them, with the rules that go with them.

In v1 only Karpenter's own domains are closed to users, and `kubernetes.io/hostname`
(`requirement_rules` has the older generation's).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from nodeless.api.cel import Rule, rule
from nodeless.api.metav1 import RequirementDefinition, TaintDefinition, Time
from nodeless.api.rule_codes import RuleCode
from nodeless.model.labels import AWS_GROUP, CAPACITY_TYPE, CORE_GROUP, HOSTNAME, NODE_POOL, WELL_KNOWN
from nodeless.model.numbers import whole_number

OPERATORS_V1 = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
BOUNDS = ("Gt", "Lt", "Gte", "Lte")
_PREFIX = r"([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*/)?"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
QUALIFIED_NAME = rf"^{_PREFIX}{_NAME}$"
_TAINT_VALUE = rf"^({_PREFIX}{_NAME})?$"
_LARGEST = 2**63
_DOMAIN = re.compile(r"^[^/]*")

#: Keys in AWS's domain that users may choose nodes by: ours, and those that Karpenter v1 added.
AWS_KEYS = tuple(
    sorted(
        {key for key in WELL_KNOWN if key.startswith(f"{AWS_GROUP}/")}
        | {
            f"{AWS_GROUP}/{name}"
            for name in (
                "capacity-reservation-id",
                "capacity-reservation-interruptible",
                "capacity-reservation-type",
                "ec2nodeclass",
                "instance-capability-flex",
                "instance-cpu-manufacturer",
                "instance-cpu-sustained-clock-speed-mhz",
                "instance-ebs-bandwidth",
                "instance-tenancy",
                "placement-group-id",
                "placement-group-partition",
            )
        }
    )
)
_AWS_LIST = ", ".join(f"'{key}'" for key in AWS_KEYS)
_OWN_DOMAIN = "use a label in a domain of your own, as example.com/team"


def _domain(key: str) -> str:
    found = _DOMAIN.search(key)
    return found.group() if found else ""


def in_core_domain(key: str) -> bool:
    """Whether a key is in Karpenter's domain and not open to users."""
    return key != CAPACITY_TYPE and _domain(key).endswith(CORE_GROUP)


def in_aws_domain(key: str) -> bool:
    """Whether a key is in the AWS provider's domain and not a known one."""
    return key not in AWS_KEYS and _domain(key).endswith(AWS_GROUP)


_CORE = "is in the domain karpenter.sh, which is not for labels of pools"
_AWS = "is not a known label of the domain karpenter.k8s.aws"
_NODE_POOL = "is restricted: it is the NodePool's own name"
_HOST = "is restricted: a pool has more than one node"

LABEL_RULES: tuple[Rule, ...] = (
    rule(
        f"self.all(key, key in ['{CAPACITY_TYPE}', '{NODE_POOL}'] || "
        f"!key.find('^[^/]*').endsWith('{CORE_GROUP}'))",
        _CORE,
        lambda labels: [key for key in labels if key != NODE_POOL and in_core_domain(key)],
        _OWN_DOMAIN,
        code=RuleCode.RESTRICTED_LABEL,
    ),
    rule(
        f"self.all(key, key != '{NODE_POOL}')",
        _NODE_POOL,
        lambda labels: [key for key in labels if key == NODE_POOL],
        "leave it out",
        code=RuleCode.RESTRICTED_LABEL,
    ),
    rule(
        f"self.all(key, key != '{HOSTNAME}')",
        _HOST,
        lambda labels: [key for key in labels if key == HOSTNAME],
        "leave it out",
        code=RuleCode.RESTRICTED_LABEL,
    ),
    rule(
        f"self.all(key, key in [{_AWS_LIST}] || !key.find('^[^/]*').endsWith('{AWS_GROUP}'))",
        _AWS,
        lambda labels: [key for key in labels if in_aws_domain(key)],
        _OWN_DOMAIN,
        code=RuleCode.RESTRICTED_LABEL,
    ),
)
"""Rules for the keys of a pool's labels."""

KEY_RULES: tuple[Rule, ...] = (
    rule(
        f"self in ['{CAPACITY_TYPE}', '{NODE_POOL}'] || !self.find('^[^/]*').endsWith('{CORE_GROUP}')",
        _CORE,
        lambda key: key != NODE_POOL and in_core_domain(key),
        _OWN_DOMAIN,
        code=RuleCode.RESTRICTED_LABEL,
    ),
    rule(
        f"self != '{NODE_POOL}'",
        _NODE_POOL,
        lambda key: bool(key == NODE_POOL),
        "leave it out",
        code=RuleCode.RESTRICTED_LABEL,
    ),
    rule(
        f"self != '{HOSTNAME}'",
        _HOST,
        lambda key: bool(key == HOSTNAME),
        "leave it out",
        code=RuleCode.RESTRICTED_LABEL,
    ),
    rule(
        f"self in [{_AWS_LIST}] || !self.find('^[^/]*').endsWith('{AWS_GROUP}')",
        _AWS,
        in_aws_domain,
        _OWN_DOMAIN,
        code=RuleCode.RESTRICTED_LABEL,
    ),
)
"""The same for the key of a requirement."""


class RequirementV1(RequirementDefinition):
    """A constraint on one label of the node."""

    key: Annotated[str, Meta(max_length=316, extra_json_schema={"pattern": QUALIFIED_NAME})]
    """Label that the constraint is about."""
    operator: Annotated[str, Meta(extra_json_schema={"enum": [*OPERATORS_V1]})]
    """How values are compared."""
    values: list[str] | None = None
    """What the label is compared with: at least one value for In, exactly one whole number for Gt, Lt, Gte
    and Lte, none for Exists and DoesNotExist."""
    min_values: Annotated[int, Meta(ge=1, le=50)] | None = None
    """How many different values must stay possible."""


class PoolRequirement(RequirementV1):
    """A constraint on one label of the pool's nodes."""

    key: Annotated[
        str,
        Meta(
            max_length=316,
            extra_json_schema={
                "pattern": QUALIFIED_NAME,
                "x-kubernetes-validations": [key_rule.schema() for key_rule in KEY_RULES],
            },
        ),
    ]
    """Label that the constraint is about."""


class PoolTaint(TaintDefinition):
    """A taint that the pool's nodes carry: pods that do not tolerate it stay away."""

    key: Annotated[str, Meta(min_length=1, max_length=317, extra_json_schema={"pattern": QUALIFIED_NAME})]
    """Key of the taint."""
    effect: Annotated[str, Meta(extra_json_schema={"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]})]
    """NoSchedule, PreferNoSchedule or NoExecute."""
    value: Annotated[str, Meta(max_length=317, extra_json_schema={"pattern": _TAINT_VALUE})] | None = None
    """Value of the taint."""
    time_added: Time | None = None
    """When the taint was added."""


def requirement_rules() -> Iterable[Rule]:
    """Rules for a list of requirements: what each operator needs."""
    return (
        rule(
            "self.all(each, each.operator != 'In' || (has(each.values) && each.values.size() != 0))",
            "must hold at least one value for operator In",
            lambda listed: _where(
                listed, lambda requirement: requirement["operator"] == "In" and not requirement.get("values")
            ),
            "use Exists for any value",
            code=RuleCode.INVALID_REQUIREMENT,
        ),
        rule(
            "self.all(each, !(each.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(each.values) && "
            "each.values.size() == 1 && int(each.values[0]) >= 0))",
            "must have exactly one whole number of 0 or more for operators Gt, Lt, Gte and Lte",
            lambda listed: _where(
                listed,
                lambda requirement: (
                    requirement["operator"] in BOUNDS and not is_bound(requirement.get("values") or [])
                ),
            ),
            code=RuleCode.INVALID_REQUIREMENT,
        ),
        rule(
            "self.all(each, each.operator != 'In' || !has(each.minValues) || (has(each.values) && "
            "each.values.size() >= each.minValues))",
            "must hold at least minValues values",
            lambda listed: _where(
                listed,
                lambda requirement: (
                    requirement["operator"] == "In"
                    and (requirement.get("minValues") or 0) > len(requirement.get("values") or ())
                ),
            ),
            "add values or lower minValues",
            code=RuleCode.INVALID_REQUIREMENT,
        ),
    )


def _where(listed: list[Mapping[str, Any]], broken: Any) -> list[int]:
    return [position for position, requirement in enumerate(listed) if broken(requirement)]


def is_bound(values: list[str]) -> bool:
    """As CEL reads a whole number: a sign is allowed, the value must fit 64 bits."""
    if len(values) != 1:
        return False
    number = whole_number(re.sub(r"^[+-]", "", values[0]), _LARGEST)
    return number is not None and number < _LARGEST and not (number and values[0].startswith("-"))
