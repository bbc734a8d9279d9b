"""Manifests as YAML that people read: texts of several lines as such."""

from collections.abc import Mapping
from typing import Any

import yaml

_WIDTH = 120


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines line by line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(manifest: Mapping[str, Any]) -> str:
    """One object, its members in their order."""
    return str(yaml.dump(dict(manifest), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH))
