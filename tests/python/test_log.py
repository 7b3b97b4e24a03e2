"""The engine's messages go through Python's logging, logger `leat`."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys

import pytest

import leat
from leat import _native
from small_datasets import make_pictures

_WARNS = """
import {first}
import leat
leat.Loader({folder!r}, batch_size=4, shuffle=True, epochs=1, cache=leat.Cache(ram="4000TiB")).close()
"""


def said_by(folder, first: str, **environment) -> str:
    program = _WARNS.format(first=first, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment},
                          capture_output=True, text=True, check=True)
    return done.stderr


@pytest.mark.parametrize(("first", "environment", "said"), [
    ("sys", {}, "leat: warning: "),
    ("logging; logging.basicConfig(format='MINE %(name)s: %(message)s')", {}, "MINE leat: "),
    ("logging; logging.getLogger('leat').setLevel('ERROR')", {}, None),
    ("sys", {"SPDLOG_LEVEL": "leat=off"}, None),
])
def test_a_warning_of_the_engine(pictures, first, environment, said):
    lines = [line for line in said_by(pictures, first, **environment).splitlines() if "ram=" in line]
    assert len(lines) == (said is not None)
    assert said is None or lines[0].startswith(said)


def test_it_is_there_when_the_call_returns(pictures, caplog):
    with leat.Loader(pictures, batch_size=4, shuffle=True, cache=leat.Cache(ram="4000TiB")):
        pass
    (record,) = [each for each in caplog.records if "ram=" in each.getMessage()]
    assert record.name == "leat" and record.levelname == "WARNING"


def test_lines_of_a_forked_child_go_to_stderr(capfd):
    child = os.fork()
    if child == 0:
        _native.log_info("of the child")
        os._exit(0)
    os.waitpid(child, 0)
    assert capfd.readouterr().err == "leat: info: of the child\n"


class _Ends(logging.Handler):
    """Ends the program at the first line."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        if len(self.said) == 1:
            raise SystemExit(3)


def test_a_handler_that_ends_the_program_is_heard():
    handler = _Ends()
    logging.getLogger("leat").addHandler(handler)
    try:
        with pytest.raises(SystemExit):
            _native.log_info("first")
        _native.log_info("second")
    finally:
        logging.getLogger("leat").removeHandler(handler)
    assert handler.said == ["first", "second"]


def test_ctrl_c_is_heard_though_a_line_waits_and_the_line_comes_later(tmp_path, caplog):
    make_pictures(tmp_path)
    calls = []

    def bad_once(image):
        calls.append(1)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)  # And at once the engine logs the sample.
            raise leat.Corrupt("not a picture")
        return image

    ops = [leat.ops.DecodeImage(layout="HWC"), leat.ops.Python(bad_once, workers="threads")]
    with leat.Loader(tmp_path, batch_size=4, train=True, ops=ops, on_error="substitute", threads=1) as loader:
        with pytest.raises(KeyboardInterrupt):
            for _ in loader:
                pass
    _native.deliver_log()
    assert any("not a picture" in record.getMessage() for record in caplog.records)
