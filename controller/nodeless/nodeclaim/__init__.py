"""One state machine for a claim: what to do next, from what is true now.

```
created --> Launched --> Registered --> Initialized (Ready) --> empty --> deleted
   |            |             |                                             ^
   +------------+-------------+---- too late: deleted, pods planned anew ---+
deleted: cordon -> drain -> terminate the instance -> finalizers off
```

`step(view, now)` looks at levels, never at edges: called twice in the same situation it
gives the same instructions, so a crash between any two of them loses nothing. Order of
truth: the claim object exists before its instance; the instance carries the claim's name.

Modules: `view` (what a step sees), `registration` (launch, registration, initialization),
`registration_health`, `rebooting`, `emptiness`, `termination`, `garbage_collection` (claims and instances
that lost each other), `node_classes`, `ownership_sync` (pools and the teardown guard).
"""

from nodeless.nodeclaim.garbage_collection import end_unclaimed, end_vanished, unlisted_claims
from nodeless.nodeclaim.node_classes import step_node_class
from nodeless.nodeclaim.orphans import step_orphan
from nodeless.nodeclaim.ownership_sync import step_pool, step_teardown
from nodeless.nodeclaim.reconcile import step
from nodeless.nodeclaim.view import ClaimView, Step

__all__ = [
    "ClaimView",
    "Step",
    "end_unclaimed",
    "end_vanished",
    "step",
    "step_node_class",
    "step_orphan",
    "step_pool",
    "step_teardown",
    "unlisted_claims",
]
