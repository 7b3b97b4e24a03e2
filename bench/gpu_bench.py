"""Is the card kept busy? ResNet-50 and a small GPT, from a bucket and from local files, against the roofline.

    ./dev bench gpu [--seconds 15] [--runs 3] [--latency 55ms] [--photographs 8192] [--tokens 4M] [--only resnet50|gpt]
                    [--fake] [--fake-step resnet50=0.25 ...] [--no-profile] [--quick] [--json]

It takes about ten minutes on a machine with a card. `--fake` runs all of it on a device that sleeps for the time of a
step and copies at 20 GB/s: that shows that the bench works, and how Leat feeds a device of that speed; it measures no
card. --quick trains on few samples and leaves `leat profile` out.

ResNet-50 trains on JPEGs of 110 KB, decoded and cropped to 224; the GPT, of the size of GPT-2's smallest, on windows
of 1,025 tokens. Both use Leat's usual settings, with hashes. The roofline is what no loader can exceed: the slower one
of the step alone, on a batch that lies on the card, and the loader alone, without a device. `of_roofline` is the rate
of the training over that. `busy` is the share of time in which steps ran, from the first batch to the end, by events
around each step; `driver` is the same as NVML says it. `hidden` is the share of the copies' time to the card in
which a step ran, and `pinned` the share that came from page-locked memory, both from the trace of a short run; the
device that sleeps has no such memory. A training counts if the GETs at the server are those of the loader, the content
of each epoch is that of the files, and the labels or tokens add up to the same on the device.

Then `leat profile` looks at the same trainings as scripts of their own: by one rank, and by one for each card, over
NCCL, where there are two. On the fake device, two ranks exchange over Gloo.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from gpu_devices import Card, Device, Fake, Held, Measured
from gpu_training import CONTEXT, WORKS, Work, loader_of
from leat.testing import Bucket, find_binary
from measure import report, spread

HERE = pathlib.Path(__file__).parent
TRACED = 20  # Steps whose copies are looked at.
MOST_EPOCHS = 40
_WHOLE = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Place(NamedTuple):
    """The places of a training's data: files, and the bucket that serves them."""

    files: str
    bucket: str
    samples: int


class Roof(NamedTuple):
    """Samples a second that no training exceeds."""

    step: float
    loader: dict[str, float]

    def over(self, way: str) -> float:
        return min(self.step, self.loader[way])


