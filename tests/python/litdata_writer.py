"""Chunks of LitData: writers of the wire format alone, and a program that has the real one write and read."""

from __future__ import annotations

import json
import pathlib
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow


def spec_of(shape: Any) -> dict:
    """The spec of a pytree of dicts, lists and tuples, as LitData's JSON has it."""
    if isinstance(shape, dict):
        return {"type": "builtins.dict", "context": json.dumps(list(shape)),
                "children_spec": [spec_of(each) for each in shape.values()]}  # fmt: skip
    if isinstance(shape, (list, tuple)):
        return {"type": f"builtins.{type(shape).__name__}", "context": "null",
                "children_spec": [spec_of(each) for each in shape]}  # fmt: skip
    return {"type": None, "context": None, "children_spec": []}


def formats_of(shape: Any) -> list[str]:
    if isinstance(shape, dict):
        return [name for each in shape.values() for name in formats_of(each)]
    if isinstance(shape, (list, tuple)):
        return [name for each in shape for name in formats_of(each)]
    return [shape]


def item_of(values: Sequence[bytes]) -> bytes:
    return struct.pack(f"<{len(values)}I", *map(len, values)) + b"".join(values)


def chunk_of(items: Sequence[bytes]) -> bytes:
    offsets = np.cumsum([4 * (len(items) + 2), *map(len, items)]).astype("<u4")
    return struct.pack("<I", len(items)) + offsets.tobytes() + b"".join(items)


def write_litdata(
    folder: pathlib.Path, shape: Any, samples: Sequence[Sequence[bytes]], each: int = 10**9, **config: Any
) -> pathlib.Path:
    """Samples as the bytes of their values, `each` in a chunk; and their index. `shape`: a sample of formats."""
    folder.mkdir(parents=True, exist_ok=True)
    chunks = []
    for number in range(0, len(samples), each):
        some = samples[number : number + each]
        name, data = f"chunk-0-{len(chunks)}.bin", chunk_of([item_of(values) for values in some])
        (folder / name).write_bytes(data)
        chunks.append({"chunk_bytes": len(data), "chunk_size": len(some), "dim": None, "filename": name})
    write_index(folder, chunks, shape, **config)
    return folder


def write_index(folder: pathlib.Path, chunks: list[dict], shape: Any, **config: Any) -> None:
    whole = {
        "compression": None, "chunk_size": None, "chunk_bytes": 64_000_000, "data_format": formats_of(shape),
        "data_spec": json.dumps([1, spec_of(shape)]), "encryption": None, "item_loader": "PyTreeLoader", **config,
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"chunks": chunks, "config": whole}, sort_keys=True))


def change_index(folder: pathlib.Path, change) -> pathlib.Path:
    """Has `change` change the index."""
    index = json.loads((folder / "index.json").read_text())
    change(index)
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def arrow_of(rows: list[dict], **options) -> bytes:
    table = pyarrow.Table.from_pylist(rows)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, table.schema, **options) as out:
        for begin in range(0, len(rows), 16):
            out.write_table(table.slice(begin, 16))
    ipc = sink.getvalue().to_pybytes()
    return ipc + struct.pack("<I", len(ipc)) + b"LDARW01\0"


def write_arrow(folder: pathlib.Path, rows: list[dict], shape, each: int = 10**9, **options) -> pathlib.Path:
    folder.mkdir(parents=True)
    chunks = []
    for begin in range(0, len(rows), each):
        some, name = rows[begin : begin + each], f"chunk-0-{len(chunks)}.bin"
        data = chunk_of([b""] * len(some)) + arrow_of(some, **options)
        (folder / name).write_bytes(data)
        chunks.append({"chunk_bytes": len(data), "chunk_size": len(some), "dim": None, "filename": name})
    write_index(folder, chunks, shape)
    return folder


def zstd(data: bytes) -> bytes:
    return pyarrow.Codec("zstd").compress(data, asbytes=True)


def frames_of(items: list[bytes], each: int = 7) -> bytes:
    offsets = np.cumsum([0, *map(len, items)]).astype("<u4")
    packed = [(first, items[first : first + each]) for first in range(0, len(items), each)]
    at = 24 + 4 * (len(items) + 1) + 24 * len(packed)
    table, bodies = b"", b""
    for first, some in packed:
        body = zstd(b"".join(some))
        table += struct.pack("<IIQII", first, len(some), at + len(bodies), len(body), len(b"".join(some)))
        bodies += body
    return struct.pack("<8sHHIII", b"LDFZ01\0\0", 1, 0, len(items), each, len(packed)) + offsets.tobytes() + table + bodies


PACKS = {
    "zstd": (lambda items: zstd(chunk_of(items)), {"compression": "zstd"}),
    "frames": (frames_of, {"compression": "zstd:5", "compression_level": "batch"}),
    "samples": (lambda items: chunk_of([zstd(item) for item in items]), {"compression": "zstd", "compression_level": "sample"}),
}


def write_packed(folder: pathlib.Path, kind: str, samples, shape, each: int = 17) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    pack, config = PACKS[kind]
    chunks = []
    for begin in range(0, len(samples), each):
        items = [item_of(values) for values in samples[begin : begin + each]]
        name = f"chunk-0-{len(chunks)}{'.zstd' if kind == 'zstd' else ''}.bin"
        (folder / name).write_bytes(pack(items))
        size = len(chunk_of(items) if kind == "zstd" else pack(items))
        chunks.append({"chunk_bytes": size, "chunk_size": len(items), "dim": None, "filename": name})
    write_index(folder, chunks, shape, **config)
    return folder


