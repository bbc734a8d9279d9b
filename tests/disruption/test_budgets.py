"""Given a pool's disruption budgets, how many of its nodes may go at once, and when?"""

import calendar
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.disruption.budgets import UNLIMITED, active, allowance, allowed_disruptions, limit
from nodeless.disruption.schedules import parse_schedule
from nodeless.model.conditions import Condition
from nodeless.model.labels import INITIALIZED, REPLACES
from nodeless.model.nodes import INSTANCE_TERMINATING, REBOOTING
from nodeless.model.pools import Budget
from nodeless.model.taints import Taint
from tests.disruption.world import a_node_pool, cluster, decide, node_of, on, only_command
from tests.scheduling.factories import NOW

DISRUPTED = Taint("karpenter.sh/disrupted", "NoSchedule")
ENDING = Condition(INSTANCE_TERMINATING, "True", INSTANCE_TERMINATING, "", NOW)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(("nodes", "gone"), [("3", 3), ("100%", 10), ("0", 0)])
def test_dn_01_of_ten_empty_nodes_as_many_go_as_the_budget_allows(nodes, gone):
    pool = a_node_pool(budgets=(Budget(nodes),))
    decisions = decide(cluster(pool, [node_of(pool, f"n{number}") for number in range(10)]))
    assert sum(len(command.claims) for command in decisions.commands) == gone
    left = [verdict for verdict in decisions.verdicts.values() if verdict.code == "Budget"]
    assert len(left) == 10 - gone
    assert all("0 of at most" in verdict.message for verdict in left)


class CountedReasons(tuple):
    """The reasons of a budget, which count how often it is asked about each."""

    def __init__(self, _):
        self.asked = Counter()

    def __contains__(self, reason):
        self.asked[reason] += 1
        return super().__contains__(reason)


BROKEN = {"conditions": (Condition("Ready", "False", "", NOW - 3600),), "ready": False}


@pytest.mark.parametrize(
    ("reason", "refused", "node", "pods"),
    [("Empty", 200, {}, 0), ("Underutilized", 200, {}, 1), ("Unhealthy", 40, BROKEN, 1)],
)
def test_a_pass_asks_the_budgets_of_a_pool_once_for_each_reason_however_many_nodes_they_hold(
    reason, refused, node, pods
):
    """Each answer counts all nodes of the pool: one for each node would be their number squared."""
    reasons = CountedReasons((reason,))
    pool = a_node_pool(budgets=(Budget("0", reasons=reasons),))
    names = [f"n{number}" for number in range(refused)]
    others = [node_of(pool, f"other{number}") for number in range(200 - refused)]
    held = [(node_of(pool, name, node=node), on(name, pods)) for name in names]
    decisions = decide(cluster(pool, held, others), node_repair=True)
    assert sum(decisions.verdicts[name].code == "Budget" for name in names) == refused
    assert reasons.asked[reason] == 1
    assert set(reasons.asked.values()) == {1}


@pytest.mark.parametrize("schedule", ["when it suits", "99 0 * * *", "@never"])
def test_a_budget_whose_schedule_cannot_be_read_always_applies(schedule):
    assert active(Budget("0", schedule=schedule, duration=3600), NOW)


def test_dn_02_the_strictest_budget_counts_and_one_outside_its_window_does_not():
    closed = Budget("0", schedule="0 0 * * *", duration=3600)
    pool = a_node_pool(budgets=(Budget("10"), Budget("2"), closed))
    assert allowed_disruptions(pool, "Empty", 20, at("2026-06-01T12:00:00")) == 2
    assert allowed_disruptions(pool, "Empty", 20, at("2026-06-01T00:30:00")) == 0
    assert allowed_disruptions(a_node_pool(), "Empty", 20, NOW) == UNLIMITED


def test_a_budget_for_other_reasons_does_not_count():
    pool = a_node_pool(budgets=(Budget("0", reasons=("Drifted",)), Budget("5")))
    assert allowed_disruptions(pool, "Empty", 20, NOW) == 5
    assert allowed_disruptions(pool, "Drifted", 20, NOW) == 0


@pytest.mark.parametrize(
    ("nodes", "total", "expected"),
    [
        pytest.param("15%", 10, 2, id="DN-03"),
        ("10%", 1, 1),
        ("0%", 10, 0),
        ("7", 3, 7),
        ("many", 10, 0),
        ("-1", 10, 0),
    ],
)
def test_percentages_are_rounded_up_and_what_cannot_be_read_allows_nothing(nodes, total, expected):
    assert limit(Budget(nodes), total) == expected


