"""Rules that contradict, name what nobody has, or ask for absurd amounts: a reason, no error and no hang."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeless.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from nodeless.model.pods import LabelSelector, PodAffinityTerm, TopologySpreadConstraint
from nodeless.scheduling import Policy, solve
from tests.scheduling.factories import FAMILY, beside, plan, pods, pool, snapshot, spread

HUGE = 2**31 - 1
MANY = 30_000
ABSURD = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def floor_plan(*things):
    return plan(*things, policy=Policy(time_box=0))


@pytest.mark.parametrize(
    ("rules", "placed"),
    [
        pytest.param({"spread": (spread(ZONE),)}, MANY, id="one constraint"),
        pytest.param({"spread": (spread(ZONE), spread(CAPACITY_TYPE))}, MANY, id="two constraints"),
        pytest.param(
            {"spread": (spread(ZONE, skew=HUGE), spread(CAPACITY_TYPE, skew=HUGE))}, MANY, id="far limits"
        ),
        pytest.param(
            {"spread": (spread(ZONE), spread(CAPACITY_TYPE), spread(HOSTNAME, skew=60))}, MANY, id="three"
        ),
        pytest.param({"affinity": (beside(ZONE),)}, MANY, id="one zone"),
        pytest.param({"anti_affinity": (beside(ZONE),)}, 3, id="zones apart"),
        pytest.param({"affinity": (beside(ZONE),), "anti_affinity": (beside(ZONE),)}, 1, id="contradiction"),
        pytest.param({"spread": (spread("nobody/has"),)}, 0, id="unknown key"),
        pytest.param({"affinity": (beside("nobody/has"),)}, 0, id="affinity on an unknown key"),
    ],
)
def test_tens_of_thousands_of_replicas_are_divided_at_once(rules, placed):
    result = floor_plan(pods(MANY, "50m", **rules))
    assert sum(len(new.pods) for new in result.new_nodes) == placed
    assert len(result.refusals) == MANY - placed


def test_two_constraints_that_could_lead_into_a_dead_end_leave_nobody_behind():
    # Only on-demand is sold in z3, so a pod there must never find spot behind already.
    for number in (1, 2, 3, 5, 8, 41):
        result = floor_plan(pods(number, "50m", spread=(spread(ZONE), spread(CAPACITY_TYPE))))
        assert not result.refusals


_SELECTORS = st.one_of(
    st.none(),
    st.just(LabelSelector()),
    st.just(LabelSelector((("app", "web"),))),
    st.just(LabelSelector(match_expressions=(("app", "Unheard", ("x",)), ("", "In", ())))),
)
_KEYS = st.sampled_from(
    [ZONE, HOSTNAME, CAPACITY_TYPE, "nobody/has", "", "failure-domain.beta.kubernetes.io/zone"]
)
_SPREADS = st.builds(
    TopologySpreadConstraint,
    _KEYS,
    st.sampled_from([-5, 0, 1, 3, HUGE]),
    st.sampled_from(["DoNotSchedule", "ScheduleAnyway", "Whatever"]),
    _SELECTORS,
    st.sampled_from([None, -1, 0, 2, HUGE]),
    st.sampled_from(["Honor", "Ignore", "Unheard"]),
    st.sampled_from(["Honor", "Ignore", "Unheard"]),
    st.sampled_from([(), ("app",), ("nobody", "")]),
)
_TERMS = st.builds(
    PodAffinityTerm,
    _KEYS,
    _SELECTORS,
    st.sampled_from([(), ("nowhere",)]),
    _SELECTORS,
    st.sampled_from([None, None, -1, 0, HUGE]),
)


@ABSURD
@given(
    st.lists(
        st.tuples(
            st.integers(1, 40),
            st.lists(_SPREADS, max_size=3),
            st.lists(_TERMS, max_size=2),
            st.lists(_TERMS, max_size=2),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([None, {"cpu": "0"}, {"cpu": "7"}]),
)
def test_every_pod_gets_an_answer_whatever_its_rules(workloads, limits):
    wanted = [
        pods(
            number,
            "300m",
            name=f"w{i}",
            labels={"app": "web"},
            spread=tuple(spreads),
            affinity=tuple(near),
            anti_affinity=tuple(far),
        )
        for i, (number, spreads, near, far) in enumerate(workloads)
    ]
    seen = snapshot(wanted, pool(limits=limits))
    result = solve(seen, dict.fromkeys(seen.pools, FAMILY), Policy(time_box=0))
    answered = [key for new in result.new_nodes for key in new.pods] + [one.pod for one in result.refusals]
    assert sorted(answered) == sorted(seen.pods)
