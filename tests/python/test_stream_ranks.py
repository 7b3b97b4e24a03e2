"""shuffle="stream" of several ranks: one of a node scans, the others hear of it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

import leat
from small_datasets import make_shards, write

OPTIONS = {"global_batch_size": 24, "drop_last": "join", "ids": True, "shuffle": leat.Shuffle("stream", 2), "batch": "dict", "output": "numpy",
           "seed": 3, "epochs": 1}  # fmt: skip
SMALL = 8 * 32
"""Samples of `small`."""
STOPS = "14MB"
"""With two ranks, the one that scans `small` and delivers no more stops after a few shards."""

RANK = """
import json, sys, leat
url, options, steps = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
said = {"batches": [], "keys": [], "valid": [], "later": []}
options["shuffle"] = leat.Shuffle(**options["shuffle"])
if "tiers" in options:
    options["cache"] = leat.Cache(**options.pop("tiers"))

def run(loader):
    if state := steps.get("state"):
        loader.load_state_dict(state)
    print("open", flush=True)
    if "waits" in steps:
        sys.stdin.readline()
    for batch in loader:
        said["batches"].append(batch["index"].tolist())
        said["keys"] += batch["key"]
        said["valid"] += batch["valid"].tolist() if "valid" in batch else []
        if "txt" in batch:
            assert [text.decode() for text in batch["txt"].tolist()] == batch["key"]
        if len(said["batches"]) == steps.get("pause"):
            print("paused", flush=True)
            sys.stdin.readline()
        if len(said["batches"]) == steps.get("stop"):
            return
    for _ in range(steps.get("more", 0)):
        said["later"].append([batch["index"].tolist() for batch in loader])

try:
    with leat.Loader(url, **options) as loader:
        try:
            said["length"] = len(loader)
        except TypeError:
            said["length"] = None
        try:
            run(loader)
        finally:
            epochs = loader.stats()  # none where not even the first began
            said |= {"stats": epochs[0] if epochs else None, "state": loader.state_dict(),
                     "all": epochs}
except leat.Error as error:
    said["error"] = [type(error).__name__, str(error)]
print(json.dumps(said), flush=True)
"""


class Job:
    """Ranks as torchrun starts them. Each node has a cache of its own."""

    def __init__(self, url, cache, ranks: int, *, nodes: int = 1, endpoint: str = "", **options):
        self.url, self.cache, self.ranks, self.nodes = str(url), cache, ranks, nodes
        self.options = {**OPTIONS, **options}
        self.environment = {**os.environ}
        if endpoint:
            self.options["storage_options"] = {"no_sign_request": True}
            self.environment["AWS_ENDPOINT_URL"] = endpoint
        self.started: list[subprocess.Popen] = []

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def start(self, rank: int, **steps) -> subprocess.Popen:
        """Up to where it has been opened."""
        process = self.launch(rank, **steps)
        self.expect(process, "open")
        return process

    def launch(self, rank: int, **steps) -> subprocess.Popen:
        local = self.ranks // self.nodes
        launch = {"RANK": rank, "WORLD_SIZE": self.ranks, "LOCAL_RANK": rank % local,
                  "LOCAL_WORLD_SIZE": local,
                  "LEAT_CACHE_DIR": f"{self.cache}/{rank // local}"}  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-c", RANK, self.url, json.dumps(self.options, default=dataclasses.asdict), json.dumps(steps)],
            env={**self.environment, **{name: str(value) for name, value in launch.items()}},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    @staticmethod
    def expect(process: subprocess.Popen, word: str) -> None:
        if (said := process.stdout.readline().strip()) != word:
            raise AssertionError(f"{said!r} instead of {word!r}: {process.communicate()[1]}")

    @staticmethod
    def let_go(process: subprocess.Popen) -> None:
        process.stdin.write("\n")
        process.stdin.flush()

    @staticmethod
    def ended(process: subprocess.Popen) -> dict:
        out, err = process.communicate(timeout=80)
        assert process.returncode == 0, err
        return json.loads(out.splitlines()[-1]) | {"said": err}

    def run(self, **steps) -> list[dict]:
        """All of them, the last first: the worst order."""
        processes = [self.launch(rank, **steps) for rank in reversed(range(self.ranks))]
        return [self.ended(process) for process in reversed(processes)]


def with_catalogue(folder, cache) -> None:
    """The folder in which the ranks of a job's first node look for one."""
    environment = {**os.environ, "LEAT_CACHE_DIR": f"{cache}/0"}
    subprocess.run(["leat", "index", str(folder)], env=environment, check=True,
                   capture_output=True)  # fmt: skip