def test_dn_04_nodes_that_leave_or_are_not_ready_are_taken_off():
    pool = a_node_pool(budgets=(Budget("3"),))
    seen = cluster(
        pool,
        node_of(pool, "a"),
        node_of(pool, "unready", node={"ready": False}),
        node_of(pool, "deleted", deletion_timestamp=NOW),
        node_of(pool, "marked", node={"taints": (DISRUPTED,)}),
        node_of(pool, "other", node={"ready": False}),
    )
    found = allowance(seen, pool, "Empty", NOW)
    assert (found.nodes, found.disrupted, found.remaining) == (5, 4, 0)


@pytest.mark.parametrize("reason", ["Drifted", "Unhealthy"])
def test_dn_04_a_node_whose_replacement_is_written_is_taken_off_before_it_is_marked(reason):
    """The mark met a conflict, or the leader died: the next drifted node went beside it, one too many."""
    pool = a_node_pool(budgets=(Budget("1"),))
    new = node_of(pool, "new", annotations={REPLACES: "a"}, conditions=(), node={"labels": {}})
    found = allowance(cluster(pool, new, node_of(pool, "a"), node_of(pool, "b")), pool, reason, NOW)
    assert (found.nodes, found.disrupted, found.remaining) == (2, 1, 0)


def test_a_budget_that_nodes_use_up_which_are_not_ready_says_so():
    """It said that they are disrupted, which nobody does."""
    pool = a_node_pool(budgets=(Budget("1"),))
    sick = [node_of(pool, "sick", node={"ready": False}), on("sick")]
    verdict = decide(cluster(pool, node_of(pool, "a"), sick)).verdicts["a"]
    assert verdict.message.startswith("empty, but 1 of at most 1 nodes are disrupted or not Ready at")
    draining = node_of(pool, "draining", deletion_timestamp=NOW - 600)
    verdict = decide(cluster(pool, node_of(pool, "a"), draining)).verdicts["a"]
    assert verdict.message.startswith("empty, but 1 of at most 1 nodes are disrupted at")


def test_dn_04_nodes_that_are_being_rebooted_are_taken_off_whatever_the_reason():
    pool = a_node_pool(budgets=(Budget("3"),))
    rebooting = Condition(REBOOTING, "True", "RebootIssued", "", NOW)
    seen = cluster(pool, node_of(pool, "a"), node_of(pool, "b", conditions=(rebooting,)))
    for reason in ("Empty", "Unhealthy"):
        found = allowance(seen, pool, reason, NOW)
        assert (found.nodes, found.disrupted, found.remaining) == (2, 1, 2)


def test_dn_05_nodes_whose_instance_is_ending_count_neither_way():
    pool = a_node_pool(budgets=(Budget("50%"),))
    gone = node_of(pool, "gone", deletion_timestamp=NOW, conditions=(ENDING,))
    found = allowance(cluster(pool, node_of(pool, "a"), node_of(pool, "b"), gone), pool, "Empty", NOW)
    assert (found.nodes, found.allowed, found.disrupted) == (2, 1, 0)


def test_dn_05_nodes_that_are_not_initialized_are_not_counted():
    pool = a_node_pool(budgets=(Budget("10%"),))
    booting = node_of(pool, "b", conditions=(), node={"labels": {}})
    assert allowance(cluster(pool, node_of(pool, "a"), booting), pool, "Empty", NOW).nodes == 1


def test_a_budget_is_shared_by_all_moves_of_a_round():
    pool = a_node_pool(budgets=(Budget("1"),))
    seen = cluster(pool, node_of(pool, "a"), node_of(pool, "b"))
    assert len(only_command(decide(seen)).claims) == 1


@pytest.mark.parametrize(
    ("what", "fields", "goes"),
    [
        ("it has begun to leave and is soon gone", {"deletion_timestamp": NOW - 59}, True),
        ("it has left for longer than a drain takes", {"deletion_timestamp": NOW - 60}, False),
        ("it is marked, and nobody deletes it", {"node": {"taints": (DISRUPTED,)}}, False),
        (
            "its instance is ending: it counts neither way",
            {"deletion_timestamp": NOW, "conditions": (ENDING,)},
            True,
        ),
    ],
)
def test_a_command_is_chosen_while_the_node_that_holds_its_budget_is_soon_gone(what, fields, goes):
    """It is looked at once more before it is done, and waits for the budget then."""
    pool = a_node_pool(budgets=(Budget("1"),))
    decisions = decide(cluster(pool, node_of(pool, "a"), node_of(pool, "gone", **fields)))
    assert bool(decisions.commands) == goes, what


