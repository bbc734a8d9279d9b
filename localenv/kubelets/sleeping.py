"""Containers that do nothing but sleep, and hooks that wait: what of a simulated pod's time its spec tells.

Pure. A simulated container runs in name only; but `sleep 30` ends after 30 seconds in any image that has a
shell, and a pod is not gone before its preStop hooks are.
"""

import re
from collections.abc import Sequence

from localenv.kubelets.objects import Container, Pod

_SLEEP = re.compile(r"\s*(?:exec\s+)?(?:/bin/)?sleep\s+(\d+(?:\.\d+)?)([smh]?)\s*;?\s*")
_SHELLS = frozenset({"sh", "/bin/sh", "bash", "/bin/bash"})
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def slept(command: Sequence[str]) -> float | None:
    """Seconds after which a command ends that only sleeps; None for any other."""
    if len(command) == 3 and command[0] in _SHELLS and command[1] == "-c":
        found = _SLEEP.fullmatch(command[2])
    else:
        found = _SLEEP.fullmatch(" ".join(command)) if len(command) == 2 else None
    return float(found[1]) * _UNITS[found[2]] if found else None


def seconds_to_end(pod: Pod) -> float | None:
    """Seconds after which a pod has succeeded; None: it runs for ever, or is restarted."""
    ends = [slept([*container.command, *container.args]) for container in pod.spec.containers]
    if pod.spec.restartPolicy == "Always" or not ends:
        return None
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def pre_stop_seconds(pod: Pod) -> float:
    """Seconds that its containers' preStop hooks take, which run side by side."""
    return max((_pre_stop(container) for container in pod.spec.containers), default=0.0)


def _pre_stop(container: Container) -> float:
    hook = container.lifecycle.preStop if container.lifecycle else None
    if hook is None:
        return 0.0
    if hook.sleep is not None:
        return float(hook.sleep.seconds)
    return (slept(hook.exec.command) if hook.exec else None) or 0.0
