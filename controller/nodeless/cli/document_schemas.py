"""The JSON Schemas (2020-12) of the documents that commands write, made from the types that they are made of.

Within `cli.nodeless.dev/v1` a document may get members; none goes, changes its type or may be left out where
it could not before. Objects are open: a reader skips what it does not know.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from nodeless.cli.commands.output import API_VERSION
from nodeless.explain.bill import CommitmentUse
from nodeless.explain.disruption import Judgment
from nodeless.explain.drift_preview import DriftPreview
from nodeless.explain.fill import NodeFill
from nodeless.explain.lost_work import CapacityReason
from nodeless.explain.migration.report import PricedNode
from nodeless.explain.pool_facts import PoolFacts
from nodeless.explain.preference_costs import PreferenceCosts
from nodeless.explain.report import Launch, RelaxedPreferences, Report, Unplaced
from nodeless.explain.resizes import ResizeAdvice
from nodeless.model.bill import BillPart
from nodeless.model.requirements import Requirement, Requirements

JsonSchema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"

STRING: JsonSchema = {"type": "string"}
INTEGER: JsonSchema = {"type": "integer"}
NUMBER: JsonSchema = {"type": "number"}
BOOLEAN: JsonSchema = {"type": "boolean"}
_STRINGS: JsonSchema = {"type": "array", "items": STRING}
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def kinds() -> list[str]:
    """The kinds of documents, by name."""
    return sorted(_BODIES)


def document_schema(kind: str) -> JsonSchema:
    """The schema of a document. Raises KeyError for a kind that no command writes."""
    meaning, body = _BODIES[kind]
    schema = body()
    return {
        "$schema": DIALECT,
        "$id": f"https://{API_VERSION}/{kind}.json",
        "title": kind,
        "description": meaning,
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind},
            **schema["properties"],
        },
        "required": ["apiVersion", "kind", *schema.get("required", ())],
    }


def _object(optional: Mapping[str, JsonSchema] | None = None, **required: JsonSchema) -> JsonSchema:
    """An object with members that are always there, and with some that need not be."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": sorted(required),
    }


def _array(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}


def _or_null(schema: JsonSchema) -> JsonSchema:
    return {**schema, "type": [schema["type"], "null"]}


def _map(values: JsonSchema) -> JsonSchema:
    return {"type": "object", "additionalProperties": values}


