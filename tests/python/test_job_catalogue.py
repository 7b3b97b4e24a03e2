"""A node lists its data once, however many processes a job has there; a job that torch joins, once for all nodes."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

import leat
from leat._job import _agreement, _listing_board
from small_datasets import write

KEYS = 4_200  # Five pages.


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("many") / "keys"
    for number in range(KEYS):
        write(folder / f"{number // 100:03}" / f"{number:05}", b"x")
    return folder


class Job:
    """Processes as a launcher starts them; each node has a cache of its own."""

    def __init__(self, served, caches: pathlib.Path, nodes: int, local: int, **environment):
        self.served, self.caches, self.nodes, self.local = served, caches, nodes, local
        self.environment = environment

    def start(self, rank: int) -> subprocess.Popen:
        node, local = divmod(rank, self.local)
        launch = {"RANK": rank, "WORLD_SIZE": self.nodes * self.local, "LOCAL_RANK": local,
                  "LOCAL_WORLD_SIZE": self.local, "LEAT_CACHE_DIR": self.caches / str(node)}
        return subprocess.Popen(
            ["leat", "stat", self.served.url, "--json", "--endpoint-url",
             self.served.bucket.url, "--no-sign-request"],
            env={**os.environ, **{k: str(v) for k, v in launch.items()}, **self.environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def run(self) -> list[dict]:
        """Starts the last rank first: the worst order."""
        ranks = [self.start(rank) for rank in reversed(range(self.nodes * self.local))]
        return [ended(process) for process in reversed(ranks)]


def ended(process: subprocess.Popen) -> dict:
    out, err = process.communicate(timeout=80)
    assert process.returncode == 0, err
    return json.loads(out) | {"said": err}


@pytest.fixture
def alone(folder, serve, tmp_path) -> int:
    """The LISTs of one process by itself."""
    served = serve(folder, latency="10ms")
    Job(served, tmp_path / "alone", 1, 1).run()
    return served.counters()["list"]


@pytest.fixture(autouse=True)
def nothing_published(folder):
    yield
    shutil.rmtree(folder / ".leat", ignore_errors=True)


def test_one_process_of_a_node_lists(folder, serve, tmp_path, alone):
    served = serve(folder, latency="50ms")
    job = Job(served, tmp_path / "caches", 1, 4)

    ranks = job.run()

    # How a listing is divided depends on how fast its pages come; four ranks would make four.
    assert served.counters()["list"] <= 1.5 * alone + 2
    assert [rank["catalogue"]["source"] for rank in ranks].count("built") == 1
    assert {(rank["samples"], rank["digest"]) for rank in ranks} == {(KEYS, ranks[0]["digest"])}
    assert not (folder / ".leat").exists() or not list((folder / ".leat").iterdir())
    served.reset()
    job.run()
    # One of them looks whether it is still true: at the start of the listing and at its
    # end.
    assert served.counters()["list"] <= 2


def test_each_node_of_a_job_lists_and_writes_nothing(folder, serve, tmp_path, alone):
    served = serve(folder, latency="20ms")
    job = Job(served, tmp_path / "caches", 3, 2)

    ranks = job.run()

    assert served.counters()["list"] <= 3 * (1.5 * alone + 2)  # Six listings if each rank made one.
    assert served.counters()["put"] == 0 and not (folder / ".leat").exists()
    assert len({rank["digest"] for rank in ranks}) == 1
    served.reset()
    ranks = job.run()
    # One of each node looks.
    assert served.counters()["list"] <= 3 * 2 and served.counters()["get"] == 0
    assert {rank["catalogue"]["source"] for rank in ranks} == {"cache"}


def test_what_was_published_is_fetched_once_a_node(folder, serve, tmp_path):
    served = serve(folder, latency="5ms")
    subprocess.run(
        ["leat", "index", served.url, "--publish", "--endpoint-url", served.bucket.url, "--no-sign-request"],
        check=True, capture_output=True,
    )  # fmt: skip
    served.reset()

    ranks = Job(served, tmp_path / "caches", 2, 2).run()

    assert served.counters()["get"] == 2 and served.counters()["list"] <= 2 * 2
    assert {rank["catalogue"]["source"] for rank in ranks} == {"published"}


def test_a_builder_that_dies_is_taken_over(folder, serve, tmp_path):
    served = serve(folder, latency="1s")
    job = Job(served, tmp_path / "caches", 1, 3)
    builder = job.start(0)
    while served.counters()["list"] == 0:
        time.sleep(0.02)
    builder.send_signal(signal.SIGSTOP)  # Or it might be done before it is killed.
    others = [job.start(rank) for rank in (1, 2)]
    time.sleep(1)
    builder.send_signal(signal.SIGKILL)
    builder.communicate()

    told = [ended(other) for other in others]

    assert {rank["samples"] for rank in told} == {KEYS}
    assert sorted(rank["catalogue"]["source"] for rank in told) == ["built", "cache"]


_RANK = """
import os, sys, torch.distributed, leat
torch.distributed.init_process_group(
    "gloo", init_method="file://" + sys.argv[2], rank=int(os.environ["RANK"]), world_size=2)
