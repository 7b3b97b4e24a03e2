"""Half an hour of a store that is unwell: whether memory, descriptors and threads stay, and every byte is right.

    ./dev bench soak [--minutes 30] [--quick] [--json] [--publish]

One process reads 2,000 objects of 20 KB again and again with one loader, and between two of its epochs 4 tar shards with
a new loader each, from `leat bucket`, 5 ms away. The store refuses, breaks off, cuts short, stalls, trickles, is late and
flips bits all the time, and every two minutes it is gone for two seconds. Each epoch's content is compared. Once a second
the process's anonymous memory (RssAnon), descriptors and threads are read.

`mb_an_hour` is the slope of memory after the warm-up, the first fifth: the median of the slopes between all pairs of
minutes' medians (Theil and Sen). A loader that is opened in an outage waits for its end. `fds` and `threads` are the least and the most after the warm-up, at the end of an epoch.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import leat
import leat.testing
from measure import report

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests/python"))
from unwell_bucket import Comings  # noqa: E402

OBJECTS, OBJECT_BYTES = 2_000, 20_000
SHARDS, MEMBERS, MEMBER_BYTES = 4, 1_000, 4_000
FAULTS = ("503:2%", "reset:1%", "truncate:1%", "stall:0.02%", "trickle:0.02%", "slow:300ms:1%", "flip:0.5%")
SECONDS_BETWEEN_OUTAGES, OUTAGE_SECONDS = 120.0, 2.0
WARM_UP = 0.2


def make_data(place: pathlib.Path, scale: int) -> dict[str, int]:
    """Folders of objects and of shards, and for each the sum of its samples' digests."""
    sums = {"objects": 0, "shards": 0}
    (place / "objects").mkdir(parents=True)
    (place / "shards").mkdir()
    for number in range(OBJECTS // scale):
        data = hashlib.shake_128(f"object {number}".encode()).digest(OBJECT_BYTES)
        (place / "objects" / f"{number:05}.bin").write_bytes(data)
        sums["objects"] += digest_of(data)
    for shard in range(SHARDS):
        with tarfile.open(place / "shards" / f"{shard}.tar", "w") as archive:
            for number in range(MEMBERS // scale):
                data = hashlib.shake_128(f"member {shard} {number}".encode()).digest(MEMBER_BYTES)
                file = place / "member"
                file.write_bytes(data)
                archive.add(file, f"{shard}-{number:05}.bin")
                sums["shards"] += digest_of(data)
    (place / "member").unlink()
    return sums


def digest_of(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def resources() -> tuple[float, int, int]:
    """Anonymous memory in MB, descriptors, threads of this process."""
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) / 1024, len(os.listdir("/proc/self/fd")), int(status["Threads"])


def train(endpoint: str, seconds: float, sums: dict[str, int]) -> None:
    """Runs in a process of its own; writes what it finds as lines of JSON."""
    storage: Any = {"endpoint_url": endpoint, "no_sign_request": True}
    logging.getLogger("leat").setLevel(logging.ERROR)  # It tells of each outage.
    began = time.monotonic()
    is_over = threading.Event()

    def tell(**found: Any) -> None:
        # One write: two threads tell.
        os.write(1, (json.dumps({"at": time.monotonic() - began, **found}) + "\n").encode())

    def watch() -> None:
        while not is_over.wait(1):
            tell(memory=resources()[0])

    watcher = threading.Thread(target=watch)
    watcher.start()

    def check(name: str, batches: Iterator[Any], field: str) -> None:
        found = sum(digest_of(bytes(one)) for batch in batches for one in batch[field])
        memory, fds, threads = resources()
        tell(epoch=name, is_right=found == sums[name], fds=fds, threads=threads, memory=memory)

    with leat.Loader(
        "s3://objects", batch_size=50, shuffle=True, output="numpy", batch="dict", memory="64MiB", storage_options=storage
    ) as loader:
        while time.monotonic() - began < seconds:
            check("objects", iter(loader), "data")
            with leat.Loader(
                "s3://shards", batch_size=50, shuffle=True, epochs=1, output="numpy", batch="dict", memory="64MiB",
                storage_options=storage,
            ) as other:  # fmt: skip
                check("shards", iter(other), "bin")
    is_over.set()
    watcher.join()


def slope_an_hour(found: list[dict[str, Any]], bucket_seconds: float) -> float:
    """The slope of memory in MB, by the medians of equal stretches of time."""
    stretches: dict[int, list[float]] = {}
    for one in found:
        if "memory" in one:
            stretches.setdefault(int(one["at"] / bucket_seconds), []).append(one["memory"])
    medians = {number: statistics.median(values) for number, values in stretches.items()}
    slopes = [
        (medians[b] - medians[a]) / ((b - a) * bucket_seconds) * 3600 for a, b in itertools.combinations(sorted(medians), 2)
    ]
    return statistics.median(slopes) if slopes else 0.0


def keep_checksums(folder: pathlib.Path, port: int, environment: dict[str, str]) -> None:
    """Keeps checksums of the samples in shards: the service's own are of whole objects, and pieces are parts."""
    well = Comings(folder, port=port)
    well.begin()
    subprocess.run(
        [leat.testing.find_binary(), "index", "s3://shards", "--checksums", "--endpoint-url", well.url, "--no-sign-request"],
        check=True, capture_output=True, env=environment,
    )  # fmt: skip
    well.end()


def soak(folder: pathlib.Path, seconds: float, scale: int) -> dict[str, Any]:
    sums = make_data(folder / "data", scale)
    options = [word for fault in FAULTS for word in ("--fault", fault)]
    environment = {**os.environ, "LEAT_CACHE_DIR": str(folder / "kept")}
    bucket = Comings(folder / "data", "--latency", "5ms", "--checksums", *options)
    keep_checksums(folder / "data", bucket.port, environment)
    bucket.begin()
    process = subprocess.Popen(
        [sys.executable, __file__, "--train", bucket.url, str(seconds), json.dumps(sums)], stdout=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    found: list[dict[str, Any]] = []
    counters = {"get": 0, "faults": 0}
    outages = 0
    next_outage = SECONDS_BETWEEN_OUTAGES if scale == 1 else 3.0
    assert process.stdout is not None
    back: threading.Thread | None = None
    for line in process.stdout:
        found.append(json.loads(line))
        if found[-1]["at"] >= next_outage:
            if back is not None:
                back.join()
            for key in counters:  # They begin anew with the server.
                counters[key] += bucket.counters()[key]
            back = bucket.is_away_for(OUTAGE_SECONDS)
            outages += 1
            next_outage += SECONDS_BETWEEN_OUTAGES
    ended = process.wait()
    if back is not None:
        back.join()
    for key in counters:
        counters[key] += bucket.counters()[key]
    bucket.end()
    if ended != 0:
        raise SystemExit(f"the training ended with {ended} after {found[-1]['at'] if found else 0:.0f} s")
    warm = [one for one in found if one["at"] >= WARM_UP * seconds]
    epochs = [one for one in found if "epoch" in one]
    after = [one for one in warm if "epoch" in one]
    return {
        "minutes": round(found[-1]["at"] / 60, 1),
        "epochs": len(epochs),
        "right": sum(one["is_right"] for one in epochs),
        "gets": counters["get"],
        "faults": counters["faults"],
        "outages": outages,
        "memory_mb": round(statistics.median(one["memory"] for one in warm if "memory" in one), 1),
        "mb_an_hour": round(slope_an_hour(warm, seconds / 30), 2),
        "fds": f"{min(one['fds'] for one in after)} to {max(one['fds'] for one in after)}",
        "threads": f"{min(one['threads'] for one in after)} to {max(one['threads'] for one in after)}",
    }


def main() -> None:
    if sys.argv[1:2] == ["--train"]:
        train(sys.argv[2], float(sys.argv[3]), json.loads(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leat-soak-") as made:
        row = soak(pathlib.Path(made), 6 if args.quick else 60 * args.minutes, 20 if args.quick else 1)
    report("a soak", [row], args.json)
    if row["right"] != row["epochs"]:
        raise SystemExit("an epoch had other content than it should")


if __name__ == "__main__":
    main()
