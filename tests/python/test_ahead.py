"""The copy of the next batch, made while the program uses the one before."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

import leat
from leat._batches._ahead import Ahead
from leat.ops import DecodeImage

SECONDS = 20.0


class Engine:
    """Has batches one after another; `look` shows the next one's memory."""

    def __init__(self) -> None:
        self.batches = [[("x", np.full(4, number)), ("text", [str(number)])] for number in range(6)]
        self.at = 0
        self.looks = 0

    def look(self, seconds):
        self.looks += 1
        return [(name, value[:]) for name, value in self.batches[self.at]] if self.at < len(self.batches) else None

    def next(self):
        self.at += 1
        return [(name, value[:]) for name, value in self.batches[self.at - 1]]


class Copier:
    """Notes who copies, and what."""

    def __init__(self) -> None:
        self.copied: list[tuple[str, int]] = []
        self.fails_at: int | None = None
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def preparation(self):
        return lambda: None

    def copy(self, fields):
        self.copied.append((threading.current_thread().name, int(fields[0][1][0])))
        assert self.may_go_on.wait(SECONDS)
        if self.fails_at == int(fields[0][1][0]):
            raise MemoryError
        return [(name, np.array(value) if name == "x" else value) for name, value in fields]

    def hand_over(self, copied):
        return copied


@pytest.fixture
def parts():
    engine, copier = Engine(), Copier()
    ahead = Ahead(copier)
    yield engine, copier, ahead
    copier.may_go_on.set()
    ahead.close()


def wait_until(holds) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_next_batch_is_copied_before_it_is_taken(parts):
    engine, copier, ahead = parts
    ahead.begin(engine.look, lambda fields: fields)
    for number in range(6):
        wait_until(lambda number=number: len(copier.copied) == number + 1)
        taken = ahead.take(engine.next())
        assert taken[0][1].tolist() == [number] * 4 and taken[1] == ("text", [str(number)])
        assert not np.shares_memory(taken[0][1], engine.batches[number][0][1])

    assert copier.copied == [("leat-ahead", number) for number in range(6)]


def test_a_copy_that_is_being_made_is_waited_for(parts):
    engine, copier, ahead = parts
    copier.may_go_on.clear()
    ahead.begin(engine.look, lambda fields: fields)
    wait_until(lambda: copier.copied)
    threading.Timer(0.05, copier.may_go_on.set).start()

    assert ahead.take(engine.next())[0][1].tolist() == [0] * 4


def test_another_batch_than_was_looked_at_gets_no_copy(parts):
    """As after a new state, or where the engine moved it."""
    engine, copier, ahead = parts
    ahead.begin(engine.look, lambda fields: fields)
    wait_until(lambda: copier.copied)
    engine.at = 3

    assert ahead.take(engine.next()) is None and ahead.take(engine.next()) is None
    wait_until(lambda: len(copier.copied) == 2)
    assert ahead.take(engine.next())[0][1].tolist() == [5] * 4


def test_a_copy_made_before_the_batch_before_is_taken_is_kept(parts):
    engine, copier, ahead = parts
    engine.at = 1
    ahead.begin(engine.look, lambda fields: fields)
    wait_until(lambda: copier.copied)
    engine.at = 0

    assert ahead.take(engine.next()) is None
    assert ahead.take(engine.next())[0][1].tolist() == [1] * 4
    wait_until(lambda: len(copier.copied) == 2)
    assert [number for _, number in copier.copied] == [1, 2]


def test_a_look_that_a_new_epoch_overtook_is_forgotten(parts):
    engine, copier, ahead = parts
    looks, may_return = threading.Event(), threading.Event()

    def slow(seconds):
        seen = engine.look(seconds)
        looks.set()
        assert may_return.wait(SECONDS)
        return seen

    ahead.begin(slow, lambda fields: fields)
    assert looks.wait(SECONDS)
    engine.at = 2
    ahead.begin(engine.look, lambda fields: fields)
    may_return.set()
    wait_until(lambda: copier.copied)

    assert copier.copied == [("leat-ahead", 2)]


