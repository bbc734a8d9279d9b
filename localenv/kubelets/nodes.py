"""An instance -> the Node object that its kubelet and the cloud-controller-manager make of it.

Pure. The kubelet registers with what its flags say and the taint that waits for the cloud-controller-manager;
that one adds zone, region and type and takes the taint away. Next: `instances` acts it out.
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from localenv.kubelets.bootstrap import Bootstrap
from localenv.kubelets.capacity import DEFAULT_DISK, allocatable, capacity
from localenv.kubelets.devices import EFA, PLUGIN_RESOURCES
from localenv.kubelets.quantities import Resources, format_quantity

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
_REGION = re.compile(r"[a-z]+(?:-[a-z]+)+-\d+")
KUBELET_VERSION = "v1.36.3"
_EFA_INTERFACES = ("efa", "efa-only")
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_IMAGES = {
    "AL2": "Amazon Linux 2",
    "AL2023": "Amazon Linux 2023",
    "Bottlerocket": "Bottlerocket OS",
    "Windows": "Windows Server",
}


@dataclass(frozen=True, slots=True)
class Instance:
    """What a kubelet learns of its instance, from DescribeInstances.

    Attributes:
        launch_time: seconds since 1970.
        instance_profile: ARN of its instance profile, "" without one.
        root_device: name of the device that it boots from.
        volumes: device names and ids of its volumes.
        efa_interfaces: network interfaces that are of EFA.
    """

    id: str
    type: str
    zone: str
    state: str
    private_dns_name: str
    private_ip: str
    subnet_id: str
    launch_time: float
    instance_profile: str
    root_device: str = ""
    volumes: tuple[tuple[str, str], ...] = ()
    efa_interfaces: int = 0

    @property
    def region(self) -> str:
        """The zone's name without its letter (a Local Zone's: without its suffix)."""
        match = _REGION.match(self.zone)
        return match[0] if match else self.zone

    @property
    def provider_id(self) -> str:
        return f"aws:///{self.zone}/{self.id}"


def read_instance(document: Mapping[str, Any]) -> Instance:
    """Make an instance of one entry of DescribeInstances."""
    return Instance(
        id=document["InstanceId"],
        type=document["InstanceType"],
        zone=document["Placement"]["AvailabilityZone"],
        state=document["State"]["Name"],
        private_dns_name=document.get("PrivateDnsName", ""),
        private_ip=document.get("PrivateIpAddress", ""),
        subnet_id=document.get("SubnetId", ""),
        launch_time=document["LaunchTime"].timestamp(),
        instance_profile=document.get("IamInstanceProfile", {}).get("Arn", ""),
        root_device=document.get("RootDeviceName", ""),
        volumes=tuple(
            (block_device_mapping["DeviceName"], block_device_mapping["Ebs"]["VolumeId"])
            for block_device_mapping in document.get("BlockDeviceMappings", ())
            if "Ebs" in block_device_mapping
        ),
        efa_interfaces=sum(
            interface.get("InterfaceType") in _EFA_INTERFACES
            for interface in document.get("NetworkInterfaces", ())
        ),
    )


def resources_as_json(resources: Resources) -> dict[str, str]:
    """Return a resource list as the API's JSON has it."""
    return {name: format_quantity(name, amount) for name, amount in resources.items()}


def boot_id(instance_id: str, reboots: int) -> str:
    """Return what the kernel calls this boot: another name after each reboot."""
    return f"{instance_id}-{reboots}"


def registration(
    instance: Instance,
    record: Mapping[str, Any],
    bootstrap: Bootstrap,
    reboots: int = 0,
    disk: Decimal = DEFAULT_DISK,
    drivers: Container[str] = (),
) -> dict[str, Any]:
    """Return the Node that the kubelet posts: not ready yet.

    Args:
        instance: where it runs.
        record: its type's entry of DescribeInstanceTypes.
        bootstrap: how its kubelet was started.
        reboots: how often the instance was rebooted.
        disk: bytes of the volume where images, logs and emptyDirs are.
        drivers: DRA drivers of the cluster; of the devices of all others a device plugin tells.
    """
    whole = capacity(record, bootstrap, disk)
    if instance.efa_interfaces:
        whole[PLUGIN_RESOURCES[EFA]] = Decimal(instance.efa_interfaces)
    for driver, resource in PLUGIN_RESOURCES.items():
        if driver in drivers:
            whole.pop(resource, None)
    architectures = record["ProcessorInfo"]["SupportedArchitectures"]
    architecture = next(
        (_ARCHITECTURES[architecture] for architecture in architectures if architecture in _ARCHITECTURES),
        "amd64",
    )
    system = "windows" if bootstrap.family == "Windows" else "linux"
    labels = {
        **bootstrap.labels,
        "kubernetes.io/hostname": instance.private_dns_name,
        "kubernetes.io/arch": architecture,
        "kubernetes.io/os": system,
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": system,
    }
    taints = [taint.as_document() for taint in bootstrap.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": instance.private_dns_name, "labels": labels},
        "spec": {
            "providerID": instance.provider_id,
            "taints": [*taints, {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": resources_as_json(whole),
            "allocatable": resources_as_json(allocatable(record, bootstrap, whole)),
            "addresses": addresses(instance.private_ip, instance.private_dns_name),
            "conditions": [],
            "nodeInfo": {
                **node_info(architecture, _IMAGES[bootstrap.family], instance.id, system),
                "bootID": boot_id(instance.id, reboots),
            },
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }


def addresses(ip: str, name: str) -> list[dict[str, str]]:
    """Return `status.addresses`."""
    return [
        {"type": "InternalIP", "address": ip},
        {"type": "InternalDNS", "address": name},
        {"type": "Hostname", "address": name},
    ]


def node_info(architecture: str, image: str, machine: str, system: str = "linux") -> dict[str, str]:
    """Return `status.nodeInfo`."""
    return {
        "architecture": architecture,
        "bootID": machine,
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": "6.12.40",
        "kubeProxyVersion": KUBELET_VERSION,
        "kubeletVersion": KUBELET_VERSION,
        "machineID": machine,
        "operatingSystem": system,
        "osImage": image,
        "systemUUID": machine,
    }


def cloud_labels(instance: Instance) -> dict[str, str]:
    """Return the labels that the cloud-controller-manager adds."""
    return {
        "node.kubernetes.io/instance-type": instance.type,
        "beta.kubernetes.io/instance-type": instance.type,
        "topology.kubernetes.io/zone": instance.zone,
        "topology.kubernetes.io/region": instance.region,
        "failure-domain.beta.kubernetes.io/zone": instance.zone,
        "failure-domain.beta.kubernetes.io/region": instance.region,
    }


def conditions(now: str, *, ready: bool) -> list[dict[str, str]]:
    """Return `status.conditions` of a healthy kubelet, whose network is up or not yet."""
    healthy = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
        if ready
        else ("Ready", "False", "KubeletNotReady", "container runtime network not ready"),
    ]
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, status, reason, message in healthy
    ]
