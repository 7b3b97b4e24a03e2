"""Loaders of several kinds of parallelism: who reads what, and how often it is fetched."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest

import leat
from leat import _say
from leat._job import _mesh
from small_datasets import make_blobs, make_pictures, make_shards, run_python

N = 64
G = 8
HERE = pathlib.Path(__file__).parent
OPS = [leat.ops.DecodeImage(), leat.ops.RandomCrop(8)]
USUAL = {"global_batch_size": G, "train": True, "seed": 3, "ids": True, "batch": "dict", "output": "numpy"}

PROGRAM = """
import hashlib, json, os, sys
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
import leat

told = json.loads(sys.argv[1])
dist.init_process_group("gloo")
dims = told["dims"]
device_mesh = init_device_mesh("cpu", tuple(dims.values()), mesh_dim_names=tuple(dims))
mesh, by_size = leat.Mesh(device_mesh), leat.Mesh(dims)
said = {"rank": mesh.rank, "world_size": mesh.world_size, "coordinate": mesh.coordinate, "ids": [], "pictures": []}
assert (by_size.rank, by_size.world_size, by_size.coordinate) == (mesh.rank, mesh.world_size, mesh.coordinate)
with leat.Loader(told["url"], rank=device_mesh, ops=[leat.ops.DecodeImage(), leat.ops.RandomCrop(8)], epochs=1,
                 storage_options={"no_sign_request": True, "no_hedge": True}, **told["options"]) as loader:
    for batch in loader:
        dist.barrier()
        said["ids"].append(batch["index"].tolist())
        said["pictures"].append([hashlib.sha256(picture.tobytes()).hexdigest() for picture in batch["image"]])
    said["state"] = loader.state_dict()
    dist.barrier()
print(json.dumps(said))
dist.destroy_process_group()
exec(open(os.environ["WATCH"]).read())
wait_for_gloo()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """64 pictures, of which no two are alike."""
    folder = tmp_path_factory.mktemp("mesh") / "pictures"
    make_pictures(folder, N)
    return folder


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def digests(pictures) -> list[str]:
    return [hashlib.sha256(picture.tobytes()).hexdigest() for picture in pictures]


