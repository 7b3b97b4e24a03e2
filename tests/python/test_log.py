"""The engine's messages go through Python's logging, logger `leat`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import leat
from leat import _native

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
