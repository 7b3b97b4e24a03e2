"""The parts that a page shows of a sample: pictures, clips, texts, numbers."""

from __future__ import annotations

import io
import json
import re
import struct
import wave
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import numpy as np

from leat._show import _pixels
from leat.errors import Error
from leat.ops import Chain, DecodeImage, DecodeMask

MOST_BYTES = 32 << 20
"""A longer value is not read."""
_MOST_PIXELS = 64 << 20
_MOST_CLIP_BYTES = 2 << 20
_CLIP_SECONDS = 10
_MOST_LETTERS = 1500
_MOST_NUMBERS = 48
_MOST_POINTS = 240
_MOST_BOXES = 200
_MOST_ARRAYS_SHOWN = 5
_MASK_NAMES = ("mask", "seg", "segmentation")  # As `DecodeMask` has them.

_INNER_LIST = re.compile(r"\[[^][{}]*\]")  # On one line, as [1, 2, 3, 4].

Decode = Optional[Callable[[Any], str]]


@dataclass
class Picture:
    """A picture, and what is drawn over it."""

    png: bytes
    height: int
    width: int
    note: str = ""
    mask: bytes = b""
    """A PNG of the same shape; empty: none."""
    labels: Sequence[int] = ()
    """The labels that are in it."""
    boxes: Sequence[tuple[Sequence[float], Any]] = ()
    """Left, top, right and bottom in its pixels, and a label or None."""
    points: Sequence[Sequence[float]] = ()


@dataclass
class Clip:
    """Sound, or a film."""

    tag: str
    kind: str
    data: bytes
    note: str = ""


@dataclass
class Words:
    """A text; `is_code` if its blanks count."""

    text: str
    note: str = ""
    is_code: bool = False


@dataclass
class Plot:
    """Numbers as a line."""

    points: Sequence[float]
    note: str = ""


Part = Union[Picture, Clip, Words, Plot]


@dataclass
class Roles:
    """The fields that ops make of a sample, by their meaning."""

    images: dict[str, str] = field(default_factory=dict)
    """The layout of each."""
    masks: list[str] = field(default_factory=list)
    boxes: dict[str, str] = field(default_factory=dict)
    """The field of their labels, or ""."""
    points: list[str] = field(default_factory=list)
    scale: tuple[Any, Any] | None = None
    """Mean and standard deviation that Normalize took."""


def of_bytes(name: str, data: bytes, decode: Decode = None) -> Part:
    """A value as it is stored."""
    kind = _kind_of(data)
    if name in _MASK_NAMES and (mask := _mask_of(data)) is not None:
        return mask
    if kind in ("JPEG", "PNG", "WebP", "TIFF"):
        return _picture_of(data, kind)
    if kind in ("audio/wav", "audio/flac", "audio/mpeg", "audio/ogg", "video/mp4", "video/webm"):
        return _clip_of(kind, data)
    if kind == "npy":
        return _array_file(data)
    if kind:
        return Words("", f"{kind}, {_size(len(data))}: Leat does not decode it")
    return _text_of(data, decode)


