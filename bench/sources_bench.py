"""A mix of many sources beside one source of the same objects.

    ./dev bench sources [--runs 5] [--sources 64] [--objects 32000] [--size 20000] [--latency 20ms] [--quick] [--json]

All objects lie in one bucket, in as many folders as there are sources. "one" reads them as one
dataset with a full shuffle, "mix" as a `leat.mix` of the folders by unequal weights, "shards, one" and "mix of shards" likewise
over a tar shard for each folder. "once" is a mix in which each sample comes once; by weights, a
shard of a light source is read whole for the few samples that an epoch takes of it, and a shard of
a heavy one twice. Each run is a process of its own: a whole epoch of as many samples, by default
settings.
How to read it: `rate` is samples/s over the epoch, `of_one` the rate over that of one source;
`mb` is the peak resident memory, which goes by how far the tuner lets a run read ahead, `open_mb` the peak until the
loader is open, which goes by the sources; `threads` the most threads. `first_ms` is the time from the
opened datasets to the first batch. Each run proves its content: each sample tells its folder and
its number, and must be what its key says. GETs are counted at the server.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
from typing import Any

from measure import interleave, report, spread

import leat
import leat.testing

BATCH = 256


def make(folder: pathlib.Path, sources: int, objects: int, size: int) -> None:
    """objects/dNN/NNNNN.bin, and shards/dNN.tar with the same."""
    body = os.urandom(size)
    (folder / "shards").mkdir(parents=True)
    for source in range(sources):
        place = folder / "objects" / f"d{source:02}"
        place.mkdir(parents=True)
        with tarfile.open(folder / "shards" / f"d{source:02}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(objects // sources):
                data = f"{source:04}{number:08}".encode() + body[12:]
                (place / f"{number:08}.bin").write_bytes(data)
                info = tarfile.TarInfo(f"{source:04}{number:08}.bin")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def one_run(way: str, sources: int, objects: int) -> dict[str, float]:
    """In a process of its own."""
    import resource
    import threading
    import time

    kind = "shards" if "shards" in way else "objects"
    places = [f"s3://data/{kind}/d{source:02}" + (".tar" if kind == "shards" else "") for source in range(sources)]
    if way.startswith("mix"):
        parts = {f"d{number:02}": leat.Dataset(place) for number, place in enumerate(places)}
        begin = time.perf_counter()
        if way.endswith("once"):
            data: Any = leat.mix(parts)
        else:
            weighed = {name: (part, 1 + number % 7) for number, (name, part) in enumerate(parts.items())}
            data = leat.mix(weighed, samples=objects)
    else:
        data = leat.Dataset(f"s3://data/{kind}")
        begin = time.perf_counter()
    field = "bin" if kind == "shards" else "data"
    first, samples, most = 0.0, 0, 0
    with leat.Loader(data, batch_size=BATCH, shuffle=True, drop_last=False, epochs=1, ids=True, batch="dict",
                     output="numpy") as loader:  # fmt: skip
        opened = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        for batch in loader:
            first = first or time.perf_counter() - begin
            samples += len(batch["key"])
            ragged = batch[field]
            for row, key in enumerate(batch["key"]):
                told = bytes(ragged[row][:12]).decode()
                name = pathlib.PurePath(key).name
                assert name.startswith(told[4:] if kind == "objects" else told), (told, key)
                if way.startswith("mix"):
                    assert int(told[:4]) == batch["source"][row]
            most = max(most, threading.active_count(), len(os.listdir("/proc/self/task")))
        seconds = time.perf_counter() - begin
    assert samples == objects, (samples, objects)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rate": samples / seconds, "first_ms": 1e3 * first, "open_mb": opened, "mb": peak, "threads": most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--objects", type=int, default=32_000)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--quick", action="store_true", help="one run, few objects: does it work?")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--run-one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    objects = 20 * args.sources if args.quick else args.objects // args.sources * args.sources
    if args.run_one:
        print(json.dumps(one_run(args.run_one, args.sources, objects)))
        return
    with tempfile.TemporaryDirectory(prefix="leat-sources-") as root:
        make(pathlib.Path(root) / "data", args.sources, objects, args.size)
        with leat.testing.Bucket(pathlib.Path(root), latency=args.latency) as bucket:
            os.environ.update(bucket.env(), LEAT_CACHE_DIR=str(pathlib.Path(root) / "cache"))

            def run(way: str) -> dict[str, float]:
                bucket.reset_counters()
                command = [sys.executable, __file__, "--run-one", way, "--sources", str(args.sources), "--objects", str(objects)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    sys.exit(f"{way}: {done.stderr[-2000:]}")
                counters = bucket.counters()
                return {**json.loads(done.stdout.splitlines()[-1]), "gets": counters["get"], "read_mb": counters["bytes"] / 1e6}

            names = ("one", "mix", "shards, one", "mix of shards, once", "mix of shards")
            for name in names:  # Catalogues are made once, before anything is timed.
                run(name)
            found = interleave({name: lambda name=name: run(name) for name in names}, 1 if args.quick else args.runs)
    rows = []
    for name, values in found.items():
        rate, mad = spread(values["rate"])
        one = spread(found["shards, one" if "shards" in name else "one"]["rate"])[0]
        rows.append({"way": name, "rate": rate, "mad": mad, "of_one": f"{rate / one:.2f}",
                     **{key: spread(values[key])[0] for key in ("first_ms", "open_mb", "mb", "threads", "gets", "read_mb")}})  # fmt: skip
    report(f"{args.sources} sources of {objects // args.sources} objects of {args.size} bytes, {args.latency} away", rows, args.json)


if __name__ == "__main__":
    main()
