"""leat.torch.DataLoader beside torch's: the same dataset, the same arguments.

    ./dev bench dropin [--runs 5] [--latency 110ms] [--workers 2] [--quick] [--json]

What to look at: `over_torch` is the rate over that of torch's DataLoader with the
same num_workers, `over_best` over the best of torch's rows of the same case; `cpu_us`
is CPU time an item, of all threads and processes, which a busy machine changes less. "gets"
are boto3 GETs from a bucket that far away; torch's best number of workers there is
found first, of 4, 8, 16 and 32, and stands beside.
"files" and "pictures" are local files, read alone and decoded by Pillow; "python"
holds the GIL, which is what processes are for. Before anything is timed, each way
delivers what torch delivers: the same items in the same order, byte by byte. GETs
are counted at the server: one an item. Each way starts anew in each run, so the
time has the start of its threads or processes in it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.data

import leat.testing
import leat.torch
from dropin_datasets import Files, Gets, Pictures, Python, keep_lists, make_pictures
from measure import interleave, report, spread

BATCH = 64
KINDS = {"torch": torch.utils.data.DataLoader, "leat": leat.torch.DataLoader}
Way = Callable[[], "dict[str, float]"]


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


def epoch(kind: str, dataset: Any, **arguments: Any) -> tuple[float, float, str]:
    """Seconds from iter() to the end, CPU seconds, and a digest of what came, in its order."""
    torch.manual_seed(1)
    loader = KINDS[kind](dataset, batch_size=BATCH, shuffle=True, **arguments)
    batches = []
    cpu, begin = cpu_seconds(), time.perf_counter()
    for batch in loader:
        batches.append(batch)
    seconds = time.perf_counter() - begin
    cpu = cpu_seconds() - cpu
    digest = hashlib.blake2b()
    for items, indices in batches:
        for item, index in zip(items, indices):
            digest.update(int(index).to_bytes(8, "little") + item.contiguous().numpy().tobytes())
    return seconds, cpu, digest.hexdigest()


def way_of(kind: str, make: Callable[[], Any], expected: str, bucket: Any = None, **arguments: Any) -> Way:
    """A timed epoch whose content is `expected`, and one GET an item if of a bucket."""

    def run() -> dict[str, float]:
        dataset = make()
        if bucket is not None:
            bucket.reset_counters()
        seconds, cpu, digest = epoch(kind, dataset, **arguments)
        if digest != expected:
            sys.exit(f"{kind} with {arguments} delivered other items than torch, or in another order")
        if bucket is not None and bucket.counters()["get"] != len(dataset):
            sys.exit(f"{kind}: {bucket.counters()['get']} GETs for {len(dataset)} items")
        return {"rate": len(dataset) / seconds, "cpu_us": cpu / len(dataset) * 1e6}

    return run


def best_workers(make: Callable[[], Any], counts: tuple[int, ...]) -> int:
    """The number of torch's workers that is fastest here."""
    rates = {}
    for count in counts:
        dataset = make()
        seconds, _, _ = epoch("torch", dataset, num_workers=count, collate_fn=keep_lists)
        rates[count] = len(dataset) / seconds
    print("torch, GETs/s by workers:", {n: round(rate) for n, rate in rates.items()}, file=sys.stderr)
    return max(rates, key=rates.__getitem__)


def bucket_ways(
    bucket: leat.testing.Bucket, near: leat.testing.Bucket, workers: int, is_quick: bool
) -> dict[str, Way]:
    """boto3 GETs: few for the slow way, as many as it takes for the quick ones."""
    few, many = 64, 512
    counts = (8,) if is_quick else (4, 8, 16, 32)
    best = best_workers(lambda: Gets(bucket.url, "pictures", many), counts)
    digests = {
        size: epoch("torch", Gets(near.url, "pictures", size), collate_fn=keep_lists)[2]
        for size in (few, many)
    }

    def way(kind: str, size: int, **arguments: Any) -> Way:
        return way_of(kind, lambda: Gets(bucket.url, "pictures", size), digests[size], bucket,
                      collate_fn=keep_lists, **arguments)  # fmt: skip

    forked = {"multiprocessing_context": "fork", "threads": 32}
    return {
        f"gets: torch, {workers} workers": way("torch", few, num_workers=workers),
        f"gets: torch at its best, {best} workers": way("torch", many, num_workers=best),
        f"gets: leat, {workers} workers": way("leat", many, num_workers=workers),
        f"gets: leat, {workers} processes of 32 threads": way("leat", many, num_workers=workers, **forked),
        "gets: torch, 0 workers": way("torch", few),
        "gets: leat, 0 workers": way("leat", many),
    }


def local_ways(folder: pathlib.Path, workers: int) -> dict[str, Way]:
    """Files read, files decoded, and a transform that holds the GIL."""
    ways: dict[str, Way] = {}
    for name, dataset, collate in (
        ("files", Files(folder, 4096), keep_lists),
        ("pictures", Pictures(folder, 2048), None),
        ("python", Python(folder, 2048), None),
    ):
        expected = epoch("torch", dataset, collate_fn=collate)[2]
        for kind in KINDS:
            for count in (0, workers):
                ways[f"{name}: {kind}, {count} workers"] = way_of(
                    kind, lambda dataset=dataset: dataset, expected, collate_fn=collate, num_workers=count
                )
        ways[f"{name}: leat, {workers} processes"] = way_of(
            "leat", lambda dataset=dataset: dataset, expected, collate_fn=collate, num_workers=workers,
            multiprocessing_context="fork",
        )  # fmt: skip
    return ways


def compared(found: dict[str, dict[str, list[float]]], workers: int) -> list[dict[str, Any]]:
    """Rows of the report, each with its ratios to torch: at the same workers, at its best."""

    def rate_of(way: str) -> float:
        return spread(found[way]["rate"])[0] if way in found else float("nan")

    rows = []
    for way, values in found.items():
        case, kind = way.split(": ")
        rate, mad = spread(values["rate"])
        count = 0 if kind.endswith(" 0 workers") else workers
        torchs = rate_of(f"{case}: torch, {count} workers")
        best = max(rate_of(other) for other in found if other.startswith(f"{case}: torch"))
        rows.append({"way": way, "rate": rate, "rate_mad": mad, "over_torch": f"{rate / torchs:.2f}",
                     "over_best": f"{rate / best:.2f}", "cpu_us": spread(values["cpu_us"])[0]})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency", default="110ms")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", choices=("gets", "local", "files"))
    parser.add_argument("--quick", action="store_true", help="one run, few rows: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "This DataLoader will create")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]

    with tempfile.TemporaryDirectory(prefix="leat-dropin-") as root:
        folder = pathlib.Path(root) / "pictures"
        make_pictures(folder)
        with (
            leat.testing.Bucket(root, latency=args.latency) as bucket,
            leat.testing.Bucket(root, latency="0") as near,
        ):
            ways: dict[str, Way] = {}
            if args.only in (None, "gets"):
                ways |= bucket_ways(bucket, near, args.workers, args.quick)
            if args.only != "gets":
                ways |= local_ways(folder, args.workers)
            if args.only == "files":
                ways = {way: run for way, run in ways.items() if way.startswith("files")}
            found = interleave(ways, 1 if args.quick else args.runs)
    runs = 1 if args.quick else args.runs
    report(f"dropin at {args.latency}, {runs} interleaved runs", compared(found, args.workers), args.json)


if __name__ == "__main__":
    main()
