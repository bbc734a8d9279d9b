"""Instance types by worked examples: which records count, each label, capacity and overhead (2.1 to 2.4)."""

import math
from typing import Any

import pytest

from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.aws.instance_type_builder import Known, build
from nodeless.cloudprovider.aws.instance_type_labels import type_requirements
from nodeless.cloudprovider.aws.instance_type_math import (
    capacity,
    memory,
    overhead,
    pods,
    reserved_millicores,
)
from nodeless.cloudprovider.aws.node_shape import NodeShape
from nodeless.cloudprovider.aws.price_list import Prices
from nodeless.cloudprovider.aws.type_facts import TypeFacts, read_type
from nodeless.model import labels
from nodeless.model.pools import Kubelet
from tests.cloudprovider.test_instance_types import a_record

MIB, GIB = 2**20, 2**30
FACTS = {fact.name: fact for fact in bundled_catalog().facts}
T4 = {"Manufacturer": "NVIDIA", "Name": "T4", "Count": 4, "MemoryInfo": {"SizeInMiB": 16384}}


def facts(name: str = "m5.large", **members: Any) -> TypeFacts:
    """The facts of a record with some members of its own."""
    read = read_type({**a_record(name, cpus=2, memory=8192, interfaces=3, addresses=10), **members})
    assert read is not None
    return read


def labels_of(type_facts: TypeFacts, **options: Any) -> dict[str, frozenset[str]]:
    sold: dict[str, Any] = {"region": "us-east-1", "zones": ["us-east-1b", "us-east-1a"], "pods": 29}
    made = type_requirements(type_facts, **{**sold, "capacity_types": ["spot", "on-demand"], **options})
    return {key: made[key].values for key in made}


@pytest.mark.parametrize(
    ("supported", "architecture"),
    [
        pytest.param(["x86_64"], "amd64", id="AWS-2.1-x86"),
        pytest.param(["i386", "x86_64"], "amd64", id="AWS-2.1-32-bit-too"),
        pytest.param(["arm64"], "arm64", id="AWS-2.1-arm"),
        pytest.param(["arm64", "x86_64"], "arm64", id="AWS-2.2-the-first-that-is-known"),
        pytest.param(["i386"], None, id="AWS-2.1-32-bit-alone"),
        pytest.param(["x86_64_mac"], None, id="AWS-2.1-mac"),
        pytest.param(["arm64_mac"], None, id="AWS-2.1-mac-on-arm"),
        pytest.param([], None, id="AWS-2.1-none"),
    ],
)
def test_a_type_counts_by_its_architecture(supported: list[str], architecture: str | None) -> None:
    record = a_record("m5.large", cpus=2, memory=8192, interfaces=3, addresses=10)
    read = read_type({**record, "ProcessorInfo": {"SupportedArchitectures": supported}})
    assert (read.architecture if read else None) == architecture
    assert read is None or labels_of(read)[labels.ARCH] == {architecture}


def test_aws_2_1_a_type_is_offered_in_the_zones_that_sell_it_and_have_a_subnet() -> None:
    sold = {"m5.large": frozenset({"us-east-1a", "us-east-1b"}), "c5.large": frozenset({"us-east-1c"})}
    known = Known((facts("c5.large"), facts("m5.large"), facts("r5.large")), sold)
    zones = frozenset({"us-east-1b", "us-east-1d"})
    (m5,) = build(known, NodeShape("AL2"), zones, Prices({"m5.large": 0.096}), "us-east-1")
    assert (m5.name, {offering.zone for offering in m5.offerings}) == ("m5.large", {"us-east-1b"})
    assert m5.requirements[labels.ZONE].values == {"us-east-1b"}


@pytest.mark.parametrize(
    ("name", "category", "generation", "family", "size"),
    [
        ("m5.large", "m", "5", "m5", "large"),
        ("u-6tb1.112xlarge", "u", "1", "u-6tb1", "112xlarge"),
        ("inf1.xlarge", "inf", "1", "inf1", "xlarge"),
        ("trn1.2xlarge", "trn", "1", "trn1", "2xlarge"),
        ("dl1.24xlarge", "dl", "1", "dl1", "24xlarge"),
        ("vt1.3xlarge", "vt", "1", "vt1", "3xlarge"),
        ("x1e.xlarge", "x", "1", "x1e", "xlarge"),
        ("x2iedn.xlarge", "x", "2", "x2iedn", "xlarge"),
        ("m7i-flex.large", "m", "7", "m7i-flex", "large"),
        ("m5.metal", "m", "5", "m5", "metal"),
        ("c7a.metal-48xl", "c", "7", "c7a", "metal-48xl"),
        ("odd", None, None, None, None),
        ("odd1.two.parts", "odd", "1", None, None),
    ],
)
def test_aws_2_2_a_name_says_category_generation_family_and_size(
    name: str, category: str | None, generation: str | None, family: str | None, size: str | None
) -> None:
    found = labels_of(facts(name))
    keys = (
        labels.INSTANCE_CATEGORY,
        labels.INSTANCE_GENERATION,
        labels.INSTANCE_FAMILY,
        labels.INSTANCE_SIZE,
    )
    reported = [frozenset() if each is None else {each} for each in (category, generation, family, size)]
    assert [found[key] for key in keys] == reported
    assert found[labels.INSTANCE_TYPE] == {name}


