"""What a node class, its kubelet settings and the controller's make of a type: sections 2.2 to 2.5, 12."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from nodeless.cloudprovider.aws.instance_type_compatibility import compatible, vcpus
from nodeless.cloudprovider.aws.instance_type_labels import type_requirements
from nodeless.cloudprovider.aws.instance_type_math import (
    capacity,
    overhead,
    pods,
    reserved_millicores,
    volume_limits,
)
from nodeless.cloudprovider.aws.node_shape import NodeShape, shape_of
from nodeless.cloudprovider.aws.type_facts import TypeFacts
from nodeless.launch.families import FAMILIES, family_of
from nodeless.model import labels
from nodeless.model.hardware import ConnectionTracking, CpuOptions, NetworkInterface
from nodeless.model.pools import BlockDevice, Kubelet, NodeClass, Reference

MIB, GIB = 2**20, 2**30
FACTS = {fact.name: fact for fact in bundled_catalog().facts}
#: Network interfaces with EFA traffic alone beside the ordinary one, on the first card and the second.
EFA_ONLY = (
    NetworkInterface(0, 0),
    NetworkInterface(0, 1, efa_only=True),
    NetworkInterface(1, 1, efa_only=True),
)


def shape(family: str = "AL2023", **options: Any) -> NodeShape:
    return NodeShape(family, **options)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        # section 2.3: E x (A - 1) + 2, E of the default card
        pytest.param("m5.large", {}, 29, id="AWS-2.3-eni"),
        pytest.param("p4d.24xlarge", {}, 737, id="AWS-2.3-eni-of-the-default-card"),
        pytest.param("m5.large", {"kubelet": Kubelet(max_pods=7)}, 7, id="AWS-2.3-max-pods"),
        pytest.param("m5.large", {"eni_limited_pod_density": False}, 110, id="AWS-2.3-density-off"),
        pytest.param("m5.large", {"kubelet": Kubelet(pods_per_core=4)}, 8, id="AWS-2.3-pods-per-core"),
        pytest.param("m5.large", {"reserved_interfaces": 1}, 20, id="AWS-2.3-reserved"),
        pytest.param("m5.large", {"reserved_interfaces": 3}, 0, id="AWS-2.3-none-left"),
        pytest.param("m5.large", {"reserved_interfaces": 9}, 0, id="AWS-2.3-never-below-none"),
        pytest.param("p4d.24xlarge", {"network_interfaces": EFA_ONLY}, 14 * 49 + 2, id="AWS-2.3-efa-only"),
        # section 12.1: prefixes of 16 addresses, on Nitro, at most what EKS recommends
        pytest.param("t3.medium", {"prefix_delegation": True}, 110, id="AWS-12.1-prefixes-small"),
        pytest.param("t3.nano", {"prefix_delegation": True}, 34, id="AWS-12.1-prefixes-smallest"),
        pytest.param("m5.24xlarge", {"prefix_delegation": True}, 250, id="AWS-12.1-prefixes-large"),
        pytest.param("m5.metal", {"prefix_delegation": True}, 250, id="AWS-12.1-prefixes-metal"),
        pytest.param("i3.large", {"prefix_delegation": True}, 29, id="AWS-12.1-no-prefixes-on-xen"),
        pytest.param("i3.16xlarge", {"prefix_delegation": True}, 737, id="AWS-12.1-no-prefixes-on-large-xen"),
        pytest.param(
            "m5.large", {"prefix_delegation": True, "reserved_interfaces": 3}, 0, id="AWS-12.1-none-left"
        ),
        pytest.param(
            "m5.large",
            {"prefix_delegation": True, "kubelet": Kubelet(max_pods=40)},
            40,
            id="AWS-12.1-max-pods",
        ),
    ],
)
def test_the_number_of_pods(name: str, options: dict[str, Any], expected: int) -> None:
    assert pods(FACTS[name], shape(**options)) == expected
    assert capacity(FACTS[name], shape(**options)).get("pods", 0) == expected


#: Memory overhead by real pods or by interfaces, podsPerCore, evictionSoft, pods limited by interfaces.
FLAGS = {
    "AL2": (True, True, True, True),
    "AL2023": (True, True, True, True),
    "Ubuntu": (True, True, True, True),
    "Custom": (True, True, True, True),
    "Bottlerocket": (False, False, False, True),
    "Windows2019": (False, True, True, False),
    "Windows2022": (False, True, True, False),
    "Windows2025": (False, True, True, False),
}


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_aws_2_5_feature_flags_of_a_family_show_in_its_nodes(name: str) -> None:
    eni_overhead, per_core, soft, density = FLAGS[name]
    m5 = FACTS["m5.large"]
    few = overhead(m5, shape(name, kubelet=Kubelet(max_pods=5)))["memory"]
    assert few == (11 * (29 if eni_overhead else 5) + 255 + 100) * MIB
    assert pods(m5, shape(name, kubelet=Kubelet(pods_per_core=2))) == (4 if per_core else 29)
    assert pods(m5, shape(name)) == (29 if density else 110)
    kubelet = Kubelet(max_pods=5, eviction_soft=(("memory.available", "1Gi"),))
    assert overhead(m5, shape(name, kubelet=kubelet))["memory"] == few + (GIB - 100 * MIB if soft else 0)


@pytest.mark.parametrize(
    ("cpus", "kept"), [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (96, 310), (128, 390)]
)
def test_aws_2_4_reserved_cpu(cpus: int, kept: int) -> None:
    assert reserved_millicores(cpus * 1000) == kept


@pytest.mark.parametrize(
    ("hard", "soft", "memory", "disk"),
    [
        pytest.param((), (), 100 * MIB, 2 * GIB, id="AWS-2.4-defaults"),
        pytest.param(
            (("memory.available", "50Mi"),), (), 50 * MIB, 2 * GIB, id="AWS-2.4-a-smaller-value-lowers"
        ),
        pytest.param((("nodefs.available", "5%"),), (), 100 * MIB, GIB, id="AWS-2.4-percent-of-the-disk"),
        pytest.param((("nodefs.available", "100%"),), (), 100 * MIB, 0, id="AWS-2.4-100-percent-is-none"),
        pytest.param(
            (("memory.available", "50Mi"),),
            (("memory.available", "70Mi"),),
            70 * MIB,
            2 * GIB,
            id="AWS-2.4-the-larger-of-both",
        ),
        pytest.param((("imagefs.available", "5%"),), (), 100 * MIB, 2 * GIB, id="AWS-2.4-other-signals"),
    ],
)
def test_the_eviction_threshold(hard: Any, soft: Any, memory: int, disk: int) -> None:
    kubelet = Kubelet(eviction_hard=hard, eviction_soft=soft)
    kept = overhead(FACTS["m5.large"], shape(kubelet=kubelet))
    assert kept["memory"] == (11 * 29 + 255) * MIB + memory
    assert kept["ephemeral-storage"] == GIB + disk


def test_aws_2_4_reservations_replace_the_default_of_their_resource_alone() -> None:
    kubelet = Kubelet(kube_reserved=(("memory", "1Gi"),), system_reserved=(("cpu", "30m"), ("memory", "1Gi")))
    kept = overhead(FACTS["m5.large"], shape(kubelet=kubelet))
    assert (kept["cpu"], kept["memory"]) == (70 + 30, 2 * GIB + 100 * MIB)


def test_aws_2_3_memory_is_what_the_hypervisor_leaves_or_what_was_measured() -> None:
    m5 = FACTS["m5.large"]
    assert capacity(m5, shape())["memory"] == (8192 - 615) * MIB
    assert capacity(m5, shape(vm_memory_overhead_percent=0.0))["memory"] == 8192 * MIB
    kubelet = Kubelet(eviction_hard=(("memory.available", "10%"),))
    assert capacity(m5, shape(kubelet=kubelet), measured=7900 * MIB)["memory"] == 7900 * MIB
    kept = overhead(m5, shape(kubelet=kubelet), measured=7900 * MIB)["memory"]
    assert kept == (11 * 29 + 255 + 790) * MIB


@pytest.mark.parametrize(
    ("name", "resource", "options", "expected"),
    [
        ("p4d.24xlarge", "vpc.amazonaws.com/efa", {}, 4),
        ("p4d.24xlarge", "vpc.amazonaws.com/efa", {"network_interfaces": EFA_ONLY}, 2),
        ("m5.large", "vpc.amazonaws.com/efa", {}, 0),
        ("trn1.32xlarge", "aws.amazon.com/neuron", {}, 16),
        ("trn1.32xlarge", "aws.amazon.com/neuroncore", {}, 32),
        ("inf2.xlarge", "aws.amazon.com/neuroncore", {}, 2),
        ("g4dn.xlarge", "nvidia.com/gpu", {}, 1),
        ("m5.large", "vpc.amazonaws.com/pod-eni", {"pod_eni": True}, 9),
        ("m5.large", "vpc.amazonaws.com/pod-eni", {}, 0),
        ("t3.large", "vpc.amazonaws.com/pod-eni", {"pod_eni": True}, 0),
        ("m5.large", "vpc.amazonaws.com/PrivateIPv4Address", {"ami_family": "Windows2022"}, 9),
        ("m5.large", "vpc.amazonaws.com/PrivateIPv4Address", {}, 0),
    ],
)
def test_aws_2_3_resources_of_a_type(
    name: str, resource: str, options: dict[str, Any], expected: int
) -> None:
    assert (
        capacity(FACTS[name], NodeShape(**{"ami_family": "AL2023", **options})).get(resource, 0) == expected
    )


@pytest.mark.parametrize(
    ("name", "options", "gigabytes"),
    [
        pytest.param("m5d.large", {"instance_store_raid": True}, 75, id="AWS-2.3-raid"),
        pytest.param("d2.xlarge", {"instance_store_raid": True}, 6144, id="AWS-2.3-raid-of-spinning-disks"),
        pytest.param(
            "i3.large", {"instance_store_raid": True, "ami_family": "Bottlerocket"}, 475, id="AWS-2.3-raid-b"
        ),
    ],
)
def test_disks_inside_the_host_hold_the_pods_files(
    name: str, options: dict[str, Any], gigabytes: int
) -> None:
    made = NodeShape(**{"ami_family": "AL2023", **options})
    assert capacity(FACTS[name], made)["ephemeral-storage"] == gigabytes * 10**9


@pytest.mark.parametrize(
    ("family", "devices", "options", "gibibytes"),
    [
        pytest.param("AL2", (), {}, 20, id="AWS-2.3-default"),
        pytest.param("Windows2019", (), {}, 50, id="AWS-2.3-windows"),
        pytest.param("AL2023", (), {"instance_store_raid": True}, 20, id="AWS-2.3-no-disks-inside"),
        pytest.param("Windows2022", (), {"instance_store_raid": True}, 50, id="AWS-2.3-windows-has-no-raid"),
        pytest.param("Bottlerocket", (("/dev/xvda", 9), ("/dev/xvdb", 30)), {}, 30, id="AWS-2.3-second-disk"),
        pytest.param("Custom", (("/dev/sdb", 40), ("/dev/sda", 60)), {}, 60, id="AWS-2.3-custom-last"),
        pytest.param("AL2", (("/dev/sdz", 40),), {}, 20, id="AWS-2.3-no-such-device"),
        pytest.param("Windows2022", (("/dev/sdz", 40),), {}, 50, id="AWS-2.3-the-familys-own-device-stays"),
    ],
)
def test_the_disk_of_pods(family: str, devices: Any, options: dict[str, Any], gibibytes: int) -> None:
    mappings = tuple(BlockDevice(device, size * GIB) for device, size in devices)
    found = capacity(FACTS["m5.large"], shape(family, block_devices=mappings, **options))
    assert found["ephemeral-storage"] == gibibytes * GIB


@pytest.mark.parametrize("family", ["AL2", "Bottlerocket", "Custom"])
def test_aws_2_3_a_root_volume_wins_over_the_familys_device(family: str) -> None:
    mappings = (
        BlockDevice("/dev/sdf", 70 * GIB, root=True),
        BlockDevice("/dev/xvda", 8 * GIB),
        BlockDevice("/dev/xvdb", 9 * GIB),
    )
    assert capacity(FACTS["m5.large"], shape(family, block_devices=mappings))["ephemeral-storage"] == 70 * GIB


@pytest.mark.parametrize(("family", "gibibytes"), [("AL2", 30), ("Windows2022", 50), ("Custom", 40)])
def test_aws_2_3_a_root_volume_as_large_as_its_snapshot_leaves_it_to_the_familys_device(
    family: str, gibibytes: int
) -> None:
    mappings = (
        BlockDevice("/dev/sdf", None, snapshot_id="snap-1", root=True),
        BlockDevice("/dev/xvda", 30 * GIB),
        BlockDevice("/dev/xvdb", 40 * GIB),
    )
    found = capacity(FACTS["m5.large"], shape(family, block_devices=mappings))["ephemeral-storage"]
    assert found == gibibytes * GIB


def labels_of(name: str, family: str = "AL2023") -> dict[str, frozenset[str]]:
    made = type_requirements(
        FACTS[name], region="r", zones=["a"], capacity_types=["spot"], pods=1, family=family_of(family)
    )
    return {key: made[key].values for key in made}


@pytest.mark.parametrize(
    ("name", "label", "value"),
    [
        ("m7i.large", labels.INSTANCE_CPU_MANUFACTURER, "intel"),
        ("m6a.large", labels.INSTANCE_CPU_MANUFACTURER, "amd"),
        ("m6g.large", labels.INSTANCE_CPU_MANUFACTURER, "aws"),
        ("m7i.large", labels.INSTANCE_CPU_CLOCK, "3200"),
        ("m7i.large", labels.INSTANCE_EBS_BANDWIDTH, "10000"),
        ("t2.micro", labels.INSTANCE_EBS_BANDWIDTH, None),
        ("m7i-flex.large", labels.INSTANCE_FLEX, "true"),
        ("m7i.large", labels.INSTANCE_FLEX, "false"),
        ("m7i-flex.large", labels.INSTANCE_FAMILY, "m7i-flex"),
    ],
)
def test_aws_2_2_labels_that_v1_added(name: str, label: str, value: str | None) -> None:
    assert labels_of(name)[label] == (frozenset() if value is None else {value})


@pytest.mark.parametrize(
    ("family", "name", "system", "build"),
    [
        ("Windows2019", "m5.large", {"windows"}, {"10.0.17763"}),
        ("Windows2022", "m5.large", {"windows"}, {"10.0.20348"}),
        ("Windows2025", "m5.large", {"windows"}, {"10.0.26100"}),
        ("Windows2022", "m6g.large", set(), {"10.0.20348"}),
        ("AL2023", "m6g.large", {"linux"}, set()),
    ],
)
def test_aws_2_2_windows_runs_on_x86_and_says_which_build(
    family: str, name: str, system: set[str], build: set[str]
) -> None:
    found = labels_of(name, family)
    assert (found[labels.OS], found[labels.WINDOWS_BUILD]) == (system, build)


@pytest.mark.parametrize(
    ("name", "options", "fits"),
    [
        pytest.param("a1.large", {"ami_family": "AL2023"}, False, id="AWS-2.7-a1-on-al2023"),
        pytest.param("a1.large", {"ami_family": "AL2"}, True, id="AWS-2.7-a1-on-al2"),
        pytest.param("p4d.24xlarge", {"network_interfaces": EFA_ONLY}, True, id="AWS-2.7-efa"),
        pytest.param("m5.large", {"network_interfaces": EFA_ONLY}, False, id="AWS-2.7-no-efa"),
        pytest.param(
            "t3.nano",
            {"network_interfaces": tuple(NetworkInterface(0, n) for n in range(3))},
            False,
            id="AWS-2.7-nics",
        ),
        pytest.param("m7i.large", {"enclaves": True}, False, id="AWS-2.7-no-enclaves"),
        pytest.param("m5.xlarge", {"enclaves": True}, True, id="AWS-2.7-enclaves"),
        pytest.param(
            "i3.large", {"connection_tracking": ConnectionTracking(60)}, False, id="AWS-2.7-tracking-xen"
        ),
        pytest.param(
            "m5.large", {"connection_tracking": ConnectionTracking(60)}, True, id="AWS-2.7-tracking"
        ),
        pytest.param(
            "m5.large", {"cpu_options": CpuOptions(nested_virtualization=True)}, False, id="AWS-2.7-nested"
        ),
        pytest.param(
            "m7i.large",
            {"cpu_options": CpuOptions(nested_virtualization=True)},
            True,
            id="AWS-2.7-nested-yes",
        ),
        pytest.param("c5.24xlarge", {"cpu_options": CpuOptions(10)}, True, id="AWS-2.7-cores"),
        pytest.param("c5.24xlarge", {"cpu_options": CpuOptions(11)}, False, id="AWS-2.7-no-such-cores"),
        pytest.param(
            "m6g.large", {"cpu_options": CpuOptions(threads_per_core=2)}, False, id="AWS-2.7-one-thread"
        ),
        pytest.param(
            "m5.metal", {"cpu_options": CpuOptions(threads_per_core=2)}, False, id="AWS-2.7-cores-of-metal"
        ),
    ],
)
def test_a_type_that_ec2_would_refuse_is_not_offered(name: str, options: dict[str, Any], fits: bool) -> None:
    assert compatible(FACTS[name], NodeShape(**{"ami_family": "AL2023", **options})) is fits


def test_fewer_cores_or_threads_are_fewer_cpus() -> None:
    big = FACTS["c5.24xlarge"]
    assert vcpus(big, CpuOptions(10, 1)) == 10
    assert vcpus(big, CpuOptions(threads_per_core=1)) == 48
    assert capacity(big, shape(cpu_options=CpuOptions(10)))["cpu"] == 20_000
    assert overhead(big, shape(cpu_options=CpuOptions(8, 1)))["cpu"] == 90


@pytest.mark.parametrize(
    ("name", "family", "volumes"),
    [
        pytest.param("m5.large", "AL2023", 26, id="AWS-12.1-shared-with-interfaces"),
        pytest.param("m5.large", "Bottlerocket", 25, id="AWS-12.1-two-disks-of-its-own"),
        pytest.param("g5.48xlarge", "AL2023", 8, id="AWS-12.1-gpus-and-disks-take-places"),
        pytest.param("m7i.large", "AL2023", 31, id="AWS-12.1-dedicated"),
    ],
)
def test_volumes_that_can_be_attached(name: str, family: str, volumes: int) -> None:
    assert volume_limits(FACTS[name], shape(family)) == {"ebs.csi.aws.com": volumes}


def test_a_type_without_a_told_limit_has_none() -> None:
    assert volume_limits(replace(FACTS["m5.large"], attachments=None), shape()) == {}


def test_everything_of_a_node_class_that_decides_resources_is_in_its_shape() -> None:
    node_class = NodeClass(
        Reference("EC2NodeClass", "x"),
        "AL2023",
        instance_store_raid=True,
        network_interfaces=EFA_ONLY,
        connection_tracking=ConnectionTracking(60),
        cpu_options=CpuOptions(2),
        enclaves=True,
    )
    made = shape_of(
        node_class, Kubelet(max_pods=9), reserved_interfaces=1, prefix_delegation=True, pod_eni=True
    )
    assert made == NodeShape(
        "AL2023",
        Kubelet(max_pods=9),
        pod_eni=True,
        instance_store_raid=True,
        network_interfaces=EFA_ONLY,
        connection_tracking=ConnectionTracking(60),
        cpu_options=CpuOptions(2),
        enclaves=True,
        reserved_interfaces=1,
        prefix_delegation=True,
        gpus_are_accelerators=False,
    )


@given(st.sampled_from(sorted(FACTS)), st.sampled_from(sorted(FAMILIES)), st.booleans(), st.integers(0, 4))
def test_whatever_is_asked_a_node_keeps_something_for_pods(
    name: str, family: str, prefixes: bool, reserved: int
) -> None:
    facts: TypeFacts = FACTS[name]
    made = shape(family, prefix_delegation=prefixes, reserved_interfaces=reserved)
    whole, kept = capacity(facts, made), overhead(facts, made)
    assert whole.get("pods", 0) >= 0
    assert 0 < kept["cpu"] < whole["cpu"]
    assert kept["ephemeral-storage"] < whole["ephemeral-storage"]
    assert all(amount > 0 for amount in whole.values())


@given(st.sampled_from(sorted(FACTS)), st.sampled_from(sorted(FAMILIES)), st.integers(0, 4))
def test_aws_12_1_prefixes_bound_the_pods_where_interfaces_take_them_and_change_nothing_elsewhere(
    name: str, family: str, reserved: int
) -> None:
    """A type outside Nitro takes single addresses: it takes as many pods as without prefixes."""
    facts: TypeFacts = FACTS[name]
    single, prefixes = (
        pods(facts, shape(family, prefix_delegation=delegated, reserved_interfaces=reserved))
        for delegated in (False, True)
    )
    if facts.hypervisor in ("nitro", ""):
        assert min(single, 110) <= prefixes <= 250
    else:
        assert prefixes == single
