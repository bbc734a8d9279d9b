"""Keys as a person presses them on a terminal, one by one and without echo; Unix alone.

Rich draws, and reads no keys. A framework for terminals, as Textual, does both; for one list and one page
beside it, it would be the largest dependency of the command line, and of the controller's image.
"""

import codecs
import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Seconds in which the rest of a key's escape sequence comes, over a slow line too.
_REST = 0.1
_ESCAPE = "\x1b"
#: What terminals send, by name; applications and terminals differ in `[` and `O`.
_SEQUENCES = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "1~": "home",
    "7~": "home",
    "4~": "end",
    "8~": "end",
    "5~": "page up",
    "6~": "page down",
    "3~": "delete",
}
_PLAIN = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x15": "clear", "\t": "tab"}


class Keyboard:
    """The keys of the terminal on stdin, and a way to be woken from waiting for them."""

    def __init__(self, file: int | None) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._woken, False)

    def wake(self) -> None:
        """End the wait of `read`; from any thread, or a handler of signals."""
        # A full pipe wakes as well.
        with suppress(BlockingIOError):
            os.write(self._waker, b"w")

    def read(self) -> list[str]:
        """Wait for keys, or until woken: then there are none.

        Returns:
            Characters, or names as `up`, `enter`, `escape`; what is no known key is left out. `end of input`
            where the terminal is gone.
        """
        watched = [self._woken] if self._file is None else [self._woken, self._file]
        ready, _, _ = select.select(watched, [], [])
        if self._woken in ready:
            os.read(self._woken, 4096)
        if self._file is None or self._file not in ready:
            return []
        content = self._more(self._file)
        if not content:
            self._file = None
            return ["end of input"]
        while content.endswith((_ESCAPE, f"{_ESCAPE}[", f"{_ESCAPE}O")) and _has_more(self._file):
            content += self._more(self._file)
        return list(keys_of(content))

    def close(self) -> None:
        """Give back what it holds."""
        os.close(self._woken)
        os.close(self._waker)

    def _more(self, file: int) -> str:
        try:
            return self._decoder.decode(os.read(file, 1024))
        except OSError:  # a terminal that is gone
            return ""


def _has_more(file: int) -> bool:
    """Whether more comes so soon that it is of the same key."""
    return bool(select.select([file], [], [], _REST)[0])


def keys_of(content: str) -> Iterator[str]:
    """The keys of what a terminal has sent."""
    at = 0
    while at < len(content):
        character = content[at]
        at += 1
        if character != _ESCAPE:
            if character in _PLAIN or character.isprintable():
                yield _PLAIN.get(character, character)
            continue
        if content[at : at + 1] not in ("[", "O"):
            yield "escape"
            continue
        end = at + 1
        while end < len(content) and not ("@" <= content[end] <= "~"):
            end += 1
        name = _SEQUENCES.get(content[at + 1 : end + 1])
        at = end + 1
        if name is not None:
            yield name


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """The keyboard, while keys are not echoed; without keys where stdin is no terminal."""
    file = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
    before = termios.tcgetattr(file) if file is not None else None
    keys = Keyboard(file)
    try:
        if file is not None:
            tty.setcbreak(file)
        yield keys
    finally:
        if file is not None and before is not None:
            termios.tcsetattr(file, termios.TCSADRAIN, before)
        keys.close()
