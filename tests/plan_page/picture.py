"""The picture of the page in the docs: a screenshot that says, as its description, which figures it shows."""

import re
import struct
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from tests.browser import chromium
from tests.controllers.planning import EXAMPLES, nodeless

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "plan.png"
WIDTH, HEIGHT = 1240, 1180
_SIGNATURE = 8
_KEYWORD = b"Description\0"


def page() -> str:
    """The page of the plan in README.md."""
    return nodeless(EXAMPLES, "--html", "-").stdout


def figures(text: str) -> str:
    """Title and summary of a page as a reader sees them."""
    (title,) = re.findall(r"<h1>(.*?)</h1>", text)
    cards = re.findall(r"<li><b>(.*?)</b> <span>(.*?)</span></li>", text)
    return unescape("; ".join((title, *(f"{value} {name}" for value, name in cards))))


def write(to: Path, folder: Path) -> None:
    """Take the picture.

    Args:
        to: The file of the picture.
        folder: Where the page may be written.
    """
    text = page()
    file = folder / "plan.html"
    file.write_text(text, encoding="utf-8")
    with chromium() as browser:
        shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        shown.goto(file.as_uri())
        to.write_bytes(described(shown.screenshot(), figures(text)))


def described(image: bytes, text: str) -> bytes:
    """A PNG with a description, as a chunk `tEXt` before its data."""
    (header,) = [chunk for name, _, chunk in _chunks(image) if name == b"IHDR"]
    place = _SIGNATURE + len(header)
    body = b"tEXt" + _KEYWORD + text.encode("latin-1")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return image[:place] + chunk + image[place:]


def description(image: bytes) -> str:
    """The description of a PNG; empty when it has none."""
    texts = (data for name, data, _ in _chunks(image) if name == b"tEXt" and data.startswith(_KEYWORD))
    return next(texts, b"").removeprefix(_KEYWORD).decode("latin-1")


def _chunks(image: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Name, data and the whole of each chunk."""
    place = _SIGNATURE
    while place < len(image):
        (size,) = struct.unpack_from(">I", image, place)
        whole = image[place : place + size + 12]
        yield whole[4:8], whole[8:-4], whole
        place += size + 12