for number in range(2):
    with leat.Loader(leat.Dataset(sys.argv[1], refresh=sys.argv[3]), global_batch_size=2, shuffle=True) as loader:
        print(len(loader), flush=True)
    if sys.argv[3] == "always":
        torch.distributed.barrier()
        if os.environ["RANK"] == "0":
            for more in "01":
                open(f"{sys.argv[1]}/more{more}.bin", "w").close()
        torch.distributed.barrier()
"""


@pytest.mark.parametrize("changes", ["never", "between their listings", "between two loaders"])
def test_ranks_of_different_data_are_told(tmp_path, changes):
    """Two nodes. Data that grows between two loaders is the same for both ranks."""
    pytest.importorskip("torch")
    folder, rendezvous = tmp_path / "data", tmp_path / "rendezvous"
    for number in range(4):
        write(folder / f"{number}.bin", b"x")
    ranks = []
    for rank in range(2):
        environment = {"RANK": f"{rank}", "WORLD_SIZE": "2", "LOCAL_RANK": "0",
                       "LOCAL_WORLD_SIZE": "1", "LEAT_CACHE_DIR": str(tmp_path / f"{rank}")}
        subprocess.run(["leat", "index", str(folder)], check=True, capture_output=True, env={
            **os.environ, "LEAT_CACHE_DIR": str(tmp_path / f"{rank}")})
        ranks.append(subprocess.Popen(
            [sys.executable, "-c", _RANK, folder, rendezvous,
             "always" if changes == "between two loaders" else "never"],
            env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True))
        if changes == "between their listings":
            write(folder / "more.bin", b"x")

    told = [rank.communicate(timeout=80) for rank in ranks]

    if changes != "between their listings":
        batches = ["2", "2"] if changes == "never" else ["2", "3"]
        assert [out.split() for out, _ in told] == [batches] * 2, told
    else:
        (said,) = [err for rank, (_, err) in zip(ranks, told) if rank.returncode]
        assert "InvalidArgument" in said and "another rank has" in said
        assert "leat index" in said


_RANK_OF_A_JOB = """
import os, sys, torch.distributed, leat
torch.distributed.init_process_group(
    "gloo", init_method="file://" + sys.argv[2], rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
store = {"endpoint_url": sys.argv[3], "no_sign_request": True}
for refresh in sys.argv[4:]:
    data = leat.Dataset(sys.argv[1], refresh=refresh, storage_options=store)
    print(len(data), data.digest, round(data.listed_at), flush=True)
torch.distributed.barrier()
"""


class TorchJob(Job):
    """The same, joined by torch.distributed."""

    def __init__(self, served, caches: pathlib.Path, nodes: int, local: int, *refreshes: str, **environment):
        super().__init__(served, caches, nodes, local, **environment)
        self.refreshes, self.runs = refreshes, 0

    def start(self, rank: int) -> subprocess.Popen:
        node, local = divmod(rank, self.local)
        launch = {"RANK": rank, "WORLD_SIZE": self.nodes * self.local, "LOCAL_RANK": local,
                  "LOCAL_WORLD_SIZE": self.local, "LEAT_CACHE_DIR": self.caches / str(node)}
        meeting = self.caches.parent / f"{self.caches.name}-meeting-{self.runs}"
        return subprocess.Popen(
            [sys.executable, "-c", _RANK_OF_A_JOB, self.served.url, meeting, self.served.bucket.url, *self.refreshes],
            env={**os.environ, **{k: str(v) for k, v in launch.items()}, **self.environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def told(self) -> list[tuple[list[str], str]]:
        """The lines of each rank, and what it logged."""
        ranks = [self.start(rank) for rank in reversed(range(self.nodes * self.local))]
        self.runs += 1
        told = [rank.communicate(timeout=80) for rank in reversed(ranks)]
        assert [rank.returncode for rank in ranks] == [0] * len(ranks), told
        return [(out.splitlines(), err) for out, err in told]


def test_nodes_that_torch_joins_list_once(folder, serve, tmp_path, alone):
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    served = serve(folder, latency="20ms")
    job = TorchJob(served, tmp_path / "caches", 3, 1, "auto", "always")

    told = job.told()

    # One listing for "auto" and one for "always": each node would make six.
    assert served.counters()["list"] <= 2 * (1.5 * alone + 2)
    assert {line.split()[0] for lines, _ in told for line in lines} == {str(KEYS)}
    assert len({tuple(lines) for lines, _ in told}) == 1  # The time of the listing, too.
    # The others read a byte each, to know that they may.
    assert served.counters()["get"] == 2 * 2
    assert all(list((tmp_path / "caches" / f"{node}").rglob("*")) for node in range(3))
    served.reset()
    assert job.told()[0][0][0] == told[0][0][1]
    assert served.counters()["list"] <= 2 + 1.5 * alone + 2  # A look, and "always".


def test_data_that_changed_is_listed_again_once_for_nodes_that_kept_other_catalogues(serve, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    folder = tmp_path / "data"
    write(folder / "0.bin", b"x")
    served = serve(folder)
    place = [served.url, "--endpoint-url", served.bucket.url, "--no-sign-request"]
    for node in range(2):
        environment = {**os.environ, "LEAT_CACHE_DIR": str(tmp_path / "caches" / str(node))}
        subprocess.run(["leat", "index", *place], check=True, capture_output=True, env=environment)
        write(folder / f"{node + 1}.bin", b"x")  # Node 0 knows one object, node 1 two, and there are three.
        for kept in (tmp_path / "caches" / str(node)).rglob("*"):
            os.utime(kept, (time.time() - 3600,) * 2)

    told = TorchJob(served, tmp_path / "caches", 2, 1, "auto").told()

    assert [lines[0].split()[0] for lines, _ in told] == ["3", "3"]
    assert [("listed again" in err) for _, err in told].count(True) == 1


@pytest.fixture
def board():
    """Makes the boards of processes that share a store."""
    distributed = pytest.importorskip("torch.distributed", reason="torch is not installed: pip install torch")
    store = distributed.HashStore()
    return lambda: _listing_board.ListingBoard(store, seconds_to_die=0.5)


def never() -> bool:
    return False


def test_a_posted_catalogue_arrives_whole_in_blocks(board, monkeypatch):
    monkeypatch.setattr(_listing_board, "_BLOCK_BYTES", 1000)
    data = os.urandom(10_500)
    one, other = board(), board()
    assert one.take_turn("o", never) == ("this", "", 0, 0)

    one.post("o", "digest", 17, data)

    assert other.take_turn("o", never) == ("other", "digest", len(data), 17)
    assert other.fetch("o") == data


def test_a_catalogue_too_large_for_the_store_is_told_of_and_not_sent(board, monkeypatch):
    monkeypatch.setattr(_listing_board, "MOST_BYTES", 100)
    one, other = board(), board()
    one.take_turn("o", never)
    one.post("o", "digest", 17, os.urandom(500))

    assert other.take_turn("o", never) == ("other", "digest", 500, 17)
    with pytest.raises(leat.Unavailable, match="too large"):
        other.fetch("o")


@pytest.mark.parametrize("end", ["gives up", "dies"])
def test_a_node_whose_lister_ends_without_a_catalogue_lists_for_itself(board, caplog, end):
    one, other = board(), board()
    one.take_turn("o", never)
    if end == "gives up":
        one.give_up("o")
    else:
        one._end_beats("o")

    assert other.take_turn("o", never)[0] == "nobody"
    assert ("no sign for" in caplog.text) == (end == "dies")


def test_a_node_waits_for_a_lister_that_beats(board, monkeypatch):
    monkeypatch.setattr(_listing_board, "_SECONDS_BETWEEN_BEATS", 0.05)
    one, other = board(), board()
    one.take_turn("o", never)
    began = time.monotonic()

    turn = other.take_turn("o", lambda: time.monotonic() - began > 1.5)

    assert turn[0] == "nobody" and time.monotonic() - began > 1.5  # Only its end stopped it.


def test_a_store_that_ends_leaves_each_node_to_itself(caplog):
    class Gone:
        def compare_set(self, *_):
            raise RuntimeError("Connection reset by peer")

    assert _listing_board.ListingBoard(Gone()).take_turn("o", never)[0] == "nobody"
    assert "each node lists for itself" in caplog.text


_RANK_OF_A_BUCKET = """
import os, sys, torch.distributed, leat
torch.distributed.init_process_group(
    "gloo", init_method="file://" + sys.argv[2], rank=int(os.environ["RANK"]), world_size=2)
store = {"endpoint_url": sys.argv[3], "no_sign_request": True}
for refresh in ("never", "auto"):
    data = leat.Dataset(sys.argv[1], refresh=refresh, storage_options=store)
    try:
        with leat.Loader(data, global_batch_size=2, shuffle=True, batch="dict", output="numpy") as loader:
            print(refresh, *(bytes(data).decode() for batch in loader for data in batch["data"]))
    except leat.InvalidArgument as error:
        print(refresh, error)
    torch.distributed.barrier()
"""


def test_nodes_that_listed_other_versions_of_one_object_are_told(tmp_path, serve):
    """The object has as many bytes as before, so the digests of both listings are equal."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    folder, rendezvous = tmp_path / "data", tmp_path / "rendezvous"
    for number in range(4):
        write(folder / f"{number}.bin", b"old")
    served = serve(folder)
    place = [served.url, "--endpoint-url", served.bucket.url, "--no-sign-request"]
    caches = [tmp_path / f"{rank}" for rank in range(2)]
    environments = [{**os.environ, "LEAT_CACHE_DIR": str(cache)} for cache in caches]
    for cache, environment in zip(caches, environments):
        subprocess.run(["leat", "index", *place], check=True, capture_output=True, env=environment)
        if cache == caches[0]:
            write(folder / "2.bin", b"new")
        for kept in cache.rglob("*"):  # No process of the job, which begins now, may have listed.
            os.utime(kept, (time.time() - 3600,) * 2)

    launch = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", _RANK_OF_A_BUCKET, served.url, rendezvous, served.bucket.url],
            env={**environment, **launch, "RANK": f"{rank}"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank, environment in enumerate(environments)
    ]  # fmt: skip
    told = [rank.communicate(timeout=80) for rank in ranks]

    assert [rank.returncode for rank in ranks] == [0, 0], told
    lines = sorted(line for out, _ in told for line in out.splitlines())
    assert [line.split()[0] for line in lines] == ["auto", "auto", "never", "never"], told
    assert sorted(" ".join(lines[:2]).split()[1:]) == sorted(["auto", "new", "old", "old", "old"])
    (refused,) = [line for line in lines[2:] if "other versions (ETags) of the same objects" in line]
    assert "some were written anew between the two listings" in refused and "leat index" in refused


def test_replicas_of_a_web_server_and_copies_of_a_folder_may_have_etags_of_their_own(folder, caplog):
    distributed = pytest.importorskip("torch.distributed", reason="torch is not installed: pip install torch")
    store = distributed.HashStore()
    for versions in ("of one", "of one", None):
        _agreement.compare_versions((store, "1"), "http://host/x", versions)
    assert not caplog.records

    _agreement.compare_versions((store, "1"), "http://host/x", "of another")

    assert "replicas of one server" in caplog.text
    with pytest.raises(leat.InvalidArgument, match="other versions"):
        _agreement.compare_versions((store, "1"), "s3://b/x", "of another")
    assert leat.Dataset(folder)._native.versions is None


def test_without_local_rank_0_another_builds(folder, serve, tmp_path):
    served = serve(folder, latency="5ms")

    told = ended(Job(served, tmp_path / "caches", 1, 4).start(2))

    assert told["samples"] == KEYS and told["catalogue"]["source"] == "built"
