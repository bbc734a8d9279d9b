"""Order between components: the dependencies given to a component, for its children.

The engine orders resources; `depends_on` of a component says nothing about what is inside it. Components
whose children have to wait hand their own dependencies on with this function.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, TypeVar, cast

import pulumi

ValueT = TypeVar("ValueT")


def child_after(
    parent: pulumi.Resource,
    opts: pulumi.ResourceOptions | None,
    also: Sequence[pulumi.Resource] = (),
    *,
    delete_timeout: str | None = None,
    delete_before_replace: bool | None = None,
) -> pulumi.ResourceOptions:
    """Options of a child that waits for what its component waits for, and for `also`.

    Args:
        parent: the component.
        opts: the options the component was made with.
        also: resources of the component itself that come before the child.
        delete_timeout: how long its deletion may take, as `30m`.
        delete_before_replace: whether the old object has to go before the new one comes.
    """
    own = pulumi.ResourceOptions(
        parent=parent,
        depends_on=list(also),
        delete_before_replace=delete_before_replace,
        custom_timeouts=pulumi.CustomTimeouts(delete=delete_timeout) if delete_timeout else None,
    )
    given = opts.depends_on if opts is not None else None
    return pulumi.ResourceOptions.merge(own, pulumi.ResourceOptions(depends_on=given))


def without_dependencies(output: pulumi.Output[ValueT]) -> pulumi.Output[ValueT]:
    """The same value, for a child that uses an output of its own component.

    The output depends on the component, that is, on all its children: the child would wait for itself.
    """
    # While a preview does not know the value, it is None, which nothing looks at.
    value = cast(Callable[[], Awaitable[ValueT]], output.future)
    return pulumi.Output(set(), _Later(value), _Later(output.is_known))


class _Later(Awaitable[ValueT]):
    """Asks only when somebody waits: where a program fails, nobody asks whether the value is known."""

    def __init__(self, ask: Callable[[], Awaitable[ValueT]]) -> None:
        self._ask = ask

    def __await__(self) -> Generator[Any, Any, ValueT]:
        return self._ask().__await__()
