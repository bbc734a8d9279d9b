"""Manifests as YAML that people and kubectl read: texts of several lines as such, others quoted where needed.

What YAML 1.1 and kubectl (go-yaml) read as a number, a boolean or nothing is a string only in quotes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from nodeless.cli.manifests.yaml_loader import reads_as_text

_WIDTH = 120


class _Dumper(yaml.SafeDumper):
    """Writes strings so that they stay strings, and texts of several lines line by line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None if reads_as_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(manifest: Mapping[str, Any]) -> str:
    """One object, its members in their order."""
    return yaml_documents([manifest])


def yaml_documents(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Objects one after the other, their members in their order."""
    return str(
        yaml.dump_all(
            [dict(manifest) for manifest in manifests],
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=_WIDTH,
        )
    )
