"""The plan of `leat plan URL` for a bucket, and a loader's real requests to
it."""

from __future__ import annotations

import json
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

import leat
from small_datasets import make_shards

MIB = 2**20


def plan(served, *flags: str) -> dict:
    command = [
        leat.testing.find_binary(), "plan", served.url, "--json",
        "--endpoint-url", served.bucket.url, "--no-sign-request", *flags,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def row(said: dict, name: str) -> dict:
    return next(cache for cache in said["caches"] if cache["name"] == name)


def gets_of(served, epochs: int, **options) -> int:
    """The bucket's count for a loader with nothing else set."""
    with served.loader(epochs=epochs, **options) as loader:
        served.reset()
        for _ in range(epochs):
            for _batch in loader:
                pass
    return served.counters()["get"]


def test_prices_are_those_of_who_serves_the_data(serve, uneven, tmp_path):
    served = serve(uneven, names=["storage.googleapis.com"])
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost storage.googleapis.com\n")
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    # Else this machine would have to believe that name.
    within = f'mount --bind {hosts} /etc/hosts && exec "$@"'
    if subprocess.run([*unshare, within, "sh", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs `unshare --user --mount`, to give the name storage.googleapis.com to this machine")
    words = [
        leat.testing.find_binary(), "plan", served.url, "--json", "--no-sign-request", "--epochs", "1",
        "--endpoint-url", served.bucket.url.replace("127.0.0.1", "storage.googleapis.com"),
    ]  # fmt: skip

    def provider(*flags: str) -> str:
        done = subprocess.run([*unshare, within, "sh", *words, *flags],
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["provider"]

    assert provider() == "gcs"
    assert provider("--provider", "s3") == "s3"
    assert plan(served, "--epochs", "1")["provider"] == "s3"  # The server is unknown.


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """4,000 objects of half a page to a page and a half, and more."""
    folder = tmp_path_factory.mktemp("uneven")
    sizes = random.Random(7)
    for i in range(4000):
        (folder / f"{i:04}.bin").write_bytes(bytes(sizes.randint(500, 6000)))
    return folder


@pytest.mark.parametrize("policy", ["belady", "never_evict"])
def test_objects_hit_as_often_as_planned(serve, uneven, policy):
    served = serve(uneven)
    said = plan(served, "--ram", "8MiB", "--epochs", "4", "--global-batch-size", "20")
    planned = row(said, policy)["gets"]

    # Samples on their way, or waiting to be written, are found too: a window that is
    # short.
    live = gets_of(served, 4, global_batch_size=20, memory="256KiB", max_in_flight=8,
                   cache=leat.Cache(ram=8 * MIB, policy=policy))  # fmt: skip

    assert 8000 < planned < 14000
    assert abs(live - planned) < 0.02 * 16000, (live, planned)


def test_two_tiers_hit_as_often_as_planned(serve, uneven, tmp_path):
    served = serve(uneven)
    said = plan(served, "--ram", "4MiB", "--disk", "4MiB", "--epochs", "4", "--global-batch-size", "20")
    planned = row(said, "belady")["gets"]

    live = gets_of(served, 4, global_batch_size=20, memory="256KiB", max_in_flight=8,
                   cache=leat.Cache(ram=4 * MIB, disk=str(tmp_path / "tier"), disk_limit=4 * MIB))  # fmt: skip

    assert 8000 < planned < 14000
    assert abs(live - planned) < 0.02 * 16000, (live, planned)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """60 shards of 0.4 MB, a piece each."""
    folder = tmp_path_factory.mktemp("planned-shards")
    make_shards(folder, shards=60, samples=10, size=40_000)
    return folder


def test_shards_are_planned_as_they_are_read(serve, shards):
    served = serve(shards)
    flags = ("--epochs", "4", "--global-batch-size", "20", "--ram", "12MiB")
    said = plan(served, *flags)

    assert said["layout"] == "shards" and said["packing"] is None
    assert row(said, "no cache")["gets"] == gets_of(served, 4, global_batch_size=20) == 240
    for policy in ("belady", "never_evict"):  # Half of the pieces fit.
        live = gets_of(served, 4, global_batch_size=20, memory="40MiB", cache=leat.Cache(ram=12 * MIB, policy=policy))
        planned = row(said, policy)["gets"]
        # Samples that wait to be written when an epoch ends, at most the memory's 20,
        # are found too.
        assert 140 < planned < 160
        assert planned - 3 * 20 <= live <= planned + 0.02 * 240


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_of_shards_read_pieces_as_planned(serve, shards, ranks):
    served = serve(shards)
    said = plan(served, "--epochs", "2", "--global-batch-size", "24", "--ranks-per-node", str(ranks))

    live = [gets_of(served, 2, global_batch_size=24, rank=rank, world_size=ranks) for rank in range(ranks)]

    # The plan counts a piece once for each rank that uses it. A rank may read its samples
    # of a piece in two runs.
    planned = row(said, "no cache")["gets"]
    assert 2 * 60 <= planned <= 1.3 * 2 * 60
    assert planned <= sum(live) <= 1.05 * planned


@pytest.mark.parametrize("policy", ["belady", "never_evict"])
def test_ranks_of_shards_hit_as_often_as_planned(serve, tmp_path, policy, monkeypatch):
    """Four ranks of a node, whose cache has room for half of 240 pieces."""
    make_shards(tmp_path / "many", shards=240, samples=10, size=10_000)
    served = serve(tmp_path / "many")
    said = plan(served, "--epochs", "4", "--global-batch-size", "24", "--disk", "12MiB", "--ranks-per-node", "4")
    planned = row(said, policy)["gets"]
    loaders = []
    for rank in range(4):
        for name, value in ("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", 4), ("LOCAL_WORLD_SIZE", 4):
            monkeypatch.setenv(name, str(value))
        loaders.append(served.loader(global_batch_size=24, epochs=4, memory="128MiB",
                                     cache=leat.Cache(disk=tmp_path / "tier", disk_limit=12 * MIB, policy=policy)))  # fmt: skip
    served.reset()
    for _ in range(4):
        for _batches in zip(*loaders):
            pass
    live = served.counters()["get"]
    for loader in loaders:
        loader.close()

    assert 560 < planned < 700
    # Each rank keeps whole pieces in its quarter of the room. On a busy machine a rank may
    # ask for a piece before the others see that one of them has kept it. Nothing kept
    # would make 960.
    assert 0.85 * planned <= live <= 1.3 * planned, (live, planned)


@pytest.mark.parametrize(
    "job",
    [
        "[[solar]]\nsamples = 4000000\nglobal_batch_size = 1000\nepochs = 200\nitems = 100000\n"
        'epoch_order = "fewest_loads"\n',
        "[[deli]]\nname = \"d\"\nsamples = 100000000\nepochs = 1\nfetch_size = 1024\nitems = 2048\n"
        'batch_size = 512\ncompute = "1s"\nget = "1s"\nhit = "1s"\nfetch = "1s"\nfetch_sample = "1s"\n',
    ],
    ids=["solar", "deli"],
)
def test_a_long_simulation_ends_when_it_is_told(tmp_path, job):
    file = tmp_path / "job.toml"
    file.write_text(job)
    command = [leat.testing.find_binary(), "plan", "--simulate", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        status = pathlib.Path(f"/proc/{running.pid}/status")
        heeded = 1 << (signal.SIGTERM - 1)  # From when on it hears signals itself.
        while not int(re.search(r"SigBlk:\s*(\w+)", status.read_text())[1], 16) & heeded:
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 1 and "stopped" in said


@pytest.mark.parametrize("words", [("--version",), ("ops",), ("docs", "metrics")])
def test_what_cannot_be_written_is_a_failure(words):
    command = [leat.testing.find_binary(), *words]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "standard output" in done.stderr
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    assert closed.returncode == 1 and "standard output" in closed.stderr
