"""The schemas of documents as they have been published, and what may change in them within a version.

`python -m tests.controllers.published_schemas` takes over what was added, and refuses any other change.
"""

import json
import sys
from pathlib import Path

from nodeless.cli.document_schemas import document_schema, kinds

FOLDER = Path(__file__).parent / "schemas" / "v1"


def published():
    """Each schema that has been published, by kind."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}


def breaks(old, new, path="$"):
    """What readers of documents by the old schema would stumble over in documents by the new one."""
    types_before, types = _types(old), _types(new)
    if types_before is not None and (types is None or not types <= types_before):
        yield f"{path}: of type {_shown(types_before)} before, now {_shown(types)}"
    for word in ("const", "format"):
        if word in old and old[word] != new.get(word):
            yield f"{path}: {word} {old[word]!r} before, now {new.get(word)!r}"
    if "enum" in old and not set(new.get("enum", ["anything"])) <= set(old["enum"]):
        yield f"{path}: one of {old['enum']} before, now {new.get('enum', 'anything')}"
    for name, member in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            yield f"{path}.{name}: is gone"
        else:
            yield from breaks(member, new["properties"][name], f"{path}.{name}")
    for name in sorted({*old.get("required", ())} - {*new.get("required", ())}):
        if name in new.get("properties", {}):
            yield f"{path}.{name}: was always there, now it need not be"
    for word in ("items", "additionalProperties"):
        if word in old:
            yield from breaks(old[word], new.get(word, {}), f"{path}[]")
    if "prefixItems" in old:
        items = new.get("prefixItems", [])
        if len(items) != len(old["prefixItems"]):
            yield f"{path}: had {len(old['prefixItems'])} items, now {len(items)}"
        for place, (before, now) in enumerate(zip(old["prefixItems"], items, strict=False)):
            yield from breaks(before, now, f"{path}[{place}]")


def _types(schema):
    found = schema.get("type")
    return None if found is None else {found} if isinstance(found, str) else set(found)


def _shown(types):
    return "any" if types is None else " or ".join(sorted(types))


if __name__ == "__main__":
    current = {kind: document_schema(kind) for kind in kinds()}
    faults = [
        fault for kind, old in published().items() for fault in breaks(old, current.get(kind, {}), kind)
    ]
    if faults:
        sys.exit("\n".join(["not compatible; hint: make another version of the documents:", *faults]))
    for kind, schema in current.items():
        (FOLDER / f"{kind}.json").write_text(json.dumps(schema, indent=2) + "\n")