def _kind_of(data: bytes) -> str:
    head = data[:16]
    for begin, kind in (
        (b"\xff\xd8\xff", "JPEG"), (b"\x89PNG\r\n\x1a\n", "PNG"), (b"II*\0", "TIFF"), (b"MM\0*", "TIFF"),
        (b"\x93NUMPY", "npy"), (b"fLaC", "audio/flac"), (b"ID3", "audio/mpeg"), (b"\xff\xfb", "audio/mpeg"),
        (b"OggS", "audio/ogg"), (b"\x1aE\xdf\xa3", "video/webm"), (b"GIF8", "GIF"), (b"BM", "BMP"), (b"%PDF", "PDF"),
        (b"PK\x03\x04", "zip"), (b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"),
    ):  # fmt: skip
        if head.startswith(begin):
            return kind
    if head[:4] == b"RIFF":
        return {b"WEBP": "WebP", b"WAVE": "audio/wav"}.get(head[8:12], "RIFF")
    return "video/mp4" if head[4:8] == b"ftyp" else ""


def _picture_of(data: bytes, kind: str) -> Part:
    try:
        pixels: Any = Chain([DecodeImage(layout="HWC", max_pixels=_MOST_PIXELS, depth=8, exif_orientation=False)])(data)
    except Error as error:
        return Words("", f"a {kind} that cannot be decoded: {error}")
    return picture_of(pixels, f"{kind}, {pixels.shape[1]} × {pixels.shape[0]}")


def _mask_of(data: bytes) -> Part | None:
    try:
        labels: Any = Chain([DecodeMask(max_pixels=_MOST_PIXELS)])(data)
    except Error:
        return None  # It may be a picture in colour.
    return mask_of(labels)


def picture_of(pixels: np.ndarray, note: str) -> Picture:
    """A thumbnail of (H, W, 3), uint8."""
    return Picture(_pixels.png(_pixels.thumbnail(pixels)), pixels.shape[0], pixels.shape[1], note)


def mask_of(labels: np.ndarray) -> Picture:
    """A mask (H, W) without its picture."""
    there = [int(label) for label in np.unique(labels)]
    height, width = labels.shape
    sides = _pixels.fitted(height, width)
    ground = _pixels.png(np.full(sides, 238, np.uint8))
    return Picture(ground, height, width, f"labels, {width} × {height}", _pixels.mask_png(labels), there)


def _clip_of(kind: str, data: bytes) -> Part:
    tag, note = kind.split("/")[0], f"{kind.split('/')[1].upper()}, {_size(len(data))}"
    if kind == "audio/wav":
        try:
            data, note = _first_seconds(data)
        except (wave.Error, EOFError, ZeroDivisionError, OverflowError, TypeError, struct.error):
            pass  # A WAV of another kind of samples, which a browser may play.
    if len(data) > _MOST_CLIP_BYTES:
        return Words("", f"{note}: too long to be put into a page")
    return Clip(tag, kind, data, note)


def _first_seconds(data: bytes) -> tuple[bytes, str]:
    with wave.open(io.BytesIO(data)) as file:
        rate, seconds = file.getframerate(), file.getnframes() / file.getframerate()
        note = f"{seconds:.2f} s, {rate:,} Hz, {file.getnchannels()} channel{'s' * (file.getnchannels() > 1)}"
        if len(data) <= _MOST_CLIP_BYTES and seconds <= _CLIP_SECONDS:
            return data, note
        out = io.BytesIO()
        with wave.open(out, "wb") as cut:
            cut.setparams(file.getparams())
            cut.writeframes(file.readframes(_CLIP_SECONDS * rate))
        return out.getvalue(), f"{note}; the first {_CLIP_SECONDS} s"


def _array_file(data: bytes) -> Part:
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # NumPy raises other kinds for other damage.
        return Words("", f"a .npy that cannot be read: {error}")
    return of_array(array)


def _text_of(data: bytes, decode: Decode) -> Part:
    if not data:
        return Words("", "empty")
    if decode is not None:
        return _decoded(decode, data)
    try:
        text = data[: 4 * _MOST_LETTERS].decode("utf-8", "strict" if len(data) <= 4 * _MOST_LETTERS else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    if any(ord(letter) < 32 and letter not in "\t\n\r" for letter in text):
        rows = [data[at : at + 16].hex(" ") for at in range(0, min(len(data), 64), 16)]
        return Words("\n".join(rows), f"{_size(len(data))} that are no text", is_code=True)
    return of_text(text, len(data), whole=data)


def of_text(text: str, size: int | None = None, whole: bytes | str = b"") -> Words:
    """A text, cut where it is long; JSON is laid out."""
    note, is_code = "", False
    if (whole or text).lstrip()[:1] in (b"{", b"[", "{", "["):
        try:
            laid_out = json.dumps(json.loads(whole or text), indent=1, ensure_ascii=False)
            text, is_code = _INNER_LIST.sub(lambda found: re.sub(r"\n *", " ", found[0]), laid_out), True
        except (ValueError, RecursionError, MemoryError):
            pass  # It only looks like JSON.
    if len(text) > _MOST_LETTERS:
        text, note = text[:_MOST_LETTERS] + " …", _size(len(text) if size is None else size) + ", cut"
    return Words(text, note, is_code)


def _decoded(decode: Callable[[Any], str], value: Any) -> Words:
    try:
        return of_text(str(decode(value)))
    except Exception as error:
        return Words("", f"decode= raised {type(error).__name__}: {error}")


def of_array(array: np.ndarray, decode: Decode = None) -> Part:
    """Numbers: a picture, a line, or themselves."""
    array = np.asarray(array)
    kind = f"{array.dtype.name} ({', '.join(map(str, array.shape))})"
    if array.size == 0 or array.dtype.kind not in "biufc":
        return Words("", kind)
    if array.ndim == 0:
        return Words(str(array[()]))
    if array.ndim == 1:
        return _of_row(array, kind, decode)
    pixels, note = _laid_out(array)
    if min(pixels.shape[:2]) < 4:
        with np.printoptions(threshold=_MOST_NUMBERS, precision=4, linewidth=60):
            return Words(str(array), kind, is_code=True)
    return picture_of(pixels, kind + (f"; {note}" if note else ""))


def _of_row(array: np.ndarray, kind: str, decode: Decode) -> Part:
    if decode is not None and array.dtype.kind in "iu":
        shown = _decoded(decode, array)
        shown.note = "; ".join(filter(None, (kind, shown.note)))
        return shown
    if array.dtype.kind in "fc" and array.size > _MOST_NUMBERS // 3:
        numbers = np.nan_to_num(np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64))
        at = np.linspace(0, len(numbers) - 1, min(len(numbers), _MOST_POINTS)).astype(int)
        low, high = float(numbers.min()), float(numbers.max())
        return Plot(numbers[at].tolist(), f"{kind}; from {low:.4g} to {high:.4g}")
    is_whole = array.dtype.kind not in "fc"
    numbers = [str(number) if is_whole else f"{number:.4g}" for number in array[:_MOST_NUMBERS].tolist()]
    return Words(" ".join(numbers) + (" …" if len(array) > _MOST_NUMBERS else ""), kind, is_code=True)


def _laid_out(array: np.ndarray) -> tuple[np.ndarray, str]:
    """Two or more dimensions as (H, W, 3), uint8."""
    note = ""
    while array.ndim > 3:
        array, note = array[0], "the first of each outer dimension"
    if array.ndim == 3 and array.shape[2] not in (1, 3, 4):
        if array.shape[0] in (1, 3, 4):
            array = array.transpose(1, 2, 0)
        else:
            array, note = array[len(array) // 2], f"slice {len(array) // 2} of {len(array)}"
    levels, how = bytes_of(array)
    return levels, "; ".join(filter(None, (note, how)))


def bytes_of(array: np.ndarray) -> tuple[np.ndarray, str]:
    """(H, W) or (H, W, C) as (H, W, 3), uint8, and how levels were stretched."""
    levels, how = _pixels.bytes_of_levels(array)
    levels = levels[..., None] if levels.ndim == 2 else levels
    return np.repeat(levels, 3, axis=2) if levels.shape[2] == 1 else levels[..., :3], how


def of_values(
    values: Mapping[str, Any], roles: Roles, decode: Decode = None
) -> tuple[list[tuple[str, Part]], set[str]]:
    """The parts of a sample that ops made, by field; and the fields that are drawn on a picture."""
    parts: list[tuple[str, Part]] = []
    drawn: set[str] = set()
    masks = [name for name in roles.masks if name in values]
    images = [name for name in roles.images if name in values]
    for name in images:
        pictures = _pictures_of(np.asarray(values[name]), roles, roles.images[name])
        if name == images[0]:
            drawn |= _draw(pictures[0], values, roles)
        parts += [(name, picture) for picture in pictures]
    for name in masks:
        if name not in drawn:
            parts.append((name, mask_of(np.asarray(values[name]))))
    done = {*images, *masks, *drawn}
    for name, value in values.items():
        if name not in done:
            parts.append((name, of_value(name, value, decode)))
    return _laid_over(parts), drawn


def _laid_over(parts: list[tuple[str, Part]]) -> list[tuple[str, Part]]:
    """A stored mask is drawn over the first picture that is as large."""
    for name, mask in parts:
        if name not in _MASK_NAMES or not isinstance(mask, Picture) or not mask.mask:
            continue
        for _, picture in parts:
            if not isinstance(picture, Picture) or picture.mask:
                continue
            if (picture.height, picture.width) == (mask.height, mask.width):
                picture.mask, picture.labels = mask.mask, mask.labels
                return [(other, part) for other, part in parts if part is not mask]
    return parts


def _pictures_of(array: np.ndarray, roles: Roles, layout: str) -> list[Picture]:
    """One picture; of FiveCrop and such, several."""
    if array.ndim == 4:
        return [one for crop in array[:_MOST_ARRAYS_SHOWN] for one in _pictures_of(crop, roles, layout)]
    if array.ndim == 2:
        array = array[None]
    elif layout == "HWC":
        array = array.transpose(2, 0, 1)
    kind = f"{array.dtype.name}, {array.shape[2]} × {array.shape[1]}"
    if roles.scale is not None and array.dtype.kind in "fV":
        array, kind = _pixels.undone(array, *roles.scale), f"{kind}, shown as before Normalize"
    pixels, how = bytes_of(np.ascontiguousarray(array.transpose(1, 2, 0)))
    return [picture_of(pixels, kind + (f"; {how}" if how else ""))]


def _draw(picture: Picture, values: Mapping[str, Any], roles: Roles) -> set[str]:
    """Draws mask, boxes and points over their picture; returns the fields that it drew."""
    drawn = set()
    for name in roles.masks:
        labels = np.asarray(values.get(name, ()))
        if labels.shape == (picture.height, picture.width) and not picture.mask:
            picture.mask, picture.labels = _pixels.mask_png(labels), [int(label) for label in np.unique(labels)]
            drawn.add(name)
    for name, labels_name in roles.boxes.items():
        boxes = np.asarray(values.get(name, ()), np.float64)
        if boxes.ndim == 2 and boxes.shape[1] == 4:
            told = values.get(labels_name)
            named = [None] * len(boxes) if told is None else np.asarray(told).tolist()
            picture.boxes = [*picture.boxes, *zip(boxes[:_MOST_BOXES].tolist(), named)]
            drawn |= {name, labels_name} & set(values)
    for name in roles.points:
        points = np.asarray(values.get(name, ()), np.float64)
        if points.ndim == 2 and points.shape[1] in (2, 3):
            picture.points = [*picture.points, *points[:_MOST_BOXES].tolist()]
            drawn.add(name)
    return drawn


def of_value(name: str, value: Any, decode: Decode = None) -> Part:
    """A value of any kind."""
    if value is None:
        return Words("", "this sample lacks it")
    if isinstance(value, str):
        return of_text(value)
    if isinstance(value, bytes):
        return of_bytes(name, value, decode)
    if isinstance(value, (int, float, np.generic)):
        return Words(str(value))
    return of_array(value, decode)


def _size(count: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} byte{'s' * (count != 1)}"
