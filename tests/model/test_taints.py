"""Tolerations as Kubernetes defines them."""

import pytest

from nodeless.model.taints import Taint, Toleration, find_untolerated

TEAM = Taint("team", "NoSchedule", "blue")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("team", "Equal", "blue", "NoSchedule"), True),
        (Toleration("team", "Equal", "blue"), True),
        (Toleration("team", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoExecute"), False),
        (Toleration("team", "Equal", "red"), False),
        (Toleration("crew", "Exists"), False),
        (Toleration("team", "Exists", "", "NoExecute"), False),
        (Toleration("", "Equal", "blue"), False),
    ],
)
def test_a_toleration_covers_a_taint(toleration, tolerated):
    assert toleration.tolerates(TEAM) is tolerated


def test_the_first_taint_that_nothing_covers_is_told():
    other = Taint("gpu", "NoExecute")
    assert find_untolerated((TEAM, other), (Toleration("team", "Exists"),)) == other
    assert find_untolerated((TEAM, other), (Toleration("", "Exists"),)) is None
    assert (str(TEAM), str(other)) == ("team=blue:NoSchedule", "gpu:NoExecute")
