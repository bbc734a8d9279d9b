"""What a launch template says, as the spec of an EC2NodeClass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeless.explain.migration.answers import Answers, Placed
from nodeless.explain.migration.ledger import BadAnswer, Ledger, Members
from nodeless.explain.migration.user_data import StartUp, read_start_up

_ON_CLASS = "EC2NodeClass spec."
#: Tags that belong to the group, or to what made it.
_OTHERS_TAGS = (
    "aws:",
    "eks:",
    "k8s.io/cluster-autoscaler",
    "kubernetes.io/cluster/",
    "karpenter.",
    "alpha.eksctl.io/",
    "eksctl.",
)
_NO_FIELD = "EC2NodeClass has no field for it"
_PER_INSTANCE = "belongs to one instance, but a pool launches many"
_IGNORED = {
    "KernelId": "belongs to paravirtual images, which no current type runs",
    "RamDiskId": "belongs to paravirtual images, which no current type runs",
    "KeyName": f"{_NO_FIELD}; hint: reach nodes by Systems Manager, or add the public key in userData",
    "DisableApiTermination": "the controller has to be able to terminate its instances",
    "DisableApiStop": "the controller has to be able to terminate its instances",
    "InstanceInitiatedShutdownBehavior": "an instance that shuts down is terminated, its node replaced",
    "ElasticGpuSpecifications": "AWS no longer sells it",
    "ElasticInferenceAccelerators": "AWS no longer sells it",
    "CreditSpecification": f"{_NO_FIELD}: burstable types use the account's default",
    "LicenseSpecifications": f"{_NO_FIELD}; hint: associate the license with the image",
    "HibernationOptions": "nodes are terminated, never hibernated",
    "PrivateDnsNameOptions": f"{_NO_FIELD}: the subnet determines the names",
    "MaintenanceOptions": "an impaired instance is replaced by the controller",
    "NetworkPerformanceOptions": f"{_NO_FIELD}: the weighting of bandwidth is the type's default",
    "SecondaryInterfaces": _NO_FIELD,
    "Operator": "says which AWS service manages the template",
}
_NO_SIZE = (
    "the size is that of the image's snapshot, but blockDeviceMappings needs one; "
    "hint: add the device with a volumeSize"
)
_WITHOUT_EFFECT = {"EbsOptimized": "current types are optimized for EBS by default"}
_METADATA = {
    "HttpTokens": "httpTokens",
    "HttpPutResponseHopLimit": "httpPutResponseHopLimit",
    "HttpEndpoint": "httpEndpoint",
    "HttpProtocolIpv6": "httpProtocolIPv6",
}
#: What EC2 takes where the block is there and a member is not (api/conversion_classes).
_FILLED_IN = {"httpTokens": "optional", "httpPutResponseHopLimit": 1}
_EBS = {
    "VolumeType": "volumeType",
    "Iops": "iops",
    "Throughput": "throughput",
    "Encrypted": "encrypted",
    "KmsKeyId": "kmsKeyID",
    "SnapshotId": "snapshotID",
    "DeleteOnTermination": "deleteOnTermination",
    "VolumeInitializationRate": "volumeInitializationRate",
}


@dataclass(slots=True)
class Launch:
    """A launch template's share of a group."""

    spec: dict[str, Any] = field(default_factory=dict)
    """Of the EC2NodeClass, without image, role and subnets."""
    image: str = ""
    instance_type: str = ""
    instance_requirements: Members | None = None
    profile: str = ""
    """Name of the instance profile."""
    market: str = ""
    """`spot` or `capacity-block`; empty: on-demand."""
    zone: str = ""
    reserved: bool = False
    start_up: StartUp = field(default_factory=StartUp)


def template_of(reference: Members, answers: Answers, what: str) -> Placed:
    """The version of the launch template that a group names. Raises BadAnswer."""
    identity = reference.text("LaunchTemplateId") or reference.text("id")
    name = reference.text("LaunchTemplateName") or reference.text("name")
    version = reference.text("Version") or reference.text("version") or "$Default"
    versions = [
        placed
        for placed in answers.of("LaunchTemplateVersions")
        if (identity and placed.name("LaunchTemplateId") == identity)
        or (not identity and name and placed.name("LaunchTemplateName") == name)
    ]
    if version == "$Latest":
        chosen = sorted(versions, key=_number)[-1:]
    elif version == "$Default":
        chosen = [placed for placed in versions if placed.value.get("DefaultVersion") is True]
    else:
        chosen = [placed for placed in versions if str(placed.value.get("VersionNumber")) == version]
    if chosen:
        return chosen[0]
    given = f"--launch-template-id {identity}" if identity else f"--launch-template-name {name}"
    raise BadAnswer(
        f"{reference.place}: {what}: version {version} of its launch template {name or identity} is not in "
        f"the "
        f"input; hint: add the answer of aws ec2 describe-launch-template-versions {given} --versions "
        f"'{version}'"
    )