def make_data(root: pathlib.Path, photographs: int, tokens: int, context: int, works: list[str]) -> dict[str, Place]:
    """The folders of root/data, and what they are called in the bucket."""
    places = {}
    if "resnet50" in works:
        import grainy_photographs

        grainy_photographs.make(root / "data/photographs", grainy_photographs.SHAPES["imagenet"], photographs)
        places["resnet50"] = Place(str(root / "data/photographs"), "s3://data/photographs", photographs)
    if "gpt" in works:
        (root / "data/tokens").mkdir(parents=True)
        np.random.default_rng(5).integers(50_257, size=tokens, dtype=np.uint16).tofile(root / "data/tokens/corpus.bin")
        places["gpt"] = Place(str(root / "data/tokens"), "s3://data/tokens", tokens // (context + 1))
    return places


# --- the roofline ------------------------------------------------------------------


def step_alone(work: Work, device: Device, held: Held, seconds: float) -> float:
    """Samples a second of steps on a batch that lies on the device."""

    def batches() -> Iterator[Held]:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            yield held

    device.train(work.name, [held] * 3)  # A card chooses its algorithms.
    told = device.train(work.name, batches())
    return told.samples / told.seconds


def loader_alone(load: Callable[[int], Any], batch: int, samples: int, seconds: float) -> float:
    """Samples a second of the loader without a device, in the epochs after the first: at least one."""
    began, given = time.perf_counter(), 0
    with load(MOST_EPOCHS) as loader:
        for epoch in range(MOST_EPOCHS):
            if epoch == 1:
                began, given = time.perf_counter(), 0
            for _ in loader:
                given += batch
            if epoch > 0 and time.perf_counter() - began > seconds:
                break
    return given / (time.perf_counter() - began)


# --- a training --------------------------------------------------------------------


def trained(
    work: Work, load: Callable[[int], Any], device: Device, epochs: int
) -> tuple[Measured, list[dict[str, Any]]]:
    """Whole epochs; what the device measured, and what the loader says of each."""
    with load(epochs) as loader:
        told = device.train(work.name, (batch for _ in range(epochs) for batch in loader))
        return told, loader.stats()


def check(way: str, told: Measured, epochs: list[dict[str, Any]], served: int | None, seen: dict[str, Any]) -> None:
    """Ends the bench if a training did not get what the others got.

    Raises:
        SystemExit: it says what differs.
    """
    content = [epoch["content_hash"] for epoch in epochs]
    samples = sum(epoch["samples"] for epoch in epochs)
    if samples != told.samples:
        sys.exit(f"gpu: {way}: the loader delivered {samples} samples, and the device trained on {told.samples}")
    first = seen.setdefault("content", content)
    if any(one != other for one, other in zip(content, first)):
        sys.exit(f"gpu: {way}: an epoch's content differs from that of the other way")
    if len(content) == len(first) and told.checksum != seen.setdefault("checksum", told.checksum):
        sys.exit(f"gpu: {way}: labels or tokens add up to {told.checksum} on the device, before to {seen['checksum']}")
    asked = sum(epoch["requests"]["get"] for epoch in epochs)
    # The look for a published catalogue is not one of an epoch's.
    if served is not None and not asked <= served <= asked + 2:
        sys.exit(f"gpu: {way}: the loader tells of {asked} GETs, and the server counted {served}")


class Bench:
    """One training on one device."""

    def __init__(self, work: Work, place: Place, device: Device, bucket: Bucket, context: int) -> None:
        self.work, self.place, self.device, self.bucket, self.context = work, place, device, bucket, context
        self.urls = {"files": place.files, "bucket": place.bucket}

    def load(self, way: str, device: Device | None) -> Callable[[int], Any]:
        return lambda epochs: loader_of(self.work, self.urls[way], device, epochs=epochs, context=self.context)

    def roof(self, seconds: float) -> Roof:
        with self.load("files", self.device)(1) as loader:
            held = self.device.hold(next(iter(loader)))
        step = step_alone(self.work, self.device, held, seconds / 3)
        alone = {way: loader_alone(self.load(way, None), self.work.batch, self.place.samples, seconds / 3)
                 for way in self.urls}  # fmt: skip
        say(f"{self.work.name}: the step alone {step:,.0f} samples/s, the loader alone "
            + ", ".join(f"{rate:,.0f} from {way}" for way, rate in alone.items()))  # fmt: skip
        return Roof(step, alone)

    def rows(self, seconds: float, runs: int) -> list[dict[str, Any]]:
        roof = self.roof(seconds)
        expected = min(roof.over(way) for way in self.urls)
        epochs = min(MOST_EPOCHS, max(1, math.ceil(seconds * expected / self.place.samples)))
        seen: dict[str, Any] = {}
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in self.urls}
        for run in range(runs):
            for way in self.urls:
                say(f"{self.work.name}, run {run + 1} of {runs}: {epochs} epochs from {way}")
                found[way].append(self.run(way, epochs, roof, seen))
        rows = [{"training": self.work.name, "way": "the step alone", "samples_per_s": f"{roof.step:,.0f}"}]
        for way, values in found.items():
            with self.load(way, self.device)(1) as loader:
                copies = self.device.trace(self.work.name, loader, TRACED)
            rows.append({"training": self.work.name, "way": way, "samples_per_s": cell(values, "rate", 0),
                         "of_roofline": cell(values, "of_roofline", 2), "busy": cell(values, "busy", 3),
                         "driver": cell(values, "driver", 2), "first_batch_s": cell(values, "first", 2),
                         "loader_alone": f"{roof.loader[way]:,.0f}", "gets": cell(values, "gets", 0),
                         "hidden": percent(copies.hidden), "pinned": percent(copies.pinned)})  # fmt: skip
        return rows

    def run(self, way: str, epochs: int, roof: Roof, seen: dict[str, Any]) -> dict[str, Any]:
        self.bucket.reset_counters()
        told, stats = trained(self.work, self.load(way, self.device), self.device, epochs)
        served = self.bucket.counters()["get"] if way == "bucket" else None
        check(f"{self.work.name} from {way}", told, stats, served, seen)
        rate = told.samples / told.seconds
        return {"rate": rate, "of_roofline": rate / roof.over(way), "busy": told.busy, "driver": told.sampled,
                "first": stats[0]["first_batch_seconds"], "gets": served}  # fmt: skip


def cell(values: list[dict[str, Any]], key: str, digits: int) -> str:
    known = [value[key] for value in values if value[key] is not None]
    if not known:
        return ""
    median, deviation = spread(known)
    return f"{median:,.{digits}f} ± {deviation:,.{digits}f}"


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- leat profile ------------------------------------------------------------------


