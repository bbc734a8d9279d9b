"""The form of the kinds of Karpenter v0.32 to v0.37, `v1beta1`; see `conversion_v1beta1`.

They are read from files and never served: what v1 has in common with them is taken from its definitions.
"""

from functools import cache
from typing import Annotated

from msgspec import Meta, field

from nodeless.api.cel import rule, rules
from nodeless.api.ec2_hardware import BLOCK_DEVICE_RULES, BlockDeviceV1
from nodeless.api.ec2_kubelet import KUBELET_RULES, Ec2Kubelet
from nodeless.api.ec2_selectors import (
    AMI_RULES_V1BETA1,
    SECURITY_GROUP_RULES,
    SUBNET_RULES,
    SecurityGroupTerm,
    SubnetTerm,
    Tags,
)
from nodeless.api.kinds import EC2_NODE_CLASS_V1BETA1, NODE_CLAIM_V1BETA1, NODE_POOL_V1BETA1, Kind
from nodeless.api.metav1 import Definition, FreeForm, Int32, Int64, Quantities, TaintDefinition
from nodeless.api.node_claim import ClaimResources
from nodeless.api.node_pool import DURATION_OR_NEVER, Budget, TemplateMetadata
from nodeless.api.requirements_v1 import PoolRequirement, PoolTaint, RequirementV1, requirement_rules
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schema import Schema, root_schema_of

DEFAULT_EXPIRE_AFTER = "720h"
DEFAULT_POLICY = "WhenUnderutilized"
#: What absent metadata options mean; v1 has one hop.
METADATA_DEFAULT = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 2,
    "httpTokens": "required",
}
FAMILIES = ("AL2", "AL2023", "Bottlerocket", "Ubuntu", "Custom", "Windows2019", "Windows2022")
_SWITCH = ["enabled", "disabled"]
_MOST_TERMS = 30
_Life = Annotated[str, Meta(extra_json_schema={"pattern": DURATION_OR_NEVER})]
_Kubelet = Annotated[Ec2Kubelet, Meta(extra_json_schema=rules(*KUBELET_RULES))]


class NodeClassReferenceV1Beta1(Definition):
    name: Annotated[str, Meta(min_length=1)]
    api_version: Annotated[str, Meta(extra_json_schema={"pattern": r"^([^/]+/[^/]+)?$"})] | None = None
    kind: str | None = None


class TemplateSpecV1Beta1(Definition):
    node_class_ref: NodeClassReferenceV1Beta1
    requirements: Annotated[
        list[PoolRequirement], Meta(max_length=100, extra_json_schema=rules(*requirement_rules()))
    ]
    taints: list[PoolTaint] | None = None
    startup_taints: list[PoolTaint] | None = None
    kubelet: _Kubelet | None = None
    resources: Annotated[Quantities, Meta(max_length=0)] | None = None


class NodeTemplateV1Beta1(Definition):
    spec: TemplateSpecV1Beta1
    metadata: TemplateMetadata | None = None


class DisruptionV1Beta1(Definition):
    consolidation_policy: (
        Annotated[str, Meta(extra_json_schema={"enum": ["WhenEmpty", "WhenUnderutilized"]})] | None
    ) = None
    consolidate_after: _Life | None = None
    expire_after: _Life | None = None
    budgets: Annotated[list[Budget], Meta(max_length=50)] | None = None


def _when_empty(disruption: FreeForm) -> bool:
    return disruption.get("consolidationPolicy") == "WhenEmpty"


_DISRUPTION_RULES = (
    rule(
        "self.consolidationPolicy != 'WhenEmpty' || has(self.consolidateAfter)",
        "needs consolidateAfter beside consolidationPolicy WhenEmpty",
        lambda disruption: _when_empty(disruption) and disruption.get("consolidateAfter") is None,
        "for example consolidateAfter: 30s",
        code=RuleCode.INCOMPLETE_FIELDS,
    ),
    rule(
        "self.consolidationPolicy == 'WhenEmpty' || !has(self.consolidateAfter) || "
        "self.consolidateAfter == 'Never'",
        "cannot have consolidateAfter beside consolidationPolicy WhenUnderutilized in v1beta1",
        lambda disruption: (
            not _when_empty(disruption) and disruption.get("consolidateAfter") not in (None, "Never")
        ),
        "leave it out, or write the pool as karpenter.sh/v1, which allows it",
        code=RuleCode.CONFLICTING_FIELDS,
    ),
)


