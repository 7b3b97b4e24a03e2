"""A page as a browser shows it: Chromium without a window, driven over a pipe.

Speaks the DevTools protocol on file descriptors 3 and 4 (--remote-debugging-pipe),
so that no client library is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# Their numbers, and what they type.
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "ArrowRight": (39, ""), "ArrowLeft": (37, ""), "ArrowDown": (40, "")}
INSTALL = "no Chromium: apt-get install chromium-headless-shell"


def find() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab, and everything that it complained about or asked the network for."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._sent = 0
        self._rest = b""
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.loads = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._sent:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            block = os.read(self._from, 1 << 16)
            assert block, "Chromium ended"
            self._rest += block
        one, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(one)
        self._hear(message.get("method", ""), message.get("params", {}))
        return message

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(json.dumps(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loads += 1

    def open(self, place: pathlib.Path | str) -> None:
        """A file or a URL."""
        loads = self.loads
        self.call("Page.navigate", url=place if isinstance(place, str) else place.resolve().as_uri())
        while self.loads == loads:
            self._next()

    def evaluate(self, script: str) -> Any:
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def eventually(self, script: str, seconds: float = 30) -> None:
        """Waits until the script is true."""
        ends = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < ends, f"never true: {script}"
            time.sleep(0.05)

    def press(self, key: str, modifiers: int = 0) -> None:
        """A key by its name, such as Tab, Enter, ArrowRight or " "; 8 with Shift."""
        code, text = KEYS[key]
        named = {"key": key, "code": key if key != " " else "Space", "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def show_as(self, width: int, scheme: str = "light", media: str = "screen", motion: str = "no-preference") -> None:
        """As wide as so many pixels, in a light or dark scheme, on screen or in print, with motion or `reduce`d."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme},
                            {"name": "prefers-reduced-motion", "value": motion}])  # fmt: skip


@contextlib.contextmanager
def page(profile: pathlib.Path) -> Iterator[Page]:
    """A tab of a browser that keeps its files in `profile` and ends with the block."""
    program = find()
    assert program is not None, INSTALL
    to_browser, ours = os.pipe()
    theirs, from_browser = os.pipe()
    # 3 and 4 in the browser, whatever our numbers are.
    script = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--remote-debugging-pipe", f"--user-data-dir={profile}"]  # fmt: skip
    browser = subprocess.Popen(["bash", "-c", script, program, *flags], pass_fds=(to_browser, from_browser),
                               stderr=subprocess.DEVNULL)  # fmt: skip
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Page(ours, theirs)
    finally:
        os.close(ours)
        os.close(theirs)
        ends = time.monotonic() + 10
        while browser.poll() is None and time.monotonic() < ends:
            time.sleep(0.05)
        browser.kill()
        browser.wait()
