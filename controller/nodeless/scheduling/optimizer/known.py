"""What the search for a cheaper plan finds out that bounds on its price go by; one for each solve."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nodeless.scheduling.optimizer.bound_problem import BoundProblem
from nodeless.scheduling.optimizer.configurations import Configuration
from nodeless.scheduling.optimizer.cover import Cover
from nodeless.scheduling.optimizer.items import HostLimits
from nodeless.scheduling.optimizer.whole_nodes import rounded
from nodeless.scheduling.optimizer.work_budget import Effort


@dataclass(slots=True, eq=False)
class Known:
    """Bounds by what is covered with what, and who knows of nodes that are filled well."""

    configurations: Callable[[BoundProblem, Effort], Sequence[Configuration]] | None = None
    """Those of use for a plan, as a problem has them; what finding them takes is taken from the effort."""
    _bounds: dict[object, float] = field(default_factory=dict)

    def remember(self, cover: Cover, hosts: HostLimits, bound: float) -> None:
        """Keep a bound."""
        self._bounds[_identity(cover, hosts)] = bound

    def of(self, cover: Cover, hosts: HostLimits) -> float | None:
        """The bound for the same."""
        return self._bounds.get(_identity(cover, hosts)) if self._bounds else None


def _identity(cover: Cover, hosts: HostLimits) -> object:
    """Equal for covers that differ in the order of items and shapes alone."""
    own = rounded(cover)
    columns = [
        (own.requests[item].tobytes(), int(own.needed[item]), own.shapes.allowed[:, item].tobytes(), item)
        for item in range(len(own.needed))
    ]
    order = [item for *_, item in sorted(columns)]
    items = tuple((column[0], column[1]) for column in sorted(columns))
    shapes = sorted(
        (
            own.shapes.room[shape].tobytes(),
            float(own.cost[shape]),
            tuple(sorted(own.uses[shape].items())),
            own.shapes.allowed[shape, order].tobytes(),
        )
        for shape in range(len(own.shapes))
    )
    limits = hosts.adds[order].tobytes(), hosts.most[order].tobytes()
    return items, tuple(shapes), own.caps.tobytes(), limits
