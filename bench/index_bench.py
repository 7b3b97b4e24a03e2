"""Catalogues: the lists of a job, and the speed of opening one.

    ./dev bench index [--keys 10000000] [--samples 100000000] [--nodes 4] [--ranks 4] [--json]

How to read it: `lists` are those that the bucket counted for all processes together (a
page has a thousand keys, so ten million take 10,000 by any means); on the second start
there are none. `first_batch_s` is the slowest rank's time from the start of Loader() to
its first batch, and `start_s` that of Loader() alone, without the interpreter's and the
imports' time. `open_s` and `rss_mb` are for opening a catalogue that was made here and
asking for its length and a key; the resident set is the part that this added.

The bucket is `leat bucket --repeat`, in which one file stands for all objects: the
bench measures our side. Every node has a cache folder of its own, and shares
nothing but the bucket with the others.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

from leat.testing import Bucket
from measure import report

_RANK = """
import sys, time, leat
begin = time.monotonic()
loader = leat.Loader(sys.argv[1], storage_options={"endpoint_url": sys.argv[2], "no_sign_request": True},
                     global_batch_size=64, shuffle=True, memory="256MiB", threads=1)
started = time.monotonic()
batch = next(iter(loader))
print(started - begin, time.monotonic() - begin, loader.dataset.digest, len(loader.dataset))
loader.close()
"""

_OPEN = """
import sys, time, leat
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
before, begin = resident(), time.monotonic()
dataset = leat.Dataset(sys.argv[1])
length, key = len(dataset), dataset.key(len(dataset) // 2)
print(time.monotonic() - begin, resident() - before, length)
"""


def run_job(url: str, bucket: Bucket, caches: pathlib.Path, nodes: int, ranks: int) -> list[list]:
    """Starts all ranks at once, as a launcher does; returns the output of
    each."""
    processes = []
    for rank in range(nodes * ranks):
        launch = {"RANK": rank, "WORLD_SIZE": nodes * ranks, "LOCAL_RANK": rank % ranks,
                  "LOCAL_WORLD_SIZE": ranks, "LEAT_CACHE_DIR": caches / str(rank // ranks)}
        processes.append(subprocess.Popen(
            [sys.executable, "-c", _RANK, url, bucket.url], stdout=subprocess.PIPE, text=True,
            env=os.environ | {name: str(value) for name, value in launch.items()}))
    told = [process.communicate()[0].split() for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit("a rank failed")
    return told


def start_rows(keys: int, nodes: int, ranks: int, folder: pathlib.Path) -> list[dict[str, Any]]:
    rows = []
    (folder / "data" / "train").mkdir(parents=True)
    (folder / "data" / "train" / "x.bin").write_bytes(bytes(1000))
    with Bucket(folder, latency="0", repeat=f"data/train/x.bin:{keys}") as bucket:
        for start in ("first", "second"):
            bucket.reset_counters()
            begin = time.monotonic()
            told = run_job("s3://data/train", bucket, folder / "caches", nodes, ranks)
            seconds = time.monotonic() - begin
            if {tuple(line[2:]) for line in told} != {(told[0][2], str(keys))}:
                raise SystemExit("ranks have different catalogues")
            rows.append({
                "what": f"{start} start, {keys:,} keys, {nodes} x {ranks} ranks",
                "lists": bucket.counters()["list"],
                "start_s": max(float(line[0]) for line in told),
                "first_batch_s": max(float(line[1]) for line in told),
                "job_s": seconds,
            })
    return rows


def open_row(samples: int, folder: pathlib.Path) -> dict[str, Any]:
    """Makes a catalogue of shards, puts it where the cache has it, and opens it."""
    data = folder / f"open-{samples}"
    data.mkdir()
    cache = folder / f"cache-{samples}"
    environment = os.environ | {"LEAT_CACHE_DIR": str(cache)}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        environment.pop(name, None)
    (data / "0.bin").write_bytes(b"x")
    made = subprocess.run(["leat", "index", str(data), "--json"], env=environment, check=True,
                          capture_output=True, text=True)
    path = json.loads(made.stdout)["catalogue"]["location"]
    subprocess.run([make_catalogue(), path, str(samples)], check=True)
    told = subprocess.run([sys.executable, "-c", _OPEN, str(data)], env=environment, check=True,
                          capture_output=True, text=True).stdout.split()
    if int(told[2]) != samples:
        raise SystemExit(f"opened {told[2]} samples, not {samples}")
    size = os.path.getsize(path)
    os.unlink(path)
    return {"what": f"open {samples:,} samples", "open_s": float(told[0]),
            "rss_mb": int(told[1]) / 1e6, "file_mb": size / 1e6}


def make_catalogue() -> str:
    """The program that generates catalogues, built beside the package."""
    import leat

    root = pathlib.Path(leat.__file__).parents[2]
    program = root / "bench" / "make_catalogue"
    if not program.exists():
        raise SystemExit(f"{program} is not built: cmake -DLEAT_BUILD_BENCH=ON")
    return str(program)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--samples", type=int, default=100_000_000)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--only", choices=["start", "open"])
    parser.add_argument("--quick", action="store_true", help="does it work?")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.keys, options.samples, options.nodes, options.ranks = 20_000, 1_000_000, 2, 2
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="leat-bench-") as name:
        folder = pathlib.Path(name)
        if options.only != "open":
            rows += start_rows(options.keys, options.nodes, options.ranks, folder)
        if options.only != "start":
            rows += [open_row(options.samples // 10, folder), open_row(options.samples, folder)]
    columns = ("what", "lists", "start_s", "first_batch_s", "job_s", "open_s", "rss_mb", "file_mb")
    report("index", [{c: row.get(c, "") for c in columns} for row in rows], options.json)


if __name__ == "__main__":
    main()
