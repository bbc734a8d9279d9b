"""The picture of the page in the docs shows the plan that README.md prints."""

import struct
import zlib

from tests.plan_page.picture import HEIGHT, PICTURE, WIDTH, described, description, figures, page


def test_the_picture_has_the_figures_of_the_plan() -> None:
    """Where the plan or the page has changed on purpose: `python -m tests.plan_page`, and look at it."""
    assert description(PICTURE.read_bytes()) == figures(page())


def test_the_picture_has_the_size_in_which_it_is_taken() -> None:
    assert struct.unpack_from(">II", PICTURE.read_bytes(), 16) == (WIDTH, HEIGHT)


def test_a_description_is_read_as_it_was_written() -> None:
    header = b"IHDR" + bytes(13)
    image = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    assert description(image) == ""
    assert description(described(image, "6 new nodes")) == "6 new nodes"
