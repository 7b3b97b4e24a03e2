"""Four ranks, one slowed on purpose: the right rank and cause are named."""

from __future__ import annotations

import collections
import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest

import leat
from leat import _native
from leat._job import _lateness, _talk
from fake_store import FakeStore
from small_datasets import make_blobs

RANKS = 4
SLOW = 2

PROGRAM = """
import json, os, sys, time
import torch, torch.distributed as dist
from torch import nn
import leat

url, cause = sys.argv[1:]
dist.init_process_group("gloo")
rank = dist.get_rank()
is_slow = rank == int(os.environ["SLOW"])

def slowly(data):
    if is_slow and cause == "decode":
        time.sleep(0.05)
    return data[:8]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 2)
    def forward(self, x):
        if is_slow and cause == "compute":
            time.sleep(0.2)
        return self.linear(x)

model = nn.parallel.DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with leat.Loader(url, global_batch_size=16, shuffle=True, threads=4, max_in_flight=4, epochs=1,
                 fields=("data",), ops=[leat.ops.Python(slowly)], storage_options={"no_sign_request": True, "region": "us-east-1"}) as loader:
    loader.watch(model)
    for (data,) in loader:
        rows = [torch.frombuffer(bytearray(row), dtype=torch.uint8).float() / 255
                for row in data.tolist()]
        loss = model(torch.stack(rows)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        while loader.stats()[0]["late_rank"] is None:  # The test's alarm ends it.
            time.sleep(0.01)
        print(json.dumps(loader.stats()[0]))
    else:
        assert "late_rank" not in loader.stats()[0]
    dist.barrier()
dist.destroy_process_group()
exec(open(os.environ["WATCH"]).read())  # Whatever sitecustomize there is already.
wait_for_gloo()
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lateness") / "blobs"
    make_blobs(folder, 16 * 40, 1_000)  # 40 steps: a whole message, and the rest.
    return folder


@pytest.mark.parametrize(("cause", "named"), [
    ("fetch", "storage"), ("decode", "decode"), ("compute", "compute")
])  # fmt: skip
def test_the_slow_rank_and_what_slows_it_are_named(blobs, serve, cause, named):
    quick = serve(blobs, latency="1ms")
    slow = serve(blobs, latency="50ms" if cause == "fetch" else "1ms")
    # Between ranks too: they would be shared out to the ranks of a node.
    common = {**os.environ, "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(free_port()), "SLOW": str(SLOW),
              "OMP_NUM_THREADS": "1", "WATCH": str(pathlib.Path(__file__).parent / "watch" / "sitecustomize.py")}  # fmt: skip
    ranks = []
    for rank in range(RANKS):
        bucket = (slow if rank == SLOW else quick).bucket
        env = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank),
               "LOCAL_WORLD_SIZE": str(RANKS), "AWS_ENDPOINT_URL": bucket.url}  # fmt: skip
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, quick.url, cause],
                env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        )
    try:
        outputs = [rank.communicate() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (_, errors) in zip(ranks, outputs):
        assert rank.returncode == 0, errors

    late = json.loads(outputs[0][0])["late_rank"]
    assert late is not None
    assert (late["rank"], late["cause"]) == (SLOW, named)
    assert 0.02 < late["fraction"] <= 1


class Native:
    """A rank whose waits are said."""

    def __init__(self, rank: int, wait: float, cause: str, world_size: int = 2) -> None:
        self.rank = rank
        self.world_size = world_size
        self.steps = 0
        self._wait = (wait, cause)

    def take_waits(self) -> list[tuple[float, str]]:
        waits, self.steps = [self._wait] * self.steps, 0
        return waits


class Rank:
    """A rank without a thread: `round` is that of its talk."""

    def __init__(self, store, rank: int, wait: float, world_size: int = 2) -> None:
        self.lateness = _lateness.Lateness(Native(rank, wait, "decode", world_size))
        self.talk = _talk.Talk(store, "1/url", rank, world_size, [self.lateness])
        self.lateness.epoch_begins(1, 0)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.lateness._native.steps += 1
            self.lateness.step_begins()
            self.lateness.step_ended()


@pytest.fixture
def by_hand(monkeypatch):
    """No threads, and blocks as if each took seconds."""
    monkeypatch.setattr(_talk.Talk, "_begin", lambda self: None)
    monkeypatch.setattr(_lateness._Block, "stride", lambda self, period: 1)


def two_ranks(store, waits=(0.0, 1000.0)) -> list[Rank]:
    return [Rank(store, rank, wait) for rank, wait in enumerate(waits)]


@pytest.mark.usefixtures("by_hand")
def test_rank_0_waits_for_nobody_and_hears_what_comes_later():
    store = FakeStore()
    first, second = two_ranks(store)
    first.steps(2 * _lateness.STEPS)
    first.talk.round()
    assert first.lateness.worst(0) is None

    second.steps(2 * _lateness.STEPS)
    for rank in (second, first):
        rank.talk.round()
    assert first.lateness.worst(0)["rank"] == 1
    assert first.lateness.worst(0)["cause"] == "decode"
    assert first.lateness.worst(1) is None
    assert first.lateness._of_epoch[0].steps == 2 * _lateness.STEPS
    for rank in (second, first) * 3:
        rank.talk.round()
    assert first.lateness._of_epoch[0].steps == 2 * _lateness.STEPS, "no block counts twice"


@pytest.mark.usefixtures("by_hand")
def test_a_rank_that_never_tells_is_given_up():
    store = FakeStore()
    first, _ = two_ranks(store)
    for _ in range(50):
        first.steps(_lateness.STEPS)
        first.talk.round()
        assert len(first.lateness.own()) <= _lateness.KEPT
    assert len(first.lateness.own()) == _lateness.KEPT and len(first.lateness._ended) <= _lateness.KEPT
    assert first.lateness.worst(0) is None


@pytest.mark.usefixtures("by_hand")
def test_the_steps_of_an_iterator_that_was_left_are_not_anothers():
    store = FakeStore()
    ranks = two_ranks(store)
    for rank in reversed(ranks):
        rank.steps(5)
        rank.lateness.epoch_begins(2, 1)
        rank.steps(3)
        rank.lateness.epoch_ended()
        rank.talk.round()
    assert ranks[0].lateness.worst(0) is None
    assert ranks[0].lateness._of_epoch[1].steps == 3


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("steps", [_lateness.STEPS - 1, _lateness.STEPS, 2 * _lateness.STEPS + 5])
def test_the_end_of_an_epoch_is_told_and_said_whatever_its_length(steps, monkeypatch):
    said = []
    monkeypatch.setattr(_native, "log_info", said.append)
    store = FakeStore()
    ranks = two_ranks(store)
    for rank in ranks:
        rank.steps(steps)
        rank.lateness.epoch_ended()
        rank.talk.round()
        assert rank.lateness.awaits() is (rank is ranks[0])
    ranks[0].talk.round()
    assert not ranks[0].lateness.awaits()
    assert ranks[0].lateness._of_epoch[0].steps == steps
    (line,) = said
    assert line.startswith("epoch 0: the others wait for rank 1: decode, ")


class Counting(FakeStore):
    """Counts the round trips of each rank, and the threads that make them."""

    def __init__(self) -> None:
        super().__init__()
        self.trips: collections.Counter[int] = collections.Counter()
        self.threads: set[int] = set()

    def of(self, rank: int) -> _OfRank:
        return _OfRank(self, rank)


class _OfRank:
    def __init__(self, store: Counting, rank: int) -> None:
        self._store = store
        self._rank = rank

    def __getattr__(self, name: str):
        self._store.trips[self._rank] += 1
        self._store.threads.add(threading.get_ident())
        return getattr(self._store, name)


@pytest.mark.usefixtures("by_hand")
def test_1024_ranks_talk_in_few_round_trips_and_the_store_stays_small():
    size, slow = 1024, 777
    store = Counting()
    ranks = [Rank(store.of(rank), rank, 1.0 if rank == slow else 0.0, size) for rank in range(size)]

    def a_round() -> int:
        """The most round trips of a rank. Children come before their parents."""
        store.trips.clear()
        for rank in reversed(ranks):
            rank.talk.round()
        return max(store.trips.values())

    kept = []
    for _ in range(10):
        for rank in ranks:
            rank.steps(_lateness.STEPS)
            rank.talk.trained()
        assert threading.get_ident() not in store.threads, "training never asks the store"
        most = in_thread(a_round)
        assert most <= 3
        kept.append((len(store.values), sum(map(len, store.values.values()))))
    assert ranks[0].lateness.worst(0)["rank"] == slow
    assert ranks[0].lateness._of_epoch[0].steps == 10 * _lateness.VALUES // size
    assert kept[0][0] == size - 1, "one message a rank, but for rank 0"
    assert {count for count, _ in kept} == {size - 1}
    assert kept[-1][1] <= 1.01 * kept[_lateness.KEPT - 1][1]


def in_thread(function):
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(function).result()


def test_a_thread_of_its_own_talks_and_ends():
    size = 20
    store = Counting()
    ranks = [Rank(store.of(rank), rank, 1.0 if rank == 19 else 0.0, size) for rank in range(size)]
    for rank in ranks:
        rank.steps(3)
        rank.talk.trained()
        rank.lateness.epoch_ended()
        rank.talk.epoch_ended()
    while ranks[0].lateness.worst(0) is None:  # The test's alarm ends it.
        time.sleep(0.01)
    assert ranks[0].lateness.worst(0)["rank"] == 19
    assert threading.get_ident() not in store.threads
    for rank in ranks:
        rank.talk.close()
        assert not rank.talk._thread.is_alive()


def test_close_says_the_end_of_an_epoch_and_otherwise_asks_nothing():
    store = Counting()
    first, second = (Rank(store.of(rank), rank, float(rank)) for rank in range(2))
    for rank in (first, second):
        rank.talk._period = 1000.0
        rank.talk.trained()
    while not (store.trips[0] and store.trips[1]):
        time.sleep(0.01)
    time.sleep(0.1)  # Both have had their round.
    for rank in (second, first):
        rank.steps(3)
        rank.lateness.epoch_ended()
        rank.talk.epoch_ended()
        rank.talk.close()
    assert first.lateness.worst(0)["rank"] == 1

    third = Rank(store.of(2), 0, 0.0)
    third.talk._period = 1000.0
    third.talk.epoch_ended()
    while not store.trips[2]:
        time.sleep(0.01)
    time.sleep(0.1)  # It has had its round.
    trips = store.trips[2]
    third.talk.trained()
    third.talk.close()
    assert store.trips[2] == trips


def test_of_short_blocks_some_are_told_and_ranks_agree_which():
    def block(seconds: float) -> _lateness._Block:
        return _lateness._Block((1, 0, 0), False, seconds, [], [])

    assert [block(seconds).stride(1.0) for seconds in (10, 0.5, 0.3, 0.1, 0.001)] == [1, 1, 2, 8, 512]
    assert block(0.5).stride(4.0) == 4


class Gone(FakeStore):
    def set(self, key: str, value: str) -> None:
        raise RuntimeError("Connection reset by peer")

    def check(self, keys: list[str]) -> bool:
        raise RuntimeError("Connection reset by peer")


@pytest.mark.usefixtures("by_hand")
def test_training_goes_on_when_the_store_is_gone():
    ranks = two_ranks(Gone())
    for rank in ranks:
        rank.steps(2 * _lateness.STEPS)
        rank.lateness.epoch_ended()
        rank.talk._rounds()
    assert ranks[0].lateness.worst(0) is None


def test_a_message_that_is_none_ends_the_talk_alone(caplog):
    store = FakeStore()
    store.set("leat/talk/1/url/1", '{"steps": 7}')
    first, _ = two_ranks(store)
    first.steps(3)
    first.lateness.epoch_ended()
    first.talk.epoch_ended()
    first.talk._thread.join()
    assert "no longer tell each other" in caplog.text


def test_what_a_rank_told_is_checked():
    with pytest.raises(ValueError, match="unequal"):
        _native.Lateness().add([{"seconds": 1, "waits": [1.0], "causes": [], "own": []}] * 2)


def test_watching_needs_ranks_that_meet(blobs):
    torch = pytest.importorskip("torch")
    with leat.Loader(blobs, batch_size=16, shuffle=True) as loader:
        with pytest.raises(leat.InvalidArgument, match="init_process_group"):
            loader.watch(torch.nn.Linear(1, 1))
        assert all("late_rank" not in epoch for epoch in loader.stats())


def test_own_work_ends_with_the_last_gradient_and_not_with_what_follows():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    work = _lateness.OwnWork(module)
    for _ in range(3):
        work.begin()
        module(torch.ones(2, 4)).sum().backward()
        ended = _lateness._HostMark()
        measured = work.end()
        assert measured.is_known()
        assert 0 < measured.seconds() <= ended.since(work._begin)
    work.begin()
    with torch.no_grad():
        module(torch.ones(2, 4))
    assert work.end() is None, "no gradient, no work to compare"
    work.remove()
    assert all(not parameter._backward_hooks for parameter in module.parameters())
