"""A report tells refusals in groups: lines grow with what is wrong, not with pods, pools or types."""

from nodeless.explain.decisions import Situation
from nodeless.explain.report import report
from nodeless.model.labels import ZONE
from nodeless.model.taints import Taint
from nodeless.scheduling import Policy
from tests.scheduling.factories import NOW, instance_type, needs, pods, pool, snapshot

TYPES = tuple(instance_type(f"type-{number}", 4, 4 + number % 16) for number in range(600))


def reported(*things):
    seen = snapshot(*things)
    situation = Situation(seen, dict.fromkeys(seen.pools, TYPES), Policy(), NOW)
    return report(situation, situation.plan())


def test_600_types_and_four_pools_make_four_lines_with_what_helps():
    pools = (
        pool("tainted", taints=(Taint("team", "NoSchedule", "a"),)),
        pool("full", limits={"cpu": "0"}),
        pool("elsewhere", needs(ZONE, "In", "z1")),
        pool("plain", labels={"disk": "hdd"}),
    )
    made = reported(*pools, pods(40, "3", selector={"disk": "ssd", ZONE: "z2"}))

    (group,) = made.unplaced
    assert len(group.pods) == 40
    assert len(group.obstacles) == 4
    assert {obstacle.pools for obstacle in group.obstacles} == {
        (f"Provisioner/{each.name}",) for each in pools
    }
    assert all(len(obstacle.message) < 120 for obstacle in group.obstacles)


def test_pools_with_the_same_obstacle_share_its_line():
    alike = [pool(f"small-{number}") for number in range(30)]
    (group,) = reported(alike, pods(5, "64"), pods(5, "64", name="api")).unplaced

    assert len(group.pods) == 10
    (obstacle,) = group.obstacles
    assert len(obstacle.pools) == 30
    assert obstacle.message.startswith("cpu: 64 requested, but the largest matching instance type (type-")
    assert group.remedies
