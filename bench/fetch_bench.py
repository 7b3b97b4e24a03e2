"""Fetching alone: objects a second, CPU a GET, one large object in parts.

    ./dev bench fetch [--runs 5] [--latency 20ms] [--quick] [--json]

How to read it: `efficiency` is the rate over n times that of one request in
flight. Below 0.9, something other than the latency is the limit. At 256 the rate
stands beside keep-alive Python threads, of which 64, 128 and 256 are tried; all
share this machine with the server. `us_per_get` is the client's CPU, without
hashing. `libcurl` beside it is a bare loop around the library that we send with,
and nothing else: the least that Leat could take. Every way makes its connections
and touches its memory in a pass that is not timed. Every row's GETs are counted
at the server. Before anything is timed, each way's bytes are checked against the
files, by the sum of their hashes.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import http.client
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable

import leat
from leat import _native
from measure import interleave, report, spread

ROUND_TRIPS = 48
LARGE_BYTES = 256 << 20
SIZES = {"4k": 4096, "100k": 100_000}
THREADS = (64, 128, 256)


def make_objects(root: pathlib.Path) -> None:
    """Folders of n objects each, hard links to a few hundred different files."""
    for name, size in SIZES.items():
        for count in counts():
            folder = root / name / f"n{count}" / "all"
            folder.mkdir(parents=True)
            for i in range(count):
                first = root / name / f"file{i % 256}"
                if not first.exists():
                    first.write_bytes(os.urandom(size))
                os.link(first, folder / f"{i:06}")
    (root / "large" / "one").mkdir(parents=True)
    (root / "large" / "one" / "object").write_bytes(os.urandom(1 << 20) * (LARGE_BYTES >> 20))


def counts() -> list[int]:
    return sorted({samples_for(n) for n in (1, 4, 16, 64, 256)})


def samples_for(in_flight: int) -> int:
    return max(64, in_flight * ROUND_TRIPS)


def leat_bench(url: str, bucket: leat.testing.Bucket, *flags: str) -> dict:
    """The last epoch of `leat bench`; GETs are those counted at the server."""
    bucket.reset_counters()
    command = [os.environ.get("LEAT_BINARY", "leat"), "bench", url, "--json",
               "--no-sign-request", "--shuffle", "false", *flags]  # fmt: skip
    done = subprocess.run(command, env={**os.environ, **bucket.env()}, capture_output=True,
                          text=True, check=True)  # fmt: skip
    result = json.loads(done.stdout)
    epochs = result["epochs"]
    sent = sum(epoch["requests"]["get"] for epoch in epochs)
    # One more looked for a published catalogue and was told there is none.
    counted = bucket.counters()["get"]
    if not sent <= counted <= sent + 1:
        sys.exit(f"{url}: {sent} GETs sent, {counted} counted at the server")
    return epochs[-1]


def leat_way(bucket: leat.testing.Bucket, size: str, in_flight: int) -> Callable[[], dict[str, float]]:
    count = samples_for(in_flight)
    flags = ("--max-in-flight", str(in_flight), "--global-batch-size", str(min(64, count)),
             "--threads", "1", "--memory", "96MiB", "--epochs", "2")  # fmt: skip

    def run() -> dict[str, float]:
        epoch = leat_bench(f"s3://{size}/n{count}", bucket, *flags, "--no-hash")
        return {
            "rate": epoch["samples"] / epoch["seconds"],
            "us_per_get": 1e6 * epoch["cpu_seconds"] / epoch["requests"]["get"],
        }

    return run


def floor_way(bucket: leat.testing.Bucket, size: str, in_flight: int) -> Callable[[], dict[str, float]]:
    """libcurl in a bare loop, at the same window."""
    count = samples_for(in_flight)
    passes = 2
    binary = pathlib.Path(shutil.which("leat") or "leat").resolve().parent.parent / "bench/libcurl_floor"
    url = f"{bucket.url}/{size}/n{count}/all"
    command = [str(binary), url, *map(str, (count, SIZES[size], in_flight, passes))]
    if bucket.url.startswith("https"):
        command.append(bucket.env()["AWS_CA_BUNDLE"])

    def run() -> dict[str, float]:
        bucket.reset_counters()
        result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        if bucket.counters()["get"] != passes * count:
            sys.exit(f"{url}: {bucket.counters()['get']} GETs counted at the server")
        return {
            "rate": count / result["seconds"],
            "us_per_get": 1e6 * result["cpu_seconds"] / result["requests"],
        }

    return run


def python_way(bucket: leat.testing.Bucket, size: str, threads: int, count: int,
               check: Callable[[int, bytes], None] | None = None) -> Callable[[], dict[str, float]]:  # fmt: skip
    """http.client over one kept connection a thread: the leanest there is."""
    host = urllib.parse.urlsplit(bucket.url).netloc

    def run() -> dict[str, float]:
        local = threading.local()

        def fetch(i: int) -> int:
            if not hasattr(local, "connection"):
                local.connection = http.client.HTTPConnection(host)
            local.connection.request("GET", f"/{size}/n{count}/all/{i:06}")
            body = local.connection.getresponse().read()
            if check:
                check(i, body)
            return len(body)

        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            sum(pool.map(fetch, range(count)))  # Opens the connections.
            bucket.reset_counters()
            cpu = cpu_seconds()
            begin = time.perf_counter()
            total = sum(pool.map(fetch, range(count)))
            seconds = time.perf_counter() - begin
        if total != count * SIZES[size] or bucket.counters()["get"] != count:
            sys.exit("the Python threads did not fetch what they should")
        return {"rate": count / seconds, "us_per_get": 1e6 * (cpu_seconds() - cpu) / count}

    return run


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def verify(bucket: leat.testing.Bucket, root: pathlib.Path, latency_free: leat.testing.Bucket) -> None:
    """Each way's bytes are those of the files, before anything is timed."""
    count = samples_for(16)
    for size in SIZES:
        files = [(root / size / f"n{count}" / "all" / f"{i:06}").read_bytes() for i in range(count)]
        # As leat/pipeline/content_hash.h says; one folder, so every label is 0.
        label = (0).to_bytes(8, "little")
        expected = sum(
            _native.hash_of_sample(0, i, [("data", data), ("label", label)])
            for i, data in enumerate(files)
        )
        epoch = leat_bench(f"s3://{size}/n{count}", bucket, "--global-batch-size", "64",
                           "--epochs", "1", "--drop-last", "false")  # fmt: skip
        if epoch["content_hash"] != f"{expected % 2**128:032x}":
            sys.exit(f"leat delivered other bytes than the files of {size}")
        seen: dict[int, str] = {}

        def check(i: int, body: bytes) -> None:
            seen[i] = hashlib.blake2b(body).hexdigest()

        python_way(bucket, size, 16, count, check)()
        if seen != {i: hashlib.blake2b(data).hexdigest() for i, data in enumerate(files)}:
            sys.exit(f"the Python threads read other bytes than the files of {size}")
    epoch = leat_bench("s3://large/one", latency_free, "--global-batch-size", "1", "--epochs", "1",
                       "--drop-last", "false")  # fmt: skip
    large = (root / "large" / "one" / "object").read_bytes()
    expected = _native.hash_of_sample(0, 0, [("data", large)])
    if epoch["content_hash"] != f"{expected:032x}":
        sys.exit("leat delivered other bytes than the large object")


