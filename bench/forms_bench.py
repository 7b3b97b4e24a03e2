"""A cache of bytes, one of decoded samples, and none: samples a second, cores a sample.

    ./dev bench forms [--runs 5] [--photographs 2048] [--quick] [--json]

Photographs of 37 KB (500 x 375), 20 ms away, three epochs of decode, random crop to
224, flip, normalise. The RAM tier has room for all of them in the named form. `auto`
chooses by itself, once with the room of `decoded` and once with a third of it.
`samples_per_s` and `cpu_ms`, the time of cores a sample, are those of the last epoch,
in which nothing is new. `first_per_s` is that of the first epoch, which decodes all
samples and, for `decoded`, writes records too. The content hashes of all ways have to
be the same: a separate run of each makes them, because hashing takes time of cores as
well.
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

import leat
from measure import interleave, report, spread

OPS = "decode_image,random_resized_crop:224,random_horizontal_flip,normalize:imagenet"
EPOCHS = 3
# The size of a record, with its head and whole pages.
DECODED = 500 * 375 * 3 + 2 * 4096


def make_photographs(root: pathlib.Path, count: int) -> None:
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))
    import photos

    taken = sorted((photos.make() / "train").glob("*/*.jpg"))[:count]
    if len(taken) < count:
        sys.exit(f"there are {len(taken)} photographs; --photographs {count} is more")
    for number, photograph in enumerate(taken):
        folder = root / "photographs" / photograph.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(photograph, folder / f"{number:05}.jpg")


def run_bench(bucket: leat.testing.Bucket, flags: list[str]) -> list[dict]:
    command = ["leat", "bench", "s3://photographs", "--no-sign-request", "--json", "--ops", OPS,
               "--epochs", str(EPOCHS), "--global-batch-size", "64", "--drop-last", "false",
               *flags]  # fmt: skip
    done = subprocess.run(
        command, env={**os.environ, **bucket.env()}, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)["epochs"]


def way(bucket: leat.testing.Bucket, flags: list[str]) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        bucket.reset_counters()
        epochs = run_bench(bucket, ["--no-hash", *flags])
        first, last = epochs[0], epochs[-1]
        return {
            "samples_per_s": last["samples_per_second"],
            "cpu_ms": 1e3 * last["cpu_seconds"] / last["samples"],
            "first_per_s": first["samples_per_second"],
            "decoded_hits": last["cache"]["decoded_hits"] / last["samples"],
            "gets": bucket.counters()["get"] / last["samples"],
        }

    return run


def check_content(bucket: leat.testing.Bucket, ways: dict[str, list[str]]) -> None:
    hashes = {
        name: [epoch["content_hash"] for epoch in run_bench(bucket, flags)]
        for name, flags in ways.items()
    }
    if any(found != hashes["no cache"] for found in hashes.values()):
        sys.exit(f"not all deliver the same: {hashes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--photographs", type=int, default=2048)
    parser.add_argument("--quick", action="store_true", help="one run: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    count = 128 if args.quick else args.photographs
    room = ["--cache-ram", str(count * DECODED)]
    third = ["--cache-ram", str(count * DECODED // 3)]
    ways = {
        "no cache": [],
        "encoded": [*room, "--cache-form", "encoded"],
        "decoded": [*room, "--cache-form", "decoded"],
        "auto": [*room, "--cache-form", "auto"],
        "encoded, a third of the room": [*third, "--cache-form", "encoded"],
        "decoded, a third of the room": [*third, "--cache-form", "decoded"],
        "auto, a third of the room": [*third, "--cache-form", "auto"],
    }
    with tempfile.TemporaryDirectory(prefix="leat-forms-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        root = pathlib.Path(folder) / "buckets"
        root.mkdir()
        make_photographs(root, count)
        with leat.testing.Bucket(root, latency="20ms") as bucket:
            check_content(bucket, ways)
            runs = {name: way(bucket, flags) for name, flags in ways.items()}
            found = interleave(runs, 1 if args.quick else args.runs)
    rows = []
    for name, values in found.items():
        rate, deviation = spread(values.pop("samples_per_s"))
        row = {"way": name, "samples_per_s": rate, "mad": deviation}
        rows.append({**row, **{key: spread(numbers)[0] for key, numbers in values.items()}})
    report(f"forms: {count} photographs, the last of {EPOCHS} epochs", rows, args.json)


if __name__ == "__main__":
    main()