def test_no_look_is_under_way_after_the_end(parts):
    engine, _, ahead = parts
    looks, may_return = threading.Event(), threading.Event()

    def slow(seconds):
        looks.set()
        assert may_return.wait(SECONDS)
        return None

    ahead.begin(slow, lambda fields: fields)
    assert looks.wait(SECONDS)
    ends = threading.Thread(target=ahead.end)
    ends.start()
    ends.join(0.1)
    assert ends.is_alive()
    may_return.set()
    ends.join(SECONDS)
    assert not ends.is_alive()


def test_where_the_copy_fails_the_program_makes_it_and_meets_the_error(parts):
    engine, copier, ahead = parts
    copier.fails_at = 0
    ahead.begin(engine.look, lambda fields: fields)
    wait_until(lambda: copier.copied)

    assert ahead.take(engine.next()) is None
    wait_until(lambda: len(copier.copied) == 2)
    assert ahead.take(engine.next())[0][1].tolist() == [1] * 4


def test_at_the_end_it_looks_no_more_until_another_epoch_begins(parts):
    engine, copier, ahead = parts
    ahead.begin(engine.look, lambda fields: fields)
    wait_until(lambda: copier.copied)
    ahead.take(engine.next())
    ahead.end()
    time.sleep(0.15)
    looks, copies = engine.looks, len(copier.copied)
    time.sleep(0.15)
    assert (engine.looks, len(copier.copied)) == (looks, copies)

    ahead.begin(engine.look, lambda fields: fields)
    wait_until(lambda: copier.copied[-1][1] == 1)
    assert ahead.take(engine.next())[0][1].tolist() == [1] * 4


def test_batches_of_texts_alone_are_left_alone(parts):
    engine, copier, ahead = parts
    engine.batches = [[("text", ["a"])], [("text", ["b"])]]
    ahead.begin(engine.look, lambda fields: fields)
    wait_until(lambda: engine.looks)

    assert ahead.take(engine.next()) is None and ahead.take(engine.next()) is None
    assert copier.copied == []


def test_closing_ends_the_thread(parts):
    engine, _, ahead = parts
    ahead.begin(engine.look, lambda fields: fields)
    assert any(thread.name == "leat-ahead" for thread in threading.enumerate())
    ahead.close()
    ahead.close()
    assert not any(thread.name == "leat-ahead" for thread in threading.enumerate())


