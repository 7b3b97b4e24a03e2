"""Processes of one rank that share a node make each batch once, and map its memory."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

import leat
from leat._batches import _dtypes
from leat._job import _giver, _shared_batch, _taker
from sharing_jobs import G, N, OPS, USUAL, decoded, equal, expected_of, folder, job, makers  # noqa: F401


def test_one_makes_the_batches_and_the_others_have_the_same(folder, job):
    expected = expected_of(folder, epochs=3)
    loaders = job(4)

    for epoch in expected:
        steps = list(zip(*loaders))
        assert len(steps) == len(epoch) == N // G
        assert all(equal(batch, right) for step, right in zip(steps, epoch) for batch in step)
        assert all(loader.state_dict() == loaders[0].state_dict() for loader in loaders)

    assert makers(loaders) == ["Giver", "Taker", "Taker", "Taker"]
    assert [decoded(loader) for loader in loaders] == [3 * N, 0, 0, 0]


def test_what_one_writes_to_its_batch_the_others_do_not_see(folder, job):
    [epoch] = expected_of(folder)
    loaders = job(3)

    for step, right in zip(zip(*loaders, strict=True), epoch, strict=True):
        for number, batch in enumerate(step):
            assert equal(batch, right)
            batch["image"][:] = number  # Writable, and its own.
        assert [batch["image"].max() for batch in step] == [0, 1, 2]


@pytest.mark.parametrize("options", [
    {"ops": [], "batch": "dict"},  # Bytes as they are stored: ragged.
    {"ops": [leat.ops.DecodeImage(ragged=True)]},
    {"ops": [leat.ops.DecodeImage(), leat.ops.CenterCrop(8), leat.ops.Normalize("imagenet", dtype="bfloat16")], "output": "torch"},
    {"ops": [leat.ops.DecodeImage(), leat.ops.CenterCrop(8), leat.ops.Normalize("imagenet"), leat.ops.MixUp(num_classes=4)]},
    {"drop_last": "pad", "global_batch_size": 12},
    {"sampler": leat.WeightedSampler([1.0] * N, num_samples=40)},
])  # fmt: skip
def test_batches_of_all_kinds(folder, job, options):
    try:
        [epoch] = expected_of(folder, **options)
    except leat.InvalidArgument as error:
        pytest.fail(str(error))
    loaders = job(2, **options)

    steps = list(zip(*loaders))

    assert len(steps) == len(epoch)
    assert all(same(batch, right) for step, right in zip(steps, epoch) for batch in step)
    assert decoded(loaders[1]) == 0


def same(batch, right) -> bool:
    def plain(value):
        if isinstance(value, leat.Ragged):
            return [plain(value.values), plain(value.offsets), None if value.shapes is None else plain(value.shapes)]
        if isinstance(value, list):
            return value
        return value.float().tolist() if type(value).__module__ == "torch" else value.tolist()

    return {name: plain(batch[name]) for name in batch.keys()} == {name: plain(right[name]) for name in right.keys()}


def test_positions_are_shared_after_a_resume_and_where_an_epoch_is_left(folder, job):
    whole = expected_of(folder, epochs=2)
    loaders = job(2)

    first = [list(itertools.islice(loader, 3)) for loader in loaders]
    states = [loader.state_dict() for loader in loaders]
    for loader in loaders:  # Leaves the epoch.
        next(iter(loader))
    for loader in loaders:
        loader.load_state_dict(states[0])
    rest = [list(loader) for loader in loaders]

    assert states[0] == states[1]
    for a, b in zip(first, rest):
        assert all(map(equal, [*a, *b], whole[0])) and len(a + b) == N // G
    assert decoded(loaders[1]) == 0


def test_the_next_batch_can_be_seen_before(folder, job):
    [epoch] = expected_of(folder)
    giver, taker = job(2)

    for of_giver, right in zip(giver, epoch, strict=True):
        assert equal(of_giver, right)
        if right is epoch[0]:
            iteration = iter(taker)
        assert equal(taker.peek(), right)
        assert equal(next(iteration), right)
    assert taker.peek() is None


@pytest.mark.parametrize("goes", [lambda loader: loader.set_epoch(1), lambda loader: loader.load_state_dict(loader.state_dict())],
                         ids=["set_epoch", "load_state_dict"])
def test_an_iterator_that_was_ended_raises_in_all(folder, job, goes):
    loaders = job(2)
    ended = [iter(loader) for loader in loaders]
    for iterator in ended:
        next(iterator)

    for loader, iterator in zip(loaders, ended):
        goes(loader)
        with pytest.raises(leat.InvalidArgument, match="this iterator was ended by"):
            next(iterator)

    passes = [list(loader) for loader in loaders]
    assert len(passes[0]) == len(passes[1]) > 0
    assert all(map(equal, *passes))
    assert decoded(loaders[1]) == 0


def test_the_next_batch_can_be_seen_before_an_iteration_begins(folder, job, caplog):
    [epoch] = expected_of(folder)
    loaders = job(2)
    states = []
    for loader in loaders:
        list(itertools.islice(loader, 3))
        states.append(loader.state_dict())
        next(iter(loader))  # Leaves the epoch.

    for loader, state in zip(loaders, states):
        loader.load_state_dict(state)
    for loader in reversed(loaders):  # The giver has given nothing then.
        assert equal(loader.peek(), epoch[3])
    rest = [list(loader) for loader in loaders]

    for of_one in rest:
        assert len(of_one) == N // G - 3 and all(map(equal, of_one, epoch[3:]))
    assert decoded(loaders[1]) == 0
    assert "makes no batches for this one" not in caplog.text


# --- siblings that are late, or gone -----------------------------------------


def test_a_sibling_ahead_gets_its_batch_before_the_first_takes_it(folder, job):
    """Training here meets in each step, so that either may ask first."""
    [epoch] = expected_of(folder)
    giver, taker = job(2)
    of_giver, of_taker = iter(giver), iter(taker)

    for right in epoch:
        assert equal(next(of_taker), right)
        assert equal(next(of_giver), right)

    assert decoded(taker) == 0


class SlowHandOver:
    """An engine that moves on some time before it hands its batch over: the next one is there by then."""

    def __init__(self):
        self._place = 0

    def begin(self):
        return 0

    def state(self):
        return str(self._place)

    def look(self, seconds):
        return [("x", np.full(4, self._place))]

    def next(self, iteration, place):
        self._place += 1
        time.sleep(0.1)
        return [("x", np.full(4, self._place - 1))]


def test_batches_are_given_in_their_order():
    opened = types.SimpleNamespace(native=SlowHandOver())
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("")
        listener.listen()
        giver = _giver.Giver(opened, lambda: opened.native.state().encode(), listener, lambda: 1, 1 << 20)
        taker = _taker.connected(listener.getsockname()[1:].decode())
        giver.begin()
        for _ in range(4):
            giver.next(0, None)
        came = []
        while len(came) < 4:
            message, fds, _, _ = socket.recv_fds(taker, 64, 1)
            if message[:1] == _giver.BATCH:
                came.append((message[1:], _shared_batch.take(fds[0])[0][1][0]))
        giver.close()
        taker.close()

    assert came == [(str(number).encode(), number) for number in range(4)]


def test_a_sibling_that_takes_nothing_stops_nobody(folder, job, monkeypatch):
    monkeypatch.setattr(_giver, "_MOST_KEPT", 3)
    [epoch] = expected_of(folder)
    giver, taker = job(2)
    of_taker = iter(taker)
    first = next(iter_in_thread(of_taker, giver, epoch))

    rest = list(of_taker)  # The giver has ended its epoch, and kept three batches.

    assert all(map(equal, [first, *rest], epoch)) and len(rest) == N // G - 1
    assert 0 < decoded(taker) < N


def iter_in_thread(of_taker, giver, epoch):
    got = []
    thread = threading.Thread(target=lambda: got.append(next(of_taker)))
    thread.start()
    assert all(map(equal, giver, epoch))
    thread.join()
    yield from got


def test_a_first_that_does_not_go_on_is_waited_for_a_while(folder, job, monkeypatch, caplog):
    monkeypatch.setattr(_taker, "PATIENCE", 0.3)
    [epoch] = expected_of(folder)
    giver, taker = job(2)
    of_giver, of_taker = iter(giver), iter(taker)
    before = [next(of_giver), next(of_taker)]
    began = time.monotonic()

    rest = list(of_taker)  # The first stands still at its second batch.

    assert time.monotonic() - began < 5
    assert equal(before[1], epoch[0]) and all(map(equal, rest, epoch[1:])) and len(rest) == N // G - 1
    assert "makes its own, the same, until that one keeps pace" in caplog.text
    assert all(map(equal, of_giver, epoch[1:]))


def test_it_takes_batches_again_once_the_first_keeps_pace(folder, job, monkeypatch):
    monkeypatch.setattr(_taker, "PATIENCE", 0.3)
    epochs = expected_of(folder, epochs=3, global_batch_size=2)
    giver, taker = job(2, global_batch_size=2)
    of_giver, of_taker = iter(giver), iter(taker)
    pairs = [(next(of_giver), next(of_taker))]
    alone = [next(of_taker), next(of_taker)]  # The second of these the first does not make.
    assert taker._batches._maker._makes

    caught_up = [next(of_giver), next(of_giver)]
    for _ in range(_taker.STREAK + 4):
        pairs.append((next(of_giver), next(of_taker)))

    assert not taker._batches._maker._makes
    pairs += zip(of_giver, of_taker)
    assert all(map(equal, [b for _, b in pairs[:1]] + alone + [b for _, b in pairs[1:]], epochs[0]))
    assert all(map(equal, [a for a, _ in pairs[:1]] + caught_up + [a for a, _ in pairs[1:]], epochs[0]))
    assert 0 < decoded(taker) < N


PROGRAM = """
import hashlib, json, os, sys
import leat
from file_store import FileStore
from leat._job import _agreement, _taker

