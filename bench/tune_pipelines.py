"""The five pipelines of bench/tune_bench.py, each bounded by something else."""

from __future__ import annotations

import io
import pathlib
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Union

import leat
import numpy as np
from dropin_items import make_pictures
from PIL import Image


THREADS, REQUESTS = (1, 2, 4), (1, 4, 16, 64, 128, 256, 512)
FINALISTS = 3
SETTINGS = ("threads", "max_in_flight", "lookahead", "part_bytes")
MEMORY = 256 << 20


@dataclass
class Pipeline:
    """A dataset in a folder of the bucket's root, how it is read, and how far away it is."""

    name: str
    bound: str  # The bound of the pipeline once it is well set.
    batch: int
    bucket: dict[str, Any]
    loader: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, Any] | None = None
    step: float = 0.0  # Seconds of training a batch.
    # The bytes of a read, for pipelines that read ranges; 0: whole objects.
    read_bytes: int = 0

    def dataset(self, bucket: leat.testing.Bucket) -> leat.Dataset:
        url, reach = bucket.s3_url(self.name), {"endpoint_url": bucket.url, "no_sign_request": True}
        if self.tokens is not None:
            return leat.Dataset.tokens(url, storage_options=reach, **self.tokens)
        return leat.Dataset(url, storage_options=reach)


PIPELINES = [
    Pipeline(
        "images", "training", 32, {"latency": "30ms"}, step=0.06,
        loader={"ops": [leat.ops.DecodeImage(), leat.ops.RandomResizedCrop(64)]},
    ),
    # A narrow shuffle: a wide one waits for the whole dataset and then has all of it at once.
    Pipeline(
        "shards", "the store's bandwidth", 64, {"latency": "20ms", "total_bandwidth": "24MB/s"},
        loader={"shuffle": leat.Shuffle(window=1)},
    ),
    Pipeline(
        "tokens", "a connection's bandwidth", 64, {"latency": "10ms", "bandwidth": "500kB/s"}, step=0.04,
        loader={"shuffle": "full"}, tokens={"dtype": "uint16", "seq_len": 8192}, read_bytes=2 * 8192,
    ),
    Pipeline("tiny", "latency", 16, {"latency": "150ms"}),
    Pipeline(
        "decode", "cores", 16, {"latency": "10ms"},
        loader={"ops": [leat.ops.DecodeImage(), leat.ops.Resize(224), leat.ops.Normalize(mean=[0.5] * 3, std=[0.5] * 3)]},
    ),
]  # fmt: skip