@pytest.mark.parametrize(
    ("members", "label", "values"),
    [
        pytest.param({}, labels.OS, {"linux"}, id="os"),
        pytest.param({}, labels.REGION, {"us-east-1"}, id="region"),
        pytest.param({}, labels.ZONE, {"us-east-1a", "us-east-1b"}, id="zones"),
        pytest.param({}, labels.CAPACITY_TYPE, {"on-demand", "spot"}, id="capacity-types"),
        pytest.param({}, labels.INSTANCE_CPU, {"2"}, id="cpu"),
        pytest.param({}, labels.INSTANCE_MEMORY, {"8192"}, id="memory-without-overhead"),
        pytest.param({}, labels.INSTANCE_PODS, {"29"}, id="pods"),
        pytest.param({}, labels.INSTANCE_NETWORK_BANDWIDTH, set(), id="bandwidth-not-known"),
        pytest.param({}, labels.INSTANCE_HYPERVISOR, {"nitro"}, id="hypervisor"),
        pytest.param({"Hypervisor": "xen"}, labels.INSTANCE_HYPERVISOR, {"xen"}, id="hypervisor-xen"),
        pytest.param({"Hypervisor": ""}, labels.INSTANCE_HYPERVISOR, {""}, id="hypervisor-metal"),
        pytest.param({}, labels.INSTANCE_ENCRYPTION_IN_TRANSIT, {"false"}, id="encryption-not"),
        pytest.param({}, labels.INSTANCE_TENANCY, {"default", "dedicated"}, id="tenancy"),
        pytest.param({}, labels.INSTANCE_CPU_MANUFACTURER, set(), id="maker-not-told"),
        pytest.param({}, labels.INSTANCE_GPU_COUNT, set(), id="no-gpu"),
        pytest.param({}, labels.INSTANCE_ACCELERATOR_COUNT, set(), id="no-accelerator"),
        *(
            pytest.param(
                {"InstanceStorageInfo": {"TotalSizeInGB": 475, "NvmeSupport": support}},
                labels.INSTANCE_LOCAL_NVME,
                values,
                id=f"nvme-{support}",
            )
            for support, values in (("required", {"475"}), ("supported", {"475"}), ("unsupported", set()))
        ),
        pytest.param({}, labels.INSTANCE_LOCAL_NVME, set(), id="nvme-none"),
        *(
            pytest.param({"EbsInfo": ebs}, labels.INSTANCE_EBS_BANDWIDTH, values, id=f"ebs-{support}")
            for support, values in (("default", {"4750"}), ("supported", set()), ("unsupported", set()))
            for ebs in (
                {
                    "EbsOptimizedSupport": support,
                    "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 4750},
                },
            )
        ),
        pytest.param(
            {"ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "SustainedClockSpeedInGhz": 3.1}},
            labels.INSTANCE_CPU_CLOCK,
            {"3100"},
            id="clock",
        ),
    ],
)
def test_aws_2_2_each_label_has_its_member(members: dict[str, Any], label: str, values: set[str]) -> None:
    assert labels_of(facts(**members))[label] == values


GPU_LABELS = (
    *(labels.INSTANCE_GPU_NAME, labels.INSTANCE_GPU_MANUFACTURER),
    *(labels.INSTANCE_GPU_COUNT, labels.INSTANCE_GPU_MEMORY),
)
ACCELERATOR_LABELS = (
    *(labels.INSTANCE_ACCELERATOR_NAME, labels.INSTANCE_ACCELERATOR_MANUFACTURER),
    *(labels.INSTANCE_ACCELERATOR_COUNT, labels.INSTANCE_ACCELERATOR_MEMORY),
)


@pytest.mark.parametrize(
    ("members", "gpu", "accelerator"),
    [
        pytest.param(
            {"GpuInfo": {"Gpus": [T4]}},
            ("t4", "nvidia", "4", "16384"),
            ("t4", "nvidia", "4", "16384"),
            id="one-gpu-fills-both",
        ),
        pytest.param(
            {"GpuInfo": {"Gpus": [{**T4, "Manufacturer": "AMD", "Name": "Radeon Pro V520", "Count": 1}]}},
            ("radeon-pro-v520", "amd", "1", "16384"),
            ("radeon-pro-v520", "amd", "1", "16384"),
            id="blanks-and-capitals",
        ),
        pytest.param({"GpuInfo": {"Gpus": [T4, {**T4, "Name": "A10G"}]}}, None, None, id="two-kinds-of-gpu"),
        pytest.param(
            {
                "InferenceAcceleratorInfo": {
                    "Accelerators": [{"Name": "Inferentia", "Manufacturer": "AWS", "Count": 4}]
                }
            },
            None,
            ("inferentia", "aws", "4", None),
            id="inferentia-has-no-memory",
        ),
        pytest.param(
            {"NeuronInfo": {"NeuronDevices": [{"Name": "Trainium", "Count": 16}]}},
            None,
            ("trainium", "aws", "16", None),
            id="neuron-device",
        ),
    ],
)
def test_aws_2_2_labels_of_gpus_and_accelerators(
    members: dict[str, Any],
    gpu: tuple[str | None, ...] | None,
    accelerator: tuple[str | None, ...] | None,
) -> None:
    found = labels_of(facts("g4dn.12xlarge", **members))
    for keys, reported in ((GPU_LABELS, gpu), (ACCELERATOR_LABELS, accelerator)):
        expected = reported or (None,) * 4
        assert [found[key] for key in keys] == [frozenset() if v is None else {v} for v in expected]


def test_aws_2_2_in_generation_v1_a_gpu_is_no_accelerator_and_a_neuron_device_still_is() -> None:
    gpu = labels_of(facts("g4dn.12xlarge", GpuInfo={"Gpus": [T4]}), gpus_are_accelerators=False)
    assert [gpu[key] for key in GPU_LABELS] == [{"t4"}, {"nvidia"}, {"4"}, {"16384"}]
    # v1 has no label for an accelerator's memory: pools that were converted may ask for it.
    assert [gpu[key] for key in ACCELERATOR_LABELS] == [set(), set(), set(), {"16384"}]
    neuron = {"NeuronInfo": {"NeuronDevices": [{"Name": "Trainium", "Count": 16}]}}
    assert labels_of(facts("trn1.32xlarge", **neuron)) == labels_of(
        facts("trn1.32xlarge", **neuron), gpus_are_accelerators=False
    )


def test_aws_2_2_every_well_known_label_of_a_type_always_stands_there() -> None:
    """What a type lacks is said to be absent, so that a pod which asks for it does not fit."""
    plain, rich = labels_of(FACTS["t1.micro"]), labels_of(FACTS["g5.48xlarge"])
    assert plain.keys() == rich.keys()


@pytest.mark.parametrize(
    ("mebibytes", "percent", "left"),
    [
        # 8192 x 0.075 = 614.4, so 615 are kept
        pytest.param(8192, 0.075, 7577, id="AWS-2.3-rounded-up"),
        # 4096 x 0.075 = 307.2
        pytest.param(4096, 0.075, 3788, id="AWS-2.3-t3.medium"),
        # 16384 x 0.25 = 4096 to the MiB
        pytest.param(16384, 0.25, 12288, id="AWS-2.3-even"),
        pytest.param(8192, 0.0, 8192, id="AWS-2.3-nothing-kept"),
        # 512 x 0.075 = 38.4
        pytest.param(512, 0.075, 473, id="AWS-2.3-t3.nano"),
    ],
)
def test_the_hypervisor_keeps_a_share_of_the_memory(mebibytes: int, percent: float, left: int) -> None:
    assert memory(mebibytes, percent) == left * MIB


@pytest.mark.parametrize(
    ("members", "resource", "count"),
    [
        ({"GpuInfo": {"Gpus": [T4]}}, "nvidia.com/gpu", 4),
        ({"GpuInfo": {"Gpus": [T4, {**T4, "Count": 2}]}}, "nvidia.com/gpu", 6),
        ({"GpuInfo": {"Gpus": [{**T4, "Manufacturer": "AMD"}]}}, "amd.com/gpu", 4),
        ({"GpuInfo": {"Gpus": [{**T4, "Manufacturer": "Habana"}]}}, "habana.ai/gaudi", 4),
        ({"GpuInfo": {"Gpus": [{**T4, "Manufacturer": "nvidia"}]}}, "nvidia.com/gpu", 0),
    ],
)
def test_aws_2_3_devices_are_summed_by_the_exact_name_of_their_maker(
    members: dict[str, Any], resource: str, count: int
) -> None:
    assert capacity(facts(**members), NodeShape("AL2")).get(resource, 0) == count


def test_aws_2_3_a_type_whose_cards_differ_counts_its_default_card_alone() -> None:
    """Sixty interfaces over four cards, fifteen on the default one: 15 x 49 + 2."""
    cards = [{"NetworkCardIndex": index, "MaximumNetworkInterfaces": 15} for index in range(4)]
    network = {"MaximumNetworkInterfaces": 60, "Ipv4AddressesPerInterface": 50, "NetworkCards": cards}
    many = facts("p4d.24xlarge", NetworkInfo={**network, "DefaultNetworkCardIndex": 0})
    assert pods(many, NodeShape("AL2")) == 737
    cards[2]["MaximumNetworkInterfaces"] = 4
    other = facts("p4d.24xlarge", NetworkInfo={**network, "DefaultNetworkCardIndex": 2})
    assert pods(other, NodeShape("AL2")) == 4 * 49 + 2


@pytest.mark.parametrize(
    ("millicores", "kept"),
    [
        # 60
        pytest.param(1000, 60, id="AWS-2.4-one"),
        # 60 + trunc(0.01 x 999) = 60 + 9
        pytest.param(1999, 69, id="AWS-2.4-truncated"),
        # 60 + 10 + trunc(0.005 x 1000) = 75
        pytest.param(3000, 75, id="AWS-2.4-three"),
        # 60 + 10 + 10 + trunc(0.0025 x 1000) = 82, the half lost
        pytest.param(5000, 82, id="AWS-2.4-half-a-millicore"),
        # 60 + 10 + 10 + 0.0025 x 188000 = 550
        pytest.param(192_000, 550, id="AWS-2.4-192"),
    ],
)
def test_each_step_of_the_reserved_cpu_is_cut_off_on_its_own(millicores: int, kept: int) -> None:
    assert reserved_millicores(millicores) == kept


@pytest.mark.parametrize(
    ("family", "options", "pods_counted"),
    [
        # AL2: 3 x 9 + 2, whatever the real number of pods is
        pytest.param("AL2", {}, 29, id="AWS-2.4-eni"),
        pytest.param("AL2", {"kubelet": Kubelet(max_pods=110)}, 29, id="AWS-2.4-max-pods"),
        pytest.param("AL2", {"eni_limited_pod_density": False}, 29, id="AWS-2.4-density-off"),
        pytest.param("AL2", {"reserved_interfaces": 1}, 29, id="AWS-2.4-reserved-interfaces"),
        pytest.param("AL2023", {"prefix_delegation": True}, 29, id="AWS-2.4-prefixes"),
        # Bottlerocket: the real number
        pytest.param("Bottlerocket", {"reserved_interfaces": 1}, 20, id="AWS-2.4-real-pods"),
        pytest.param("Bottlerocket", {"eni_limited_pod_density": False}, 110, id="AWS-2.4-real-density-off"),
        pytest.param("Windows2022", {}, 110, id="AWS-2.4-windows"),
    ],
)
def test_memory_is_reserved_for_so_many_pods(family: str, options: dict[str, Any], pods_counted: int) -> None:
    kept = overhead(facts(), NodeShape(family, **options))
    assert kept["memory"] == (11 * pods_counted + 255 + 100) * MIB


def test_aws_2_4_percentages_are_of_what_the_hypervisor_leaves_and_of_the_disk_rounded_up() -> None:
    """7577 MiB are 7 945 060 352 bytes, a tenth of them 794 506 035.2; 7 % of 20 GiB are 1 503 238 553.6."""
    hard = (("memory.available", "10%"), ("nodefs.available", "7%"))
    kept = overhead(facts(), NodeShape("AL2", Kubelet(eviction_hard=hard)))
    assert kept["memory"] == (11 * 29 + 255) * MIB + 794_506_036
    assert kept["ephemeral-storage"] == GIB + 1_503_238_554


def test_aws_2_4_reserved_disk_and_disk_kept_for_the_system_are_those_of_the_pool() -> None:
    kubelet = Kubelet(
        kube_reserved=(("ephemeral-storage", "3Gi"),), system_reserved=(("ephemeral-storage", "2Gi"),)
    )
    kept = overhead(facts(), NodeShape("AL2", kubelet))
    assert kept["ephemeral-storage"] == (3 + 2) * GIB + math.ceil(20 * GIB / 10)
    assert kept["cpu"] == 70


def test_aws_2_6_an_empty_disk_of_20_gib_leaves_17() -> None:
    """One GiB reserved, two kept free."""
    shape = NodeShape("AL2")
    left = capacity(facts(), shape)["ephemeral-storage"] - overhead(facts(), shape)["ephemeral-storage"]
    assert left == 17 * GIB
