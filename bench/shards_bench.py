"""Shards and token files read by one rank, and by several that divide them.

    ./dev bench shards [--runs 5] [--ranks 1 2 4 8] [--quick] [--json]

Each rank is a process of `leat bench`, on one node, with the node's usual settings.
`samples_per_s` counts all ranks to the end of the slowest; `of_one` is that over one
rank's. The server counts `gets` and `bytes`: `gets_of_pieces` is the GETs over those
that the bytes need in pieces of 8 MiB, `bytes_of_data` the bytes over the dataset's.
Content hashes of the ranks have to add up to that of the one.
"""

from __future__ import annotations

import argparse
import io
import os
import pathlib
import resource
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--quick", action="store_true", help="one run: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
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