def indexed(folder, cache, ranks: int, more: int = 0, **options) -> list[dict]:
    """The ranks' samples if there was a catalogue before."""
    with_catalogue(folder, cache)
    with Job(folder, cache, ranks, **options) as job:
        return job.run(more=more)


def steps_of(ranks: list[dict]) -> list[list[int]]:
    """The global batches."""
    return [sum(parts, []) for parts in zip(*(rank["batches"] for rank in ranks), strict=True)]


def check_same(ranks: list[dict], expected: list[dict]) -> None:
    for rank, indexed_rank in zip(ranks, expected, strict=True):
        assert rank["batches"] == indexed_rank["batches"]
        assert (rank["keys"], rank["valid"]) == (indexed_rank["keys"], indexed_rank["valid"])
        for name in ("order_hash", "content_hash", "samples"):
            assert rank["stats"][name] == indexed_rank["stats"][name]
        # Some may not know it yet.
        for state in (rank["state"], indexed_rank["state"]):
            assert state | {"samples": 0} == ranks[0]["state"] | {"samples": 0}


def kill(process: subprocess.Popen) -> None:
    process.kill()
    process.communicate()


def scan_logs(cache) -> list:
    return list(cache.glob("**/*.scan"))


# --- what comes -------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"shuffle": leat.Shuffle("stream", 1), "drop_last": True}, {"global_batch_size": 84},
                {"drop_last": "pad", "shuffle": leat.Shuffle("stream", 1)}]
)  # fmt: skip
def test_each_rank_gets_its_slice_of_the_indexed_order(small, tmp_path, ranks, options):
    with Job(small, tmp_path / "a", ranks, **options) as job:
        streamed = job.run()

    expected = indexed(small, tmp_path / "b", ranks, **options)
    assert all(rank["length"] for rank in expected)
    check_same(streamed, expected)
    ids = sorted(i for batch in steps_of(streamed) for i in batch)
    if options.get("drop_last") == "pad":
        assert sorted(ids, reverse=True)[0] == SMALL - 1 and len(ids) == 11 * 24
        assert sum(sum(rank["valid"]) for rank in streamed) == SMALL
    elif options.get("drop_last"):
        assert len(ids) == SMALL // 24 * 24 and len(set(ids)) == len(ids)
    else:
        assert ids == list(range(SMALL))
    assert not scan_logs(tmp_path)


def test_ranks_of_two_nodes(small, tmp_path):
    """Each node scans for its own ranks; one has the catalogue already."""
    with Job(small, tmp_path / "a", 4, nodes=2) as job:
        streamed = job.run()
    assert [rank["length"] for rank in streamed].count(None) >= 2
    check_same(streamed, indexed(small, tmp_path / "b", 4))

    (tmp_path / "b" / "1").mkdir()
    with Job(small, tmp_path / "b", 4, nodes=2) as job:
        mixed = job.run()
    assert all(rank["length"] for rank in mixed[:2])
    check_same(mixed, streamed)


def test_one_rank_lists_and_scans(large, serve, tmp_path):
    served = serve(large)
    stored = sum(path.stat().st_size for path in large.glob("*.tar"))
    with Job(served.url, tmp_path, 2, endpoint=served.bucket.url, memory="1GiB") as job:
        # Both know nothing but the listing when they begin.
        waiting = [job.start(rank, waits=True) for rank in range(2)]
        for process in waiting:
            job.let_go(process)
        ranks = [job.ended(process) for process in waiting]

    counters = served.counters()
    requests = [rank["stats"]["requests"]["get"] for rank in ranks]
    read = [rank["stats"]["bytes_read"] for rank in ranks]
    samples = ranks[1]["stats"]["samples"]
    assert counters["list"] <= 2  # Rank 1 may look whether what rank 0 listed still holds.
    # Rank 0 reads each byte once, in pieces; rank 1 its own samples, of two fields.
    assert (requests[0], read[0]) == (6, stored)
    assert requests[1] <= 2 * samples and read[1] < samples * 2**18 * 1.01
    # Beside them: is there a catalogue beside the data?
    assert counters["get"] <= sum(requests) + 4
    assert counters["bytes"] <= sum(read) * 1.01


