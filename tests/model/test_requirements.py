"""The algebra of requirements: the acceptance rows, and laws over any requirements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.labels import ARCH, ZONE
from nodeless.model.requirements import Requirement, Requirements

VALUES = ("0", "1", "2", "7", "9", "10", "a", "b", "x", "1_0")
KEY = "example.com/key"


def requirement(operator: str, *values: str, key: str = KEY) -> Requirement:
    return Requirement.of(key, operator, values)


def requirements_of(draw):
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]))
    if operator in ("In", "NotIn"):
        return requirement(operator, *draw(st.sets(st.sampled_from(VALUES), min_size=1)))
    if operator in ("Exists", "DoesNotExist"):
        return requirement(operator)
    return requirement(operator, str(draw(st.integers(0, 10))))


ANY = st.composite(requirements_of)()


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        pytest.param(
            requirement("In", "A", "B"), requirement("NotIn", "B"), requirement("In", "A"), id="RQ-01"
        ),
        pytest.param(
            requirement("NotIn", "A"), requirement("NotIn", "B"), requirement("NotIn", "A", "B"), id="RQ-02"
        ),
        pytest.param(requirement("Exists"), requirement("In", "A"), requirement("In", "A"), id="RQ-03-In"),
        pytest.param(
            requirement("Exists"),
            requirement("DoesNotExist"),
            requirement("DoesNotExist"),
            id="RQ-03-DoesNotExist",
        ),
        pytest.param(
            requirement("Gt", "1"), requirement("In", "1", "2", "9"), requirement("In", "2", "9"), id="RQ-04"
        ),
        pytest.param(requirement("Gt", "9"), requirement("Lt", "1"), requirement("DoesNotExist"), id="RQ-05"),
        pytest.param(requirement("In", "x"), requirement("Gt", "1"), requirement("DoesNotExist"), id="RQ-06"),
    ],
)
def test_meeting_keeps_what_both_allow(left, right, both):
    assert left.intersect(right) == both
    assert right.intersect(left) == both


@pytest.mark.parametrize(
    ("operator", "bound"), [("Gt", 2**63 - 1), ("Lt", -(2**63)), ("Gte", 2**63), ("Lte", -(2**63) - 1)]
)
def test_a_bound_beyond_every_number_of_64_bits_holds_for_none(operator, bound):
    beyond = requirement(operator, str(bound))
    assert beyond.is_impossible()
    assert not beyond.allows_absence()
    assert not beyond.overlaps(requirement("Exists"))
    assert not any(beyond.allows(value) for value in (*VALUES, str(bound), str(bound + 1), str(bound - 1)))


@pytest.mark.parametrize(("operator", "bound"), [("Gt", 2**63 - 2), ("Lt", -(2**63) + 1)])
def test_the_last_bound_leaves_one_number(operator, bound):
    last = requirement(operator, str(bound))
    assert last.overlaps(requirement("Exists"))
    assert last.allows(str(bound + 1 if operator == "Gt" else bound - 1))


@pytest.mark.parametrize("excluded", [1, 3])
@pytest.mark.parametrize("bounds", [(("Gt", "4"), ("Lt", "{end}")), (("Gt", "{start}"),)])
def test_bounds_of_which_every_number_is_excluded_leave_no_value(bounds, excluded):
    largest = 2**63 - 1
    numbers = range(5, 5 + excluded) if len(bounds) == 2 else range(largest - excluded + 1, largest + 1)
    told = {"start": numbers[0] - 1, "end": numbers[-1] + 1}
    within = [requirement(operator, bound.format(**told)) for operator, bound in bounds]
    (some,) = Requirements(within).values()
    others = requirement("NotIn", *map(str, numbers[1:])) if excluded > 1 else requirement("NotIn", "x")
    assert some.intersect(others).some_value() == str(numbers[0])
    none = requirement("NotIn", *map(str, numbers))
    assert not some.overlaps(none)
    assert some.intersect(none).some_value() is None


def test_rq_15_the_stricter_minimum_of_distinct_values_stays():
    two = Requirement.of(KEY, "Exists", min_values=2)
    five = Requirement.of(KEY, "In", ["a"], min_values=5)
    assert two.intersect(five).min_values == 5


def test_rq_16_equal_inclusive_bounds_leave_one_number_and_are_written_as_two_entries():
    both = requirement("Gte", "5").intersect(requirement("Lte", "5"))
    assert [value for value in ("4", "5", "6") if both.allows(value)] == ["5"]
    assert both.to_api() == [
        {"key": KEY, "operator": "Gt", "values": ["4"]},
        {"key": KEY, "operator": "Lt", "values": ["6"]},
    ]


@pytest.mark.parametrize(
    ("node", "pod", "compatible"),
    [
        pytest.param(("In", "A"), ("NotIn", "A"), False, id="RQ-07: In and NotIn, no"),
        pytest.param(("In", "A"), ("NotIn", "B"), True, id="RQ-07: In and NotIn, yes"),
        pytest.param(("DoesNotExist",), ("NotIn", "A"), True, id="RQ-08: DoesNotExist and NotIn, yes"),
        pytest.param(
            ("DoesNotExist",), ("DoesNotExist",), True, id="RQ-08: DoesNotExist and DoesNotExist, yes"
        ),
        pytest.param(("DoesNotExist",), ("Exists",), False, id="RQ-08: DoesNotExist and Exists, no"),
        pytest.param(("DoesNotExist",), ("In", "A"), False, id="RQ-08: DoesNotExist and In, no"),
        pytest.param(("DoesNotExist",), ("Gt", "1"), False, id="RQ-08: DoesNotExist and Gt, no"),
        pytest.param(("DoesNotExist",), ("Lt", "1"), False, id="RQ-08: DoesNotExist and Lt, no"),
        pytest.param(("NotIn", "A"), ("DoesNotExist",), True, id="NotIn and DoesNotExist, yes"),
        pytest.param(("Exists",), ("DoesNotExist",), False, id="Exists and DoesNotExist, no"),
        pytest.param(("Gt", "1"), ("DoesNotExist",), False, id="Gt and DoesNotExist, no"),
        pytest.param(("Gt", "1"), ("Lt", "9"), True, id="Gt and Lt, yes"),
    ],
)
def test_a_pod_goes_with_a_node_that_defines_the_label(node, pod, compatible):
    conflict = Requirements([requirement(*node)]).incompatible(Requirements([requirement(*pod)]))
    assert (conflict is None) is compatible


@pytest.mark.parametrize(
    ("pod", "compatible"),
    [
        (("In", "A"), False),
        (("Exists",), False),
        (("Gt", "1"), False),
        (("NotIn", "A"), True),
        (("DoesNotExist",), True),
    ],
)
def test_rq_09_a_label_of_ones_own_must_be_defined_unless_absence_will_do(pod, compatible):
    assert (Requirements().incompatible(Requirements([requirement(*pod)])) is None) is compatible


def test_rq_10_and_rq_11_a_new_node_may_leave_the_zone_open_and_an_existing_one_may_not():
    pod = Requirements([requirement("In", "z1", key=ZONE)])
    assert Requirements().incompatible(pod) is None
    assert Requirements().incompatible(pod, may_be_undefined=frozenset()) is not None


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("zone", ZONE),
        ("arch", ARCH),
        ("example.com/arch", ARCH),
        ("kubernetes.io/arhc", ARCH),
        ("example.com/teem", "example.com/team"),
        ("example.com/color", None),
        ("", None),
    ],
)
def test_rq_12_a_mistyped_key_gets_a_hint(key, meant):
    pod = Requirements([requirement("In", "x", key=key)])
    pool = Requirements([requirement("In", "x", key="example.com/team")])
    message = str(pool.incompatible(pod))
    assert message.endswith(f"hint: did you mean {meant}?" if meant else "the label is not defined")


def test_rq_13_older_spellings_of_a_key_mean_the_stable_one():
    assert Requirement.of("failure-domain.beta.kubernetes.io/zone", "In", ["z1"]).key == ZONE


def test_rq_14_long_lists_are_shortened_in_messages():
    assert str(requirement("In", *"gfedcba")) == f"{KEY} In [a, b, c, d, e and 2 others]"


def test_an_unknown_operator_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match=r"unknown operator 'Near' .*hint: use one of In, NotIn"):
        requirement("Near", "a")


@given(ANY, ANY, st.sampled_from(VALUES))
def test_a_value_is_allowed_by_both_exactly_when_the_meeting_allows_it(left, right, value):
    assert left.intersect(right).allows(value) is (left.allows(value) and right.allows(value))


@given(ANY, ANY, ANY)
def test_meeting_is_commutative_associative_and_idempotent(first, second, third):
    assert first.intersect(second) == second.intersect(first)
    assert first.intersect(first) == first
    together = first.intersect(second).intersect(third)
    assert all(
        together.allows(value) is first.intersect(second.intersect(third)).allows(value) for value in VALUES
    )


@given(ANY, ANY)
def test_requirements_overlap_whenever_a_value_or_absence_satisfies_both(left, right):
    witness = any(left.allows(value) and right.allows(value) for value in VALUES)
    absent = left.allows_absence() and right.allows_absence()
    assert left.overlaps(right) is right.overlaps(left)
    assert left.overlaps(right) or not (witness or absent)


@given(ANY, ANY)
def test_requirements_overlap_exactly_when_their_meeting_is_not_empty_or_absence_satisfies_both(left, right):
    absent = left.allows_absence() and right.allows_absence()
    assert left.overlaps(right) is (absent or not left.intersect(right).is_empty())


@given(ANY)
def test_written_for_the_api_and_read_back_nothing_is_lost(original):
    entries = original.to_api()
    (back,) = Requirements(
        Requirement.of(entry["key"], entry["operator"], entry.get("values", ())) for entry in entries
    ).values()
    assert all(back.allows(value) is original.allows(value) for value in VALUES)


@given(st.lists(ANY), st.randoms())
def test_a_set_does_not_depend_on_the_order_of_its_parts(parts, random):
    shuffled = random.sample(parts, len(parts))
    assert all(
        left.allows(value) is right.allows(value)
        for left, right in zip(Requirements(parts).values(), Requirements(shuffled).values(), strict=True)
        for value in VALUES
    )


@given(ANY, st.one_of(st.none(), st.sampled_from(VALUES)))
def test_labels_satisfy_a_set_exactly_when_each_requirement_holds(one, value):
    labels = {} if value is None else {KEY: value}
    expected = one.allows_absence() if value is None else one.allows(value)
    assert Requirements([one]).satisfied_by(labels) is expected
