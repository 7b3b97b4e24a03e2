"""shuffle="stream" of the ranks of a job that share a store: each scans shards of its own.

The ranks are threads of this process, with a store of their own in the place of torch.distributed's; the last test
is of processes and torch.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import json
import os
import subprocess
import sys
import threading
import time

import pytest

import leat
from leat._job import _scan_board
from small_datasets import make_shards

OPTIONS = {"global_batch_size": 64, "drop_last": "join", "ids": True, "shuffle": leat.Shuffle("stream", 16),
           "batch": "dict", "output": "numpy", "seed": 3, "epochs": 1, "memory": "64MiB"}  # fmt: skip
SHARDS, SAMPLES = 8, 128


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Eight shards of 1.7 MB, all of one window."""
    folder = tmp_path_factory.mktemp("job") / "job-shards"
    make_shards(folder, shards=SHARDS, samples=SAMPLES, size=12_000)
    return folder


class Store:
    """torch.distributed's, as far as boards use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.values: dict[str, bytes] = {}
        self.told: set[str] = set()
        """Names that have been written, removed ones too."""
        self.is_gone = False
        self.fails_once_at = ""

    def _check(self, key: str = "") -> None:
        fails = bool(self.fails_once_at) and key.endswith(self.fails_once_at)
        if fails:
            self.fails_once_at = ""
        if fails or self.is_gone:
            raise RuntimeError("Connection reset by peer")

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        with self._lock:
            self._check()
            assert expected == ""
            return self.values.setdefault(key, desired.encode())

    def set(self, key: str, value: str | bytes) -> None:
        with self._lock:
            self._check(key)
            self.values[key] = value.encode() if isinstance(value, str) else value
            self.told.add(key)

    def add(self, key: str, amount: int) -> int:
        with self._lock:
            self._check()
            self.values[key] = str(int(self.values.get(key, b"0")) + amount).encode()
            return int(self.values[key])

    def delete_key(self, key: str) -> bool:
        with self._lock:
            self._check()
            return self.values.pop(key, None) is not None

    def check(self, keys: list[str]) -> bool:
        with self._lock:
            self._check()
            return all(key in self.values for key in keys)

    def get(self, key: str) -> bytes:
        with self._lock:
            self._check()
            return self.values[key]

    def scanned(self) -> list[int]:
        return sorted(int(key.rpartition("/")[2]) for key in self.told if "/shard/" in key)

    def has_left(self, rank: int, within: float = 0) -> bool:
        end = time.monotonic() + within
        while not (said := any(key.endswith(f"/left/{rank}") for key in list(self.values))) and time.monotonic() < end:
            time.sleep(0.02)
        return said


class Job:
    """The ranks of a job, each a thread. All have opened their loaders before one begins."""

    def __init__(self, monkeypatch, url, ranks: int, cache, **options) -> None:
        self.url, self.ranks, self.options = str(url), ranks, {**OPTIONS, **options}
        self.store = Store()
        self._here = threading.local()
        self._opened = threading.Barrier(ranks)
        monkeypatch.setenv("LEAT_CACHE_DIR", str(cache))
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")  # All ranks have the same folders.
        monkeypatch.setattr(_scan_board, "board", self._board)
        monkeypatch.setattr(_scan_board, "_openings", collections.Counter())  # Each job is of new processes.

    def _board(self):
        return _scan_board.ScanBoard(self.store, self._here.rank, self.ranks)

    def run(self, stop: int | None = None, state=None, with_rank=lambda rank, loader: True) -> list[dict]:
        said: list[dict] = [{} for _ in range(self.ranks)]

        def of(rank: int) -> None:
            self._here.rank = rank
            mine = said[rank] = {"batches": [], "error": None}
            try:
                with leat.Loader(self.url, **self.options, rank=rank, world_size=self.ranks) as loader:
                    mine["repr"] = repr(loader)
                    self._opened.wait(timeout=30)
                    if state is not None:
                        loader.load_state_dict(state)
                    if not with_rank(rank, loader):
                        return
                    for batch in loader:
                        mine["batches"].append(batch["index"].tolist())
                        mine["state"] = loader.state_dict()
                        if len(mine["batches"]) == stop:
                            break
                    mine["stats"] = loader.stats()
            except leat.Error as error:
                mine["error"] = error

        threads = [threading.Thread(target=of, args=(rank,)) for rank in range(self.ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=80)
            assert not thread.is_alive()
        return said


def steps_of(ranks: list[dict]) -> list[list[int]]:
    """The global batches, whoever has which sample."""
    return [sorted(sum(parts, [])) for parts in zip(*(rank["batches"] for rank in ranks), strict=True)]


@pytest.fixture(scope="module")
def whole(shards, tmp_path_factory):
    """The global batches of one rank that has an index."""
    before = os.environ.get("LEAT_CACHE_DIR")
    os.environ["LEAT_CACHE_DIR"] = str(tmp_path_factory.mktemp("indexed"))
    try:
        with leat.Loader(leat.Dataset(str(shards)), **OPTIONS) as loader:
            batches = [sorted(batch["index"].tolist()) for batch in loader]
            return batches, loader.stats()[0]["content_hash"]
    finally:
        os.environ.pop("LEAT_CACHE_DIR")
        if before is not None:
            os.environ["LEAT_CACHE_DIR"] = before


def content_of(ranks: list[dict]) -> str:
    total = sum(int(rank["stats"][0]["content_hash"], 16) for rank in ranks) % 2**128
    return f"{total:032x}"


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_ranks_that_share_a_store_read_each_byte_once(shards, whole, serve, tmp_path, monkeypatch, ranks):
    served = serve(shards)
    stored = sum(path.stat().st_size for path in shards.glob("*.tar"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", served.bucket.url)
    options = {"storage_options": {"no_sign_request": True}, "global_batch_size": 256}
    job = Job(monkeypatch, served.url, ranks, tmp_path, **options)
    said = job.run()

    counters = served.counters()
    assert [rank["error"] for rank in said] == [None] * ranks
    assert all("first epoch indexes" in rank["repr"] for rank in said)
    assert steps_of(said) == [sorted(sum(whole[0][i : i + 4], [])) for i in range(0, len(whole[0]), 4)]
    assert content_of(said) == whole[1]
    assert job.store.scanned() == list(range(SHARDS))
    assert counters["list"] == 1
    # Samples of a step that are not dealt to their shard's rank come once more, alone.
    assert counters["bytes"] <= 1.1 * stored
    # A shard is a piece; two fields of each other sample are two requests.
    assert counters["get"] <= SHARDS + 2 * 0.1 * SHARDS * SAMPLES + 2 * ranks


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("window", [1, 3])
def test_global_batches_are_those_of_an_index(shards, tmp_path, monkeypatch, ranks, window):
    options = {"shuffle": leat.Shuffle("stream", window), "global_batch_size": 48}
    said = Job(monkeypatch, shards, ranks, tmp_path / "a", **options).run()

    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "b"))
    with leat.Loader(leat.Dataset(str(shards)), **{**OPTIONS, **options}) as loader:
        assert steps_of(said) == [sorted(batch["index"].tolist()) for batch in loader]
    # With the index each rank gets the samples that it got without.
    for rank, one in enumerate(said):
        with leat.Loader(leat.Dataset(str(shards)), **{**OPTIONS, **options}, rank=rank, world_size=ranks) as loader:
            assert one["batches"] == [batch["index"].tolist() for batch in loader]


@pytest.mark.parametrize("before, after", [(4, 2), (2, 8), (8, 1)])
def test_a_state_goes_on_at_another_number_of_ranks(shards, whole, tmp_path, monkeypatch, before, after):
    first = Job(monkeypatch, shards, before, tmp_path / "a").run(stop=5)
    state = first[0]["state"]
    assert all(rank["state"] == state for rank in first)

    rest = Job(monkeypatch, shards, after, tmp_path / "c").run(state=state)

    assert steps_of(first) + steps_of(rest) == whole[0]


def test_a_rank_that_leaves_is_scanned_for(shards, whole, tmp_path, monkeypatch):
    """The others read its shards' headers, and all that they deliver."""
    job = Job(monkeypatch, shards, 4, tmp_path, memory="4MB")
    left = threading.Event()

    def with_rank(rank, loader):
        if rank == 2:
            loader.close()
            left.set()
            return False
        return left.wait(timeout=30)

    said = job.run(with_rank=with_rank)

    assert [len(rank["batches"]) for rank in said] == [16, 16, 0, 16]
    got = [set(sum((rank["batches"][step] for rank in said if rank["batches"]), [])) for step in range(16)]
    assert all(part < set(step) and len(part) == 48 for part, step in zip(got, whole[0]))


