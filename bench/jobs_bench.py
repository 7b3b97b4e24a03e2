"""Three trainings on one dataset at once: apart, sharing a cache, and meeting each other in it.

    ./dev bench jobs [--yardsticks smooth imagenet kept openimages] [--runs 5] [--photographs N] [--jobs 3]
                     [--ways WAY ...] [--quick] [--json]

Three processes with seeds and orders of their own read the same photographs from a bucket 20 ms away: decode, resize to
256, random crop to 224, flip, normalise, in batches of 32. There are four yardsticks, and a table for each that is asked
for; all but `openimages` if nothing is said. They differ in the photographs, the epochs and the room of the caches:

    smooth      512 as the demo's, 500 x 375, 37 KB; 10 epochs; room for 40 % of what is kept: pictures once resized
    imagenet    1,024 as ImageNet's, 500 x 375, 110 KB; 8 epochs; room of 40 % of what all take decoded
    kept        1,024 as `imagenet`, 8 epochs; room for 40 % of what is kept, as `smooth` has it
    openimages  512 as Open Images', 1024 x 768, 315 KB; 8 epochs; room of 40 % of what all take decoded

Room of 40 % of the photographs' decoded size is more than 40 % of the size in which
they are kept. All caches of a way share that room. `torch` is a DataLoader each, with
Pillow and without a cache, since it has none. It has as many workers as were fastest in
a sweep before, which goes on until more workers are slower. Each worker makes at least
20 batches, there and in the table: all ways run more epochs where that takes more.
`apart` are three loaders of Leat with a third of the room each, keeping bytes, pictures
or the form that they find better; `shared` are the same with shared=True; `first` also
has first_within= all positions.

How to read it: `makespan_s` is the time from the start to the end of the last job.
`of_torch` and `of_apart` divide by torch's and by the fastest of the ways that are
apart. `gets` and `mb` are the server's counts, for one photograph and in all. `decoded`
is how often a photograph was decoded in each of the jobs' epochs, on average. `cpu_s`
is the time of cores that all jobs took, without torch's workers. Every epoch of every
run has to be a permutation. Before anything is timed, each way runs two epochs with
hashes: the pixels have to be those of a loader without a cache, and torch's bytes those
of the files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import grainy_photographs
import leat
from jobs_training import BATCH
from measure import interleave, report, spread

BUCKET = "photographs"
RESIZED = 341 * 256 * 3  # Bytes of a picture whose shorter side became 256.
PAGES = 2 * 4096  # A record's head, and what fills up its pages.
SHARE = 0.4  # The share of all photographs that caches have room for.
MOST_WORKERS = 32  # Each takes some 60 MB of its own.
LEAST_BATCHES = 20  # That each worker of torch makes, in the sweep and in the table.


class Yardstick(NamedTuple):
    """The data of the trainings, for how long they read it, and the size that the
    room of caches is a share of."""

    shape: grainy_photographs.Shape
    epochs: int  # More if torch's workers need more.
    bytes_of_room: int  # The size of a photograph.


YARDSTICKS = {
    "smooth": Yardstick(grainy_photographs.SHAPES["smooth"], 10, RESIZED),
    "imagenet": Yardstick(grainy_photographs.SHAPES["imagenet"], 8, grainy_photographs.SHAPES["imagenet"].pixel_bytes),
    "kept": Yardstick(grainy_photographs.SHAPES["imagenet"], 8, RESIZED),
    "openimages": Yardstick(grainy_photographs.SHAPES["openimages"], 8, grainy_photographs.SHAPES["openimages"].pixel_bytes),
}
CHECKED_EPOCHS = 2
TRAINING = pathlib.Path(__file__).parent / "jobs_training.py"


class Place:
    """The bucket and what is in it."""

    def __init__(self, bucket: leat.testing.Bucket, root: pathlib.Path, args: argparse.Namespace) -> None:
        self.bucket = bucket
        self.args = args
        files = sorted(path for path in (root / BUCKET).rglob("*") if path.is_file())
        self.keys = [path.relative_to(root / BUCKET).as_posix() for path in files]
        digests = (hashlib.blake2b(path.read_bytes(), digest_size=16).digest() for path in files)
        self.bytes_a_file = sum(path.stat().st_size for path in files) / len(files)
        self.bytes_digest = f"{sum(int.from_bytes(one, 'little') for one in digests) % 2**128:032x}"

    def told(self, seed: int, **more: Any) -> str:
        return json.dumps({
            "url": f"s3://{BUCKET}", "http_url": f"{self.bucket.url}/{BUCKET}", "endpoint": self.bucket.url,
            "keys": self.keys, "epochs": self.args.epochs, "seed": seed, "hashes": False, **more,
        })  # fmt: skip

    def run(self, told_of_each: list[str]) -> tuple[float, list[list[dict]], dict]:
        """The makespan, each job's report of its epochs, and the server's counters."""
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
            "cpu_s": sum(epoch["cpu_seconds"] for epochs in found for epoch in epochs),
            "gets": counters["get"] / len(place.keys),
            "mb": counters["bytes"] / 1e6,
            "decoded": (deliveries - hits) / len(place.keys) / place.args.epochs,
        }

    return run


def least_epochs(place: Place, workers: int) -> int:
    """In which each of torch's workers makes LEAST_BATCHES."""
    return math.ceil(LEAST_BATCHES * workers / math.ceil(len(place.keys) / BATCH))


