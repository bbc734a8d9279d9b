"""What a YAML text holds, found out before anything is built of it.

The readers of PyYAML follow aliases until memory ends, and call themselves once for each level of nesting:
the one in Python ends in a RecursionError, the one in C ends the process. So the events of the text are
looked through first; they come one after the other, however deep they nest, and cost a tenth of building.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, cast

import yaml

from nodeless.api.bounds import DocumentBounds

#: Levels of nesting; no kind of Kubernetes has more than thirty. Values that aliases may make of one
#: document: etcd takes objects of 1.5 MiB, none has as many.
FILE_BOUNDS = DocumentBounds(values=1_000_000, depth=200)
#: Of a long string each so many characters count as one value more.
_CHARACTERS = 100


@dataclass(slots=True)
class _Level:
    """A list or an object that has begun: its name for aliases, and what has been counted in it."""

    anchor: Hashable
    values: int = 1


def check_yaml(text: str, bounds: DocumentBounds = FILE_BOUNDS, loader: Any = yaml.SafeLoader) -> None:
    """Find out whether a text can be read.

    Args:
        text: What is to be read.
        bounds: How much of it is read, at most.
        loader: Of PyYAML, the one that shall read it: each has words and positions of its own for a fault.

    Raises:
        yaml.YAMLError: It is no YAML, too deep, or made endless or too large by aliases.
    """
    levels: list[_Level] = []
    anchors: dict[Hashable, int | None] = {}
    aliased = False
    for event in yaml.parse(text, Loader=loader):
        match event:
            case yaml.DocumentStartEvent():
                levels, anchors, aliased = [_Level(None)], {}, False
            case yaml.CollectionStartEvent():
                if len(levels) > bounds.depth:
                    raise _fault(f"it is nested more than {bounds.depth} levels deep", event)
                levels.append(_Level(event.anchor))
                anchors[event.anchor] = None
            case yaml.CollectionEndEvent():
                closed = levels.pop()
                anchors[closed.anchor] = closed.values
                levels[-1].values += closed.values
            case yaml.ScalarEvent():
                anchors[event.anchor] = 1 + len(event.value) // _CHARACTERS
                levels[-1].values += 1 + len(event.value) // _CHARACTERS
            case yaml.AliasEvent():
                meant = anchors.get(event.anchor, 1)
                if meant is None:
                    raise _fault("an alias refers to what contains it", event)
                aliased = True
                levels[-1].values += meant
        if aliased and levels[-1].values > bounds.values:
            raise _fault(f"aliases make more than {bounds.values} values of it", event)


def _fault(problem: str, event: yaml.Event) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=cast("yaml.Mark | None", event.start_mark))
