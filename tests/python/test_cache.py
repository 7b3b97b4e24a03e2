"""Tiers in RAM and on disk: their savings are counted at the server."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

import leat
from small_datasets import make_shards

N = 60  # The number of `pictures`.
COST = 4096 + 128  # The cost of a record of up to a page.
OPTIONS = {"global_batch_size": 10, "drop_last": False, "fields": ["data"], "batch": "dict"}
MIB = 2**20


def gets_of_epochs(served, epochs: int, **options) -> tuple[list[int], list[dict]]:
    """GETs that the server saw in each epoch, and the loader's report of them."""
    gets = []
    with served.loader(**{**OPTIONS, **options, "epochs": epochs}) as loader:
        served.reset()
        for _ in range(epochs):
            assert sum(len(batch["data"].offsets) - 1 for batch in loader) > 0
            # The next epoch may be on its way already.
            gets.append(served.counters()["get"] - sum(gets))
        stats = loader.stats()
    return gets, stats


def hashes_of(stats: list[dict]) -> list[tuple[str, str]]:
    return [(epoch["order_hash"], epoch["content_hash"]) for epoch in stats]


def without_cache(served, epochs: int, **options) -> list[tuple[str, str]]:
    return hashes_of(gets_of_epochs(served, epochs, **options)[1])


# --- what is saved -----------------------------------------------------------


def test_ram_that_holds_all_leaves_nothing_to_ask_for(pictures, serve):
    served = serve(pictures)
    gets, stats = gets_of_epochs(served, 3, cache=leat.Cache(ram=N * COST))
    # The second epoch begins to be read before the first has ended.
    assert sum(gets) == N and gets[2] == 0
    assert [epoch["cache"]["ram_hits"] for epoch in stats[1:]] == [N, N]
    assert [epoch["cache"]["misses"] for epoch in stats] == [N, 0, 0]
    assert [epoch["requests"]["get"] for epoch in stats] == [N, 0, 0]
    assert stats[1]["bytes_read"] == 0
    assert hashes_of(stats) == without_cache(served, 3)


@pytest.mark.parametrize("policy", ["belady", "never_evict"])
def test_half_the_data_kept_is_half_the_reads_saved(pictures, serve, policy):
    served = serve(pictures)
    ram = N * COST // 2
    with served.loader(**OPTIONS, epochs=4, cache=leat.Cache(ram=ram, policy=policy)) as loader:
        served.reset()
        for _ in range(4):
            for _ in loader:
                assert loader.metrics()["leat_cache_ram_bytes"] <= ram
        stats = loader.stats()
    assert served.counters()["get"] == sum(epoch["requests"]["get"] for epoch in stats)
    for epoch in stats[1:]:
        # More than half: samples that wait to be written are found as well.
        assert epoch["cache"]["ram_hits"] >= 0.4 * N
    assert hashes_of(stats) == without_cache(served, 4)


def test_pieces_of_shards_are_kept_too(tmp_path, serve):
    make_shards(tmp_path / "shards", shards=4, samples=16, size=40_000)
    served = serve(tmp_path / "shards")
    with served.loader(
        global_batch_size=8, drop_last=False, ids=True, epochs=3, cache=leat.Cache(ram=8 * MIB)
    ) as loader:
        served.reset()
        for _ in range(3):
            assert sum(len(batch["index"]) for batch in loader) == 64
        stats = loader.stats()
    assert served.counters()["get"] == 4
    assert [epoch["cache"]["misses"] for epoch in stats] == [4, 0, 0]


