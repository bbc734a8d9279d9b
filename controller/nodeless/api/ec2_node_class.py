"""The kind `karpenter.k8s.aws/v1` EC2NodeClass: how the nodes of pools are made in AWS.

Only its form, with the rules and defaults that the API server itself enforces (AWS
provider v1.14). The parts have modules of their own: `ec2_selectors`, `ec2_hardware`,
`ec2_kubelet`; what the server cannot express is in `ec2_rules`.
"""

from typing import Annotated, Any

from msgspec import Meta, field

from nodeless.api.cel import rule, rules
from nodeless.api.ec2_hardware import (
    BLOCK_DEVICE_RULES,
    NETWORK_INTERFACE_RULES,
    BlockDeviceV1,
    ConnectionTracking,
    CpuOptions,
    EnclaveOptions,
    MetadataOptionsV1,
    NetworkInterface,
    PlacementGroupSelector,
)
from nodeless.api.ec2_kubelet import KUBELET_RULES, Ec2Kubelet
from nodeless.api.ec2_selectors import (
    AMI_RULES,
    RESERVATION_RULES,
    SECURITY_GROUP_RULES,
    SUBNET_RULES,
    AmiTerm,
    CapacityReservationTerm,
    SecurityGroupTerm,
    SubnetTerm,
)
from nodeless.api.metav1 import Conditions, Definition, FreeForm, Int32
from nodeless.api.rule_codes import RuleCode
from nodeless.model.labels import AWS_GROUP, CLUSTER_NAME_TAG, NODE_CLAIM, NODE_POOL

FAMILIES = ("AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025")
FAMILY_OF_ALIAS = {family.lower(): family for family in FAMILIES if family != "Custom"}
RESERVED_TAGS = (CLUSTER_NAME_TAG, NODE_POOL, NODE_CLAIM, f"{AWS_GROUP}/ec2nodeclass")
CLUSTER_PREFIX = "kubernetes.io/cluster"
_MOST_TERMS = 30


def alias_of(spec: FreeForm) -> str:
    """The alias among the terms that select images; empty when there is none."""
    terms = spec.get("amiSelectorTerms")
    aliases = [term.get("alias") for term in terms or () if isinstance(term, dict)]
    return next((alias for alias in aliases if isinstance(alias, str)), "")


def _contradicts(spec: FreeForm, family: str) -> bool:
    given = spec.get("amiFamily")
    return (
        given is not None
        and alias_of(spec).partition("@")[0] == family.lower()
        and given not in (family, "Custom")
    )


def _family_rule(family: str) -> Any:
    return rule(
        "!has(self.amiFamily) || !self.amiSelectorTerms.exists(term, has(term.alias) && "
        f"term.alias.find('^[^@]*') == '{family.lower()}') || self.amiFamily in ['{family}', 'Custom']",
        f"amiFamily must be {family} or Custom beside an alias of {family.lower()}",
        lambda spec: _contradicts(spec, family),
        "leave amiFamily out: the alias says it",
        code=RuleCode.CONFLICTING_FIELDS,
    )


