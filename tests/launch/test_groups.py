"""Which claims share a fleet request, and who gets which of its instances."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodeless.launch.groups import MAX_GROUP, Found, assign, group_claims
from nodeless.model.labels import CAPACITY_TYPE
from nodeless.model.requirements import Requirement, Requirements
from tests.factories import a_claim


def test_equal_claims_bear_the_name_of_the_first_and_how_many_they_are() -> None:
    spot = Requirements([Requirement.of(CAPACITY_TYPE, "In", ["spot"])])
    claims = [a_claim("a"), a_claim("b", requirements=spot), a_claim("c", requests={"cpu": 3}), a_claim("d")]
    made = group_claims(claims)
    assert [each.name for each in made] == ["a", "b", "c", "d"]
    assert [(each.launch_group, each.launch_group_size) for each in made] == [
        ("a", 3),
        ("", 1),
        ("a", 3),
        ("a", 3),
    ]


def test_labels_taints_and_annotations_keep_claims_apart() -> None:
    claims = [
        a_claim("a"),
        a_claim("b", labels={"x": "y"}),
        a_claim("c", annotations={"karpenter.sh/nodepool-hash": "1"}),
    ]
    assert group_claims(claims) == tuple(claims)


def test_a_group_is_no_larger_than_a_request_may_be() -> None:
    sizes = [
        each.launch_group_size for each in group_claims([a_claim(f"c{n}") for n in range(MAX_GROUP + 2)])
    ]
    assert sizes == [MAX_GROUP] * MAX_GROUP + [2, 2]


def test_what_somebody_wrote_over_the_size_does_no_harm() -> None:
    (claim, _) = group_claims([a_claim("a"), a_claim("b")])
    for text in ("", "-1", "many", "9" * 40):
        odd = replace(claim, annotations={**claim.annotations, "nodeless.dev/launch-group-size": text})
        assert odd.launch_group_size == 1


names = st.lists(st.sampled_from("abcdef"), unique=True)
instances = st.lists(st.sampled_from(["i-1", "i-2", "i-3", "i-4", "i-5"]), unique=True)


@given(
    names,
    instances,
    st.dictionaries(st.sampled_from(["i-1", "i-2", "i-9"]), st.sampled_from("abz")),
    st.sets(st.sampled_from(["aws:///z/i-3", "aws:///z/i-4"])),
)
def test_nobody_gets_two_and_nothing_is_given_twice(
    wanting: list[str], ids: list[str], given_out: dict[str, str], claimed: set[str]
) -> None:
    found = [Found(each, f"aws:///z/{each}", 0.0) for each in ids]
    result = assign(wanting, found, given=given_out, claimed=claimed)
    assert set(result) <= set(wanting)
    assert set(result.values()) <= set(ids)
    assert len(set(result.values())) == len(result)
    for claim, each in result.items():
        assert given_out.get(each, claim) == claim
        assert each in given_out or f"aws:///z/{each}" not in claimed
    free = [e for e in ids if e not in given_out and f"aws:///z/{e}" not in claimed]
    assert len(result) >= min(len(wanting), len(free))
    assert result == assign(wanting[::-1], found[::-1], given=given_out, claimed=claimed)