# Training reads ahead, and samples on their way, or waiting to be written, count
# as kept: policies that know the order gain nothing by it, the others may.
@pytest.mark.parametrize("policy", ["belady", "windowed_belady", "never_evict", "lru", "fifo"])
def test_the_server_counts_what_leat_plan_said(serve, tmp_path, policy):
    samples, epochs, half = 8000, 2, 4000 * COST
    window = 5000 if policy == "windowed_belady" else 0
    file = tmp_path / "job.toml"
    file.write_text(
        f"[[simulation]]\nsamples = {samples}\nsample_bytes = {COST}\nseed = 5\n"
        f"global_batch_size = 4\nepochs = {epochs}\n"
        f'tiers = [{{policy = "{policy}", capacity = {half}'
        + (f", window = {window}" if window else "") + "}]\n"
    )
    planned = json.loads(leat_command("plan", "--simulate", str(file), "--json").stdout)
    total = planned["simulations"][0]["total"]
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "x.bin").write_bytes(b"x" * 3000)
    served = serve(tmp_path / "many", latency="0ms", repeat=f"many/x.bin:{samples}")
    gets, stats = gets_of_epochs(
        served, epochs, seed=5, global_batch_size=4, memory="32KiB", max_in_flight=4,
        cache=leat.research.Cache(ram=half, policy=policy, window=window),
    )  # fmt: skip
    hits = samples * epochs - sum(gets)
    assert hits == sum(epoch["cache"]["ram_hits"] for epoch in stats)
    assert total["tier_hits"][0] > 1000
    assert hits >= 0.99 * total["tier_hits"][0]
    if policy in ("belady", "windowed_belady", "never_evict"):
        assert hits <= 1.01 * total["tier_hits"][0]


def test_both_tiers_hit_what_leat_plan_said(serve, tmp_path):
    samples, epochs, ram, disk = 8000, 2, 1500 * COST, 2500 * COST
    file = tmp_path / "job.toml"
    file.write_text(
        f"[[simulation]]\nsamples = {samples}\nsample_bytes = {COST}\nseed = 5\n"
        f"global_batch_size = 4\nepochs = {epochs}\n"
        f'tiers = [{{policy = "belady", capacity = {ram}}}, {{policy = "belady", capacity = {disk}}}]\n'
    )
    planned = json.loads(leat_command("plan", "--simulate", str(file), "--json").stdout)
    total = planned["simulations"][0]["total"]
    assert sum(total["tier_hits"]) == 4000
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "x.bin").write_bytes(b"x" * 3000)
    served = serve(tmp_path / "many", latency="0ms", repeat=f"many/x.bin:{samples}")
    gets, stats = gets_of_epochs(
        served, epochs, seed=5, global_batch_size=4, memory="32KiB", max_in_flight=4,
        cache=leat.Cache(ram=ram, disk=str(tmp_path / "cache"), disk_limit=disk),
    )  # fmt: skip
    hits = [sum(epoch["cache"][f"{tier}_hits"] for epoch in stats) for tier in ("ram", "disk")]
    assert samples * epochs - sum(gets) == sum(hits)
    assert 0.99 * 4000 <= sum(hits) <= 1.01 * 4000
    # A record on its way down counts for the tier where it still is.
    assert all(found >= 0.9 * planned for found, planned in zip(hits, total["tier_hits"]))


# --- the disk ----------------------------------------------------------------

RUN = """
import json, sys, leat
url, endpoint, folder, epochs = sys.argv[1:]
loader = leat.Loader(url, global_batch_size=10, shuffle=True, drop_last=False, fields=["data"], batch="dict",
                     storage_options={"endpoint_url": endpoint, "no_sign_request": True}, epochs=int(epochs),
                     cache=leat.Cache(disk=folder, disk_limit="16MiB"))
for _ in range(int(epochs)):
    for batch in loader:
        pass
loader.close()
print(json.dumps(loader.stats()))
"""


