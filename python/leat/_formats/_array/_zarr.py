"""Arrays in Zarr stores, versions 2 and 3, shards included: their metadata are JSON files, and each chunk,
or shard of chunks, is an object. Chunks are found by listing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Union

import numpy as np

from leat import _native
from leat._formats._array._chunks import Filter, check_filters
from leat._formats._array._stored import Object, Stored, check_grid, number_type
from leat.errors import Corrupt, Error, InvalidArgument

MOST_METADATA_BYTES = 16 << 20
METADATA = ("zarr.json", ".zarray", ".zgroup")
_MOST_INDEX_BYTES = 64 << 20
_MOST_THREADS = 8
_NOT_THERE = 2**64 - 1
_COMPRESSORS = {
    "zlib": "zlib",
    "gzip": "gzip",
    "bz2": "bz2",
    "zstd": "zstd",
    "blosc": "blosc",
    "lz4": "lz4",
    "crc32c": "crc32c",
}
_DTYPES = {
    "bool": "bool", **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                                 "float16", "float32", "float64", "complex64", "complex128")},
}  # fmt: skip


class _Wrong(Exception):
    """Metadata are not as they should be."""


class _Layout(NamedTuple):
    """The metadata of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Any
    chunk: tuple[int, ...]
    """That of an object."""
    key: re.Pattern[str]
    """That of an object, below the array's folder: a number for each dimension."""
    filters: list[Filter]
    axes: Union[list[int], None]
    shard: Union[_Shard, None] = None


class _Shard(NamedTuple):
    """How chunks lie in an object."""

    chunk: tuple[int, ...]
    is_checked: bool
    is_at_end: bool


def arrays_of(files: Sequence[Object], names: Union[list[str], None]) -> list[Stored]:
    """Arrays of a Zarr store; of no names, the one that there is.

    Args:
        files: all objects of its folder.

    Raises:
        leat.Corrupt: metadata or the index of a shard are damaged; names the object.
        leat.InvalidArgument: no such array, or one that is stored as nothing here reads it.
    """
    by_key = {each.key: each for each in files}
    if names is None:
        names = [_folder(key) for key in by_key if _is_array(key, by_key[key])]
        if len(names) != 1:
            known = ", ".join(names[:20]) or "none"
            raise InvalidArgument(
                f"{len(names)} arrays are there; name those that are fields, variables=[…]: {known}"
            )
    return [_array(by_key, name.strip("/")) for name in names]


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


def _is_array(key: str, object: Object) -> bool:
    name = key.rpartition("/")[2]
    return name == ".zarray" or (name == "zarr.json" and _json(object).get("node_type") == "array")


def _json(object: Object) -> dict[str, Any]:
    if object.size > MOST_METADATA_BYTES:
        raise InvalidArgument(f"{object.key} has {object.size} bytes, too many for metadata")
    try:
        found = json.loads(object.read(0, object.size))
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"{object.key}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Corrupt(f"{object.key}: it is no object")
    return found


