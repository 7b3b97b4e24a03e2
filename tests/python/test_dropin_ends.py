"""However iterating leat.torch.DataLoader ends, its threads end within a second."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

from dropin_datasets import SECOND, Broken, Slow, fetchers, none_left
from leat.torch import DataLoader
from small_datasets import run_python


pytestmark = pytest.mark.usefixtures("no_fetcher_is_left")


@pytest.mark.parametrize("workers", [0, 2])
def test_the_end_of_an_epoch_ends_the_threads(workers):
    loader = DataLoader(Slow(40, 0.005), batch_size=8, num_workers=workers)
    batches = iter(loader)
    next(batches)
    assert fetchers()
    assert len(list(batches)) == 4
    assert none_left()  # Though loader and iterator live.
    assert list(batches) == []
    assert len(list(loader)) == 5


def test_persistent_workers_stay_until_the_loader_goes():
    loader = DataLoader(Slow(40, 0.005), batch_size=8, num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 5
    stayed = {t.ident for t in fetchers()}
    assert stayed
    assert len(list(loader)) == 5
    assert stayed <= {t.ident for t in fetchers()}
    del loader
    assert none_left()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_break_ends_the_threads(workers):
    for _ in DataLoader(Slow(400, 0.005), batch_size=8, num_workers=workers):
        assert fetchers()
        break
    assert none_left()


def test_deleting_ends_the_threads_and_what_waits_is_not_fetched():
    data = Slow(4000, 0.02)
    batches = iter(DataLoader(data, batch_size=100, num_workers=2, prefetch_factor=20, threads=4))
    next(batches)
    del batches
    assert none_left()
    assert len(data.fetched) < 3000


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_that_is_not_caught_ends_the_threads(workers):
    def train():
        for _ in DataLoader(Slow(40, 0.002, fails=[9]), batch_size=8, num_workers=workers):
            pass

    with pytest.raises(Broken):
        train()
    assert none_left()


@pytest.mark.parametrize("fails", ["worker_init_fn", "collate_fn", "item"])
def test_an_error_that_is_caught_keeps_no_thread_of_an_iterator_that_is_gone(fails):
    def fail(_):
        raise Broken(1, "as asked")

    arguments = {} if fails == "item" else {fails: fail}
    data = Slow(40, 0.002, fails=range(4) if fails == "item" else ())
    batches = iter(DataLoader(data, batch_size=4, num_workers=1, **arguments))
    with pytest.raises(Broken):
        next(batches)
    assert fetchers()
    del batches
    assert none_left()


def test_iterators_of_one_loader_do_not_disturb_each_other():
    loader = DataLoader(Slow(12, 0.002), batch_size=3, num_workers=2)
    pairs = [(a[1].tolist(), b[1].tolist()) for a in loader for b in loader]
    expected = [list(range(i, i + 3)) for i in range(0, 12, 3)]
    assert pairs == [(a, b) for a in expected for b in expected]


def test_a_batch_that_was_abandoned_does_not_come_into_the_next_epoch():
    go_on = threading.Event()
    data = Slow(40, 0.001, stalls={5: go_on})
    loader = DataLoader(data, batch_size=4, num_workers=2, persistent_workers=True)
    next(iter(loader))
    threading.Timer(0.2, go_on.set).start()
    assert [b[1].tolist() for b in loader] == [list(range(i, i + 4)) for i in range(0, 40, 4)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_closed_iterator_says_so_and_the_loader_goes_on(workers):
    loader = DataLoader(Slow(40, 0.003), batch_size=8, num_workers=workers,
                        persistent_workers=workers > 0)  # fmt: skip
    batches = iter(loader)
    next(batches)
    batches.close()
    assert none_left()
    with pytest.raises(RuntimeError, match="closed before its epoch was over"):
        list(batches)
    assert len(list(loader)) == 5


def test_closing_from_another_thread_ends_a_wait():
    go_on = threading.Event()
    batches = iter(DataLoader(Slow(8, 0, stalls={0: go_on}), batch_size=4, num_workers=1))
    threading.Timer(0.2, batches.close).start()
    with pytest.raises(RuntimeError, match="closed"):
        next(batches)
    go_on.set()


@pytest.mark.parametrize("workers", [0, 2])
def test_after_ctrl_c_the_next_batches_are_right(workers):
    go_on = threading.Event()
    data = Slow(40, 0.002, stalls={10: go_on})
    batches = iter(DataLoader(data, batch_size=8, num_workers=workers))
    assert next(batches)[1].tolist() == list(range(8))
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    threading.Timer(0.2, go_on.set).start()
    rest = [batch[1].tolist() for batch in batches]
    # Without workers torch has drawn the batch and lost it, too.
    assert rest == [list(range(i, i + 8)) for i in range(8 if workers else 16, 40, 8)]


def test_torchs_own_threads_are_left_as_they_were():
    before = torch.get_num_threads()
    list(DataLoader(Slow(80, 0.002), batch_size=16, num_workers=2))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert [before, before] == [torch.get_num_threads(), seen[0]]


def test_a_fork_is_told():
    done = run_python("""
