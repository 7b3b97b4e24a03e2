"""A flow where fetching is the bound: how much faster are more processes, and more calls?

    ./dev bench prepare [--runs 3] [--latency 55ms] [--bandwidth 2MB/s] [--quick] [--json]

`leat prepare` verifies objects of 256 KB in a bucket that far away, of which a connection has that rate, in units of 32
objects. "1 process" does one unit at a time; "4 processes" is `--processes 4`; "4 calls" are four calls with a process
each, which share the state as four machines would. `of_one` is the time of one process over that of the way in the
same turn: 4 would mean that nothing is lost. Server and processes share this machine, so its cores bound it, too:
`cpu_s` is what the way used. Every way has to write the same notes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import leat
from measure import interleave, report, spread

OBJECT_BYTES = 256 << 10
EACH = 32
"""Objects in a unit."""
WAYS = {"1 process": (1, 1), "4 processes": (1, 4), "4 calls": (4, 1)}
"""The calls of each way, and the processes of each call."""

FLOW = """
[source]
url = "s3://bucket/objects"

[store]
endpoint_url = "{url}"
no_sign_request = true

[[step]]
do = "verify"
unit_bytes = "{bytes}B"
"""


def way_of(bucket: leat.testing.Bucket, calls: int, processes: int, notes: list[str]) -> dict[str, float]:
    """Does the flow in a new folder; `notes` gets a hash of what it noted."""
    with tempfile.TemporaryDirectory() as folder:
        flow = pathlib.Path(folder, "flow.toml")
        flow.write_text(FLOW.format(url=bucket.url, bytes=EACH * (OBJECT_BYTES + 1)))
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = ["leat", "prepare", str(flow), "--processes", str(processes), "--json"]
        env = {**os.environ, "LEAT_CACHE_DIR": f"{folder}/cache"}
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, env=env) for _ in range(calls)]
        told = [call.communicate()[0] for call in started]
        seconds = time.perf_counter() - begun
        if any(call.returncode for call in started):
            sys.exit("leat prepare failed")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for one in told:
        steps = json.loads(one)["steps"]
        notes.append(hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).hexdigest())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu_s": cpu, "units": float(steps[0]["units"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--latency", default="55ms")
    parser.add_argument("--bandwidth", default="2MB/s", help="of a connection")
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--quick", action="store_true", help="show that it works")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.units = 1, 4
    with tempfile.TemporaryDirectory() as root:
        file = pathlib.Path(root, "bucket/objects.bin")
        file.parent.mkdir(parents=True)
        file.write_bytes(os.urandom(OBJECT_BYTES))
        objects = pathlib.Path(root, "bucket/objects")
        objects.mkdir()
        (objects / "one.bin").write_bytes(file.read_bytes())
        with leat.testing.Bucket(root, latency=options.latency, bandwidth=options.bandwidth,
                                 repeat=f"bucket/objects/one.bin:{options.units * EACH}") as bucket:  # fmt: skip
            notes: list[str] = []
            found = interleave(
                {name: lambda name=name: way_of(bucket, *WAYS[name], notes) for name in WAYS}, options.runs
            )
    if len(set(notes)) != 1:
        sys.exit("the ways wrote different notes")
    one = found["1 process"]["seconds"]
    rows = []
    for name, figures in found.items():
        seconds, off = spread(figures["seconds"])
        ratio, ratio_off = spread([first / mine for first, mine in zip(one, figures["seconds"])])
        megabytes = figures["units"][0] * EACH * OBJECT_BYTES / 1e6
        rows.append({
            "way": name, "seconds": round(seconds, 2), "seconds_mad": round(off, 2),
            "MB_per_s": round(megabytes / seconds, 1),
            "cpu_s": round(spread(figures["cpu_s"])[0], 1), "of_one": round(ratio, 2), "of_one_mad": round(ratio_off, 2),
        })  # fmt: skip
    report(f"a flow of {options.units} units, {options.latency} away, {options.runs} interleaved runs", rows, options.json)


if __name__ == "__main__":
    main()
