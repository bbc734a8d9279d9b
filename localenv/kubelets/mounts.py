"""Paths of a container that has no mount namespace: where its mounts really are.

Pure. Each `mountPath` that occurs as a path in a command, an argument or a variable becomes the volume's
directory.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Mounts:
    """The mounts of one container.

    Args:
        container: its specification.
        volumes: volume name -> directory on this machine.
    """

    def __init__(self, container: Mapping[str, Any], volumes: Mapping[str, Path]) -> None:
        self._places: dict[str, str] = {}
        for mount in container.get("volumeMounts") or []:
            place = volumes[mount["name"]]
            if mount.get("subPath"):
                place = place / mount["subPath"]
            path = mount["mountPath"].rstrip("/")
            if path:
                self._places[path] = str(place)
        longest_first = sorted(self._places, key=len, reverse=True)
        alternatives = "|".join(re.escape(path) for path in longest_first)
        self._pattern = re.compile(rf"(?<![\w.-])(?:{alternatives})(?![\w.-])") if alternatives else None

    def rewrite(self, text: str) -> str:
        """Return the text with every mounted path replaced by its place."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._places[match[0]], text)

    def place(self, mount_path: str) -> Path | None:
        """Return where a mount path is, None if nothing is mounted there."""
        place = self._places.get(mount_path.rstrip("/"))
        return Path(place) if place else None
