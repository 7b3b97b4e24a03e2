"""Arrays as NumPy writes them: ``.npy`` files, and members of ``.npz`` files, by range."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any, Union

import numpy as np

from leat._formats._array._chunks import Filter
from leat._formats._array._remote import Remote
from leat._formats._array._stored import Object, Stored, number_type, plain
from leat.errors import Corrupt, Error, InvalidArgument

FIELD = "data"
"""The name of the array in a ``.npy``."""
_MOST_HEADER_BYTES = 64 << 10
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ENCRYPTED = 0x1


def npy(object: Object, names: Union[list[str], None]) -> list[Stored]:
    """The array of a ``.npy`` file.

    Raises:
        leat.Corrupt: it is none, or cut short; names it.
        leat.InvalidArgument: another field is wanted, or it is in Fortran order.
    """
    if names not in (None, [FIELD]):
        raise InvalidArgument(
            f"variables={names!r}: a .npy file has one array, which has no name; its field is {FIELD!r}"
        )
    shape, dtype, begin = _header(object.read(0, min(object.size, _MOST_HEADER_BYTES)), object.key)
    _check_size(object.key, shape, dtype, object.size - begin)
    return [plain(object.key, shape, dtype, object, begin)]


def npz(object: Object, names: Union[list[str], None]) -> list[Stored]:
    """Members of a ``.npz`` file; of no names, the only one."""
    remote = Remote(object)
    try:
        with zipfile.ZipFile(remote) as archive:
            members = {info.filename: info for info in archive.infolist()}
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        if remote.error is not None:
            raise remote.error from None
        raise Corrupt(f"{object.key}: no .npz file, or damaged: {error}") from None
    known = [name[:-4] for name in members if name.endswith(".npy")]
    if names is None and len(known) != 1:
        raise InvalidArgument(
            f"{object.key} has {len(known)} arrays; name those that are fields, variables=[…]: "
            f"{', '.join(known[:20])}"
        )
    found = []
    for name in names or known:
        if name + ".npy" not in members:
            raise InvalidArgument(f"{object.key} has no array {name!r}; it has {', '.join(known[:20])}")
        found.append(_member(object, members[name + ".npy"], f"{object.key}:{name}"))
    return found


def _member(object: Object, info: zipfile.ZipInfo, label: str) -> Stored:
    if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidArgument(f"{label} is encrypted, or compressed as neither np.savez nor np.savez_compressed does")
    if not 0 <= info.header_offset <= object.size - _LOCAL_HEADER.size:
        raise Corrupt(f"{label} begins outside of the file: it is cut short")
    magic, *_, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(object.read(info.header_offset, _LOCAL_HEADER.size))
    at = info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
    if magic != b"PK\x03\x04" or at + info.compress_size > object.size:
        raise Corrupt(f"{label}: no member lies where the directory says, or it is cut short")
    head = object.read(at, min(info.compress_size, _MOST_HEADER_BYTES))
    if info.compress_type == zipfile.ZIP_STORED:
        if info.compress_size != info.file_size:
            raise Corrupt(f"{label}: stored, and yet of two sizes")
        shape, dtype, begin = _header(head, label)
        _check_size(label, shape, dtype, info.file_size - begin)
        return plain(label, shape, dtype, object, at + begin)
    try:
        shape, dtype, begin = _header(zlib.decompressobj(-15).decompress(head, _MOST_HEADER_BYTES), label)
    except zlib.error as error:
        raise Corrupt(f"{label}: {error}") from None
    _check_size(label, shape, dtype, info.file_size - begin)
    # As it was written: the header put in front, summed up, deflated.
    filters: list[Filter] = [["skip", begin], ["zip_crc", info.CRC], ["raw_deflate"]]
    one = np.zeros(1, np.int64)
    return Stored(
        label, shape, dtype, tuple(max(side, 1) for side in shape), filters, bytes(dtype.itemsize), [object],
        np.zeros(1, np.int32), one + at, one + info.compress_size,
    )  # fmt: skip


def _header(head: bytes, label: str) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """The shape, the type, and where the items begin."""
    stream = io.BytesIO(head)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        if version > (2, 0):
            raise InvalidArgument(
                f"{label} is of version {version} of .npy, whose names are not ASCII: it holds records"
            )
        shape, is_fortran, dtype = read(stream)
    except Error:
        raise
    except Exception as error:  # NumPy's parser raises many kinds.
        raise Corrupt(f"{label}: no .npy, or damaged: {error}") from None
    if not shape:
        raise InvalidArgument(f"{label} is one number, and has no dimension of samples")
    if is_fortran and len(shape) > 1:
        raise InvalidArgument(f"{label} lies in Fortran order; write np.ascontiguousarray of it")
    if min(shape) < 0:
        raise Corrupt(f"{label}: no array has the shape {shape}")
    return shape, number_type(dtype, label), stream.tell()


def _check_size(label: str, shape: tuple[int, ...], dtype: np.dtype[Any], there: int) -> None:
    wanted = dtype.itemsize
    for side in shape:
        wanted *= side
    if wanted != there:
        raise Corrupt(f"{label}: its shape says {wanted} bytes, and {there} are there")
