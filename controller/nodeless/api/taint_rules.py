"""Rules for the taints of a pool."""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.names import qualified_name_defects
from nodeless.api.rule_codes import RuleCode
from nodeless.api.suggestions import did_you_mean
from nodeless.model.taints import TaintEffect

_EFFECTS = tuple(effect.value for effect in TaintEffect)


def taint_errors(spec: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """The faults of `taints` and `startupTaints`; the two must not repeat each other either."""
    seen: dict[tuple[str, str], str] = {}
    for name in ("taints", "startupTaints"):
        taints = spec.get(name)
        for position, taint in enumerate(taints if isinstance(taints, list) else ()):
            if isinstance(taint, Mapping):
                yield from _taint_errors(taint, at(at(path, name), position), seen)


def duplicate_taints(spec: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Taints that repeat another, among `taints` and `startupTaints` together."""
    seen: dict[tuple[str, str], str] = {}
    for name in ("taints", "startupTaints"):
        taints = spec.get(name)
        for position, taint in enumerate(taints if isinstance(taints, list) else ()):
            if isinstance(taint, Mapping):
                yield from _duplicates(
                    taint.get("key"), taint.get("effect"), at(at(path, name), position), seen
                )


def _taint_errors(
    taint: Mapping[str, Any], path: str, seen: dict[tuple[str, str], str]
) -> Iterator[FieldError]:
    key, value, effect = (taint.get(name) for name in ("key", "value", "effect"))
    if isinstance(key, str):
        for defect in ["must not be empty"] if not key else qualified_name_defects(key):
            yield FieldError(at(path, "key"), key, defect, code=RuleCode.INVALID_TAINT)
    if isinstance(value, str) and value:
        for defect in qualified_name_defects(value):
            yield FieldError(at(path, "value"), value, defect, code=RuleCode.INVALID_TAINT)
    if isinstance(effect, str) and effect and effect not in _EFFECTS:
        listed = f"use one of {', '.join(_EFFECTS)}"
        yield FieldError(
            at(path, "effect"),
            effect,
            "is not an effect",
            did_you_mean(effect, _EFFECTS, listed),
            code=RuleCode.UNSUPPORTED_VALUE,
        )
    yield from _duplicates(key, effect, path, seen)


def _duplicates(key: Any, effect: Any, path: str, seen: dict[tuple[str, str], str]) -> Iterator[FieldError]:
    if isinstance(key, str) and isinstance(effect, str):
        first = seen.setdefault((key, effect), path)
        if first != path:
            yield FieldError(
                path,
                f"{key}:{effect}",
                f"repeats {first}: key and effect are the same",
                code=RuleCode.DUPLICATE_TAINT,
            )
