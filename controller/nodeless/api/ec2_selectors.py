"""How an EC2NodeClass selects subnets, security groups, images and reservations: lists of terms.

Terms are alternatives; the members of one term must all match. Karpenter means some
members to exclude each other, and tests that with "not every term breaks this": a list
with one good term slips through. That stays accepted here, and is warned about (`ec2_rules`).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, field

from nodeless.api.cel import Rule, rule, rules
from nodeless.api.metav1 import Definition
from nodeless.api.rule_codes import RuleCode

_TAGS = rules(
    rule(
        "self.all(key, key != '' && self[key] != '')",
        "must not have an empty key or an empty value",
        lambda tags: any(key == "" or value == "" for key, value in tags.items()),
        "use * for any value",
        code=RuleCode.INVALID_SELECTOR,
    )
)
Tags: TypeAlias = Annotated[dict[str, str], Meta(max_length=20, extra_json_schema=_TAGS)]
ALIAS_FAMILIES = ("al2", "al2023", "bottlerocket", "windows2019", "windows2022", "windows2025")
_WINDOWS = tuple(family for family in ALIAS_FAMILIES if family.startswith("windows"))


def _id(pattern: str) -> Any:
    return Meta(extra_json_schema={"pattern": pattern})


def _quote_names(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _is_malformed(alias: str) -> bool:
    family, at_sign, version = alias.partition("@")
    return not (at_sign and version and family.isascii() and family.isalnum())


_ALIAS_RULES = rules(
    rule(
        "self.matches('^[a-zA-Z0-9]+@.+$')",
        "is not an alias",
        _is_malformed,
        "write family@version, as al2023@v20240807 or al2023@latest",
        code=RuleCode.INVALID_FORMAT,
    ),
    rule(
        f"self.find('^[^@]*') in [{_quote_names(ALIAS_FAMILIES)}]",
        "has an unknown family",
        lambda alias: alias.partition("@")[0] not in ALIAS_FAMILIES,
        f"known: {', '.join(ALIAS_FAMILIES)}",
        code=RuleCode.UNSUPPORTED_VALUE,
    ),
    rule(
        f"!(self.find('^[^@]*') in [{_quote_names(_WINDOWS)}]) || self.find('@.*$') == '@latest'",
        "has a version, which Windows images cannot have",
        lambda alias: alias.partition("@")[0] in _WINDOWS and alias.partition("@")[2] != "latest",
        "write latest",
        code=RuleCode.UNSUPPORTED_VALUE,
    ),
)


class SubnetTerm(Definition):
    """One way to select subnets."""

    tags: Tags | None = None
    """Tags of the subnet; * is any value."""
    id: Annotated[str, _id("subnet-[0-9a-z]+")] | None = None
    """Id of the subnet."""


class SecurityGroupTerm(Definition):
    """One way to select security groups."""

    tags: Tags | None = None
    """Tags of the security group; * is any value."""
    id: Annotated[str, _id("sg-[0-9a-z]+")] | None = None
    """Id of the security group."""
    name: str | None = None
    """Name of the security group (not its tag Name)."""


class AmiTerm(Definition):
    """One way to select images."""

    alias: Annotated[str, Meta(max_length=30, extra_json_schema=_ALIAS_RULES)] | None = None
    """Images that AWS publishes, as family@version: al2023@v20240807; latest follows every release."""
    tags: Tags | None = None
    """Tags of the image; * is any value."""
    id: Annotated[str, _id("ami-[0-9a-z]+")] | None = None
    """Id of the image."""
    name: str | None = None
    """Name of the image, with wildcards."""
    owner: str | None = None
    """Account that owns the image, or self, amazon or aws-marketplace."""
    ssm_parameter: str | None = None
    """SSM parameter that holds the id of the image."""


class CapacityReservationTerm(Definition):
    """One way to select capacity reservations."""

    tags: Tags | None = None
    """Tags of the reservation; * is any value."""
    id: Annotated[str, _id("^cr-[0-9a-z]+$")] | None = None
    """Id of the reservation."""
    owner_id: Annotated[str, _id("^[0-9]{12}$")] | None = field(default=None, name="ownerID")
    """Account that owns the reservation."""
    instance_match_criteria: Annotated[str, Meta(extra_json_schema={"enum": ["open", "targeted"]})] | None = (
        None
    )
    """How instances match the reservation: open or targeted."""


def has_any(term: Mapping[str, Any], *members: str) -> bool:
    return any(term.get(member) is not None for member in members)


def _some_member(*members: str) -> Rule:
    present = " || ".join(f"has(term.{member})" for member in members)
    return rule(
        f"self.all(term, {present})",
        f"needs one of {', '.join(members)}",
        lambda terms: [place for place, term in enumerate(terms) if not has_any(term, *members)],
        code=RuleCode.INVALID_SELECTOR,
    )


def _not_all_with(member: str, *others: str) -> Rule:
    present = " || ".join(f"has(term.{other})" for other in others)
    return rule(
        f"self.size() == 0 || !self.all(term, has(term.{member}) && ({present}))",
        f"cannot combine {member} with {', '.join(others)}",
        lambda terms: bool(terms) and all(has_any(term, member) and has_any(term, *others) for term in terms),
        f"give {member} alone",
        code=RuleCode.INVALID_SELECTOR,
    )


def _none_with(member: str, *others: str) -> Rule:
    present = " || ".join(f"has(term.{other})" for other in others)
    return rule(
        f"!self.exists(term, has(term.{member}) && ({present}))",
        f"cannot combine {member} with {', '.join(others)}",
        lambda terms: [
            place for place, term in enumerate(terms) if has_any(term, member) and has_any(term, *others)
        ],
        f"give {member} alone",
        code=RuleCode.INVALID_SELECTOR,
    )


_NOT_EMPTY = rule(
    "self.size() != 0",
    "must not be empty: nothing would be selected",
    lambda terms: len(terms) == 0,
    "select by the discovery tag, for example tags: {karpenter.sh/discovery: CLUSTER}",
    code=RuleCode.WRONG_LENGTH,
)
SUBNET_RULES = (_NOT_EMPTY, _some_member("tags", "id"), _not_all_with("id", "tags"))
SECURITY_GROUP_RULES = (
    _NOT_EMPTY,
    _some_member("tags", "id", "name"),
    _not_all_with("id", "tags", "name"),
    _not_all_with("name", "tags", "id"),
)
RESERVATION_RULES = (
    _some_member("tags", "id", "instanceMatchCriteria"),
    _not_all_with("id", "tags", "ownerID", "instanceMatchCriteria"),
)
AMI_RULES = (
    _some_member("tags", "id", "name", "alias", "ssmParameter"),
    _none_with("id", "alias", "tags", "name", "owner"),
    _none_with("alias", "id", "tags", "name", "owner"),
    rule(
        "!self.exists(term, has(term.alias)) || self.size() == 1",
        "must hold nothing else beside an alias",
        lambda terms: len(terms) != 1 and any(has_any(term, "alias") for term in terms),
        "keep the alias, or select all images by tags, id or name",
        code=RuleCode.INVALID_SELECTOR,
    ),
)
AMI_RULES_V1BETA1 = (_some_member("tags", "id", "name"), _none_with("id", "tags", "name", "owner"))
