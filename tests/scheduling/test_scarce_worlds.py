"""Random clusters with volumes, few addresses and few reserved instances: no plan uses what is not there."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from nodeless.model.resources import fits, total
from nodeless.model.subnets import SubnetRoom
from nodeless.model.volumes import PersistentVolumeClaim, Volume
from nodeless.scheduling import FEWEST_NODES, LOWEST_PRICE, Policy, solve
from tests.scheduling.factories import instance_type, needs, pods, pool, snapshot, spread, term

EBS = "ebs.csi.aws.com"
ZONES = ("z1", "z2", "z3")
SIZES = tuple(replace(instance_type(f"t{cpu}", cpu, 4 * cpu), volume_limits={EBS: 3}) for cpu in (2, 4, 8))
POOL = pool("default", needs(CAPACITY_TYPE, "In", ON_DEMAND, SPOT, RESERVED))


@st.composite
def catalogs(draw: st.DrawFn) -> tuple[InstanceType, ...]:
    """The types, some with instances that are reserved in a zone."""
    types = []
    for kind in SIZES:
        slots, zone = draw(st.integers(0, 3)), draw(st.sampled_from(ZONES))
        price = draw(st.sampled_from([0.0, kind.offerings[-1].price / 1e7]))
        held = Offering(zone, RESERVED, price, True, f"cr-{kind.name}", slots)
        types.append(replace(kind, offerings=(*kind.offerings, held)) if slots else kind)
    return tuple(types)


@st.composite
def things(draw: st.DrawFn) -> list[object]:
    """Workloads, some with a volume for each pod that is in one zone."""
    result: list[object] = []
    for index in range(draw(st.integers(1, 4))):
        name, number = f"w{index}", draw(st.integers(1, 8))
        cpu = f"{draw(st.sampled_from([50, 700, 1900, 3500]))}m"
        rules = draw(st.sampled_from([(), (), (spread(ZONE, name),)]))
        zone = draw(st.sampled_from([None, None, *ZONES]))
        for pod in pods(number, cpu, "100Mi", name=name, spread=rules):
            if zone is None or rules:
                result.append(pod)
                continue
            there = (term(needs(ZONE, "In", zone)),)
            result.append(Volume(f"pv-{pod.name}", EBS, there))
            result.append(
                PersistentVolumeClaim("default", pod.name, "", f"pv-{pod.name}", bound=True, phase="Bound")
            )
            result.append(replace(pod, shape=replace(pod.shape, claims=(pod.name,))))
    return result


#: Dollars an hour by which the linear program's answer may be off: its solver stops at 1e-7.
_TOLERANCE = 1e-6

SUBNETS = st.one_of(
    st.none(),
    st.tuples(*(st.integers(0, 25) for _ in ZONES)).map(lambda free: dict(zip(ZONES, free, strict=True))),
)


@settings(deadline=None, max_examples=60)
@given(
    things(),
    catalogs(),
    SUBNETS,
    st.sampled_from([LOWEST_PRICE, FEWEST_NODES]),
    st.sampled_from([0.0, 0.05]),
)
def test_no_plan_uses_what_is_not_there(wanted, types, free, packing, time_box):
    seen = snapshot(wanted, POOL)
    rooms = (
        () if free is None else tuple(SubnetRoom(f"subnet-{zone}", zone, left) for zone, left in free.items())
    )
    policy = Policy(packing=packing, time_box=time_box, subnets={POOL.key: rooms} if rooms else {})
    made = solve(seen, {POOL.key: types}, policy)
    by_name = {kind.name: kind for kind in types}

    placed = Counter(key for new in made.new_nodes for key in new.pods)
    placed.update(refusal.pod for refusal in made.refusals)
    assert placed == Counter(list(seen.pods))

    taken: Counter[str] = Counter()
    addresses: Counter[str] = Counter()
    for new in made.new_nodes:
        offerings = [each.offering for each in new.alternatives]
        (reservation,) = {offering.reservation for offering in offerings}
        taken[reservation] += 1
        if rooms and min(free.values()) < 2 * len(seen.pods):
            (zone,) = {offering.zone for offering in offerings}
            addresses[zone] += 1 + len(new.pods)
        placed_here = [seen.pods[key] for key in new.pods]
        volumes = [seen.volumes[f"pv-{name}"] for pod in placed_here for name in pod.shape.claims]
        for each in new.alternatives:
            kind = by_name[each.instance_type]
            assert fits(total(pod.requests for pod in placed_here), kind.allocatable)
            assert len(volumes) <= kind.volume_limits[EBS]
            assert all(volume.terms[0].expressions[0].allows(each.offering.zone) for volume in volumes)

    held = {o.reservation: o.remaining for kind in types for o in kind.offerings if o.reservation}
    assert all(number <= held[name] for name, number in taken.items() if name)
    assert all(number <= free[zone] for zone, number in addresses.items())
    assert made.lower_bound is None or made.lower_bound <= made.cost_per_hour + _TOLERANCE
