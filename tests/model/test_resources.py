"""Adding, subtracting and fitting amounts of resources."""

from hypothesis import given
from hypothesis import strategies as st

from nodeless.model.resources import add, fits, format_resources, maximum, parse_resources, subtract, total

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 10**12)
)


@given(AMOUNTS, AMOUNTS)
def test_what_was_added_can_be_taken_away(left, right):
    back = subtract(add(left, right), right)
    assert {name: back[name] for name in back if back[name]} == {
        name: left[name] for name in left if left[name]
    }


@given(st.lists(AMOUNTS), st.randoms())
def test_the_order_of_summing_does_not_matter(many, random):
    shuffled = random.sample(many, len(many))
    assert total(many) == total(shuffled)


@given(AMOUNTS, AMOUNTS)
def test_both_sides_fit_into_their_maximum(left, right):
    assert fits(left, maximum(left, right))
    assert fits(right, maximum(left, right))


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_what_fits_still_fits_into_more(requests, available, extra):
    assert not fits(requests, available) or fits(requests, add(available, extra))


def test_a_zero_request_of_an_unknown_resource_fits():
    assert fits({"nvidia.com/gpu": 0}, {"cpu": 1000})


def test_a_request_of_an_unknown_resource_does_not_fit():
    assert not fits({"nvidia.com/gpu": 1}, {"cpu": 1000})


def test_a_resource_list_is_written_canonically_and_sorted():
    assert list(format_resources(parse_resources({"memory": "1024Mi", "cpu": "1500m"})).items()) == [
        ("cpu", "1500m"),
        ("memory", "1Gi"),
    ]
