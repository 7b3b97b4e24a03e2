"""Arrays in HDF5 files, NetCDF4's among them: h5py reads the file's own index, once, by range.

Their bytes are read without h5py, which lets one thread in at a time.
"""

from __future__ import annotations

import math
from typing import Any, Union

import numpy as np

from leat._formats._array._chunks import Filter, check_filters
from leat._formats._array._remote import Remote
from leat._formats._array._stored import Object, Stored, check_grid, number_type, plain
from leat.errors import Corrupt, Error, InvalidArgument

_OLDEST_H5PY = (3, 8)
_FILTERS = {
    1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 307: "bz2", 32000: "lzf",
    32001: "blosc", 32004: "lz4 (HDF5's)", 32008: "bitshuffle", 32015: "zstd", 32026: "blosc2",
}  # fmt: skip


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        found = "is not installed"
    else:
        if h5py.version.version_tuple[:2] >= _OLDEST_H5PY:
            return h5py
        found = f"is {h5py.__version__}"
    raise InvalidArgument(
        f"arrays in HDF5 and NetCDF4 files need h5py from {'.'.join(map(str, _OLDEST_H5PY))} on, which {found}; "
        "pip install 'h5py>=3.8'"
    )


def arrays_of(object: Object, names: Union[list[str], None]) -> list[Stored]:
    """Arrays of a file; of no names, the one that there is.

    Raises:
        leat.Corrupt: it is no HDF5 file, or damaged; names it.
        leat.InvalidArgument: no such array, or one that is stored as nothing here reads it.
    """
    h5py = _h5py()
    remote = Remote(object)
    try:
        with h5py.File(remote, "r") as file:
            if file.userblock_size:
                raise InvalidArgument(
                    f"{object.key} has a user block of {file.userblock_size} bytes; write it without one"
                )
            found = [_stored(h5py, object, file, name) for name in (names or _only_name(h5py, object, file))]
    except Error:
        raise
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError, UnicodeError) as error:
        if remote.error is not None:
            raise remote.error from None
        raise Corrupt(f"{object.key}: no HDF5 file, or damaged: {error}") from None
    return found


def _only_name(h5py: Any, object: Object, file: Any) -> list[str]:
    names: list[str] = []

    def see(name: str, each: Any) -> None:
        if isinstance(each, h5py.Dataset) and each.dtype.kind in "biufc" and each.ndim and not each.is_scale:
            names.append(name)

    file.visititems(see)
    if len(names) == 1:
        return names
    known = ", ".join(names[:20]) or "none"
    raise InvalidArgument(
        f"{object.key} has {len(names)} arrays of numbers; name those that are fields, variables=[…]: {known}"
    )


def _stored(h5py: Any, object: Object, file: Any, name: str) -> Stored:
    label = f"{object.key}:{name}"
    each = file.get(name)
    if not isinstance(each, h5py.Dataset):
        raise InvalidArgument(f"{object.key} has no array {name!r}; it has {', '.join(list(file)[:20])}")
    dtype = number_type(each.dtype, label)
    if not each.ndim:
        raise InvalidArgument(f"{label} is one number, and has no dimension of samples")
    created = each.id.get_create_plist()
    layout = created.get_layout()
    fill = np.asarray(each.fillvalue, dtype).tobytes()
    if layout == h5py.h5d.COMPACT:
        none = np.empty(0, np.int64)
        return Stored(
            label,
            each.shape,
            dtype,
            each.shape,
            [],
            fill,
            [object],
            np.empty(0, np.int32),
            none,
            none,
            values=each[()],
        )
    if layout == h5py.h5d.VIRTUAL or created.get_external_count():
        raise InvalidArgument(f"{label} lies in other files (a virtual array, or external storage); open those")
    if layout == h5py.h5d.CONTIGUOUS:
        at = each.id.get_offset()
        if at is None:
            empty = plain(label, each.shape, dtype, object, 0, fill)
            empty.object_of[:] = -1
            empty.plain_at = None
            return empty
        if at + dtype.itemsize * math.prod(each.shape) > object.size:
            raise Corrupt(
                f"{label} ends at byte {at + dtype.itemsize * math.prod(each.shape)} of {object.size}: it is cut short"
            )
        return plain(label, each.shape, dtype, object, at, fill)
    return _chunked(object, each, label, dtype, _filters(created, dtype, label), fill)


def _filters(created: Any, dtype: np.dtype[Any], label: str) -> list[Filter]:
    filters: list[Filter] = []
    for number in range(created.get_nfilters()):
        code, _, told, _ = created.get_filter(number)
        kind = _FILTERS.get(code, f"filter {code}")
        filters.append([kind, int(told[0]) if told else dtype.itemsize] if kind == "shuffle" else [kind])
    check_filters(filters, label)
    return filters


def _chunked(
    object: Object, each: Any, label: str, dtype: np.dtype[Any], filters: list[Filter], fill: bytes
) -> Stored:
    chunk = tuple(each.chunks)
    grid = [-(-side // part) for side, part in zip(each.shape, chunk)]
    check_grid(label, grid)
    total = math.prod(grid)
    object_of = np.full(total, -1, np.int32)
    offsets, lengths, masks = np.zeros(total, np.int64), np.zeros(total, np.int64), np.zeros(total, np.int64)
    wrong: list[Any] = []

    def see(found: Any) -> None:
        place = [at // part for at, part in zip(found.chunk_offset, chunk)]
        if any(at >= count for at, count in zip(place, grid)) or found.byte_offset is None:
            wrong.append(found)
            return
        number = int(np.ravel_multi_index(place, grid))
        if object_of[number] == 0:
            wrong.append(found)
        object_of[number] = 0
        offsets[number], lengths[number], masks[number] = found.byte_offset, found.size, found.filter_mask

    if total:
        each.id.chunk_iter(see)
    if wrong:
        raise Corrupt(f"{label}: its index has a chunk twice, or outside of the array, at {wrong[0].chunk_offset}")
    return Stored(
        label,
        each.shape,
        dtype,
        chunk,
        filters,
        fill,
        [object],
        object_of,
        offsets,
        lengths,
        masks if masks.any() else None,
    )
