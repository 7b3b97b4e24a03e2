"""An HDF5 file in a bucket, read in random order: torch with h5py, and Leat with caches of several sizes.

    ./dev bench arrays [--runs 3] [--latency 20ms] [--ranks 4] [--epochs 3] [--quick] [--json]

4,096 samples of 16 KiB lie in two files: in chunks of 64 samples (1 MiB), and in chunks of one. Each rank is a
process that takes batches as fast as it can. "torch" is a DataLoader, whose dataset opens the file by h5py, which
reads by range over a connection that stays open. It reads a whole chunk for each sample. It has as many workers a
rank as were fastest in a sweep before, and enough epochs for at least 20 batches of each, in the table too.
"leat, 50 %" has a RAM cache of half of the data, all ranks together. `samples_per_s` is of all ranks and epochs, `of_torch` is
that over torch's in the same turn. `gets` and `bytes_of_data` are counted at the server, for each epoch.

The second table has what `gap_bytes=` does: 1,024 samples in a file in which two arrays take turns, one of them wanted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

import h5py
import numpy as np

import leat
from measure import interleave, report, spread, sweep

HERE = pathlib.Path(__file__).parent
SIDE = 64
BATCH = 32
MOST_WORKERS = 16  # A rank of torch's has no more.
LEAST_BATCHES = 20  # That each of them makes.


def make_file(path: pathlib.Path, samples: int, each: int) -> None:
    """Random numbers, of which the first of each sample is its number; in chunks of `each`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.random.default_rng(1).random((samples, SIDE, SIDE), np.float32)
    values[:, 0, 0] = np.arange(samples)
    with h5py.File(path, "w") as file:
        file.create_dataset("density", data=values, chunks=(each, SIDE, SIDE))


def make_turns(path: pathlib.Path, samples: int) -> None:
    """Chunks of 64 KiB that are wanted, and of 8 KiB that are not, take turns."""
    with h5py.File(path, "w") as file:
        wanted = file.create_dataset("wanted", (samples, 16384), "f4", chunks=(1, 16384))
        other = file.create_dataset("other", (samples, 2048), "f4", chunks=(1, 2048))
        for number in range(samples):
            wanted[number] = number
            file.flush()
            other[number] = 0
            file.flush()


def way(
    bucket: leat.testing.Bucket, path: pathlib.Path, job: dict, ranks: int
) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        bucket.reset_counters()
        processes = [
            subprocess.Popen(
                [sys.executable, str(HERE / "arrays_training.py"), json.dumps({**job, "rank": rank, "ranks": ranks})],
                env={**os.environ, **bucket.env(), "OMP_NUM_THREADS": "1", "LOCAL_RANK": str(rank),
                     "LOCAL_WORLD_SIZE": str(ranks)},
                stdout=subprocess.PIPE, text=True,
            )
            for rank in range(ranks)
        ]  # fmt: skip
        found = [json.loads(process.communicate()[0] or "null") for process in processes]
        if None in found:
            sys.exit(f"a rank of {job['way']} failed")
        samples = job["samples"]
        for epoch in range(job["epochs"]):
            if sum(rank["sums"][epoch] for rank in found) != samples * (samples - 1) // 2:
                sys.exit(f"{job['way']}: an epoch did not have each sample once")
        counted = bucket.counters()
        return {
            "samples_per_s": samples * job["epochs"] / max(sum(rank["seconds"]) for rank in found),
            "gets": counted["get"] / job["epochs"],
            "bytes_of_data": counted["bytes"] / job["epochs"] / path.stat().st_size,
        }

    return run


def with_workers(job: dict, workers: int, ranks: int) -> dict:
    """torch's job, long enough for LEAST_BATCHES of each worker."""
    batches = math.ceil(job["samples"] / ranks / job["batch"])
    epochs = max(job["epochs"], math.ceil(LEAST_BATCHES * workers / batches))
    return {**job, "way": "torch", "workers": workers, "epochs": epochs}


def gaps(bucket: leat.testing.Bucket, url: str, samples: int, is_json: bool) -> None:
    os.environ.update(bucket.env())
    rows = []
    for gap in (0, 4 << 10, 16 << 10, 1 << 20):
        dataset = leat.Dataset.array(url, variables=["wanted"], gap_bytes=gap)
        bucket.reset_counters()
        with leat.Loader(dataset, batch_size=BATCH, shuffle=True, epochs=1, output="numpy") as loader:
            for _ in loader:
                pass
        counted, seconds = bucket.counters(), loader.stats()[-1]["seconds"]
        rows.append({"gap_bytes": gap, "gets": counted["get"], "read_in_vain": f"{counted['bytes'] / dataset.nbytes - 1:.1%}",
                     "samples_per_s": samples / seconds})  # fmt: skip
    report("what gap_bytes= does, where arrays take turns in a file", rows, is_json)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one run of few: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    samples = 256 if args.quick else 4096
    with tempfile.TemporaryDirectory(prefix="leat-arrays-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        root = pathlib.Path(folder) / "buckets"
        ways = {}
        for each in (64, 1):
            make_file(root / "arrays" / f"{each}.h5", samples, each)
        make_turns(root / "arrays" / "turns.h5", samples // 4)
        with leat.testing.Bucket(root, latency=args.latency, total_bandwidth="200MB/s") as bucket:
            for each in (64, 1):
                path = root / "arrays" / f"{each}.h5"
                job = {
                    "samples": samples, "batch": BATCH, "epochs": args.epochs, "size": path.stat().st_size,
                    "host": bucket.url.partition("://")[2], "path": f"/arrays/{each}.h5", "url": f"s3://arrays/{each}.h5",
                    "cache_bytes": 0,
                }  # fmt: skip

                def of_torch(workers: int, job=job, path=path):
                    return way(bucket, path, with_workers(job, workers, args.ranks), args.ranks)

                workers = 2 if args.quick else sweep(
                    f"{each} a chunk: torch, samples/s by workers a rank",
                    lambda count: of_torch(count)()["samples_per_s"], [1, 2, 4], MOST_WORKERS,
                )  # fmt: skip
                ways[f"{each} a chunk: torch, {workers} workers"] = of_torch(workers)
                for percent in (0, 25, 50, 75):
                    cached = {**job, "way": "leat", "cache_bytes": path.stat().st_size * percent // 100}
                    ways[f"{each} a chunk: leat, {percent} %"] = way(bucket, path, cached, args.ranks)
            found = interleave(ways, 1 if args.quick else args.runs)
            rows = []
            for name, values in found.items():
                kind = name.partition(":")[0]
                rates = next(of for other, of in found.items() if other.startswith(f"{kind}: torch"))["samples_per_s"]
                row: dict[str, object] = {"way": name}
                ratios = [rate / of for rate, of in zip(values["samples_per_s"], rates)]
                for key, numbers in {**values, "of_torch": ratios}.items():
                    median, deviation = spread(numbers)
                    row[key] = f"{median:,.2f} ± {deviation:,.2f}" if key != "gets" else f"{median:,.0f}"
                rows.append(row)
            title = f"arrays: HDF5 in a bucket, {args.latency} away, {args.ranks} ranks, {args.epochs} epochs"
            report(title, rows, args.json)
            gaps(bucket, "s3://arrays/turns.h5", samples // 4, args.json)


if __name__ == "__main__":
    main()
