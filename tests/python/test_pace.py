"""Jobs of two nodes: their agents agree through the ranks before a share moves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from leat._job import _pace, _ranks, _talk
from fake_store import FakeStore
from small_datasets import make_blobs

PATIENCE = 40

# Two ranks that go in step, until they are ended: 120 samples a second, each.
PROGRAM = """
import sys, time
import torch.distributed as dist
import leat

dist.init_process_group("gloo")
with leat.research.Loader(sys.argv[1], global_batch_size=32, shuffle=True, max_in_flight=32, tune=False,
                 storage_options={"no_sign_request": True, "region": "us-east-1"}, fields=("data",)) as loader:
    while True:
        for _ in loader:
            time.sleep(16 / 120)
            dist.barrier()
"""


class Native:
    """A rank whose agent says this."""

    def __init__(self, rank: int, world_size: int, pace) -> None:
        self.rank, self.world_size = rank, world_size
        self.said, self.heard = pace, None

    def pace(self):
        return self.said

    def set_pace_elsewhere(self, *pace) -> None:
        self.heard = pace


class Rank:
    """Without a thread. Two of them are on each node."""

    def __init__(self, store, rank: int, world_size: int, pace) -> None:
        self.native = Native(rank, world_size, pace)
        self.talk = _talk.Talk(store, "1/url", rank, world_size, [_pace.Pace(self.native, rank // 2)])


def ranks_of(store, *paces) -> list[Rank]:
    return [Rank(store, rank, len(paces), pace) for rank, pace in enumerate(paces)]


def run(ranks, rounds: int) -> None:
    for _ in range(rounds):
        for rank in ranks:
            rank.talk.round()


def heard(rank):
    return rank.native.heard


@pytest.mark.parametrize("children", [1, 2, 16])
def test_every_node_hears_what_is_least_elsewhere(monkeypatch, children):
    monkeypatch.setattr(_talk, "CHILDREN", children)
    ranks = ranks_of(FakeStore(), (9, 8, 50), (7, 8, 40), (5, 4, 30), (6, 4, 30), (8, 7, 60), (8, 6, 60))
    run(ranks, 6)

    assert [heard(rank) for rank in ranks] == [(5, 4, 60)] * 2 + [(7, 6, 60)] * 2 + [(5, 4, 60)] * 2

    ranks[2].native.said = ranks[3].native.said = (20, 10, 30)
    run(ranks, 6)
    assert heard(ranks[0]) == (8, 6, 60), "what has changed is told anew"


def test_the_least_of_all_is_that_of_any_parts():
    paces = [{"node": i // 3, "pace": ((i * 7) % 11 + 1, (i * 5) % 13 + 1, i)} for i in range(30)]
    paces[4]["pace"] = None
    for size in (1, 2, 5, 17):
        parts = [_pace.least(paces[i : i + size]) for i in range(0, 30, size)]
        assert _pace.joined(parts) == _pace.least(paces)


def test_nothing_is_said_of_what_is_not_known():
    store = FakeStore()
    ranks = ranks_of(store, (9, 8, 50), (7, 8, 40), None, None)
    run(ranks[:3], 2)
    assert all(heard(rank) is None for rank in ranks), "one has said nothing at all"
    run(ranks, 2)
    assert heard(ranks[0]) is None and heard(ranks[1]) is None, "nothing is known elsewhere"
    assert heard(ranks[2]) == (7, 8, 50)


class Gone(FakeStore):
    def set(self, key: str, value: str) -> None:
        raise RuntimeError("Connection reset by peer")


def test_training_goes_on_when_the_store_is_gone():
    ranks = ranks_of(Gone(), (9, 8, 50), (7, 8, 40), (5, 4, 30), (6, 4, 30))
    run(ranks, 3)
    assert all(heard(rank) is None for rank in ranks)


@pytest.mark.parametrize("launched, has_pace", [((4, 0, 2), True), ((4, 0, 4), False), ((1, 0, 1), False)])
def test_only_ranks_whose_launcher_says_who_shares_a_node_have_a_pace(monkeypatch, launched, has_pace):
    monkeypatch.setattr(_ranks._native, "launched", lambda: launched)  # All ranks, and those of this node.

    assert (_ranks.pace_of(Native(0, 4, None)) is not None) == has_pace


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Node:
    """An agent of its own, on this machine: its requests are what its jobs share."""

    def __init__(self, folder, served, stack: contextlib.ExitStack) -> None:
        folder.mkdir()
        self._served, self._stack = served, stack
        self.env = {**os.environ, **served.bucket.env(), "LEAT_AGENT": str(folder / "agent.sock")}
        agent = self._run(
            shutil.which("leat"), "agent", "--port", "0", "--max-in-flight", "32", stdout=subprocess.PIPE
        )
        self.page = next(line.split()[1] for line in agent.stdout if line.startswith("showing "))

    def _run(self, *words: str, env=None, **options) -> subprocess.Popen:
        process = subprocess.Popen(words, env=env or self.env, text=True, **options)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def start_rank(self, rank: int, port: int) -> None:
        launched = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1,
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1,
                    "LEAT_JOB_NAME": "wide"}  # fmt: skip
        env = {**self.env, **{key: str(value) for key, value in launched.items()}}
        self._run(sys.executable, "-c", PROGRAM, self._served.url, env=env)

    def start_neighbour(self, name: str, step: str) -> subprocess.Popen:
        """That trains so long on 16 samples."""
        return self._run(
            shutil.which("leat"), "bench", self._served.url, "--no-sign-request", "--global-batch-size", "16",
            "--epochs", "1000000", "--max-in-flight", "32", "--no-tune", "--no-hash", "--json", "--step-time", step,
            stdout=subprocess.DEVNULL, env={**self.env, "LEAT_JOB_NAME": name},
        )  # fmt: skip

    def shares(self) -> dict[str, int]:
        """Requests in flight, by job."""
        with urllib.request.urlopen(self.page + "/api/node", timeout=60) as answer:
            return {job["name"]: job["share"]["in_flight"] or 0 for job in json.load(answer)["jobs"]}


def wait_until(is_so, nodes) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, [node.shares() for node in nodes]
        time.sleep(0.2)


def test_a_free_node_gives_what_the_crowded_one_can_follow(tmp_path, serve):
    pytest.importorskip("torch")
    make_blobs(tmp_path / "blobs", 512, 2_000)
    # A request brings 5 samples a second: the job of both nodes wants 24 of 32.
    served = serve(tmp_path / "blobs", latency="200ms")
    with contextlib.ExitStack() as stack:
        free, crowded = (Node(tmp_path / name, served, stack) for name in ("free", "crowded"))
        nodes = (free, crowded)
        port = free_port()
        for rank, node in enumerate(nodes):
            node.start_rank(rank, port)
        free.start_neighbour("endless", "0ms")
        # Each wants 8, and gains most by them.
        crowd = [crowded.start_neighbour(str(number), "400ms") for number in range(3)]

        # Left there are 8. Here it is worth more than its neighbour, but 24 would lift nothing.
        wait_until(lambda: len(crowded.shares()) == 4 and len(free.shares()) == 2, nodes)
        wait_until(lambda: free.shares()["wide"] <= 13 and free.shares()["endless"] >= 19
                   and crowded.shares()["wide"] <= 13, nodes)

        # Both rise once there is room.
        for neighbour in crowd:
            neighbour.kill()
        wait_until(lambda: crowded.shares()["wide"] == 32 and free.shares()["wide"] > 13, nodes)
