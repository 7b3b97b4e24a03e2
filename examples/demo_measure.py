"""The demo's measurements of a training loop: the same for every way."""

from __future__ import annotations

import dataclasses
import json
import math
import multiprocessing
import pathlib
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any, Tuple

import leat.testing
import torch
from train_photos import Trainer

Batch = Tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Images, labels, and the ids of the samples."""


@dataclasses.dataclass
class Epoch:
    """An epoch of training, or what its time box left of it."""

    number: int
    samples: int = 0
    batches: int = 0
    seconds: float = 0.0  # From iter() to the end of the last step.
    wait_seconds: float = 0.0  # In iter() and next().
    first_batch_seconds: float = 0.0  # From iter() until the first next() is done.
    content: int = 0  # The sum of the hashes of the samples.

    @property
    def steady_rate(self) -> float:
        """Samples a second, once the first batch is there."""
        return self.samples / (self.seconds - self.first_batch_seconds)

    def add_content(self, batch: Batch) -> None:
        images, labels, ids = (part.numpy() for part in batch)
        for image, label, sample in zip(images, labels, ids):
            fields = {"image": image, "label": label}
            self.content += leat.testing.content_hash(self.number, sample, fields)


def train_epoch(
    trainer: Trainer,
    loader: Iterable[Batch],
    number: int = 0,
    time_box: float = math.inf,
    observe: Callable[[Epoch], None] = lambda epoch: None,
    *,
    least: int = 0,
    hashed: float = math.inf,
) -> Epoch:
    """Trains on what ``loader`` brings until it ends, or until ``time_box`` seconds are over
    and ``least`` batches came. The content is that of the first ``hashed`` batches.

    Hashing and ``observe``, which is called after each batch, are left out of all times.
    """
    epoch = Epoch(number)
    aside = 0.0
    begun = asked = time.perf_counter()
    batches = iter(loader)
    while epoch.seconds < time_box or epoch.batches < least:
        batch = next(batches, None)
        came = time.perf_counter()
        epoch.wait_seconds += came - asked
        epoch.seconds = came - begun - aside
        if batch is None:
            break
        epoch.first_batch_seconds = epoch.first_batch_seconds or came - begun

        images, labels, ids = batch
        trainer.step(images, labels)
        trained = time.perf_counter()
        epoch.samples += len(ids)
        epoch.batches += 1
        epoch.seconds = trained - begun - aside

        if epoch.batches <= hashed:
            epoch.add_content(batch)
        observe(epoch)
        asked = time.perf_counter()
        aside += asked - trained
    return epoch


class Server:
    """The counters of the `leat bucket` at ``url``, which any process may ask."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/_leat/counters"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def counters(self) -> dict[str, Any]:
        with self._opener.open(self._url) as reply:
            return json.load(reply)

    def reset(self) -> None:
        self._opener.open(f"{self._url}/reset", data=b"").close()


class Memory:
    """The memory of this process and its workers: now, and at most from now
    on."""

    def __init__(self) -> None:
        # Lets the kernel's high-water mark begin again from here.
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        self.before = _kibibytes("/proc/self/status", "VmRSS")
        self._workers = 0

    @property
    def peak(self) -> int:
        return _kibibytes("/proc/self/status", "VmHWM") + self._workers

    def note_workers(self) -> None:
        """Counts the memory that the workers now share with nobody."""
        held = sum(
            _kibibytes(f"/proc/{worker.pid}/smaps_rollup", "Private_")
            for worker in multiprocessing.active_children()
        )
        self._workers = max(self._workers, held)


def _kibibytes(path: str, key: str) -> int:
    """The bytes of all lines of a file of /proc that begin with ``key``."""
    lines = pathlib.Path(path).read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


class Progress:
    """Says on stderr how far a way is: in one line that moves, on a terminal."""

    def __init__(self, way: str, samples: int) -> None:
        self._way = way
        self._samples = samples

    def show(self, epoch: Epoch) -> None:
        if sys.stderr.isatty():
            rate = epoch.samples / epoch.seconds
            self._write(
                f"epoch {epoch.number}: {epoch.samples:5} of {self._samples} samples,"
                f" {rate:4.0f} a second",
                end="\r",
            )

    def say(self, what: str) -> None:
        self._write(what, end="\n")

    def _write(self, what: str, end: str) -> None:
        print(f"  {self._way:<16}{what:<60}", end=end, file=sys.stderr, flush=True)
