"""Shards and token files read by one rank, and by several that divide them.

    ./dev bench shards [--runs 5] [--ranks 1 2 4 8] [--quick] [--json]
    ./dev bench shards --unindexed [--runs 3] [--ranks 1 4 8] [--json]

Each rank is a process of `leat bench`, on one node, with the node's usual settings.
`samples_per_s` counts all ranks to the end of the slowest; `of_one` is that over one
rank's. The server counts `gets` and `bytes`: `gets_of_pieces` is the GETs over those
that the bytes need in pieces of 8 MiB, `bytes_of_data` the bytes over the dataset's.
Content hashes of the ranks have to add up to that of the one.

`--unindexed` reads eight shards of 16 MB that nobody has indexed, each rank as a node of its own: with
`shuffle="stream"`, where torch.distributed's store joins the ranks and where nothing does, and with `shuffle=True`,
which indexes first. `first_batch_s` counts from where all ranks open their loaders; `of_indexed` is that over
the same with an index.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable

import leat
from measure import interleave, report, spread
from ranks_bench import run_ranks

PIECE = 8 << 20


def make_shards(folder: pathlib.Path, shards: int, shard_bytes: int, sample_bytes: int) -> None:
    folder.mkdir(parents=True)
    for shard in range(shards):
        block = os.urandom(sample_bytes)
        with tarfile.open(folder / f"{shard:03}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for sample in range(shard_bytes // (sample_bytes + 512)):
                info = tarfile.TarInfo(f"{shard:03}-{sample:06}.bin")
                info.size = sample_bytes
                tar.addfile(info, io.BytesIO(sample.to_bytes(8, "little") + block[8:]))


def way(
    bucket: leat.testing.Bucket, name: str, size: int, ranks: int, seen: dict[str, int]
) -> Callable[[], dict[str, float]]:
    flags = ["--global-batch-size", "256", "--epochs", "1", "--drop-last", "false"]

    def run() -> dict[str, float]:
        bucket.reset_counters()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        results = run_ranks(bucket, f"s3://{name}", ranks, flags)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        counted = bucket.counters()
        epochs = [result["epochs"][0] for result in results]
        content = sum(int(epoch["content_hash"], 16) for epoch in epochs) % 2**128
        if seen.setdefault(name, content) != content:
            sys.exit(f"{name}: {ranks} ranks delivered something else")
        samples = sum(epoch["samples"] for epoch in epochs)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {
            "samples_per_s": samples / max(epoch["seconds"] for epoch in epochs),
            "first_batch_s": max(epoch["first_batch_seconds"] for epoch in epochs),
            "gets_of_pieces": counted["get"] / (size / PIECE),
            "bytes_of_data": counted["bytes"] / size,
            "cpu_us_a_sample": cpu / samples * 1e6,
            "memory_mb": sum(epoch["peak_rss_bytes"] for epoch in epochs) / 1e6,
        }

    return run


Numbers = dict[str, float]
WINDOW = 16
"""Pieces of a stream's window: all shards of `--unindexed`."""


