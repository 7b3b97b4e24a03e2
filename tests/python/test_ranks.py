"""Ranks of one node share what the settings say, which is the node's."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import leat
from leat.ops import DecodeImage, Resize
from small_datasets import make_blobs, make_pictures, run_python

PROGRAM = """
import contextlib, os, sys, time, leat
loader = leat.Loader(sys.argv[1], global_batch_size=16, shuffle=True, threads=8, max_in_flight=32,
                     memory="64MiB", epochs=1, seed=2, storage_options={"no_sign_request": True})
again = leat.Loader(sys.argv[1], global_batch_size=16, shuffle=True, epochs=1, storage_options={"no_sign_request": True})
again.close()
def threads():
    names = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # A thread that has just ended.
            names.append(open(f"/proc/self/task/{task}/comm").read())
    return [sum(name.startswith(kind) for name in names) for kind in ("leat-decode", "leat-http")]
for batch in loader:
    pass
give_up = time.monotonic() + 20
while threads() != [2, 1] and time.monotonic() < give_up:  # Each takes its name once it runs.
    time.sleep(0.01)
print(*threads(), sep="\\n")
print(loader.stats()[0]["content_hash"])
"""

LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "Slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
    "srun alone": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                 "OMPI_COMM_WORLD_LOCAL_SIZE"),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
}  # fmt: skip


def start(served, launcher: str, rank: int, ranks: int) -> subprocess.Popen:
    said = dict(zip(LAUNCHERS[launcher], map(str, (rank, ranks, rank, ranks))))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, served.url],
        env={**os.environ, **said, "SLURM_NODEID": "0", "SLURM_STEP_ID": "0", "AWS_ENDPOINT_URL": served.bucket.url},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "blobs"
    make_blobs(folder, 320, 20_000)
    return folder


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_four_ranks_keep_within_the_settings_of_one(blobs, serve, launcher):
    served = serve(blobs, latency="10ms")
    alone = leat.Loader(served.url, global_batch_size=16, shuffle=True, seed=2, epochs=1, **served.options)
    for _ in alone:
        pass
    served.reset()

    processes = [start(served, launcher, rank, 4) for rank in range(4)]
    outputs = [process.communicate(timeout=60) for process in processes]

    assert [process.returncode for process in processes] == [0] * 4, outputs
    hashes = [int(output.split()[-1], 16) for output, _ in outputs]
    assert sum(hashes) % 2**128 == int(alone.stats()[0]["content_hash"], 16)
    assert [output.split()[:2] for output, _ in outputs] == [["2", "1"]] * 4
    assert served.counters()["most_in_flight"] <= 32
    told = [error for _, error in outputs if "ranks on this node share" in error]
    assert len(told) == 1 and told[0].count("share") == 1
    shares = re.search(
        r"4 ranks on this node share 8 threads, 32 requests in flight and 64 MiB of "
        r"memory: 2, 8 and 16 MiB each", told[0])  # fmt: skip
    assert shares, told[0]


def test_ranks_that_do_not_know_their_node_say_what_each_takes(blobs):
    script = "import sys, leat\nfor _ in leat.Loader(sys.argv[1], batch_size=16, shuffle=True, epochs=1, threads=3): pass"
    for rank in range(2):
        done = subprocess.run([sys.executable, "-c", script, str(blobs)], text=True, capture_output=True, check=True,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})  # fmt: skip
        told = [line for line in done.stderr.splitlines() if "nobody says how many of the 2 ranks" in line]
        assert len(told) == (1 if rank == 0 else 0)
        assert all("3 threads" in line and "LOCAL_WORLD_SIZE" in line for line in told)


@pytest.mark.parametrize("local_ranks", [1, 4])
def test_memory_is_the_nodes(blobs, monkeypatch, local_ranks):
    """A batch of 320 kB fits into 1 MiB, but not into a quarter of it."""
    for name, value in zip(LAUNCHERS["torchrun"], (0, 4, 0, local_ranks)):
        monkeypatch.setenv(name, str(value))
    with leat.Loader(blobs, global_batch_size=64, shuffle=True, memory="1MiB") as loader:
        if local_ranks == 1:
            assert len(next(iter(loader))["data"]) == 16
        else:
            with pytest.raises(leat.ResourceExhausted, match="memory"):
                next(iter(loader))


def test_a_batch_that_does_not_fit_beside_the_decoders_part_says_the_figure_that_does(tmp_path, monkeypatch):
    """A batch of 12.1 MiB fits into a half of 32 MiB, but not into the three quarters of it that are for batches."""
    make_pictures(tmp_path, 128)
    for name, value in zip(LAUNCHERS["torchrun"], (0, 2, 0, 2)):
        monkeypatch.setenv(name, str(value))

    def first_batch_in(memory: str):
        options = {"ops": [DecodeImage(), Resize((256, 256))], "global_batch_size": 128, "shuffle": True}
        with leat.Loader(tmp_path, memory=memory, **options) as loader:
            return next(iter(loader))

    with pytest.raises(leat.ResourceExhausted) as told:
        first_batch_in("32MiB")

    said = re.search(
        r"share of memory= is 16 MiB \(1 of 2 ranks on this node\), 12 MiB of it for batches; "
        r"raise memory= to more than ([\d.]+) MiB", str(told.value))  # fmt: skip
    assert said, told.value
    assert float(said[1]) > 32
    first_batch_in(f"{float(said[1]) + 1}MiB")


def memory_is_shared_by_four(blobs) -> bool:
    with leat.Loader(blobs, global_batch_size=64, shuffle=True, memory="1MiB", rank=3, world_size=4) as loader:
        try:
            next(iter(loader))
        except leat.ResourceExhausted:
            return True
        return False


@pytest.mark.parametrize(("said", "is_shared"), [
    ({}, False),
    ({"MASTER_ADDR": "127.0.0.1"}, True),
    ({"MASTER_ADDR": "localhost"}, True),
    ({"MASTER_ADDR": "10.0.0.1"}, False),
    ({"LOCAL_RANK": "3", "NNODES": "1"}, True),
    ({"LOCAL_RANK": "0", "NNODES": "4"}, False),
    ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "3",
      "SLURM_NTASKS_PER_NODE": "4"}, True),
    ({"PMI_RANK": "3", "PMI_SIZE": "4", "PMI_LOCAL_RANK": "3", "PMI_LOCAL_SIZE": "4"}, True),
    ({"PMI_RANK": "2", "PMI_SIZE": "4", "PMI_LOCAL_RANK": "2", "PMI_LOCAL_SIZE": "4"}, True),
])  # fmt: skip
def test_a_rank_that_is_given_finds_its_node_by_other_words(blobs, monkeypatch, said, is_shared):
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert memory_is_shared_by_four(blobs) is is_shared


def test_a_rank_that_dies_changes_nothing_for_the_others(blobs, serve):
    served = serve(blobs, latency="10ms")
    processes = [start(served, "torchrun", rank, 4) for rank in range(4)]
    processes[2].kill()

    outputs = {rank: process.communicate(timeout=60) for rank, process in enumerate(processes)}

    assert [process.returncode for process in processes] == [0, 0, -9, 0]
    # A rank that comes late completes what is missing.
    late = start(served, "torchrun", 2, 4)
    outputs[2] = late.communicate(timeout=60)
    hashes = [int(output.split()[-1], 16) for output, _ in outputs.values()]
    alone = leat.Loader(served.url, global_batch_size=16, shuffle=True, seed=2, epochs=1, **served.options)
    for _ in alone:
        pass
    assert sum(hashes) % 2**128 == int(alone.stats()[0]["content_hash"], 16)


FORKED_RANK = """
import os, sys
import torch.distributed as dist
from leat._job._agreement import job_store

dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
assert job_store(1) is not None
child = os.fork()
if child == 0:
    os._exit(0 if job_store(1) is None else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), job_store(1) is not None)
"""


def test_a_forked_child_of_a_rank_does_not_ask_the_store_of_its_parent(tmp_path):
    done = run_python(FORKED_RANK, str(tmp_path / "store"), timeout=120)
    assert done.stdout == "0 True\n", done.stderr
