"""Rules of the API server for Kubernetes' own workloads: names, labels, selectors, what has to be there.

Those that are about what pods request are in `cli.manifests.pod_rules`, for a plan is none without them.
Source: Kubernetes' pkg/apis/core/validation and pkg/apis/apps/validation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.lost_work import HINT, read_lost_work
from nodeless.api.metadata_rules import label_errors, metadata_errors
from nodeless.api.names import dns_label_defect, dns_name_defect
from nodeless.api.placeholders import placeholder_warnings
from nodeless.api.rule_codes import RuleCode
from nodeless.model.labels import LOST_WORK

#: What is missing and no plan needs; `validate` says it, plans go on.
LEFT_OUT = "a plan does without it, the API server does not"
_SELECTED = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
_KINDS = {
    ("", "Pod"),
    ("", "ReplicationController"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    *(("apps", kind) for kind in _SELECTED),
    *(("extensions", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet")),
}
#: Characters of a name: a Job's becomes a label of its pods, a CronJob's gets eleven more for each run.
_LONGEST = {"CronJob": 52, "Job": 63}
_RUN_ONCE = ("OnFailure", "Never")
_OPERATORS = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


def is_own_workload(manifest: Any) -> bool:
    """Whether an object is a workload of Kubernetes itself, in a version that was ever served."""
    if not isinstance(manifest, Mapping) or not isinstance(manifest.get("kind"), str):
        return False
    version = manifest.get("apiVersion")
    group, slash, _ = version.partition("/") if isinstance(version, str) and version else ("?", "/", "")
    return (group if slash else "", manifest["kind"]) in _KINDS


def workload_errors(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    """What the API server refuses in such an object; in place of a placeholder's faults, a warning of it.

    Nothing of an object that it has admitted, which a dump of a cluster holds. Members of wrong types are
    told by whoever decodes the object.
    """
    metadata = _mapping(manifest.get("metadata"))
    if metadata.get("uid"):
        return
    for error in _errors(manifest, metadata):
        yield next(placeholder_warnings(error.value, error.path), error)


def _errors(manifest: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[FieldError]:
    kind, spec = str(manifest["kind"]), _mapping(manifest.get("spec"))
    yield from _name_errors(kind, metadata)
    yield from metadata_errors(metadata)
    for key, value in _mapping(metadata.get("labels")).items():
        if value is not None and not isinstance(value, str):
            where = at("metadata.labels", str(key))
            yield FieldError(where, value, "is not a text", "put it in quotes", code=RuleCode.WRONG_TYPE)
    if kind == "Pod":
        yield from _pod_errors(spec, "spec")
        yield from _lost_work_warnings(metadata, "metadata")
        return
    path, holder = "spec.template", spec
    if kind == "CronJob":
        path, holder = (
            "spec.jobTemplate.spec.template",
            _mapping(_mapping(spec.get("jobTemplate")).get("spec")),
        )
        if spec.get("schedule") is None:
            yield _missing("spec.schedule")
    template = _Template(path, _mapping(holder.get("template")))
    yield from metadata_errors(template.metadata, f"{path}.metadata")
    yield from _pod_errors(template.spec, f"{path}.spec")
    yield from _lost_work_warnings(template.metadata, f"{path}.metadata")
    yield from _restart_errors(kind, template)
    if kind in _SELECTED or kind == "ReplicationController":
        yield from _selector_errors(manifest, spec, template)


@dataclass(frozen=True, slots=True)
class _Template:
    path: str
    given: Mapping[str, Any]

    @property
    def metadata(self) -> Mapping[str, Any]:
        return _mapping(self.given.get("metadata"))

    @property
    def labels(self) -> Mapping[str, Any]:
        return _mapping(self.metadata.get("labels"))

    @property
    def spec(self) -> Mapping[str, Any]:
        return _mapping(self.given.get("spec"))


def _name_errors(kind: str, metadata: Mapping[str, Any]) -> Iterator[FieldError]:
    name, prefix, namespace = (metadata.get(part) for part in ("name", "generateName", "namespace"))
    if not name and not prefix:
        yield _missing("metadata.name")
    if isinstance(name, str) and name:
        most = _LONGEST.get(kind, 253)
        if defect := dns_name_defect(name, most):
            yield FieldError("metadata.name", name, defect, code=RuleCode.INVALID_NAME)
    if isinstance(prefix, str) and prefix and (defect := dns_name_defect(prefix.rstrip("-"), 253)):
        yield FieldError("metadata.generateName", prefix, defect, code=RuleCode.INVALID_NAME)
    if isinstance(namespace, str) and namespace and (defect := dns_label_defect(namespace)):
        yield FieldError("metadata.namespace", namespace, defect, code=RuleCode.INVALID_NAME)


def _pod_errors(spec: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from label_errors(spec.get("nodeSelector"), f"{path}.nodeSelector")
    for member in ("initContainers", "containers"):
        listed = spec.get(member)
        for index, container in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(container, Mapping):
                yield from _container_errors(container, f"{path}.{member}[{index}]")


def _lost_work_warnings(metadata: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Of an annotation that is ours, and is ignored where its value means nothing."""
    said = _mapping(metadata.get("annotations")).get(LOST_WORK)
    if isinstance(said, str) and read_lost_work(said) is None:
        where = at(f"{path}.annotations", LOST_WORK)
        yield FieldError(where, said, "is ignored", HINT, warning=True, code=RuleCode.INVALID_LOST_WORK)


