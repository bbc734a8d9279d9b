"""Take the picture of the page anew."""

import tempfile
from pathlib import Path

from tests.plan_page.picture import PICTURE, write

with tempfile.TemporaryDirectory() as folder:
    write(PICTURE, Path(folder))
