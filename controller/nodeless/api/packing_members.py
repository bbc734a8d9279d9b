"""The members of a packing problem, and what is wrong with a document's.

Each kind of object is a table of members: name to (kind, required). Kinds in brackets are lists,
kinds in braces are objects with any keys; the plain ones are text, number, whole, flag, quantity.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.rule_codes import RuleCode
from nodeless.api.suggestions import did_you_mean

_POD = {
    "name": ("text", True),
    "namespace": ("text", False),
    "count": ("count", False),
    "labels": ("{text}", False),
    "requests": ("{quantity}", False),
    "nodeSelector": ("{text}", False),
    "priority": ("whole", False),
    "tolerations": ("[toleration]", False),
    "topologySpreadConstraints": ("[spread]", False),
    "requiredNodeAffinity": ("[[expression]]", False),
    "preferredNodeAffinity": ("[preference]", False),
    "podAffinity": ("[affinity]", False),
    "podAntiAffinity": ("[affinity]", False),
}
_OBJECTS: dict[str, dict[str, tuple[str, bool]]] = {
    "problem": {
        "name": ("text", False),
        "description": ("text", False),
        "catalogue": ("text", False),
        "instanceTypeNames": ("[text]", False),
        "instanceTypes": ("[type]", False),
        "nodePools": ("[pool]", True),
        "pods": ("[pod]", True),
        "existingNodes": ("[node]", False),
        "daemonSets": ("[pod]", False),
        "preferencePolicy": ("text", False),
    },
    "catalog": {
        "instanceTypes": ("[type]", True),
        "region": ("text", False),
        "source": ("any", False),
        "zones": ("[text]", False),
    },
    "type": {
        "name": ("text", True),
        "capacity": ("{quantity}", True),
        "overhead": ("{quantity}", False),
        "requirements": ("{[text]}", True),
        "offerings": ("[offering]", True),
    },
    "offering": {
        "zone": ("text", True),
        "capacityType": ("text", True),
        "price": ("number", True),
        "available": ("flag", False),
    },
    "pool": {
        "name": ("text", True),
        "weight": ("whole", False),
        "labels": ("{text}", False),
        "taints": ("[taint]", False),
        "startupTaints": ("[taint]", False),
        "limits": ("{quantity}", False),
        "requirements": ("[expression]", False),
    },
    "pod": _POD,
    "running": {**_POD, "daemonSet": ("flag", False)},
    "node": {
        "name": ("text", True),
        "labels": ("{text}", False),
        "taints": ("[taint]", False),
        "allocatable": ("{quantity}", True),
        "capacity": ("{quantity}", False),
        "pods": ("[running]", False),
    },
    "taint": {"key": ("text", True), "value": ("text", False), "effect": ("text", True)},
    "toleration": dict.fromkeys(("key", "operator", "value", "effect"), ("text", False)),
    "expression": {
        "key": ("text", True),
        "operator": ("text", True),
        "values": ("[text]", False),
        "minValues": ("count", False),
    },
    "preference": {"weight": ("whole", True), "matchExpressions": ("[expression]", True)},
    "spread": {
        "topologyKey": ("text", True),
        "maxSkew": ("count", True),
        "whenUnsatisfiable": ("text", True),
        "labelSelector": ("selector", False),
        "minDomains": ("count", False),
        "nodeAffinityPolicy": ("text", False),
        "nodeTaintsPolicy": ("text", False),
        "matchLabelKeys": ("[text]", False),
    },
    "affinity": {
        "topologyKey": ("text", True),
        "labelSelector": ("selector", False),
        "namespaces": ("[text]", False),
        "weight": ("whole", False),
    },
    "selector": {"matchLabels": ("{text}", False), "matchExpressions": ("[expression]", False)},
}
_NUMBER = (int, float)
_PLAIN: dict[str, tuple[Any, str]] = {
    "text": (str, "a text"),
    "number": (_NUMBER, "a number"),
    "whole": (int, "a whole number"),
    "count": (int, "a whole number"),
    "flag": (bool, "true or false"),
    "quantity": ((str, *_NUMBER), "a quantity, for example 500m or 2Gi"),
}


def faults_of(document: Any, kind: str) -> list[FieldError]:
    """What is wrong with the members of a document of a kind (`problem` or `catalog`)."""
    return list(_faults(document, kind, ""))


def _faults(value: Any, kind: str, path: str) -> Iterator[FieldError]:
    where = path or "the document"
    if kind.startswith("["):
        if not isinstance(value, list):
            yield FieldError(where, value, "must be a list", code=RuleCode.WRONG_TYPE)
            return
        for position, entry in enumerate(value):
            yield from _faults(entry, kind[1:-1], at(path, position))
    elif kind.startswith("{"):
        if not isinstance(value, Mapping):
            yield FieldError(where, value, "must be an object", code=RuleCode.WRONG_TYPE)
            return
        for key, entry in value.items():
            yield from _faults(entry, kind[1:-1], at(path, key))
    elif kind in _OBJECTS:
        yield from _object_faults(value, _OBJECTS[kind], path)
    elif kind in _PLAIN:
        types, words = _PLAIN[kind]
        if not isinstance(value, types) or (isinstance(value, bool) and kind != "flag"):
            yield FieldError(where, value, f"must be {words}", code=RuleCode.WRONG_TYPE)
        elif kind == "count" and int(value) < 0:
            yield FieldError(where, value, "must not be negative", code=RuleCode.OUT_OF_RANGE)


def _object_faults(value: Any, members: Mapping[str, tuple[str, bool]], path: str) -> Iterator[FieldError]:
    if not isinstance(value, Mapping):
        yield FieldError(path or "the document", value, "must be an object", code=RuleCode.WRONG_TYPE)
        return
    for name, entry in value.items():
        if name not in members:
            hint = did_you_mean(name, members, f"known: {', '.join(members)}")
            yield FieldError(at(path, name), ABSENT, "is not known", hint, code=RuleCode.UNKNOWN_FIELD)
        else:
            yield from _faults(entry, members[name][0], at(path, name))
    for name, (_, required) in members.items():
        if required and name not in value:
            yield FieldError(at(path, name), ABSENT, "is required", code=RuleCode.MISSING_FIELD)