def _container_errors(container: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    name = container.get("name")
    if not name:
        yield _missing(f"{path}.name")
    elif isinstance(name, str) and (defect := dns_label_defect(name)):
        yield FieldError(f"{path}.name", name, defect, code=RuleCode.INVALID_NAME)
    if not container.get("image"):
        yield _missing(f"{path}.image")


def _restart_errors(kind: str, template: _Template) -> Iterator[FieldError]:
    """Jobs end: their pods are not restarted for ever, those of all others are."""
    given, path = template.spec.get("restartPolicy"), f"{template.path}.spec.restartPolicy"
    allowed = _RUN_ONCE if kind in _LONGEST else ("Always",)
    if given is None and kind in _LONGEST and template.spec:
        yield _missing(path)
    elif given is not None and given not in allowed:
        hint = " or ".join(allowed)
        yield FieldError(path, given, f"is not a policy of a {kind}", hint, code=RuleCode.UNSUPPORTED_VALUE)


def _selector_errors(
    manifest: Mapping[str, Any], spec: Mapping[str, Any], template: _Template
) -> Iterator[FieldError]:
    """A selector that is there finds the pods of the template; apps/v1 takes none for granted."""
    given, path = spec.get("selector"), "spec.selector"
    if given is None:
        if manifest.get("apiVersion") == "apps/v1":
            yield _missing(path)
        return
    if not isinstance(given, Mapping):
        yield FieldError(path, given, "is not an object", code=RuleCode.WRONG_TYPE)
        return
    plain = manifest["kind"] == "ReplicationController"
    wanted = given if plain else _mapping(given.get("matchLabels"))
    where = path if plain else f"{path}.matchLabels"
    expressions = () if plain else given.get("matchExpressions")
    terms = (
        [term for term in expressions if isinstance(term, Mapping)] if isinstance(expressions, list) else []
    )
    if not wanted and not terms and not plain:
        hint = "give matchLabels that the template has as labels"
        yield FieldError(
            path, given, "is empty, and would select every pod", hint, code=RuleCode.INVALID_SELECTOR
        )
        return
    faults = [*label_errors(wanted, where), *_term_errors(terms, f"{path}.matchExpressions")]
    yield from faults
    if not faults:
        yield from _mismatches(wanted, terms, template, where)


def _term_errors(terms: list[Mapping[str, Any]], path: str) -> Iterator[FieldError]:
    for index, term in enumerate(terms):
        key, operator, values = (term.get(member) for member in ("key", "operator", "values"))
        place, code = f"{path}[{index}]", RuleCode.INVALID_SELECTOR
        if not isinstance(key, str) or not key:
            yield FieldError(f"{place}.key", key, "is not a label key", code=code)
        else:
            yield from label_errors({key: None}, f"{place}.key")
        if not isinstance(operator, str) or operator not in _OPERATORS:
            hint = ", ".join(_OPERATORS)
            yield FieldError(
                f"{place}.operator", operator, "is not an operator of a selector", hint, code=code
            )
        elif not isinstance(values, list | None) or bool(values) is not _OPERATORS[operator]:
            message = (
                f"{'must be a list of values' if _OPERATORS[operator] else 'must be left out'} for {operator}"
            )
            yield FieldError(f"{place}.values", values, message, code=code)


def _mismatches(
    wanted: Mapping[str, Any], terms: list[Mapping[str, Any]], template: _Template, path: str
) -> Iterator[FieldError]:
    labels, there = template.labels, f"{template.path}.metadata.labels"
    for key, value in wanted.items():
        if labels.get(key) != value:
            found = f"is {labels[key]!r}" if key in labels else "is not"
            yield FieldError(
                at(path, str(key)),
                value,
                f"{found} in {there}, so the selector matches no pod of the template",
                "give both the same value",
                code=RuleCode.UNMATCHED_SELECTOR,
            )
    for index, term in enumerate(terms):
        if not _holds(term, labels):
            yield FieldError(
                f"spec.selector.matchExpressions[{index}]",
                ABSENT,
                f"does not hold for {there}, so the selector matches no pod of the template",
                "give the template labels for which it does",
                code=RuleCode.UNMATCHED_SELECTOR,
            )


def _holds(term: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, operator, values = str(term.get("key")), term["operator"], term.get("values") or ()
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    return (key in labels and labels[key] in values) is (operator == "In")


def _missing(path: str) -> FieldError:
    return FieldError(path, ABSENT, "is required", LEFT_OUT, code=RuleCode.MISSING_FIELD)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
