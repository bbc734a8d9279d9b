"""Decisions written into a folder, so that they can be repeated: `nodeless replay`.

One file for each pass, the newest kept. A folder that cannot be written is told once and never
keeps a pass from its work.
"""

import gzip
from pathlib import Path

from nodeless import __version__
from nodeless.explain.decisions import Situation, write
from nodeless.model.plan import Plan
from nodeless.operator.logs import logger

_SUFFIX = ".json.gz"


class DecisionFiles:
    """Keeps the last decisions in a folder."""

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep
        self._said = ""
        self._log = logger("decisions")

    def record(self, situation: Situation, plan: Plan) -> Path | None:
        """Write one decision and drop the oldest; the file, or None when it could not be written."""
        name = f"decision-{situation.now:017.6f}{_SUFFIX}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / name
            partial = path.with_suffix(".partial")
            partial.write_bytes(gzip.compress(write(situation, __version__, plan), 5, mtime=0))
            partial.replace(path)
            for old in sorted(self._folder.glob(f"decision-*{_SUFFIX}"))[: -self._keep]:
                old.unlink(missing_ok=True)
        except OSError as error:
            if str(error) != self._said:
                self._said = str(error)
                self._log.error(f"decisions cannot be recorded: {error}; hint: check NODELESS_DECISIONS")
            return None
        return path
