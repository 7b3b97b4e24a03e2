"""leat.torch.DataLoader beside torch's: the same dataset, the same arguments.

    ./dev bench dropin [--runs 5] [--latency 110ms] [--workers 2] [--as-before] [--quick] [--json]

How to read it: `over_torch` is the rate over that of torch's DataLoader with the same
num_workers, and `over_best` over the best of torch's rows of the same case. `cpu_us` is
CPU time an item, of all threads and processes, which a busy machine changes less.
"gets" are boto3 GETs from a bucket that far away. A sweep of each case first finds
torch's best number of workers: it goes on until its best is inside (256 is the most), and
that number stands beside. Every worker of torch's has 20 batches at least, or it would
be timed while it starts and ends. `--as-before` adds rows of the yardstick that this bench
had until then, with one busy worker of 2, and 8 of the best: 64 and 512 items in
batches of 64. "files" and "pictures" are local files, read alone and decoded by Pillow;
"python" holds the GIL, the case for processes. Before anything is timed, each way
delivers what torch delivers: the same items in the same order, byte by byte. GETs are
counted at the server: one an item. Each way starts anew in each run, so the time
includes the start of its threads or processes.
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
from dropin_items import Files, Gets, Pictures, Python, keep_lists, make_pictures
from measure import interleave, report, spread, sweep

BATCH = 64
GETS_BATCH = 16  # For GETs: with 2 workers, 64 items at once.
BATCHES_A_WORKER = 20
QUICK_BATCHES = 2  # --quick: nobody looks at its figures.
MOST_WORKERS = 256
MOST_OPEN = 5120  # Tensors that torch's workers may hand over before copies are kept.
KINDS = {"torch": torch.utils.data.DataLoader, "leat": leat.torch.DataLoader}
Way = Callable[[], "dict[str, float]"]


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


def items_for(workers: int, batch: int, is_quick: bool) -> int:
    """So many that each worker has its batches."""
    return (QUICK_BATCHES if is_quick else BATCHES_A_WORKER) * batch * max(1, workers)


def copied(delivered: Any) -> tuple[list[torch.Tensor], list[int]]:
    """A batch of lists in memory of its own; 2 us an item."""
    items, indices = delivered
    return [item.clone() for item in items], indices


def epoch(kind: str, dataset: Any, *, batch: int = BATCH, **arguments: Any) -> tuple[float, float, str]:
    """Seconds from iter() to the end, CPU seconds, and a digest of what came, in its order."""
    torch.manual_seed(1)
    loader = KINDS[kind](dataset, batch_size=batch, shuffle=True, **arguments)
    batches = []
    cpu, begin = cpu_seconds(), time.perf_counter()
    # torch's workers hand over each tensor as an open file, so of many, copies are
    # kept.
    has_many = arguments.get("collate_fn") is keep_lists and len(dataset) > MOST_OPEN
    keep = copied if isinstance(dataset, Gets) or has_many else tuple
    for delivered in loader:
        batches.append(keep(delivered))
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


def bucket_ways(
    bucket: leat.testing.Bucket, folder: pathlib.Path, workers: int, is_quick: bool, as_before: bool
) -> dict[str, Way]:
    """boto3 GETs: as many as give every worker its batches; of Leat's, as many as its seconds need."""
    digests: dict[tuple[int, int], str] = {}

    def way(kind: str, size: int, batch: int = GETS_BATCH, **arguments: Any) -> Way:
        if (size, batch) not in digests:
            # The files that the bucket serves, read by torch in this process.
            digests[size, batch] = epoch("torch", Files(folder, size), batch=batch, collate_fn=keep_lists)[2]
        return way_of(kind, lambda: Gets(bucket.url, "pictures", size), digests[size, batch], bucket,
                      batch=batch, collate_fn=keep_lists, **arguments)  # fmt: skip

    def of_torch(count: int) -> Way:
        return way("torch", items_for(count, GETS_BATCH, is_quick), num_workers=count)

    if is_quick:
        best = 8
    else:
        best = sweep("gets: torch, items/s by workers", lambda count: of_torch(count)()["rate"], [4, 8, 16, 32], MOST_WORKERS)
    many = 256 if is_quick else 2048
    forked = {"multiprocessing_context": "fork", "threads": 32}
    ways = {
        f"gets: torch, {workers} workers": of_torch(workers),
        f"gets: torch at its best, {best} workers": of_torch(best),
        f"gets: leat, {workers} workers": way("leat", many, num_workers=workers),
        f"gets: leat, {workers} workers in batches of {BATCH}": way("leat", many, BATCH, num_workers=workers),
        f"gets: leat, {workers} processes of 32 threads": way("leat", many, num_workers=workers, **forked),
        "gets: torch, 0 workers": of_torch(0),
        "gets: leat, 0 workers": way("leat", many),
    }
    if as_before:
        few, of_best = 64, 512
        old = sweep_workers_before(lambda count: way("torch", of_best, BATCH, num_workers=count)()["rate"])
        ways |= {
            f"gets as before: torch, {workers} workers": way("torch", few, BATCH, num_workers=workers),
            f"gets as before: torch at its best, {old} workers": way("torch", of_best, BATCH, num_workers=old),
            f"gets as before: leat, {workers} workers": way("leat", of_best, BATCH, num_workers=workers),
        }
    return ways


