"""A store that is unwell: what it costs, beside boto3 and obstore on the same server.

    ./dev bench faults [--runs 5] [--only limit] [--quick] [--json] [--publish]

Each row is one way of reading 3,000 objects of 4 KB from `leat bucket`, 5 ms away, with 64 requests in flight, while the
store does what the row says. All ways do the same on a store that is well; their time there is taken off.

How to read it: `extra_s` is the time beyond that on the well store. `gets_an_object` is what the server counted.
`refused` is the refusals for each good GET. `content` says whether all bytes were right; else it is the error. boto3
(standard retries, 10 attempts) and obstore (its defaults) run in threads; obstore's row is left out where
it is not installed (`pip install obstore`).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import pathlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import leat
import leat.testing
from measure import interleave, report, spread

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/python"))
from unwell_bucket import Comings, small_objects  # noqa: E402

IN_FLIGHT = 64
BATCH = 50


class Fault(NamedTuple):
    options: tuple[str, ...] = ()
    away_seconds: float = 0  # The store goes away for so long, after a third of the objects.
    limit: int = 0


FAULTS = {
    "well": Fault(),
    "limit of 300/s": Fault(("--most-gets", "300"), limit=300),
    "503: 1 %": Fault(("--fault", "503:1%")),
    "503: 10 %": Fault(("--fault", "503:10%")),
    "503: 50 %": Fault(("--fault", "503:50%")),
    "reset: 2 %": Fault(("--fault", "reset:2%")),
    "truncated: 2 %": Fault(("--fault", "truncate:2%")),
    "away for 0.5 s": Fault(away_seconds=0.5),
    "away for 2 s": Fault(away_seconds=2),
    "away for 6 s": Fault(away_seconds=6),
    "away for 20 s": Fault(away_seconds=20),
    "away for 60 s": Fault(away_seconds=60),
}

Read = Callable[[str, list[str]], Iterator[bytes]]


def with_leat(endpoint: str, keys: list[str]) -> Iterator[bytes]:
    """The order is the loader's own; the sum of hashes does not depend on it."""
    with leat.Loader(
        "s3://objects", batch_size=BATCH, shuffle=True, epochs=1, output="numpy", batch="dict",
        max_in_flight=IN_FLIGHT, storage_options={"endpoint_url": endpoint, "no_sign_request": True},
    ) as loader:  # fmt: skip
        for batch in loader:
            yield from (bytes(one) for one in batch["data"])


def in_threads(get: Callable[[str], bytes], keys: list[str]) -> Iterator[bytes]:
    with concurrent.futures.ThreadPoolExecutor(IN_FLIGHT) as pool:
        try:
            yield from pool.map(get, keys)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def with_boto3(endpoint: str, keys: list[str]) -> Iterator[bytes]:
    import boto3
    import botocore
    import botocore.config

    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1",
        config=botocore.config.Config(
            signature_version=botocore.UNSIGNED, max_pool_connections=IN_FLIGHT,
            retries={"mode": "standard", "total_max_attempts": 10}, s3={"addressing_style": "path"},
        ),
    )  # fmt: skip
    return in_threads(lambda key: client.get_object(Bucket="objects", Key=key)["Body"].read(), keys)


def with_obstore(endpoint: str, keys: list[str]) -> Iterator[bytes]:
    import obstore
    from obstore.store import S3Store

    store = S3Store(
        "objects", endpoint=endpoint, region="us-east-1", skip_signature=True,
        virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip
    return in_threads(lambda key: bytes(obstore.get(store, key).bytes()), keys)


def ways() -> dict[str, Read]:
    found: dict[str, Read] = {"leat": with_leat, "boto3": with_boto3}
    try:
        import obstore  # noqa: F401

        found["obstore"] = with_obstore
    except ImportError:
        print("obstore is not installed; its rows are left out", file=sys.stderr)
    return found


class Course(NamedTuple):
    seconds: float
    gets: int
    refused: int
    content: str


def sum_of(parts: Iterator[bytes]) -> int:
    return sum(int.from_bytes(hashlib.blake2b(part, digest_size=8).digest(), "little") for part in parts)


def run(read: Read, fault: Fault, folder: pathlib.Path, keys: list[str], right: int) -> Course:
    bucket = Comings(folder.parent, "--latency", "5ms", *fault.options)
    bucket.begin()
    back: threading.Thread | None = None
    gets = refused = 0

    def parts() -> Iterator[bytes]:
        nonlocal back, gets, refused
        for number, part in enumerate(read(bucket.url, keys)):
            if fault.away_seconds and number == len(keys) // 3:
                gets, refused = counted(bucket)
                back = bucket.is_away_for(fault.away_seconds)
            yield part

    began = time.monotonic()
    try:
        total = sum_of(parts())
        content = "right" if total == right else "WRONG"
    except Exception as error:  # Each way has its own.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="the faults whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="one run of a few faults, to see that it works")
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    names = [name for name in FAULTS if name == "well" or words.only in name]
    if words.quick:
        names = ["well", "limit of 300/s", "503: 10 %", "away for 0.5 s"]
    count = 600 if words.quick else 3000
    with tempfile.TemporaryDirectory() as scratch:
        folder = small_objects(pathlib.Path(scratch) / "objects", count)
        keys = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.bin"))
        right = sum_of((folder / key).read_bytes() for key in keys)
        tried = {
            f"{way}: {name}": lambda read=read, name=name: run(read, FAULTS[name], folder, keys, right)._asdict()
            for name in names
            for way, read in ways().items()
        }
        found = interleave(tried, 1 if words.quick else words.runs)
    report("a store that is unwell", rows_of(found, names, count), words.json)


if __name__ == "__main__":
    main()