_SPEC_RULES = (
    rule(
        "has(self.role) != has(self.instanceProfile)",
        "needs exactly one of role and instanceProfile",
        lambda spec: (spec.get("role") is None) == (spec.get("instanceProfile") is None),
        "give the IAM role of the nodes, or the name of an instance profile that exists",
        code=RuleCode.CONFLICTING_FIELDS,
    ),
    *(_family_rule(family) for family in FAMILY_OF_ALIAS.values()),
    rule(
        "has(self.amiFamily) || self.amiSelectorTerms.exists(term, has(term.alias))",
        "needs amiFamily when no term of amiSelectorTerms has an alias",
        lambda spec: spec.get("amiFamily") is None and not alias_of(spec),
        "say how images take their user data, as amiFamily: AL2023",
        code=RuleCode.MISSING_FIELD,
    ),
)
_TAG_RULES = (
    rule(
        "self.all(key, key != '')",
        "must not have an empty key",
        lambda tags: "" in tags,
        code=RuleCode.INVALID_TAG,
    ),
    rule(
        f"self.all(key, !(key in [{', '.join(repr(key) for key in RESERVED_TAGS)}]))",
        "is a tag that the controller sets itself",
        lambda tags: [key for key in tags if key in RESERVED_TAGS],
        "leave it out",
        code=RuleCode.RESERVED_TAG,
    ),
    rule(
        f"self.all(key, !key.startsWith('{CLUSTER_PREFIX}'))",
        "is a tag that says which cluster owns an instance: the controller sets it itself",
        lambda tags: [key for key in tags if key.startswith(CLUSTER_PREFIX)],
        "leave it out",
        code=RuleCode.RESERVED_TAG,
    ),
)
_NOT_EMPTY = rule(
    "self != ''", "must not be empty", lambda text: bool(text == ""), code=RuleCode.WRONG_LENGTH
)
METADATA_DEFAULT_V1 = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "required",
}


class Ec2NodeClassSpec(Definition):
    """How instances are made: where, from which image, with which disks, tags and start-up data."""

    subnet_selector_terms: Annotated[
        list[SubnetTerm], Meta(max_length=_MOST_TERMS, extra_json_schema=rules(*SUBNET_RULES))
    ]
    """Ways to select subnets: a subnet that any of them matches is used."""
    security_group_selector_terms: Annotated[
        list[SecurityGroupTerm],
        Meta(max_length=_MOST_TERMS, extra_json_schema=rules(*SECURITY_GROUP_RULES)),
    ]
    """Ways to select security groups: all that any of them matches are used together."""
    ami_selector_terms: Annotated[
        list[AmiTerm], Meta(min_length=1, max_length=_MOST_TERMS, extra_json_schema=rules(*AMI_RULES))
    ]
    """Ways to select images: the newest one that fits an instance type is used."""
    capacity_reservation_selector_terms: (
        Annotated[
            list[CapacityReservationTerm],
            Meta(max_length=_MOST_TERMS, extra_json_schema=rules(*RESERVATION_RULES)),
        ]
        | None
    ) = None
    """Ways to select capacity reservations."""
    ami_family: Annotated[str, Meta(extra_json_schema={"enum": [*FAMILIES]})] | None = None
    """How images take their user data, and their default disks; by default what the alias says."""
    role: Annotated[str, Meta(extra_json_schema=rules(_NOT_EMPTY))] | None = None
    """IAM role of the nodes. Exactly one of role and instanceProfile."""
    instance_profile: Annotated[str, Meta(extra_json_schema=rules(_NOT_EMPTY))] | None = None
    """Instance profile of the nodes."""
    user_data: str | None = None
    """User data, merged with what the AMI family needs to join the cluster."""
    tags: Annotated[dict[str, str], Meta(extra_json_schema=rules(*_TAG_RULES))] | None = None
    """Tags of instances, volumes and launch templates."""
    kubelet: Annotated[Ec2Kubelet, Meta(extra_json_schema=rules(*KUBELET_RULES))] | None = None
    block_device_mappings: (
        Annotated[list[BlockDeviceV1], Meta(max_length=50, extra_json_schema=rules(*BLOCK_DEVICE_RULES))]
        | None
    ) = None
    """EBS volumes, when they are not the family's default."""
    instance_store_policy: Annotated[str, Meta(extra_json_schema={"enum": ["RAID0"]})] | None = None
    """What becomes of the disks inside the host; RAID0: one volume for containers and the kubelet."""
    metadata_options: Annotated[
        MetadataOptionsV1, Meta(extra_json_schema={"default": METADATA_DEFAULT_V1})
    ] = field(default_factory=MetadataOptionsV1)
    detailed_monitoring: bool | None = None
    """Whether CloudWatch gets figures every minute."""
    enclave_options: EnclaveOptions | None = None
    associate_public_ip_address: bool | None = field(default=None, name="associatePublicIPAddress")
    """Whether instances get a public address; absent: as the subnet says."""
    ip_prefix_count: Annotated[Int32, Meta(ge=0)] | None = field(default=None, name="ipPrefixCount")
    """How many prefixes each network interface gets, IPv6 ones in an IPv6 cluster; none if `efa-only`."""
    placement_group_selector: (
        Annotated[
            PlacementGroupSelector,
            Meta(
                extra_json_schema=rules(
                    rule(
                        "has(self.name) != has(self.id)",
                        "needs exactly one of name and id",
                        lambda group: (group.get("name") is None) == (group.get("id") is None),
                        code=RuleCode.CONFLICTING_FIELDS,
                    )
                )
            ),
        ]
        | None
    ) = None
    network_interfaces: (
        Annotated[
            list[NetworkInterface],
            Meta(max_length=150, extra_json_schema=rules(*NETWORK_INTERFACE_RULES)),
        ]
        | None
    ) = None
    """Network interfaces of each instance, when it is not the one ordinary interface."""
    connection_tracking: (
        Annotated[
            ConnectionTracking,
            Meta(
                extra_json_schema=rules(
                    rule(
                        "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || "
                        "has(self.udpTimeout)",
                        "needs at least one of tcpEstablishedTimeout, udpStreamTimeout and udpTimeout",
                        lambda timeouts: not any(value is not None for value in timeouts.values()),
                        code=RuleCode.MISSING_FIELD,
                    )
                )
            ),
        ]
        | None
    ) = None
    cpu_options: CpuOptions | None = None
    context: str | None = None
    """Passed to EC2 unchanged as the fleet's context."""


