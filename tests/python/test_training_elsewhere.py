"""Training by gloo on two nodes, on meshes and through losses of processes: the losses are those of one process."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

import leat
from leat._job import _agreement
from leat.testing import find_binary
from small_datasets import make_pictures

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
from namespaces import DEVICE, HUB, address, network, run  # noqa: E402

HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "exact_training.py"
N, G = 96, 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("buckets") / "pictures"
    make_pictures(folder, N)
    return folder


def usual(told: dict, environment: dict[str, str]) -> dict:
    return {
        "args": [sys.executable, str(PROGRAM), json.dumps({"global_batch_size": G, **told})],
        "env": {**os.environ, "OMP_NUM_THREADS": "1", **environment}, "stderr": subprocess.PIPE, "text": True,
    }  # fmt: skip


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def losses_in(folder: pathlib.Path) -> dict[int, float]:
    """By step. A step that was taken again had the same loss."""
    found: dict[int, float] = {}
    for line in lines_in(folder):
        assert found.setdefault(line["step"], line["loss"]) == line["loss"], f"step {line['step']} had another loss"
    return found


def lines_in(folder: pathlib.Path) -> list[dict]:
    path = folder / "losses"
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []


@pytest.fixture(scope="module")
def alone(folder, tmp_path_factory):
    """The losses of one process on the same global batches."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    at = tmp_path_factory.mktemp("alone")
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "RANK": "0", "WORLD_SIZE": "1",
             "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
    done = subprocess.run(**usual({"url": str(folder), "folder": str(at)}, place), check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    found = losses_in(at)
    assert list(found) == list(range(1, N // G + 1)) and len(set(found.values())) == N // G
    return found


@pytest.fixture
def at():
    """A command prefix that runs in node i; the bucket is node 2."""
    if os.geteuid() != 0:
        pytest.skip("each node is a network namespace, and to make one takes root")
    if shutil.which("ip") is None:
        pytest.skip("each node runs ip, which is missing: apt install iproute2")
    with contextlib.ExitStack() as stack:
        try:
            enter = stack.enter_context(network(2, f"leat-mesh-{os.getpid()}-"))
        except subprocess.CalledProcessError as error:
            pytest.skip("each node is a network namespace, and this machine lets root make none "
                        f"(a container without CAP_NET_ADMIN?): {error.stderr.strip()}")  # fmt: skip
        yield enter


class Cluster:
    """Two nodes, and a bucket on a third."""

    def __init__(self, at, stack: contextlib.ExitStack, root: pathlib.Path) -> None:
        self._at = at
        command = [*at(2), find_binary(), "bucket", str(root), "--host", HUB, "--no-credentials", "--latency", "1ms"]
        bucket = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(bucket.kill)
        self.endpoint = bucket.stdout.readline().split()[-1]
        # The name of a socket is short.
        self._places = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2)]
        self._port = 29600

    def counters(self) -> dict:
        program = f"import urllib.request as r; print(r.urlopen('{self.endpoint}/_leat/counters').read().decode())"
        return json.loads(run(*self._at(2), sys.executable, "-c", program))

    def train(self, told: dict, nodes: list[int]) -> list[tuple[int, str]]:
        """Runs a job with a process for each of these nodes; gives how each ended, and what it said."""
        self._port += 1
        running = []
        for number, node in enumerate(nodes):
            place = {
                "MASTER_ADDR": address(0), "MASTER_PORT": str(self._port), "RANK": str(number), "WORLD_SIZE": str(len(nodes)),
                "LOCAL_RANK": str(nodes[:number].count(node)), "LOCAL_WORLD_SIZE": str(nodes.count(node)),
                "GLOO_SOCKET_IFNAME": DEVICE, "XDG_RUNTIME_DIR": self._places[node], "LEAT_CACHE_DIR": self._places[node],
                "AWS_ENDPOINT_URL": self.endpoint,
            }  # fmt: skip
            words = usual({"url": "s3://pictures", **told}, place)
            words["args"] = [*self._at(node), *words["args"]]
            running.append(subprocess.Popen(**words))
        try:
            said = [process.communicate(timeout=200)[1] for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
        return [(process.returncode, text) for process, text in zip(running, said)]


@pytest.fixture
def cluster(at, folder):
    with contextlib.ExitStack() as stack:
        yield Cluster(at, stack, folder.parent)


@pytest.mark.parametrize(("dims", "times"), [({"dp": 2, "tp": 2, "pp": 1}, 1), ({"dp": 1, "tp": 2, "pp": 2}, 2)])
def test_two_nodes_have_the_losses_of_one_process_and_read_what_is_theirs_once(cluster, folder, alone, tmp_path, dims, times):
    """The two nodes of dp 2 read a half each, and those of dp 1 all of it."""
    done = cluster.train({"dims": dims, "folder": str(tmp_path)}, [0, 0, 1, 1])

    assert [status for status, _ in done] == [0] * 4, done
    assert losses_in(tmp_path) == alone
    counted = cluster.counters()
    # The second node takes the listing of the first, and reads a byte to know that it may.
    assert counted["get"] == times * N + 1
    assert counted["bytes"] == times * sum(path.stat().st_size for path in folder.rglob("*.png")) + 1


def test_a_job_that_loses_a_process_goes_on_with_three_and_the_planned_losses(cluster, alone, tmp_path):
    told = {"folder": str(tmp_path)}
    killed = cluster.train({**told, "dims": {"dp": 2, "tp": 2, "pp": 1}, "dies": [2, 3]}, [0, 0, 1, 1])
    assert killed[2][0] == -signal.SIGKILL and all(status != 0 for status, _ in killed), killed
    assert list(losses_in(tmp_path)) == [1, 2, 3]

    rest = cluster.train({**told, "dims": {"dp": 3, "tp": 1, "pp": 1}}, [0, 0, 1])

    assert [status for status, _ in rest] == [0] * 3, rest
    assert losses_in(tmp_path) == alone
    assert [line["ranks"] for line in lines_in(tmp_path)] == [2] * 3 + [3] * 5


class Agents:
    """torchrun on nodes that come and go; all of them are this machine."""

    def __init__(self, stack: contextlib.ExitStack, told: dict) -> None:
        self._stack, self._told, self._port = stack, told, free_port()

    def start(self, is_host: bool = False) -> subprocess.Popen:
        conf = f"is_host={int(is_host)},last_call_timeout=3,keep_alive_interval=2,keep_alive_max_attempt=3,join_timeout=120"
        words = usual(self._told, {
            "GLOO_SOCKET_IFNAME": "lo", "XDG_RUNTIME_DIR": self._stack.enter_context(tempfile.TemporaryDirectory()),
            # Else gloo may find the address of a process that is gone, in a store that outlives it.
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        })  # fmt: skip
        words["args"] = [
            sys.executable, "-m", "torch.distributed.run", "--nnodes=1:2", "--nproc-per-node=2", "--max-restarts=3",
            "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self._port}", "--rdzv-id=elastic", f"--rdzv-conf={conf}",
            "--monitor-interval=0.1", *words["args"][1:],
        ]  # fmt: skip
        agent = subprocess.Popen(**{**words, "stderr": None}, start_new_session=True)
        self._stack.callback(agent.wait)
        self._stack.callback(end, agent)
        return agent


def end(agent: subprocess.Popen) -> None:
    """It and its workers, at once."""
    with contextlib.suppress(ProcessLookupError):
        children = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children")
        workers = children.read_text().split() if children.exists() else []
        for pid in [agent.pid, *map(int, workers)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_torchrun_restarts_with_other_world_sizes_and_the_losses_stay(folder, alone, tmp_path):
    """Two nodes of two processes; one is lost; later another joins."""
    gate = tmp_path / "gate"

    def opened(step: int, wanted) -> None:
        new = tmp_path / "gate.new"
        new.write_text(str(step))
        new.rename(gate)
        while not any(wanted(line) for line in lines_in(tmp_path)):  # The test's alarm ends it.
            assert first.poll() is None
            time.sleep(0.05)

    gate.write_text("0")
    told = {"url": str(folder), "folder": str(tmp_path), "gate": str(gate)}
    with contextlib.ExitStack() as stack:
        agents = Agents(stack, told)
        first = agents.start(is_host=True)
        second = agents.start()
        opened(3, lambda line: line["step"] == 3)
        end(second)
        opened(5, lambda line: line["step"] == 5)
        third = agents.start()
        while len(list(tmp_path.glob("began-4-*"))) < 2:
            assert first.poll() is None and third.poll() is None
            time.sleep(0.05)
        opened(N, lambda line: line["step"] == N // G)
        assert (first.wait(100), third.wait(100)) == (0, 0)
    assert losses_in(tmp_path) == alone
    assert [line["processes"] for line in lines_in(tmp_path)] == [4] * 3 + [2] * 2 + [4] * 3


def test_what_processes_said_before_torchrun_started_them_again_is_forgotten(folder, monkeypatch):
    """torchrun's store outlives them: a job that goes on with fewer processes has another order than before."""
    distributed = pytest.importorskip("torch.distributed", reason="torch is not installed: pip install torch")
    store = distributed.HashStore()
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed.distributed_c10d, "_get_default_store", lambda: store)

    def start(restarts: int, world: int, words: str) -> None:
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(restarts))
        monkeypatch.setattr(distributed, "get_world_size", lambda *_: world)
        for _ in range(world):
            monkeypatch.setattr(_agreement, "_made", collections.Counter())
            _agreement.compare_ranks(str(folder), "digest", "dealing", words, world)

    start(0, 4, "on a mesh of dp 4")
    start(1, 2, "on a mesh of dp 2")
    start(1, 4, "on a mesh of dp 4, tp 1")  # Another node joins, which is no failure.
    with pytest.raises(leat.InvalidArgument, match="and another rank: on a mesh of dp 4, tp 1"):
        start(1, 4, "on a mesh of dp 2, tp 2")


# --- as torchft has it: groups that are lost and come back, in mid-epoch -------------


class Groups:
    """Replica groups of a job: they agree on who takes part in a step, and a step counts if all of those did it."""

    def __init__(self, folder: pathlib.Path, count: int) -> None:
        self._folder = folder
        self.alive = list(range(count))
        self.state: dict | None = None
        self.committed: list[list[int]] = []
        self.longest_state = 0.0

    def train_until(self, lost: dict[int, int], joined: dict[int, int]) -> None:
        """Steps till the epoch's end. `lost`, `joined`: by step, the group that dies in it, or comes before it."""
        while True:
            step = len(self.committed)
            if step in joined:
                self.alive.append(joined.pop(step))
            with contextlib.ExitStack() as stack:
                loaders = [stack.enter_context(self.loader(rank)) for rank in range(len(self.alive))]
                batches = [iter(loader) for loader in loaders]
                # The quorum stays until a group is lost or joins.
                while len(self.committed) not in joined:
                    taken = [next(each, None) for each in batches]
                    if all(batch is None for batch in taken):
                        return
                    if (step := len(self.committed)) in lost:
                        self.alive.remove(lost.pop(step))
                        break  # Nobody counts this step.
                    self.committed.append([int(i) for batch in taken for i in batch["index"]])
                    began = time.perf_counter()
                    states = [loader.state_dict() for loader in loaders]
                    self.longest_state = max(self.longest_state, (time.perf_counter() - began) / len(states))
                    assert all(state == states[0] for state in states)
                    self.state = states[0]  # A group that comes back gets it from any other.

    def loader(self, rank: int) -> leat.Loader:
        loader = leat.Loader(
            self._folder, global_batch_size=G, train=True, seed=5, epochs=1, ids=True, batch="dict", output="numpy",
            rank=rank, world_size=len(self.alive), threads=1,
        )  # fmt: skip
        if self.state is not None:
            loader.load_state_dict(self.state)
        return loader


def test_replica_groups_that_are_lost_and_come_back_in_mid_epoch_lose_and_repeat_nothing(folder):
    groups = Groups(folder, 1)
    with groups.loader(0) as loader:
        whole = [batch["index"].tolist() for batch in loader]
    groups = Groups(folder, 4)

    groups.train_until(lost={2: 1, 4: 0}, joined={5: 1, 6: 7})

    assert groups.committed == whole and sorted(groups.alive) == [1, 2, 3, 7]
    assert groups.longest_state < 0.05, "the state of each step is a few numbers"
