"""What rules over zones say of whole plans: every way to divide a few pods among zones keeps to it."""

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from nodeless.scheduling.optimizer.balances import Balance, least_worth
from nodeless.scheduling.pods.classes import Axis, PodClass
from nodeless.scheduling.pods.constraints import demand_of
from tests.scheduling.factories import pods

ZONES = ("z1", "z2", "z3")
COUNTS = st.tuples(*[st.integers(0, 4)] * 3)
WORTH = st.tuples(*[st.sampled_from([0.0, 1.0, 1.5, 4.0])] * 3)


def a_class(number):
    """Pods of a class."""
    made = pods(max(1, number))
    demand = demand_of(made[0].shape)
    return PodClass(made[0].shape, demand, tuple(pod.key for pod in made), Axis(()).row({}))


def ways(number, there, skew, *, grows):
    """How many pods may come to each zone: where one comes, it has not too many more than the emptiest."""
    for come in product(range(number + 1), repeat=len(ZONES)):
        after = [now + more for now, more in zip(there, come, strict=True)]
        least = min(after) if grows else 0
        fine = (full <= least + skew for full, more in zip(after, come, strict=True) if more)
        if sum(come) == number and all(fine):
            yield come


@given(st.integers(1, 8), COUNTS, st.integers(1, 3), st.booleans(), WORTH)
def test_no_way_to_divide_pods_is_worth_less(number, there, skew, grows, worth):
    some = list(ways(number, there, skew, grows=grows))
    assume(some)
    own = a_class(number)
    balance = Balance((own,), ZONES, there, skew, grows, coming=number)
    parts = [(own, zone, float(number), value) for zone, value in zip(ZONES, worth, strict=True)]
    least = min(sum(more * value for more, value in zip(come, worth, strict=True)) for come in some)
    assert least_worth(parts, [balance]) <= least + 1e-9
    for place, zone in enumerate(ZONES):
        assert max(come[place] for come in some) <= balance.most_in(zone)
    if grows:
        fewest, most = balance.in_emptiest()
        emptiest = {min(map(sum, zip(there, come, strict=True))) for come in some}
        assert fewest <= min(emptiest) <= max(emptiest) <= most


def test_two_classes_are_balanced_together():
    """Six pods of two classes with one label: two in each zone, whichever they are."""
    one, other = a_class(4), a_class(2)
    balance = Balance((one, other), ZONES, (0, 0, 0), 1, grows=True, coming=6)
    parts = [
        (own, zone, number, worth)
        for own, number in ((one, 4.0), (other, 2.0))
        for zone, worth in zip(ZONES, (1.0, 1.0, 10.0), strict=True)
    ]
    assert abs(least_worth(parts, [balance]) - 24.0) < 1e-9