told, number = json.loads(sys.argv[1]), int(sys.argv[2])
_taker.PATIENCE = told["patience"]
store = FileStore(told["store"])
_agreement.job_store = lambda world_size: store
ops = [leat.ops.DecodeImage(), leat.ops.RandomCrop(8)]
with leat.Loader(told["url"], rank=leat.Mesh({"tp": 3}, rank=number), epochs=1, ops=ops, **told["options"]) as loader:
    for step, batch in enumerate(loader):
        print(json.dumps([batch["index"].tolist(), hashlib.sha256(batch["image"].tobytes()).hexdigest()]), flush=True)
        store.set(f"step {step} {number}", "")
        if step == 2 and number == told["ends"]:
            os.kill(os.getpid(), told["signal"])
        # Those that go on meet in each step, as training does.
        store.wait([f"step {step} {other}" for other in range(3) if step < 2 or other != told["ends"]])
    print(json.dumps(sum(epoch["samples"] for epoch in loader.stats())), flush=True)
"""


@pytest.mark.parametrize(("ends", "sent"), [(0, signal.SIGKILL), (0, signal.SIGSTOP), (1, signal.SIGKILL)])
def test_a_process_that_dies_or_stands_still_takes_nobody_with_it(folder, tmp_path, ends, sent):
    told = {"url": str(folder), "options": USUAL, "ends": ends, "signal": int(sent), "patience": 3.0 if sent == signal.SIGSTOP else 40.0,
            "store": str(tmp_path / "store")}  # fmt: skip
    paths = f"{pathlib.Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(told), str(number)], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
        for number in range(3)
    ]  # fmt: skip
    try:
        said = {number: running[number].communicate(timeout=100)[0].splitlines() for number in range(3) if number != ends}
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdout.close()

    [epoch] = expected_of(folder)
    right = [[batch["index"].tolist(), hashlib.sha256(batch["image"].tobytes()).hexdigest()] for batch in epoch]
    assert all([json.loads(line) for line in lines[:-1]] == right for lines in said.values())
    made = {number: int(lines[-1]) for number, lines in said.items()}
    if ends == 0:  # The others go on from the fourth step, or from the fifth, which may have been made by then.
        assert all(N - 5 * G <= each <= N - 3 * G for each in made.values())
    else:
        assert made == {0: N, 2: 0}


# --- who shares with whom ----------------------------------------------------


def test_processes_that_deliver_other_fields_or_ops_make_their_own(folder, job):
    fields = job(2, of_each=lambda number: {"fields": ("image", "label") if number == 0 else ("image",)})
    ops = job(2, of_each=lambda number: {"ops": [*OPS, leat.ops.RandomHorizontalFlip()] if number else OPS})

    for loaders in (fields, ops):
        for _ in zip(*loaders):
            pass
        assert makers(loaders)[1] != "Taker" and [decoded(loader) for loader in loaders] == [N, N]


def crop_of(rank: int):
    return lambda image: image[:, rank : rank + 8]


def by_environment(image):
    return image if os.environ.get("RANK") else image


def by_parallel_rank(image):
    from numpy import linalg

    return image if not hasattr(linalg, "parallel_state") else image[:, : linalg.get_tensor_model_parallel_rank()]


@pytest.mark.parametrize(("functions", "shares"), [
    (lambda number: leat.ops.Python(crop_of(0)), True),
    (lambda number: leat.ops.Python(crop_of(number)), False),  # Each rank its own part.
    (lambda number: leat.ops.Python(by_environment), False),
    (lambda number: leat.ops.Python(by_parallel_rank), False),  # As Megatron's, of a package that is installed.
    (lambda number: leat.ops.Filter(lambda image: image.mean() > 10), True),
])  # fmt: skip
def test_functions_are_shared_only_if_they_do_the_same(folder, job, functions, shares):
    loaders = job(2, of_each=lambda number: {"ops": [leat.ops.DecodeImage(layout="HWC"), functions(number)]})

    steps = list(zip(*loaders, strict=True))

    assert len(steps) == N // G
    assert makers(loaders)[1] == ("Taker" if shares else "OwnMaker")
    assert not shares or all(equal(*step) for step in steps)


def test_a_process_may_make_its_own(folder, job):
    mesh = leat.Mesh({"tp": 2}, rank=1, shares_batches=False)
    loaders = job(2, of_each=lambda number: {"rank": mesh} if number else {})

    assert all(equal(*step) for step in zip(*loaders))
    assert [decoded(loader) for loader in loaders] == [N, N]


def test_another_user_gets_no_batch(folder, job, monkeypatch):
    monkeypatch.setattr(_taker, "is_own_user", lambda connection: False)
    [epoch] = expected_of(folder)
    giver, taker = job(2)

    for step, right in zip(zip(giver, taker), epoch):
        assert equal(step[0], right) and equal(step[1], right)
    assert decoded(taker) == N


# --- the memory ---------------------------------------------------------------


def test_batches_come_back_as_they_were():
    fields = [
        ("image", np.arange(24, dtype=np.float32).reshape(2, 3, 4)),
        ("half", np.zeros((2, 2), _dtypes.BITS)),
        ("empty", np.empty((0, 3), np.int64)),
        ("lists", (np.arange(5), np.array([0, 2, 5]), None)),
        ("pictures", (np.arange(10, dtype=np.uint8), np.array([0, 4, 10]), np.array([[2, 2], [3, 2]]))),
        ("key", ["ä/\udcff", ""]),
    ]

    fd, size = _shared_batch.make(fields)
    assert os.fstat(fd).st_size == size
    found = _shared_batch.take(fd)

    for (name, value), (other, back) in zip(fields, found, strict=True):
        assert name == other
        pairs = zip(value, back, strict=True) if isinstance(value, tuple) else [(value, back)]
        for a, b in pairs:
            assert a is b or type(a) is list and a == b or (a.dtype == b.dtype and np.array_equal(a, b) and b.flags.writeable)


@pytest.mark.parametrize("header", [
    b"{", b"[]", b'{"fields": [], "places": 3}', b'{"fields": [{"name": "x", "array": ["O", [1]]}], "places": [0]}',
    b'{"fields": [{"name": "x", "array": ["int64", [99]]}], "places": [0]}',
    b'{"fields": [{"name": "x", "array": ["int64", [-1]]}], "places": [0]}',
    b'{"fields": [{"name": "x", "array": ["int64", [1]]}], "places": [-4096]}',
    b'{"fields": [{"name": "x", "array": ["int64", [1]]}], "places": []}',
])  # fmt: skip
def test_memory_that_is_no_batch_is_refused(header):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.write(fd, len(header).to_bytes(8, "little") + header + bytes(256))
    import fcntl

    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _shared_batch._SEALS)
    with pytest.raises(_shared_batch.Damaged):
        _shared_batch.take(fd)


def test_memory_that_may_change_is_refused():
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 4096)
    with pytest.raises(_shared_batch.Damaged, match="not sealed"):
        _shared_batch.take(fd)


def test_nothing_is_left_open(folder, job):
    def open_batches() -> int:
        return sum("leat-batch" in os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                   if os.path.exists(f"/proc/self/fd/{fd}") or os.path.islink(f"/proc/self/fd/{fd}"))  # fmt: skip

    before = open_batches()
    loaders = job(3)
    for step in zip(*loaders):
        assert open_batches() - before <= 3 * (_giver._MOST_KEPT + 2)
    del step  # It holds memory.
    for loader in loaders:
        loader.close()

    assert open_batches() == before
    assert not [thread for thread in threading.enumerate() if thread.name in ("leat-give", "leat-siblings")]
