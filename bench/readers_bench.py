"""MDS shards and LitData's chunks, read by Leat where they lie, and by the libraries that wrote them.

    ./dev bench readers [--runs 5] [--latency 20ms] [--bandwidth RATE] [--only mds|litdata] [--quick] [--json]

Each run is a process of its own, cold: no shard and no index of it is on disk. Its seconds are from opening the
dataset to the last batch, with the start of workers and without imports. Streaming and LitData are read at their
best: a sweep finds the number of workers, then how far ahead each fetches (`predownload` in batches,
`max_pre_download` in chunks). It goes on until its best is inside, and is printed. Every worker has 20 batches at
least. Leat is as it comes. `over_best` is the rate over that of the other library at its best. All deliver the same
samples, hashed when the time is over; `gets` and `bytes_of_data` are the server's count.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import leat.testing
from measure import interleave, report, spread, sweep

BATCH = 16
SAMPLE_BYTES = 49_152
SHARD_BYTES = 16_000_000
BATCHES_A_WORKER = 20
MOST_WORKERS = 32
MOST_AHEAD = 64
SECONDS = 600
LIBRARIES = {"mds": "streaming", "litdata": "litdata"}
AHEAD = {"mds": 8, "litdata": 2}  # Their defaults.
Way = Callable[[], "dict[str, float]"]


def run_way(told: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    script = pathlib.Path(__file__).parent / "readers_way.py"
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(told)], capture_output=True, text=True, check=False, timeout=SECONDS,
        env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{told['library']} ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Bench:
    """A bucket with the data of all formats, and what is expected of each."""

    def __init__(self, root: pathlib.Path, samples: int, formats: list[str]) -> None:
        self._root = root
        self._samples = samples
        self._digests: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self.bucket: Any = None
        for kind in formats:
            folder = root / "buckets" / kind
            told = {"do": "write", "library": LIBRARIES[kind], "folder": str(folder), "samples": samples,
                    "sample_bytes": SAMPLE_BYTES, "shard_bytes": SHARD_BYTES}  # fmt: skip
            self._digests[kind] = run_way(told, self._places())["digest"]
            self._sizes[kind] = sum(path.stat().st_size for path in folder.iterdir())

    def _places(self) -> dict[str, str]:
        """Everything that a run may keep lies in a folder that is not there yet."""
        fresh = tempfile.mkdtemp(dir=self._root)
        return {"HOME": fresh, "TMPDIR": fresh, "LEAT_CACHE_DIR": f"{fresh}/leat",
                "LITDATA_CACHE_DIR": f"{fresh}/litdata", "DATA_OPTIMIZER_CACHE_FOLDER": f"{fresh}/optimizer"}  # fmt: skip

    def way(self, kind: str, library: str, workers: int = 0, ahead: int = 0) -> Way:
        def run() -> dict[str, float]:
            places = self._places()
            environment = {**places, **self.bucket.env(), "S3_ENDPOINT_URL": self.bucket.url}
            told = {"do": "read", "library": library, "url": f"s3://{kind}", "local": places["HOME"] + "/local",
                    "batch": BATCH, "workers": workers, "ahead": ahead}  # fmt: skip
            self.bucket.reset_counters()
            found = run_way(told, environment)
            shutil.rmtree(places["HOME"], ignore_errors=True)
            if found["samples"] != self._samples or found["digest"] != self._digests[kind]:
                sys.exit(f"{kind}: {library} delivered {found['samples']} samples of {self._samples}, or other ones")
            counted = self.bucket.counters()
            return {"rate": found["samples"] / found["seconds"], "first_batch_s": found["first_batch_s"],
                    "gets": counted["get"], "bytes_of_data": counted["bytes"] / self._sizes[kind]}  # fmt: skip

        return run

    def best_of(self, kind: str, is_quick: bool) -> tuple[int, int]:
        """The workers, and how far ahead, at which the format's own library is fastest."""
        library = LIBRARIES[kind]
        if is_quick:
            return 2, AHEAD[kind]

        def rate(workers: int, ahead: int) -> float:
            return self.way(kind, library, workers, ahead)()["rate"]

        workers = sweep(f"{library}, workers, samples/s", lambda count: rate(count, AHEAD[kind]), [2, 4, 8], MOST_WORKERS)
        start = [AHEAD[kind] // 2, AHEAD[kind], AHEAD[kind] * 2]
        ahead = sweep(f"{library}, {workers} workers, ahead, samples/s", lambda count: rate(workers, count), start, MOST_AHEAD)
        return workers, ahead


def compared(found: dict[str, dict[str, list[float]]]) -> list[dict[str, Any]]:
    rows = []
    for way, values in found.items():
        rate, mad = spread(values["rate"])
        kind = way.split(":")[0]
        best = max(spread(found[other]["rate"])[0] for other in found if other.startswith(kind) and "leat" not in other)
        rows.append({
            "way": way, "samples_per_s": rate, "mad": mad, "MB_per_s": rate * SAMPLE_BYTES / 1e6,
            "over_best": f"{rate / best:.2f}", "first_batch_s": f"{spread(values['first_batch_s'])[0]:.2f}",
            "gets": spread(values["gets"])[0], "bytes_of_data": f"{spread(values['bytes_of_data'])[0]:.3f}",
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--bandwidth", help="such as 200MB/s; default: as fast as the server is")
    parser.add_argument("--only", choices=tuple(LIBRARIES))
    parser.add_argument("--quick", action="store_true", help="one run, few samples: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    formats = [args.only] if args.only else list(LIBRARIES)
    samples = 1024 if args.quick else BATCHES_A_WORKER * BATCH * MOST_WORKERS
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    limits = {"total_bandwidth": args.bandwidth} if args.bandwidth else {}
    with tempfile.TemporaryDirectory(prefix="leat-readers-") as folder:
        bench = Bench(pathlib.Path(folder), samples, formats)
        with leat.testing.Bucket(pathlib.Path(folder) / "buckets", latency=args.latency, **limits) as bucket:
            bench.bucket = bucket
            ways: dict[str, Way] = {}
            for kind in formats:
                workers, ahead = bench.best_of(kind, args.quick)
                library = LIBRARIES[kind]
                ways[f"{kind}: {library}, {workers} workers, {ahead} ahead"] = bench.way(kind, library, workers, ahead)
                ways[f"{kind}: leat"] = bench.way(kind, "leat")
            found = interleave(ways, 1 if args.quick else args.runs)
    limit = f", {args.bandwidth}" if args.bandwidth else ""
    runs = 1 if args.quick else args.runs
    report(f"readers at {args.latency}{limit}, {runs} interleaved runs", compared(found), args.json)


if __name__ == "__main__":
    main()
