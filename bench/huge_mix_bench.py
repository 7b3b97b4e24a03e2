"""A mix of a billion samples in 64 sources: the time to its first batch, and its memory.

    ./dev bench huge_mix [--samples 1000000000] [--sources 64] [--batches 200] [--runs 5] [--quick] [--json]

Each source is a folder of shards of 10,000 samples of 1,000 bytes, which are holes in files, so that the disk holds
them. The sources have folders and catalogues of their own, as files; as bytes on disk, those are the same (hard
links). Beside the mix of all samples stands one of a thousandth of them. Each run is a process of its own, with a full
shuffle.
How to read it: `open_ms` is the time to open the catalogues, `mix_ms` that of `leat.mix`, `first_ms` the time
from `leat.Loader` to its first batch; the modules of leat have been imported before. `private_mb` is the memory
of the process that no other shares (RssAnon) after this many batches, `mapped_mb` what it has of files, the
catalogues among them: the kernel takes that back when it needs it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from index_bench import make_catalogue
from measure import interleave, report, spread

BATCH = 256
SAMPLE_BYTES = 1000
SHARD_SAMPLES = 10_000  # As make_catalogue has it.


def make(folder: pathlib.Path, sources: int, samples: int) -> None:
    """s00/, s01/, …, and the catalogue of each in the cache."""
    each = samples // sources
    one = folder / "catalogue"
    subprocess.run([make_catalogue(), str(one), str(each), str(SAMPLE_BYTES)], check=True)
    for source in range(sources):
        place = folder / f"s{source:02}"
        place.mkdir()
        (place / "0.bin").write_bytes(b"x")
        told = subprocess.run(["leat", "index", str(place), "--json"], check=True, capture_output=True, text=True)
        location = json.loads(told.stdout)["catalogue"]["location"]
        (place / "0.bin").unlink()
        os.unlink(location)
        os.link(one, location)
        shard = place / "000000.tar"  # One for each source: a file has at most 65,000 links.
        with shard.open("wb") as file:
            file.truncate(SHARD_SAMPLES * SAMPLE_BYTES)
        for number in range(1, -(-each // SHARD_SAMPLES)):
            os.link(shard, place / f"{number:06}.tar")


def resident() -> dict[str, float]:
    """The memory of this process, in MB."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) / 1e3 for line in lines if line.startswith("Rss")}
    return {"private_mb": found["RssAnon"], "mapped_mb": found["RssFile"]}


def one_run(folder: pathlib.Path, sources: int, batches: int) -> dict[str, float]:
    """In a process of its own."""
    import time

    import leat

    _ = leat.Dataset, leat.Loader, leat.mix  # Their modules are imported here, as by a program that names them at its top.
    times = [time.perf_counter()]

    def took() -> float:
        times.append(time.perf_counter())
        return 1e3 * (times[-1] - times[-2])

    parts = {f"s{source:02}": leat.Dataset(folder / f"s{source:02}", refresh="never") for source in range(sources)}
    found: dict[str, float] = {"open_ms": took()}
    mix = leat.mix({name: (part, 1 + number % 7) for number, (name, part) in enumerate(parts.items())})
    found["mix_ms"] = took()
    with leat.Loader(mix, batch_size=BATCH, shuffle="full", fields=("jpg", "cls", "source"), output="numpy") as loader:
        running = iter(loader)
        next(running)
        found["first_ms"] = took()
        for _ in range(batches):
            next(running)
    return {"samples": sum(map(len, parts.values())), **found, **resident()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000_000)
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one run, few samples: does it work?")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--run-one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run_one:
        print(json.dumps(one_run(pathlib.Path(args.run_one), args.sources, args.batches)))
        return
    sizes = [2_000_000] if args.quick else [args.samples // 1000, args.samples]
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory(prefix="leat-huge-") as root:
        os.environ["LEAT_CACHE_DIR"] = str(pathlib.Path(root) / "cache")
        ways = {}
        for size in sizes:
            folder = pathlib.Path(root) / str(size)
            folder.mkdir()
            make(folder, args.sources, size)

            def run(folder: pathlib.Path = folder) -> dict[str, float]:
                command = [sys.executable, __file__, "--run-one", str(folder), "--sources", str(args.sources),
                           "--batches", str(args.batches)]  # fmt: skip
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    sys.exit(done.stderr[-2000:])
                return json.loads(done.stdout.splitlines()[-1])

            ways[f"{size:,}"] = run
        found: dict[str, dict[str, Any]] = interleave(ways, 1 if args.quick else args.runs)
    rows = []
    for values in found.values():
        samples = int(values.pop("samples")[0])
        rows.append({"samples": f"{samples:,}", **{name: spread(of)[0] for name, of in values.items()}})
    report(f"a mix of {args.sources} sources, after {args.batches} batches of {BATCH}", rows, args.json)


if __name__ == "__main__":
    main()
