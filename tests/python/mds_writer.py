"""Shards of MosaicML Streaming: a writer of the wire format alone, and a program that has the real one write
and read.
"""

from __future__ import annotations

import json
import pathlib
import struct
from collections.abc import Mapping, Sequence

import numpy as np

Columns = Mapping[str, tuple[str, "int | None"]]
"""By name: the encoding, and the bytes of a value; None: each has its own."""


def settings_of(columns: Columns, **others) -> dict:
    names = sorted(columns)
    return {
        "version": 2, "format": "mds", "compression": None, "hashes": [], "size_limit": 1 << 26,
        "column_names": names, "column_encodings": [columns[name][0] for name in names],
        "column_sizes": [columns[name][1] for name in names], **others,
    }  # fmt: skip


def shard_of(columns: Columns, samples: Sequence[Mapping[str, bytes]]) -> bytes:
    names = sorted(columns)
    bodies = []
    for sample in samples:
        sizes = [len(sample[name]) for name in names if columns[name][1] is None]
        bodies.append(struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(sample[name] for name in names))
    settings = json.dumps(settings_of(columns), sort_keys=True).encode()
    begin = 4 * (len(samples) + 2) + len(settings)
    offsets = np.cumsum([begin, *map(len, bodies)]).astype("<u4")
    return struct.pack("<I", len(samples)) + offsets.tobytes() + settings + b"".join(bodies)


def write_mds(
    folder: pathlib.Path, columns: Columns, samples: Sequence[Mapping[str, bytes]], each: int = 10**9
) -> pathlib.Path:
    """Samples as bytes, `each` in a shard; and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = []
    for number in range(0, len(samples), each):
        some = samples[number : number + each]
        name, data = f"shard.{len(shards):05}.mds", shard_of(columns, some)
        (folder / name).write_bytes(data)
        raw = {"basename": name, "bytes": len(data), "hashes": {}}
        shards.append(settings_of(columns, raw_data=raw, zip_data=None, samples=len(some)))
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}, sort_keys=True))
    return folder


def images_in(data: bytes, begin: int = 4) -> list[bytes]:
    """The files in a value of list[jpeg] or list[png]; with begin=0 in one of jpeg_array."""
    (count,) = struct.unpack_from("<I", data, begin)
    sizes = struct.unpack_from(f"<{count}I", data, begin + 4)
    ends = begin + 4 + 4 * count + np.cumsum(sizes)
    return [data[end - size : end] for end, size in zip(ends.tolist(), sizes)]


REAL = r'''
import decimal, io, json, pathlib, pickle, sys

import numpy as np
from PIL import Image
import torchvision_apart

torchvision_apart.load()
from streaming import MDSWriter
from streaming.base.format import reader_from_json

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
COLUMNS = {
    "a_bytes": "bytes", "a_str": "str", "a_int": "int", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16",
    "f32": "float32", "f64": "float64", "s_int": "str_int", "s_float": "str_float", "s_decimal": "str_decimal",
    "fixed": "ndarray:float32:3,4", "row": "ndarray:uint16:7", "typed": "ndarray:int16", "any": "ndarray",
    "pil": "pil", "jpeg": "jpeg", "png": "png", "jpeg_array": "jpeg_array", "jpegarray": "jpegarray",
    "jpegs": "list[jpeg]", "pngs": "list[png]", "pils": "list[pil]", "json": "json", "pkl": "pkl",
}
rng = np.random.default_rng(5)
DTYPES = [kind for kind in "uint8 int8 uint16 int16 float16 uint32 int32 float32 uint64 int64 float64".split()]


def image(mode="RGB"):
    width, height = int(rng.integers(1, 14)), int(rng.integers(1, 14))
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    return Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8))


def jpeg_file():
    out = io.BytesIO()
    image().save(out, "JPEG")
    return bytearray(out.getvalue())


def array(dtype, most=6):
    shape = tuple(int(side) for side in rng.integers(1, most, int(rng.integers(1, 4))))
    return rng.integers(0, 100, shape).astype(dtype)


def whole(dtype, number):
    info = np.iinfo(dtype)
    return [info.min, info.max, 0][number % 3] if number < 9 else int(rng.integers(0, info.max, dtype=dtype))


def real(number):
    return [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1e-3][number] if number < 7 else float(rng.normal())


def sample(number):
    return {
        "a_bytes": rng.bytes(int(rng.integers(0, 300))) if number % 7 else b"",
        "a_str": ["", "caf\u00e9", "\U0001f40e", "line\nline", "\x00"][number % 5] + str(number),
        "a_int": whole("int64", number), "s_int": whole("int64", number), "s_float": real(number),
        "u8": whole("uint8", number), "u16": whole("uint16", number), "u32": whole("uint32", number),
        "u64": whole("uint64", number), "i8": whole("int8", number), "i16": whole("int16", number),
        "i32": whole("int32", number), "i64": whole("int64", number),
        "f16": real(number) if number else 1.5, "f32": real(number), "f64": real(number),
        "s_decimal": decimal.Decimal(f"{number}.{number:07}E-{number % 30}"),
        "fixed": rng.normal(size=(3, 4)).astype(np.float32), "row": rng.integers(0, 65536, 7).astype(np.uint16),
        "typed": array(np.int16, 400 if number % 50 == 0 else 6), "any": array(DTYPES[number % len(DTYPES)]),
        "pil": image("L" if number % 2 else "RGB"), "jpeg": image(), "png": image("L" if number % 2 else "RGB"),
        "jpeg_array": [jpeg_file() for _ in range(1 + number % 3)],
        "jpegarray": [jpeg_file() for _ in range(1 + number % 2)],
        "jpegs": [image() for _ in range(number % 3)], "pngs": [image() for _ in range(number % 3)],
        "pils": [image() for _ in range(number % 2)],
        "json": {"n": number, "list": [1.5, number], "text": "\u00fc"}, "pkl": {"number": number, "set": {1, 2}},
    }


def plain(value):
    """Of builtins alone: versions of NumPy differ."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = np.asarray(value)
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Image.Image):
        return ("image", value.mode, *plain(np.asarray(value))[1:])
    return [plain(one) for one in value] if isinstance(value, list) else value


with MDSWriter(columns=COLUMNS, out=str(folder), size_limit=1 << 18) as out:
    for number in range(count):
        out.write(sample(number))

index = json.loads((folder / "index.json").read_text())
for kind in ("br", "bz2", "gz", "snappy", "zstd", "zstd:7"):
    path = folder.parent / kind.replace(":", "-")
    with MDSWriter(
        columns={"n": "int", "raw": "bytes", "text": "str"}, out=str(path), size_limit=1 << 14, compression=kind,
        hashes=["sha1"],
    ) as out:
        for number in range(100):
            out.write({"n": number, "raw": bytes([number]) * 1000, "text": str(number)})

found = []
for entry in index["shards"]:
    reader = reader_from_json(str(folder), "", entry)
    for number in range(reader.samples):
        found.append({name: plain(value) for name, value in reader[number].items()})
(folder.parent / "read.pkl").write_bytes(pickle.dumps((COLUMNS, found)))
'''