def test_a_store_that_ends_leaves_each_rank_to_itself(shards, whole, tmp_path, monkeypatch):
    job = Job(monkeypatch, shards, 4, tmp_path, memory="4MB")

    def with_rank(rank, loader):
        job.store.is_gone = True
        return True

    said = job.run(with_rank=with_rank)

    assert [rank["error"] for rank in said] == [None] * 4
    assert steps_of(said) == whole[0]


def test_a_rank_whose_call_of_the_store_fails_once_is_not_waited_for(shards, whole, tmp_path, monkeypatch):
    """It beat on and told of no shard more."""
    job = Job(monkeypatch, shards, 4, tmp_path)
    job.store.fails_once_at = "/shard/1"
    begin = time.monotonic()

    said = job.run()

    assert time.monotonic() - begin < 25  # A rank without a sign is waited for for 30 s.
    assert [rank["error"] for rank in said] == [None] * 4
    assert steps_of(said) == whole[0]
    assert job.store.scanned() == [0, 2, 3, 4, 6, 7]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_rank_whose_scan_has_ended_leaves(tmp_path, monkeypatch, is_damaged):
    """Not when it closes: nobody waits for a rank whose scan failed, and nobody needs its beats."""
    folder = tmp_path / "shards"
    make_shards(folder, shards=4, samples=32, size=20_000)
    if is_damaged:
        cut = folder / "003.tar"
        cut.write_bytes(cut.read_bytes()[: 20_000 * 7])
    job = Job(monkeypatch, folder, 2, tmp_path / "a")
    left, failed = {}, set()

    def with_rank(rank, loader):
        try:
            collections.deque(loader, maxlen=0)
        except leat.Corrupt:
            failed.add(rank)
        left[rank] = job.store.has_left(rank, within=5)
        return False

    job.run(with_rank=with_rank)

    assert failed == ({0, 1} if is_damaged else set())
    assert left == {0: True, 1: True}


