"""What was probably meant: the nearest thing that exists, for hints."""

from collections.abc import Iterable
from difflib import get_close_matches

from nodeless.model.labels import ALIASES, WELL_KNOWN

_CUTOFF = 0.75
#: No choice is longer, and comparing takes time with the length.
_LONGEST = 100


def nearest(text: str, choices: Iterable[str]) -> str:
    """The choice that a text looks like: equal but for case and blanks, or close in spelling; else empty."""
    if len(text) > _LONGEST:
        return ""
    options = sorted(choices)
    trimmed = text.strip()
    for option in options:
        if option.casefold() == trimmed.casefold():
            return option
    lowered = {option.lower(): option for option in reversed(options)}
    close = get_close_matches(trimmed.lower(), lowered, n=1, cutoff=_CUTOFF)
    return lowered[close[0]] if close else ""


def did_you_mean(text: str, choices: Iterable[str], otherwise: str = "") -> str:
    """A hint that names the nearest choice, or `otherwise` when nothing is near."""
    found = nearest(text, choices)
    return f"did you mean {found}?" if found and found != text else otherwise


def well_known_counterpart(key: str) -> str:
    """The well-known key that an unknown one was probably meant to be; empty when there is none.

    Either the part after the `/` is that of a well-known key in another domain, or the whole is a near
    miss of one in the same domain.
    """
    if key in WELL_KNOWN or key in ALIASES:
        return ""
    domain, slash, name = key.strip().rpartition("/")
    same_name = [known for known in sorted(WELL_KNOWN) if known.rpartition("/")[2] == name]
    if same_name:
        return nearest(key, same_name) or same_name[0]
    siblings = [known for known in WELL_KNOWN if known.rpartition("/")[0] == domain]
    return nearest(key, siblings) if slash else ""