def _number(placed: Placed) -> int:
    number = placed.value.get("VersionNumber")
    return number if isinstance(number, int) else 0


def read_template(template: Placed, ledger: Ledger) -> Launch:
    """The settings of one version of a launch template. Raises BadAnswer."""
    name = template.name("LaunchTemplateName") or template.name("LaunchTemplateId")
    source = f"LaunchTemplate/{name}:{template.value.get('VersionNumber')}"
    members = Members(template.value, source, ledger, place=template.place)
    members.state("LaunchTemplateId", "LaunchTemplateName", "VersionNumber", "VersionDescription")
    members.state("CreateTime", "CreatedBy", "DefaultVersion", "Operator")
    data = members.below("LaunchTemplateData")
    members.close()
    return Launch() if data is None else read_data(data)


def read_configuration(configuration: Placed, ledger: Ledger) -> Launch:
    """The settings of a launch configuration, the older form. Raises BadAnswer."""
    given = dict(configuration.value)
    source = f"LaunchConfiguration/{configuration.name('LaunchConfigurationName')}"
    profile = given.pop("IamInstanceProfile", None)
    if isinstance(profile, str) and profile:
        given["IamInstanceProfile"] = {"Arn" if profile.startswith("arn:") else "Name": profile}
    if groups := given.pop("SecurityGroups", None):
        given["SecurityGroupIds"] = groups
    if "InstanceMonitoring" in given:
        given["Monitoring"] = given.pop("InstanceMonitoring")
    if "AssociatePublicIpAddress" in given:
        public = given.pop("AssociatePublicIpAddress")
        given["NetworkInterfaces"] = [{"DeviceIndex": 0, "AssociatePublicIpAddress": public}]
    price = given.pop("SpotPrice", None)
    if price:
        given["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": {"MaxPrice": price}}
    members = Members(given, source, ledger, place=configuration.place)
    members.state("LaunchConfigurationName", "LaunchConfigurationARN", "CreatedTime")
    members.leave("EC2-Classic no longer exists", "ClassicLinkVPCId", "ClassicLinkVPCSecurityGroups")
    members.leave(_IGNORED["RamDiskId"], "RamdiskId")
    members.leave(_TENANCY, "PlacementTenancy")
    return read_data(members)


_TENANCY = "nodes have shared tenancy unless a requirement karpenter.k8s.aws/instance-tenancy says otherwise"


def read_data(data: Members) -> Launch:
    """The data of a launch template. Raises BadAnswer."""
    found = Launch()
    found.image = data.text("ImageId")
    found.instance_type = data.text("InstanceType")
    found.instance_requirements = data.below("InstanceRequirements")
    _read_profile(data, found)
    _read_groups(data, found)
    _read_disks(data, found)
    _read_metadata_options(data, found)
    _read_tags(data, found)
    _read_market(data, found)
    _read_hardware(data, found)
    encoded = data.text("UserData")
    if encoded:
        found.start_up = read_start_up(encoded, data.source, data.path("UserData"), data.ledger)
        if found.start_up.rest:
            found.spec["userData"] = found.start_up.rest
        if found.start_up.kubelet:
            found.spec["kubelet"] = found.start_up.kubelet
        if found.start_up.instance_store_raid:
            found.spec["instanceStorePolicy"] = "RAID0"
    for name, reason in _IGNORED.items():
        data.leave(reason, name)
    for name, reason in _WITHOUT_EFFECT.items():
        data.leave(reason, name, matters=False)
    data.close()
    return found


def _read_profile(data: Members, found: Launch) -> None:
    profile = data.below("IamInstanceProfile")
    if profile is not None:
        to = f"{_ON_CLASS}instanceProfile"
        arn = profile.text("Arn", to)
        found.profile = profile.text("Name", to) or arn.rpartition("/")[2]
        profile.close()


def _read_groups(data: Members, found: Launch) -> None:
    groups = [*data.texts("SecurityGroupIds", f"{_ON_CLASS}securityGroupSelectorTerms")]
    names = data.texts("SecurityGroups", f"{_ON_CLASS}securityGroupSelectorTerms")
    for interface in data.each("NetworkInterfaces"):
        groups += interface.texts("Groups", f"{_ON_CLASS}securityGroupSelectorTerms")
        public = interface.take("AssociatePublicIpAddress", f"{_ON_CLASS}associatePublicIPAddress")
        if isinstance(public, bool):
            found.spec["associatePublicIPAddress"] = public
        prefixes = interface.number("Ipv4PrefixCount", f"{_ON_CLASS}ipPrefixCount")
        if prefixes:
            found.spec["ipPrefixCount"] = prefixes
        _read_interface(interface, found)
    terms = [{"id": group} for group in dict.fromkeys(groups)]
    terms += [{"name": name} for name in names if not name.startswith("sg-")]
    terms += [{"id": name} for name in names if name.startswith("sg-")]
    if terms:
        found.spec["securityGroupSelectorTerms"] = terms


