"""The commands of a page of the documentation, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(page: Path, heading: str) -> list[str]:
    """The commands below a heading, each without its prompt and on one line.

    Raises:
        ValueError: The page has no such heading, or no command below it.
    """
    _, found, rest = page.read_text().partition(f"\n{heading}\n")
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    lines = "".join(_BLOCK.findall(section)).replace("\\\n", " ").splitlines()
    made = [re.sub(r" +", " ", line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]
    if not found or not made:
        raise ValueError(f"{page}: no commands below {heading!r}")
    return made