REAL = r'''
import io, pathlib, pickle, shutil, sys

import numpy as np
import torch
from PIL import Image

import torchvision_apart

torchvision_apart.load()
import litdata
import litdata.processing.data_processor
import torchvision.io
from litdata import types
from litdata.streaming.item_loader import TokensLoader

# LitData's workers are forked, as in notebooks: spawned ones would import torch anew.
litdata.processing.data_processor.in_notebook = lambda: True


def decode_jpeg(data, **_options):
    """By Pillow: torchvision's compiled part may not be there (torchvision_apart.py)."""
    with Image.open(io.BytesIO(data.numpy().tobytes())) as image:
        return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)


torchvision.io.decode_jpeg = decode_jpeg
torch.set_num_threads(1)
folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
NUMPY = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bool".split()
TORCH = [torch.float32, torch.float64, torch.complex64, torch.complex128, torch.float16, torch.uint8, torch.int8,
         torch.int16, torch.int32, torch.int64, torch.bool, torch.uint16]


def file(rng, kind):
    height, width = (int(side) for side in rng.integers(1, 14, 2))
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(out, kind)
    return out.getvalue()


def array(rng, dtype, dimensions):
    shape = tuple(int(side) for side in rng.integers(0 if dimensions > 1 else 1, 6, dimensions))
    return rng.integers(0, 100, shape).astype(dtype)


def tensor(rng, number, dimensions):
    return torch.from_numpy(array(rng, "int64", dimensions)).to(TORCH[number % len(TORCH)])


def odd(number):
    rng = np.random.default_rng(number)
    whole = [-(2**63), 2**63 - 1, 0, number]
    real = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1e-3]
    return {
        "text": ["", "caf\u00e9", "\U0001f40e", "line\nline", "\x00"][number % 5] + str(number),
        "whole": whole[number % 4], "real": real[number] if number < 7 else float(rng.normal()), "flag": number % 3 == 0,
        "raw": rng.bytes(int(rng.integers(0, 300))) if number % 7 else b"",
        "row": rng.integers(0, 65536, number % 9).astype(np.uint16), "array": array(rng, NUMPY[number % len(NUMPY)], 3),
        "tensors": (tensor(rng, 8, 1), tensor(rng, number, 2 + number % 2), torch.tensor(number)),
        "pictures": [types.Jpeg(bytes=file(rng, "JPEG"), max_quality=None), types.Image(bytes=file(rng, "PNG"), path="x.png")],
        "pil": Image.fromarray(rng.integers(0, 256, (3, 1 + number % 4, 3), dtype=np.uint8)),
        "jpegs": types.JpegArray([types.Jpeg(bytes=file(rng, "JPEG"), max_quality=None) for _ in range(1 + number % 3)]),
        "meta": {"id": number, "tags": ["a"] * (number % 3) + ["\u00fc"], "file": types.File(bytes=rng.bytes(number % 5))},
        "pickled": {1, number},
    }


def plain(number):
    """LitData keeps these as Arrow tables."""
    return {"n": number, "text": "\u00e9" * (number % 5), "raw": bytes([number % 256]) * (number % 700), "flag": number % 2 == 0,
            "real": number / 7, "meta": {"tags": [1] * (number % 3), "id": -number}}


def pair(number):
    return bytes([number % 256]) * (number % 700), number


def filed(number):
    """LitData keeps no files in Arrow tables."""
    return {"raw": types.File(bytes=bytes([number % 256]) * (number % 700)), "n": number}


def root(number):
    return np.arange(number + 1, dtype=np.float32)


def tokens(number):
    return torch.arange(number * 100, number * 100 + 37 + number % 50, dtype=torch.int32)


def known(value):
    """Of builtins alone: versions of NumPy differ."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, torch.Tensor):
        value = value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        value = np.asarray(value)
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Image.Image):
        return known(np.asarray(value))
    if isinstance(value, dict):
        return {name: known(each) for name, each in value.items()}
    return [known(each) for each in value] if isinstance(value, (list, tuple)) else value


def read(path, **options):
    # A copy, since LitData decompresses chunks in place.
    place = shutil.copytree(path, path.with_name(path.name + ".read"))
    dataset = litdata.StreamingDataset(str(place), shuffle=False, **options)
    return [known(dataset[number]) for number in range(len(dataset))]


if __name__ == "__main__":
    made = {}
    sets = [
        ("odd", odd, count, {"chunk_bytes": 1 << 18}), ("plain", plain, count, {"chunk_bytes": 1 << 16}),
        ("plain-zstd", plain, count, {"chunk_bytes": 1 << 16, "compression": "zstd"}),
        ("pair", pair, count, {"chunk_bytes": 1 << 16}), ("filed", filed, count, {"chunk_bytes": 1 << 16}),
        ("root", root, 50, {"chunk_size": 20}),
        *((f"filed-{level}", filed, count, {"chunk_bytes": 1 << 16, "compression": "zstd:3", "compression_level": level,
           **({"compression_batch_size": 7} if level == "batch" else {})}) for level in ("chunk", "batch", "sample")),
    ]
    for name, make, samples, options in sets:
        litdata.optimize(make, list(range(samples)), output_dir=str(folder / name), num_workers=1, verbose=False, **options)
        made[name] = read(folder / name)
    for name, options in (("tokens", {}), ("tokens-zstd", {"compression": "zstd", "compression_level": "chunk"})):
        litdata.optimize(tokens, list(range(1, 200)), output_dir=str(folder / name), num_workers=1, chunk_size=1000,
                         item_loader=TokensLoader(), verbose=False, **options)
        made[name] = read(folder / name, item_loader=TokensLoader(block_size=65))
    (folder / "read.pkl").write_bytes(pickle.dumps(made))
'''