def schema_of(kind: Any) -> JsonSchema:
    """The schema of what `state.saving.plain` makes of a value of a type.

    Members of dataclasses that have a default are left out when they have it.

    Raises:
        TypeError: The type has no form in JSON.
    """
    origin = get_origin(kind)
    arguments = get_args(kind)
    if origin in (Union, types.UnionType):
        present = [argument for argument in arguments if argument is not types.NoneType]
        if len(present) == 1 and len(arguments) == 2:
            return _or_null(schema_of(present[0]))
    elif kind is Requirements:
        return _array(schema_of(Requirement))
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        return _map(schema_of(arguments[1]))
    elif origin is tuple and arguments[-1:] != (...,):
        items = [schema_of(argument) for argument in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    elif origin is frozenset or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return _array(schema_of(arguments[0]))
    elif isinstance(kind, type):
        if dataclasses.is_dataclass(kind):
            return _of_dataclass(kind)
        for scalar in (bool, str, int, float):
            if issubclass(kind, scalar):
                return {"type": _SCALARS[scalar]}
    raise TypeError(f"{kind!r} has no schema; hint: add it to schema_of, as state.saving.plain writes it")


def _of_dataclass(kind: Any) -> JsonSchema:
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    return {
        "type": "object",
        "properties": {field.name: schema_of(hints[field.name]) for field in fields},
        "required": sorted(
            field.name
            for field in fields
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ),
    }


def _extended(
    schema: JsonSchema, required: Mapping[str, JsonSchema], optional: Mapping[str, JsonSchema] | None = None
) -> JsonSchema:
    """A schema with members that are added, or are of another form than the type's."""
    return {
        **schema,
        "properties": {**schema["properties"], **required, **(optional or {})},
        "required": sorted({*schema["required"], *required}),
    }


def _costs(*names: str) -> JsonSchema:
    return _object(**dict.fromkeys(names, NUMBER))


def _plan_report() -> JsonSchema:
    sums = _costs("before", "added", "after")
    cost = _object(
        perHour=sums,
        perMonth=sums,
        lowerBoundPerHour=_or_null(NUMBER),
        gap=_or_null(NUMBER),
        provedCheapest=BOOLEAN,
        fewerNodes=_or_null(_object(nodes=INTEGER, perHour=NUMBER)),
        unpricedNodes=INTEGER,
        addedByPart=_map(NUMBER),
        unknownParts=_STRINGS,
    )
    counted = _map(INTEGER)
    step = _object(
        reason=STRING,
        ending=_STRINGS,
        launches=counted,
        saving=NUMBER,
        evictions=INTEGER,
        price=NUMBER,
    )
    target = _object(
        {"preferences": schema_of(PreferenceCosts)},
        price=NUMBER,
        target=NUMBER,
        distance=NUMBER,
        reached=NUMBER,
        evictions=INTEGER,
        ending=_STRINGS,
        launches=counted,
        path=_array(step),
    )
    return _extended(schema_of(Report), {"complete": BOOLEAN, "cost": cost}, {"target": target})


def _explanation() -> JsonSchema:
    facts = {
        "unplaced": schema_of(Unplaced),
        "node": schema_of(NodeFill),
        "launch": schema_of(Launch),
        "relaxed": _array(schema_of(RelaxedPreferences)),
        "capacity": schema_of(CapacityReason),
        "preferences": schema_of(PreferenceCosts),
        "resize": schema_of(ResizeAdvice),
        "disruption": schema_of(Judgment),
        "pool": schema_of(PoolFacts),
    }
    return _object(facts, subject=STRING, placed=BOOLEAN, reasons=_STRINGS)


def _overview() -> JsonSchema:
    node = _object(
        name=STRING,
        state=STRING,
        pool=STRING,
        instance_type=STRING,
        zone=STRING,
        capacity_type=STRING,
        price=_or_null(NUMBER),
        parts=_array(schema_of(BillPart)),
        cpu=NUMBER,
        memory=NUMBER,
        pods=INTEGER,
        age=INTEGER,
        planned=INTEGER,
        kept=INTEGER,
        disrupted=BOOLEAN,
        code=STRING,
        message=STRING,
    )
    move = _object(reason=STRING, action=STRING, claims=_STRINGS, saving=NUMBER, evictions=INTEGER)
    return _object(
        price=NUMBER,
        unpriced=INTEGER,
        parts=_map(NUMBER),
        unknown_parts=_map(INTEGER),
        nodes=_array(node),
        launch=_object(nodes=INTEGER, pods=INTEGER, price=NUMBER),
        placed=INTEGER,
        refused=INTEGER,
        moves=_array(move),
        held=NUMBER,
        realized=_or_null(NUMBER),
        faults=_STRINGS,
        commitments=_array(schema_of(CommitmentUse)),
    )


def _drift_report() -> JsonSchema:
    costs = _costs("before", "after", "difference")
    return _extended(
        schema_of(DriftPreview), {"costPerHour": costs, "costPerMonth": costs, "lines": _STRINGS}
    )


def _windows() -> JsonSchema:
    moment = {**STRING, "format": "date-time"}
    window = _object(start=moment, end=moment, nodes=_or_null(INTEGER))
    return _object(pools=_map(_map(_array(window))))


def _packing_answer() -> JsonSchema:
    counted = _object(name=STRING, count=INTEGER)
    new = _object(
        count=INTEGER,
        nodePool=STRING,
        instanceType=STRING,
        zone=STRING,
        capacityType=STRING,
        price=NUMBER,
        instanceTypeOptions=INTEGER,
        pods=_array(counted),
    )
    return _object(
        problem=STRING,
        pods=INTEGER,
        scheduledNew=INTEGER,
        scheduledExisting=INTEGER,
        unscheduledPods=INTEGER,
        newNodeCount=INTEGER,
        totalHourlyPrice=NUMBER,
        lowerBound=_or_null(NUMBER),
        gap=_or_null(NUMBER),
        provedCheapest=BOOLEAN,
        fewerNodes=_or_null(_object(nodes=INTEGER, perHour=NUMBER)),
        timedOut=BOOLEAN,
        faults=_STRINGS,
        newNodes=_array(new),
        existingNodes=_array(_object(name=STRING, pods=_array(counted))),
        unschedulable=_array(_object(name=STRING, count=INTEGER, error=STRING)),
        solveSeconds=NUMBER,
        solveCpuSeconds=NUMBER,
        maxRssMiB=NUMBER,
    )


def _validation_report() -> JsonSchema:
    fault = _object(
        path=STRING,
        line=INTEGER,
        column=INTEGER,
        severity={"enum": ["error", "warning"]},
        code=STRING,
        message=STRING,
        hint=STRING,
        text=STRING,
    )
    entry = _object(
        file=STRING,
        line=INTEGER,
        object=STRING,
        result={"enum": ["valid", "invalid", "skipped", "unreadable"]},
        faults=_array(fault),
    )
    return _object(objects=_array(entry))


_MANIFESTS: JsonSchema = {"type": "array", "items": {"type": "object"}}


def _advice_report() -> JsonSchema:
    money = _costs("perHour", "perMonth")
    advice = _object(
        code=STRING,
        subject=STRING,
        title=STRING,
        alone=money,
        onTop=_or_null(money),
        excludes=_STRINGS,
        risk=STRING,
        change=_MANIFESTS,
        how=STRING,
    )
    return _object(
        now=money,
        together=money,
        pendingPods=INTEGER,
        unpricedNodes=INTEGER,
        heldNodes=_array(_object(node=STRING, reason=STRING)),
        advice=_array(advice),
        triedInVain=_STRINGS,
        remarks=_STRINGS,
        notes=_STRINGS,
    )


def _migration_report() -> JsonSchema:
    sums = _object(before=NUMBER, after=_or_null(NUMBER), anyType=_or_null(NUMBER), staying=NUMBER)
    difference = _object(
        code=STRING, workload=STRING, pods=INTEGER, reason=STRING, change=STRING, annotations=_map(STRING)
    )
    step = _object(title=STRING, commands=_STRINGS, check=STRING, undo=_STRINGS, caution=STRING)
    kept = {"source": STRING, "member": STRING}
    # "from" is a word of Python's.
    origin = _object(**{"pool": STRING, "from": STRING})
    return _object(
        manifests=_MANIFESTS,
        origins=_array(origin),
        cost=_object(perHour=sums, perMonth=sums, unpricedNodes=_STRINGS),
        nodes=_array(schema_of(PricedNode)),
        differences=_array(difference),
        carried=_array(_object(**kept, to=STRING)),
        notCarried=_array(_object(**kept, value=STRING, reason=STRING, matters=BOOLEAN)),
        steps=_array(step),
        plan=_or_null(_plan_report()),
        notes=_STRINGS,
    )


_BODIES: Mapping[str, tuple[str, Callable[[], JsonSchema]]] = {
    "AdviceReport": ("What `nodeless advise` writes.", _advice_report),
    "DisruptionWindows": ("What `nodeless windows` writes.", _windows),
    "DriftReport": ("What `nodeless drift` writes.", _drift_report),
    "Explanation": ("What `nodeless why` writes.", _explanation),
    "MigrationReport": ("What `nodeless migrate` writes.", _migration_report),
    "Overview": ("What `nodeless top` writes.", _overview),
    "PackingAnswer": ("What `nodeless solve` writes.", _packing_answer),
    "PlanReport": ("What `nodeless plan` writes.", _plan_report),
    "ValidationReport": ("What `nodeless validate` writes.", _validation_report),
}
