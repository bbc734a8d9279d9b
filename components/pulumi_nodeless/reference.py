"""Reference pages out of the package's schema: one for each component, with its inputs and outputs.

Inputs are named as in Python; other languages write them in camelCase (`zone_count` is `zoneCount`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pulumi_nodeless.shapes import python_name

_NOTICE = "<!-- Made by `python -m pulumi_nodeless generate`; change the docstrings instead. -->"
_REFERENCE = "#/types/"


def pages(schema: Mapping[str, Any]) -> dict[str, str]:
    """File name to text of every page.

    Args:
        schema: The package's schema.

    Returns:
        One page a component, and `README.md` that lists them.
    """
    resources = {token.rsplit(":", 1)[1]: found for token, found in sorted(schema["resources"].items())}
    made = {f"{name}.md": _page(name, found, schema["types"]) for name, found in resources.items()}
    rows = [f"| [{name}]({name}.md) | {_cell(found['description'])} |" for name, found in resources.items()]
    listed = ["# Components", "", _NOTICE, "", "| component | what it is |", "|---|---|", *rows]
    listed += ["", "[What the controller may do in AWS](permissions.md), statement by statement."]
    return made | {"README.md": "\n".join(listed) + "\n"}


def _page(name: str, resource: Mapping[str, Any], types: Mapping[str, Any]) -> str:
    lines = [
        f"# {name}",
        "",
        _NOTICE,
        "",
        resource["description"],
        "",
        f"Type token `nodeless:index:{name}`.",
        "",
        "## Inputs",
        "",
        *_inputs(resource["inputProperties"], resource.get("requiredInputs", ())),
    ]
    for used in _types_of(resource["inputProperties"], types):
        found = types[used]
        lines += ["", f"### {_short(used)}", "", found.get("description", ""), ""]
        lines += _inputs(found["properties"], found.get("required", ()))
    if resource["properties"]:
        lines += ["", "## Outputs", "", "| output | type | what it is |", "|---|---|---|"]
        lines += [
            f"| `{python_name(key)}` | {_kind(found)} | {_cell(found.get('description', ''))} |"
            for key, found in resource["properties"].items()
        ]
    return "\n".join(lines) + "\n"


def _inputs(properties: Mapping[str, Any], required: Any) -> Iterator[str]:
    yield "| input | type | | what it is |"
    yield "|---|---|---|---|"
    for key, found in properties.items():
        need = "required" if key in required else ""
        yield f"| `{python_name(key)}` | {_kind(found)} | {need} | {_cell(found.get('description', ''))} |"


def _types_of(properties: Mapping[str, Any], types: Mapping[str, Any]) -> list[str]:
    """The package's own types that inputs are made of, each once, outer ones first."""
    found: list[str] = []
    waiting = list(properties.values())
    while waiting:
        shape = waiting.pop(0)
        waiting += [shape[part] for part in ("items", "additionalProperties") if part in shape]
        token = shape.get("$ref", "").removeprefix(_REFERENCE)
        if token in types and token not in found:
            found.append(token)
            waiting += types[token]["properties"].values()
    return found


def _kind(shape: Mapping[str, Any]) -> str:
    if "items" in shape:
        return f"list of {_kind(shape['items'])}"
    if "additionalProperties" in shape:
        return f"map of {_kind(shape['additionalProperties'])}"
    if shape.get("$ref", "").startswith(_REFERENCE):
        name = _short(shape["$ref"])
        return f"[{name}](#{name.lower()})"
    kind: str = shape.get("type", "anything")
    return kind


def _short(token: str) -> str:
    return token.rsplit(":", 1)[1].removesuffix("Args")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
