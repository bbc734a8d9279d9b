"""What settings ask of the solver."""

import pytest

from nodeless.operator.settings import GlobalSettings
from nodeless.operator.solver_policy import policy_of


@pytest.mark.parametrize(
    ("setting", "nominates", "as_bound"),
    [
        ("auto", True, False),
        ("auto", False, True),
        ("always", True, True),
        ("always", False, True),
        ("never", True, False),
        ("never", False, False),
    ],
)
def test_plans_follow_scores_where_pods_are_not_nominated_or_as_the_setting_says(
    setting, nominates, as_bound
):
    settings = GlobalSettings("cluster", plan_as_bound=setting)
    policy = policy_of(settings, nominates=nominates)
    assert policy.as_bound is as_bound
    assert policy.nominates is (nominates and setting != "never")
