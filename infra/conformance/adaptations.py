"""What is changed in the environment code of the suites, and why. No file of a suite is ever among it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

#: Folders of environment code; everything else of a module is as it was published.
ADAPTABLE = (PurePosixPath("test/pkg/environment"), PurePosixPath("test/pkg/debug"))


@dataclass(frozen=True, slots=True)
class Adaptation:
    """One text that is replaced wherever it stands in a file.

    Attributes:
        file: Path in the module.
        old: Text that must be there.
        new: What stands there instead.
        reason: Why, in a sentence for docs/conformance.md.
    """

    file: str
    old: str
    new: str
    reason: str


_EXPECTATIONS = "test/pkg/environment/common/expectations.go"
_ELSEWHERE = "the controller runs in the namespace `karpenter` here, as its chart and the guide have it"

ADAPTATIONS: tuple[Adaptation, ...] = (
    Adaptation(
        _EXPECTATIONS,
        'types.NamespacedName{Namespace: "kube-system", Name: "karpenter"}',
        'types.NamespacedName{Namespace: "karpenter", Name: "karpenter"}',
        _ELSEWHERE,
    ),
    Adaptation(
        _EXPECTATIONS,
        'types.NamespacedName{Name: "karpenter-leader-election", Namespace: "kube-system"}',
        'types.NamespacedName{Name: "karpenter-leader-election", Namespace: "karpenter"}',
        _ELSEWHERE,
    ),
    Adaptation(
        _EXPECTATIONS,
        'types.NamespacedName{Name: podName, Namespace: "kube-system"}',
        'types.NamespacedName{Name: podName, Namespace: "karpenter"}',
        _ELSEWHERE,
    ),
    Adaptation(
        _EXPECTATIONS,
        'env.EventuallyExpectRollout("karpenter", "kube-system")',
        'env.EventuallyExpectRollout("karpenter", "karpenter")',
        _ELSEWHERE,
    ),
    Adaptation(
        _EXPECTATIONS,
        'env.Monitor.RestartCount("kube-system")',
        'env.Monitor.RestartCount("karpenter")',
        _ELSEWHERE,
    ),
    Adaptation(
        "test/pkg/environment/common/environment.go",
        "gomega.SetDefaultEventuallyTimeout(16 * time.Minute)",
        "gomega.SetDefaultEventuallyTimeout(3 * time.Minute)",
        "instances join in seconds here: what has not happened after three minutes does not happen",
    ),
)


class AdaptationFailed(RuntimeError):
    """A replacement does not fit: its text is not there, or it touches more than environment code."""


def adapted(texts: Mapping[str, str], adaptations: Iterable[Adaptation]) -> dict[str, str]:
    """The changed files, by path.

    Args:
        texts: Files of the module as published, by path; those that are adapted must be among them.
        adaptations: What to replace.

    Raises:
        AdaptationFailed: A text is missing, or a file is no environment code.
    """
    changed: dict[str, str] = {}
    for each in adaptations:
        if not is_adaptable(each.file):
            raise AdaptationFailed(f"{each.file} is no environment code: only {_folders()} may be adapted")
        text = changed.get(each.file, texts.get(each.file, ""))
        if each.old not in text:
            raise AdaptationFailed(
                f"{each.file} does not contain {each.old!r}; hint: compare with the new version"
            )
        changed[each.file] = text.replace(each.old, each.new)
    return changed


def is_adaptable(file: str) -> bool:
    """Whether a file is environment code."""
    return any(folder in PurePosixPath(file).parents for folder in ADAPTABLE)


def _folders() -> str:
    return " and ".join(str(folder) for folder in ADAPTABLE)