def run_job(program: str, told: dict, *, processes: int, nodes: int = 1, **environment: str) -> list[subprocess.CompletedProcess]:
    """A job by gloo. Processes of other nodes find no memory in common."""
    port, each = str(free_port()), processes // nodes
    with contextlib.ExitStack() as stack:
        # The name of a socket is short.
        places = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(nodes)]
        running = [
            subprocess.Popen(
                [sys.executable, "-c", program, json.dumps(told)],
                env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(number),
                     "WORLD_SIZE": str(processes), "LOCAL_RANK": str(number % each), "LOCAL_WORLD_SIZE": str(each),
                     "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "XDG_RUNTIME_DIR": places[number // each],
                     "WATCH": str(HERE / "watch" / "sitecustomize.py"), **environment},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for number in range(processes)
        ]  # fmt: skip
        try:
            said = [process.communicate(timeout=200) for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
    return [
        subprocess.CompletedProcess(process.args, process.returncode, *output) for process, output in zip(running, said)
    ]


MESHES = [
    # The dimensions, and how often one node and two nodes read all.
    ({"dp": 2, "tp": 2, "pp": 1}, 1, 1),
    ({"pp": 2, "dp": 1, "tp": 2}, 1, 2),
    ({"pp": 2, "dp": 2, "tp": 1}, 1, 2),
    ({"dp_replicate": 2, "dp_shard": 2, "tp": 1}, 1, 1),
]


@pytest.mark.parametrize(("dims", "nodes", "times"), [
    *((dims, 1, one) for dims, one, _ in MESHES[:2]),
    *((dims, 2, two) for dims, _, two in MESHES),
])  # fmt: skip
def test_processes_of_one_rank_get_the_same_and_a_node_reads_it_once(folder, serve, dims, nodes, times):
    pytest.importorskip("torch", reason="torch is not installed")
    served = serve(folder)
    with served.loader(**USUAL, ops=OPS, epochs=1, rank=0, world_size=1) as alone:
        batches = list(alone)
        expected = [(batch["index"].tolist(), digests(batch["image"])) for batch in batches]
        state = alone.state_dict()
    served.reset()

    done = run_job(PROGRAM, {"url": served.url, "dims": dims, "options": USUAL}, processes=4, nodes=nodes,
                   AWS_ENDPOINT_URL=served.bucket.url)  # fmt: skip

    for process in done:
        assert process.returncode == 0, process.stderr
    said = [json.loads(process.stdout) for process in done]
    ranks = {each["rank"]: each for each in said}
    assert sorted(ranks) == list(range(said[0]["world_size"]))
    for each in said:  # Equal ids and bytes for equal ranks.
        assert (each["ids"], each["pictures"]) == (ranks[each["rank"]]["ids"], ranks[each["rank"]]["pictures"])
        assert each["state"] == state
    found = [
        (sum((ranks[rank]["ids"][step] for rank in sorted(ranks)), []),
         sum((ranks[rank]["pictures"][step] for rank in sorted(ranks)), []))
        for step in range(N // G)
    ]  # fmt: skip
    assert found == expected
    counted = served.counters()
    assert counted["get"] == times * N
    assert counted["bytes"] == times * sum(path.stat().st_size for path in folder.rglob("*.png"))


LOCK_STEP = """
import json, os, sys
import torch.distributed as dist
import leat
told = json.loads(sys.argv[1])
dist.init_process_group("gloo")
with leat.Loader(told["url"], rank=leat.Mesh({"tp": 2}), global_batch_size=8, train=True, epochs=1, memory="4MiB",
                 storage_options={"no_sign_request": True, "no_hedge": True}) as loader:
    for batch in loader:
        dist.barrier()
    dist.barrier()
dist.destroy_process_group()
exec(open(os.environ["WATCH"]).read())
wait_for_gloo()
"""


def test_data_that_no_memory_holds_is_read_once_too(tmp_path, serve):
    pytest.importorskip("torch", reason="torch is not installed")
    make_blobs(tmp_path / "blobs", 800, 40_000)
    served = serve(tmp_path / "blobs")
    leat.Dataset(served.url, **served.options)
    served.reset()

    done = run_job(LOCK_STEP, {"url": served.url}, processes=2, AWS_ENDPOINT_URL=served.bucket.url)

    for process in done:
        assert process.returncode == 0, process.stderr
    # Seldom does a record leave before the slower one has read it, unless the machine is
    # busy; each by itself would send 1,600.
    assert 800 <= served.counters()["get"] <= 1400


STEPS = """
import json, os, sys
import torch.distributed as dist
import leat
told = json.loads(sys.argv[1])
dist.init_process_group("gloo")
mesh = leat.Mesh(told["dims"])
with leat.Loader(told["url"], rank=mesh, epochs=1, **told["options"]) as loader:
    if told["state"]:
        loader.load_state_dict(told["state"])
    for step, batch in enumerate(loader):
        print(json.dumps({"rank": mesh.rank, "ids": batch["index"].tolist(), "state": loader.state_dict()}), flush=True)
        dist.barrier()
        if step == 1 and dist.get_rank() == told["dies"]:
            os._exit(9)
    dist.barrier()
dist.destroy_process_group()
"""


def test_a_job_that_loses_a_process_goes_on_with_three(folder):
    pytest.importorskip("torch", reason="torch is not installed")
    options = {**USUAL, "global_batch_size": 12}
    with leat.Loader(folder, **options, epochs=1, rank=0, world_size=1) as alone:
        whole = [batch["index"].tolist() for batch in alone]

    def run(dims: dict, processes: int, state: dict | None = None, dies: int | None = None, steps: int | None = None):
        told = {"url": str(folder), "options": options, "dims": dims, "state": state, "dies": dies}
        done = run_job(STEPS, told, processes=processes)
        assert all((process.returncode == 0) == (dies is None) for process in done), done
        lines = [[json.loads(line) for line in process.stdout.splitlines()][:steps] for process in done]
        ranks = {of_one[0]["rank"]: of_one for of_one in lines}
        ids = [sum((step["ids"] for step in of_all), []) for of_all in zip(*(ranks[rank] for rank in sorted(ranks)))]
        return ids, lines[0][-1]["state"]

    first, state = run({"dp": 2, "tp": 2}, 4, dies=2, steps=2)
    rest, _ = run({"dp": 3}, 3, state)

    assert len(first) == 2 and first + rest == whole


OTHER_MESHES = """
import json, sys
import torch.distributed as dist
import leat
told = json.loads(sys.argv[1])
dist.init_process_group("gloo")
dims = {"dp": 2, "tp": 1} if dist.get_rank() == 0 else {"dp": 1, "tp": 2}
try:
    leat.Loader(told["url"], rank=leat.Mesh(dims), global_batch_size=8, train=True).close()
except leat.InvalidArgument as error:
    print(error)
dist.barrier()
dist.destroy_process_group()
"""


def test_processes_of_other_meshes_are_refused(folder):
    pytest.importorskip("torch", reason="torch is not installed")
    done = run_job(OTHER_MESHES, {"url": str(folder)}, processes=2)

    for process in done:
        assert process.returncode == 0, process.stderr
    said = [process.stdout for process in done if process.stdout]
    assert len(said) == 1
    assert "on a mesh of dp 2, tp 1, data by 'dp'" in said[0] and "on a mesh of dp 1, tp 2, data by 'dp'" in said[0]


# --- without other processes -------------------------------------------------


def steps_of(folder, dims: dict[str, int], state: dict | None = None, stop: int | None = None, **options):
    """The ids of each step of all processes of a mesh, and the state behind them."""
    found: dict[int, list[list[int]]] = {}
    states = []
    for number in range(int(np.prod(list(dims.values())))):
        mesh = leat.Mesh(dims, rank=number)
        with leat.Loader(folder, **USUAL, epochs=2, rank=mesh, **options) as loader:
            if state is not None:
                loader.load_state_dict(state)
            ids = [batch["index"].tolist() for batch in itertools.islice(loader, stop)]
            assert found.setdefault(mesh.rank, ids) == ids
            states.append(loader.state_dict())
    assert all(each == states[0] for each in states)
    return [sum(parts, []) for parts in zip(*(found[rank] for rank in sorted(found)))], states[0]


@pytest.mark.parametrize("then", [{"dp": 4, "tp": 1}, {"dp": 1, "tp": 2}, {"pp": 2, "dp_replicate": 2, "dp_shard": 2}])
def test_a_resume_on_another_mesh_goes_on_with_the_same_stream(folder, then):
    whole, _ = steps_of(folder, {"dp": 1})
    first, state = steps_of(folder, {"dp": 2, "tp": 2}, stop=3)

    rest, _ = steps_of(folder, then, state)

    assert len(first) == 3 and first + rest == whole


@pytest.mark.parametrize(("order", "ranks"), [
    (None, [0, 0, 1, 1, 0, 0, 1, 1]),  # tp varies fastest, then dp.
    ("tp-cp-ep-dp-pp", [0, 0, 1, 1, 0, 0, 1, 1]),
    ("tp-pp-dp", [0, 0, 0, 0, 1, 1, 1, 1]),
    ("dp-tp-pp", [0, 1, 0, 1, 0, 1, 0, 1]),
])  # fmt: skip
def test_ranks_by_the_order_of_dimensions(order, ranks):
    dims = {"pp": 2, "dp": 2, "tp": 2, "cp": 1}

    meshes = [leat.Mesh(dims, order=order, rank=number) for number in range(8)]

    assert [mesh.rank for mesh in meshes] == ranks
    assert {mesh.world_size for mesh in meshes} == {2}
    assert len({tuple(sorted(mesh.coordinate.items())) for mesh in meshes}) == 8


def test_several_data_dimensions_count_as_one():
    meshes = [leat.Mesh({"dp_replicate": 2, "cp": 2, "dp_shard": 2}, rank=number) for number in range(8)]

    assert [mesh.rank for mesh in meshes] == [0, 1, 0, 1, 2, 3, 2, 3]


def test_dimensions_of_other_names_are_told():
    meshes = [leat.Mesh({"workers": 3, "slices": 2}, data="workers", rank=number) for number in range(6)]

    assert [mesh.rank for mesh in meshes] == [0, 0, 1, 1, 2, 2]
    assert [leat.Mesh({"dp": 2}, data=(), rank=number).world_size for number in range(2)] == [1, 1]


@pytest.mark.parametrize(("options", "says"), [
    ({"dims": {"dp": 2, "tensors": 2}}, "a dimension 'tensors', and its name does not say"),
    ({"dims": {"dp": 2, "ep": 2}}, '"ep" is no dimension beside those'),
    ({"dims": {"dp": 0}}, "the size of 'dp'=0"),
    ({"dims": {"dp": None}}, "the size of 'dp'=0"),
    ({"dims": {"dp": 2.5}}, "the size of 'dp'=2.5"),
    ({"dims": {"dp": 2**20, "tp": 2**20}}, "more processes than can be"),
    ({"dims": {}}, "it is a DeviceMesh, or sizes by name"),
    ({"dims": 8}, "it is a DeviceMesh, or sizes by name"),
    ({"dims": {"dp": 2}, "rank": 2}, "rank=2; it is at least 0 and below 2"),
    ({"dims": {"dp": 2}, "data": "dpp"}, "no dimension 'dpp'; it has 'dp'"),
    ({"dims": {"dp": 2, "tp": 2}, "order": "tp-pp"}, "it names each of them once"),
    ({"dims": {"dp": 2, "tp": 2}, "order": "tp-dp-tp"}, "it names each of them once"),
    ({"dims": {"dp": 2, "tp": 2}, "order": "tp-dp-xp"}, "it names each of them once"),
    ({"dims": {"dp": 2, "tp": 2}, "order": 3}, "it names each of them once"),
    ({"dims": {"dp": 2}, "needs_data": None}, "it is True or False"),
])  # fmt: skip
def test_a_mesh_that_cannot_be_is_refused(options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.Mesh(**{"rank": 0, **options})


def test_a_mesh_has_as_many_processes_as_were_started(monkeypatch):
    with pytest.raises(leat.InvalidArgument, match="nothing says which of the 4 processes"):
        leat.Mesh({"dp": 2, "tp": 2})
    assert leat.Mesh({"dp": 1}).world_size == 1
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")

    assert leat.Mesh({"dp": 2, "tp": 2}).coordinate == {"dp": 1, "tp": 1}
    with pytest.raises(leat.InvalidArgument, match="dp 2 x tp 4 has 8 processes, and the launcher started 4"):
        leat.Mesh({"dp": 2, "tp": 4})


def test_processes_of_one_rank_share_the_limits_of_their_node(folder):
    program = """
import sys, leat
leat.Loader(sys.argv[1], batch_size=2, train=True, threads=8, max_in_flight=32, memory="64MiB",
            rank=leat.Mesh({"dp": 2, "tp": 2}, rank=0)).close()
"""
    done = run_python(program, folder, MASTER_ADDR="127.0.0.1")

    assert "4 ranks on this node share 8 threads, 32 requests in flight and 64 MiB of memory: 2, 8 and 16 MiB each" in done.stderr


def test_a_mesh_stands_alone(folder):
    mesh = leat.Mesh({"dp": 2}, rank=0)
    with pytest.raises(leat.InvalidArgument, match="world_size=2 beside a mesh"):
        leat.Loader(folder, batch_size=2, train=True, rank=mesh, world_size=2)
    with pytest.raises(leat.InvalidArgument, match=r"give rank=leat.Mesh\({'dp': 2}\)"):
        leat.Loader(folder, batch_size=2, train=True, rank={"dp": 2})


def test_a_mesh_without_data_dimensions_is_said_once(caplog, monkeypatch):
    monkeypatch.setattr(_say, "_said", set())
    caplog.set_level("INFO", "leat")
    for _ in range(2):
        assert leat.Mesh({"tp": 2, "pp": 2}, rank=0).world_size == 1

    assert caplog.text.count("the mesh tp 2 x pp 2 has no data dimension: all 4 processes get the same batches") == 1


FAKE = """
import leat, torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

def refusal(mesh, **options):
    try:
        leat.Mesh(mesh, **options)
    except leat.InvalidArgument as error:
        return str(error)

for rank in range(8):
    dist.init_process_group("fake", rank=rank, world_size=8, store=FakeStore())
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp_replicate", "dp_shard", "tp"))
    data = mesh["dp_replicate", "dp_shard"]
    for good in (mesh, data, data._flatten("dp")):
        found = leat.Mesh(good)
        assert (found.rank, found.world_size, found.process, found.processes) == (rank // 2, 4, rank, 8), found
        assert found._has_copies and found._speaks == (rank % 2 == 0)
    assert leat.Mesh(mesh["dp_shard"], data="dp_shard").world_size == 2
    assert "'dp_replicate' is missing" in refusal(mesh["dp_shard"])
    assert "'dp_replicate' is missing" in refusal(mesh["tp"])
    assert "differ in 'tp' too" in refusal(mesh["dp_shard", "tp"]._flatten("fsdp"))
    assert "beside a DeviceMesh" in refusal(mesh, rank=1)
    assert "has no names" in refusal(init_device_mesh("cpu", (8,)))
    assert refusal({"dp": 8}) is None
    assert "has 4 processes, and torch.distributed has 8" in refusal({"dp": 4})
    assert "torch.distributed says" in refusal({"dp": 8}, rank=(rank + 1) % 8)
    small = DeviceMesh("cpu", [0, 1], mesh_dim_names=("dp",))
    if rank > 1:
        assert f"process {rank} of 8 is not in" in refusal(small)
    else:
        assert leat.Mesh(small).rank == rank
    dist.destroy_process_group()
print("done")
"""


def test_parts_of_a_device_mesh():
    pytest.importorskip("torch", reason="torch is not installed")
    done = run_python(FAKE, timeout=120)

    assert done.stdout == "done\n", done.stderr


# --- caches of processes that read the same -----------------------------------


def pair(**options) -> dict:
    return {**USUAL, "rank": leat.Mesh({"tp": 2}, rank=0), **options}


@pytest.mark.parametrize(("options", "says"), [
    ({"ram": "8MiB", "first_within": 16}, "they would get different batches"),
    ({"ram": "8MiB", "locality": "remap"}, 'give locality="sticky"'),
])  # fmt: skip
def test_caches_that_would_give_them_different_batches_are_refused(folder, options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.Loader(folder, **pair(cache=leat.Cache(**options)))


@pytest.mark.parametrize("cache", [None, leat.Cache(ram="8MiB"), leat.Cache(ram="8MiB", shared=True)])
def test_their_cache_is_a_shared_one(folder, serve, cache):
    served = serve(folder)
    leat.Dataset(served.url, **served.options)
    served.reset()
    with contextlib.ExitStack() as stack:
        loaders = [
            stack.enter_context(served.loader(**{**USUAL, "rank": leat.Mesh({"tp": 2}, rank=number)}, epochs=1, cache=cache))
            for number in range(2)
        ]
        for batches in zip(*loaders):
            assert batches[0]["index"].tolist() == batches[1]["index"].tolist()

    assert served.counters()["get"] == N


def test_what_a_shared_cache_would_cost_in_requests_is_said(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(_say, "_said", set())
    caplog.set_level("INFO", "leat")
    make_shards(tmp_path / "shards", shards=2, samples=32, size=1000)
    mesh = leat.Mesh({"dp": 2, "tp": 2}, rank=0)

    with leat.Loader(tmp_path / "shards", global_batch_size=8, train=True, rank=mesh):
        assert "read its samples" not in caplog.text
    with leat.Loader(tmp_path / "shards", global_batch_size=8, train=False, rank=mesh):
        assert "processes of one rank each read its samples: a cache would keep ranks from reading shards in pieces" in caplog.text


def test_only_one_process_of_a_rank_writes_an_order_log(folder, tmp_path):
    for number in range(4):
        with leat.Loader(folder, **USUAL, epochs=1, rank=leat.Mesh({"dp": 2, "tp": 2}, rank=number),
                         trace={"order_log": tmp_path / "run.order", "timeline": tmp_path / "t.json"}) as loader:  # fmt: skip
            for _ in loader:
                pass

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["run.rank0.order", "run.rank1.order", *(f"t.rank{number}.json" for number in range(4))]


# --- processes that need no data -----------------------------------------------


@pytest.mark.parametrize("options", [
    {"train": True},
    {"train": False, "global_batch_size": 10},
    {"train": False, "global_batch_size": 10, "drop_last": "pad"},
    {"train": None, "sampler": list(range(0, 60, 2))},
    {"train": None, "sampler": leat.WeightedSampler([1.0] * N, num_samples=40)},
])  # fmt: skip
def test_a_process_that_needs_no_data_takes_the_same_steps_and_reads_nothing(folder, serve, options):
    served = serve(folder)
    leat.Dataset(served.url, **served.options)
    options = {**USUAL, "shuffle": None, **options}
    ends = leat.Mesh({"pp": 3}, rank=0)
    middle = leat.Mesh({"pp": 3}, rank=1, needs_data=False)
    served.reset()
    with served.loader(**options, rank=middle) as idle, served.loader(**options, rank=ends) as busy:
        assert len(idle) == len(busy) and idle.peek() is None
        for _ in range(2):
            others = iter(idle)
            for _ in busy:
                assert next(others) is None
                assert idle.state_dict() == busy.state_dict()
            assert list(others) == []
            assert idle.state_dict() == busy.state_dict()
        for loader in (idle, busy):  # Broken off; the next iter() is of the next epoch.
            assert len(list(itertools.islice(loader, 2))) == 2
        state = idle.state_dict()
        assert state == busy.state_dict()
        assert next(iter(idle)) is None and next(iter(busy)) is not None
        assert idle.state_dict() == busy.state_dict() != state

    served.reset()
    with served.loader(**options, rank=middle) as idle:
        idle.load_state_dict(state)
        assert list(idle) == [None] * (len(idle) - 2)
    assert served.counters()["get"] == 0


# --- context parallelism ---------------------------------------------------------


def zigzag(values: np.ndarray, dim: int, rank: int, ranks: int) -> np.ndarray:
    """Megatron-LM's way: 2 n chunks, of which a rank takes its own and that from behind."""
    shape = values.shape
    chunks = values.reshape(*shape[:dim], 2 * ranks, shape[dim] // (2 * ranks), *shape[dim + 1 :])
    taken = np.take(chunks, [rank, 2 * ranks - 1 - rank], axis=dim)
    return taken.reshape(*shape[:dim], -1, *shape[dim + 1 :])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_sequence_is_split_in_zigzag(ranks, dim):
    values = np.random.default_rng(1).integers(0, 1000, (24, 48, 24))

    for rank in range(ranks):
        mesh = leat.Mesh({"cp": ranks}, rank=rank)
        assert np.array_equal(mesh.split(values, dim), zigzag(values, dim, rank, ranks))


def test_it_is_torchs_split():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    balancer = pytest.importorskip("torch.distributed.tensor.experimental._context_parallel._load_balancer")
    tokens = torch.arange(2 * 32).reshape(2, 32)
    order = balancer._HeadTailLoadBalancer(32, 4, "cpu")._generate_indices()[0]

    for rank in range(4):
        expected = tokens[:, order].chunk(4, dim=1)[rank]
        assert torch.equal(leat.Mesh({"dp": 1, "cp": 4}, rank=rank).split(tokens), expected)


def test_batches_of_several_arrays_are_split():
    mesh = leat.Mesh({"context": 2}, rank=1)
    tokens = np.arange(16).reshape(2, 8)

    both = mesh.split((tokens, tokens + 1), over="context")
    named = mesh.split({"tokens": tokens}, over="context")

    assert both[0].tolist() == [[2, 3, 4, 5], [10, 11, 12, 13]]
    assert (both[1] - both[0] == 1).all() and named["tokens"].tolist() == both[0].tolist()


def test_packed_rows_are_split(tmp_path):
    documents = [[*range(1, 2 + number % 30), 0] for number in range(200)]
    (tmp_path / "tokens").mkdir()
    np.array(sum(documents, []), "<u2").tofile(tmp_path / "tokens" / "0.bin")
    corpus = leat.Dataset.tokens(tmp_path / "tokens", dtype="uint16", seq_len=64, eos=0)
    pack = leat.Pack(64, adds=("positions", "labels", "segment_ids"))
    options = {"batch_size": 4, "train": True, "sampler": pack, "fields": ("tokens",), "output": "numpy", "epochs": 1}

    with leat.Loader(corpus, **options, rank=0, world_size=1) as alone:
        whole = list(alone)
    parts = []
    for rank in range(2):
        mesh = leat.Mesh({"dp": 1, "cp": 2}, rank=rank)
        with leat.Loader(corpus, **options, rank=mesh) as loader:
            parts.append([mesh.split(batch) for batch in loader])

    assert len(whole) == len(parts[0]) == len(parts[1]) > 3
    for batch, first, second in zip(whole, *parts):
        for array, one, other in zip(batch, first, second):
            assert np.array_equal(np.concatenate([one[:, :16], other, one[:, 16:]], 1), array)


@pytest.mark.parametrize(("values", "options", "says"), [
    (np.zeros((2, 10)), {}, "a sequence of 10, which 2 ranks cannot share: a multiple of 4 goes, such as 8"),
    (np.zeros(9), {}, r"an array of shape \(9,\) has no dimension 1"),
    ({"key": ["a", "b"]}, {}, "str has no dimension 1"),
    (np.zeros((2, 8)), {"over": "sp"}, "over='sp': the mesh has the dimensions 'cp', 'dp'"),
    (np.zeros((2, 8)), {"dim": -1}, "dim=-1"),
])  # fmt: skip
def test_what_cannot_be_split_is_refused(values, options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.Mesh({"cp": 2, "dp": 1}, rank=0).split(values, **options)


# --- the rows of docs/howto/parallelism.md ----------------------------------------


def test_a_rank_waits_for_no_other(folder):
    """Local SGD: ranks meet after many steps. One takes its whole epoch before the other has begun."""
    found = []
    for rank in range(2):
        with leat.Loader(folder, **USUAL, epochs=1, rank=rank, world_size=2) as loader:
            found.append([batch["index"].tolist() for batch in loader])
    with leat.Loader(folder, **USUAL, epochs=1, rank=0, world_size=1) as alone:
        whole = [batch["index"].tolist() for batch in alone]

    assert [one + other for one, other in zip(*found)] == whole


def test_consumers_of_uneven_pace_get_each_sample_once(folder):
    """A parameter server: workers push when they are done, and never meet."""
    options = {**USUAL, "train": False, "global_batch_size": 9, "drop_last": "join"}
    turns = [threading.Semaphore(0) for _ in range(3)]
    found: list[list[int]] = [[], [], []]
    steps = [0, 0, 0]

    def work(rank: int) -> None:
        with leat.Loader(folder, **options, epochs=1, rank=rank, world_size=3) as loader:
            for batch in loader:
                turns[rank].acquire()
                steps[rank] += 1
                found[rank] += batch["index"].tolist()

    workers = [threading.Thread(target=work, args=(rank,)) for rank in range(3)]
    for worker in workers:
        worker.start()
    for rank in (2, 0, 1):  # One after the other: as uneven as can be.
        for _ in range(N):
            turns[rank].release()
        workers[rank].join(60)

    assert sorted(sum(found, [])) == list(range(N))
    assert max(steps) - min(steps) == 1


def test_a_job_that_shrinks_goes_on_where_it_stopped(folder):
    """Elastic: four ranks, then three, then one."""
    whole, _ = steps_of(folder, {"dp": 1})
    came: list[int] = []
    state = None
    for ranks, stop in ((4, 2), (3, 2), (1, 1)):
        found = []
        for rank in range(ranks):
            with leat.Loader(folder, **{**USUAL, "global_batch_size": 12}, rank=rank, world_size=ranks) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                found.append([batch["index"].tolist() for batch in itertools.islice(loader, stop)])
                after = loader.state_dict()
        state = after
        came += sum((sum(parts, []) for parts in zip(*found)), [])

    assert came == sum(whole, [])[: 5 * 12]


def test_names_of_dimensions_say_one_thing():
    assert not set(_mesh._DATA) & set(_mesh._MODEL)
