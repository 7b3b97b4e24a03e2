"""How a file of sound is stored: the headers of WAV and FLAC files, read by range."""

from __future__ import annotations

import struct
from typing import NamedTuple, Union

from leat._formats._array._stored import Object
from leat._formats._media import Head
from leat.errors import Corrupt, InvalidArgument

FLAC = "flac"
_MOST_RATE = 1 << 20
_MOST_CHANNELS = 256
_UNKNOWN_SIZE = 0xFFFFFFFF
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_SUBFORMAT = bytes.fromhex("000000001000800000aa00389b71")
"""This follows the tag in the subformat of an extensible format."""
_CODINGS = {
    (_PCM, 8): "u1", (_PCM, 16): "<i2", (_PCM, 24): "<i3", (_PCM, 32): "<i4", (_FLOAT, 32): "<f4", (_FLOAT, 64): "<f8",
}  # fmt: skip
_OTHERS = {2: "ADPCM", 6: "A-law", 7: "mu-law", 0x11: "IMA ADPCM", 0x31: "GSM 6.10", 0x55: "MP3"}


class Sound(NamedTuple):
    """A file of sound. A frame is a number for each channel."""

    object: Object
    coding: str
    """A number's: ``u1``, ``<i2``, ``<i3``, ``<i4``, ``<f4`` or ``<f8``; or `FLAC`."""
    rate: int
    channels: int
    bits: int
    frames: int
    """0 if the header of a FLAC file does not tell."""
    begin: int
    """The offset of its first frame; that of the first block of a FLAC file."""
    blocks: tuple[int, int] = (0, 0)
    """The frames of the smallest and the largest block of a FLAC file."""

    @property
    def frame_bytes(self) -> int:
        return self.channels * self.bits // 8


def sound_of(object: Object) -> Sound:
    """The format that the header of a file says.

    Raises:
        leat.Corrupt: it is neither a WAV nor a FLAC file, or damaged, or cut short; names it.
        leat.InvalidArgument: it is stored in a way that Leat does not read.
    """
    head = Head(object)
    kind = head.read(0, 4)
    if kind in (b"RIFF", b"RF64", b"BW64"):
        return _wav(object, head)
    if kind == b"RIFX":
        raise InvalidArgument(f"{object.key}: a WAV in big-endian order (RIFX); write it anew as an ordinary WAV")
    if kind == b"fLaC":
        return _flac(object, head, 0)
    if kind[:3] == b"ID3":
        return _flac(object, head, _id3_bytes(head.read(0, 10)))
    raise Corrupt(f"{object.key}: neither a WAV nor a FLAC file: it begins with {kind!r}")


def _wav(object: Object, head: Head) -> Sound:
    first = head.read(0, 12)
    if first[8:] != b"WAVE":
        raise _damaged(object, f"it is a RIFF file of {first[8:]!r}")
    form: Union[tuple[str, int, int, int], None] = None
    long_size: Union[int, None] = None
    at = 12
    while True:
        if at + 8 > object.size:
            raise _damaged(object, "it is cut short, or has no chunk 'data'")
        name, size = struct.unpack("<4sI", head.read(at, 8))
        if name == b"ds64" and size >= 24:
            long_size = struct.unpack("<3Q", head.read(at + 8, 24))[1]
        elif name == b"fmt ":
            form = _form(object, head.read(at + 8, min(size, 40)))
        elif name == b"data":
            if form is None:
                raise _damaged(object, "its chunk 'data' comes before 'fmt '")
            if first[:4] != b"RIFF" and size == _UNKNOWN_SIZE and long_size is not None:
                size = long_size
            return _wav_sound(object, form, at + 8, size)
        at += 8 + size + size % 2


def _wav_sound(object: Object, form: tuple[str, int, int, int], begin: int, size: int) -> Sound:
    coding, channels, rate, bits = form
    if begin + size > object.size:
        if size == _UNKNOWN_SIZE:
            raise InvalidArgument(
                f"{object.key}: its header does not say how long it is (it was written to a pipe); write it anew, such "
                "as with ffmpeg -i, so that its size is known"
            )
        raise _damaged(object, f"it is cut short: it says {size} bytes of sound, and {object.size - begin} are there")
    return Sound(object, coding, rate, channels, bits, size // (channels * bits // 8), begin)


def _form(object: Object, data: bytes) -> tuple[str, int, int, int]:
    """The coding, channels, rate and bits, as a chunk "fmt " has them."""
    if len(data) < 16:
        raise _damaged(object, f"its chunk 'fmt ' has {len(data)} bytes")
    tag, channels, rate, _, align, bits = struct.unpack("<HHIIHH", data[:16])
    if tag == _EXTENSIBLE:
        if len(data) < 40 or data[26:40] != _SUBFORMAT:
            raise _damaged(object, "its extensible format is none that is known")
        tag = int.from_bytes(data[24:26], "little")
    coding = _CODINGS.get((tag, bits))
    if coding is None:
        name = {_PCM: "PCM", _FLOAT: "floats", **_OTHERS}.get(tag, f"format {tag:#x}")
        raise InvalidArgument(
            f"{object.key}: {name} of {bits} bits, and Leat reads PCM of 8, 16, 24 and 32 bits and floats of 32 and "
            "64; write it anew as one of these"
        )
    if not (1 <= channels <= _MOST_CHANNELS and 1 <= rate <= _MOST_RATE and align == channels * bits // 8):
        raise _damaged(object, f"it says {channels} channels of {bits} bits in {align} bytes, {rate} times a second")
    return coding, channels, rate, bits


def _id3_bytes(data: bytes) -> int:
    """The bytes of a tag, which the file follows."""
    return 10 + sum((data[6 + place] & 127) << 7 * (3 - place) for place in range(4))


def _flac(object: Object, head: Head, at: int) -> Sound:
    if head.read(at, 4) != b"fLaC":
        raise Corrupt(f"{object.key}: neither a WAV nor a FLAC file: what follows its ID3 tag is no FLAC")
    kind, length = _block_head(head, at + 4)
    if kind & 127 != 0 or length != 34:
        raise _damaged(object, "it does not begin with STREAMINFO")
    info = head.read(at + 8, 34)
    at += 8 + length
    while not kind & 128:
        kind, length = _block_head(head, at)
        at += 4 + length
    smallest, largest = struct.unpack(">HH", info[:4])
    packed = int.from_bytes(info[10:18], "big")
    rate, channels, bits = packed >> 44, (packed >> 41 & 7) + 1, (packed >> 36 & 31) + 1
    if not (16 <= smallest <= largest and 1 <= rate and 4 <= bits <= 32):
        raise _damaged(object, f"it says blocks of {smallest} to {largest}, {bits} bits, {rate} times a second")
    frames = packed & (1 << 36) - 1
    # Each block has a header and a checksum, so that many frames take some bytes.
    if at > object.size or frames > (object.size - at) // 8 * largest:
        raise _damaged(object, f"it is cut short: it says {frames} frames, and has {object.size} bytes")
    return Sound(object, FLAC, rate, channels, bits, frames, at, (smallest, largest))


def _block_head(head: Head, at: int) -> tuple[int, int]:
    found = head.read(at, 4)
    return found[0], int.from_bytes(found[1:], "big")


def _damaged(object: Object, why: str) -> Corrupt:
    return Corrupt(f"{object.key}: no WAV or FLAC file, or damaged: {why}")
