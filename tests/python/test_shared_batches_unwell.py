"""Processes that share batches, where one of them or the node is unwell: nobody hangs, and every batch is right."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import mmap
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest

import leat
from leat._job import _giver, _shared_batch, _taker
from file_store import FileStore
from sharing_jobs import G, N, OPS, USUAL, decoded, equal, expected_of, folder, job  # noqa: F401


@pytest.fixture
def impatient(job, monkeypatch):
    monkeypatch.setattr(_taker, "PATIENCE", 0.3)


def fails_with(error: BaseException):
    def fails(*args, **named):
        raise error

    return fails


# --- memory -------------------------------------------------------------------


@pytest.mark.parametrize(("place", "name", "error"), [
    (os, "memfd_create", OSError(errno.EMFILE, "too many open files")),
    (os, "pwrite", OSError(errno.ENOSPC, "no space left on device")),
    (_shared_batch.json, "dumps", MemoryError()),
])  # fmt: skip
def test_a_node_without_memory_for_batches_trains_on(folder, job, impatient, monkeypatch, caplog, place, name, error):
    [epoch] = expected_of(folder)
    giver, taker = job(2)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, fails_with(error))
        iterators = [iter(giver), iter(taker)]
        steps = [[next(each) for each in iterators] for _ in epoch]

    assert all(equal(batch, right) for step, right in zip(steps, epoch) for batch in step)
    assert decoded(taker) == N
    assert caplog.text.count("a batch cannot be shared with the other processes") == 1


def test_a_process_that_cannot_map_a_batch_makes_its_own(folder, job, monkeypatch, caplog):
    monkeypatch.setattr(mmap, "mmap", fails_with(OSError(errno.ENOMEM, "cannot allocate memory")))
    [epoch] = expected_of(folder)
    loaders = job(2)

    steps = list(zip(*loaders))

    assert len(steps) == len(epoch) and all(equal(batch, right) for step, right in zip(steps, epoch) for batch in step)
    assert decoded(loaders[1]) == N and "its batch cannot be mapped" in caplog.text


# --- one of them ends, fails, or is slow --------------------------------------


def broken(image):
    if image[0, 0, 0] == broken.at:
        raise ValueError("this picture is broken")
    return image


def test_a_function_that_raises_raises_in_all_and_names_the_key(folder, job, impatient):
    with leat.Loader(folder, batch="dict", ops=[leat.ops.DecodeImage()], fields=("image", "key"), batch_size=1, shuffle=True,
                     seed=3, output="numpy") as loader:  # fmt: skip
        batch = list(loader)[3 * G + 1]
    broken.at = int(batch["image"][0, 0, 0, 0])
    ops = [leat.ops.DecodeImage(layout="HWC"), leat.ops.Python(broken)]
    loaders = job(2, ops=ops)
    iterators = [iter(loader) for loader in loaders]

    said, steps = [], []
    for iterator in iterators:
        count = 0
        with pytest.raises(ValueError, match="this picture is broken") as caught:
            while True:
                next(iterator)
                count += 1
        said.append(" ".join([str(caught.value), *getattr(caught.value, "__notes__", [])]))
        steps.append(count)

    assert steps[0] == steps[1] < N // G and said[0] == said[1]
    assert loaders[0].state_dict() == loaders[1].state_dict()
    with pytest.raises(ValueError, match="this picture is broken"):  # Not the batch after it, which others would take.
        loaders[0].peek()


@pytest.mark.parametrize("ends", [0, 1])
def test_one_that_is_closed_within_an_epoch_takes_nobody_with_it(folder, job, ends):
    epochs = expected_of(folder, epochs=2)
    loaders = job(3)
    iterators = [iter(loader) for loader in loaders]
    steps = [[next(each) for each in iterators] for _ in range(2)]

    loaders[ends].close()
    alive = [each for place, each in enumerate(iterators) if place != ends]
    steps += [[next(each) for each in alive] for _ in epochs[0][2:]]

    assert all(equal(batch, right) for step, right in zip(steps, epochs[0]) for batch in step)
    assert [next(each, None) for each in alive] == [None, None]
    others = [loader for place, loader in enumerate(loaders) if place != ends]
    for step, right in zip(zip(*others, strict=True), epochs[1], strict=True):
        assert all(equal(batch, right) for batch in step)
    assert ends == 0 or [decoded(loader) for loader in others] == [2 * N, 0]


def test_what_was_given_before_the_end_is_taken(folder, job, monkeypatch):
    """The first ends with the epoch, and has not heard yet that the others took its last batches."""
    [epoch] = expected_of(folder)
    giver, taker = job(2, epochs=1)
    monkeypatch.setattr(_giver._Taker, "hear", lambda self: True)
    of_giver, of_taker = iter(giver), iter(taker)
    for right in epoch[:-2]:
        assert equal(next(of_giver), right) and equal(next(of_taker), right)
    assert len(list(of_giver)) == 2
    giver.close()

    rest = list(of_taker)

    assert len(rest) == 2 and all(map(equal, rest, epoch[-2:])) and decoded(taker) == 0


def test_a_slow_one_is_left_alone_and_comes_back_in_the_next_epoch(folder, job, monkeypatch):
    monkeypatch.setattr(_giver, "_MOST_KEPT", 2)
    epochs = expected_of(folder, epochs=2)
    giver, taker = job(2)
    of_taker = iter(taker)
    of_giver = iter(giver)
    late = [threading.Thread(target=lambda: got.append(next(of_taker)))]
    got: list = []
    late[0].start()
    own = list(of_giver)  # It does not wait.
    late[0].join()
    got += of_taker

    assert all(map(equal, own, epochs[0])) and all(map(equal, got, epochs[0])) and len(got) == len(own) == N // G
    before = decoded(taker)
    assert before > 0
    for step, right in zip(zip(taker, giver, strict=True), epochs[1], strict=True):
        assert all(equal(batch, right) for batch in step)
    assert decoded(taker) == before


def test_one_that_comes_back_first_finds_no_batch_of_the_epoch_before(folder, job, monkeypatch):
    """Those would fill its queue, and it would be left alone again."""
    epochs = expected_of(folder, epochs=2)
    giver, taker = job(2)
    make = _shared_batch.make

    def noted(fields):
        fd, size = make(fields)
        giver._batches._maker._most_bytes = 3 * size
        return fd, size

    monkeypatch.setattr(_shared_batch, "make", noted)
    of_taker, of_giver = iter(taker), iter(giver)
    first: list = []
    late = threading.Thread(target=lambda: first.append(next(of_taker)))
    late.start()
    own = list(of_giver)
    late.join()
    got = [*first, *of_taker]
    assert all(map(equal, own, epochs[0])) and all(map(equal, got, epochs[0])) and len(got) == N // G
    before = decoded(taker)
    assert before > 0

    of_taker = iter(taker)
    deadline = time.monotonic() + 20
    while not giver._batches._maker._takers:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for step, right in zip(zip(iter(giver), of_taker, strict=True), epochs[1], strict=True):
        assert all(equal(batch, right) for batch in step)
    assert decoded(taker) == before


def test_one_without_file_descriptors_says_so_and_makes_its_own(folder, job, monkeypatch, caplog):
    [epoch] = expected_of(folder)
    giver, taker = job(2)
    recvmsg = socket.socket.recvmsg

    def truncated(self, *args):
        message, ancillary, flags, address = recvmsg(self, *args)
        for fd in _taker._descriptors(ancillary):
            os.close(fd)
        return message, [], flags | (socket.MSG_CTRUNC if ancillary else 0), address

    class Truncated(socket.socket):
        recvmsg = truncated

    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", Truncated)
        iterators = [iter(giver), iter(taker)]
        steps = [[next(each) for each in iterators] for _ in epoch]

    assert all(equal(batch, right) for step, right in zip(steps, epoch) for batch in step)
    assert decoded(taker) == N
    assert caplog.text.count("ulimit -n") == 1 and "silent" not in caplog.text


def test_one_that_the_collector_ends_on_a_thread_of_its_own_ends(folder, job, monkeypatch):
    """It may run wherever objects are made, and so where the thread holds what close() needs."""
    giver, taker = job(2)
    make, closed_by = _shared_batch.make, []

    def closes(fields):
        if threading.current_thread().name == "leat-give" and not closed_by:
            closed_by.append(threading.current_thread())
            giver._batches._maker.close()
        return make(fields)

    monkeypatch.setattr(_shared_batch, "make", closes)
    iterators = [iter(giver), iter(taker)]
    maker = giver._batches._maker
    deadline = time.monotonic() + 20
    while not closed_by:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    steps = [[next(each) for each in iterators] for _ in range(N // G)]

    for thread in maker._threads:
        thread.join(20)
    assert closed_by and not any(thread.is_alive() for thread in maker._threads)
    assert maker._listener.fileno() == -1 and maker._woken.fileno() == -1
    [epoch] = expected_of(folder)
    assert all(equal(batch, right) for step, right in zip(steps, epoch) for batch in step)


def test_one_that_stands_elsewhere_gets_no_batch_of_another_place(folder, job, impatient):
    """As after a state that one of them has loaded, and the others have not."""
    whole = expected_of(folder, epochs=1)[0]
    giver, taker = job(2)
    for _ in zip(range(2), zip(giver, taker)):
        pass
    state = taker.state_dict()
    giver.load_state_dict({**state, "position": 5 * G})
    taker.load_state_dict({**state, "position": 1 * G})

    pairs = itertools.zip_longest(giver, taker)
    firsts, others = zip(*pairs)

    assert all(map(equal, [batch for batch in firsts if batch], whole[5:])) and len(whole[5:]) == sum(b is not None for b in firsts)
    assert all(map(equal, others, whole[1:])) and len(others) == N // G - 1


# --- jobs one after the other -------------------------------------------------


def test_a_new_job_goes_on_in_mid_epoch_and_shares_again(folder, job):
    whole = expected_of(folder, epochs=1)[0]
    first = job(2)
    seen = list(itertools.islice(zip(*first), 3))
    state = json.loads(json.dumps(first[1].state_dict()))
    for loader in first:
        loader.close()

    again = job(3)
    for loader in again:
        loader.load_state_dict(state)
    rest = list(zip(*again))

    assert all(equal(batch, right) for step, right in zip(seen + rest, whole) for batch in step)
    assert len(seen + rest) == len(whole) and [decoded(loader) for loader in again[1:]] == [0, 0]


@pytest.mark.parametrize("restarts", [(0, 1), (1, 0)])
def test_processes_that_start_again_in_one_store_are_not_led_astray(folder, job, tmp_path, restarts):
    """The store still tells of the sockets of processes that are gone."""
    [epoch] = expected_of(folder)
    store = FileStore(tmp_path / "store")
    for loader in job(2, store=store):
        next(iter(loader))
        loader.close()
    loaders = job(2, store=store)
    iterators: list = [None, None]
    for place in restarts:  # Either may be first to ask.
        iterators[place] = threaded(loaders[place])

    assert all(map(equal, iterators[0].result(), epoch)) and all(map(equal, iterators[1].result(), epoch))


class threaded:
    """A loader's batches, taken by a thread."""

    def __init__(self, loader) -> None:
        self._batches: list = []
        self._thread = threading.Thread(target=lambda: self._batches.extend(loader))
        self._thread.start()

    def result(self) -> list:
        self._thread.join(60)
        assert not self._thread.is_alive() and len(self._batches) == N // G
        return self._batches