class SubnetFound(Definition):
    """A subnet that was found."""

    id: str
    """Id of the subnet."""
    zone: str
    """Its availability zone."""
    zone_id: str | None = field(default=None, name="zoneID")
    """Id of that zone, the same in every account."""


class SecurityGroupFound(Definition):
    """A security group that was found."""

    id: str
    """Id of the security group."""
    name: str | None = None
    """Its name."""


class FoundRequirement(Definition):
    """A label that an instance type must have for the image."""

    key: str
    """The label."""
    operator: str
    """How values are compared."""
    values: list[str] | None = None
    """What the label is compared with."""


class AmiFound(Definition):
    """An image that was found."""

    id: str
    """Id of the image."""
    requirements: list[FoundRequirement]
    """Which instance types the image is for."""
    name: str | None = None
    """Its name."""
    deprecated: bool | None = None
    """Whether its owner advises against it."""


class CapacityReservationFound(Definition):
    """A capacity reservation that was found."""

    id: str
    """Id of the reservation."""
    instance_type: str | None = None
    """The instance type it is for."""
    availability_zone: str | None = None
    """The zone it is in."""
    instance_match_criteria: str | None = None
    """open or targeted."""
    owner_id: str | None = field(default=None, name="ownerID")
    """Account that owns it."""
    reservation_type: str | None = None
    """default or capacity-block."""
    state: str | None = None
    """active or expiring."""
    end_time: str | None = None
    """When it ends."""
    interruptible: bool | None = None
    """Whether EC2 may take it back."""


class Ec2NodeClassStatus(Definition):
    """What the selectors find now, and whether nodes can be made."""

    subnets: list[SubnetFound] | None = None
    """Subnets, the one with most free addresses first."""
    security_groups: list[SecurityGroupFound] | None = None
    """Security groups."""
    amis: list[AmiFound] | None = None
    """Images, the preferred one first."""
    capacity_reservations: list[CapacityReservationFound] | None = None
    """Capacity reservations."""
    instance_profile: str | None = None
    """Instance profile that instances get."""
    conditions: Conditions = None


class Ec2NodeClass(Definition):
    """How the nodes of pools are configured in AWS."""

    spec: Annotated[Ec2NodeClassSpec, Meta(extra_json_schema=rules(*_SPEC_RULES))]
    api_version: str | None = None
    kind: str | None = None
    metadata: FreeForm | None = None
    status: Ec2NodeClassStatus | None = None
