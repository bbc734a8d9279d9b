"""Whatever pods ask for, the claims of a plan keep to what the API server takes of a NodeClaim."""

import pytest

from nodeless.api.names import label_value_defects
from nodeless.launch.claims import MOST_REQUIREMENTS, claims_for
from nodeless.model.labels import ZONE
from tests.scheduling.factories import NOW, codes, needs, plan, pods, pool, term

TEAM = "example.com/team"


def claims_of(result, some_pool):
    return [create.claim for create in claims_for(result, {some_pool.key: some_pool}, NOW)]


def written(claim):
    return [entry for one in claim.requirements.values() for entry in one.to_api()]


@pytest.mark.parametrize("value", ["no label value!", "x" * 64, "ü", "-", "a/b"])
@pytest.mark.parametrize("key", [TEAM, ZONE])
@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_a_preferred_value_that_no_label_has_gets_into_no_claim(key, operator, value):
    some_pool = pool("default", needs(TEAM, "Exists"))
    wish = ((100, term(needs(key, operator, value))),)
    result = plan(pods(1, preferred_terms=wish), pods(3, "500m", name="other"), some_pool)
    assert not result.refusals
    for claim in claims_of(result, some_pool):
        assert not any(label_value_defects(each) for each in claim.labels.values())
        assert not any(label_value_defects(each) for one in written(claim) for each in one.get("values", ()))


def test_of_several_preferred_values_those_count_that_a_label_can_have():
    some_pool = pool("default", needs(TEAM, "Exists"))
    wish = ((100, term(needs(TEAM, "In", "blue", "no value!"))),)
    (claim,) = claims_of(plan(pods(1, preferred_terms=wish), some_pool), some_pool)
    assert claim.labels[TEAM] == "blue"


def test_a_required_value_that_no_label_has_is_a_reason():
    result = plan(pods(1, required_terms=(term(needs(TEAM, "In", "no value!")),)), pool())
    assert codes(result) == ["RequirementsContradict"]
    assert "no label can have" in str(result.refusals[0])


@pytest.mark.parametrize("operator", ["DoesNotExist", "NotIn"])
def test_labels_that_only_pods_speak_of_take_no_room_in_a_claim(operator):
    values = ("a",) if operator == "NotIn" else ()
    absent = [needs(f"example.com/no-{each}", operator, *values) for each in range(250)]
    result = plan(pods(2, required_terms=(term(*absent),)), pods(2, name="other"), pool())
    assert not result.refusals
    for claim in claims_of(result, pool()):
        assert len(written(claim)) <= MOST_REQUIREMENTS
        assert not any(key.startswith("example.com/no-") for key in (*claim.labels, *claim.requirements))
