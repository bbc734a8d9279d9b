"""A lab that cannot go on is a failed lab, not the end of the demo."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from localenv.environment import Environment
from localenv.kubernetes import ApiUnreachable, ConditionNotMet
from localenv.labs import Lab, run_lab


class Broken(Lab):
    """A lab whose steps and cleaning up do as the test says."""

    name = "broken"
    title = "A lab that cannot go on"

    def __init__(self, in_steps: Exception | None = None, in_clean_up: Exception | None = None) -> None:
        super().__init__(cast(Environment, SimpleNamespace(api=Seen())))
        self.in_steps, self.in_clean_up = in_steps, in_clean_up
        self.cleaned_up = False

    def steps(self) -> None:
        self.expect("the sky is up", lambda: True)
        if self.in_steps is not None:
            raise self.in_steps

    def clean_up(self) -> None:
        self.cleaned_up = True
        if self.in_clean_up is not None:
            raise self.in_clean_up


class Seen:
    """An API of which everything is seen at once, or never."""

    def wait(self, look: Any, *, timeout: float, what: str) -> Any:
        found = look()
        if not found:
            raise ConditionNotMet(what, timeout, found)
        return found


def test_a_lab_without_trouble_is_ok() -> None:
    assert run_lab(Broken()).to_json()["ok"] is True


def test_an_api_server_that_is_gone_fails_the_lab_which_cleans_up() -> None:
    lab = Broken(in_steps=ApiUnreachable("https://127.0.0.1:1", "GET", "/api", OSError("connection refused")))
    result = run_lab(lab)
    assert lab.cleaned_up
    assert [check.ok for check in result.checks] == [True, False]
    assert "connection refused" in result.checks[-1].detail
    assert result.to_json()["ok"] is False


def test_what_cannot_be_taken_away_fails_the_lab() -> None:
    result = run_lab(Broken(in_clean_up=ConditionNotMet("pools to go", 90, ["default"])))
    assert result.checks[-1].text == "what the lab made can be taken away"
    assert "pools to go" in result.checks[-1].detail
    assert not result.ok


def test_an_expectation_that_fails_is_told_once() -> None:
    class Hopeful(Broken):
        def steps(self) -> None:
            self.expect("the moon is blue", lambda: False)

    result = run_lab(Hopeful())
    assert [(check.text, check.ok) for check in result.checks] == [("the moon is blue", False)]
