"""`python -m localenv.bundled_catalog`: make the catalog that the distribution brings, or check it.

The labels of its types are written beside it, so that nobody has to work them out.

Types and the zones that sell them are moto's records, on-demand prices the price book's, both of
us-east-1; spot prices are left out, for there is no such thing as a dated spot price.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import structlog

from localenv.aws import LocalAws, price_book
from nodeless.cloudprovider.aws import catalog_file
from nodeless.cloudprovider.aws.bundled_types import FILE, index_text
from nodeless.cloudprovider.aws.catalog_fetch import fetch_catalog
from nodeless.cloudprovider.aws.session import AwsSession

REGION = "us-east-1"
BUNDLED = Path(catalog_file.__file__).with_name("catalog.json")
LABELS = BUNDLED.with_name(FILE)


async def generate_text() -> str:
    """The file's text, from the AWS that the environment names."""
    session = AwsSession(REGION)
    try:
        date = price_book.load().date
        log = structlog.get_logger()
        made = await fetch_catalog(session, time.time, log, date, spot=False)
        return catalog_file.write_catalog(made)
    finally:
        await session.close()


def labels_text(catalog: str) -> str:
    """The text of the file with the labels of a catalog's types."""
    return index_text(catalog_file.known_types(catalog_file.read_catalog(catalog)))


def main() -> int:
    """Start a local AWS, ask it, and write or compare."""
    parser = argparse.ArgumentParser(prog="python -m localenv.bundled_catalog", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit code 1 on a difference")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, LocalAws.start(Path(folder)) as aws:
        os.environ.update(aws.environment())
        text = asyncio.run(generate_text())
    if not arguments.check:
        BUNDLED.write_text(text)
        LABELS.write_text(labels_text(text))
        return 0
    return 0 if BUNDLED.read_text() == text else 1


if __name__ == "__main__":
    sys.exit(main())
