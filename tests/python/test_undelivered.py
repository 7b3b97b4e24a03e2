"""Batches that are taken of the engine and do not reach the program, and what is kept of the exceptions."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import leat
from leat import _functions
from leat.ops import DecodeImage, Python
from small_datasets import make_pictures

DECODE = [DecodeImage(layout="HWC")]


def load(folder, **options):
    given = {"global_batch_size": 4, "shuffle": True, "batch": "dict", "output": "numpy", "ids": True, "ops": DECODE}
    return leat.Loader(folder, **{**given, **options})


def ids_of(batches):
    return [int(i) for batch in batches for i in batch["index"]]


class _AlarmError(Exception):
    pass


def test_a_handler_that_raises_in_next_loses_no_batch(pictures):
    def ring(_signal, _frame):
        raise _AlarmError

    def slow(image):
        time.sleep(0.002)
        return image

    before = signal.signal(signal.SIGUSR1, ring)
    try:
        for number in range(50):
            got = 0
            with load(pictures, drop_last=False, threads=1, ops=[*DECODE, Python(slow, workers="threads")]) as loader:
                kill = threading.Timer(0.01 + 0.0007 * number, os.kill, (os.getpid(), signal.SIGUSR1))
                try:
                    kill.start()
                    for _ in loader:
                        got += 4  # No call, within which the handler might run.
                    kill.join()
                except _AlarmError:
                    pass
                kill.join()
                state = loader.state_dict()
            assert (state["position"], state["epoch"]) == ((got, 0) if got < 60 else (0, 1)), number
    finally:
        signal.signal(signal.SIGUSR1, before)


def broken_at(third):
    """Options whose function of batches fails at the batch of these samples, as often as it is asked to."""
    fails = [True]

    def check(batch):
        if fails[0] and list(batch["index"]) == third:
            raise ValueError("this batch is broken")
        return batch

    def collate(samples):
        return check({"index": [sample["index"] for sample in samples]})

    return fails, {"collate": {"collate": collate}, "per batch": {"ops": [*DECODE, Python(check, per="batch")]}}


@pytest.mark.parametrize("where", ["collate", "per batch"])
def test_a_batch_that_cannot_be_made_is_not_lost(pictures, where):
    with load(pictures) as loader:
        right = ids_of(loader)
    fails, options = broken_at(right[8:12])
    with load(pictures, **options[where]) as loader:
        batches = iter(loader)
        assert ids_of([next(batches), next(batches)]) == right[:8]
        for call in (lambda: next(batches), lambda: next(batches), loader.peek):
            with pytest.raises(ValueError, match="this batch is broken"):
                call()
            assert loader.state_dict()["position"] == 8
        fails[0] = False
        with pytest.raises(ValueError, match="this batch is broken"):
            next(batches)  # Until another pass begins.
        loader.load_state_dict(loader.state_dict())
        assert ids_of(loader) == right[8:]


def test_a_batch_whose_making_is_interrupted_is_not_lost(pictures):
    with load(pictures) as loader:
        right = ids_of(loader)

    def collate(samples):
        if not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        return {"index": [sample["index"] for sample in samples]}

    stopped: list[bool] = []
    with load(pictures, collate=collate) as loader:
        batches = iter(loader)
        with pytest.raises(KeyboardInterrupt):
            next(batches)
        with pytest.raises(leat.InvalidArgument, match="at position 0 of epoch 0 was interrupted"):
            next(batches)
        assert ids_of(loader) == right


def test_a_second_interrupt_while_the_first_is_heeded_loses_no_batch(pictures, monkeypatch):
    with load(pictures) as loader:
        right = ids_of(loader)
    to_come: list[str] = []

    def interrupt(where: str) -> None:
        if where in to_come:
            to_come.remove(where)
            raise KeyboardInterrupt(where)

    def collate(samples):
        interrupt("first")
        return {"index": [sample["index"] for sample in samples]}

    with load(pictures, collate=collate) as loader:
        monkeypatch.setattr(loader._delivery, "end", lambda: interrupt("second"))
        batches = iter(loader)
        assert ids_of([next(batches)]) == right[:4]
        to_come += ["first", "second"]
        with pytest.raises(KeyboardInterrupt, match="second"):
            next(batches)
        assert loader.state_dict()["position"] == 4
        loader.load_state_dict(loader.state_dict())
        assert ids_of(loader) == right[4:]


def test_functions_of_batches_draw_by_the_batch_however_many_threads_take_them(pictures):
    def draw(batch, rng):
        return {**batch, "drawn": np.full(len(batch["index"]), rng.integers(1 << 40))}

    def drawn_by(threads: int) -> dict[int, int]:
        told: list[tuple[int, int]] = []

        def take() -> None:
            for batch in batches:
                told.extend(zip(batch["index"].tolist(), batch["drawn"].tolist()))

        with load(pictures, global_batch_size=1, ops=[*DECODE, Python(draw, per="batch")]) as loader:
            batches = iter(loader)
            takers = [threading.Thread(target=take) for _ in range(threads)]
            for taker in takers:
                taker.start()
            for taker in takers:
                taker.join()
        assert len(told) == 60
        return dict(told)

    alone = drawn_by(1)
    assert len(set(alone.values())) == 60
    for _ in range(3):
        assert drawn_by(4) == alone


class _ToldTwiceError(Exception):
    """Keeps other arguments than it takes."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class _NeverCopiedError(Exception):
    def __reduce_ex__(self, _protocol):
        raise TypeError("no copies")

    def __new__(cls, *args):
        if args != ("the first",):
            raise TypeError("no copies")
        made = super().__new__(cls, *args)
        return made

    def __init__(self, *_args) -> None:
        self.args = ("the second",)


