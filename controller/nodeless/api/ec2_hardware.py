"""What an EC2NodeClass says of disks, network, CPU and the metadata service of an instance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, field

from nodeless.api.cel import rule, rules
from nodeless.api.metav1 import Definition, Int32, Int64
from nodeless.api.rule_codes import RuleCode

_VOLUME_TYPES = ["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"]
#: 1 to 59000 Gi, 1 to 64000 G, 1 to 58 Ti, 1 to 64 T.
VOLUME_SIZE = (
    r"^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi"
    r"|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G"
    r"|(?:[1-9]|[1-4][0-9]|5[0-8])Ti|(?:[1-9]|[1-5][0-9]|6[0-4])T)$"
)


def _choice(*choices: str, default: str | None = None) -> Any:
    return Meta(extra_json_schema={"enum": [*choices]} | ({"default": default} if default else {}))


class VolumeV1(Definition):
    """An EBS volume. One of volumeSize and snapshotID is needed."""

    volume_size: Annotated[str, Meta(extra_json_schema={"pattern": VOLUME_SIZE})] | None = None
    """Size in Gi, G, Ti or T, as 50Gi."""
    volume_type: Annotated[str, _choice(*_VOLUME_TYPES)] | None = None
    """standard, io1, io2, gp2, gp3, sc1 or st1."""
    iops: Int64 | None = None
    """Operations per second."""
    throughput: Int64 | None = None
    """MiB per second."""
    encrypted: bool | None = None
    """Whether the volume is encrypted."""
    kms_key_id: str | None = field(default=None, name="kmsKeyID")
    """Key that encrypts it, when it is not the account's default."""
    delete_on_termination: bool | None = None
    """Whether the volume goes with its instance."""
    snapshot_id: str | None = field(default=None, name="snapshotID")
    """Snapshot that the volume is made of."""
    volume_initialization_rate: Annotated[Int32, Meta(ge=100, le=300)] | None = None
    """MiB per second at which a snapshot's blocks are fetched."""


class BlockDeviceV1(Definition):
    """One volume of each instance."""

    device_name: str | None = None
    """Device that the volume is attached as, as /dev/xvda."""
    ebs: (
        Annotated[
            VolumeV1,
            Meta(
                extra_json_schema=rules(
                    rule(
                        "has(self.snapshotID) || has(self.volumeSize)",
                        "needs volumeSize or snapshotID",
                        lambda ebs: ebs.get("snapshotID") is None and ebs.get("volumeSize") is None,
                        "for example volumeSize: 50Gi",
                        code=RuleCode.INVALID_BLOCK_DEVICE,
                    ),
                    rule(
                        "!has(self.volumeInitializationRate) || "
                        "(has(self.snapshotID) && self.snapshotID != '')",
                        "needs snapshotID beside volumeInitializationRate",
                        lambda ebs: (
                            ebs.get("volumeInitializationRate") is not None and not ebs.get("snapshotID")
                        ),
                        code=RuleCode.INVALID_BLOCK_DEVICE,
                    ),
                )
            ),
        ]
        | None
    ) = None
    root_volume: bool | None = None
    """Whether the kubelet's directory is on this volume."""


BLOCK_DEVICE_RULES = (
    rule(
        "self.filter(each, has(each.rootVolume) && each.rootVolume).size() <= 1",
        "must have at most one rootVolume",
        lambda mappings: sum(mapping.get("rootVolume") is True for mapping in mappings) > 1,
        code=RuleCode.INVALID_BLOCK_DEVICE,
    ),
)


class MetadataOptionsV1(Definition):
    """Access of the instance to its metadata service."""

    http_endpoint: Annotated[str, _choice("enabled", "disabled", default="enabled")] = "enabled"
    """Whether the service answers: enabled or disabled."""
    http_protocol_ipv6: Annotated[str, _choice("enabled", "disabled", default="disabled")] = field(
        default="disabled", name="httpProtocolIPv6"
    )
    """Whether it answers over IPv6: enabled or disabled."""
    http_put_response_hop_limit: Annotated[Int64, Meta(ge=1, le=64, extra_json_schema={"default": 1})] = 1
    """How many network hops an answer survives, from 1 to 64."""
    http_tokens: Annotated[str, _choice("required", "optional", default="required")] = "required"
    """Whether a session token is needed: optional or required."""