def test_batches_of_unequal_size(folder, job):
    [epoch] = expected_of(folder, global_batch_size=12, drop_last=False)
    loaders = job(3, global_batch_size=12, drop_last=False)

    steps = list(zip(*loaders))

    assert [len(step[0]["index"]) for step in steps] == [12, 12, 12, 12, 12, 4]
    assert all(equal(batch, right) for step, right in zip(steps, epoch) for batch in step)
    assert [decoded(loader) for loader in loaders[1:]] == [0, 0]


def test_the_first_batch_can_be_seen_before_any(folder, job):
    [epoch] = expected_of(folder)
    giver, taker = job(2)

    assert equal(taker.peek(), epoch[0]) and equal(giver.peek(), epoch[0])
    for step, right in zip(zip(giver, taker, strict=True), epoch, strict=True):
        assert all(equal(batch, right) for batch in step)


def test_a_loader_that_is_dropped_ends_its_threads(folder, job, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DROPPED, str(folder), str(tmp_path / "store")], capture_output=True, text=True, timeout=60,
        env=environment(), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "[] 0"), done.stderr


DROPPED = """
import gc, os, sys, threading
import leat
from file_store import FileStore
from leat._job import _agreement
store = FileStore(sys.argv[2])
_agreement.job_store = lambda world_size: store

def make(number):
    _agreement._made.clear()
    return leat.Loader(sys.argv[1], rank=leat.Mesh({"tp": 2}, rank=number), batch_size=4, train=True, fields=("data",))

giver, taker = make(0), make(1)
for step in zip(giver, taker):
    break
kinds = [type(loader._batches._maker).__name__ for loader in (giver, taker)]
assert kinds == ["Giver", "Taker"], kinds
del giver, taker, step
gc.collect()
names = [thread.name for thread in threading.enumerate() if thread.name.startswith("leat")]
print(names, sum("leat-batch" in os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")))
giver, taker = make(0), make(1)
next(zip(giver, taker))  # The program ends with both at work.
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{pathlib.Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}


# --- many processes, and a store that throttles ---------------------------------


PROGRAM = """
import hashlib, json, sys
import leat
from file_store import FileStore
from leat._job import _agreement