def run(served, folder, epochs: int = 1) -> list[dict]:
    """A process of its own, as another day's job is."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, served.url, served.bucket.url, str(folder), str(epochs)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_disk_serves_the_next_process(pictures, serve, tmp_path):
    served = serve(pictures)
    first = run(served, tmp_path / "cache")
    served.reset()
    second = run(served, tmp_path / "cache", epochs=2)
    assert served.counters()["get"] == 0
    assert [epoch["cache"]["disk_hits"] for epoch in second] == [N, N]
    assert hashes_of(first) == hashes_of(second[:1])


def test_a_flipped_byte_is_fetched_again_and_counted(pictures, serve, tmp_path):
    served = serve(pictures)
    folder = tmp_path / "cache"
    first = run(served, folder)
    (segment,) = folder.glob("segment-*.leat")
    data = bytearray(segment.read_bytes())
    written = [at for at in range(0, len(data), 4096) if any(data[at : at + 64])]
    for at in written[-10:]:  # The index is in front.
        data[at + 7] ^= 0x20
    segment.write_bytes(data)
    served.reset()

    with served.loader(**OPTIONS, epochs=1, cache=leat.Cache(disk=folder, disk_limit="16MiB")) as loader:
        for _ in loader:
            pass
        (stats,) = loader.stats()
        metrics = loader.metrics()

    assert len(written) >= 10
    assert metrics["leat_cache_bad_records_total"] == 10
    assert served.counters()["get"] == stats["cache"]["misses"] == 10
    assert hashes_of([stats]) == hashes_of(first)


def test_an_object_that_changed_is_not_served_from_the_cache(serve, tmp_path, fresh_cache):
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.bin").write_bytes(b"old%d" % number)
    served = serve(folder)
    run(served, tmp_path / "cache")
    (folder / "3.bin").write_bytes(b"new3")

    dataset = leat.Dataset(served.url, refresh="always", **served.options)
    with leat.Loader(
        dataset, **{"shuffle": True, "batch": "dict", "output": "numpy", **OPTIONS},
        epochs=1, cache=leat.Cache(disk=tmp_path / "cache"),
    ) as loader:  # fmt: skip
        values = sorted(value for batch in loader for value in batch["data"].tolist())
        (stats,) = loader.stats()

    assert values == sorted([b"old%d" % n for n in range(10) if n != 3] + [b"new3"])
    assert stats["cache"]["misses"] == 1 and stats["cache"]["disk_hits"] == 9


def test_two_jobs_share_a_folder(pictures, serve, tmp_path):
    served = serve(pictures)
    cache = leat.Cache(disk=tmp_path / "cache", disk_limit="16MiB")
    with served.loader(**OPTIONS, cache=cache, seed=1) as first:
        for _ in first:
            pass
        while first.metrics()["leat_cache_inserts_total"] < N:
            time.sleep(0.01)
        with served.loader(**OPTIONS, cache=cache, seed=2, epochs=1) as second:
            for _ in second:
                pass
            assert second.stats()[0]["cache"]["misses"] == 0


# --- what is wrong -----------------------------------------------------------


def test_a_folder_that_cannot_be_is_said_at_once(pictures, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(leat.Error, match="file.*name another folder in disk="):
        leat.Loader(pictures, batch_size=4, shuffle=True, cache=leat.Cache(disk=tmp_path / "file"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: leat.Cache(), "ram="),
        (lambda: leat.Cache(ram="1GiB", disk_limit="1GiB"), "disk="),
        (lambda: leat.Loader(".", batch_size=1, shuffle=True, cache=leat.Cache(disk="c", disk_limit=0)), "of 0 keeps nothing"),
        (lambda: leat.Loader(".", batch_size=1, shuffle=True, cache=leat.research.Cache(ram=1, policy="windowed_belady")), "window="),
        (lambda: leat.Loader(".", batch_size=1, shuffle=True, cache=leat.research.Cache(ram=1, window=5)), 'window= is of .* and it is "belady"'),
        (lambda: leat.research.Cache(ram=1, window=-1), "window="),
        (lambda: leat.Cache(peers="auto", peer_memory="9999TiB")._options(1), "peer_memory="),
        (lambda: leat.Loader(".", batch_size=1, shuffle=True, cache="huge"), "auto"),
        (lambda: leat.Loader(".", batch_size=1, shuffle=True, cache=leat.Cache(ram="many")), "many"),
        (lambda: leat.Loader(".", batch_size=1, shuffle=True, cache=leat.Cache(ram=1, policy="mru")), "belady"),
    ],
)
def test_what_cannot_be_is_refused(make, says, pictures, monkeypatch):
    monkeypatch.chdir(pictures)
    with pytest.raises(leat.InvalidArgument, match=says):
        make()


def test_more_than_there_is_is_doubted(pictures, tmp_path, caplog):
    cache = leat.Cache(ram="4000TiB", disk=tmp_path / "cache", disk_limit="900TiB")
    with leat.Loader(pictures, batch_size=4, shuffle=True, cache=cache, epochs=1) as loader:
        next(iter(loader))
    text = caplog.text
    assert "ram= of" in text and "more than the" in text and "disk_limit= of" in text


def test_auto_says_what_it_chose(pictures, serve, fresh_cache):
    served = serve(pictures)
    program = RUN.replace('leat.Cache(disk=folder, disk_limit="16MiB")', '"auto"')
    done = subprocess.run(
        [sys.executable, "-c", program, served.url, served.bucket.url, "", "2"],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "SPDLOG_LEVEL": "leat=info"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 'cache="auto" chose' in done.stderr and "RAM" in done.stderr
    stats = json.loads(done.stdout)
    assert stats[1]["cache"]["misses"] == 0


# --- the command -------------------------------------------------------------


def leat_command(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [leat.testing.find_binary(), *arguments], capture_output=True, text=True, timeout=60,
        check=False, **options,
    )  # fmt: skip


def test_bench_takes_the_same_words(pictures, serve):
    served = serve(pictures)
    done = leat_command(
        "bench", served.url, "--endpoint-url", served.bucket.url, "--no-sign-request",
        "--global-batch-size", "10", "--epochs", "2", "--json", "--cache-ram", "8MiB",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["epochs"][1]["cache"] == {
        "ram_hits": N, "disk_hits": 0, "peer_hits": 0, "misses": 0, "decoded_hits": 0,
    }  # fmt: skip
    assert report["settings"]["cache"] == "8 MiB of RAM"


def test_the_cache_command_looks_checks_and_clears(pictures, serve, tmp_path):
    served = serve(pictures)
    folder = tmp_path / "cache"
    run(served, folder)
    seen = json.loads(leat_command("cache", "ls", str(folder), "--json").stdout)
    assert sum(segment["records"] for segment in seen) == N
    assert leat_command("cache", "verify", str(folder)).returncode == 0
    (segment,) = folder.glob("segment-*.leat")
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 1)
    assert leat_command("cache", "verify", str(folder)).returncode == 1
    flipped = bytearray(segment.read_bytes())
    flipped[3] ^= 1
    segment.write_bytes(flipped)
    done = leat_command("cache", "verify", str(folder))
    assert done.returncode == 1 and "the headers of 1 segments in" in done.stderr
    assert "its header is damaged" in done.stdout
    assert leat_command("cache", "clear", str(folder)).returncode == 0
    assert list(folder.iterdir()) == []
    missing = leat_command("cache", "ls", str(tmp_path / "none"))
    assert missing.returncode == 1 and "none" in missing.stderr


# --- leat warm ---------------------------------------------------------------


def warm(served, folder, *flags: str) -> subprocess.CompletedProcess:
    return leat_command(
        "warm", served.url, "--endpoint-url", served.bucket.url, "--no-sign-request",
        "--cache-disk", str(folder), *flags,
    )  # fmt: skip


def test_after_warm_training_asks_for_nothing(pictures, serve, tmp_path):
    served = serve(pictures)
    folder = tmp_path / "cache"
    done = warm(served, folder, "--cache-disk-limit", "16MiB", "--fields", "data", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"samples": N, "fetched": N, "kept": N, "not_kept": 0}
    served.reset()
    (trained,) = run(served, folder)
    assert served.counters()["get"] == 0
    assert hashes_of([trained]) == without_cache(served, 1)


def test_warm_fetches_nothing_twice(pictures, serve, tmp_path):
    served = serve(pictures)
    assert warm(served, tmp_path / "cache").returncode == 0
    served.reset()
    done = warm(served, tmp_path / "cache", "--json")
    assert json.loads(done.stdout)["fetched"] == served.counters()["get"] == 0


def test_warm_says_what_had_no_room(pictures, serve, tmp_path):
    served = serve(pictures)
    done = warm(served, tmp_path / "cache", "--cache-disk-limit", str(N // 2 * COST))
    assert done.returncode == 0, done.stderr
    assert "are not: raise --cache-disk-limit" in done.stdout
    kept = int(done.stdout.split(" reads are in")[0].rsplit(" ", 1)[-1])
    assert 0 < kept <= N // 2


# Nothing is read ahead into an epoch that never comes.
@pytest.mark.parametrize("limit", ["256KiB", "700KiB", "2MiB"])
def test_warm_asks_once_and_counts_what_is_there(serve, tmp_path, limit):
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "x.bin").write_bytes(b"x" * 1500)
    served = serve(tmp_path / "many", latency="1ms", repeat="many/x.bin:300")
    folder = tmp_path / "cache"
    served.reset()
    done = warm(served, folder, "--cache-disk-limit", limit, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    # A busy machine is late with a few, which are then sent twice.
    assert said["fetched"] == 300 <= served.counters()["get"] < 350
    seen = json.loads(leat_command("cache", "ls", str(folder), "--json").stdout)
    assert said["kept"] == sum(segment["records"] for segment in seen)
    assert said["kept"] + said["not_kept"] == 300
    assert said["kept"] >= min(300, leat_bytes(limit) // COST - 1)


def leat_bytes(text: str) -> int:
    return int(text[:-3]) * {"KiB": 2**10, "MiB": MIB}[text[-3:]]


def test_warm_takes_the_place_of_what_changed_since(serve, tmp_path, fresh_cache):
    photos = tmp_path / "photos"
    photos.mkdir()
    folder = tmp_path / "cache"
    served = None
    for version in (b"a", b"b"):
        for i in range(40):
            (photos / f"{i}.bin").write_bytes(version * (1000 + i))
        served = served or serve(photos)
        done = warm(served, folder, "--cache-disk-limit", str(40 * COST), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["kept"] == 40


def test_warm_that_is_stopped_goes_on_where_it_was(pictures, serve, tmp_path):
    slow = serve(pictures, latency="500ms")
    folder = tmp_path / "cache"
    words = [
        leat.testing.find_binary(), "warm", slow.url, "--endpoint-url", slow.bucket.url,
        "--no-sign-request", "--cache-disk", str(folder), "--max-in-flight", "2",
    ]  # fmt: skip
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        while slow.counters()["get"] < 10:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    said = re.search(r"the (\d+) reads that it has written stay, and are not fetched again", errors)
    assert process.returncode == 1 and said, errors
    fetched = slow.counters()["get"]
    assert fetched < N
    assert fetched - 4 <= int(said[1]) <= fetched

    done = warm(slow, folder, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["not_kept"] == 0
    # At most what was on its way or in the queue when it was stopped.
    assert slow.counters()["get"] <= N + 4


def test_warm_shows_a_terminal_what_has_come(serve, tmp_path):
    folder = tmp_path / "alike"
    folder.mkdir()
    for i in range(N):
        (folder / f"{i:02}.bin").write_bytes(bytes(1024))
    slow = serve(folder, latency="500ms")
    words = [
        leat.testing.find_binary(), "warm", slow.url, "--endpoint-url", slow.bucket.url,
        "--no-sign-request", "--cache-disk", str(tmp_path / "cache"), "--max-in-flight", "2",
    ]  # fmt: skip
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stderr=theirs, stdout=subprocess.PIPE) as process:
        os.close(theirs)
        seen = b""
        while slow.counters()["get"] < N // 6:  # It shows something five times a second.
            seen += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # This is how a terminal ends.
            while more := os.read(ours, 4096):
                seen += more
    os.close(ours)
    told = re.findall(r"of 60 samples, (\S+) (B|KiB) fetched", seen.decode())
    most = max(float(number) / (1024 if unit == "B" else 1) for number, unit in told)
    assert 0 < most <= slow.counters()["get"] < N
    # The line is taken away before, and nothing tells how training would wait.
    assert "\r\x1b[Kleat: warm was stopped" in seen.decode(), seen
    assert "waiting" not in seen.decode()


def test_warm_that_cannot_be_is_said_at_once(pictures, tmp_path):
    (tmp_path / "file").write_text("x")
    done = leat_command("warm", str(pictures), "--cache-disk", str(tmp_path / "file"))
    assert done.returncode == 1 and "file" in done.stderr
    assert leat_command("warm", str(pictures)).returncode == 2
