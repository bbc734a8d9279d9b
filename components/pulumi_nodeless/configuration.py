"""A stack's configuration as the arguments of an environment.

Each argument of `EnvironmentArgs` has a key of the same name in camelCase; members of objects are written
so, too. A key without a value, or with an empty one, is not handed on: defaults live with the component. Keys
that nobody reads are refused, for the engine takes them as they come, and what is configured under a misspelt
key would silently not be so. Faults are told by their keys, without a traceback.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

import pulumi
from pulumi.runtime import config as engine_config

from pulumi_nodeless.arguments import ArgumentError, Problem
from pulumi_nodeless.environment_args import EnvironmentArgs
from pulumi_nodeless.shapes import kinds, name_kind, python_members, python_name
from pulumi_nodeless.wire_names import wire_name, wire_problems

WITHOUT_KEY: Final = ("existing_vpc", "existing_cluster", "kubeconfig_role_arn", "kubeconfig_profile")
"""Arguments that only a program gives. The keys of network and cluster always have a value, their declared
defaults, and those say how to make what the first two bring. The others follow the program's AWS provider;
that of a stack takes its credentials from the environment."""
DEFAULT_POOL: Final = "defaultPool"
"""The key that is no argument: where it is false, pools and templates are those that are given."""
KEYS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        **{wire_name(name): kind for name, kind in kinds(EnvironmentArgs).items() if name not in WITHOUT_KEY},
        DEFAULT_POOL: bool,
    }
)
"""The keys, each with the kind of its value."""
#: Keys whose declared default, false or 0, stands for what the component does by itself.
_UNSET_WHEN_FALSE: Final = ("serviceEndpoints", "protect", "teardownDrainMinutes")


class ConfigurationError(pulumi.RunError):
    """A stack's configuration cannot be worked with; `problems` holds every fault found, by its key."""

    def __init__(self, namespace: str, problems: list[Problem]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  {namespace}:{problem}" for problem in problems)
        super().__init__(f"{len(problems)} fault(s) in the stack's configuration\n{lines}")


def environment_args(namespace: str, default_name: str) -> EnvironmentArgs:
    """The environment's arguments as configured.

    Args:
        namespace: what stands before the colon of each key.
        default_name: the cluster's name where none is configured.

    Raises:
        ConfigurationError: with every key that is not declared, and every value of another kind.
    """
    given = _keys_of(namespace)
    problems = [_undeclared_key(namespace, key) for key in sorted(given.keys() - KEYS.keys())]
    read: dict[str, Any] = {}
    for key in KEYS.keys() & given.keys():
        try:
            read[key] = _parse(given[key], KEYS[key])
        except ValueError:
            problems.append(Problem(key, f"expected {name_kind(KEYS[key])}, got {given[key]!r}"))
    if problems:
        raise ConfigurationError(namespace, problems)
    return _arguments(read, default_name)


def require_provider_key(namespace: str, key: str, instead: str) -> str:
    """The text of the one key of a provider that a program hands on to it, as `aws:region`.

    The engine hands a provider's configuration to default providers alone: on one that a program makes, other
    keys have no effect, and with `aws:profile` an `up` would go to another account than the one configured.

    Args:
        namespace: the provider's package.
        key: the key that the program hands on.
        instead: what to do where another key is given.

    Raises:
        ConfigurationError: with every other key of the namespace.
        ConfigMissingError: the key is not set.
    """
    others = sorted(_keys_of(namespace).keys() - {key})
    if others:
        problems = [
            Problem(other, "has no effect here", _nearest(namespace, other, (key,)) or instead)
            for other in others
        ]
        raise ConfigurationError(namespace, problems)
    return pulumi.Config(namespace).require(key)


@contextmanager
def faults_by_key(namespace: str) -> Iterator[None]:
    """Tells what an environment finds wrong with its arguments by the keys they were configured with.

    Raises:
        ConfigurationError: in place of `ArgumentError`.
    """
    try:
        yield
    except ArgumentError as error:
        raise ConfigurationError(namespace, wire_problems(error, EnvironmentArgs)) from None


def _keys_of(namespace: str) -> dict[str, str]:
    """The keys of a namespace with their texts: `pulumi.Config` only reads keys whose names are known."""
    prefix = f"{namespace}:"
    values = {**engine_config.get_config_env(), **engine_config.CONFIG.get()}
    return {key.removeprefix(prefix): str(text) for key, text in values.items() if key.startswith(prefix)}


def _arguments(read: Mapping[str, Any], default_name: str) -> EnvironmentArgs:
    args: EnvironmentArgs = {"cluster_name": default_name}
    if read.get(DEFAULT_POOL) is False:
        args["provisioners"] = []
        if not read.get("provisioners"):
            args["node_templates"] = []
    for key, value in read.items():
        if key != DEFAULT_POOL and not _unset(key, value):
            # The keys are made of the names of EnvironmentArgs.
            args[python_name(key)] = python_members(value, KEYS[key])  # type: ignore[literal-required]
    return args


def _unset(key: str, value: Any) -> bool:
    return value in ("", [], {}) or (key in _UNSET_WHEN_FALSE and not value)


def _undeclared_key(namespace: str, key: str) -> Problem:
    if python_name(key) in WITHOUT_KEY:
        return Problem(key, "no such key", "a program of your own gives it; see examples/README.md")
    return Problem(key, "no such key", _nearest(namespace, key, KEYS) or "Pulumi.yaml lists the keys")


def _nearest(namespace: str, key: str, known: Iterable[str]) -> str:
    """A hint with the key that was meant, as far as one is near; else empty."""
    plain = {_plain(each): each for each in known}
    close = get_close_matches(_plain(key), plain, 1)
    return f"did you mean {namespace}:{plain[close[0]]}?" if close else ""


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _parse(text: str, kind: Any) -> Any:
    """The value that a text of the configuration stands for.

    Raises:
        ValueError: it stands for none of this kind.
    """
    if name_kind(kind) == "text":
        return text
    value = json.loads(text)
    if kind in (bool, int) and type(value) is not kind:
        raise ValueError(f"no {kind.__name__}")
    return value