def run_nodes(
    bucket: leat.testing.Bucket, url: str, folder: pathlib.Path, ranks: int, shuffle: str, is_joined: bool
) -> list[Numbers]:
    """Ranks, each with a cache of its own in `folder`, that begin at once."""
    store = folder / "store"
    store.unlink(missing_ok=True)
    child = pathlib.Path(__file__).with_name("unindexed_rank.py")
    joined_by = str(store) if is_joined else "-"
    processes = []
    for rank in range(ranks):
        launcher = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1,
                    "LEAT_CACHE_DIR": folder / str(rank)}  # fmt: skip
        environment = {**os.environ, **bucket.env(), **{name: str(value) for name, value in launcher.items()}}
        processes.append(
            subprocess.Popen(
                [sys.executable, str(child), url, joined_by, shuffle, str(WINDOW)],
                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    for process in processes:
        if process.stdout.readline().strip() != "ready":
            sys.exit("a rank did not begin")
    bucket.reset_counters()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return [json.loads(process.communicate(timeout=300)[0]) for process in processes]


def unindexed_way(
    bucket: leat.testing.Bucket, url: str, size: int, ranks: int, shuffle: str, is_joined: bool, seen: set[int]
) -> Callable[[], Numbers]:
    def run() -> Numbers:
        with tempfile.TemporaryDirectory(prefix="leat-nodes-") as place:
            folder = pathlib.Path(place)
            told = run_nodes(bucket, url, folder, ranks, shuffle, is_joined)
            counted = bucket.counters()
            # The same once more, by the catalogues that these ranks have kept.
            again = run_nodes(bucket, url, folder, ranks, shuffle, is_joined)
            shutil.rmtree(folder, ignore_errors=True)
        for results in (told, again):
            seen.add(sum(int(result["content"], 16) for result in results) % 2**128)
        if len(seen) != 1:
            sys.exit(f"{ranks} ranks delivered something else")
        first = max(result["first_batch_s"] for result in told)
        return {
            "samples_per_s": sum(result["samples"] for result in told) / max(result["seconds"] for result in told),
            "first_batch_s": first,
            "of_indexed": first / max(result["first_batch_s"] for result in again),
            "gets": counted["get"],
            "bytes_of_data": counted["bytes"] / size,
        }

    return run


def unindexed(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="leat-shards-") as folder:
        root = pathlib.Path(folder) / "buckets"
        make_shards(root / "unindexed", 8, 16_000_000, 23_000)
        size = sum(path.stat().st_size for path in (root / "unindexed").iterdir())
        ways, seen = {}, set()
        with leat.testing.Bucket(root, latency="20ms", total_bandwidth="200MB/s") as bucket:
            for ranks in args.ranks:
                for shuffle, is_joined in (("stream", True), ("stream", False), ("block", True)):
                    name = f"{shuffle}, {ranks} ranks" + ("" if is_joined else ", apart")
                    if is_joined or ranks > 1:
                        ways[name] = unindexed_way(bucket, "s3://unindexed", size, ranks, shuffle, is_joined, seen)
            found = interleave(ways, args.runs)
    rows = [
        {"way": name, **{key: f"{spread(numbers)[0]:.3g}" for key, numbers in values.items()}}
        for name, values in found.items()
    ]
    report("shards that nobody has indexed: ranks that are nodes of their own", rows, args.json)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--quick", action="store_true", help="one run: does it work?")
    parser.add_argument("--unindexed", action="store_true", help="eight small shards without an index")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.unindexed:
        return unindexed(args)
    shards, shard_bytes = (4, 20_000_000) if args.quick else (24, 64_000_000)
    with tempfile.TemporaryDirectory(prefix="leat-shards-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        root = pathlib.Path(folder) / "buckets"
        ways, sizes, seen = {}, {}, {}
        for sample_bytes in (4096, 23_000, 100_000):
            name = f"b{sample_bytes}"
            make_shards(root / name, shards, shard_bytes, sample_bytes)
            sizes[name] = sum(path.stat().st_size for path in (root / name).iterdir())
        with leat.testing.Bucket(root, latency="20ms", total_bandwidth="200MB/s") as bucket:
            for name, size in sizes.items():
                # The catalogue is made here, so that no run lists or scans.
                run_ranks(bucket, f"s3://{name}", 1, ["--batch-size", "64", "--drop-last", "false"])
                for ranks in args.ranks:
                    ways[f"{name[1:]} B, {ranks} ranks"] = way(bucket, name, size, ranks, seen)
            found = interleave(ways, 1 if args.quick else args.runs)
    rows = []
    for name, values in found.items():
        rate, deviation = spread(values["samples_per_s"])
        one = spread(found[f"{name.split(',')[0]}, {args.ranks[0]} ranks"]["samples_per_s"])[0]
        row: dict[str, object] = {"way": name, "samples_per_s": rate, "mad": deviation, "of_one": f"{rate / one:.2f}"}
        for key, numbers in values.items():
            if key != "samples_per_s":
                row[key] = f"{spread(numbers)[0]:.3g}"
        rows.append(row)
    report("shards: one rank, and several that divide the pieces", rows, args.json)


if __name__ == "__main__":
    main()
