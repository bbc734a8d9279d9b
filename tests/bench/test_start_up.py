"""What the bench says of the start of commands."""

import pytest

from bench import start_up


@pytest.mark.parametrize(("times", "bound", "within"), [([0.1, 0.3], 0.25, True), ([0.26, 0.3], 0.25, False)])
def test_the_least_of_the_starts_is_compared_with_the_bound(monkeypatch, times, bound, within):
    monkeypatch.setattr(start_up, "seconds", lambda arguments, rounds: times)
    monkeypatch.setattr(start_up, "BOUND", bound)
    text, well = start_up.run(2)
    assert well is within
    assert text.count("\n") == len(start_up.COMMANDS) - 1
    assert text.count(f", above {bound} s") == (0 if within else len(start_up.COMMANDS))


@pytest.mark.parametrize("name", start_up.COMMANDS)
def test_each_command_starts_and_takes_some_time(name):
    (used,) = start_up.seconds(start_up.COMMANDS[name], 1)
    assert used > 0


def test_a_command_that_fails_is_no_figure():
    with pytest.raises(RuntimeError, match="nodeless --nothing ended with 2"):
        start_up.seconds(["--nothing"], 1)
