"""Which tests speak of which part of the code: those of its own folder, and of those that use it most.

All tests of scheduling take minutes; the optimizer has a room of its own with those that are about it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """A folder of code, and folders or files of its tests, those first that notice most."""

    code: str
    tests: tuple[str, ...]


_OF_OPTIMIZER = (
    *("knapsacks", "every_filling", "dominance", "fewer_nodes_at_the_same_price", "balances"),
    "filled_in_turn",
    *("bound_by_zones", "few_nodes", "whole_nodes", "proof", "anytime", "existing", "exhaustive"),
    *("lowest_price", "exact"),
)
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
    "optimizer": Room(
        "controller/nodeless/scheduling/optimizer",
        tuple(f"tests/scheduling/test_{name}.py" for name in _OF_OPTIMIZER),
    ),
    "scheduling": Room("controller/nodeless/scheduling", ("tests/scheduling",)),
    "state": Room("controller/nodeless/state", ("tests/state", "tests/kube", "tests/nodeclaim")),
    "webhook": Room("controller/nodeless/webhook", ("tests/webhook",)),
}
PURE = ("api", "disruption", "explain", "launch", "model", "nodeclaim", "scheduling", "state")
"""Rooms without I/O."""
