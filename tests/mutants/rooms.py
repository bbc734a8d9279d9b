"""Which tests speak of which part of the code: those of its own folder, and of those that use it most."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """A folder of code, and its tests, those first that notice most."""

    code: str
    tests: tuple[str, ...]


ROOMS = {
    "admission": Room("controller/nodeless/admission", ("tests/admission",)),
    "api": Room("controller/nodeless/api", ("tests/api", "tests/admission")),
    "app": Room("controller/nodeless/app", ("tests/app",)),
    "cloud": Room("controller/nodeless/cloud", ("tests/cloud", "tests/launch")),
    "components": Room("components/pulumi_nodeless", ("tests/components",)),
    "disruption": Room("controller/nodeless/disruption", ("tests/disruption",)),
    "explain": Room("controller/nodeless/explain", ("tests/explain", "tests/app")),
    "launch": Room("controller/nodeless/launch", ("tests/launch", "tests/cloud")),
    "lifecycle": Room("controller/nodeless/lifecycle", ("tests/lifecycle",)),
    "model": Room("controller/nodeless/model", ("tests/model", "tests/api", "tests/lifecycle")),
    "solve": Room("controller/nodeless/solve", ("tests/solve",)),
    "state": Room("controller/nodeless/state", ("tests/state", "tests/watch", "tests/lifecycle")),
    "watch": Room("controller/nodeless/watch", ("tests/watch", "tests/app")),
}
PURE = ("api", "disruption", "explain", "launch", "lifecycle", "model", "solve", "state")
"""Rooms without I/O."""
