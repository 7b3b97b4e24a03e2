"""A function of Python that holds the GIL: leat.ops.Python in threads and in processes, beside torch.

    ./dev bench functions [--runs 5] [--milliseconds 3] [--workers 2] [--samples 1536] [--quick] [--json]

Each sample is a local file of 110 KB; the function computes for so long in Python, and makes
an array of 150 KB of it. All ways have as many threads, or processes, as `--workers`.
How to read it: `rate` is samples/s from the first batch on, `first` the seconds until then
(with the start of the processes), `over_torch` the rate over that of torch's DataLoader.
"auto" begins in threads and has to find out, which its rate includes. Before anything is
timed, each way delivers what torch's delivers.
"""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import torch.utils.data
from measure import interleave, report, spread

import leat
import leat.torch
from leat import ops

BATCH = 32
SIZE = 110_000
SHAPE = (3, 224, 224)
TORCH = "torch's DataLoader"


class Transform:
    """Holds the GIL for `seconds` of CPU time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, data: bytes) -> np.ndarray:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        first = np.frombuffer(data, np.uint8, 1)[0]
        return np.full(SHAPE, first, np.uint8)


class Files(torch.utils.data.Dataset):
    def __init__(self, folder: pathlib.Path, transform: Transform) -> None:
        self.files = sorted(folder.iterdir())
        self.transform = transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.transform(self.files[index].read_bytes()))


def timed(batches: Iterable[Any], digest: Any = None) -> dict[str, float]:
    begin = time.perf_counter()
    first, samples = 0.0, 0
    for batch in batches:
        array = batch["data"] if isinstance(batch, dict) else batch
        if digest is not None:
            digest.update(np.ascontiguousarray(np.asarray(array)[:, 0, 0, 0]).tobytes())
        if first:
            samples += len(array)
        else:
            first = time.perf_counter()
    return {"rate": samples / (time.perf_counter() - first), "first": first - begin}


def of_leat(folder: pathlib.Path, transform: Transform, workers: int, where: str) -> Callable[..., dict[str, float]]:
    def run(digest: Any = None) -> dict[str, float]:
        op = ops.Python(transform, workers=where)
        with leat.Loader(str(folder), batch_size=BATCH, shuffle=False, epochs=1, batch="dict", fields=["data"],
                         threads=workers, ops=[op]) as loader:  # fmt: skip
            return timed(loader, digest)

    return run


def of_torch(kind: Any, dataset: Files, **more: Any) -> Callable[..., dict[str, float]]:
    def run(digest: Any = None) -> dict[str, float]:
        return timed(kind(dataset, batch_size=BATCH, **more), digest)

    return run


def content(way: Callable[..., dict[str, float]]) -> str:
    digest = hashlib.blake2b()
    way(digest)
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=3.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=1536)
    parser.add_argument("--quick", action="store_true", help="one run, few samples: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    samples = 3 * BATCH if args.quick else args.samples
    runs = 1 if args.quick else args.runs

    with tempfile.TemporaryDirectory(prefix="leat-functions-") as root:
        folder = pathlib.Path(root)
        for number in range(samples):
            (folder / f"{number:06}.bin").write_bytes(bytes([number % 251]) * SIZE)
        transform = Transform(args.milliseconds / 1e3)
        dataset = Files(folder, transform)
        # The start method that costs torch least.
        forked = {"num_workers": args.workers, "multiprocessing_context": "fork"}
        ways = {
            TORCH: of_torch(torch.utils.data.DataLoader, dataset, **forked),
            "leat, threads": of_leat(folder, transform, args.workers, "threads"),
            "leat, processes": of_leat(folder, transform, args.workers, "processes"),
            "leat, auto": of_leat(folder, transform, args.workers, "auto"),
            "drop-in, processes": of_torch(leat.torch.DataLoader, dataset, **forked),
            "drop-in": of_torch(leat.torch.DataLoader, dataset, num_workers=args.workers),
        }
        expected = content(ways[TORCH])
        for name, way in ways.items():
            if content(way) != expected:
                sys.exit(f"{name} delivered other samples than torch, or in another order")
        found = interleave(ways, runs)

    torchs = spread(found[TORCH]["rate"])[0]
    rows = []
    for name, values in found.items():
        rate, mad = spread(values["rate"])
        rows.append({"way": name, "rate": rate, "rate_mad": mad, "over_torch": f"{rate / torchs:.2f}",
                     "first": f"{spread(values['first'])[0]:.2f}"})  # fmt: skip
    report(f"functions of {args.milliseconds} ms, {args.workers} workers, {runs} interleaved runs", rows, args.json)


if __name__ == "__main__":
    main()
