"""A training whose accelerator is a sleep, and all else is real: JPEGs of a bucket.

    emulated_training.py --loader torch|leat --compute 20            # trains, for ever
    emulated_training.py --loader torch|leat --measure < settings    # one JSON object a line

It reads the bucket at AWS_ENDPOINT_URL. With --measure each line on stdin says what is
otherwise, {"url": …, "cached": 0.5, "compute": 20}, and one on stdout what a step took:
{"seconds": [...], "cached": 0.5}. torch's dataset keeps that share of the photographs in
its memory, chosen at random; Leat keeps as many bytes as fit in a cache of that size.
"""

from __future__ import annotations

import argparse
import http.client
import io
import itertools
import json
import os
import pathlib
import sys
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import leat
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

BUCKET = "photos"
WARMUP = 6
MEASURED = 24  # Steps of torch: its workers give their batches one after the other, so as often one as the other.
EPOCHS = 2  # Leat's measured epochs, after one that fills its cache.
BATCH = {"torch": 8, "leat": 32}
WORKERS = 2  # torch's processes.
IN_FLIGHT = 16  # Leat's requests.


def make_photos(root: pathlib.Path, count: int) -> None:
    """``count`` JPEGs of 500 x 375 and about 50 KB."""
    draw = np.random.default_rng(1)
    (root / BUCKET).mkdir(parents=True)
    for number in range(count):
        small = Image.fromarray(draw.integers(0, 256, (75, 100, 3), dtype=np.uint8))
        small.resize((500, 375), Image.Resampling.BICUBIC).save(root / BUCKET / f"{number:04}.jpg", quality=85)


class Photos(Dataset):
    """A torch user's dataset, with a share of it at hand."""

    def __init__(self, url: str, folder: pathlib.Path, cached: float) -> None:
        self.url = urllib.parse.urlsplit(url)
        self.names = sorted(path.name for path in folder.iterdir())
        near = np.random.default_rng(2).permutation(len(self.names))[: round(cached * len(self.names))]
        self.near = {int(index): (folder / self.names[index]).read_bytes() for index in near}
        self.connection: http.client.HTTPConnection | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> torch.Tensor:
        data = self.near.get(index) or self.get(self.names[index])
        photo = Image.open(io.BytesIO(data)).convert("RGB").resize((224, 224))
        return torch.from_numpy(np.asarray(photo, dtype=np.float32))

    def get(self, name: str) -> bytes:
        if self.connection is None:  # Each worker its own.
            self.connection = http.client.HTTPConnection(self.url.hostname, self.url.port)
        self.connection.request("GET", f"{self.url.path}/{BUCKET}/{name}")
        return self.connection.getresponse().read()


def torch_loader(url: str, folder: pathlib.Path, cached: float) -> DataLoader:
    torch.manual_seed(0)
    return DataLoader(
        Photos(url, folder, cached), BATCH["torch"], shuffle=True, num_workers=WORKERS, drop_last=True
    )


def leat_loader(url: str, folder: pathlib.Path, cached: float) -> leat.Loader:
    # A record takes a little more than its bytes; the margin covers it.
    room = sum(path.stat().st_size + 128 for path in folder.iterdir()) * cached
    return leat.research.Loader(
        f"s3://{BUCKET}", batch_size=BATCH["leat"], shuffle=True, fields=("image",), batch="dict",
        storage_options={"endpoint_url": url, "no_sign_request": True},
        ops=[leat.ops.DecodeImage(), leat.ops.Resize((224, 224)), leat.ops.Cast("float32")],
        cache=leat.Cache(ram=int(room), policy="never_evict") if cached else None,
        threads=2, max_in_flight=IN_FLIGHT, tune=False, hashes=False, memory="256MiB",
    )  # fmt: skip


def steps(batches: Any, compute: float) -> Iterator[float]:
    """Seconds from one batch to the next."""
    given = None
    for _ in batches:
        now = time.perf_counter()
        if given is not None:
            yield now - given
        given = now
        time.sleep(compute / 1e3)


def measured(which: str, folder: pathlib.Path, setting: dict[str, Any]) -> dict[str, Any]:
    cached = setting["cached"]
    if which == "torch":
        batches = itertools.islice(torch_loader(setting["url"], folder, cached), WARMUP + MEASURED + 1)
        took = list(steps(batches, setting["compute"]))
        return {"seconds": took[WARMUP:], "cached": cached}
    with leat_loader(setting["url"], folder, cached) as loader:
        for _ in steps(loader, setting["compute"]):
            pass
        took = [step for _ in range(EPOCHS) for step in steps(loader, setting["compute"])]
        told = loader.stats()[-1]["cache"]
    hits, misses = told["ram_hits"], told["misses"]
    return {"seconds": took, "cached": hits / max(hits + misses, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the photographs")
    parser.add_argument("--loader", choices=BATCH, required=True)
    parser.add_argument("--compute", type=float, default=20, help="milliseconds a step")
    parser.add_argument("--measure", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)

    if args.measure:
        for line in sys.stdin:
            print(json.dumps(measured(args.loader, args.folder, json.loads(line))), flush=True)
        return
    loader = {"torch": torch_loader, "leat": leat_loader}[args.loader](
        os.environ["AWS_ENDPOINT_URL"], args.folder, 0.0
    )
    while True:
        for _ in steps(loader, args.compute):
            pass


if __name__ == "__main__":
    main()
