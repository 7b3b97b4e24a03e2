"""Trains from a bucket 55 ms away, and from local files, in seven ways; says what each costs.

    ./dev demo            # a table
    ./dev demo --json     # and, as the last line, one JSON object
    ./dev demo --picture docs/demo.svg    # and draws it there, too

Makes 4,000 photographs and 1,797 digits, puts them into `leat bucket --latency 55ms`,
trains on the photographs in the ways of demo_ways.py, one after another, and then on
the digits; last, `leat profile` says where the training on photographs waits, in a
page. Nothing is cached between epochs. Exits with 1 if the ways deliver different
content, if Leat's GETs are not one a sample and epoch, or if the digits are not learnt.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import demo_data
import demo_picture
import demo_ways
import digits
import leat
import photos
import train_digits
from train_photos import BATCH, EPOCHS

LATENCY = "55ms"
PAGE = demo_data.FOLDER.parent / "profile.html"
PICTURE = demo_data.FOLDER.parent / "demo.svg"
MEMORY_ABOVE_START = (64 << 20) + 150_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--picture", type=pathlib.Path, default=PICTURE, help="where to draw it; default: %(default)s")
    options = parser.parse_args()

    begun = time.perf_counter()
    say("making the photographs and the digits")
    folder = photos.make().parent
    digits.make()
    with (
        tempfile.TemporaryDirectory() as catalogues,
        leat.testing.Bucket(folder, latency=LATENCY) as bucket,
    ):
        os.environ["LEAT_CACHE_DIR"] = catalogues  # Every demo begins with nothing.
        say(f"serving them at {bucket.url}, {LATENCY} away")
        report = run_ways(demo_ways.Place(bucket.url, folder / "photos"))
        report["digits_accuracy"] = in_child(digits_accuracy, bucket.url)
        report["profile"] = profiled(bucket, PAGE)
    report["seconds"] = time.perf_counter() - begun

    print_table(report)
    promises = check(report)
    print_promises(promises)
    options.picture.write_text(demo_picture.draw(report))
    print(f"\nthe same as a picture: {options.picture}")
    print(f"where a step of it goes: {report['profile']['page']}")
    report["promises"] = [dataclasses.asdict(promise) for promise in promises]
    if options.json:
        print(json.dumps(report))
    return 1 if any(promise.is_strict and not promise.is_kept for promise in promises) else 0


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def run_ways(place: demo_ways.Place) -> dict[str, Any]:
    ways = {
        "sequential": in_child(demo_ways.sequential, place),
        "torch_2_workers": in_child(demo_ways.torch_2_workers, place),
        "torch_best": in_child(demo_ways.torch_best, place),
    }
    ways["local"] = in_child(demo_ways.local, place)
    ways["no_io"] = in_child(demo_ways.no_io, place)
    ways["leat_local"] = in_child(demo_ways.leat_from_files, place)
    ways["leat"] = in_child(demo_ways.leat_from_bucket, place)
    return {
        "samples": len(photos.SOURCES) * photos.SPLITS["train"],
        "epochs": EPOCHS,
        "batch": BATCH,
        "latency": LATENCY,
        "ways": ways,
    }


def profiled(bucket: leat.testing.Bucket, page: pathlib.Path) -> dict[str, Any]:
    """Profiles train_photos.py as it is, and writes a page about its waits."""
    say("profiling train_photos.py")
    script = pathlib.Path(__file__).with_name("train_photos.py")
    done = subprocess.run(
        [leat.testing.find_binary(), "profile", "--json", "--html", str(page), "--steps", "5", "--warmup", "2",
         "--repeats", "1", "--no-scratch", "--", sys.executable, str(script), "s3://photos"],
        env={**os.environ, **bucket.env()}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        return {"page": str(page), "largest_part": None, "failed": done.stderr.strip()}
    parts = {name: part["seconds"] for name, part in json.loads(done.stdout)["parts"].items()}
    return {"page": str(page), "largest_part": max(parts, key=lambda name: parts[name]), "failed": ""}


def digits_accuracy(url: str) -> float:
    storage_options = {"endpoint_url": url, "no_sign_request": True}
    return train_digits.train("s3://digits", storage_options=storage_options)


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls ``function`` in a process of its own, so that its memory is its own."""
    # Forked from a process that has imported torch, and done nothing with it yet.
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["demo_ways", "train_digits"])
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=server) as process:
        return process.submit(function, *arguments).result()


# --- what came out ----------------------------------------------------------


@dataclasses.dataclass
class Promise:
    """A promise of Leat's, and its measurement."""

    says: str
    measured: str
    is_kept: bool
    is_strict: bool = True  # The rest a busy machine can break: that is told, no more.