def best_workers(place: Place, seeds: range) -> int:
    """torch's fastest number of workers of each of the jobs, here.

    More are tried until more are slower, or there are MOST_WORKERS; a trial is as long
    as each worker needs for LEAST_BATCHES.
    """
    found: dict[int, float] = {}
    workers = 1
    while workers <= MOST_WORKERS:
        epochs = least_epochs(place, workers)
        told = [place.told(seed, loader="torch", workers=workers, epochs=epochs) for seed in seeds]
        found[workers] = place.run(told)[0] / epochs
        if found[workers] > min(found.values()):
            break
        workers *= 2
    swept = ", ".join(f"{workers} workers {seconds:.1f} s" for workers, seconds in found.items())
    best = min(found, key=lambda workers: found[workers])
    end = ", the end of the sweep: more take too much memory" if best == MOST_WORKERS else ""
    print(f"torch's sweep, an epoch of all jobs: {swept}; best {best}{end}", file=sys.stderr)
    return best


def check_content(place: Place, ways: dict[str, list[str]]) -> None:
    """That all deliver the same pixels, and torch the files."""
    expected: dict[int, list[str]] = {}
    for name, told_of_each in ways.items():
        checked = [{**json.loads(told), "hashes": True, "epochs": CHECKED_EPOCHS} for told in told_of_each]
        for told in checked:
            if name != "torch" and told["seed"] not in expected:
                plain = json.dumps({**told, "cache": None})
                expected[told["seed"]] = [epoch["content"] for epoch in place.run([plain])[1][0]]
        for told, epochs in zip(checked, place.run([json.dumps(told) for told in checked])[1]):
            content = [epoch["content"] for epoch in epochs]
            right = [place.bytes_digest] * len(epochs)
            if content != (right if name == "torch" else expected[told["seed"]]):
                sys.exit(f"{name} delivered something else")


def ways_of(place: Place, room: int) -> dict[str, list[str]]:
    """The arguments of each job, by way."""
    args = place.args
    seeds = range(1, args.jobs + 1)
    apart = {"ram": room // args.jobs}
    together = {"ram": room, "form": "decoded", "shared": True}
    caches: dict[str, dict[str, Any]] = {
        "apart, encoded": {**apart, "form": "encoded"},
        "apart, decoded": {**apart, "form": "decoded"},
        "apart, auto": {**apart, "form": "auto"},
        "shared": together,
        "shared, first": {**together, "first_within": args.photographs},
    }
    ways = {}
    if not args.ways or "torch" in args.ways:
        workers = 2 if args.quick else best_workers(place, seeds)
        args.epochs = max(args.epochs, least_epochs(place, workers))
        ways["torch"] = [place.told(seed, loader="torch", workers=workers) for seed in seeds]
    for name, cache in caches.items():
        if not args.ways or name in args.ways:
            ways[name] = [place.told(seed, loader="leat", cache=cache) for seed in seeds]
    return ways


def rows_of(found: dict[str, dict[str, list[float]]], ways: dict[str, list[str]]) -> list[dict[str, Any]]:
    spans = {name: spread(values["makespan_s"])[0] for name, values in found.items()}
    apart = min((span for name, span in spans.items() if name.startswith("apart")), default=None)
    rows = []
    for name, values in found.items():
        median, deviation = spread(values.pop("makespan_s"))
        workers = json.loads(ways[name][0]).get("workers")
        row: dict[str, Any] = {"way": f"{name}, {workers} workers" if workers else name}
        row |= {"makespan_s": f"{median:.2f} ± {deviation:.2f}"}
        for column, span in (("of_torch", spans.get("torch")), ("of_apart", apart)):
            row |= {column: f"{span / median:.2f} x"} if span else {}
        rows.append(row | {key: f"{spread(numbers)[0]:.2f}" for key, numbers in values.items()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--yardsticks", nargs="+", choices=YARDSTICKS, default=["smooth", "imagenet", "kept"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--photographs", type=int, help="as many as the yardstick says, if left out")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--ways", nargs="+", help="these alone, as the table calls them")
    parser.add_argument("--quick", action="store_true", help="one run of few: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.photographs, args.runs = 128, 1
    for name in args.yardsticks:
        measure(name, args)


def measure(name: str, args: argparse.Namespace) -> None:
    """Runs all ways by one yardstick and prints its table."""
    shape, epochs, bytes_of_room = YARDSTICKS[name]
    args = argparse.Namespace(**{
        **vars(args), "photographs": args.photographs or shape.count, "epochs": CHECKED_EPOCHS if args.quick else epochs,
    })  # fmt: skip
    room = int(args.photographs * (bytes_of_room + PAGES) * SHARE)
    with tempfile.TemporaryDirectory(prefix="leat-jobs-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        root = pathlib.Path(folder) / "buckets"
        grainy_photographs.make(root / BUCKET, shape, args.photographs)
        with leat.testing.Bucket(root, latency="20ms") as bucket:
            place = Place(bucket, root, args)
            ways = ways_of(place, room)
            check_content(place, ways)
            found = interleave({name: way(place, told) for name, told in ways.items()}, args.runs)
    size = "{} x {}".format(*shape.size)
    report(
        f"jobs by {name}: {args.jobs} on {args.photographs} photographs of {size}, {place.bytes_a_file / 1e3:.0f} KB, "
        f"{args.epochs} epochs, {room / 1e6:.0f} MB of cache, {room / place.bytes_a_file / args.photographs:.0%} of the files",
        rows_of(found, ways),
        args.json,
    )


if __name__ == "__main__":
    main()