def test_where_no_thread_can_start_the_program_copies_its_batches(parts, monkeypatch):
    engine, copier, ahead = parts

    def refuses(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    ahead.begin(engine.look, lambda fields: fields)

    assert ahead.take(engine.next()) is None and copier.copied == []
    ahead.close()


# --- in a loader --------------------------------------------------------------


@pytest.fixture
def pins(monkeypatch):
    """Pinning is a copy; the names of the threads that made one."""
    made: list[str] = []

    def pin(tensor):
        made.append(threading.current_thread().name)
        return tensor.clone()

    monkeypatch.setattr("leat._batches._outputs.has_accelerator", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    return made


def load(pictures, **options):
    return leat.Loader(pictures, **{"global_batch_size": 8, "train": True, "seed": 3, "ops": [DecodeImage()], "epochs": 4,
                                    "fields": ("image", "index", "key"), "batch": "dict", "output": "torch", "ids": True,
                                    "rank": 0, "world_size": 1, **options})  # fmt: skip


def same(one, other) -> bool:
    return torch.equal(one["image"], other["image"]) and one["key"] == other["key"]


def test_batches_and_states_are_those_of_a_loader_that_copies_nothing(pictures, pins):
    with load(pictures) as plain, load(pictures, pin_memory=True) as pinned:
        kept = []
        for _ in range(3):
            for expected, batch in zip(plain, pinned, strict=True):
                assert same(batch, expected) and plain.state_dict() == pinned.state_dict()
                kept.append((batch, expected["image"].clone()))
        assert all(torch.equal(batch["image"], image) for batch, image in kept)
        assert [e["content_hash"] for e in plain.stats()] == [e["content_hash"] for e in pinned.stats()]



def test_the_next_batch_is_pinned_while_the_program_uses_the_one_before(pictures, pins):
    with load(pictures, pin_memory=True, fields=("image",), ids=False) as pinned:
        ahead = pinned._delivery._ahead
        batches = iter(pinned)
        next(batches)
        for _ in range(6):
            wait_until(lambda: (seen := ahead._next) is not None and seen.is_done)
            by_program = pins.count("MainThread")
            next(batches)
            assert pins.count("MainThread") == by_program
        assert next(batches, None) is None


def test_after_an_error_and_a_new_state_nothing_is_made_until_a_pass_begins(pictures, pins):
    made = []

    def fails_once(image):
        made.append(None)
        if len(made) == 20:
            raise ValueError("the twentieth")
        return image

    with load(pictures, pin_memory=True, ops=[DecodeImage(), leat.ops.Python(fails_once)], threads=1) as loader:
        with pytest.raises(ValueError, match="the twentieth"):
            list(loader)
        before = -1
        while len(made) != before:  # The rest of the epoch was under way.
            before = len(made)
            time.sleep(0.2)
        loader.load_state_dict(loader.state_dict())
        time.sleep(0.2)
        assert len(made) == before
        assert len(list(loader)) == 5


def test_the_programs_own_threads_of_torch_are_left_as_they_were(pictures):
    left, pinned = (
        subprocess.run([sys.executable, "-c", THREADS, str(pictures), pins], capture_output=True, text=True, check=True,
                       env={**os.environ, "OMP_NUM_THREADS": "2"}).stdout.split()
        for pins in ("", "pins")
    )  # fmt: skip
    assert pinned == left


THREADS = """
import sys, threading, torch, leat
from leat._batches import _outputs
_outputs.has_accelerator = lambda: True
torch.Tensor.pin_memory = torch.Tensor.clone
loader = leat.Loader(sys.argv[1], global_batch_size=8, train=True, seed=3, ops=[leat.ops.DecodeImage()], epochs=1,
                     pin_memory=bool(sys.argv[2]), rank=0, world_size=1)
for _ in loader:
    pass
seen = []
thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
thread.start()
thread.join()
print(torch.get_num_threads(), seen[0])
loader.close()
"""


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_ranks_on_a_store_that_throttles_get_the_same(pictures, pins, serve, ranks):
    served = serve(pictures, latency="1ms", faults=["503:20%"], seed=7)
    options = {"global_batch_size": 16, "epochs": 2, "world_size": ranks}
    with contextlib.ExitStack() as stack:
        for rank in range(ranks):
            plain = stack.enter_context(load(pictures, rank=rank, **options))
            pinned = stack.enter_context(load(served.url, rank=rank, pin_memory=True, **served.options, **options))
            for _ in range(2):
                assert all(same(batch, right) for batch, right in zip(pinned, plain, strict=True))
            assert [e["content_hash"] for e in plain.stats()] == [e["content_hash"] for e in pinned.stats()]
    assert served.counters()["faults"] > 0


def test_epochs_that_are_left_and_states_that_are_loaded_bring_no_batch_of_before(pictures, pins):
    with load(pictures, epochs=None) as plain:
        epochs = [list(plain) for _ in range(3)]
    with load(pictures, epochs=None, pin_memory=True) as loader:
        batches = iter(loader)
        assert same(next(batches), epochs[0][0])
        state = loader.state_dict()
        assert same(next(batches), epochs[0][1])
        time.sleep(0.05)  # The third has been copied.
        assert same(loader.peek(), epochs[0][2])
        loader.load_state_dict(state)
        again = iter(loader)
        assert same(next(again), epochs[0][1])
        time.sleep(0.05)
        loader.set_epoch(2)
        assert all(same(batch, right) for batch, right in zip(loader, epochs[2], strict=True))
        loader.set_epoch(1)
        assert all(same(batch, right) for batch, right in zip(loader, epochs[1], strict=True))


def test_loaders_that_are_forgotten_leave_no_thread(pictures, pins):
    loader = load(pictures, pin_memory=True)
    next(iter(loader))
    del loader
    wait_until(lambda: not any(thread.name == "leat-ahead" for thread in threading.enumerate()))