class NodePoolSpecV1Beta1(Definition):
    template: NodeTemplateV1Beta1
    disruption: Annotated[DisruptionV1Beta1, Meta(extra_json_schema=rules(*_DISRUPTION_RULES))] | None = None
    limits: Quantities | None = None
    weight: Annotated[Int32, Meta(ge=1, le=100)] | None = None


class NodePoolV1Beta1(Definition):
    spec: NodePoolSpecV1Beta1
    status: FreeForm | None = None


class AmiTermV1Beta1(Definition):
    tags: Tags | None = None
    id: Annotated[str, Meta(extra_json_schema={"pattern": "ami-[0-9a-z]+"})] | None = None
    name: str | None = None
    owner: str | None = None


class MetadataOptionsV1Beta1(Definition):
    http_endpoint: Annotated[str, Meta(extra_json_schema={"enum": _SWITCH})] | None = None
    http_protocol_ipv6: Annotated[str, Meta(extra_json_schema={"enum": _SWITCH})] | None = field(
        default=None, name="httpProtocolIPv6"
    )
    http_put_response_hop_limit: Annotated[Int64, Meta(ge=1, le=64)] | None = None
    http_tokens: Annotated[str, Meta(extra_json_schema={"enum": ["required", "optional"]})] | None = None


class Ec2NodeClassSpecV1Beta1(Definition):
    subnet_selector_terms: Annotated[
        list[SubnetTerm], Meta(max_length=_MOST_TERMS, extra_json_schema=rules(*SUBNET_RULES))
    ]
    security_group_selector_terms: Annotated[
        list[SecurityGroupTerm],
        Meta(max_length=_MOST_TERMS, extra_json_schema=rules(*SECURITY_GROUP_RULES)),
    ]
    ami_family: Annotated[str, Meta(extra_json_schema={"enum": [*FAMILIES]})]
    ami_selector_terms: (
        Annotated[
            list[AmiTermV1Beta1], Meta(max_length=_MOST_TERMS, extra_json_schema=rules(*AMI_RULES_V1BETA1))
        ]
        | None
    ) = None
    role: str | None = None
    instance_profile: str | None = None
    user_data: str | None = None
    tags: dict[str, str] | None = None
    block_device_mappings: (
        Annotated[list[BlockDeviceV1], Meta(max_length=50, extra_json_schema=rules(*BLOCK_DEVICE_RULES))]
        | None
    ) = None
    instance_store_policy: Annotated[str, Meta(extra_json_schema={"enum": ["RAID0"]})] | None = None
    metadata_options: MetadataOptionsV1Beta1 | None = None
    detailed_monitoring: bool | None = None
    associate_public_ip_address: bool | None = field(default=None, name="associatePublicIPAddress")
    context: str | None = None


class Ec2NodeClassV1Beta1(Definition):
    spec: Ec2NodeClassSpecV1Beta1
    status: FreeForm | None = None


class NodeClaimSpecV1Beta1(Definition):
    node_class_ref: NodeClassReferenceV1Beta1
    requirements: Annotated[list[RequirementV1], Meta(max_length=100)]
    taints: list[TaintDefinition] | None = None
    startup_taints: list[TaintDefinition] | None = None
    resources: ClaimResources | None = None
    kubelet: _Kubelet | None = None


class NodeClaimV1Beta1(Definition):
    spec: NodeClaimSpecV1Beta1
    status: FreeForm | None = None


_DEFINITIONS: dict[Kind, type[Definition]] = {
    NODE_POOL_V1BETA1: NodePoolV1Beta1,
    EC2_NODE_CLASS_V1BETA1: Ec2NodeClassV1Beta1,
    NODE_CLAIM_V1BETA1: NodeClaimV1Beta1,
}


@cache
def schema_v1beta1(kind: Kind) -> Schema:
    """The OpenAPI schema of one kind of `kinds.V1BETA1`; the caller must not change it."""
    return root_schema_of(_DEFINITIONS[kind], described=False)
