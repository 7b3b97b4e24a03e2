"""How far a command of Python's is, on a terminal and in a log."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
import time

import pytest

import leat
import leat._shards
from leat import _commands, _progress
from leat._progress import Progress
from small_datasets import write


class Terminal:
    """The words that were written to a terminal of its own."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        self.err = os.fdopen(theirs, "w")

    def text(self) -> str:
        os.set_blocking(self._ours, False)
        found = b""
        try:
            while part := os.read(self._ours, 1 << 16):
                found += part
        except OSError:  # Nothing more.
            pass
        return found.decode()


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    yield terminal
    terminal.err.close()
    os.close(terminal._ours)


def test_pack_tells_of_the_catalogue_that_it_reads_first(monkeypatch, tmp_path, capfd):
    write(tmp_path / "in/a.bin", b"bytes")
    monkeypatch.setattr(_progress, "_AFTER", 0.0)
    monkeypatch.setattr(_progress, "_LEAST_AFTER", 0.05)
    monkeypatch.setattr(_progress, "_LOG_EVERY", 0.05)

    def lists(*_args, **_options):
        time.sleep(0.5)
        raise leat.NotFound("nothing there")

    monkeypatch.setattr(leat._shards, "plan_of", lists)
    assert _commands.run(["leat._shards", "pack", str(tmp_path / "in"), str(tmp_path / "out")]) != 0
    assert "leat: reading the catalogue, 0 s" in capfd.readouterr().err


def worked(err, seconds: float = 1.2) -> None:
    with Progress("packing", "shards", err=err, after=0.05) as progress:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            progress.tell(12, 40)
            time.sleep(0.05)


def test_rich_draws_where_it_is_installed(terminal):
    pytest.importorskip("rich", reason="rich is not installed: pip install rich")
    worked(terminal.err)
    text = terminal.text()
    assert "packing" in text and "12/40" in text and "━" in text


def test_tqdm_draws_where_rich_is_not(terminal, monkeypatch):
    pytest.importorskip("tqdm", reason="tqdm is not installed: pip install tqdm")
    monkeypatch.setitem(sys.modules, "rich.console", None)
    worked(terminal.err)
    assert re.search(r"packing: +30%\|.*\| 12/40", terminal.text())


def test_a_line_is_written_where_neither_is(terminal, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    worked(terminal.err)
    text = terminal.text()
    assert "leat: packing: 12 of 40 shards, " in text
    assert text.endswith("\r\x1b[K")  # Nothing is left.


def test_a_log_has_whole_lines(monkeypatch):
    monkeypatch.setattr(_progress, "_LOG_EVERY", 0.1)
    log = io.StringIO()
    worked(log, seconds=0.5)
    lines = log.getvalue().splitlines()
    assert len(lines) >= 2 and all(re.fullmatch(r"leat: packing: 12 of 40 shards, \d+ s", line) for line in lines)


def test_without_a_count_the_time_is_told(monkeypatch):
    monkeypatch.setattr(_progress, "_LOG_EVERY", 0.1)
    log = io.StringIO()
    with Progress("reading catalogues", err=log, after=0.05):
        time.sleep(0.4)
    assert log.getvalue().startswith("leat: reading catalogues, 0 s\n")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_short_work_tells_nothing(is_terminal, terminal):
    log = io.StringIO()
    with Progress("packing", "shards", err=terminal.err if is_terminal else log) as progress:
        progress.tell(40, 40)
    assert terminal.text() == "" and log.getvalue() == ""


def test_an_error_ends_it(terminal):
    with pytest.raises(ZeroDivisionError), Progress("packing", err=terminal.err, after=0.01):
        time.sleep(0.3)
        1 / 0  # noqa: B018
    assert "\x1b" in terminal.text()