def make(root: pathlib.Path, names: list[str], scale: int) -> None:
    """Writes the data of the pipelines named; `scale` divides how much there is."""
    rng = np.random.default_rng(1)
    if "images" in names:
        make_pictures(root / "images")
    if "shards" in names:
        _make_shards(root / "shards", 16 // min(scale, 8), 64, rng.bytes(32_000))
    if "tokens" in names:
        (root / "tokens").mkdir()
        for part in range(4):
            windows = rng.integers(0, 50_000, 1024 // scale * 8192, dtype=np.uint16)
            (root / "tokens" / f"{part}.bin").write_bytes(windows.tobytes())
    if "tiny" in names:
        (root / "tiny").mkdir()
        for number in range(8192 // scale):
            (root / "tiny" / f"{number:05}.bin").write_bytes(rng.bytes(1000))
    if "decode" in names:
        _make_photos(root / "decode", 128 // min(scale, 4))


def _make_shards(folder: pathlib.Path, shards: int, samples: int, block: bytes) -> None:
    folder.mkdir()
    for shard in range(shards):
        with tarfile.open(folder / f"{shard:03}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for sample in range(samples):
                name = f"{shard:03}-{sample:05}.bin"
                info = tarfile.TarInfo(name)
                info.size = len(block)
                tar.addfile(info, io.BytesIO(name.encode() + block[len(name) :]))


def _make_photos(folder: pathlib.Path, count: int) -> None:
    """JPEGs of 1024 x 1024: about 10 ms of a core each."""
    folder.mkdir()
    line = np.arange(1024)
    for number in range(count):
        rows = 60 * np.sin(line / (9 + number % 31))
        waves = [rows[:, None] + 60 * np.cos(line / (7 + channel)) for channel in range(3)]
        pixels = np.dstack([(wave + 128).astype(np.uint8) for wave in waves])
        Image.fromarray(pixels).save(folder / f"{number:05}.jpg", quality=85)


class Seen:
    """Results that runs of one pipeline must agree on, with any settings."""

    def __init__(self) -> None:
        self.epochs: dict[int, tuple[Any, ...]] = {}

    def check(self, name: str, epochs: list[dict[str, Any]], has_other_parts: bool) -> None:
        """With parts of another length the same bytes come by another number of GETs."""
        for epoch in epochs:
            gets = epoch["requests"]["get"] - epoch["requests"]["retried"]
            is_what = (epoch["order_hash"], epoch["content_hash"], epoch["bytes_read"], gets)
            if has_other_parts:
                is_what = is_what[:-1]
            expected = self.epochs.get(epoch["epoch"], is_what)[: len(is_what)]
            if expected != is_what:
                raise SystemExit(f"{name}: epoch {epoch['epoch']} is {is_what}, elsewhere {expected}")
            if not has_other_parts:
                self.epochs[epoch["epoch"]] = is_what


@dataclass
class Run:
    rate: float  # Samples a second in the measured time.
    measured_from: float  # Seconds after the start.
    last_change: float  # Seconds until the last change that was kept.
    peak_memory: int  # The peak of memory=, as far as batches showed.
    settings: str


# When to begin to measure: this many seconds after the start, or once it says so, of such a time and loader.
Settle = Union[float, Callable[[float, leat.Loader], bool]]


def settled(most: float, quiet: float = 3) -> Settle:
    """Once nothing has been tried for `quiet` seconds, since enough was seen; after
    `most` seconds in any case."""
    looked = since = 0.0

    def is_over(now: float, loader: leat.Loader) -> bool:
        nonlocal looked, since
        if now >= most:
            return True
        if now < looked + 0.25:
            return False
        looked = now
        # A change that is being tried has no gain yet; one that was taken back
        # never has.
        is_trying = any(
            d["found_gain"] is None and not d["reason"].startswith(("taken back", "no more is allowed"))
            for d in loader.decisions()[-4:]
        )
        since = 0.0 if is_trying or loader.explain() is None else (since or now)
        return since > 0 and now >= since + quiet

    return is_over


def run(
    pipeline: Pipeline, dataset: leat.Dataset, seen: Seen, settle: Settle, measure: float,
    step: Callable[[float], float] | None = None, **options: Any,
) -> Run:  # fmt: skip
    """Trains until it has settled, then counts samples for `measure` seconds.

    `step` says how long a step takes, this many seconds after the start.
    """
    step = step or (lambda _: pipeline.step)
    peak = 0
    with leat.research.Loader(
        dataset, global_batch_size=pipeline.batch, seed=7, memory="256MiB", drop_last=True,
        epochs=1_000_000, **{"shuffle": True, **pipeline.loader}, **options,
    ) as loader:  # fmt: skip
        began = time.perf_counter()
        counted, since, until = 0, 0.0, 0.0
        while not until:
            for _ in loader:
                time.sleep(step(time.perf_counter() - began))
                now = time.perf_counter() - began
                peak = max(peak, loader.metrics()["leat_runtime_reserved_bytes"])
                if since:
                    counted += pipeline.batch
                elif settle(now, loader) if callable(settle) else now >= settle:
                    since = now
                if since and now >= since + measure:
                    until = now
                    break
        decisions = loader.decisions()
        seen.check(pipeline.name, loader.stats()[:-1], any(d["setting"] == "part_bytes" for d in decisions))
        kept = [d for d in decisions if d["expected_gain"] is not None and (d["found_gain"] or 0) >= 0.03]
        last = max((d["at_seconds"] for d in kept), default=0.0)
        said = loader.explain()
    now_set = {name: [d["after"] for d in decisions if d["setting"] == name] for name in SETTINGS}
    settings = ", ".join(f"{name} {values[-1]:.0f}" for name, values in now_set.items() if values)
    if said:
        settings += f"; {said['bottleneck']}"
    return Run(counted / (until - since), since, last, peak, settings)


def fixed(threads: int, requests: int) -> dict[str, Any]:
    return {"tune": False, "threads": threads, "max_in_flight": requests}


def checked(pipeline: Pipeline, done: Run) -> Run:
    if done.peak_memory > MEMORY:
        sys.exit(f"{pipeline.name}: {done.peak_memory} bytes held of {MEMORY}")
    return done


def best_of_grid(
    way: Callable[[int, int, float], float], seconds: float, is_quick: bool
) -> tuple[tuple[int, int], dict[tuple[int, int], float]]:
    """The setting that `way(threads, requests, seconds)` is fastest with, and the rates of all.

    A short look at each; then a longer one at the best three, which may lie close
    together.
    """
    grid = [(t, w) for t in THREADS for w in REQUESTS]
    rates: dict[tuple[int, int], float] = {}

    def look(settings: list[tuple[int, int]], seconds: float) -> tuple[int, int]:
        for setting in settings:
            rates[setting] = way(*setting, seconds)
            print(f"grid {setting}: {rates[setting]:.1f}/s", file=sys.stderr)
        return max(settings, key=rates.__getitem__)

    if is_quick:
        return look([(1, 1), (2, 64)], seconds / 4), rates
    look(grid, seconds / 4)
    return look(sorted(rates, key=rates.__getitem__)[-FINALISTS:], seconds), rates