def _read_interface(interface: Members, found: Launch) -> None:
    kind = interface.text("InterfaceType")
    if kind in ("efa", "efa-only"):
        interface.ledger.leave(
            interface.source,
            interface.path("InterfaceType"),
            kind,
            "nodes get EFA interfaces for pods that request vpc.amazonaws.com/efa; hint: request them",
        )
    tracking = interface.below("ConnectionTrackingSpecification")
    if tracking is not None:
        to = f"{_ON_CLASS}connectionTracking."
        members = {
            "TcpEstablishedTimeout": "tcpEstablishedTimeout",
            "UdpStreamTimeout": "udpStreamTimeout",
            "UdpTimeout": "udpTimeout",
        }
        seconds = {mine: tracking.number(name, to + mine) for name, mine in members.items()}
        found.spec["connectionTracking"] = {
            mine: number for mine, number in seconds.items() if number is not None
        }
        tracking.close()
    interface.leave(_PER_INSTANCE, "NetworkInterfaceId", "PrivateIpAddress", "PrivateIpAddresses")
    interface.leave(_PER_INSTANCE, "Ipv6Addresses", "Ipv4Prefixes", "Ipv6Prefixes", "SubnetId")
    interface.leave(
        "the VPC CNI assigns addresses to nodes when pods need them", "SecondaryPrivateIpAddressCount"
    )
    interface.leave(_NO_FIELD, "AssociateCarrierIpAddress", "Ipv6AddressCount", "Ipv6PrefixCount")
    interface.leave(_NO_FIELD, "PrimaryIpv6", "EnaSrdSpecification", "EnaQueueCount")
    interface.leave(
        "the first interface always has this index", "DeviceIndex", "NetworkCardIndex", matters=False
    )
    interface.leave("interfaces are deleted with their instance", "DeleteOnTermination", matters=False)
    interface.leave("is only a description", "Description", matters=False)
    interface.close()


def _read_disks(data: Members, found: Launch) -> None:
    mappings = []
    for mapping in data.each("BlockDeviceMappings"):
        device, to = mapping.text("DeviceName"), f"{_ON_CLASS}blockDeviceMappings"
        mapping.leave(
            "disks of the instance are used through instanceStorePolicy: RAID0 or not at all", "VirtualName"
        )
        mapping.leave("a device of the image cannot be removed", "NoDevice")
        ebs = mapping.below("Ebs")
        mapping.close()
        if ebs is None:
            continue
        if "VolumeSize" not in ebs and "SnapshotId" not in ebs:
            mapping.ledger.leave(mapping.source, mapping.path("Ebs"), mapping.read("Ebs"), _NO_SIZE)
            continue
        made = {
            mine: value for name, mine in _EBS.items() if (value := ebs.take(name, f"{to}.ebs")) is not None
        }
        size = ebs.number("VolumeSize", f"{to}.ebs.volumeSize")
        if size:
            made["volumeSize"] = f"{size}Gi"
        ebs.leave("volumes are on the first EBS card", "EbsCardIndex")
        ebs.close()
        mapping.ledger.carry(mapping.source, mapping.path("DeviceName"), f"{to}.deviceName")
        mappings.append({"deviceName": device, "ebs": made})
    if mappings:
        found.spec["blockDeviceMappings"] = mappings


def _read_metadata_options(data: Members, found: Launch) -> None:
    options = data.below("MetadataOptions")
    if options is None:
        return
    to = f"{_ON_CLASS}metadataOptions."
    given = {
        mine: value
        for name, mine in _METADATA.items()
        if (value := options.take(name, to + mine)) is not None
    }
    found.spec["metadataOptions"] = {**_FILLED_IN, **given}
    options.state("State")
    if options.text("InstanceMetadataTags") == "enabled":
        reason = f"{_NO_FIELD}: tags are not in the metadata of instances"
        options.ledger.leave(options.source, options.path("InstanceMetadataTags"), "enabled", reason)
    else:
        options.state("InstanceMetadataTags")
    options.close()


