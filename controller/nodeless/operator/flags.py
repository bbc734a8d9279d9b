"""Flags of `nodeless run`, made from the tables of settings: each has the words of its variable.

Karpenter's flags are Go's: one dash does, and a flag that is true or false needs no value. Both are
understood here, by spelling them out before the command line is parsed.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from nodeless.operator.config_sources import flag_of
from nodeless.operator.process_settings import PROCESS_SETTINGS
from nodeless.operator.setting_values import boolean
from nodeless.operator.settings import FEATURE_GATES, SETTINGS

_PROCESS, _CLUSTER = "The process", "As in ConfigMap karpenter-global-settings"


def _flags() -> dict[str, tuple[str, bool, str]]:
    """By variable: the help, whether it is true or false, and the panel of the help page."""
    found = {}
    for setting in PROCESS_SETTINGS.values():
        if setting.flag:
            meaning = _describe(setting.meaning, setting.default, setting.variable)
            found[setting.variable] = (meaning, setting.read is boolean, _PROCESS)
        if setting.inverse:
            found[setting.inverse] = (f"The opposite of {flag_of(setting.variable)}.", True, _PROCESS)
    for key in SETTINGS.values():
        if key.variable:
            meaning = _describe(key.meaning, key.default, key.variable)
            found[key.variable] = (meaning, key.read is boolean, _CLUSTER)
    found[FEATURE_GATES] = (f"Feature gates, for example Drift=true. [{FEATURE_GATES}]", False, _CLUSTER)
    return found


def _describe(meaning: str, default: str, variable: str) -> str:
    return f"{meaning} [{variable}{f', default {default}' if default else ''}]"


_FLAGS = _flags()


def with_flags(function: Callable[[dict[str, str]], None]) -> Callable[..., None]:
    """A command that takes every flag, and hands those that were given to `function`, by variable."""

    def command(**flags: str | None) -> None:
        function({name.upper(): value for name, value in flags.items() if value is not None})

    parameters = [
        inspect.Parameter(
            variable.lower(),
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                str | None,
                typer.Option(
                    flag_of(variable),
                    help=meaning,
                    metavar="true|false" if truth else "VALUE",
                    rich_help_panel=panel,
                    show_default=False,
                ),
            ],
        )
        for variable, (meaning, truth, panel) in _FLAGS.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """Arguments of `nodeless run` as the parser wants them: two dashes, and a value for every flag."""
    if not arguments or arguments[0] != "run":
        return list(arguments)
    truths = {flag_of(variable) for variable, (_, truth, _) in _FLAGS.items() if truth}
    result: list[str] = []
    for argument in arguments:
        word = argument
        if argument.startswith("-") and not argument.startswith("--") and len(argument) > 2:
            word = f"-{argument}"
        result.append(f"{word}=true" if word in truths else word)
    return result
