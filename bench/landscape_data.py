"""The data of bench/landscape_bench.py, made once with a fixed seed, in the forms in which it is read.

A form of a dataset is a folder of build/landscape/data, such as objects-4k-raw: a bucket of `leat bucket`. Forms:
"raw" is an object for each sample, "tar" shards of them, "bin" one file of all, "mds" and "litdata" the shards of these
libraries, written by themselves. NAME.npy has the hash of each sample's bytes, by which every reader is checked.
"""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from landscape_regimes import Data
from landscape_way import hashes_of_large, hashes_of_small

SEED = 23
PICTURES = 256  # Different ones; more samples are copies.
ENDS = {"objects": "bin", "jpegs": "jpg", "many": "bin"}
TAR_ENDS = {"objects": "bin", "jpegs": "jpg"}


def bytes_of(data: Data, number: int) -> bytes:
    """Sample `number` of a dataset of bytes: its number, and then noise."""
    noise = np.random.default_rng([SEED, number]).bytes(data.size - 8)
    return number.to_bytes(8, "little") + noise


def rows_of(data: Data, first: int, count: int) -> np.ndarray:
    """The same of small samples, many at a time."""
    rows = np.random.default_rng([SEED, first]).integers(0, 256, (count, data.size), np.uint8)
    rows[:, :8] = np.arange(first, first + count, dtype="<u8")[:, None].view(np.uint8).reshape(count, 8)
    return rows


def samples_of(data: Data, pictures: pathlib.Path) -> Iterator[bytes]:
    if data.kind == "jpegs":
        files = sorted(pictures.rglob("*.jpg"))
        for number in range(data.samples):
            yield files[number % len(files)].read_bytes()
    elif data.size <= 4096:
        for first in range(0, data.samples, 4096):
            yield from map(bytes, rows_of(data, first, min(4096, data.samples - first)))
    else:
        for number in range(data.samples):
            yield bytes_of(data, number)


def table_of(data: Data, samples: Iterator[bytes]) -> np.ndarray:
    if not data.is_small:
        return hashes_of_large(samples)
    rows = np.frombuffer(b"".join(samples), np.uint8).reshape(-1, data.size)
    return hashes_of_small(rows)


def write_raw(data: Data, samples: Iterator[bytes], folder: pathlib.Path) -> None:
    for number, body in enumerate(samples):
        (folder / f"{number:06}.{ENDS[data.kind]}").write_bytes(body)


def write_bin(data: Data, samples: Iterator[bytes], folder: pathlib.Path) -> None:
    with (folder / "train.bin").open("wb") as file:
        for body in samples:
            file.write(body)


def write_tar(data: Data, samples: Iterator[bytes], folder: pathlib.Path) -> None:
    a_shard = max(1, data.shard // (data.size + 512))
    shard = None
    for number, body in enumerate(samples):
        if number % a_shard == 0:
            if shard is not None:
                shard.close()
            shard = tarfile.open(folder / f"{number // a_shard:05}.tar", "w", format=tarfile.USTAR_FORMAT)
        info = tarfile.TarInfo(f"{number:06}.{TAR_ENDS[data.kind]}")
        info.size = len(body)
        assert shard is not None
        shard.addfile(info, io.BytesIO(body))
    if shard is not None:
        shard.close()


WRITERS = {"raw": write_raw, "bin": write_bin, "tar": write_tar}


class DataFolder:
    """build/landscape/data. `by_library` runs a peer's own writer: it is given what landscape_way.write takes."""

    def __init__(self, root: pathlib.Path, by_library: Callable[[str, dict[str, Any]], None]) -> None:
        self.root = root
        self._by_library = by_library

    def table(self, name: str) -> pathlib.Path:
        return self.root / f"{name}.npy"

    def digest(self, name: str) -> str:
        """The hash of the table of hashes: of the whole content."""
        return hashlib.sha256(self.table(name).read_bytes()).hexdigest()[:16]

    def ensure(self, name: str, data: Data, form: str) -> pathlib.Path:
        """The folder with that form, made if it is not there, or is of another dataset of that name."""
        folder, stamp = self.root / f"{name}-{form}", self.root / f"{name}-{form}.made"
        wanted = json.dumps([SEED, *data])
        if stamp.is_file() and stamp.read_text() == wanted:
            return folder
        print(f"making {folder.name}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if form in WRITERS:
            self._write(name, data, form, folder)
        else:
            source = self.ensure(name, data, "bin" if data.kind == "tokens" or data.is_small else "raw")
            told = {"form": form, "folder": str(folder), "kind": data.kind, "samples": data.samples, "size": data.size,
                    "shard": data.shard}  # fmt: skip
            told["source"] = str(source / "train.bin" if source.name.endswith("-bin") else source)
            self._by_library(form, told)
        stamp.write_text(wanted)
        return folder

    def tidy(self, form: str) -> list[str]:
        """Removes what a reader has left among raw samples, and names it: LitData writes its index beside the data."""
        left = sorted(path.name for path in (self.root / form).glob("index.json*")) if form.endswith("-raw") else []
        for name in left:
            (self.root / form / name).unlink()
        return left

    def _write(self, name: str, data: Data, form: str, folder: pathlib.Path) -> None:
        if data.kind == "many":  # One object, which the bucket serves as so many.
            (folder / "x.bin").write_bytes(bytes_of(data, 0))
            return
        pictures = self._pictures(min(PICTURES, data.samples)) if data.kind == "jpegs" else self.root
        WRITERS[form](data, samples_of(data, pictures), folder)
        if data.kind != "jpegs" and not self.table(name).is_file():
            np.save(self.table(name), table_of(data, samples_of(data, pictures)))

    def _pictures(self, count: int) -> pathlib.Path:
        folder = self.root / f"pictures-{count}"
        if not folder.is_dir():
            import grainy_photographs

            made = folder.with_name("pictures-half")
            shutil.rmtree(made, ignore_errors=True)
            grainy_photographs.make(made, grainy_photographs.SHAPES["imagenet"], count)
            made.rename(folder)
        return folder
