"""`leat top` on a terminal: it follows the agent, and gives the terminal back."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator

import sample_node


class Terminal:
    """A program on a terminal of 24 rows by 100 columns, and all that it wrote."""

    def __init__(self, *command: str) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self._ours = ours
        self.written = ""

    def read_until(self, text: str) -> None:
        ends = time.monotonic() + 30
        while text not in self.written:
            assert time.monotonic() < ends, f"{text!r} never came: {self.written[-3000:]!r}"
            if select.select([self._ours], [], [], 0.5)[0]:
                self.written += os.read(self._ours, 1 << 16).decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextlib.contextmanager
def top(*words: str) -> Iterator[Terminal]:
    terminal = Terminal("leat", "top", *words)
    try:
        yield terminal
    finally:
        terminal.close()


def test_it_follows_and_gives_the_terminal_back():
    with sample_node.serve(5) as node, top("--url", node.url) as terminal:
        terminal.read_until("\x1b[?1049h\x1b[?25l\x1b[H")
        terminal.read_until("0.0 s  clip  ram 4 GiB -> 8 GiB")
        node.tell("at 131")
        terminal.read_until("-1.0 s  detector  threads 4 -> 6")
        screens = terminal.written.split("\x1b[H")[1:-1]
        assert all(screen.count("\n") < 24 for screen in screens), "it would scroll"

        terminal.process.send_signal(signal.SIGINT)

        terminal.read_until("\x1b[?25h\x1b[?1049l")
        assert terminal.process.wait(timeout=30) == 0


def test_it_says_when_the_agent_has_gone():
    with contextlib.ExitStack() as ends:
        with sample_node.serve(1) as node:
            terminal = ends.enter_context(top("--url", node.url))
            terminal.read_until("leat top  node-7")
        terminal.read_until("The agent does not answer: what follows is old.")
        terminal.read_until("leat top  node-7")
        assert terminal.process.poll() is None


def test_it_shows_the_node_once_where_that_is_asked_for():
    with sample_node.serve(2) as node:
        with top("--url", node.url, "--once") as terminal:
            terminal.read_until("DECISIONS")
            assert terminal.process.wait(timeout=30) == 0
            assert "\x1b" not in terminal.written
        printed = subprocess.run(["leat", "top", "--url", node.url, "--json"], capture_output=True, text=True, check=True)
        assert json.loads(printed.stdout) == node.view()
