"""Ends of a process in which threads of the engine are still at work."""

import os
import subprocess
import sys

import pytest

HELD_UP = """
import time

class Lasts:
    def __del__(self, sleep=time.sleep):
        sleep(1)

lasts = Lasts()  # So long Python takes to end, in which threads ask for its lock.
"""

ENDLESS = """
import _thread, sys, threading, time, leat
from leat.ops import Python

entered = threading.Event()

def endless(text):
    entered.set()
    while True:
        time.sleep(0.01)

def interrupt():
    assert entered.wait(30)
    for _ in range(3):
        time.sleep(0.3)
        _thread.interrupt_main()

loader = leat.Loader(sys.argv[1], train=False, batch_size=4, ops=[Python(endless, workers="threads")])
threading.Thread(target=interrupt, daemon=True).start()
try:
    next(iter(loader))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

READS = """
import sys, threading, time, leat

def read():
    while True:
        with leat.Loader(sys.argv[1], train=False, batch_size=4) as loader:
            for _ in loader:
                read_one.set()

read_one = threading.Event()
for _ in range(4):
    threading.Thread(target=read, daemon=True).start()
assert read_one.wait(30)
print("read", flush=True)
"""


@pytest.mark.parametrize(("program", "says"), [(ENDLESS, "interrupted\n"), (READS, "read\n")])
def test_a_thread_at_work_does_not_crash_the_end(program, says, tmp_path):
    (texts := tmp_path / "texts").mkdir()
    for i in range(16):
        (texts / f"{i}.txt").write_text(str(i))

    ended = subprocess.run(
        [sys.executable, "-c", program + HELD_UP, str(texts)], capture_output=True, text=True, timeout=60,
        env={**os.environ, "LEAT_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip

    assert (ended.returncode, ended.stdout) == (0, says), ended.stderr
