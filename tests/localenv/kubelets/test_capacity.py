"""Sizes: of EC2 nodes, of Fargate, of what a pod holds; and whether a kubelet admits it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from localenv.kubelets.bootstrap import Bootstrap
from localenv.kubelets.capacity import GIB, MIB, allocatable, capacity, fargate_size, reserved_cpu
from localenv.kubelets.fitting import admit
from localenv.kubelets.objects import Pod, pod_requests
from localenv.kubelets.quantities import format_quantity, parse_quantity, parse_resources

BOOTSTRAP = Bootstrap("AL2", "lab")


def _record(cpus: int, mib: int, interfaces: int, addresses: int) -> dict[str, Any]:
    card = {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": interfaces}
    return {
        "VCpuInfo": {"DefaultVCpus": cpus},
        "MemoryInfo": {"SizeInMiB": mib},
        "NetworkInfo": {
            "DefaultNetworkCardIndex": 0,
            "NetworkCards": [card],
            "MaximumNetworkInterfaces": interfaces,
            "Ipv4AddressesPerInterface": addresses,
        },
    }


M5_LARGE = _record(2, 8192, 3, 10)


def test_capacity_is_the_types_less_what_the_guest_never_sees() -> None:
    whole = capacity(M5_LARGE, BOOTSTRAP)

    assert (whole["cpu"], whole["pods"]) == (2, 29)
    assert whole["memory"] == (8192 - 594) * MIB


def test_allocatable_leaves_out_what_kubelet_and_eviction_keep() -> None:
    free = allocatable(M5_LARGE, BOOTSTRAP, capacity(M5_LARGE, BOOTSTRAP))

    assert free["cpu"] == Decimal("1.93")
    assert free["memory"] == (8192 - 594 - (11 * 29 + 255) - 100) * MIB
    assert free["ephemeral-storage"] == 20 * GIB - GIB - 2 * GIB


def test_huge_pages_are_a_resource_of_their_own_and_no_memory_for_pods() -> None:
    without = allocatable(M5_LARGE, BOOTSTRAP, capacity(M5_LARGE, BOOTSTRAP))
    bootstrap = Bootstrap("AL2", "lab", huge_pages=512)
    whole = capacity(M5_LARGE, bootstrap)
    free = allocatable(M5_LARGE, bootstrap, whole)

    assert whole["memory"] == capacity(M5_LARGE, BOOTSTRAP)["memory"]
    assert free["hugepages-2Mi"] == whole["hugepages-2Mi"] == GIB
    assert free["memory"] == without["memory"] - GIB


def test_reservations_of_the_bootstrap_replace_the_computed() -> None:
    bootstrap = Bootstrap(
        "AL2",
        "lab",
        max_pods=8,
        kube_reserved={"cpu": "200m"},
        system_reserved={"cpu": "100m"},
        eviction_hard={"memory.available": "10%"},
    )
    whole = capacity(M5_LARGE, bootstrap)

    free = allocatable(M5_LARGE, bootstrap, whole)

    assert free["pods"] == 8
    assert free["cpu"] == Decimal("1.7")
    assert whole["memory"] - free["memory"] - (11 * 29 + 255) * MIB == pytest.approx(
        whole["memory"] / 10, abs=1
    )


@pytest.mark.parametrize(
    ("cpus", "milli"), [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (96, 310), (128, 390)]
)
def test_reserved_cpu_follows_the_steps_of_the_bootstrap(cpus: int, milli: int) -> None:
    assert reserved_cpu(cpus) * 1000 == milli


@pytest.mark.parametrize(
    ("requests", "vcpu", "gib"),
    [
        ({}, "0.25", "0.5"),
        ({"cpu": "1", "memory": "1Gi"}, "1", "2"),
        ({"cpu": "250m", "memory": "1900Mi"}, "0.5", "3"),
        ({"cpu": "5", "memory": "10Gi"}, "8", "16"),
        ({"cpu": "100m", "memory": "100Gi"}, "16", "104"),
    ],
)
def test_fargate_rounds_up_to_a_size_it_sells(requests: dict[str, str], vcpu: str, gib: str) -> None:
    assert fargate_size(parse_resources(requests)) == (Decimal(vcpu), Decimal(gib) * GIB)


def test_nothing_is_larger_than_the_largest_fargate() -> None:
    with pytest.raises(ValueError, match="no Fargate size holds cpu 17"):
        fargate_size({"cpu": Decimal(17)})


def test_a_pod_holds_its_containers_or_its_largest_start() -> None:
    document = {
        "metadata": {"name": "p"},
        "spec": {
            "initContainers": [
                {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                {"name": "setup", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}},
            ],
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}],
            "overhead": {"cpu": "10m"},
        },
    }
    requests = pod_requests(msgspec.convert(document, Pod))

    assert requests == {"cpu": Decimal("2.11"), "memory": Decimal(2 * GIB), "pods": 1}


def test_a_pod_holds_nothing_of_a_resource_that_devices_serve() -> None:
    """A kubelet admits it on a node that does not announce the resource."""
    gpu = {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}
    served = [
        {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "container-0-request-1"}
    ]
    document = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "resources": gpu}, {"name": "other", "resources": gpu}]},
        "status": {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": served}},
    }
    pod = msgspec.convert(document, Pod)

    assert pod.claims_devices
    assert pod_requests(pod) == {"cpu": Decimal(2), "nvidia.com/gpu": Decimal(1), "pods": 1}


def test_a_pod_that_exceeds_what_is_left_is_refused_with_the_figures() -> None:
    refusal = admit(
        parse_resources({"cpu": "1", "memory": "1Gi"}),
        [parse_resources({"cpu": "500m"})],
        parse_resources({"cpu": "1400m", "memory": "8Gi"}),
    )

    assert refusal is not None
    assert refusal.reason == "OutOfcpu"
    assert "requested: 1000, used: 500, capacity: 1400" in refusal.message


def test_a_pod_that_just_fits_is_admitted() -> None:
    assert (
        admit(parse_resources({"cpu": "1"}), [parse_resources({"cpu": "1"})], parse_resources({"cpu": "2"}))
        is None
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", "0.5"), ("1.5Gi", str(3 * 2**29)), ("2", "2"), ("1e3", "1000"), ("3k", "3000")],
)
def test_quantities_are_read(text: str, value: str) -> None:
    assert parse_quantity(text) == Decimal(value)


def test_what_is_no_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="'much' is not a quantity"):
        parse_quantity("much")


def test_quantities_are_printed_as_the_api_server_prints_them() -> None:
    assert format_quantity("cpu", Decimal("1.93")) == "1930m"
    assert format_quantity("cpu", Decimal(2)) == "2"
    assert format_quantity("memory", Decimal(2**30)) == "1073741824"
