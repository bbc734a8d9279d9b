"""Different values that a launch is to choose from: how many there are, and which types bring them."""

from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.min_values import bringing, too_few

VALUES = st.lists(st.frozensets(st.sampled_from("abcdef"), max_size=3), max_size=12)


@given(VALUES, st.integers(min_value=0, max_value=7))
def test_what_is_offered_is_counted_only_where_it_is_too_little(offered, number):
    different = len(frozenset().union(*offered))
    assert too_few(offered, number) == (different if different < number else None)


@given(VALUES, st.integers(min_value=1, max_value=6), st.integers(min_value=1, max_value=12))
def test_of_many_types_those_stay_that_bring_the_values_asked_for_and_else_the_first(offered, number, most):
    places = bringing((("family", number),), len(offered), most, lambda place, _: offered[place])
    assert places == sorted(set(places))
    assert len(places) == min(most, len(offered))
    brought = frozenset().union(*(offered[place] for place in places))
    wanted = min(number, len(frozenset().union(*offered)))
    # Each type that is kept for its values brings one at least.
    assert len(brought) >= min(wanted, most)
    assert bringing((), len(offered), most, lambda place, _: offered[place]) == list(
        range(min(most, len(offered)))
    )
