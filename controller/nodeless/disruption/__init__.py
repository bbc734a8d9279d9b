"""Voluntary commands: which nodes end because that is better, and what takes their place first.

`disrupt(snapshot, catalog, policy, now) -> Decisions` decides; `validate` looks at commands
again after the wait; `begin` and `advance` carry it out in steps, with everything that a next
leader must know on the objects themselves.

Modules in the order of the work: `command_history` (what earlier passes decided), `schedules` and
`budgets` (how many at a time), `blocking` and `candidates` (which nodes), `simulation` (where their pods
go), `node_capacity`, `least_prices`, `replacing`, `balance`, `sets` and `consolidation` (what is better),
`replacement_lookup`, `drift_and_expiration` and `repair_controller` (what is too old or broken),
`controller` (which move), `validating` and `changes` (whether it is still right, and what made it wrong),
`commands` and `instruction_batches` (how it is done), `requeue` (when time alone changes what is found),
`consolidation_state` (when a pass can be spared), `searches` (what need not be searched for again),
`target` (the whole).
"""

from nodeless.disruption.changes import what_changed
from nodeless.disruption.command_history import CommandHistory
from nodeless.disruption.commands import CommandStep, advance, begin, next_steps
from nodeless.disruption.consolidation_state import ConsolidationState, is_consolidated
from nodeless.disruption.controller import disrupt
from nodeless.disruption.instruction_batches import batch_instructions
from nodeless.disruption.policy import DisruptionPolicy
from nodeless.disruption.searches import Searches
from nodeless.disruption.target import Step, Target, path, target
from nodeless.disruption.validating import validate

__all__ = [
    "CommandHistory",
    "CommandStep",
    "ConsolidationState",
    "DisruptionPolicy",
    "Searches",
    "Step",
    "Target",
    "advance",
    "batch_instructions",
    "begin",
    "disrupt",
    "is_consolidated",
    "next_steps",
    "path",
    "target",
    "validate",
    "what_changed",
]