import os, sys, torch
sys.path.insert(0, sys.argv[1])
from dropin_datasets import Slow
from leat.torch import DataLoader
loader = DataLoader(Slow(40, 0.005), batch_size=4, num_workers=2)
batches = iter(loader)
next(batches)
if (pid := os.fork()) == 0:
    try:
        list(batches)
    except RuntimeError as error:
        assert "fork" in str(error), error
        assert len(list(loader)) == 10
        os._exit(7)
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert len(list(batches)) == 9
print("fine")
""", HERE, timeout=80)
    assert done.stdout == "fine\n", done.stderr


HERE = __file__.rpartition("/")[0]

EXIT = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from dropin_datasets import Slow
from leat.torch import DataLoader
stall = threading.Event()
data = Slow(40, 0.005, stalls={30: stall} if sys.argv[2] == "stalled" else None)
loader = DataLoader(data, batch_size=4, num_workers=4, persistent_workers=True)
batches = iter(loader)
next(batches)
time.sleep(0.1)
print(time.time(), flush=True)
if sys.argv[2] == "raise":
    raise RuntimeError("as training scripts do")
"""


@pytest.mark.parametrize("how", ["plain", "raise", "stalled"])
def test_the_interpreter_exits(how):
    done = run_python(EXIT, HERE, how, timeout=80)
    ended = time.time()
    if how == "raise":
        assert done.returncode == 1 and "as training scripts do" in done.stderr
    else:
        assert (done.returncode, done.stderr) == (0, "")
    assert ended - float(done.stdout) < SECOND


COMPUTES = """
import time, torch
from leat.torch import DataLoader

class Products(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        # One call of C++ after another, each without the interpreter's lock.
        ends = time.thread_time() + 1.5
        while index >= 4 and time.thread_time() < ends:
            torch.mm(a, a)
        return index

torch.set_num_threads(1)
a = torch.ones(1200, 1200)
batches = iter(DataLoader(Products(), batch_size=4, num_workers=2, persistent_workers=True))
next(batches)
time.sleep(0.2)
"""


def test_items_that_compute_are_ended_before_the_interpreter_exits():
    """Else C++ aborts the process: a thread comes back from it to no interpreter."""
    done = run_python(COMPUTES, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")


INTERRUPT = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from dropin_datasets import Slow
from leat.torch import DataLoader
data = Slow(40, 0.005, stalls={5: threading.Event()})
batches = iter(DataLoader(data, batch_size=4, num_workers=int(sys.argv[2])))
next(batches)
try:
    print("ready", flush=True)
    next(batches)
finally:
    print(time.time(), flush=True)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_ends_a_wait(workers):
    with subprocess.Popen([sys.executable, "-c", INTERRUPT, HERE, str(workers)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.3)
            sent = time.time()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=80)
        finally:
            process.kill()
    assert float(out) - sent < SECOND and time.time() - sent < 3 * SECOND
    assert "KeyboardInterrupt" in err