def _read_tags(data: Members, found: Launch) -> None:
    tags: dict[str, str] = {}
    for specification in data.each("TagSpecifications"):
        kind = specification.text("ResourceType")
        for tag in specification.each("Tags"):
            key, value = tag.text("Key"), tag.text("Value")
            path = tag.path(key)
            if key.startswith(_OTHERS_TAGS):
                reason = "is a tag of the group's own controller"
                tag.ledger.leave(tag.source, path, value, reason, matters=False)
            elif kind in ("instance", "volume", "network-interface", "spot-instances-request"):
                tags[key] = value
                tag.ledger.carry(tag.source, path, f"{_ON_CLASS}tags")
            else:
                reason = f"tags of {kind} are not set by the controller"
                tag.ledger.leave(tag.source, path, value, reason)
            tag.close()
        specification.close()
    if tags:
        found.spec["tags"] = tags


def add_tags(spec: dict[str, Any], tags: Mapping[str, str], source: str, ledger: Ledger) -> None:
    """Tags that a group puts on its instances, besides those of its template."""
    for key, value in tags.items():
        if key.startswith(_OTHERS_TAGS):
            ledger.leave(
                source, f"Tags {key}", value, "is a tag of the group's own controller", matters=False
            )
        else:
            spec.setdefault("tags", {})[key] = value
            ledger.carry(source, f"Tags {key}", f"{_ON_CLASS}tags")


def _read_market(data: Members, found: Launch) -> None:
    market = data.below("InstanceMarketOptions")
    if market is not None:
        found.market = market.text("MarketType", "NodePool requirement karpenter.sh/capacity-type")
        market.leave("nodeless takes the lowest price instead of a bound on it", "SpotOptions")
        market.close()
    reservation = data.below("CapacityReservationSpecification")
    if reservation is not None:
        read_reservation(reservation, found.spec)
        found.reserved = "capacityReservationSelectorTerms" in found.spec
    placement = data.below("Placement")
    if placement is not None:
        to = f"{_ON_CLASS}placementGroupSelector"
        identity, name = placement.text("GroupId", f"{to}.id"), placement.text("GroupName", f"{to}.name")
        if identity or name:
            found.spec["placementGroupSelector"] = {"id": identity} if identity else {"name": name}
        found.zone = placement.text("AvailabilityZone", "NodePool requirement topology.kubernetes.io/zone")
        if placement.read("Tenancy") not in (None, "default"):
            placement.leave(_TENANCY, "Tenancy")
        placement.leave(_NO_FIELD, "Affinity", "HostId", "HostResourceGroupArn", "SpreadDomain")
        placement.leave(_NO_FIELD, "PartitionNumber", "AvailabilityZoneId")
        placement.close()


def read_reservation(reservation: Members, spec: dict[str, Any]) -> None:
    """The capacity reservations that a template or group names."""
    to = f"{_ON_CLASS}capacityReservationSelectorTerms"
    target = reservation.below("CapacityReservationTarget")
    if target is not None:
        identity = target.text("CapacityReservationId", to)
        if identity:
            spec["capacityReservationSelectorTerms"] = [{"id": identity}]
        target.leave(
            f"resource groups are not read; hint: select their reservations by id or tag in {to}",
            "CapacityReservationResourceGroupArn",
        )
        target.close()
    preference = reservation.text("CapacityReservationPreference")
    if preference and not spec.get("capacityReservationSelectorTerms"):
        reason = (
            f"even open reservations are used only if {to} selects them; hint: select those that you have"
        )
        matters = preference != "none"
        reservation.ledger.leave(
            reservation.source,
            reservation.path("CapacityReservationPreference"),
            preference,
            reason,
            matters=matters,
        )
    elif preference:
        reservation.ledger.carry(reservation.source, reservation.path("CapacityReservationPreference"), to)


def _read_hardware(data: Members, found: Launch) -> None:
    monitoring = data.below("Monitoring")
    if monitoring is not None:
        if monitoring.take("Enabled", f"{_ON_CLASS}detailedMonitoring") is True:
            found.spec["detailedMonitoring"] = True
        monitoring.close()
    enclave = data.below("EnclaveOptions")
    if enclave is not None:
        if enclave.take("Enabled", f"{_ON_CLASS}enclaveOptions.enabled") is True:
            found.spec["enclaveOptions"] = {"enabled": True}
        enclave.close()
    cpu = data.below("CpuOptions")
    if cpu is not None:
        to = f"{_ON_CLASS}cpuOptions."
        numbers = {"CoreCount": "coreCount", "ThreadsPerCore": "threadsPerCore"}
        made: dict[str, Any] = {
            mine: number
            for name, mine in numbers.items()
            if (number := cpu.number(name, to + mine)) is not None
        }
        nested = cpu.text("NestedVirtualization", f"{to}nestedVirtualization")
        if nested:
            made["nestedVirtualization"] = nested
        cpu.leave(_NO_FIELD, "AmdSevSnp")
        cpu.close()
        if made:
            found.spec["cpuOptions"] = made
