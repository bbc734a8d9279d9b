"""How Python shares its time in a process that plans in one thread and answers questions in another.

The webhook has twenty milliseconds and the probes have a second, whatever the solver is computing meanwhile.
"""

import gc
import sys

#: A thread that waits for its turn gets it after this many seconds of another's work. An answer over TLS
#: takes several turns: with the five milliseconds of Python's default they would use up the time that it has.
SWITCH_SECONDS = 0.001


def answer_while_computing() -> None:
    """Let short answers in between long computations."""
    sys.setswitchinterval(SWITCH_SECONDS)


def freeze_gc() -> None:
    """Leave what is in memory now out of later garbage collections.

    A full collection looks at every object while all threads wait: ten milliseconds for 60,000 of them, the
    table of instance types alone. What is settled is still freed as soon as nothing refers to it; only cycles
    among it are not found any more, and what stays for the life of the process (modules, tables, the first
    state of the cluster) has none that matter.
    """
    gc.collect()
    gc.freeze()
