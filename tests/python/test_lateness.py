"""Four ranks, one slowed on purpose: the right rank and cause are named."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

import leat
from leat import _lateness, _native
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
    dist.barrier()  # Every rank has told its last steps.
    if rank == 0:
        print(json.dumps(loader.stats()[0]))
    else:
        assert "late_rank" not in loader.stats()[0]
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

    def __init__(self, rank: int, wait: float, cause: str) -> None:
        self.rank = rank
        self.world_size = 2
        self.steps = 0
        self._wait = (wait, cause)

    def take_waits(self) -> list[tuple[float, str]]:
        waits, self.steps = [self._wait] * self.steps, 0
        return waits


def step(rank: _lateness.Lateness) -> None:
    rank._native.steps += 1
    rank.step_begins()
    rank.step_ended()


def two_ranks(store, waits=(0.0, 1000.0)) -> list[_lateness.Lateness]:
    ranks = [
        _lateness.Lateness(Native(rank, wait, "decode"), store, "1/url")
        for rank, wait in enumerate(waits)
    ]
    for rank in ranks:
        rank.epoch_begins(1, 0)
    return ranks


def test_rank_0_waits_for_nobody_and_reads_what_comes_later():
    store = FakeStore()
    first, second = two_ranks(store)
    for _ in range(2 * _lateness.STEPS):
        step(first)
    assert first.worst(0) is None

    for _ in range(2 * _lateness.STEPS):
        step(second)
    assert first.worst(0)["rank"] == 1
    assert first.worst(0)["cause"] == "decode"
    assert first.worst(1) is None
    assert store.values == {}, "what was read is removed"


def test_a_rank_that_never_tells_is_given_up():
    store = FakeStore()
    first, _ = two_ranks(store)
    for _ in range(50 * _lateness.STEPS):
        step(first)
    assert len(first._unread) <= _lateness._MOST_UNREAD


def test_the_steps_of_an_iterator_that_was_left_are_not_anothers():
    store = FakeStore()
    first, second = two_ranks(store)
    for rank in (first, second):
        for _ in range(5):
            step(rank)
        rank.epoch_begins(2, 1)
        for _ in range(3):
            step(rank)
        rank.epoch_ended()
    assert first.worst(0) is None
    assert first._of_epoch[1].steps == 3


class Gone(FakeStore):
    def set(self, key: str, value: str) -> None:
        raise RuntimeError("Connection reset by peer")

    def check(self, keys: list[str]) -> bool:
        raise RuntimeError("Connection reset by peer")


def test_training_goes_on_when_the_store_is_gone():
    ranks = two_ranks(Gone())
    for rank in ranks:
        for _ in range(2 * _lateness.STEPS):
            step(rank)
        rank.epoch_ended()
    assert ranks[0].worst(0) is None


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
