"""The places of a FLAC file's blocks. It has no list of them, so that it is read once."""

from __future__ import annotations

from typing import NamedTuple, Union

import numpy as np

from leat._formats._array._stored import Object
from leat._formats._audio._format import Sound
from leat.errors import Corrupt

_READ_BYTES = 8 << 20
_MOST_HEADER_BYTES = 16
_LARGE = {6: 1, 7: 2}
"""The codes of block sizes that stand at the end of a header, and their bytes."""
_RATES = {12: 1, 13: 2, 14: 2}
_BITS = {1: 8, 2: 12, 4: 16, 5: 20, 6: 24, 7: 32}


class Blocks(NamedTuple):
    """The blocks of a FLAC file (its format calls them frames)."""

    firsts: np.ndarray
    """The number of the first frame of each, and in the end the number of all frames."""
    offsets: np.ndarray
    """The offset of each, and in the end that of the end of the last one."""


def _crc8_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value << 1 ^ (0x07 if value & 0x80 else 0)) & 0xFF
        table.append(value)
    return table


_CRC8 = _crc8_table()


class _Header(NamedTuple):
    number: int
    """The block's, or its first frame's where their sizes vary."""
    frames: int
    varies: bool


def _header(data: bytes, at: int, sound: Sound) -> Union[_Header, None]:
    """The header of the block that begins at a byte, if one does."""
    found = data[at : at + _MOST_HEADER_BYTES]
    if len(found) < 6 or found[0] != 0xFF or found[1] & 0xFE != 0xF8 or found[3] & 1:
        return None
    size_code, rate_code = found[2] >> 4, found[2] & 15
    channels, bits = found[3] >> 4, found[3] >> 1 & 7
    if size_code == 0 or rate_code == 15 or channels > 10 or (bits and _BITS.get(bits) != sound.bits):
        return None
    if (channels + 1 if channels < 8 else 2) != sound.channels:
        return None
    number, place = _coded_number(found, 4)
    if number is None:
        return None
    end = place + _LARGE.get(size_code, 0) + _RATES.get(rate_code, 0)
    if end >= len(found) or _crc8(found[:end]) != found[end]:
        return None
    if size_code in _LARGE:
        frames = int.from_bytes(found[place : place + _LARGE[size_code]], "big") + 1
    elif size_code == 1:
        frames = 192
    else:
        frames = 576 << size_code - 2 if size_code < 6 else 1 << size_code
    return _Header(number, frames, bool(found[1] & 1))


def _coded_number(data: bytes, at: int) -> tuple[Union[int, None], int]:
    """A number as UTF-8 codes characters, of up to 7 bytes, and what follows it."""
    first = data[at]
    more = 0
    while more < 8 and first & 0x80 >> more:
        more += 1
    if more == 0:
        return first, at + 1
    if more in (1, 8) or at + more > len(data):
        return None, at
    number = first & (0x7F >> more)
    for each in data[at + 1 : at + more]:
        if each & 0xC0 != 0x80:
            return None, at
        number = number << 6 | each & 0x3F
    return number, at + more


def _crc8(data: bytes) -> int:
    found = 0
    for each in data:
        found = _CRC8[found ^ each]
    return found


def blocks_of(sound: Sound, object: Object) -> Blocks:
    """Reads `object`, the whole file, for the headers of its blocks.

    Raises:
        leat.Corrupt: there are not those that its header tells; names it.
    """
    firsts: list[int] = []
    offsets: list[int] = []
    frames = 0
    at, left = sound.begin, b""
    while at < object.size:
        more = object.read(at, min(_READ_BYTES, object.size - at))
        data, base = left + more, at - len(left)
        at += len(more)
        # A header that the next part completes is looked at with that.
        last = len(data) if at >= object.size else len(data) - _MOST_HEADER_BYTES
        for place in _candidates(data, max(last, 0)):
            header = _header(data, place, sound)
            if header is None or not _is_next(header, sound, firsts, frames):
                continue
            firsts.append(frames)
            offsets.append(base + place)
            frames += header.frames
        left = data[max(last, 0) :]
    if not firsts or offsets[0] != sound.begin:
        raise Corrupt(f"{object.key}: no FLAC file, or damaged: no block of sound follows its header")
    if sound.frames and frames != sound.frames:
        raise Corrupt(
            f"{object.key}: it is cut short, or damaged: its header says {sound.frames} frames, and its blocks have "
            f"{frames}"
        )
    return Blocks(np.array([*firsts, frames], np.int64), np.array([*offsets, object.size], np.int64))


def _candidates(data: bytes, end: int) -> list[int]:
    """The places of two bytes that begin a block."""
    values = np.frombuffer(data, np.uint8)
    found = np.flatnonzero(values[:-1] == 0xFF)
    found = found[found < end]
    return found[values[found + 1] & 0xFE == 0xF8].tolist()


def _is_next(header: _Header, sound: Sound, firsts: list[int], frames: int) -> bool:
    if header.frames > sound.blocks[1]:
        return False
    if header.varies:
        return header.number == frames
    # All blocks but the last have one size.
    return header.number == len(firsts) and (len(firsts) < 2 or frames == len(firsts) * firsts[1])