def test_a_rank_that_comes_late_finds_the_catalogue(small, tmp_path):
    with Job(small, tmp_path / "a", 2) as job:
        first = job.ended(job.launch(0))
        late = job.ended(job.launch(1))
    assert late["length"]
    check_same([first, late], indexed(small, tmp_path / "b", 2))


def test_ranks_without_a_launcher(small, fresh_cache):
    """Threads of one process, which nobody has said share a node."""
    got: list[list[list[int]]] = [[], []]

    def run(rank):
        with leat.Loader(small, **OPTIONS, rank=rank, world_size=2) as loader:
            got[rank] = [batch["index"].tolist() for batch in loader]

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with leat.Loader(leat.Dataset(small), **OPTIONS) as loader:
        whole = [batch["index"].tolist() for batch in loader]
    assert [sorted(a + b) for a, b in zip(*got, strict=True)] == [sorted(step) for step in whole]


@pytest.mark.parametrize("first", [0, 1])
def test_ranks_need_not_go_in_step(small, tmp_path, first):
    """The rank that scans may rest, though the memory that it reads ahead
    into is full."""
    with Job(small, tmp_path / "a", 2, memory=STOPS) as job:
        processes = [job.start(rank, waits=True) for rank in range(2)]
        ranks = [{}, {}]
        for rank in (first, 1 - first):
            job.let_go(processes[rank])
            ranks[rank] = job.ended(processes[rank])
    assert [rank["length"] for rank in ranks] == [None, None]
    check_same(ranks, indexed(small, tmp_path / "b", 2, memory=STOPS))


# --- position ---------------------------------------------------------------


@pytest.mark.parametrize("has_catalogue", [False, True])
def test_a_state_of_the_first_epoch_goes_on_exactly(small, tmp_path, has_catalogue):
    with Job(small, tmp_path / "a", 2) as job:
        ranks = job.run(stop=3)
    assert [len(rank["batches"]) for rank in ranks] == [3, 3]
    state = ranks[0]["state"]
    assert state["position"] == ranks[1]["state"]["position"] == 3 * 24
    whole = steps_of(indexed(small, tmp_path / "b", 2))

    with Job(small, tmp_path / ("b" if has_catalogue else "c"), 3) as job:
        rest = job.run(state=state)

    # Three ranks divide a step otherwise than two.
    assert [sorted(step) for step in whole] == [sorted(step) for step in steps_of(ranks) + steps_of(rest)]


# --- with a cache, and with a locality --------------------------------------


def epochs_of(ranks: list[dict]) -> list[list[list[list[int]]]]:
    """The batches of each rank and epoch."""
    return [[rank["batches"], *rank["later"]] for rank in ranks]


def test_local_ranks_keep_for_each_other_what_they_index(small, serve, tmp_path):
    served = serve(small)
    # Two fields a sample, each a record of its own.
    tiers = {"ram": "64MiB"}
    with Job(served.url, tmp_path, 2, endpoint=served.bucket.url, tiers=tiers, epochs=8,
             memory=STOPS) as job:  # fmt: skip
        # Both know nothing but the listing when they begin.
        processes = [job.start(rank, waits=True, more=7) for rank in range(2)]
        for process in processes:
            job.let_go(process)
        ranks = [job.ended(process) for process in processes]
    assert [rank["length"] for rank in ranks] == [None, None]
    plain = indexed(small, tmp_path / "b", 2, tiers=tiers, epochs=8, more=7)
    assert epochs_of(ranks) == epochs_of(plain)
    assert served.counters()["list"] == 1
    misses = [sum(rank["all"][epoch]["cache"]["misses"] for rank in ranks) for epoch in (0, 7)]
    # Both fields of each sample; each hears of the other's writes a little later.
    assert misses[0] > SMALL and misses[1] <= misses[0] // 10
    for rank, expected in zip(ranks, plain, strict=True):
        assert rank["all"][7]["requests"]["get"] <= misses[1]
        assert rank["all"][7]["content_hash"] == expected["all"][7]["content_hash"]


