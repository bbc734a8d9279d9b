"""The published table of instance types (Karpenter v0.27, AL2, defaults) follows from EC2's own records."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localenv.aws import LocalAws
from nodeless.cloudprovider.aws.instance_type_labels import type_requirements
from nodeless.cloudprovider.aws.instance_type_math import capacity, overhead, pods, reserved_millicores
from nodeless.cloudprovider.aws.instance_types import FILTERS
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.type_facts import TypeFacts, read_type
from nodeless.model import labels
from nodeless.model.pools import BlockDevice, Kubelet
from nodeless.model.resources import subtract

MIB, GIB = 2**20, 2**30
AL2 = NodeShape("AL2")


def a_record(
    name: str,
    *,
    cpus: int,
    memory: int,
    interfaces: int,
    addresses: int,
    gpu: tuple[str, str, int, int] | None = None,
) -> dict[str, Any]:
    """A record as DescribeInstanceTypes writes it, the part that is read."""
    record: dict[str, Any] = {
        "InstanceType": name,
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "VCpuInfo": {"DefaultVCpus": cpus},
        "MemoryInfo": {"SizeInMiB": memory},
        "NetworkInfo": {"MaximumNetworkInterfaces": interfaces, "Ipv4AddressesPerInterface": addresses},
        "Hypervisor": "nitro",
        "SupportedUsageClasses": ["on-demand", "spot"],
    }
    if gpu is not None:
        maker, model, count, mebibytes = gpu
        entry = {"Manufacturer": maker, "Name": model, "Count": count, "MemoryInfo": {"SizeInMiB": mebibytes}}
        record["GpuInfo"] = {"Gpus": [entry]}
    return record


# type: allocatable millicores, memory MiB, pods, extended resources
TABLE: dict[str, tuple[int, int, int, dict[str, int]]] = {
    "t1.micro": (940, 180, 4, {}),
    "t2.micro": (940, 548, 4, {}),
    "t3.nano": (1930, 74, 4, {}),
    "t3.medium": (1930, 3246, 17, {}),
    "t3a.large": (1930, 6837, 35, {}),
    "t4g.small": (1930, 1418, 11, {}),
    "m6g.medium": (940, 3345, 8, {}),
    "m5.large": (1930, 6903, 29, {}),
    "c5.xlarge": (3920, 6584, 58, {}),
    "m5.4xlarge": (15890, 57691, 234, {}),
    "r5.24xlarge": (95690, 718987, 737, {}),
    "m5.metal": (95690, 355262, 737, {}),
    "m6i.32xlarge": (127610, 476504, 737, {}),
    "u-6tb1.112xlarge": (446810, 5811134, 737, {}),
    "i3.large": (1930, 13770, 29, {}),
    "g4dn.xlarge": (3920, 14481, 29, {"nvidia.com/gpu": 1}),
    "g5.48xlarge": (191450, 723299, 345, {"nvidia.com/gpu": 8}),
    "p4d.24xlarge": (95690, 1082712, 737, {"nvidia.com/gpu": 8}),
    "inf1.xlarge": (3920, 6804, 38, {"aws.amazon.com/neuron": 1}),
    "inf1.24xlarge": (95690, 177976, 321, {"aws.amazon.com/neuron": 16}),
    "f1.2xlarge": (7910, 114565, 58, {}),
    "g4ad.xlarge": (3920, 14712, 8, {"amd.com/gpu": 1}),
    "dl1.24xlarge": (95690, 718987, 737, {"habana.ai/gaudi": 8}),
    # the table has none for Trainium: a known defect of that version
    "trn1.32xlarge": (127610, 481894, 247, {"aws.amazon.com/neuron": 16}),
}
#: Resources that came after the table.
NEWER = {"vpc.amazonaws.com/efa", "aws.amazon.com/neuroncore"}
#: Types that EC2 still sells in places, but of which the local AWS has no record: written by hand.
RETIRED: tuple[dict[str, Any], ...] = (
    a_record("f1.2xlarge", cpus=8, memory=124_928, interfaces=4, addresses=15),
    a_record(
        "g4ad.xlarge",
        cpus=4,
        memory=16_384,
        interfaces=2,
        addresses=4,
        gpu=("AMD", "Radeon Pro V520", 1, 8192),
    ),
    a_record(
        "dl1.24xlarge",
        cpus=96,
        memory=786_432,
        interfaces=15,
        addresses=50,
        gpu=("Habana", "Gaudi HL-205", 8, 32_768),
    ),
)
#: Branch interfaces of the published table; types of `TABLE` that are not here have none.
POD_ENIS = {
    "m6g.medium": 4,
    "m5.large": 9,
    "c5.xlarge": 18,
    "m5.4xlarge": 54,
    "r5.24xlarge": 107,
    "m5.metal": 120,
    "m6i.32xlarge": 107,
    "g4dn.xlarge": 39,
    "g5.48xlarge": 115,
    "p4d.24xlarge": 62,
    "g4ad.xlarge": 12,
    "dl1.24xlarge": 62,
    "inf1.xlarge": 38,
    "inf1.24xlarge": 111,
    "trn1.32xlarge": 82,
}
LABELS: dict[str, dict[str, str | None]] = {
    "t1.micro": {labels.INSTANCE_HYPERVISOR: "xen", labels.INSTANCE_NETWORK_BANDWIDTH: "70"},
    "t3.nano": {labels.INSTANCE_NETWORK_BANDWIDTH: "32"},
    "t4g.small": {labels.ARCH: "arm64"},
    "m6g.medium": {labels.ARCH: "arm64"},
    "m5.4xlarge": {labels.INSTANCE_NETWORK_BANDWIDTH: "5000"},
    "m5.large": {
        labels.INSTANCE_NETWORK_BANDWIDTH: "750",
        labels.INSTANCE_CATEGORY: "m",
        labels.INSTANCE_GENERATION: "5",
        labels.INSTANCE_FAMILY: "m5",
        labels.INSTANCE_SIZE: "large",
        labels.INSTANCE_LOCAL_NVME: None,
        labels.INSTANCE_GPU_NAME: None,
    },
    "m5.metal": {labels.INSTANCE_HYPERVISOR: ""},
    "m6i.32xlarge": {labels.INSTANCE_ENCRYPTION_IN_TRANSIT: "true"},
    "u-6tb1.112xlarge": {labels.INSTANCE_CATEGORY: "u", labels.INSTANCE_GENERATION: "1"},
    "i3.large": {labels.INSTANCE_LOCAL_NVME: "475"},
    "g4dn.xlarge": {
        labels.INSTANCE_GPU_NAME: "t4",
        labels.INSTANCE_GPU_MANUFACTURER: "nvidia",
        labels.INSTANCE_GPU_MEMORY: "16384",
    },
    "g5.48xlarge": {labels.INSTANCE_GPU_NAME: "a10g", labels.INSTANCE_GPU_COUNT: "8"},
    "f1.2xlarge": {labels.INSTANCE_NETWORK_BANDWIDTH: None},
    "g4ad.xlarge": {labels.INSTANCE_GPU_NAME: "radeon-pro-v520", labels.INSTANCE_GPU_MANUFACTURER: "amd"},
    "dl1.24xlarge": {
        labels.INSTANCE_GPU_NAME: "gaudi-hl-205",
        labels.INSTANCE_GPU_MANUFACTURER: "habana",
    },
    "p4d.24xlarge": {labels.INSTANCE_NETWORK_BANDWIDTH: "400000"},
    "inf1.xlarge": {
        labels.INSTANCE_ACCELERATOR_NAME: "inferentia",
        labels.INSTANCE_ACCELERATOR_MANUFACTURER: "aws",
    },
}


@pytest.fixture(scope="module")
def facts(aws_process: LocalAws) -> dict[str, TypeFacts]:
    pages = aws_process.client("ec2").get_paginator("describe_instance_types").paginate(Filters=FILTERS)
    records = [record for page in pages for record in page["InstanceTypes"]]
    read = (read_type(record) for record in (*RETIRED, *records))
    return {each.name: each for each in read if each is not None}


@pytest.mark.parametrize("name", sorted(TABLE))
def test_allocatable_is_that_of_the_published_table(facts: dict[str, TypeFacts], name: str) -> None:
    millicores, mebibytes, count, extended = TABLE[name]
    amounts = capacity(facts[name], AL2)
    allocatable = subtract(amounts, overhead(facts[name], AL2))
    assert (allocatable["cpu"], allocatable["memory"] // MIB, allocatable["pods"]) == (
        millicores,
        mebibytes,
        count,
    )
    assert allocatable["ephemeral-storage"] == 17 * GIB
    assert {key: value for key, value in amounts.items() if "/" in key and key not in NEWER} == extended


@pytest.mark.parametrize("name", sorted(TABLE))
def test_pods_may_have_as_many_interfaces_of_their_own_as_the_published_table_says(
    facts: dict[str, TypeFacts], name: str
) -> None:
    offered = capacity(facts[name], NodeShape("AL2", pod_eni=True))
    assert offered.get("vpc.amazonaws.com/pod-eni", 0) == POD_ENIS.get(name, 0)


def test_a_type_that_the_table_of_interfaces_does_not_know_offers_none() -> None:
    unknown = read_type(a_record("z99.large", cpus=2, memory=8192, interfaces=3, addresses=10))
    assert unknown is not None
    assert "vpc.amazonaws.com/pod-eni" not in capacity(unknown, NodeShape("AL2", pod_eni=True))


@pytest.mark.parametrize("name", sorted(LABELS))
def test_labels_are_those_of_the_published_table(facts: dict[str, TypeFacts], name: str) -> None:
    requirements = type_requirements(facts[name], region="r", zones=["a"], capacity_types=["spot"], pods=1)
    for key, value in LABELS[name].items():
        assert requirements[key].values == (frozenset() if value is None else {value}), key


def test_every_record_of_ec2_can_be_read(facts: dict[str, TypeFacts]) -> None:
    assert len(facts) > 1300
    for fact in facts.values():
        assert fact.category
        assert fact.generation
        assert capacity(fact, AL2)["memory"] > 0


@pytest.mark.parametrize(
    ("kubelet", "options", "expected"),
    [
        (Kubelet(), {}, 29),
        (Kubelet(max_pods=7), {}, 7),
        (Kubelet(), {"eni_limited_pod_density": False}, 110),
        (Kubelet(pods_per_core=4), {}, 8),
        (Kubelet(pods_per_core=4), {"ami_family": "Bottlerocket"}, 29),
    ],
)
def test_the_number_of_pods(
    facts: dict[str, TypeFacts], kubelet: Kubelet, options: dict[str, Any], expected: int
) -> None:
    assert (
        pods(facts["m5.large"], NodeShape(**{"ami_family": "AL2", "kubelet": kubelet, **options})) == expected
    )


def test_what_a_pool_reserves_replaces_the_defaults(facts: dict[str, TypeFacts]) -> None:
    kubelet = Kubelet(
        kube_reserved=(("cpu", "500m"),),
        system_reserved=(("memory", "1Gi"),),
        eviction_hard=(("memory.available", "5%"), ("nodefs.available", "100%")),
        eviction_soft=(("memory.available", "1Gi"),),
    )
    kept = overhead(facts["m5.large"], NodeShape("AL2", kubelet))
    assert kept["cpu"] == 500
    assert kept["memory"] == (11 * 29 + 255) * MIB + 2 * GIB
    assert kept["ephemeral-storage"] == GIB


def test_the_disk_that_holds_pods_is_the_familys(facts: dict[str, TypeFacts]) -> None:
    disks = (BlockDevice("/dev/xvda", 4 * GIB), BlockDevice("/dev/xvdb", 50 * GIB))
    sizes = {
        family: capacity(facts["m5.large"], NodeShape(family, block_devices=disks))["ephemeral-storage"]
        // GIB
        for family in ("AL2", "Bottlerocket", "Custom", "Ubuntu")
    }
    assert sizes == {"AL2": 4, "Bottlerocket": 50, "Custom": 50, "Ubuntu": 20}
    snapshot = NodeShape("AL2", block_devices=(BlockDevice("/dev/xvda", snapshot_id="snap-1"),))
    assert capacity(facts["m5.large"], snapshot)["ephemeral-storage"] == 20 * GIB


@given(st.integers(1, 1000))
def test_reserved_cpu_grows_with_the_cores_and_stays_small(cpus: int) -> None:
    reserved = reserved_millicores(cpus * 1000)
    assert 60 <= reserved <= 80 + cpus * 2.5
    assert reserved_millicores((cpus + 1) * 1000) >= reserved