def sweep_workers_before(rate_of: Callable[[int], float]) -> int:
    rates = {count: rate_of(count) for count in (4, 8, 16, 32)}
    print("as before, GETs/s by workers:", {n: round(rate, 1) for n, rate in rates.items()}, file=sys.stderr)
    return max(rates, key=rates.__getitem__)


def local_ways(folder: pathlib.Path, workers: int, is_quick: bool, only: str | None) -> dict[str, Way]:
    """Files read, files decoded, and a transform that holds the GIL."""
    ways: dict[str, Way] = {}
    for case, kind, least, collate in (
        ("files", Files, 0 if is_quick else 4096, keep_lists),
        ("pictures", Pictures, 0, None),
        ("python", Python, 0, None),
    ):
        if only in (None, "local", case):
            ways |= ways_of_case(case, lambda size, kind=kind: kind(folder, size), least, collate, workers, is_quick)
    return ways


def ways_of_case(
    case: str, make: Callable[[int], Any], least: int, collate: Callable[..., Any] | None, workers: int, is_quick: bool
) -> dict[str, Way]:
    digests: dict[int, str] = {}

    def way(kind: str, count: int, **arguments: Any) -> Way:
        size = max(least, items_for(max(workers, count), BATCH, is_quick))
        if size not in digests:
            digests[size] = epoch("torch", make(size), collate_fn=collate)[2]
        return way_of(kind, lambda: make(size), digests[size], collate_fn=collate, num_workers=count, **arguments)

    best = workers
    if not is_quick:
        best = sweep(
            f"{case}: torch, items/s by workers", lambda count: way("torch", count)()["rate"], [0, 1, 2, 4], MOST_WORKERS
        )
    return {
        f"{case}: torch, 0 workers": way("torch", 0),
        f"{case}: torch, {workers} workers": way("torch", workers),
        f"{case}: torch at its best, {best} workers": way("torch", best),
        f"{case}: leat, 0 workers": way("leat", 0),
        f"{case}: leat, {workers} workers": way("leat", workers),
        f"{case}: leat, {workers} processes": way("leat", workers, multiprocessing_context="fork"),
    }


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
    parser.add_argument("--as-before", action="store_true", help="GETs by the former yardstick too")
    parser.add_argument("--quick", action="store_true", help="one run, few rows: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "This DataLoader will create")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]

    with tempfile.TemporaryDirectory(prefix="leat-dropin-") as root:
        folder = pathlib.Path(root) / "pictures"
        make_pictures(folder)
        with leat.testing.Bucket(root, latency=args.latency) as bucket:
            ways: dict[str, Way] = {}
            if args.only in (None, "gets"):
                ways |= bucket_ways(bucket, folder, args.workers, args.quick, args.as_before)
            if args.only != "gets":
                ways |= local_ways(folder, args.workers, args.quick, args.only)
            found = interleave(ways, 1 if args.quick else args.runs)
    runs = 1 if args.quick else args.runs
    report(f"dropin at {args.latency}, {runs} interleaved runs", compared(found, args.workers), args.json)


if __name__ == "__main__":
    main()