told, number = json.loads(sys.argv[1]), int(sys.argv[2])
store = FileStore(told["store"])
_agreement.job_store = lambda world_size: store
ops = [leat.ops.DecodeImage(), leat.ops.RandomCrop(8)]
with leat.Loader(told["url"], rank=leat.Mesh({"dp": 2, "tp": 4}, rank=number), epochs=2, ops=ops, **told["options"]) as loader:
    for epoch in range(2):
        for step, batch in enumerate(loader):
            print(json.dumps([batch["index"].tolist(), hashlib.sha256(batch["image"].tobytes()).hexdigest()]))
            store.set(f"step {epoch} {step} {number}", "")
            store.wait([f"step {epoch} {step} {other}" for other in range(8)])
    print(type(loader._batches._maker).__name__)
"""


def test_eight_processes_on_a_store_that_throttles_read_each_sample_once(folder, tmp_path):
    """Two ranks of four processes each. Every fifth GET is refused, and the store does 16 at a time."""
    with leat.testing.Bucket(folder.parent, latency="10ms", faults=["503:20%"], most_gets=16, seed=1) as bucket:
        told = {"url": f"s3://{folder.name}", "options": USUAL, "store": str(tmp_path / "store")}
        running = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, json.dumps(told), str(number)], stdout=subprocess.PIPE, text=True,
                env={**environment(), **bucket.env()},
            )
            for number in range(8)
        ]  # fmt: skip
        try:
            said = [process.communicate(timeout=100)[0].splitlines() for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
        counters = bucket.counters()

    makers_of = [lines.pop() for lines in said]
    right = []
    for rank in range(2):
        with leat.Loader(folder, rank=rank, world_size=2, epochs=2, ops=OPS, **USUAL) as alone:
            right.append([[batch["index"].tolist(), hashlib.sha256(batch["image"].tobytes()).hexdigest()]
                          for _ in range(2) for batch in alone])  # fmt: skip
    assert [[json.loads(line) for line in lines] for lines in said] == [right[number // 4] for number in range(8)]
    assert makers_of == ["Giver", "Taker", "Taker", "Taker"] * 2
    assert counters["bytes"] <= 2.1 * sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