LOCALITIES = ["sticky", "remap", "balance"]
THIRD = {"ram": SMALL // 3 * (53_248 + 8192)}
"""The room of a third of the samples in a tier, with each sample's overhead."""


@pytest.mark.parametrize("locality", LOCALITIES)
@pytest.mark.parametrize("nodes", [1, 3])
def test_dealing_needs_no_catalogue_first(small, tmp_path, locality, nodes):
    options = {"tiers": {**THIRD, "locality": locality}, "epochs": 3, "drop_last": True,
               "memory": "21MB"}  # fmt: skip
    with Job(small, tmp_path / "a", 3, nodes=nodes, **options) as job:
        processes = [job.start(rank, waits=True, more=2) for rank in range(3)]
        for process in processes:
            job.let_go(process)
        streamed = [job.ended(process) for process in processes]
    assert [rank["length"] for rank in streamed] == [None] * 3

    with_catalogue(small, tmp_path / "b")
    for node in range(1, nodes):
        shutil.copytree(tmp_path / "b" / "0", tmp_path / "b" / str(node))
    with Job(small, tmp_path / "b", 3, nodes=nodes, **options) as job:
        dealt = job.run(more=2)
    assert all(rank["length"] for rank in dealt)
    assert epochs_of(streamed) == epochs_of(dealt)

    # With a cache and no locality, ranks take runs of each step.
    with Job(small, tmp_path / "b", 3, drop_last=True, epochs=3, tiers=THIRD) as job:
        runs = job.run(more=2)
    for epoch, (here, there) in enumerate(zip(zip(*epochs_of(dealt)), zip(*epochs_of(runs)))):
        steps = [[sorted(sum(parts, [])) for parts in zip(*ranks)] for ranks in (here, there)]
        assert steps[0] == steps[1]
        # Holders are asked once there can be some.
        is_dealt = locality == "sticky" or epoch > 0
        assert (here != there) == is_dealt, epoch


@pytest.mark.parametrize("locality", LOCALITIES)
@pytest.mark.parametrize("epoch", [0, 1])
def test_dealing_goes_on_where_it_was(small, tmp_path, locality, epoch):
    options = {"tiers": {**THIRD, "locality": locality}, "epochs": 3, "drop_last": True}
    with_catalogue(small, tmp_path / "b")
    with Job(small, tmp_path / "b", 2, **options) as job:
        straight = epochs_of(job.run(more=2))
    with Job(small, tmp_path / "a", 2, **options) as job:
        begun = job.run(stop=4) if epoch == 0 else []
    state = begun[0]["state"] if begun else {}
    if epoch == 1:  # As a rank would say it in the middle of the second.
        with Job(small, tmp_path / "b", 2, **options) as job:
            first = job.run(stop=4)
        state = first[0]["state"] | {"epoch": 1}
    with Job(small, tmp_path / "c", 2, **options) as job:  # Nothing is indexed there.
        rest = job.run(state=state, more=1)
    for rank in range(2):
        expected = straight[rank][epoch : epoch + 2]
        assert [rest[rank]["batches"], *rest[rank]["later"]] == [expected[0][4:], expected[1]]


def test_a_stream_that_begins_elsewhere_is_indexed_before_it_is_dealt(small, tmp_path, monkeypatch):
    """Dealing by holders: the records that they would hold by then have to
    be known."""
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "a"))
    options = {**OPTIONS, "cache": leat.Cache(**THIRD, locality="remap"), "drop_last": True,
               "epochs": 4, "rank": 1, "world_size": 2}  # fmt: skip
    with leat.Loader(small, **options) as loader:
        with pytest.raises(TypeError):
            len(loader)
        loader.set_epoch(2)
        came = [batch["index"].tolist() for batch in loader]
    with leat.Loader(leat.Dataset(small), **options) as loader:
        loader.set_epoch(2)
        assert came == [batch["index"].tolist() for batch in loader]


def test_what_cannot_be_dealt_is_said_before_the_shards_are_read(small, fresh_cache):
    options = {**OPTIONS, "cache": leat.Cache(ram="1MiB", policy="lru", locality="remap"),
               "rank": 1, "world_size": 2}  # fmt: skip
    with pytest.raises(leat.InvalidArgument, match="this one's is lru"):
        leat.Loader(small, **options)


def left_by_the_scanner(data, folder, batches, more=0, **options):
    """The report of the other of two ranks, when the scanning one is killed after this
    many batches."""
    with Job(data, folder, 2, **options) as job:
        scanner = job.start(0, waits=True, pause=batches)
        other = job.start(1, pause=1, more=more)
        job.let_go(scanner)
        job.expect(scanner, "paused")
        job.expect(other, "paused")
        kill(scanner)
        job.let_go(other)
        return job.ended(other)


