"""The annotation `nodeless.dev/lost-work` of pods: how much work an interruption loses, as `10h`."""

from nodeless.api.times import parse_life_span

#: Seconds of work that one interruption may lose; more than a year is a slip of the finger.
LONGEST = 365 * 24 * 3600
#: What to write instead of a value that is none.
HINT = "write hours of work such as 10h, 8760h at most"


def read_lost_work(text: str) -> int | None:
    """Seconds of work that a value says; None: it is none that counts."""
    try:
        span = parse_life_span(text)
    except ValueError:
        return None
    return span if span is not None and span <= LONGEST else None
