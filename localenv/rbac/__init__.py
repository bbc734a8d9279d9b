"""What a service account may do beside what it did: rights that are missing, rights that nobody uses.

The API server's audit log says what was done (`calls`), roles and bindings say what may be done (`grants`);
`rights` compares the two, both ways, and does no I/O.
"""

from localenv.rbac.calls import read_calls, read_events
from localenv.rbac.grants import ServiceAccount, common_rights, own_rights
from localenv.rbac.rights import Call, Comparison, Right, compare, rights_of

__all__ = [
    "Call",
    "Comparison",
    "Right",
    "ServiceAccount",
    "common_rights",
    "compare",
    "own_rights",
    "read_calls",
    "read_events",
    "rights_of",
]
