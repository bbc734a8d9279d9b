"""Manifests to the model, the AWS side: node templates, the inline `spec.provider`, EC2NodeClasses.

Selectors are maps in v1alpha1; each becomes one term whose members all have to match.
An absent AMI family is AL2.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from nodeless.api.aws_node_template import (
    AwsNodeTemplate,
    AwsNodeTemplateSpec,
    AwsSettings,
    BlockDeviceMapping,
    ElasticBlockStore,
    InlineProvider,
)
from nodeless.api.aws_node_template import MetadataOptions as MetadataOptionsDefinition
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS
from nodeless.api.metadata import Metadata, read_metadata
from nodeless.api.reading_ec2_node_classes import read_ec2_node_class
from nodeless.api.reading_parts import read_conditions
from nodeless.api.validation import require_valid
from nodeless.model.pools import AWS_NODE_TEMPLATE as AWS_NODE_TEMPLATE_KIND
from nodeless.model.pools import BlockDevice, MetadataOptions, NodeClass, Reference, SelectorTerm
from nodeless.model.quantity import parse_units

DEFAULT_AMI_FAMILY = "AL2"
_IDS = "aws-ids"
_IMAGE_IDS = (_IDS, "aws::ids")
_IMAGE_NAME = "aws::name"
_IMAGE_OWNERS = "aws::owners"


def read_node_class(manifest: Mapping[str, Any]) -> NodeClass:
    """The node class that an AWSNodeTemplate or EC2NodeClass describes.

    Raises:
        InvalidObject: It breaks rules, or wants what the controller cannot do; all of it is named.
    """
    if EC2_NODE_CLASS.describes(manifest):
        return read_ec2_node_class(manifest)
    require_valid(manifest, AWS_NODE_TEMPLATE)
    manifest = drop_nulls(manifest)
    document = msgspec.convert(manifest, AwsNodeTemplate)
    metadata = read_metadata(manifest)
    reference = Reference(AWS_NODE_TEMPLATE_KIND, metadata.name, metadata.uid)
    node_class = _node_class(document.spec or AwsNodeTemplateSpec(), reference, metadata)
    conditions = document.status.conditions if document.status is not None else None
    return replace(node_class, conditions=read_conditions(conditions))


def read_inline_class(provider: Mapping[str, Any], reference: Reference, metadata: Metadata) -> NodeClass:
    """The node class of an inline provider that is known to be valid; it lives and dies with its owner."""
    return _node_class(msgspec.convert(provider, InlineProvider), reference, metadata)


def _node_class(settings: AwsSettings, reference: Reference, metadata: Metadata) -> NodeClass:
    template = settings if isinstance(settings, AwsNodeTemplateSpec) else AwsNodeTemplateSpec()
    return NodeClass(
        reference=reference,
        ami_family=settings.ami_family or DEFAULT_AMI_FAMILY,
        subnets=_terms(settings.subnet_selector),
        security_groups=_terms(settings.security_group_selector),
        images=_image_terms(template.ami_selector),
        instance_profile=settings.instance_profile or None,
        user_data=template.user_data,
        tags=tuple(sorted((settings.tags or {}).items())),
        block_devices=tuple(_block_device(mapping) for mapping in settings.block_device_mappings or ()),
        metadata_options=_metadata_options(settings.metadata_options),
        detailed_monitoring=bool(template.detailed_monitoring),
        launch_template=settings.launch_template,
        context=settings.context,
        generation=metadata.generation,
        deletion_timestamp=metadata.deletion_timestamp,
    )


def _terms(selector: Mapping[str, str] | None) -> tuple[SelectorTerm, ...]:
    """One term; none for an empty selector, which selects nothing."""
    if not selector:
        return ()
    tags = tuple((key, _split_list(value)) for key, value in sorted(selector.items()) if key != _IDS)
    return (SelectorTerm(tags=tags, ids=_split_list(selector.get(_IDS, ""))),)


def _image_terms(selector: Mapping[str, str] | None) -> tuple[SelectorTerm, ...]:
    """One term; names and tags of images are single patterns, in which a comma is a comma."""
    if not selector:
        return ()
    special = {*_IMAGE_IDS, _IMAGE_NAME, _IMAGE_OWNERS}
    ids = [name for key in _IMAGE_IDS for name in _split_list(selector.get(key, ""))]
    name = selector.get(_IMAGE_NAME)
    return (
        SelectorTerm(
            tags=tuple((key, (value,)) for key, value in sorted(selector.items()) if key not in special),
            ids=tuple(dict.fromkeys(ids)),
            names=(name,) if name else (),
            owners=_split_list(selector.get(_IMAGE_OWNERS, "")),
        ),
    )


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _block_device(mapping: BlockDeviceMapping) -> BlockDevice:
    ebs = mapping.ebs or ElasticBlockStore()
    return BlockDevice(
        device_name=mapping.device_name or "",
        volume_size=None if ebs.volume_size is None else parse_units(ebs.volume_size),
        volume_type=ebs.volume_type,
        iops=ebs.iops,
        throughput=ebs.throughput,
        encrypted=ebs.encrypted,
        kms_key_id=ebs.kms_key_id,
        snapshot_id=ebs.snapshot_id,
        delete_on_termination=ebs.delete_on_termination,
    )


def _metadata_options(options: MetadataOptionsDefinition | None) -> MetadataOptions | None:
    if options is None:
        return None
    return MetadataOptions(
        http_endpoint=options.http_endpoint,
        http_protocol_ipv6=options.http_protocol_ipv6,
        http_put_response_hop_limit=options.http_put_response_hop_limit,
        http_tokens=options.http_tokens,
    )
