"""Arrays where they lie: HDF5 and NetCDF4, Zarr, ``.npy`` and ``.npz``. Samples are indices of the first
dimension, or windows.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

import numpy as np

from leat import _native
from leat._formats._array import _hdf5, _npy, _plan, _zarr
from leat._formats._array._chunks import Window, sample_shape
from leat._formats._array._plan import Counts
from leat._formats._array._stored import Object, Stored, digest_of, objects_of
from leat._formats._table import _manifest
from leat.errors import Cancelled, InvalidArgument, NotFound

_log = logging.getLogger("leat")

VERSION = 2
"""Counts up when kept catalogues are to be made anew."""
_ENDINGS = {
    "h5": "hdf5", "hdf5": "hdf5", "hdf": "hdf5", "he5": "hdf5", "nc": "hdf5", "nc4": "hdf5", "npy": "npy", "npz": "npz",
}  # fmt: skip
FORMATS = ("hdf5", "npy", "npz", "zarr")
_READERS = {"hdf5": _hdf5.arrays_of, "npy": _npy.npy, "npz": _npy.npz}
_MOST_THREADS = 8

Columns = list[tuple[str, str, Any, Any, Any, Any]]


@dataclass(frozen=True)
class Choice:
    """Says which samples are read of the files."""

    variables: Union[dict[str, str], None]
    """From a field to an array; None: the only one that there is."""
    shape: Union[tuple[int, ...], None]
    stride: Union[tuple[int, ...], None]
    gap_bytes: int

    def names(self) -> Union[list[str], None]:
        return None if self.variables is None else list(self.variables.values())

    def said(self) -> list[Any]:
        return [self.variables, self.shape, self.stride, self.gap_bytes]


def choice_of(variables: Any, shape: Any, stride: Any, gap_bytes: Any) -> Choice:
    """Raises `leat.InvalidArgument` if they are of other types."""
    named: Union[dict[str, str], None] = None
    if variables is not None:
        if isinstance(variables, str):
            raise InvalidArgument(f"variables={variables!r}; it is a list of arrays: [{variables!r}]")
        named = (
            dict(variables)
            if hasattr(variables, "items")
            else {str(name).strip("/"): str(name) for name in variables}
        )
        named = {field: name.strip("/") for field, name in named.items()}
        if not named or "" in named:
            raise InvalidArgument(
                f"variables={variables!r}; it names arrays, or is a dict from the names of fields to them"
            )
    for label, value in (("shape", shape), ("stride", stride)):
        if value is not None and not (isinstance(value, (list, tuple)) and all(type(side) is int for side in value)):
            raise InvalidArgument(f"{label}={value!r}; it is whole numbers, one for each of the first dimensions")
    if type(gap_bytes) is not int or gap_bytes < 0:
        raise InvalidArgument(f"gap_bytes={gap_bytes!r}; it is a whole number from 0")
    return Choice(
        named, None if shape is None else tuple(shape), None if stride is None else tuple(stride), gap_bytes
    )


class Place(NamedTuple):
    """The objects that a dataset is made of."""

    url: str
    places: list[str]
    digest: str
    format: str
    objects: list[Object]


def place_of(sources: list[str], store: Any, format: Union[str, None], refresh: str) -> Place:
    """Lists them.

    Raises:
        leat.InvalidArgument: nobody knows the format, or they are several Zarr stores.
        leat.NotFound: nothing is there.
    """
    if format is not None and format not in FORMATS:
        raise InvalidArgument(f"format={format!r}; it is one of {', '.join(FORMATS)}")
    if format == "zarr" or (format is None and any(_is_zarr(source, store) for source in sources)):
        if len(sources) > 1 or _manifest.is_pattern(sources[0]):
            raise InvalidArgument(
                f"{sources} are several Zarr stores: open each, and join them with leat.Dataset.concat"
            )
        return _zarr_place(sources[0], store)
    native = _native.Dataset(sources, store, refresh, None, ([], [], ["*"]))
    first = native.key(0)
    kind = format or _ENDINGS.get(first.rpartition(".")[2].lower())
    if kind is None:
        raise InvalidArgument(
            f"{native.url}: {first!r} has no ending of arrays, {', '.join(_ENDINGS)}, and no Zarr store is there; "
            "give format="
        )
    objects = objects_of(native)
    return Place(native.url, native.places, digest_of(objects), kind, objects)


def _is_zarr(source: str, store: Any) -> bool:
    path = source.rstrip("/")
    if path.endswith(".zarr") or ".zarr/" in path:
        return True
    if path.rpartition(".")[2].lower() in _ENDINGS or _manifest.is_pattern(source):
        return False
    for name in _zarr.METADATA:
        try:
            _native.read_url(f"{path}/{name}", store, _zarr.MOST_METADATA_BYTES)
        except NotFound:
            continue
        return True
    return False


def _zarr_place(source: str, store: Any) -> Place:
    url = source.rstrip("/") or source
    found = _native.list_url(url, store)
    if not found:
        raise NotFound(f"{url}: there are no objects")
    files = _native.Dataset.from_rows(
        places=[url],
        store=store,
        rows=len(found),
        names=[key for key, _, _ in found],
        columns=[("data", "bytes", [key for key, _, _ in found], [size for _, size, _ in found], None, None)],
        classes=[],
        description=f"objects of {url}",
        refresh="always",
    )
    reader = _native.SampleReader(files)
    objects = [
        Object(key, size, etag, functools.partial(reader.read_part, 0, number))
        for number, (key, size, etag) in enumerate(found)
    ]
    told = hashlib.blake2b(repr(found).encode(), digest_size=16).hexdigest()
    return Place(files.url, [url], told, "zarr", objects)


class Files:
    """The files of a dataset, and the arrays in them.

    Raises:
        leat.Corrupt, leat.InvalidArgument: as the readers do, of the first file.
    """

    def __init__(self, place: Place, choice: Choice) -> None:
        self._place = place
        self._choice = choice
        self._first = self._arrays(0)
        self.fields = list(choice.variables or {"data": ""})
        if choice.variables is None and place.format != "npy":
            name = self._first[0].name.rpartition(":")[2]
            self.fields = [name or "data"]

    @property
    def files(self) -> int:
        return 1 if self._place.format == "zarr" else len(self._place.objects)

    def dtypes(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """The type and shape of a sample's values, of fields that are bytes."""
        window = self._window(self._first)
        return {
            field: (each.dtype.newbyteorder("<"), sample_shape(window, each.shape))
            for field, each in zip(self.fields, self._first)
            if not self._is_scalar(each)
        }

    def rows(self, is_stopped: Callable[[], bool]) -> tuple[int, list[str], Columns, list[str]]:
        """As `_native.Dataset.from_rows_made` takes them."""
        counts = Counts()
        with ThreadPoolExecutor(_MOST_THREADS, "leat-array") as pool:

            def one(number: int) -> list[Stored]:
                if is_stopped():
                    raise Cancelled("reading the index of arrays was stopped")
                return self._arrays(number)

            opened = [self._first, *pool.map(one, range(1, self.files))]
        names: list[str] = []
        keys: list[str] = []
        sizes: list[int] = []
        of_row: list[np.ndarray] = []
        offsets: list[list[np.ndarray]] = []
        lengths: list[int] = []
        scalars: list[list[np.ndarray]] = [[] for _ in self.fields]
        for arrays in opened:
            self._check_same(arrays)
        # Ranges of a file beside objects that are made would be read without its ETag.
        are_plain = all(_plan.is_plain(self._whole(arrays), self._window(arrays)) for arrays in opened)
        for number, arrays in enumerate(opened):
            if is_stopped():
                raise Cancelled("planning the reads of arrays was stopped")
            window = self._window(arrays)
            if not window.samples:
                continue
            whole = self._whole(arrays)
            if are_plain:
                rows = _plan.plain_rows(whole[0], window)
            else:
                rows = _plan.derived_rows(whole, window, self._choice.gap_bytes, counts)
            of_row += [len(keys) + each for each in rows.of_row]
            keys += rows.keys
            sizes += rows.sizes
            offsets += rows.offsets
            lengths = rows.lengths
            for values, each in zip(scalars, arrays):
                if self._is_scalar(each):
                    values.append(_plan.read_all(each))
            names += [f"{self._name(number)}:{row}" for row in range(window.samples)]
        if not names:
            raise InvalidArgument(f"{self._place.url}: no sample is there: no window fits in the arrays")
        if counts.runs:
            _log.info("%s: %s", self._place.url, counts.text())
        columns: Columns = []
        # A tuple has the texts, and of which of them each row has the number.
        numbers = np.concatenate(of_row)
        # The store is asked for the size and the ETag of an object unless both are told; the names of those that are
        # made tell both.
        own_sizes = np.array(sizes, np.uint64)[numbers] if counts.runs else None
        place = 0
        for field, each, values in zip(self.fields, self._first, scalars):
            if self._is_scalar(each):
                columns.append((field, *_scalars(np.concatenate(values), each.name), None, None, None))
                continue
            begins = np.concatenate([run[place] for run in offsets]).astype(np.uint64)
            width = np.full(len(begins), lengths[place], np.uint64)
            columns.append((field, "bytes", (keys, numbers.astype(np.uint32)), own_sizes, begins, width))
            place += 1
        return len(names), names, columns, []

    def _arrays(self, number: int) -> list[Stored]:
        names = self._choice.names()
        if self._place.format == "zarr":
            found = _zarr.arrays_of(self._place.objects, names)
        else:
            found = _READERS[self._place.format](self._place.objects[number], names)
        for each in found:
            each.check()
        return found

    def _whole(self, arrays: Sequence[Stored]) -> list[Stored]:
        """Those whose values are no numbers of the catalogue."""
        return [each for each in arrays if not self._is_scalar(each)]

    def _name(self, number: int) -> str:
        if self._place.format == "zarr":
            return self._place.url.rstrip("/").rpartition("/")[2]
        return self._place.objects[number].key

    def _window(self, arrays: Sequence[Stored]) -> Window:
        window = _plan.windows_of(self._choice.shape, self._choice.stride, arrays)
        if all(self._is_scalar(each) for each in arrays):
            raise InvalidArgument(
                f"{arrays[0].name} is numbers of one dimension, so that a sample would be one number; give shape=, "
                "such as shape=(4096,), for windows of it, or name an array of more dimensions too"
            )
        for each in arrays:
            if each.values is not None and not self._is_scalar(each):
                raise InvalidArgument(
                    f"{each.name} is stored in the header of its file (compact); write it with chunks=, or not compact"
                )
        return window

    def _is_scalar(self, array: Stored) -> bool:
        """Whether a sample's value is one number, kept in the catalogue."""
        return self._choice.shape is None and len(array.shape) == 1 and array.dtype.kind != "c"

    def _check_same(self, arrays: Sequence[Stored]) -> None:
        lead = 1 if self._choice.shape is None else len(self._choice.shape)
        for one, first in zip(arrays, self._first):
            theirs, ours = (one.dtype.newbyteorder("<"), one.shape[lead:]), (
                first.dtype.newbyteorder("<"),
                first.shape[lead:],
            )
            if theirs != ours or len(one.shape) != len(first.shape):
                raise InvalidArgument(
                    f"{one.name} is {one.dtype} of {one.shape}, and {first.name} is {first.dtype} of {first.shape}"
                )


def _scalars(values: np.ndarray, name: str) -> tuple[str, Any]:
    if values.dtype.kind == "f":
        return "float64", values.astype(np.float64).tolist()
    if values.dtype == np.uint64 and len(values) and int(values.max()) >= 1 << 63:
        raise InvalidArgument(
            f"{name} has numbers from 2**63 on, and the catalogue keeps int64; give shape=(1,), for windows"
        )
    return "int64", values.astype(np.int64).tolist()