def large_way(bucket: leat.testing.Bucket) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        # The second epoch: memory is there, connections are open.
        epoch = leat_bench("s3://large/one", bucket, "--global-batch-size", "1", "--epochs", "3",
                           "--threads", "1", "--no-hash", "--drop-last", "false",
                           "--max-in-flight", "4", "--memory", "1GiB")  # fmt: skip
        return {"gigabytes_per_second": LARGE_BYTES / epoch["seconds"] / 1e9}

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--quick", action="store_true", help="one run, few rows: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    runs = 1 if args.quick else args.runs
    windows = (1, 16) if args.quick else (1, 4, 16, 64, 256)

    with tempfile.TemporaryDirectory(prefix="leat-fetch-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        root = pathlib.Path(folder) / "buckets"
        make_objects(root)
        with (
            leat.testing.Bucket(root, latency=args.latency) as far,
            leat.testing.Bucket(root, latency="0ms") as near,
            leat.testing.Bucket(root, latency=args.latency, tls=True) as secure,
        ):
            verify(far, root, near)
            ways: dict[str, Callable[[], dict[str, float]]] = {}
            for n in windows:
                ways[f"leat 100k {n}"] = leat_way(far, "100k", n)
            if not args.quick:
                for threads in THREADS:
                    ways[f"python 100k {threads}"] = python_way(far, "100k", threads, samples_for(256))
                for name, bucket, size in (("4k", far, "4k"), ("100k", far, "100k"), ("100k tls", secure, "100k")):
                    ways[f"libcurl {name} 64"] = floor_way(bucket, size, 64)
                    ways[f"leat {name} 64"] = leat_way(bucket, size, 64)
            ways["leat 256MiB parts"] = large_way(near)
            found = interleave(ways, runs)

    one, _ = spread(found["leat 100k 1"]["rate"])
    rows = []
    for name, values in found.items():
        row: dict[str, object] = {"way": name}
        for key, numbers in values.items():
            row[key], row[f"{key}_mad"] = spread(numbers)
        if name.startswith("leat 100k ") and "tls" not in name and "rate" in row:
            row["efficiency"] = round(row["rate"] / (one * int(name.split()[-1])), 3)
        rows.append(row)
    columns = ["way", "rate", "rate_mad", "efficiency", "us_per_get", "us_per_get_mad",
               "gigabytes_per_second", "gigabytes_per_second_mad"]  # fmt: skip
    ordered = [{column: row.get(column, "") for column in columns} for row in rows]
    report(f"fetch at {args.latency}, {runs} interleaved runs", ordered, args.json)
    if not args.quick:
        best = max(row["rate"] for row in rows if str(row["way"]).startswith("python"))
        ours = next(row["rate"] for row in rows if row["way"] == "leat 100k 256")
        print(f"leat at 256 over the best of the Python threads: {ours / best:.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
