"""Arguments that are not known before the update, and arguments that are secret: for every component."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pulumi
import pytest
from google.protobuf import json_format
from pulumi.runtime.rpc import UNKNOWN

import pulumi_nodeless
from localenv.pulumi.input_check import SECRET
from tests.components.recorder import RecordingMonitor, run
from tests.components.test_every_component import ARGS

#: What the engine tells secrets by.
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"
VALUES = {name: args for name, args in ARGS.items() if name != "Environment"}


def made_of(component: str, wrap: Callable[[Any], pulumi.Output[Any]], *, preview: bool) -> set[str]:
    """Makes a component whose arguments that may be outputs are; and says which those are."""
    kinds = getattr(pulumi_nodeless, f"{component}Args").__annotations__
    outputs = {key for key in VALUES[component] if "Output[" in str(kinds[key])}

    def program() -> None:
        given = {k: wrap(v) if k in outputs else v for k, v in VALUES[component].items()}
        getattr(pulumi_nodeless, component)("one", given)

    run(program, preview=preview)
    return outputs


def unknown(value: Any) -> pulumi.Output[Any]:
    """An output that a preview does not know."""
    del value
    return pulumi.Output(set(), _of(UNKNOWN), _of(False), _of(False))


async def _of(value: Any) -> Any:
    return value


def clear(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text outside of secrets, with where it stands."""
    if isinstance(value, Mapping):
        if value.get(SECRET) != SECRET_SIGNATURE:
            for key, item in value.items():
                yield from clear(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from clear(item, f"{path}[{index}]")
    elif isinstance(value, str):
        yield path, value


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What goes to the engine: the names of resources, with their inputs and outputs."""
    reported: list[tuple[str, Any]] = []

    def keep(name: str) -> None:
        original = getattr(RecordingMonitor, name)

        def kept(self: RecordingMonitor, request: Any) -> Any:
            field = request.object if name == "RegisterResource" else request.outputs
            reported.append((getattr(request, "name", request.urn if field is request else ""), field))
            return original(self, request)

        monkeypatch.setattr(RecordingMonitor, name, kept)

    for each in ("RegisterResource", "RegisterResourceOutputs"):
        keep(each)
    return reported


@pytest.mark.parametrize("component", VALUES)
def test_a_preview_in_which_no_output_is_known_makes_its_plan(
    component: str, sent: list[tuple[str, Any]]
) -> None:
    made_of(component, unknown, preview=True)
    assert len(sent) > 2


@pytest.mark.parametrize("component", VALUES)
def test_what_is_given_as_a_secret_goes_to_the_engine_as_one(
    component: str, sent: list[tuple[str, Any]]
) -> None:
    outputs = made_of(component, pulumi.Output.secret, preview=False)
    texts = {value for key in outputs for _, value in clear(VALUES[component][key]) if len(value) > 6}
    reported = [
        (name, path, value) for name, each in sent for path, value in clear(json_format.MessageToDict(each))
    ]
    assert [each for each in reported if any(text in each[2] for text in texts)] == []
