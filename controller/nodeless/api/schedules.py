"""The form of a disruption budget's schedule: five cron fields, or a word for a usual one."""

import re

from nodeless.model.numbers import whole_number

#: Karpenter's pattern of a schedule. Python takes the fifth power of a long text's length to say no.
SCHEDULE_PATTERN = (
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
)
#: Its five fields, in a text read backwards: each ends as early as another can follow.
_FIVE_FIELDS_BACKWARDS = re.compile(r"\n?(?>.+?\s(?=.)){4}")
#: Characters of a field that are shown.
_SHOWN = 64
#: Larger than every number of a field.
_BEYOND = 100
_WORDS = ("@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = dict(zip(["sun", "mon", "tue", "wed", "thu", "fri", "sat"], range(7), strict=True))
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)


def has_form_of_schedule(text: str) -> bool:
    """Whether a text matches `SCHEDULE_PATTERN`, in time that grows with its length."""
    return text.startswith(_WORDS) or _FIVE_FIELDS_BACKWARDS.match(text[::-1]) is not None


def schedule_defect(text: str) -> str:
    """What keeps a text from being a schedule; empty when it is one."""
    if text.startswith("@"):
        return "" if text in _WORDS else f"is not a schedule: known words are {', '.join(_WORDS)}"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"has {len(fields)} fields; a schedule has five"
    for field, (name, first, last, words) in zip(fields, _FIELDS, strict=True):
        if not all(_fits(part, first, last, words) for part in field.split(",")):
            shown = field if len(field) <= _SHOWN else f"{field[:_SHOWN]}..."
            return f"has no {name} from {first} to {last} in {shown}"
    return ""


def _fits(part: str, first: int, last: int, words: dict[str, int]) -> bool:
    found = re.fullmatch(r"(\*|\?|\w+)(?:-(\w+))?(?:/([0-9]+))?", part)
    if found is None or found[3] == "0":
        return False
    begin, end = found[1], found[2]
    if begin in ("*", "?"):
        return end is None
    low = _number(begin, words)
    high = low if end is None else _number(end, words)
    return low is not None and high is not None and first <= low <= high <= last


def _number(text: str, words: dict[str, int]) -> int | None:
    number = whole_number(text, _BEYOND)
    return words.get(text.lower()) if number is None else number
