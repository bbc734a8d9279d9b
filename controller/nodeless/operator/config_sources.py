"""What was given to the process itself: flags and environment variables, under one name each.

A flag has the words of its variable: `--metrics-port` and `METRICS_PORT`. A variable that is set to nothing
counts as not set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """A text, and the name of the flag or variable that it was given by."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}={self.text!r}"


@dataclass(frozen=True, slots=True)
class ConfigSources:
    """Flags and environment, both by variable."""

    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    flags: Mapping[str, str] = field(default_factory=dict, hash=False)

    def get(self, variable: str) -> Found | None:
        """What a flag says, else what the environment says."""
        if variable in self.flags:
            return Found(f"flag {flag_of(variable)}", self.flags[variable])
        if self.environment.get(variable):
            return Found(f"environment variable {variable}", self.environment[variable])
        return None


NO_SOURCES = ConfigSources()


def flag_of(variable: str) -> str:
    """The flag that means the same as a variable."""
    return "--" + variable.lower().replace("_", "-")