class EnclaveOptions(Definition):
    """Nitro Enclaves."""

    enabled: bool | None = None
    """Whether instances can hold enclaves."""


class PlacementGroupSelector(Definition):
    """The placement group of the instances."""

    name: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    """Name of the group."""
    id: Annotated[str, Meta(extra_json_schema={"pattern": "^pg-[0-9a-z]+$"})] | None = None
    """Id of the group."""


class NetworkInterface(Definition):
    """One network interface."""

    network_card_index: Annotated[Int32, Meta(ge=0)]
    """Network card, from 0 on."""
    device_index: Annotated[Int32, Meta(ge=0)]
    """Place on the card, from 0 on."""
    interface_type: Annotated[str, _choice("interface", "efa-only")]
    """interface, or efa-only for one without IP."""


def _places(interfaces: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    return [(interface.get("networkCardIndex"), interface.get("deviceIndex")) for interface in interfaces]


def _no_primary(interfaces: Sequence[Mapping[str, Any]]) -> bool:
    return len(interfaces) > 0 and not any(
        place == (0, 0) and interface.get("interfaceType") == "interface"
        for place, interface in zip(_places(interfaces), interfaces, strict=True)
    )


def _shared_place(interfaces: Sequence[Mapping[str, Any]]) -> bool:
    return max(Counter(_places(interfaces)).values(), default=0) > 1


def _two_efa_only(interfaces: Sequence[Mapping[str, Any]]) -> bool:
    cards = [
        interface.get("networkCardIndex")
        for interface in interfaces
        if interface.get("interfaceType") == "efa-only"
    ]
    return len(set(cards)) != len(cards)


NETWORK_INTERFACE_RULES = (
    rule(
        "self.size() == 0 || self.exists(each, each.networkCardIndex == 0 && each.deviceIndex == 0 && "
        "each.interfaceType == 'interface')",
        "needs the first interface: networkCardIndex 0, deviceIndex 0, interfaceType interface",
        _no_primary,
        code=RuleCode.INVALID_NETWORK_INTERFACE,
    ),
    rule(
        "self.all(each, self.exists_one(other, each.networkCardIndex == other.networkCardIndex && "
        "each.deviceIndex == other.deviceIndex))",
        "must not use one place (networkCardIndex, deviceIndex) twice",
        _shared_place,
        code=RuleCode.INVALID_NETWORK_INTERFACE,
    ),
    rule(
        "self.all(each, each.interfaceType != 'efa-only' || self.exists_one(other, "
        "other.interfaceType == 'efa-only' && each.networkCardIndex == other.networkCardIndex))",
        "must have at most one efa-only interface on a network card",
        _two_efa_only,
        code=RuleCode.INVALID_NETWORK_INTERFACE,
    ),
)


class ConnectionTracking(Definition):
    """How long idle connections are remembered, in seconds. At least one member is needed."""

    tcp_established_timeout: Annotated[Int32, Meta(ge=60, le=432000)] | None = None
    """For established TCP connections, from 60 to 432000."""
    udp_stream_timeout: Annotated[Int32, Meta(ge=60, le=180)] | None = None
    """For UDP with traffic in both directions, from 60 to 180."""
    udp_timeout: Annotated[Int32, Meta(ge=30, le=60)] | None = None
    """For other UDP, from 30 to 60."""


class CpuOptions(Definition):
    """Settings of the processor."""

    core_count: Annotated[Int32, Meta(ge=1)] | None = None
    """Cores of each instance."""
    threads_per_core: Annotated[Int32, Meta(ge=1, le=2)] | None = None
    """Threads of each core: 1 or 2."""
    nested_virtualization: Annotated[str, _choice("enabled", "disabled")] | None = None
    """Whether instances can run virtual machines: enabled or disabled."""