@pytest.mark.parametrize(
    ("schedule", "after", "strike"),
    [
        ("0 9 * * mon-fri", "2026-06-05T09:00:00", "2026-06-08T09:00:00"),
        ("*/15 * * * *", "2026-06-05T09:01:00", "2026-06-05T09:15:00"),
        ("0 0 13 * 5", "2026-06-01T00:00:00", "2026-06-05T00:00:00"),
        ("0 0 29 2 *", "2026-06-01T00:00:00", "2028-02-29T00:00:00"),
        ("@monthly", "2026-12-31T23:59:00", "2027-01-01T00:00:00"),
        ("30 1,13 * jan-mar,dec *", "2026-03-31T13:30:00", "2026-12-01T01:30:00"),
        ("0 0 ? * sun", "2026-06-05T00:00:00", "2026-06-07T00:00:00"),
        ("0 0 */2 * 1", "2026-06-01T00:00:00", "2026-06-03T00:00:00"),
        ("0 0 13 * */2", "2026-06-01T00:00:00", "2026-06-02T00:00:00"),
        ("0 0 */1 * 1", "2026-06-01T00:00:00", "2026-06-08T00:00:00"),
        ("0 0 3,* * 1", "2026-06-01T00:00:00", "2026-06-08T00:00:00"),
    ],
)
def test_a_schedule_strikes_as_cron_has_it_in_utc(schedule, after, strike):
    assert parse_schedule(schedule).next(at(after)) == at(strike)


@pytest.mark.parametrize("month", range(1, 13))
def test_months_have_the_first_three_letters_of_their_english_names(month):
    name = calendar.month_name[month][:3].lower()
    assert parse_schedule(f"0 0 1 {name} *").next(at("2026-01-01T00:00:00") - 1) == at(
        f"2026-{month:02}-01T00:00:00"
    )


@pytest.mark.parametrize("day", range(7))
def test_days_have_the_first_three_letters_of_their_english_names(day):
    name = calendar.day_name[day][:3].lower()
    monday = "2026-06-01T00:00:00"
    assert parse_schedule(f"0 0 * * {name}").next(at(monday) - 1) == at(monday) + day * 86_400


def test_a_schedule_that_never_strikes_is_never_active():
    assert parse_schedule("0 0 31 2 *").next(NOW) is None
    assert not active(Budget("0", schedule="0 0 31 2 *", duration=60), NOW)


@given(st.integers(0, 7 * 24 * 60))
def test_a_budget_applies_from_its_strike_for_its_duration_and_not_a_second_longer(minutes):
    now = at("2026-06-01T00:00:00") + 60.0 * minutes + 30
    in_window = datetime.fromtimestamp(now, UTC).hour in (9, 10)
    assert active(Budget("0", schedule="0 9 * * *", duration=2 * 3600), now) == in_window


def test_a_node_that_never_counted_leaves_no_room_in_a_budget_when_it_ends():
    """One that is deleted before it was initialized: a pool that is frozen for good got a command."""
    pool = a_node_pool(budgets=(Budget("0"),))
    claim, node = node_of(pool, "young", deletion_timestamp=NOW - 5)
    claim = replace(claim, conditions=claim.conditions[:2])
    node = replace(node, labels={key: value for key, value in node.labels.items() if key != INITIALIZED})
    seen = cluster(pool, claim, node, [node_of(pool, name) for name in "ab"])
    assert not decide(seen).commands
    assert allowance(seen, pool, "Empty", NOW).soon_remaining == 0


def test_nodes_that_began_to_leave_a_short_while_ago_are_soon_left_again():
    pool = a_node_pool(budgets=(Budget("2"),))
    leaving = [node_of(pool, f"l{age}", deletion_timestamp=NOW - age) for age in (5, 61)]
    found = allowance(cluster(pool, leaving, node_of(pool, "a")), pool, "Empty", NOW)
    assert (found.remaining, found.soon_remaining) == (0, 1)
