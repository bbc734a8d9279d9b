"""Sizes of gangs as the API server tells of them: PodGroups, and the Jobs and JobSets that ask for it.

Of Jobs and JobSets only those with the label `nodeless.dev/gang` are asked for, so that a cluster that does
without gangs sends none.
"""

from collections.abc import Callable

import msgspec

from nodeless.kube import documents
from nodeless.kube.reflector import Watched
from nodeless.model import events
from nodeless.model.gangs import JOB, JOB_SET, POD_GROUP, GangSize
from nodeless.model.labels import GANG

_POD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
_JOBS = "/apis/batch/v1/jobs"
_JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
_POD_GROUP = msgspec.json.Decoder(documents.PodGroup)
_JOB = msgspec.json.Decoder(documents.Job)
_JOB_SET = msgspec.json.Decoder(documents.JobSet)
_IN_ORDER = "InOrder"
_ON_REQUEST = "true"
_SELECTOR = f"{GANG}={_ON_REQUEST}"
Decoded = tuple[str, tuple[events.Event, ...]]


def watched_gang_sizes() -> tuple[Watched, ...]:
    """What tells the size of a gang besides its pods; most clusters serve Jobs alone of it."""
    gone = events.GangSizeGone
    return (
        Watched("podgroups", _POD_GROUPS, _decoder(_pod_group), gone, optional=True, foreign=True),
        Watched("jobs", _JOBS, _decoder(_job), gone, foreign=True, label_selector=_SELECTOR),
        Watched(
            "jobsets",
            _JOB_SETS,
            _decoder(_job_set),
            gone,
            optional=True,
            foreign=True,
            label_selector=_SELECTOR,
        ),
    )


def _decoder(read: Callable[[bytes], GangSize]) -> Callable[[bytes], Decoded]:
    def decode(raw: bytes) -> Decoded:
        size = read(raw)
        if not size.size and not size.problem:
            return size.key, (events.GangSizeGone(size.key),)
        return size.key, (events.GangSizeSeen(size),)

    return decode


def _pod_group(raw: bytes) -> GangSize:
    """One without `minMember` is no gang, as coscheduling has it."""
    document = _POD_GROUP.decode(raw)
    metadata = document.metadata
    return GangSize(POD_GROUP, metadata.namespace, metadata.name, max(0, document.spec.minMember))


def _job(raw: bytes) -> GangSize:
    document = _JOB.decode(raw)
    size, problem = _size_of(document.spec, "spec") if _asks(document.metadata) else (0, "")
    return GangSize(JOB, document.metadata.namespace, document.metadata.name, size, problem)


def _job_set(raw: bytes) -> GangSize:
    document = _JOB_SET.decode(raw)
    metadata, spec = document.metadata, document.spec
    size, problem = 0, ""
    if _asks(metadata):
        in_order = spec.startupPolicy is not None and spec.startupPolicy.startupPolicyOrder == _IN_ORDER
        for number, jobs in enumerate(spec.replicatedJobs):
            path = f"spec.replicatedJobs[{number}]"
            one, fault = _size_of(jobs.template.spec, f"{path}.template.spec")
            size += one * (1 if jobs.replicas is None else jobs.replicas)
            if jobs.dependsOn:
                fault = f"{path}.dependsOn has Jobs start one after another; hint: a gang starts at once"
            problem = problem or fault
        if in_order:
            problem = "spec.startupPolicy has Jobs start one after another; hint: a gang starts at once"
    return GangSize(JOB_SET, metadata.namespace, metadata.name, 0 if problem else size, problem)


def _asks(metadata: documents.Metadata) -> bool:
    return metadata.labels.get(GANG) == _ON_REQUEST


def _size_of(spec: documents.JobSpec, path: str) -> tuple[int, str]:
    """The pods of a Job, or why they do not run all at once."""
    pods = 1 if spec.parallelism is None else spec.parallelism
    # Where neither is given both are 1, as the API server has it.
    if spec.completions == pods or (spec.completions is None and spec.parallelism is None):
        return pods, ""
    return 0, (
        f"{path}.completions is {'not set' if spec.completions is None else spec.completions}"
        f", {path}.parallelism {pods}; hint: the pods of a gang run at once, both have to be equal"
    )
