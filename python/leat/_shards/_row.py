"""Fields that are packed, and samples of them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from leat._batches._ragged import Ragged
from leat._dataset import Dataset
from leat._pool import threads

Row = Mapping[str, Any]
"""By field: bytes, an int, a float, a str, an array, or None."""
_BATCH_BYTES = 8 << 20
_MOST_BATCH = 1024
_READERS = 16


class Field(NamedTuple):
    """A field of the source."""

    name: str
    kind: str
    """bytes, int64, float64, string; or rows: numbers of one type."""
    ending: str
    """The ending of a file that holds it."""
    dtype: Any = None
    is_ragged: bool = False
    shape: Any = None
    has_all: bool = True
    """Whether every sample has it."""
    content: str = ""
    """The usual ending of a file such as its first value."""


def kind_of(data: bytes) -> str:
    """The usual ending of a file that begins so; "bin" for any other."""
    for begin, ending in ((b"\xff\xd8\xff", "jpg"), (b"\x89PNG", "png"), (b"II*\0", "tif"), (b"MM\0*", "tif"),
                          (b"\x93NUMPY", "npy"), (b"fLaC", "flac")):  # fmt: skip
        if data.startswith(begin):
            return ending
    return {b"WEBP": "webp", b"WAVE": "wav"}.get(data[8:12], "bin") if data[:4] == b"RIFF" else "bin"


def bytes_of(value: Any) -> bytes:
    """A value as the content of a file: numbers in decimal, arrays as .npy."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, np.ndarray) and value.ndim:
        out = io.BytesIO()
        np.save(out, value, allow_pickle=False)
        return out.getvalue()
    return (repr(float(value)) if isinstance(value, (float, np.floating)) else str(int(value))).encode()


def rows_of(dataset: Dataset, fields: Sequence[Field]) -> Iterator[dict[str, Any]]:
    """The samples in their order; few of them are held at a time."""
    if not all(field.has_all for field in fields):
        yield from _one_by_one(dataset, fields)
        return
    from leat._loader import Loader

    mean = max(1, dataset.nbytes // max(1, len(dataset)))
    names = [field.name for field in fields]
    size = max(1, min(_MOST_BATCH, _BATCH_BYTES // mean, len(dataset)))
    with Loader(
        dataset, batch_size=size, shuffle=False, drop_last=False,
        fields=names, batch="tuple", epochs=1, rank=0, world_size=1, output="numpy",
    ) as loader:  # fmt: skip
        for batch in loader:
            columns = dict(zip(names, batch))
            for row in range(len(batch[0])):
                yield {field.name: _value(columns[field.name], row, field.kind) for field in fields}


def _one_by_one(dataset: Dataset, fields: Sequence[Field]) -> Iterator[dict[str, Any]]:
    """For samples that lack fields, which a batch must have."""
    with threads(_READERS, "leat-pack") as pool:
        for begin in range(0, len(dataset), 4 * _READERS):
            some = range(begin, min(begin + 4 * _READERS, len(dataset)))
            for sample in pool.map(dataset.__getitem__, some):
                yield {field.name: sample[field.name] for field in fields}


def _value(column: Any, row: int, kind: str) -> Any:
    value = column[row]
    if kind == "bytes" and isinstance(column, Ragged):
        return np.asarray(value).tobytes()
    return value
