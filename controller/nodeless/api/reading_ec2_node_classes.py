"""Manifests to the model: EC2NodeClass. Each selector term becomes a term of the model."""

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.ec2_hardware import BlockDeviceV1, VolumeV1
from nodeless.api.ec2_node_class import FAMILY_OF_ALIAS, Ec2NodeClass, Ec2NodeClassSpec, Ec2NodeClassStatus
from nodeless.api.ec2_selectors import AmiTerm, CapacityReservationTerm, SecurityGroupTerm, SubnetTerm
from nodeless.api.errors import InvalidObject
from nodeless.api.kinds import EC2_NODE_CLASS
from nodeless.api.metadata import read_metadata
from nodeless.api.reading_parts import read_conditions, read_kubelet
from nodeless.api.unsupported import unsupported
from nodeless.api.validation import require_valid, subject_of
from nodeless.model.hardware import ConnectionTracking, CpuOptions, NetworkInterface
from nodeless.model.pools import EC2_NODE_CLASS as EC2_NODE_CLASS_KIND
from nodeless.model.pools import BlockDevice, Kubelet, MetadataOptions, NodeClass, Reference, SelectorTerm
from nodeless.model.quantity import parse_units

_LATEST = "latest"


def read_ec2_node_class(manifest: Mapping[str, Any]) -> NodeClass:
    """The node class that an EC2NodeClass describes.

    Raises:
        InvalidObject: It breaks rules, or wants what the controller cannot do; all of it is named.
    """
    require_valid(manifest, EC2_NODE_CLASS)
    manifest = drop_nulls(manifest)
    if refused := unsupported(manifest):
        raise InvalidObject(subject_of(manifest), refused)
    document = msgspec.convert(manifest, Ec2NodeClass)
    metadata, spec = read_metadata(manifest), document.spec
    status = document.status or Ec2NodeClassStatus()
    alias = next((term.alias for term in spec.ami_selector_terms if term.alias), "")
    published = FAMILY_OF_ALIAS.get(alias.partition("@")[0], "")
    release = alias.partition("@")[2]
    family = spec.ami_family or published
    return NodeClass(
        reference=Reference(EC2_NODE_CLASS_KIND, metadata.name, metadata.uid),
        ami_family=family,
        image_family=published if published != family else "",
        image_release="" if release == _LATEST else release,
        subnets=tuple(_subnet_term(term) for term in spec.subnet_selector_terms),
        security_groups=tuple(_group_term(term) for term in spec.security_group_selector_terms),
        images=tuple(_image_term(term) for term in spec.ami_selector_terms if not term.alias),
        instance_profile=spec.instance_profile,
        role=spec.role,
        user_data=spec.user_data,
        tags=tuple(sorted((spec.tags or {}).items())),
        block_devices=_block_devices(spec),
        metadata_options=_metadata_options(spec),
        detailed_monitoring=bool(spec.detailed_monitoring),
        context=spec.context,
        kubelet=read_kubelet(spec.kubelet) if spec.kubelet is not None else Kubelet(),
        instance_store_raid=spec.instance_store_policy == "RAID0",
        network_interfaces=_network_interfaces(spec),
        public_address=spec.associate_public_ip_address,
        ipv4_prefixes=spec.ip_prefix_count,
        connection_tracking=_connection_tracking(spec),
        cpu_options=_cpu_options(spec),
        enclaves=spec.enclave_options is not None and bool(spec.enclave_options.enabled),
        generation=metadata.generation,
        deletion_timestamp=metadata.deletion_timestamp,
        conditions=read_conditions(status.conditions),
        capacity_reservations=tuple(
            _reservation_term(term) for term in spec.capacity_reservation_selector_terms or ()
        ),
        placement_group=_placement_group(spec),
        finalizers=metadata.finalizers,
    )


def _if_set(text: str | None) -> tuple[str, ...]:
    return (text,) if text else ()


def _tags(tags: Mapping[str, str] | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((key, (value,)) for key, value in sorted((tags or {}).items()))


def _subnet_term(term: SubnetTerm) -> SelectorTerm:
    return SelectorTerm(tags=_tags(term.tags), ids=_if_set(term.id))


def _group_term(term: SecurityGroupTerm) -> SelectorTerm:
    return SelectorTerm(tags=_tags(term.tags), ids=_if_set(term.id), names=_if_set(term.name))


def _reservation_term(term: CapacityReservationTerm) -> SelectorTerm:
    return SelectorTerm(
        tags=_tags(term.tags),
        ids=_if_set(term.id),
        owners=_if_set(term.owner_id),
        match_criteria=term.instance_match_criteria or "",
    )


def _placement_group(spec: Ec2NodeClassSpec) -> str:
    given = spec.placement_group_selector
    return "" if given is None else given.id or given.name or ""


def _image_term(term: AmiTerm) -> SelectorTerm:
    return SelectorTerm(
        tags=_tags(term.tags),
        ids=_if_set(term.id),
        names=_if_set(term.name),
        owners=_if_set(term.owner),
        parameters=_if_set(term.ssm_parameter),
    )


def _block_devices(spec: Ec2NodeClassSpec) -> tuple[BlockDevice, ...]:
    return tuple(_block_device(mapping) for mapping in spec.block_device_mappings or ())


def _block_device(mapping: BlockDeviceV1) -> BlockDevice:
    ebs = mapping.ebs or VolumeV1()
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
        initialization_rate=ebs.volume_initialization_rate,
        root=bool(mapping.root_volume),
    )


def _network_interfaces(spec: Ec2NodeClassSpec) -> tuple[NetworkInterface, ...]:
    """By card and place: the order in which they are written means nothing."""
    return tuple(
        sorted(
            NetworkInterface(
                network_interface.network_card_index,
                network_interface.device_index,
                network_interface.interface_type == "efa-only",
            )
            for network_interface in spec.network_interfaces or ()
        )
    )


def _connection_tracking(spec: Ec2NodeClassSpec) -> ConnectionTracking | None:
    given = spec.connection_tracking
    if given is None:
        return None
    return ConnectionTracking(given.tcp_established_timeout, given.udp_stream_timeout, given.udp_timeout)


def _cpu_options(spec: Ec2NodeClassSpec) -> CpuOptions | None:
    given = spec.cpu_options
    if given is None:
        return None
    nested = given.nested_virtualization
    return CpuOptions(
        given.core_count, given.threads_per_core, None if nested is None else nested == "enabled"
    )


def _metadata_options(spec: Ec2NodeClassSpec) -> MetadataOptions:
    options = spec.metadata_options
    return MetadataOptions(
        http_endpoint=options.http_endpoint,
        http_protocol_ipv6=options.http_protocol_ipv6,
        http_put_response_hop_limit=options.http_put_response_hop_limit,
        http_tokens=options.http_tokens,
    )