def _array(by_key: Mapping[str, Object], name: str) -> Stored:
    folder = name + "/" if name else ""
    metadata = by_key.get(folder + "zarr.json") or by_key.get(folder + ".zarray")
    if metadata is None:
        known = [_folder(key) for key in by_key if _is_array(key, by_key[key])]
        raise InvalidArgument(f"no array {name!r} is there; there are {', '.join(known[:20]) or 'none'}")
    found = _json(metadata)
    try:
        layout = _version_2(found) if metadata.key.endswith(".zarray") else _version_3(found, metadata.key)
    except Error:
        raise
    except (_Wrong, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise Corrupt(f"{metadata.key}: no metadata of an array, or damaged: {error!r}") from None
    check_filters(layout.filters, metadata.key)
    return _stored(by_key, folder, metadata, layout)


def _sides(value: Any, least: int) -> tuple[int, ...]:
    if (
        not isinstance(value, list)
        or not 1 <= len(value) <= 32
        or not all(type(side) is int and least <= side < 1 << 48 for side in value)
    ):
        raise _Wrong(f"{value!r} is no shape of one dimension or more")
    return tuple(value)


def _fill(value: Any, dtype: np.dtype[Any]) -> Any:
    if value is None:
        return 0
    if isinstance(value, str) and value.startswith("0x"):
        return np.frombuffer(int(value, 16).to_bytes(dtype.itemsize, "little"), dtype.newbyteorder("<"))[0]
    if isinstance(value, list) and dtype.kind == "c" and len(value) == 2:
        return complex(float(value[0]), float(value[1]))
    return float(value) if isinstance(value, str) else value


def _key_pattern(dimensions: int, separator: Any, prefix: str) -> re.Pattern[str]:
    if separator not in (".", "/"):
        raise _Wrong(f"the separator {separator!r}")
    numbers = re.escape(separator).join(["([0-9]{1,15})"] * dimensions)
    return re.compile((re.escape(prefix + separator) if prefix else "") + numbers)


def _version_2(found: dict[str, Any]) -> _Layout:
    if found.get("zarr_format") != 2 or found.get("order") not in ("C", "F"):
        raise _Wrong("zarr_format is not 2, or order neither C nor F")
    shape, chunk = _sides(found["shape"], 0), _sides(found["chunks"], 1)
    if not isinstance(found["dtype"], str):
        raise InvalidArgument("arrays of records are not read; Leat reads numbers")
    dtype = number_type(np.dtype(found["dtype"]), "the array")
    filters: list[Filter] = []
    for each in [*(found.get("filters") or []), *([found["compressor"]] if found.get("compressor") else [])]:
        kind = each["id"]
        filters.append(
            ["shuffle", int(each["elementsize"])] if kind == "shuffle" else [_COMPRESSORS.get(kind, f"codec {kind}")]
        )
    axes = list(range(len(shape)))[::-1] if found["order"] == "F" and len(shape) > 1 else None
    key = _key_pattern(len(shape), found.get("dimension_separator", "."), "")
    return _Layout(shape, dtype, _fill(found.get("fill_value"), dtype), chunk, key, filters, axes)


def _version_3(found: dict[str, Any], name: str) -> _Layout:
    if found.get("zarr_format") != 3 or found.get("node_type") != "array":
        raise _Wrong("no array of zarr_format 3")
    if found["data_type"] not in _DTYPES:
        raise InvalidArgument(f"{name} is of type {found['data_type']!r}; Leat reads numbers")
    shape = _sides(found["shape"], 0)
    if found["chunk_grid"]["name"] != "regular":
        raise InvalidArgument(
            f"{name}: its chunks are a grid {found['chunk_grid']['name']!r}, and Leat reads regular ones"
        )
    chunk = _sides(found["chunk_grid"]["configuration"]["chunk_shape"], 1)
    if found.get("storage_transformers"):
        raise InvalidArgument(f"{name} has storage transformers, which Leat does not undo")
    encoding = found["chunk_key_encoding"]
    is_default = encoding["name"] == "default"
    separator = (encoding.get("configuration") or {}).get("separator", "/" if is_default else ".")
    key = _key_pattern(len(shape), separator, "c" if is_default else "")
    codecs, shard = found["codecs"], None
    if any(each["name"] == "sharding_indexed" for each in codecs):
        if len(codecs) != 1:
            raise InvalidArgument(
                f"{name}: Leat undoes no codec around shards; it has {[each['name'] for each in codecs]}"
            )
        shard = _shard(codecs[0]["configuration"], chunk, name)
        codecs = codecs[0]["configuration"]["codecs"]
    order, filters, axes = _codecs(codecs, len(shape), name)
    dtype = np.dtype(_DTYPES[found["data_type"]])
    fill = _fill(found["fill_value"], dtype)
    return _Layout(shape, dtype.newbyteorder(order), fill, chunk, key, filters, axes, shard)


def _shard(told: dict[str, Any], chunk: tuple[int, ...], name: str) -> _Shard:
    inner = _sides(told["chunk_shape"], 1)
    if len(inner) != len(chunk) or any(outer % side for outer, side in zip(chunk, inner)):
        raise _Wrong(f"chunks of {inner} in shards of {chunk}")
    kinds = [each["name"] for each in told["index_codecs"]]
    is_little = told["index_codecs"][0].get("configuration", {}).get("endian", "little") == "little"
    if kinds not in (["bytes"], ["bytes", "crc32c"]) or not is_little:
        raise InvalidArgument(
            f"{name}: the index of its shards is stored by {kinds}; Leat reads little-endian bytes and crc32c"
        )
    where = told.get("index_location", "end")
    if where not in ("start", "end"):
        raise _Wrong(f"index_location is {where!r}")
    return _Shard(inner, len(kinds) == 2, where == "end")


def _codecs(
    codecs: Iterable[dict[str, Any]], dimensions: int, name: str
) -> tuple[Any, list[Filter], Union[list[int], None]]:
    """The order of bytes, what was done to them, and that of axes."""
    order: Any = None
    axes: Union[list[int], None] = None
    filters: list[Filter] = []
    for each in codecs:
        kind, told = each["name"], each.get("configuration") or {}
        if kind == "transpose" and axes is None and order is None:
            axes = list(told["order"])
            if sorted(axes) != list(range(dimensions)):
                raise _Wrong(f"{axes!r} is no order of axes")
        elif kind == "bytes" and order is None:
            order = {"little": "<", "big": ">"}[told.get("endian", "little")]
        elif order is not None and kind in _COMPRESSORS:
            filters.append([_COMPRESSORS[kind]])
        else:
            raise InvalidArgument(
                f"{name} is stored by the codec {kind!r}, which Leat does not undo; write it anew without"
            )
    if order is None:
        raise _Wrong("no codec bytes")
    return order, filters, axes


def _stored(by_key: Mapping[str, Object], folder: str, metadata: Object, layout: _Layout) -> Stored:
    chunk = layout.shard.chunk if layout.shard else layout.chunk
    if len(chunk) != len(layout.shape):
        raise Corrupt(f"{metadata.key}: chunks of {chunk} in an array of {layout.shape}")
    grid = [-(-side // part) for side, part in zip(layout.shape, chunk)]
    check_grid(metadata.key, grid)
    outer = [-(-side // part) for side, part in zip(layout.shape, layout.chunk)]
    there: list[tuple[Object, tuple[int, ...]]] = []
    for key, each in by_key.items():
        if key.startswith(folder) and (match := layout.key.fullmatch(key[len(folder) :])):
            place = tuple(map(int, match.groups()))
            if all(at < count for at, count in zip(place, outer)):
                there.append((each, place))
    total = math.prod(grid)
    array = Stored(
        name=folder.rstrip("/") or "data",
        shape=layout.shape,
        dtype=layout.dtype,
        chunk=chunk,
        filters=layout.filters,
        fill=np.asarray(layout.fill).astype(layout.dtype).tobytes(),
        objects=[each for each, _ in there] or [metadata],
        object_of=np.full(total, -1, np.int32),
        offsets=np.zeros(total, np.int64),
        lengths=np.zeros(total, np.int64),
        axes=layout.axes,
    )
    if layout.shard is not None:
        _fill_in_shards(array, there, layout, layout.shard, grid)
        return array
    for number, (each, place) in enumerate(there):
        chunk_number = np.ravel_multi_index(place, grid)
        array.object_of[chunk_number] = number
        array.lengths[chunk_number] = each.size
    return array


def _fill_in_shards(
    array: Stored,
    there: Sequence[tuple[Object, tuple[int, ...]]],
    layout: _Layout,
    shard: _Shard,
    grid: Sequence[int],
) -> None:
    inner = [outer // side for outer, side in zip(layout.chunk, shard.chunk)]
    with ThreadPoolExecutor(_MOST_THREADS, "leat-zarr") as pool:
        indexes = pool.map(lambda each: _index(each[0], math.prod(inner), shard), there)
        for number, ((_, place), index) in enumerate(zip(there, indexes)):
            places = np.indices(inner).reshape(len(inner), -1) + (np.array(place) * inner)[:, None]
            is_there = (places < np.array(grid)[:, None]).all(axis=0) & (index[:, 0] != _NOT_THERE)
            numbers = np.ravel_multi_index(places[:, is_there], grid)
            array.object_of[numbers] = number
            array.offsets[numbers] = index[is_there, 0].astype(np.int64)
            array.lengths[numbers] = index[is_there, 1].astype(np.int64)


def _index(object: Object, chunks: int, shard: _Shard) -> np.ndarray:
    """Offsets and lengths of the chunks of a shard."""
    size = 16 * chunks + (4 if shard.is_checked else 0)
    if size > _MOST_INDEX_BYTES:
        raise InvalidArgument(f"{object.key} has {chunks} chunks; write shards of fewer")
    if size > object.size:
        raise Corrupt(
            f"{object.key}: {object.size} bytes are too few for the index of {chunks} chunks: it is cut short"
        )
    found = object.read(object.size - size if shard.is_at_end else 0, size)
    if shard.is_checked and _native.crc32c(found[:-4]) != int.from_bytes(found[-4:], "little"):
        raise Corrupt(f"{object.key}: the checksum of its index does not fit: it is damaged, or cut short")
    index = np.frombuffer(found, "<u8", 2 * chunks).reshape(-1, 2)
    used = index[index[:, 0] != _NOT_THERE]
    if (used > object.size).any() or (used.sum(axis=1) > object.size).any():
        raise Corrupt(f"{object.key}: its index names bytes outside of its {object.size}")
    return index