@pytest.mark.parametrize("error", [
    ValueError("text"), KeyError("key"), OSError(2, "no file", "name"), _ToldTwiceError(5),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "why"), leat.Corrupt("bad"), SystemExit(3),
])  # fmt: skip
def test_a_copy_of_an_exception_says_the_same(error):
    try:
        raise error from RuntimeError("the cause")
    except BaseException as raised:
        made, kept = _functions.to_raise_and_to_keep(raised)
        assert kept is raised and made is not raised
        assert type(made) is type(error) and made.args == error.args and str(made) == str(error)
        assert made.__cause__ is error.__cause__ and made.__traceback__ is raised.__traceback__
        assert made.__dict__ == error.__dict__


def test_notes_of_a_copy_are_its_own():
    if not hasattr(ValueError, "add_note"):
        pytest.skip("Python before 3.11 has no notes")
    error = ValueError("text")
    error.add_note("its own")
    made = _functions.copy_of(error)
    made.add_note("of the copy")
    assert error.__notes__ == ["its own"] and made.__notes__ == ["its own", "of the copy"]


def test_an_exception_that_cannot_be_copied_is_raised_once():
    error = _NeverCopiedError("the first")
    made, kept = _functions.to_raise_and_to_keep(error)
    assert made is error and type(kept) is leat.Error and str(kept) == "_NeverCopiedError: the second"
    assert _functions.to_raise_and_to_keep(kept)[1] is kept


def threads_of_the_engine() -> int:
    return len(os.listdir("/proc/self/task"))


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("where", ["sample", "batch"])
def test_a_caught_exception_keeps_neither_the_loader_nor_the_frames_of_the_program(tmp_path, where, closes):
    make_pictures(tmp_path, 12)

    def fails(_value):
        raise ValueError("as in a notebook")

    def attempt() -> tuple[weakref.ref, weakref.ref]:
        model = threading.Event()  # Something of the program's.
        loader = load(tmp_path, ops=[*DECODE, Python(fails, per=where)])
        try:
            for _ in loader:
                pass
        except ValueError as error:
            assert "as in a notebook" in str(error)
        if closes:
            loader.close()
        return weakref.ref(loader), weakref.ref(model)

    attempt()  # Threads that stay begin with the first.
    gc.collect()
    before = threads_of_the_engine()
    for _ in range(3):
        loader, model = attempt()
        gc.collect()
        assert loader() is None and model() is None
    deadline = time.monotonic() + 10
    while threads_of_the_engine() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threads_of_the_engine() <= before


NEVER_RETURNS = """
import os, sys, time, leat

def hangs(data):
    print("calls", flush=True)
    time.sleep(1000)

loader = leat.Loader(sys.argv[1], batch_size=4, train=True, ops=[leat.ops.Python(hangs, workers="threads")], threads=1)
try:
    next(iter(loader))
except KeyboardInterrupt:
    print("heard", flush=True)
began = time.monotonic()
try:
    loader.close()
except KeyboardInterrupt:
    print("left", flush=True)
loader.close()  # Does not wait once more.
del loader
print("on", time.monotonic() - began < 60, flush=True)
os._exit(0)
"""


def test_ctrl_c_leaves_a_function_that_does_not_return(pictures):
    with subprocess.Popen([sys.executable, "-c", NEVER_RETURNS, str(pictures)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:  # fmt: skip
        assert program.stdout.readline() == "calls\n"
        time.sleep(0.2)
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "heard\n"
        assert "hangs" in next(line for line in program.stderr if "close() waits" in line)
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "left\n"
        assert program.stdout.readline() == "on True\n"
