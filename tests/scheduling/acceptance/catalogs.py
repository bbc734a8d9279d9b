"""The catalogs of the acceptance rows (docs/acceptance/README.md), and plans made with them.

`F`: a handful of types with labels of their own; price 0.1 per CPU, 0.1 per 10^9 bytes of memory, and 1 for a
GPU; overhead 100m CPU and 10Mi. `ladder(n)`, I(n): n types, each a CPU, two Gi and ten pods larger than the
one before. `MATRIX`, A: every combination of size, zone, capacity type, operating system and architecture,
each with one offering.
"""

from itertools import product

from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, SPOT, ZONE
from nodeless.model.requirements import Requirements
from nodeless.model.resources import parse_resources
from nodeless.scheduling import FEWEST_NODES, Policy
from tests.scheduling.factories import needs, plan

SIZE = "example.com/size"
SPECIAL = "example.com/special"
INTEGER = "example.com/integer"
SYSTEMS = ("darwin", "linux", "windows")
OVERHEAD = parse_resources({"cpu": "100m", "memory": "10Mi"})
GPU_A, GPU_B = "vendor-a.example/gpu", "vendor-b.example/gpu"
_SOLD = (("z1", SPOT), ("z2", SPOT), ("z1", ON_DEMAND), ("z2", ON_DEMAND), ("z3", ON_DEMAND))


def a_type(
    name, cpu=4, memory="4Gi", *, pods=5, arch="amd64", systems=SYSTEMS, price=None, sold=_SOLD, **capacity
) -> InstanceType:
    amounts = parse_resources({"cpu": str(cpu), "memory": memory, "pods": pods, **capacity})
    cost = 0.1 * cpu + 0.1 * amounts["memory"] / 1e9 + (1 if capacity else 0) if price is None else price
    large = cpu > 4 and amounts["memory"] > 8 * 2**30
    return InstanceType(
        name=name,
        requirements=Requirements(
            [
                needs(INSTANCE_TYPE, "In", name),
                needs(ARCH, "In", arch),
                needs(OS, "In", *systems),
                needs(ZONE, "In", *dict.fromkeys(zone for zone, _ in sold)),
                needs(CAPACITY_TYPE, "In", *dict.fromkeys(kind for _, kind in sold)),
                needs(SIZE, "In", "large" if large else "small"),
                needs(SPECIAL, "In", "optional") if large else needs(SPECIAL, "DoesNotExist"),
                needs(INTEGER, "In", str(cpu)),
            ]
        ),
        capacity=amounts,
        overhead=OVERHEAD,
        offerings=tuple(Offering(zone, kind, cost) for zone, kind in sold),
    )


F = (
    a_type("default"),
    a_type("small", 2, "2Gi"),
    a_type("gpu-a", **{GPU_A: "2"}),
    a_type("gpu-b", **{GPU_B: "2"}),
    a_type("arm", 16, "128Gi", arch="arm64", systems=(*SYSTEMS, "ios")),
    a_type("single-pod", pods=1),
)


def ladder(number) -> tuple[InstanceType, ...]:
    return tuple(a_type(f"step-{i:03}", i + 1, f"{2 * (i + 1)}Gi", pods=10 * (i + 1)) for i in range(number))


MATRIX = tuple(
    a_type(
        f"m-{cpu}-{memory}-{zone}-{kind}-{system}-{arch}",
        cpu,
        f"{memory}Gi",
        arch=arch,
        systems=(system,),
        sold=((zone, kind),),
    )
    for cpu, memory, zone, kind, system, arch in product(
        (1, 2, 4, 8, 16, 32, 64),
        (1, 2, 4, 8, 16, 32, 64, 128),
        ("z1", "z2", "z3"),
        (SPOT, ON_DEMAND),
        ("linux", "windows"),
        ("amd64", "arm64"),
    )
)


def planned(*things, types=F, policy=None):
    """The plan for things with catalog F, by the packing that the rows describe: as few nodes as can be."""
    return plan(*things, types=types, policy=policy or Policy(packing=FEWEST_NODES))
