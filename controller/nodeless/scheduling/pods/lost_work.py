"""What pods say that an interruption of theirs loses: the annotation `nodeless.dev/lost-work`.

A gang loses the work of all its members where it loses one (`gangs`), so that each of them says with the size
of its gang how many lose their work together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nodeless.api.lost_work import HINT, read_lost_work
from nodeless.model.gangs import GangSize
from nodeless.model.labels import LOST_WORK
from nodeless.model.lost_work import LostWork
from nodeless.model.pods import Pod
from nodeless.scheduling.pods.gangs import gang_size
from nodeless.scheduling.pods.grouping import PodGroup, PodGroups


def lost_work(pod: Pod) -> int:
    """Seconds of work that an interruption of a pod loses; 0: none, or it cannot be read."""
    said = pod.annotations.get(LOST_WORK) if pod.annotations else None
    return 0 if said is None else read_lost_work(said) or 0


def invalid_lost_work(pod: Pod) -> str | None:
    """What is wrong with a pod's annotation; None: nothing."""
    said = pod.annotations.get(LOST_WORK)
    if said is None or read_lost_work(said) is not None:
        return None
    return f"{LOST_WORK}={said[:64]!r} is ignored; hint: {HINT}"


def with_lost_work(batch: Iterable[PodGroup], sizes: Mapping[str, GangSize]) -> list[PodGroup]:
    """The pods with what an interruption of each loses, as far as that is not known yet.

    Args:
        batch: The pods.
        sizes: What PodGroups, Jobs and JobSets say (`Snapshot.gang_sizes`).
    """
    result: list[PodGroup] = []
    for pod_group in batch:
        # Without a call for each of the pods, of which hardly any say it.
        saying = pod_group.shape.lost_work is None and [
            pod for pod in pod_group.pods if pod.annotations and LOST_WORK in pod.annotations
        ]
        result.extend(_parted(pod_group, sizes) if saying else (pod_group,))
    return result


def _parted(pod_group: PodGroup, sizes: Mapping[str, GangSize]) -> Iterable[PodGroup]:
    """The pods of one shape by what they lose."""
    by_loss: dict[LostWork | None, list[tuple[str, Pod]]] = {}
    for key, pod in zip(pod_group.keys, pod_group.pods, strict=True):
        by_loss.setdefault(lost_by(pod, sizes), []).append((key, pod))
    parts = PodGroups()
    for lost, pods in by_loss.items():
        shape = pod_group.shape if lost is None else replace(pod_group.shape, lost_work=lost)
        parts.gather((key, replace(pod, shape=shape)) for key, pod in pods)
    return parts


def lost_by(pod: Pod, sizes: Mapping[str, GangSize]) -> LostWork | None:
    """What an interruption of a pod loses; None: it says nothing that counts."""
    seconds = lost_work(pod)
    return LostWork(seconds, gang_size(pod, sizes)) if seconds else None
