"""The ways to bring the photographs to the training loop that the demo compares.

All train the same network, from the same first weights, on one core. All decode with
the same code, `leat.ops` (faster than Pillow). They differ in how they fetch the
bytes. The pixels depend on seed, epoch and sample alone, so all ways deliver the
same content, and the hashes of it prove that.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import http.client
import pathlib
import threading
import time
import urllib.parse
import warnings
from collections.abc import Callable
from typing import Any, Tuple

import leat
import numpy as np
import torch
from demo_measure import Batch, Epoch, Memory, Progress, Server, train_epoch
from train_photos import BATCH, EPOCHS, SEED, TRAIN_OPS, Trainer

SLOW_BOX = 6.0  # Seconds that the slow ways train, or longer: see BATCHES_A_WORKER.
FAST_BOX = 10.0  # The same for the fast ones.
TRIAL = 1.5  # The same for each trial of a sweep.
BATCHES_A_WORKER = 20
"""Each worker has as many at least, or it would be timed while it starts and ends."""

Setting = Tuple[int, int]
"""(workers, threads within a batch)"""

NETWORK_SWEEP = [(1, 32), (2, 16), (2, 32), (4, 16), (4, 32)]
"""The settings that `torch_best` begins with; it goes on until the fastest is inside."""
LOCAL_SWEEP = [(0, 1), (0, 2), (1, 1), (2, 1), (3, 1), (4, 1)]
"""The same for `local` and `no_io`, whose threads have next to nothing to wait for."""
MOST_WORKERS = 64
MOST_THREADS = BATCH  # More would have no sample of the batch to load.


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of the photographs: s3://photos in the `leat bucket` at a URL, and
    as files."""

    url: str
    folder: pathlib.Path


# --- how a DataLoader gets the bytes of a sample ----------------------------

Read = Callable[[str], bytes]  # From its key.


class HttpReader:
    """GETs one after another, over a keep-alive connection for each thread."""

    def __init__(self, place: Place) -> None:
        self._host = urllib.parse.urlsplit(place.url).netloc
        self._own = threading.local()

    def __call__(self, key: str) -> bytes:
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPConnection(self._host)
        self._own.connection.request("GET", f"/photos/train/{key}")
        response = self._own.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"GET {key}: {response.status} {response.reason}")
        return body


def file_reader(place: Place) -> Read:
    return lambda key: (place.folder / "train" / key).read_bytes()


def memory_reader(place: Place) -> Read:
    folder = place.folder / "train"
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("*/*")
    }.__getitem__


class PhotoBatches(torch.utils.data.Dataset):
    """From the ids of a batch's samples to the batch, loaded by some threads at once."""

    def __init__(self, photos: leat.Dataset, read: Read, threads: int) -> None:
        self._photos = photos
        self._read = read
        self._threads = threads
        self._decode = leat.ops.Chain(TRAIN_OPS)

    def __getitem__(self, ids: list[int]) -> Batch:
        loads = map if self._threads == 1 else self._pool.map
        images = np.stack(list(loads(self._load, ids)))
        labels = [self._label(sample) for sample in ids]
        return torch.from_numpy(images), torch.tensor(labels), torch.tensor(ids)

    def _load(self, sample: int) -> np.ndarray:
        data = self._read(self._photos.key(sample))
        return self._decode(data, seed=SEED, epoch=0, sample=sample)

    def _label(self, sample: int) -> int:
        return self._photos.classes.index(self._photos.key(sample).split("/")[0])

    @functools.cached_property
    def _pool(self) -> concurrent.futures.Executor:  # Made in the worker that uses it.
        return concurrent.futures.ThreadPoolExecutor(self._threads)


class ContentOfBatches(PhotoBatches):
    """Keeps the hash of each batch alone."""

    def __getitem__(self, ids: list[int]) -> int:
        epoch = Epoch(0)
        epoch.add_content(super().__getitem__(ids))
        return epoch.content


# --- the ways through DataLoader --------------------------------------------


