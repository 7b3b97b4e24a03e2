"""A store that is unwell: what it costs, beside boto3, s3torchconnector and obstore on the same server.

    ./dev bench faults [--runs 5] [--only limit] [--part faults|ranks|late] [--quick] [--json] [--publish]

Each row of the first table is one way of reading 3,000 objects of 4 KB from `leat bucket`, 5 ms away, with 64 requests
in flight, while the store does what the row says. All ways do the same on a store that is well; their time there is taken
off. `extra_s` is the time beyond that, and beyond the fault's own. `gets_an_object` is what the server counted.
`refused` is the refusals for each good GET. `content` says whether all bytes were right; else it is the error.

The second table has the ranks of a node, each a process, on a service that serves 500 GETs a second. `of_limit` is the
share of that rate which they reach, from the first request to the last.

The third has the waits for a batch of 32 objects where first bytes come after lognormal times around 110 ms, and 2 % or
none of them ten times later: with second requests, and with none. `wait_999_ms` is the time that one wait of a thousand
exceeds, of all runs together, which are long (twelve epochs), so that it is not that of their first batches, for which
nothing was read ahead; `first_ms` is the median of those. `more_gets_percent` is the second requests for a hundred reads.

The others read in threads of a process: boto3 (standard retries, 10 attempts), s3torchconnector and obstore (their
defaults). A row is left out if its library is found neither here nor in build/peers:

    pip install --target build/peers --no-deps obstore s3torchconnector s3torchconnectorclient
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import leat
import leat.testing
from measure import interleave, report, spread

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests/python"))
from unwell_bucket import Comings, read_in_ranks, small_objects  # noqa: E402

IN_FLIGHT = 64
BATCH = 50
LIMIT_OF_RANKS = 500
RANKS = (1, 2, 8)
PEERS = ("boto3", "s3torchconnector", "obstore")
PEERS_FOLDER = HERE.parent / "build/peers"


class Fault(NamedTuple):
    options: tuple[str, ...] = ()
    away_seconds: float = 0  # The store goes away for so long, after a third of the objects.
    limit: int = 0
    script: str = ""


FAULTS = {
    "well": Fault(),
    "limit of 300/s": Fault(("--most-gets", "300"), limit=300),
    "503: 1 %": Fault(("--fault", "503:1%")),
    "503: 10 %": Fault(("--fault", "503:10%")),
    "503: 50 %": Fault(("--fault", "503:50%")),
    "reset: 2 %": Fault(("--fault", "reset:2%")),
    "truncated: 2 %": Fault(("--fault", "truncate:2%")),
    "ten times late: 2 %": Fault(("--fault", "slow:50ms:2%")),
    "one at 1 byte/s": Fault(script="after 1000 GET * trickle x1"),
    "away for 0.5 s": Fault(away_seconds=0.5),
    "away for 2 s": Fault(away_seconds=2),
    "away for 6 s": Fault(away_seconds=6),
    "away for 20 s": Fault(away_seconds=20),
    "away for 60 s": Fault(away_seconds=60),
}

# READY, once the client is there, and then digests, whose sum tells contents apart in any order.
READY = bytes(8)
Read = Callable[[str, list[str]], Iterator[bytes]]
MOST_SECONDS = 240.0  # A way that takes longer hangs.


def digest_of(part: bytes) -> bytes:
    return hashlib.blake2b(part, digest_size=8).digest()


def with_leat(endpoint: str, keys: list[str]) -> Iterator[bytes]:
    """The order is the loader's own."""
    with leat.Loader(
        "s3://objects", batch_size=BATCH, shuffle=True, epochs=1, output="numpy", batch="dict",
        max_in_flight=IN_FLIGHT, storage_options={"endpoint_url": endpoint, "no_sign_request": True},
    ) as loader:  # fmt: skip
        yield READY
        for batch in loader:
            yield from (digest_of(bytes(one)) for one in batch["data"])


class PeerError(Exception):
    """The name of what the other library raised."""


