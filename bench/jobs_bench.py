"""Three trainings on one dataset at once: apart, sharing a cache, and meeting each other in it.

    ./dev bench jobs [--runs 5] [--photographs 512] [--epochs 3] [--jobs 3] [--quick] [--json]

Three processes with seeds and orders of their own read the same photographs (500 x 375, 37 KB) from a bucket 20 ms
away: decode, resize to 256, random crop to 224, flip, normalise. All caches of a way together have 40 % of what all
photographs take once resized. `torch` is a DataLoader each, with Pillow, as many workers as were fastest in a sweep
before, and no cache: it has none. `apart` are three loaders of Leat with a third of the room each, keeping bytes or
pictures; `shared` are the same with shared=True; `first` with first_within= all positions too.

What to look at: `makespan_s`, from the start to the end of the last; `of_torch` and `of_apart` divide by torch's and by
the faster of the two that are apart; `gets` and `mb` are what the server counted, of one photograph and in all;
`decoded` is how often a photograph was decoded in each of the jobs' epochs, on average. Every epoch of every run has
to be a permutation. Before anything is timed each way runs once with hashes: the pixels of all epochs have to be those
of a loader without a cache, and torch's bytes those of the files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import leat
from forms_bench import make_photographs
from measure import interleave, report, spread

BUCKET = "photographs"
RECORD = 341 * 256 * 3 + 2 * 4096  # Of a picture that was resized, with its head and whole pages.
TRAINING = pathlib.Path(__file__).parent / "jobs_training.py"


class Place:
    """The bucket and what is in it."""

    def __init__(self, bucket: leat.testing.Bucket, root: pathlib.Path, args: argparse.Namespace) -> None:
        self.bucket = bucket
        self.args = args
        files = sorted(path for path in (root / BUCKET).rglob("*") if path.is_file())
        self.keys = [path.relative_to(root / BUCKET).as_posix() for path in files]
        digests = (hashlib.blake2b(path.read_bytes(), digest_size=16).digest() for path in files)
        self.bytes_digest = f"{sum(int.from_bytes(one, 'little') for one in digests) % 2**128:032x}"

    def told(self, seed: int, **more: Any) -> str:
        return json.dumps({
            "url": f"s3://{BUCKET}", "http_url": f"{self.bucket.url}/{BUCKET}", "endpoint": self.bucket.url,
            "keys": self.keys, "epochs": self.args.epochs, "seed": seed, "hashes": False, **more,
        })  # fmt: skip

    def run(self, told_of_each: list[str]) -> tuple[float, list[list[dict]], dict]:
        """The makespan, what each job says of its epochs, and the server's counters."""
        jobs = [
            subprocess.Popen(
                [sys.executable, str(TRAINING), told], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for told in told_of_each
        ]
        try:
            for job in jobs:
                hear(job)
            self.bucket.reset_counters()
            begin = time.monotonic()
            for job in jobs:
                go(job)
            found = [hear(job) for job in jobs]
            counters = self.bucket.counters()
            for job in jobs:
                go(job)
            for job in jobs:
                job.wait(60)
        finally:
            for job in jobs:
                job.kill()
                job.communicate()
        if not all(epoch["is_whole"] for epochs in found for epoch in epochs):
            sys.exit("an epoch was no permutation")
        return max(epochs[-1]["ended"] for epochs in found) - begin, found, counters


def hear(job: subprocess.Popen[str]) -> Any:
    assert job.stdout is not None
    line = job.stdout.readline()
    if not line:
        sys.exit("a training failed")
    return json.loads(line)


def go(job: subprocess.Popen[str]) -> None:
    assert job.stdin is not None
    job.stdin.write("\n")
    job.stdin.flush()


def way(place: Place, told_of_each: list[str]) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        makespan, found, counters = place.run(told_of_each)
        deliveries = len(place.keys) * place.args.epochs * len(found)
        hits = sum(epoch.get("decoded_hits", 0) for epochs in found for epoch in epochs)
        return {
            "makespan_s": makespan,
            "gets": counters["get"] / len(place.keys),
            "mb": counters["bytes"] / 1e6,
            "decoded": (deliveries - hits) / len(place.keys) / place.args.epochs,
        }

    return run


def best_workers(place: Place, seeds: range) -> int:
    """torch's fastest number of workers of each of the jobs, here."""
    found = {}
    for workers in (1, 2, 4, 8):
        told = [place.told(seed, loader="torch", workers=workers, epochs=1) for seed in seeds]
        found[workers] = place.run(told)[0]
    return min(found, key=lambda workers: found[workers])


def check_content(place: Place, ways: dict[str, list[str]]) -> None:
    """That all deliver the same pixels, and torch the files."""
    expected: dict[int, list[str]] = {}
    for name, told_of_each in ways.items():
        for told in told_of_each:
            seed = json.loads(told)["seed"]
            if name != "torch" and seed not in expected:
                plain = json.dumps({**json.loads(told), "hashes": True, "cache": None})
                expected[seed] = [epoch["content"] for epoch in place.run([plain])[1][0]]
        with_hashes = [json.dumps({**json.loads(told), "hashes": True}) for told in told_of_each]
        for told, epochs in zip(told_of_each, place.run(with_hashes)[1]):
            content = [epoch["content"] for epoch in epochs]
            right = [place.bytes_digest] * len(epochs)
            if content != (right if name == "torch" else expected[json.loads(told)["seed"]]):
                sys.exit(f"{name} delivered something else")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--photographs", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one run of few: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.photographs, args.runs = 128, 1
    room = args.photographs * RECORD * 2 // 5
    seeds = range(1, args.jobs + 1)
    caches: dict[str, dict[str, Any]] = {
        "apart, encoded": {"ram": room // args.jobs, "form": "encoded"},
        "apart, decoded": {"ram": room // args.jobs, "form": "decoded"},
        "shared": {"ram": room, "form": "decoded", "shared": True},
        "shared, first": {"ram": room, "form": "decoded", "shared": True, "first_within": args.photographs},
    }
    with tempfile.TemporaryDirectory(prefix="leat-jobs-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        os.environ["LEAT_AGENT"] = "off"
        root = pathlib.Path(folder) / "buckets"
        root.mkdir()
        make_photographs(root, args.photographs)
        with leat.testing.Bucket(root, latency="20ms") as bucket:
            place = Place(bucket, root, args)
            workers = 2 if args.quick else best_workers(place, seeds)
            ways = {"torch": [place.told(seed, loader="torch", workers=workers) for seed in seeds]}
            for name, cache in caches.items():
                ways[name] = [place.told(seed, loader="leat", cache=cache) for seed in seeds]
            check_content(place, ways)
            found = interleave({name: way(place, told) for name, told in ways.items()}, args.runs)
    spans = {name: spread(values["makespan_s"])[0] for name, values in found.items()}
    apart = min(spans["apart, encoded"], spans["apart, decoded"])
    rows = []
    for name, values in found.items():
        median, deviation = spread(values.pop("makespan_s"))
        row: dict[str, Any] = {"way": f"{name}, {workers} workers" if name == "torch" else name}
        row |= {"makespan_s": f"{median:.2f} ± {deviation:.2f}"}
        row |= {"of_torch": f"{spans['torch'] / median:.2f} x", "of_apart": f"{apart / median:.2f} x"}
        rows.append(row | {key: f"{spread(numbers)[0]:.2f}" for key, numbers in values.items()})
    report(f"jobs: {args.jobs} on {args.photographs} photographs, {args.epochs} epochs", rows, args.json)


if __name__ == "__main__":
    main()