class TorchWay:
    """Trains an epoch through torch's DataLoader."""

    def __init__(self, name: str, place: Place, make_reader: Callable[[Place], Read]):
        torch.set_num_threads(1)
        self._place = place
        self._server = Server(place.url)
        self._make_reader = make_reader
        self._photos = leat.Dataset(place.folder / "train")
        self._progress = Progress(name, len(self._photos))
        generator = torch.Generator().manual_seed(SEED)
        order = torch.randperm(len(self._photos), generator=generator)
        self._batches = [batch.tolist() for batch in order.split(BATCH)]
        warm_up()

    def sweep(self, settings: list[Setting]) -> list[dict[str, Any]]:
        """Tries each, and others until the fastest is inside; the fastest comes first."""
        rates = swept(self._rate, settings)
        return [
            {"workers": workers, "threads": threads, "samples_per_second": rates[workers, threads]}
            for workers, threads in sorted(rates, key=lambda setting: -rates[setting])
        ]

    def _rate(self, setting: Setting) -> float:
        least, batches = self._least(setting[0])
        epoch = train_epoch(Trainer(), self._loader(batches, *setting), time_box=TRIAL, least=least)
        self._progress.say(f"{setting[0]} workers x {setting[1]} threads: {epoch.steady_rate:.0f}/s")
        return epoch.steady_rate

    def _least(self, workers: int) -> tuple[int, list[list[int]]]:
        """The least number of batches that this many workers train, and batches that suffice:
        those of the epoch, and if these are too few, the same again."""
        least = BATCHES_A_WORKER * max(1, workers)
        return least, self._batches * -(-least // len(self._batches))

    def train(self, workers: int, threads: int, time_box: float = FAST_BOX) -> dict:
        least, batches = self._least(workers)
        trainer = Trainer()
        memory = Memory()

        def observe(epoch: Epoch) -> None:
            self._progress.show(epoch)
            if epoch.batches % 20 == 1:
                memory.note_workers()

        self._server.reset()
        loader = self._loader(batches, workers, threads)
        epoch = train_epoch(
            trainer, loader, 0, time_box, observe, least=least, hashed=len(self._batches)
        )
        counted = self._server.counters()
        result = {
            **summary([epoch], memory),
            "workers": workers,
            "threads": threads,
            "gets": [counted["get"]],
            "bytes": counted["bytes"],
            "accuracy": trainer.accuracy(self._place.folder / "test"),
        }
        self._finish_content(epoch)
        result["content_hash"] = [hex_of(epoch.content)]
        self._progress.say(f"{result['samples_per_second']:.0f} samples/s")
        return result

    def _finish_content(self, epoch: Epoch) -> None:
        """Loads what the time box left out, untimed, to hash the whole epoch."""
        rest = self._batches[epoch.batches :]
        if rest:
            self._progress.say("time is up; hashing the rest, untimed")
            epoch.content += sum(self._loader(rest, 2, 32, ContentOfBatches))

    def _loader(
        self,
        batches: list[list[int]],
        workers: int,
        threads: int,
        dataset: type[PhotoBatches] = PhotoBatches,
    ) -> Any:
        # A sweep may well try more workers than there are cores.
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        # The sampler gives whole batches, so that threads can share one.
        return torch.utils.data.DataLoader(
            dataset(self._photos, self._make_reader(self._place), threads),
            sampler=batches,
            batch_size=None,
            num_workers=workers,
            multiprocessing_context="fork" if workers else None,
        )


def sequential(place: Place) -> dict:
    return TorchWay("sequential", place, HttpReader).train(0, 1, SLOW_BOX)


def torch_2_workers(place: Place) -> dict:
    return TorchWay("torch_2_workers", place, HttpReader).train(2, 1, SLOW_BOX)


def torch_best(place: Place) -> dict:
    return at_its_best(TorchWay("torch_best", place, HttpReader), NETWORK_SWEEP)


def local(place: Place) -> dict:
    return at_its_best(TorchWay("local", place, file_reader), LOCAL_SWEEP)


def no_io(place: Place) -> dict:
    return at_its_best(TorchWay("no_io", place, memory_reader), LOCAL_SWEEP)


def swept(rate_of: Callable[[Setting], float], settings: list[Setting]) -> dict[Setting, float]:
    """The rate of each, and of others until the fastest has some beyond it on each side."""
    rates = {setting: rate_of(setting) for setting in settings}
    while (setting := beyond(max(rates, key=rates.__getitem__), list(rates))) is not None:
        rates[setting] = rate_of(setting)
    return rates


def beyond(best: Setting, tried: list[Setting]) -> Setting | None:
    """The setting to try next if none beyond the best was tried with as many threads, or as many workers; None if it is
    inside."""
    workers, threads = best
    row = [others for others, each in tried if each == threads]
    column = [each for others, each in tried if others == workers]
    if workers == max(row) and workers < MOST_WORKERS:
        return max(1, 2 * workers), threads
    if workers == min(row) and workers > 0:
        return workers // 2, threads
    if threads == max(column) and threads < MOST_THREADS:
        return workers, 2 * threads
    if threads == min(column) and threads > 1:
        return workers, threads // 2
    return None


def at_its_best(way: TorchWay, settings: list[Setting]) -> dict:
    sweep = way.sweep(settings)
    best = way.train(sweep[0]["workers"], sweep[0]["threads"])
    return {**best, "settings_tried": len(sweep), "sweep": sweep}


# --- through leat -----------------------------------------------------------


def leat_from_bucket(place: Place) -> dict:
    store = {"storage_options": {"endpoint_url": place.url, "no_sign_request": True}}
    return leat_loader("leat", place, "s3://photos/train", store, EPOCHS)


def leat_from_files(place: Place) -> dict:
    return leat_loader("leat_local", place, place.folder / "train", {}, 1)


def leat_loader(
    name: str, place: Place, url: str | pathlib.Path, store: dict[str, Any], epoch_count: int
) -> dict:
    torch.set_num_threads(1)
    warm_up()
    trainer = Trainer()
    server = Server(place.url)
    memory = Memory()
    loader = leat.Loader(
        url,
        **store,
        global_batch_size=BATCH,
        train=True,
        seed=SEED,
        fields=("image", "label", "index"),
        ops=TRAIN_OPS,
        memory="64MiB",
        epochs=epoch_count,
    )
    progress = Progress(name, len(loader.dataset))
    server.reset()  # It has listed the bucket; no photograph was read yet.
    epochs, gets = [], []
    with loader:
        for number in range(epoch_count):
            epoch = train_epoch(trainer, loader, number, observe=progress.show)
            epochs.append(epoch)
            gets.append(gets_of_epochs(server, loader) - sum(gets) if store else 0)
            progress.say(f"epoch {number}: {epoch.samples / epoch.seconds:.0f} samples/s")
        stats = loader.stats()
        result = {**summary(epochs, memory), "gets": gets}
    result["bytes"] = server.counters()["bytes"]
    result["content_hash"] = [hex_of(epoch.content) for epoch in epochs]
    result["accuracy"] = trainer.accuracy(place.folder / "test")
    result["stats"] = stats
    return result


def gets_of_epochs(server: Server, loader: leat.Loader) -> int:
    """GETs at the server for the epochs so far.

    The loader is already on the next epoch and knows how many GETs of it are sent;
    both are read until neither moves, so that none is under way between the two.
    """
    seen = None
    while True:
        now = server.counters()["get"], loader.stats()[-1]["requests"]["ahead"]
        if now == seen:
            return now[0] - now[1]
        seen = now
        time.sleep(0.005)


# --- what they share --------------------------------------------------------


def warm_up() -> None:
    """Lets torch take the memory it works in, so that no loader is blamed for it."""
    trainer = Trainer()
    for _ in range(2):
        trainer.step(torch.zeros(BATCH, 3, 224, 224), torch.zeros(BATCH, dtype=torch.int64))


def summary(epochs: list[Epoch], memory: Memory) -> dict[str, Any]:
    samples = sum(epoch.samples for epoch in epochs)
    seconds = sum(epoch.seconds for epoch in epochs)
    waited = sum(epoch.wait_seconds for epoch in epochs)
    return {
        "samples_trained": samples,
        "seconds": seconds,
        "samples_per_second": samples / seconds,
        "wait_fraction": waited / seconds,
        "wait_seconds_per_1000_samples": 1000 * waited / samples,
        "first_batch_seconds": [epoch.first_batch_seconds for epoch in epochs],
        "peak_rss_bytes": memory.peak,
        "rss_before_bytes": memory.before,
    }


def hex_of(content: int) -> str:
    return f"{content % 2**128:032x}"
