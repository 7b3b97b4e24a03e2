"""Datasets small enough to make in a moment, and programs to run beside a test."""

from __future__ import annotations

import io
import os
import pathlib
import subprocess
import sys
import tarfile

import numpy as np
from PIL import Image

CLASSES = ("ant", "bee", "cat")


def pixels(number: int, width: int = 12, height: int = 10) -> np.ndarray:
    """A picture of its own for each number: HWC, uint8."""
    return np.random.default_rng(number).integers(
        0, 256, (height, width, 3), dtype=np.uint8
    )


def encoded(array: np.ndarray, kind: str = "PNG", **options) -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, kind, **options)
    return out.getvalue()


def write(path: pathlib.Path, data: bytes) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def make_pictures(folder: pathlib.Path, count: int = 60) -> list[str]:
    """PNGs in a folder for each class; their keys in the order of samples."""
    keys = []
    for number in range(count):
        key = f"{CLASSES[number * len(CLASSES) // count]}/{number:05}.png"
        write(folder / key, encoded(pixels(number)))
        keys.append(key)
    return keys


def make_blobs(folder: pathlib.Path, count: int, size: int) -> None:
    """Large objects, cheaply made: all alike."""
    block = np.random.default_rng(7).bytes(size)
    for number in range(count):
        write(folder / f"{number:05}.bin", block)


def tar_of(members: list[tuple[str, bytes]], format: int = tarfile.USTAR_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_shards(folder: pathlib.Path, shards: int, samples: int, size: int) -> None:
    """Tar shards with a .bin of its own and a .txt for each sample."""
    block = np.random.default_rng(11).bytes(size)
    for shard in range(shards):
        members = []
        for sample in range(samples):
            name = f"{shard:03}-{sample:05}"
            members.append((f"{name}.bin", name.encode() + block[len(name) :]))
            members.append((f"{name}.txt", name.encode()))
        write(folder / f"{shard:03}.tar", tar_of(members))


def run_python(
    code: str, *arguments: object, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program that imports leat as this process does."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def ids_of(loader) -> list[int]:
    """The samples of the epoch that comes, in the order in which they come."""
    return [int(i) for batch in loader for i in batch["index"]]