def test_a_rank_whose_listing_is_too_large_scans_as_the_others_do(shards, whole, tmp_path, monkeypatch):
    """None takes part in the job's scan, the one that listed neither."""
    monkeypatch.setattr(_scan_board, "MOST_BYTES", 100)
    job = Job(monkeypatch, shards, 2, tmp_path)
    left = {}

    def with_rank(rank, loader):
        left[rank] = job.store.has_left(rank)
        return True

    said = job.run(with_rank=with_rank)

    assert left == {0: True, 1: True} and job.store.scanned() == []
    assert steps_of(said) == whole[0]


def test_members_that_the_store_should_not_keep_are_found_by_each_rank(shards, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(_scan_board, "MOST_TOLD", 2 * 5_000)
    put, written = _scan_board.ScanBoard.put, collections.defaultdict(list)

    def noted(board, name, data):
        is_written = put(board, name, data)
        if "/shard/" in name:
            written[name].append(is_written)
        return is_written

    monkeypatch.setattr(_scan_board.ScanBoard, "put", noted)
    said = Job(monkeypatch, shards, 2, tmp_path).run()

    # In the place of members comes a word that they do not.
    refused = [tries for tries in written.values() if tries == [False, True]]
    assert len(written) == SHARDS and 0 < len(refused) < SHARDS
    assert all(tries == [True] for tries in written.values() if tries not in refused)
    assert steps_of(said) == whole[0]


def test_a_board_that_answers_with_another_type_is_lost(shards, whole, tmp_path, monkeypatch):
    """It ended the process, from a thread of the scan."""
    get = _scan_board.ScanBoard.get
    monkeypatch.setattr(_scan_board.ScanBoard, "get", lambda board, name: 7 if "/shard/" in name else get(board, name))

    said = Job(monkeypatch, shards, 2, tmp_path).run()

    assert [rank["error"] for rank in said] == [None] * 2
    assert steps_of(said) == whole[0]


def test_a_damaged_shard_fails_all_ranks_where_it_lies(tmp_path, monkeypatch):
    folder = tmp_path / "shards"
    make_shards(folder, shards=8, samples=32, size=50_000)
    cut = folder / "006.tar"
    cut.write_bytes(cut.read_bytes()[: 50_000 * 7])

    options = {"shuffle": leat.Shuffle("stream", 1), "global_batch_size": 24}
    said = Job(monkeypatch, folder, 4, tmp_path / "a", **options).run()

    for rank in said:
        assert isinstance(rank["error"], leat.Corrupt) and "006.tar" in str(rank["error"])
        assert len(rank["batches"]) == 6 * 32 // 24
    assert len({str(rank["error"]) for rank in said}) == 1


def test_a_rank_with_a_catalogue_of_its_own_keeps_nobody_waiting(shards, whole, tmp_path, monkeypatch):
    job = Job(monkeypatch, shards, 2, tmp_path / "a")
    # It has left before the other one asks.
    job.store.set(f"{_opening(monkeypatch, str(shards))}/left/1", b"")
    begin = time.monotonic()

    def with_rank(rank, loader):
        return rank == 0

    said = job.run(with_rank=with_rank)

    assert len(said[0]["batches"]) == 16 and time.monotonic() - begin < 25  # By itself it would wait 30 s.


def _opening(monkeypatch, url: str) -> str:
    probe = _scan_board.ScanBoard(Store(), 1, 2)
    name = probe.begin(url)
    probe.end(name, 0)
    monkeypatch.setattr(_scan_board, "_openings", collections.Counter())
    return name


def test_what_ranks_told_each_other_is_removed_once_all_know_it(shards, tmp_path, monkeypatch):
    job = Job(monkeypatch, shards, 4, tmp_path)
    kept, beats = {}, []
    all_know = threading.Barrier(4)

    def with_rank(rank, loader):
        for _ in loader:
            pass
        all_know.wait(timeout=30)
        # All loaders are open, and nobody scans any more.
        kept[rank] = [key for key in list(job.store.values) if "/shard/" in key or key.endswith("/listing")]
        beats.append([thread.name for thread in threading.enumerate() if thread.name == "leat-scan-beat"])
        return False

    job.run(with_rank=with_rank)

    assert job.store.scanned() == list(range(SHARDS))
    assert kept == {rank: [] for rank in range(4)}
    assert beats[0] == []


def test_ranks_of_several_nodes_have_folders_of_their_own(shards, whole, tmp_path, monkeypatch):
    """Files of one name have other times on each node, and reads of another node's versions would fail."""
    job = Job(monkeypatch, shards, 2, tmp_path)
    monkeypatch.delenv("MASTER_ADDR")

    said = job.run()

    assert [rank["error"] for rank in said] == [None] * 2
    assert steps_of(said) == whole[0]
    assert job.store.scanned() == [] and not any("listing" in key for key in job.store.told)


INTERRUPTED = """
import sys, threading, time, leat
from leat._job import _scan_board
from test_stream_job import OPTIONS, Store

class Board(_scan_board.ScanBoard):
    def put(self, name, data):
        if sys.argv[2] == "put" and "/left/" in name:
            raise KeyboardInterrupt  # As a handler does that runs now.
        return super().put(name, data)

    def end(self, opening, shards):
        if sys.argv[2] == "end":
            raise KeyboardInterrupt
        super().end(opening, shards)

class Lasts:  # So long Python takes to end, in which the thread that closes goes on.
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

lasts = Lasts()
_scan_board.board = lambda: Board(Store(), 0, 2)
loader = leat.Loader(sys.argv[1], **OPTIONS, rank=0, world_size=2)
try:
    loader.close()
    time.sleep(5)
except KeyboardInterrupt:
    print("heard")
if sys.argv[2] == "put":  # It ended nevertheless.
    time.sleep(0.5)
    assert "leat-scan-beat" not in [thread.name for thread in threading.enumerate()]
"""


@pytest.mark.parametrize("during", ["put", "end"])
def test_ctrl_c_while_a_loader_closes_is_heard(shards, tmp_path, during):
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(shards), during], capture_output=True, text=True, timeout=60,
        env={**os.environ, "LEAT_CACHE_DIR": str(tmp_path), "MASTER_ADDR": "127.0.0.1",
             "PYTHONPATH": f"{os.path.dirname(__file__)}:{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "heard\n"), ended.stderr


COLLECTED = """
import sys, time, leat
from leat._job import _scan_board
from test_stream_job import OPTIONS, Store

class Slow(Store):
    def check(self, keys):
        time.sleep(0.05)  # Lets go of the GIL, and wants it back.
        return super().check(keys)

store = Slow()
_scan_board.board = lambda: _scan_board.ScanBoard(store, 0, 2)
del leat.Loader.__del__  # It closes. A loader that could not be made whole has none that does.
for _ in range(5):
    loader = leat.Loader(sys.argv[1], **OPTIONS, rank=0, world_size=2)
    time.sleep(0.2)
    del loader
print("collected")
"""


def test_a_loader_that_nobody_closed_can_be_collected(shards, tmp_path):
    """Its scan looks for the shards of another rank, which takes the GIL."""
    ended = subprocess.run(
        [sys.executable, "-c", COLLECTED, str(shards)], capture_output=True, text=True, timeout=60,
        env={**os.environ, "LEAT_CACHE_DIR": str(tmp_path), "MASTER_ADDR": "127.0.0.1",
             "PYTHONPATH": f"{os.path.dirname(__file__)}:{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "collected\n"), ended.stderr


def test_messages_too_large_for_the_store_are_told_of(monkeypatch):
    monkeypatch.setattr(_scan_board, "MOST_BYTES", 100)
    board = _scan_board.ScanBoard(Store(), 0, 2)
    assert not board.put("a", os.urandom(200)) and board.get("a") is None
    assert board.put("a", b"0" * 10_000) and board.get("a") == b"0" * 10_000


def test_a_rank_writes_its_part_of_what_the_store_should_keep(monkeypatch):
    monkeypatch.setattr(_scan_board, "MOST_TOLD", 2_000)
    board = _scan_board.ScanBoard(Store(), 0, 2)
    assert board.put("a", os.urandom(600))
    assert not board.put("b", os.urandom(600)) and board.get("b") is None
    assert board.put("c", os.urandom(375))
    assert not board.put("d", os.urandom(100))
    assert board.put("left/0", b"") and board.put("d", b"T")  # Without them others would wait in vain.


def test_messages_that_are_cut_short_are_corrupt():
    store = Store()
    board = _scan_board.ScanBoard(store, 0, 2)
    board.put("a", b"0" * 10_000)
    store.set("a", store.get("a")[:-3])
    with pytest.raises(leat.Corrupt, match="cut short"):
        board.get("a")
    store.set("a", b"no such thing")
    with pytest.raises(leat.Corrupt, match="cannot be unpacked"):
        board.get("a")


def test_a_call_that_waits_on_the_jobs_store_stops_no_beats(monkeypatch):
    distributed = pytest.importorskip("torch.distributed", reason="torch is not installed: pip install torch")
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    monkeypatch.setattr(_scan_board, "job_store", lambda world_size: store)
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(distributed, "get_rank", lambda: 0)
    board = _scan_board.board()
    assert board is not None

    def wait() -> None:
        with contextlib.suppress(RuntimeError):
            store.wait(["nobody writes it"], datetime.timedelta(seconds=20))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.5)
    begin = time.monotonic()
    assert board.put("a", b"0") and board.get("a") == b"0"
    assert time.monotonic() - begin < 10
    assert store.check(["a"])
    waiting.join()


TORCH = """
import json, os, sys, torch.distributed, leat
torch.distributed.init_process_group(
    "gloo", init_method="file://" + sys.argv[2], rank=int(os.environ["RANK"]), world_size=2)
with leat.Loader(sys.argv[1], shuffle=leat.Shuffle("stream", 16), global_batch_size=64, ids=True, batch="dict",
                 output="numpy", drop_last="join", seed=3, epochs=1,
                 storage_options={"no_sign_request": True}) as loader:
    torch.distributed.barrier()
    batches = [batch["index"].tolist() for batch in loader]
    torch.distributed.barrier()
print(json.dumps(batches))
"""


def test_processes_that_torch_joins(shards, whole, serve, tmp_path):
    """Two nodes, of a process each."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    served = serve(shards)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TORCH, served.url, str(tmp_path / "store")],
            env={**os.environ, "LEAT_CACHE_DIR": f"{tmp_path}/{rank}", "RANK": str(rank), "WORLD_SIZE": "2",
                 "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "AWS_ENDPOINT_URL": served.bucket.url},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        for rank in range(2)
    ]
    said = [{"batches": json.loads(process.communicate(timeout=60)[0])} for process in processes]
    assert steps_of(said) == whole[0]
    assert served.counters()["bytes"] <= 1.15 * sum(path.stat().st_size for path in shards.glob("*.tar"))
