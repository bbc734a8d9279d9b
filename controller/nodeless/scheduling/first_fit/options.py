"""The choices of domains that new nodes could be in: one value for each topology key.

Labels that come with the instance type go together as types have them: of the families and sizes only
the pairs that are sold, not each with each. What a pool or an offering decides (zone, capacity type, the
user's own labels) goes with everything.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from nodeless.model.labels import CAPACITY_TYPE, ZONE
from nodeless.model.requirements import Requirement
from nodeless.scheduling.capacity.pool_table import PoolTable
from nodeless.scheduling.spread.sharing import Option

Values = Callable[[str], tuple[str | None, ...]]
"""The values that a key may have on new nodes, None for its absence."""
_OFFERED = frozenset((ZONE, CAPACITY_TYPE))
#: Options that others' rules may make of one where a class's own would leave a single one.
_MOST_FOR_OTHERS = 64


def bound_keys(own: Sequence[str], others: Sequence[str], values: Values) -> tuple[str, ...]:
    """The keys whose domain must be decided for a class, in the order of `others`.

    Those that its own rules look at, and those by which others count its pods or repel them. Labels with so
    many values that a node would be left with few types (instance types) are not decided for others.

    Args:
        own: Keys of its own rules.
        others: These, and the keys by which others count.
        values: What values keys may have.
    """
    kept, many = set(own), 1
    for key in sorted(set(others) - kept, key=lambda key: (len(values(key)), key)):
        many *= max(1, len(values(key)))
        if many > _MOST_FOR_OTHERS:
            break
        kept.add(key)
    return tuple(key for key in others if key in kept)


def options_of(keys: Sequence[str], values: Values, tables: Sequence[PoolTable]) -> Iterator[Option]:
    """Every option that some type could be in, in the order of the values."""
    together = [at for at, key in enumerate(keys) if key not in _OFFERED and _of_types(key, tables)]
    if len(together) < 2:
        yield from product(*map(values, keys))
        return
    sold = _sold([keys[at] for at in together], values, tables)
    free = [at for at in range(len(keys)) if at not in together]
    places = [{value: place for place, value in enumerate(values(key))} for key in keys]
    found = []
    for some in sold:
        for others in product(*(values(keys[at]) for at in free)):
            chosen = dict(zip(together, some, strict=True)) | dict(zip(free, others, strict=True))
            found.append(tuple(chosen[at] for at in range(len(keys))))
    yield from sorted(
        found, key=lambda option: [place[value] for place, value in zip(places, option, strict=True)]
    )


def _of_types(key: str, tables: Sequence[PoolTable]) -> bool:
    return any(table.table.carries(key) for table in tables)


def _sold(keys: Sequence[str], values: Values, tables: Sequence[PoolTable]) -> set[Option]:
    """The combinations of values that types have."""
    seen = dict.fromkeys(table.table for table in tables)
    rows = {row for table in seen for row in table.carried_together(keys)}
    known: dict[tuple[str, Requirement | None], tuple[str | None, ...]] = {}
    found: set[Option] = set()
    for row in rows:
        for key, label in zip(keys, row, strict=True):
            if (key, label) not in known:
                known[key, label] = _possible(label, values(key))
        found.update(product(*(known[each] for each in zip(keys, row, strict=True))))
    return found


def _possible(label: Requirement | None, values: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """The values that a type with this label may come with."""
    if label is None or label.complement:
        return values
    return tuple(value for value in values if (value in label.values if label.values else value is None))
