"""`python -m infra.local.instance_facts`: write what the controller ships of EC2's instance types.

The records are those of the local AWS; a test holds the table to them.
"""

from __future__ import annotations

import json
from pathlib import Path

import nodeless.app
from infra.local.aws.moto_internals import instance_type_records
from nodeless.cloud.aws.instance_type_labels import type_requirements
from nodeless.cloud.aws.type_facts import TypeFacts, read_type
from nodeless.model.labels import INSTANCE_PODS, REGION, ZONE

_REGION = "us-east-1"
_FILE = Path(nodeless.app.__file__).parent / "types.json"
#: Labels that depend on where a node runs, and on its kubelet.
_LEFT_OUT = {REGION, ZONE, INSTANCE_PODS}


def text() -> str:
    """The table: the label keys, then one type to a line with the values of each label."""
    records = instance_type_records(_REGION, [], [])
    facts = sorted((fact for each in records if (fact := read_type(each))), key=lambda fact: fact.name)
    rows = [_row(each) for each in facts]
    keys = sorted(rows[0][1])
    lines = ",\n".join("  " + _compact([name, *(labels[key] for key in keys)]) for name, labels in rows)
    return f'{{\n "region": "{_REGION}",\n "labels": {_compact(keys)},\n "types": [\n{lines}\n ]\n}}\n'


def _row(facts: TypeFacts) -> tuple[str, dict[str, list[str]]]:
    labels = type_requirements(facts, region=_REGION, zones=(), capacity_types=facts.usage_classes, pods=0)
    return facts.name, {key: sorted(labels[key].values) for key in labels if key not in _LEFT_OUT}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    _FILE.write_text(text(), encoding="utf-8")
