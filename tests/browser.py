"""Chromium of this machine, as `.ci/browser` sees to it: what people read is looked at as they see it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

#: By these names distributions install it.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# What is expected comes in milliseconds; on a machine that is busy with other tests, later.
expect.set_options(timeout=60_000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that runs. As long as it does, an event loop runs in this thread, and nothing has its own.

    Raises:
        RuntimeError: there is no Chromium.
    """
    found = os.environ.get("NODELESS_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        raise RuntimeError(
            "no Chromium on this machine; hint: apt-get install chromium, or set NODELESS_CHROMIUM=PATH"
        )
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield started
        finally:
            started.close()