def profiled(work: Work, url: str, ranks: int, fake: float | None, folder: pathlib.Path) -> dict[str, Any]:
    """The parts of a step that `leat profile` finds; a row that says why, if it finds nothing."""
    words = [sys.executable, str(HERE / "gpu_training.py"), work.name, url, "--batch", str(work.batch)]
    words += [] if fake is None else ["--fake", str(fake)]
    row: dict[str, Any] = {"training": work.name, "ranks": str(ranks)}
    command = [find_binary(), "profile", "--json", "--steps", "20", "--warmup", "5", "--repeats", "1"]
    command += ["--limit", "2min"]
    command += ["--nproc-per-node", str(ranks)] if ranks > 1 else []
    done = subprocess.run([*command, "--", *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "HOME": str(folder)})  # fmt: skip
    with contextlib.suppress(json.JSONDecodeError):
        told = json.loads(done.stdout)
        if "parts" in told:
            parts = {f"{name}_ms": round(1e3 * part["seconds"], 1) for name, part in told["parts"].items()}
            step = {"step_ms": round(1e3 * told["step_seconds"], 1)}
            return {**row, **step, **parts, "accelerator": told["accelerator"] or ""}
        return {**row, "failed": str(told.get("failed", ""))[:200]}
    return {**row, "failed": f"exit code {done.returncode}"}


def profiles(args: argparse.Namespace, works: list[Work], places: dict[str, Place], device: Device) -> None:
    if isinstance(device, Fake):
        counts = [1, 2]
    else:
        import torch

        counts = [1] + [torch.cuda.device_count()] * (torch.cuda.device_count() > 1)
    rows = []
    for work in works:
        for ranks in counts:
            say(f"leat profile: {work.name}, {ranks} ranks")
            with tempfile.TemporaryDirectory(prefix="leat-gpu-profile-") as folder:
                fake = work.fake_step if args.fake else None
                rows.append(profiled(work, places[work.name].bucket, ranks, fake, pathlib.Path(folder)))
                say(json.dumps(rows[-1]))  # All is not lost if the machine's time ends.
    report(f"leat profile, {device.name}", rows, args.json)
    if any("failed" in row for row in rows):
        sys.exit("gpu: leat profile failed")


# --- all of it ---------------------------------------------------------------------


def count_of(word: str) -> int:
    return int(word[:-1]) * _WHOLE[word[-1]] if word[-1] in _WHOLE else int(word)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15, help="that a training takes, about")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--latency", default="55ms")
    parser.add_argument("--photographs", type=int, default=8192)
    parser.add_argument("--tokens", type=count_of, default=count_of("4M"))
    parser.add_argument("--only", choices=list(WORKS))
    parser.add_argument("--fake", action="store_true", help="a device that sleeps, in the place of a card")
    parser.add_argument("--fake-step", action="append", default=[], metavar="NAME=SECONDS")
    parser.add_argument("--no-profile", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few samples, one run: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.works = {name: work for name, work in WORKS.items() if args.only in (None, name)}
    args.context = CONTEXT
    if args.quick:
        args.fake, args.no_profile, args.runs, args.seconds = True, True, 1, 0.6
        args.photographs, args.tokens, args.context = 48, 64 * 129, 128
        args.works = {name: work._replace(batch=8, fake_step=0.02) for name, work in args.works.items()}
    for told in args.fake_step:
        name, _, seconds = told.partition("=")
        if name not in args.works or not 0 < float(seconds or 0) < 60:
            parser.error(f"--fake-step {told}: give one of {', '.join(args.works)} and seconds, as gpt=0.05")
        args.works[name] = args.works[name]._replace(fake_step=float(seconds))
    return args


def main() -> None:
    args = parsed()
    works = list(args.works.values())
    device: Device = Fake({work.name: work.fake_step for work in works}) if args.fake else Card()
    with tempfile.TemporaryDirectory(prefix="leat-gpu-") as folder:
        root = pathlib.Path(folder)
        os.environ["LEAT_CACHE_DIR"] = str(root / "cache")
        places = make_data(root, args.photographs, args.tokens, args.context, [work.name for work in works])
        with Bucket(root, latency=args.latency) as bucket:
            os.environ.update(bucket.env())
            rows = []
            for work in works:
                rows += Bench(work, places[work.name], device, bucket, args.context).rows(args.seconds, args.runs)
            report(f"a device kept busy: {device.name}", rows, args.json)
            if not args.no_profile:
                profiles(args, works, places, device)


if __name__ == "__main__":
    main()