def peer_environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(PEERS_FOLDER), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def with_peer(way: str, endpoint: str, keys: list[str]) -> Iterator[bytes]:
    process = subprocess.Popen(
        [sys.executable, str(HERE / "faults_peer.py"), way, endpoint, str(IN_FLIGHT)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=peer_environment(),
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(MOST_SECONDS, end)
    timer.start()
    try:
        process.stdin.write("\n".join(keys).encode())
        process.stdin.close()
        while digest := process.stdout.read(8):
            yield digest
        said = process.stderr.read().decode().split()
        if process.wait() != 0:
            raise PeerError("hangs" if is_late.is_set() else said[-1] if said else "ended")
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def ways() -> dict[str, Read]:
    found: dict[str, Read] = {"leat": with_leat}
    for peer in PEERS:
        known = subprocess.run(
            [sys.executable, "-c", f"import {peer}"], capture_output=True, env=peer_environment(), check=False
        )
        if known.returncode == 0:
            found[peer] = functools.partial(with_peer, peer)
        else:
            print(f"{peer} is not installed; its rows are left out", file=sys.stderr)
    return found


class Course(NamedTuple):
    seconds: float
    gets: int
    refused: int
    content: str


def sum_of(digests: Iterator[bytes]) -> int:
    return sum(int.from_bytes(digest, "little") for digest in digests)


def run(read: Read, fault: Fault, folder: pathlib.Path, keys: list[str], right: int) -> Course:
    options = list(fault.options)
    if fault.script:
        script = folder.parent.parent / "faults.txt"
        script.write_text(fault.script + "\n")
        options += ["--fault-script", str(script)]
    bucket = Comings(folder.parent, "--latency", "5ms", *options)
    bucket.begin()
    back: threading.Thread | None = None
    gets = refused = 0
    began = time.monotonic()

    def parts() -> Iterator[bytes]:
        nonlocal back, gets, refused, began
        found = read(bucket.url, keys)
        assert next(found, READY) == READY
        began = time.monotonic()
        for number, part in enumerate(found):
            if fault.away_seconds and number == len(keys) // 3:
                gets, refused = counted(bucket)
                back = bucket.is_away_for(fault.away_seconds)
            yield part

    try:
        total = sum_of(parts())
        content = "right" if total == right else "WRONG"
    except PeerError as error:
        content = str(error)
    except Exception as error:
        content = type(error).__name__
    seconds = time.monotonic() - began
    if back is not None:
        back.join()
    more = counted(bucket)
    bucket.end()
    return Course(seconds, gets + more[0], refused + more[1], content)


def counted(bucket: Comings) -> tuple[int, int]:
    found = bucket.counters()
    return found["get"], found["faults"]


def rows_of(found: dict[str, dict[str, list[Any]]], names: list[str], count: int) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        for way in {key.split(": ", 1)[0] for key in found}:
            courses = found[f"{way}: {name}"]
            well = spread(found[f"{way}: well"]["seconds"])[0]
            contents = [content for content in courses["content"] if content != "right"]
            fault = FAULTS[name]
            # A limit and an outage take their own time.
            own = max(fault.away_seconds, count / fault.limit - well if fault.limit else 0)
            seconds, mad = spread(courses["seconds"])
            gets = spread(courses["gets"])[0]
            refused = spread(courses["refused"])[0]
            rows.append({
                "fault": name, "way": way, "seconds": seconds, "mad": mad,
                "extra_s": round(seconds - well - own, 2), "gets_an_object": round(gets / count, 3),
                "refused": round(refused / max(1, gets - refused), 3),
                "content": f"{len(contents)} of {len(courses['content'])} runs: {contents[0]}" if contents else "right",
            })  # fmt: skip
    return sorted(rows, key=lambda row: (names.index(row["fault"]), row["way"] != "leat", row["way"]))


def faults(folder: pathlib.Path, count: int, runs: int, names: list[str], is_json: bool) -> None:
    keys = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.bin"))
    right = sum_of(digest_of((folder / key).read_bytes()) for key in keys)
    tried = {
        f"{way}: {name}": lambda read=read, name=name: run(read, FAULTS[name], folder, keys, right)._asdict()
        for name in names
        for way, read in ways().items()
    }
    report("a store that is unwell", rows_of(interleave(tried, runs), names, count), is_json)


def run_ranks(ranks: int, folder: pathlib.Path, epochs: int) -> dict[str, Any]:
    bucket = Comings(folder.parent, "--latency", "5ms", "--most-gets", str(LIMIT_OF_RANKS))
    bucket.begin()
    try:
        found = read_in_ranks(bucket.url, ranks, epochs=epochs, in_flight=IN_FLIGHT)
        gets, refused = counted(bucket)
    finally:
        bucket.end()
    return {"seconds": found.seconds, "served": gets - refused, "refused": refused, "contents": "".join(found.contents)}


def ranks(folder: pathlib.Path, runs: int, epochs: int, is_json: bool) -> None:
    found = interleave({f"{n} ranks": functools.partial(run_ranks, n, folder, epochs) for n in RANKS}, runs)
    contents = {content for course in found.values() for content in course["contents"]}
    rows = []
    for way, course in found.items():
        seconds, mad = spread(course["seconds"])
        served = statistics.median(course["served"])
        rows.append({
            "way": way, "seconds": seconds, "mad": mad, "of_limit": round(served / seconds / LIMIT_OF_RANKS, 3),
            "refused": round(statistics.median(course["refused"]) / served, 3),
            "content": "right" if len(contents) == 1 else "WRONG",
        })  # fmt: skip
    report(f"ranks of a node, {LIMIT_OF_RANKS} GETs a second", rows, is_json)


def run_late(url: str, count: int, epochs: int, no_hedge: bool) -> tuple[list[float], float]:
    """The waits for batches, and the second requests for each first one."""
    waits: list[float] = []
    with leat.Loader(
        "s3://objects", batch_size=32, shuffle=True, epochs=epochs, output="numpy", max_in_flight=IN_FLIGHT,
        storage_options={"endpoint_url": url, "no_sign_request": True, "no_hedge": no_hedge},
    ) as loader:  # fmt: skip
        for _epoch in range(epochs):
            before = time.monotonic()
            for _batch in loader:
                now = time.monotonic()
                waits.append(now - before)
                # The time of a step, so that what was read ahead is there and a wait is one late read.
                time.sleep(STEP_SECONDS)
                before = time.monotonic()
        counted = loader.metrics()
    seconds = counted["leat_store_hedges_total"]
    return waits, seconds / (counted["leat_store_reads_total"] - seconds)


STEP_SECONDS = 0.08


def late(folder: pathlib.Path, count: int, runs: int, epochs: int, is_json: bool) -> None:
    rows = []
    for share in ("2 %", "none"):
        fault = ("--fault", "slow:1100ms:2%") if share != "none" else ()
        for no_hedge in (False, True):
            waits: list[float] = []
            first = []
            more_gets = []
            for number in range(runs):
                print(f"run {number + 1} of {runs}: {share} late, no_hedge={no_hedge}", file=sys.stderr)
                with_seed = ("--seed", str(number))
                bucket = Comings(folder.parent, "--latency", "lognormal:110ms,0.5", *fault, *with_seed)
                bucket.begin()
                try:
                    some, more = run_late(bucket.url, count, epochs, no_hedge)
                finally:
                    bucket.end()
                waits += some
                first.append(some[0])
                more_gets.append(more)
            waits.sort()
            rows.append({
                "late": share, "second_requests": "none" if no_hedge else "as usual", "batches": len(waits),
                "first_ms": round(1000 * statistics.median(first)),
                "wait_50_ms": round(1000 * waits[len(waits) // 2], 1),
                "wait_99_ms": round(1000 * waits[int(0.99 * len(waits))]),
                "wait_999_ms": round(1000 * waits[int(0.999 * len(waits))]),
                "more_gets_percent": round(100 * statistics.mean(more_gets), 2),
            })  # fmt: skip
    report("first bytes that are late", rows, is_json)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="the faults whose name has this in it, and no other table")
    parser.add_argument("--part", choices=("faults", "ranks", "late"), help="one of the tables")
    parser.add_argument("--quick", action="store_true", help="one run of a few faults, to see that it works")
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    names = [name for name in FAULTS if name == "well" or words.only in name]
    parts = {words.part} if words.part else {"faults"} if words.only else {"faults", "ranks", "late"}
    runs = 1 if words.quick else words.runs
    if words.quick:
        names = ["well", "limit of 300/s", "503: 10 %", "away for 0.5 s"]
    count = 600 if words.quick else 3000
    with tempfile.TemporaryDirectory() as scratch:
        folder = small_objects(pathlib.Path(scratch) / "buckets/objects", count)
        if "faults" in parts:
            faults(folder, count, runs, names, words.json)
        if "ranks" in parts:
            ranks(folder, runs, 1 if words.quick else 3, words.json)
        if "late" in parts:
            late(folder, count, runs, 1 if words.quick else 12, words.json)


if __name__ == "__main__":
    main()
