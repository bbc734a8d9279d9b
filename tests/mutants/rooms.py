"""Which tests speak of which part of the code: those of its own folder, and of those that use it most."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """A folder of code, and its tests, those first that notice most."""

    code: str
    tests: tuple[str, ...]


ROOMS = {
    "api": Room("controller/nodeless/api", ("tests/api", "tests/webhook")),
    "cli": Room("controller/nodeless/cli", ("tests/controllers", "tests/explain")),
    "cloudprovider": Room("controller/nodeless/cloudprovider", ("tests/cloudprovider", "tests/launch")),
    "components": Room("components/pulumi_nodeless", ("tests/components",)),
    "controllers": Room("controller/nodeless/controllers", ("tests/controllers",)),
    "disruption": Room("controller/nodeless/disruption", ("tests/disruption",)),
    "explain": Room("controller/nodeless/explain", ("tests/explain", "tests/controllers")),
    "kube": Room("controller/nodeless/kube", ("tests/kube", "tests/controllers")),
    "launch": Room("controller/nodeless/launch", ("tests/launch", "tests/cloudprovider")),
    "manager": Room("controller/nodeless/manager", ("tests/controllers",)),
    "model": Room("controller/nodeless/model", ("tests/model", "tests/api", "tests/nodeclaim")),
    "nodeclaim": Room("controller/nodeless/nodeclaim", ("tests/nodeclaim",)),
    "operator": Room("controller/nodeless/operator", ("tests/controllers",)),
    "scheduling": Room("controller/nodeless/scheduling", ("tests/scheduling",)),
    "state": Room("controller/nodeless/state", ("tests/state", "tests/kube", "tests/nodeclaim")),
    "webhook": Room("controller/nodeless/webhook", ("tests/webhook",)),
}
PURE = ("api", "disruption", "explain", "launch", "model", "nodeclaim", "scheduling", "state")
"""Rooms without I/O."""