@pytest.mark.parametrize("batches", [1, 4])
def test_who_scans_and_keeps_dies_in_its_epoch(small, tmp_path, batches):
    options = {"memory": STOPS, "tiers": {"ram": "64MiB"}, "epochs": 2}
    rank = left_by_the_scanner(small, tmp_path / "a", batches, more=1, **options)
    expected = indexed(small, tmp_path / "b", 2, tiers=options["tiers"], epochs=2, more=1)[1]
    assert epochs_of([rank]) == epochs_of([expected])
    assert [epoch["content_hash"] for epoch in rank["all"]] == [
        epoch["content_hash"] for epoch in expected["all"]
    ]


# --- deaths and errors ------------------------------------------------------


def test_the_scan_is_taken_over_from_the_dead(small, serve, tmp_path):
    served = serve(small)
    with Job(served.url, tmp_path / "a", 3, endpoint=served.bucket.url, memory="21MB") as job:
        scanner = job.start(0, waits=True)
        others = [job.start(rank, waits=True) for rank in (1, 2)]
        assert served.counters()["list"] == 1
        kill(scanner)
        for process in others:
            job.let_go(process)
        ranks = [job.ended(process) for process in others]

    assert [rank["length"] for rank in ranks] == [None, None]
    # A rank that takes over looks whether the shards are the same still.
    assert served.counters()["list"] == 2
    check_same(ranks, indexed(small, tmp_path / "b", 3)[1:])
    assert not scan_logs(tmp_path)


@pytest.mark.parametrize("batches", [1, 4])
def test_who_scans_dies_in_its_epoch(small, tmp_path, batches):
    rank = left_by_the_scanner(small, tmp_path / "a", batches, memory=STOPS)
    check_same([rank], indexed(small, tmp_path / "b", 2)[1:])


def test_a_job_that_died_goes_on_with_what_it_had_found(small, serve, tmp_path):
    served = serve(small)
    with Job(served.url, tmp_path / "a", 2, endpoint=served.bucket.url, memory=STOPS) as job:
        scanner = job.start(0, waits=True)
        (log,) = scan_logs(tmp_path)
        while b"001-00000.txt" not in log.read_bytes():  # It has scanned two shards.
            time.sleep(0.01)
        kill(scanner)
        found = log.read_bytes()
        again = job.start(0, waits=True)
        # Not less at any time, nor more: it stops where the other stopped.
        assert log.read_bytes() == found
        other = job.start(1)
        job.let_go(again)
        ranks = [job.ended(again), job.ended(other)]
    check_same(ranks, indexed(small, tmp_path / "b", 2))


def test_what_a_killed_job_left_goes_once_there_is_a_catalogue(begun, tmp_path):
    job, folder, ranks = begun
    for rank in ranks:
        kill(rank)
    assert scan_logs(tmp_path)
    with_catalogue(folder, tmp_path / "a")
    assert scan_logs(tmp_path)  # `leat index` knows nothing of it.
    job.run()
    assert not scan_logs(tmp_path)


def test_no_node_puts_the_catalogue_beside_the_data(small, serve, tmp_path):
    folder = tmp_path / "bucket" / "shards"
    shutil.copytree(small, folder)
    served = serve(folder)
    with Job(served.url, tmp_path / "a", 4, nodes=2, endpoint=served.bucket.url) as job:
        first = job.run()
        served.reset()
        second = job.run()
    assert not (folder / ".leat").exists() and served.counters()["put"] == 0
    assert all(rank["length"] for rank in second)  # Each node has its own now.
    check_same(first, second)


@pytest.fixture
def begun(tmp_path):
    """A job of two ranks over a folder of twelve shards, two of which it knows."""
    folder = tmp_path / "shards"
    make_shards(folder, shards=12, samples=20, size=20_000)
    with Job(folder, tmp_path / "a", 2, memory="4MB") as job:
        yield job, folder, [job.start(rank, waits=True) for rank in range(2)]


def test_what_another_listing_left_is_not_gone_on_with(begun):
    job, folder, (scanner, other) = begun
    kill(other)
    kill(scanner)
    make_shards(folder, shards=12, samples=24, size=20_000)
    ranks = job.run()
    assert sorted(i for batch in steps_of(ranks) for i in batch) == list(range(12 * 24))


