"""The faults of a workload in a file: those of the API server's rules, and why its pods cannot be read."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nodeless.api.errors import ABSENT, FieldError, in_order
from nodeless.api.rule_codes import RuleCode
from nodeless.api.workload_rules import LEFT_OUT, workload_errors
from nodeless.cli.manifests.admission import Admission
from nodeless.cli.manifests.members import Unusable
from nodeless.cli.manifests.stored_form import stored_form
from nodeless.cli.manifests.workloads import daemon_set_of, is_daemon_set, pod_of, pod_sets_of, pods_of

_HINT = "; hint: "


def workload_faults(manifest: Mapping[str, Any]) -> list[FieldError]:
    """The faults and warnings of one of Kubernetes' own workloads, by itself."""
    read = stored_form(manifest)
    found = list(workload_errors(read))
    told = {fault.path for fault in found}
    return in_order([*found, *(fault for fault in _unreadable(read) if fault.path not in told)])


def refused_in_plans(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    """The faults of a workload's names, labels and selectors, without what is left out and no plan needs."""
    for fault in workload_errors(manifest):
        if not fault.warning and fault.hint != LEFT_OUT:
            yield fault


def _unreadable(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    try:
        if manifest["kind"] == "Pod":
            pod_of(manifest, Admission())
        elif is_daemon_set(manifest):
            daemon_set_of(manifest, Admission())
        else:
            # However many there are: each is as the first one.
            sets = [replace(pod_set, number=0) for pod_set in pod_sets_of(manifest)]
            list(pods_of(manifest, sets, Admission()))
    except Unusable as error:
        for fault in error.every():
            message, _, hint = str(fault).removeprefix(f"{fault.path}: ").partition(_HINT)
            yield FieldError(fault.path, ABSENT, message, hint, code=RuleCode.INVALID_OBJECT)