def check(report: dict[str, Any]) -> list[Promise]:
    ways, samples = report["ways"], report["samples"]
    mine = ways["leat"]
    first, *later = mine["first_batch_seconds"]
    above = mine["peak_rss_bytes"] - mine["rss_before_bytes"]
    contents = {way["content_hash"][0] for way in ways.values()}
    engine = [epoch["content_hash"] for epoch in mine["stats"]]
    return [
        Promise(
            "every way delivers the same content",
            f"{len(contents)} hash of epoch 0 in {len(ways)} ways",
            len(contents) == 1 and mine["content_hash"] == engine,
        ),
        Promise(
            f"{samples} GETs an epoch at the server",
            ", ".join(map(str, mine["gets"])),
            mine["gets"] == [samples] * EPOCHS,
        ),
        Promise(
            "the digits are learnt to 95 % held out",
            f"{report['digits_accuracy']:.1%}",
            report["digits_accuracy"] >= 0.95,
        ),
        Promise(
            "a profile of it says: compute",
            report["profile"]["failed"] or str(report["profile"]["largest_part"]),
            report["profile"]["largest_part"] == "compute",
            is_strict=False,
        ),
        Promise(
            "waits at most 5 % of its run",
            f"{mine['wait_fraction']:.1%}",
            mine["wait_fraction"] <= 0.05,
            is_strict=False,
        ),
        Promise(
            "first batch in 0.6 s, of later epochs in 0.3 s",
            f"{first:.2f} s, {max(later):.2f} s",
            first <= 0.6 and max(later) <= 0.3,
            is_strict=False,
        ),
        Promise(
            'memory="64MiB": at most 64 MiB + 150 MB above the start',
            f"{above / 1e6:.0f} MB",
            above <= MEMORY_ABOVE_START,
            is_strict=False,
        ),
    ]


COLUMNS = [
    ("way", lambda name, way: name),
    ("samples/s", lambda name, way: f"{way['samples_per_second']:.0f}"),
    ("wait", lambda name, way: f"{way['wait_fraction']:.1%}"),
    ("s/1000", lambda name, way: f"{way['wait_seconds_per_1000_samples']:.2f}"),
    ("first batch", lambda name, way: f"{way['first_batch_seconds'][0]:.2f} s"),
    ("samples", lambda name, way: f"{way['samples_trained']}"),
    ("GETs", lambda name, way: f"{sum(way['gets'])}"),
    ("MB", lambda name, way: f"{way['bytes'] / 1e6:.0f}"),
    ("peak MB", lambda name, way: f"{way['peak_rss_bytes'] / 1e6:.0f}"),
    ("accuracy", lambda name, way: f"{way['accuracy']:.1%}"),
]


NOTES = """
Batches of {batch}; one core trains, all of them load. wait: in iter() and next(), as a
share of the run; s/1000: seconds of it per 1,000 samples. sequential and
torch_2_workers train for {slow:.0f} s, torch_best, local and no_io for {fast:.0f} s, or longer, until
each worker has had {least} batches; leat for {epochs} epochs, leat_local for one, from the same
files as local. Each of the first five is a DataLoader of torch; three have the best setting
of a sweep, which goes on while its best is at an end, workers x threads in a batch:
{sweeps}

Bucket beside local files: Leat trains {bucket_of_files:.2f} times as fast from the bucket.

digits: {digits_accuracy:.1%} of those held out are read right. All of it took {seconds:.0f} s.
"""


def print_table(report: dict[str, Any]) -> None:
    rows = [[title for title, _ in COLUMNS]]
    for name, way in report["ways"].items():
        rows.append([cell(name, way) for _, cell in COLUMNS])
    widths = [max(map(len, column)) for column in zip(*rows)]
    print()
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        print("  ".join([row[0].ljust(widths[0]), *cells]))
    ways = report["ways"]
    rates = [ways[name]["samples_per_second"] for name in ("leat", "leat_local")]
    print(
        NOTES.format(
            **report,
            sweeps="\n".join(sweep_line(name, way) for name, way in ways.items() if "sweep" in way),
            bucket_of_files=rates[0] / rates[1],
            slow=demo_ways.SLOW_BOX,
            fast=demo_ways.FAST_BOX,
            least=demo_ways.BATCHES_A_WORKER,
        )
    )


def sweep_line(name: str, way: dict[str, Any]) -> str:
    """All settings that were tried, the fastest first."""
    tried = (
        f"{trial['workers']} x {trial['threads']}: {trial['samples_per_second']:.0f}/s"
        for trial in way["sweep"]
    )
    return f"  {name:<12}{', '.join(tried)}"


def print_promises(promises: list[Promise]) -> None:
    print("What Leat promises:")
    for promise in promises:
        kept = "kept" if promise.is_kept else "MISSED"
        print(f"  {kept:<8}{promise.says:<58}{promise.measured}")


if __name__ == "__main__":
    sys.exit(main())
