"""The same photographs from a local folder and from a bucket: is the bucket as good as a local disk?

    ./dev bench disk [--runs 5] [--latency 55ms] [--epochs 3] [--quick] [--json]

`leat bench` reads the demo's 4,000 photographs in batches of 32: decoded, cropped to 224,
mirrored and normalised, with its usual settings and hashes. "disk" reads them from a
folder, which lies in the page cache; "bucket" from `leat bucket`, that far away, on the
same machine. No training step slows them down, so that each is as fast as it can be.
`samples_per_s` is of all epochs, the start with it, and `of_disk` is that over the
folder's in the same turn: 1 means that a bucket costs nothing. `us_per_sample` is the CPU
time of the loader, without the server's. Every epoch's content has to be the same both
ways, and the server counts the GETs.
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

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))
import photos

OPS = "decode_image,random_resized_crop:224:scale=0.5/1,random_horizontal_flip,normalize:imagenet"
BUCKET = "photographs"
QUICK = 32  # Photographs of each kind.


def leat_bench(url: str, epochs: int, environment: dict[str, str], *flags: str) -> list[dict]:
    """The epochs of `leat bench`."""
    command = ["leat", "bench", url, "--json", "--shuffle", "true", "--seed", "1", "--global-batch-size", "32",
               "--drop-last", "false", "--epochs", str(epochs), "--ops", OPS, *flags]  # fmt: skip
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"leat bench {url} failed")
    return json.loads(done.stdout)["epochs"]


def measured(epochs: list[dict], content: list[str]) -> dict[str, float]:
    """Figures of these epochs, for the table. Ends the bench where they delivered something else."""
    got = [epoch["content_hash"] for epoch in epochs]
    content.extend(got[len(content):])
    if got != content:
        sys.exit("disk and bucket delivered different samples")
    samples = sum(epoch["samples"] for epoch in epochs)
    return {
        "samples_per_s": samples / sum(epoch["seconds"] for epoch in epochs),
        "first_batch_s": epochs[0]["first_batch_seconds"],
        "us_per_sample": 1e6 * sum(epoch["cpu_seconds"] for epoch in epochs) / samples,
    }


def ways_of(root: pathlib.Path, bucket: leat.testing.Bucket, epochs: int) -> dict[str, Callable[[], dict[str, float]]]:
    content: list[str] = []
    photographs = sum(1 for path in (root / BUCKET).rglob("*") if path.is_file())

    def disk() -> dict[str, float]:
        return measured(leat_bench(str(root / BUCKET), epochs, {}), content)

    def far() -> dict[str, float]:
        bucket.reset_counters()
        found = leat_bench(f"s3://{BUCKET}", epochs, bucket.env(), "--no-sign-request")
        # One more looks for a published catalogue.
        if not 0 <= bucket.counters()["get"] - epochs * photographs <= 1:
            sys.exit(f"{bucket.counters()['get']} GETs counted at the server for {epochs} x {photographs} photographs")
        return measured(found, content)

    return {"disk": disk, "bucket": far}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency", default="55ms")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one run of few: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    runs = 1 if args.quick else args.runs
    made = photos.make() / "train"
    with tempfile.TemporaryDirectory(prefix="leat-disk-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        root = pathlib.Path(folder) / "buckets"
        for kind in sorted(made.iterdir()):
            (root / BUCKET / kind.name).mkdir(parents=True)
            for file in sorted(kind.iterdir())[: QUICK if args.quick else None]:
                shutil.copy(file, root / BUCKET / kind.name)  # Thereby in the page cache.
        with leat.testing.Bucket(root, latency=args.latency) as bucket:
            ways = ways_of(root, bucket, args.epochs)
            for way in ways.values():  # Makes the catalogues: no run that counts lists anything.
                way()
            found = interleave(ways, runs)
    rows = []
    for name, values in found.items():
        row: dict[str, object] = {"way": name}
        ratios = [rate / of for rate, of in zip(values["samples_per_s"], found["disk"]["samples_per_s"])]
        for key, numbers in {**values, "of_disk": ratios}.items():
            median, deviation = spread(numbers)
            digits = 2 if key in ("of_disk", "first_batch_s") else 0
            row[key] = f"{median:,.{digits}f} ± {deviation:,.{digits}f}"
        rows.append(row)
    report(f"disk and bucket, {args.latency} away, {args.epochs} epochs, {runs} interleaved runs", rows, args.json)


if __name__ == "__main__":
    main()