def test_shards_that_came_while_one_died_are_told(begun):
    job, folder, (scanner, other) = begun
    write(folder / "more.tar", (folder / "000.tar").read_bytes())
    kill(scanner)
    job.let_go(other)
    name, message = job.ended(other)["error"]
    assert name == "Unavailable" and "start again" in message, message


def test_a_shard_that_is_cut_short_fails_all_ranks_where_it_lies(tmp_path):
    """So batches come before all shards have been looked into."""
    folder = tmp_path / "shards"
    make_shards(folder, shards=8, samples=32, size=50_000)
    cut = folder / "006.tar"
    cut.write_bytes(cut.read_bytes()[: 50_000 * 7])
    with Job(folder, tmp_path / "a", 2, shuffle=leat.Shuffle("stream", 1)) as job:
        ranks = job.run()
    for rank in ranks:
        name, message = rank["error"]
        assert name == "Corrupt" and "006.tar" in message
        assert rank["length"] is None
        assert len(rank["batches"]) == 6 * 32 // 24
    assert ranks[0]["error"] == ranks[1]["error"]


def test_more_ranks_than_samples_are_refused(tmp_path):
    folder = tmp_path / "shards"
    make_shards(folder, shards=1, samples=2, size=100)
    with Job(folder, tmp_path / "a", 3) as job:
        ranks = job.run()
    for rank in ranks:
        name, message = rank["error"]
        assert name == "InvalidArgument" and "use fewer ranks" in message


def test_a_batch_that_does_not_divide_is_refused_at_once(small, fresh_cache):
    with pytest.raises(leat.InvalidArgument, match="does not divide among 2 ranks"):
        leat.Loader(small, **{**OPTIONS, "global_batch_size": 7}, rank=0, world_size=2)


def test_where_nothing_can_be_kept_all_scan_before(small, tmp_path):
    cache = write(tmp_path / "a" / "0", b"a file where a folder should be")
    with Job(small, tmp_path / "a", 2) as job:
        ranks = job.run()
    assert all(rank["length"] for rank in ranks)
    check_same(ranks, indexed(small, tmp_path / "b", 2))
    assert cache.is_file()


def test_what_is_no_shards_is_listed_once(pictures, serve, tmp_path):
    served = serve(pictures)
    with Job(served.url, tmp_path, 3, endpoint=served.bucket.url) as job:
        ranks = job.run()
    assert all(rank["length"] for rank in ranks)
    # A rank that starts late looks whether the catalogue is still true: one page.
    assert 1 <= served.counters()["list"] <= 2


TORCH = """
import json, os, sys, torch.distributed, leat
torch.distributed.init_process_group(
    "gloo", init_method="file://" + sys.argv[2], rank=int(os.environ["RANK"]), world_size=2)
try:
    with leat.Loader(sys.argv[1], shuffle="stream", global_batch_size=8) as loader:
        print("open")
        torch.distributed.barrier()
except leat.InvalidArgument as error:
    print(error)
"""


@pytest.mark.parametrize("is_same", [True, False])
def test_a_rank_with_a_catalogue_and_one_without_compare(small, tmp_path, is_same):
    """Two nodes: by keys and sizes, which both know."""
    environment = {**os.environ, "LEAT_CACHE_DIR": f"{tmp_path}/0"}
    folder = tmp_path / "shards"
    for shard in sorted(small.glob("*.tar"))[:2]:
        write(folder / shard.name, shard.read_bytes())
    subprocess.run(["leat", "index", str(folder)], env=environment, check=True,
                   capture_output=True)  # fmt: skip
    if not is_same:
        write(folder / "more.tar", (small / "002.tar").read_bytes())
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TORCH, str(folder), str(tmp_path / "store")],
            env={**os.environ, "LEAT_CACHE_DIR": f"{tmp_path}/{rank}", "RANK": str(rank),
                 "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        for rank in range(2)
    ]
    if is_same:
        said = [process.communicate(timeout=60)[0] for process in processes]
        assert all("open" in text for text in said), said
        return
    try:
        # One of them is told; the other waits for it at the barrier.
        said = []
        while not any("another rank has" in text for text in said):
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said.append(process.communicate(timeout=0.2)[0])
    finally:
        for process in processes:
            process.kill()
            process.communicate()
