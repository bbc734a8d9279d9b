"""Small words that every text uses: counts, shortened lists, amounts, prices."""

from collections.abc import Sequence

from nodeless.model.resources import Resources, format_resources

#: Names shown before "and N others" (Karpenter shows as many).
SHOWN = 5


def count(number: int, singular: str, plural: str | None = None) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def listed(names: Sequence[str], shown: int = SHOWN) -> str:
    """The first names and how many more there are: `a, b and 3 others`."""
    text = ", ".join(names[:shown])
    more = len(names) - shown
    return f"{text} and {count(more, 'other')}" if more > 0 else text


def amounts(resources: Resources) -> str:
    """`cpu 5, memory 1Gi`, by name; `nothing` for none."""
    written = format_resources({name: amount for name, amount in resources.items() if amount})
    return ", ".join(f"{name} {amount}" for name, amount in written.items()) or "nothing"


def price(dollars: float) -> str:
    """A price an hour in US dollars, as finely as AWS lists them: `0.3008 USD/h`."""
    return f"{dollars:.4f} USD/h"
