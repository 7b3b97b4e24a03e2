"""A page as a browser shows it: Chromium without a window, driven by Playwright."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

try:
    from playwright import sync_api as playwright
except ImportError:  # Debian has none: tools/test-requirements.txt
    playwright = None

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE = 30  # Seconds until what must come has come.


def without(what: str) -> None:
    """Skips a test for a missing program, which `what` names, and fails it under ./dev
    check --all.

    Debian has no Playwright and the browser has 100 MB, but the README's two commands must work with Debian's
    packages alone, and without a browser; axe-core comes from npm, which no build needs.
    """
    (pytest.fail if os.environ.get("LEAT_NO_SKIP") else pytest.skip)(what)


class Tab:
    """A page of Playwright's, and everything that it complained about or asked the network for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._hear)
        page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def open(self, place: pathlib.Path | str) -> None:
        """Opens a file or a URL. Forgets earlier messages."""
        self.errors.clear()
        self.requests.clear()
        self.page.goto(place if isinstance(place, str) else place.resolve().as_uri())

    def evaluate(self, script: str) -> Any:
        return self.page.evaluate(script)

    def eventually(self, script: str) -> None:
        """Waits until the script is true. Not by wait_for_function(), which a page's CSP may forbid."""
        ends = time.monotonic() + PATIENCE
        while not self.evaluate(script):
            assert time.monotonic() < ends, f"never true: {script}"
            self.wait(0.05)

    def text(self, selector: str) -> str:
        """As it is seen."""
        return self.page.locator(selector).inner_text()

    def click(self, selector: str) -> None:
        self.page.locator(selector).click()

    def choose(self, selector: str, value: str) -> None:
        self.page.locator(selector).select_option(value)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def wait(self, seconds: float) -> None:
        """While the page goes on."""
        self.page.wait_for_timeout(1000 * seconds)

    def show_as(self, width: int, scheme: str = "light", media: str = "screen", motion: str = "no-preference") -> None:
        """As wide as this many pixels, in a light or dark scheme, on screen or in print, with motion or `reduce`d."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media=media, color_scheme=scheme, reduced_motion=motion)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Playwright's, which ends with the block. Skips the test where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if playwright is None:
        without("no Playwright: pip install playwright")
    if program is None:
        without("no Chromium: apt-get install chromium-headless-shell")
    with playwright.sync_playwright() as driver:
        # Tests that run as root, in a container, have no user to be jailed as.
        with driver.chromium.launch(executable_path=program, chromium_sandbox=False) as one:
            yield one


@contextlib.contextmanager
def tab(browser: Any) -> Iterator[Tab]:
    """One that knows nothing of others."""
    with browser.new_context() as context:
        yield Tab(context.new_page())
