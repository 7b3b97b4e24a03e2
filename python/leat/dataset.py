"""What a dataset consists of."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from leat import _manifest, _native
from leat._credentials import helper_command
from leat.errors import InvalidArgument
from leat.ops._op import dtype_name

_MOST_MANIFEST_BYTES = 16 << 30


class Dataset:
    """The samples at a URL: a table of named fields.

    The catalogue is looked for beside the data, then in the user's cache folder;
    else the store is listed once and the catalogue is kept there.

    Args:
        url: ``s3://bucket/prefix``, ``http(s)://…``, ``file:///…`` or a path.
        refresh: ``"auto"`` (default) takes a catalogue that is kept if a cheap look
            at the store agrees with it (docs/howto/data-that-changes.md says what
            that cannot see), and else lists again and says what has changed.
            ``"never"`` takes it as it stands, ``"always"`` lists again,
            ``"if-older-than:1d"`` if it is older (units s, m, h, d).
        inventory: the ``manifest.json`` of an S3 Inventory (CSV), a URL or a path. If
            a catalogue has to be made, it tells what is there, and nothing is listed.
        endpoint_url, region, profile, no_sign_request: as the AWS command line
            spells them; the environment and the profile decide where not given.
            A profile that needs SSO or MFA goes through botocore, if installed.
        requester_pays: you pay for requests and bytes, where a bucket wants that.

    Raises:
        leat.NotFound: no such bucket or folder, or nothing is in it.
        leat.PermissionDenied: credentials are missing or refused.
        leat.Corrupt: a shard or a catalogue is damaged.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        refresh: str = "auto",
        inventory: str | os.PathLike[str] | None = None,
        endpoint_url: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        no_sign_request: bool = False,
        requester_pays: bool = False,
    ) -> None:
        store = store_options(
            endpoint_url=endpoint_url,
            region=region,
            profile=profile,
            no_sign_request=no_sign_request,
            requester_pays=requester_pays,
        )
        told = None if inventory is None else os.fspath(inventory)
        self._set(_native.Dataset(os.fspath(url), store, refresh, told))

    def _set(self, native: Any, dtypes: Mapping[str, np.dtype] = MappingProxyType({})) -> None:
        self._native = native
        self._dtypes = dtypes
        """Of fields whose bytes are numbers: each sample is a row of as many."""
        self._reader: Any = None

    @classmethod
    def _of(cls, native: Any, dtypes: Mapping[str, np.dtype] = MappingProxyType({})) -> Dataset:
        dataset = cls.__new__(cls)
        dataset._set(native, dtypes)
        return dataset

    @classmethod
    def from_manifest(
        cls,
        url: str | os.PathLike[str],
        *,
        fields: Mapping[str, str],
        columns: Mapping[str, str] | Iterable[str] = (),
        base: str | os.PathLike[str] | None = None,
        classes: Sequence[str] | None = None,
        sizes: Mapping[str, str] | None = None,
        format: Literal["csv", "tsv", "jsonl", "parquet"] | None = None,
        refresh: str = "auto",
        **store: Any,
    ) -> Dataset:
        """The rows of a table: CSV with a first line of names, JSON lines, Parquet.

            leat.Dataset.from_manifest("s3://bucket/labels.csv",
                                       fields={"image": "path", "label": "class_id"})

        Samples are numbered as the rows. Nothing is listed: each object is asked for
        its size once, unless `sizes` knows it, and the answers are kept in the
        user's cache folder.

        Args:
            url: the manifest; Parquet needs pyarrow.
            fields: from the name of a field to a column. A column of texts holds
                paths of objects, whose bytes are the field (empty: the sample lacks
                it); one of numbers is the field itself. Texts of a field called
                ``label`` are names of classes, and it is their number.
            columns: further columns that are fields as they stand: numbers as int64
                or float64, texts as str.
            base: what paths are relative to; None for the manifest's own folder.
                Paths may be whole URLs below it.
            classes: the names that labels count through; None for the sorted ones.
            sizes: from a field of paths to the column of its objects' bytes: then
                the store is asked nothing, and a changed object goes unnoticed
                unless its size shows it.
            format: what the manifest is, where its name does not tell.
            refresh, **store: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: a column that is not there, a value that is missing
                or does not fit; names the row.
            leat.NotFound: no manifest, or an object that it names; names the row.
            leat.Corrupt: the manifest cannot be read; names the line.
        """
        options = store_options(**store)
        name = os.fspath(url)
        data = _read(name, options)
        table = _manifest.read_table(data, format or _manifest.format_of(name), name)
        place = os.fspath(base) if base is not None else os.path.dirname(name) or "."
        made, names = _manifest.columns_of(
            table,
            fields=dict(fields),
            columns=columns if isinstance(columns, Mapping) else list(columns),
            sizes=dict(sizes or {}),
            classes=classes,
            base=place,
            name=name,
        )
        said = [dict(fields), columns if isinstance(columns, Mapping) else list(columns),
                dict(sizes or {}), names]  # fmt: skip
        description = hashlib.blake2b(json.dumps(said).encode() + data).hexdigest()
        return cls._of(
            _native.Dataset.from_rows(
                base_url=place,
                store=options,
                rows=len(made[0].values),
                columns=[(c.name, c.kind, c.values, c.sizes) for c in made],
                classes=names,
                description=description,
                refresh=refresh,
            )
        )

    @classmethod
    def tokens(
        cls,
        url: str | os.PathLike[str],
        *,
        dtype: Any,
        seq_len: int,
        refresh: str = "auto",
        **store: Any,
    ) -> Dataset:
        """Windows of tokens out of ``.bin`` and ``.npy`` files: one field, ``tokens``.

            leat.Dataset.tokens("s3://bucket/corpus", dtype="uint16", seq_len=2049)

        A sample is ``seq_len`` tokens, an array of shape ``(seq_len,)`` and of
        `dtype`; a batch is ``(samples, seq_len)``. Windows neither overlap nor reach
        from one file into the next, and what is left at the end of a file is left
        out: every byte is in one window, and so read once an epoch. To predict each
        next token, ask for one more than the context and shift::

            inputs, targets = tokens[:, :-1], tokens[:, 1:]

        Shuffled in blocks, as shards are.

        Args:
            url: a folder of files, or one file.
            dtype: of the tokens, little-endian; what a ``.npy`` says has to agree.
            seq_len: tokens a window.
            refresh, **store: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: a file that holds something else.
            leat.NotFound: no such file, or none that holds a window.
        """
        kind = np.dtype(dtype_name(dtype)).newbyteorder("<")
        native = _native.Dataset.tokens(
            os.fspath(url),
            store_options(**store),
            kind.name,
            _whole("seq_len", seq_len),
            refresh,
        )
        return cls._of(native, {"tokens": kind})

    @classmethod
    def concat(cls, datasets: Sequence[Dataset]) -> Dataset:
        """The samples of all of them, one dataset after the other.

        They may lie in different places. Shuffled in blocks if all are shards, else in
        full.

        Raises:
            leat.InvalidArgument: fields or classes differ.
        """
        joined = _native.Dataset.join([each._native for each in datasets])
        dtypes = datasets[0]._dtypes
        if any(each._dtypes != dtypes for each in datasets):
            raise InvalidArgument("concat: tokens of different dtypes")
        return cls._of(joined, dtypes)

    @property
    def url(self) -> str:
        """Where it is; never holds credentials."""
        return self._native.url

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a sample and their kinds: bytes, int64, float64, string."""
        return self._native.fields

    @property
    def classes(self) -> list[str]:
        """The names that ``label`` counts through; empty if there are none."""
        return self._native.classes

    @property
    def nbytes(self) -> int:
        """The bytes of all byte fields of all samples."""
        return self._native.bytes

    @property
    def listed_at(self) -> float | None:
        """When what is there was listed, in seconds since 1970; None if nobody knows.

        Of several datasets that were joined, the one that was listed first.
        """
        listed_at = self._native.listed_at
        return None if listed_at is None else float(listed_at)

    @property
    def catalogue_age(self) -> float | None:
        """Seconds since it was listed, at least 0; None if nobody knows."""
        listed_at = self.listed_at
        return None if listed_at is None else max(0.0, time.time() - listed_at)

    @property
    def digest(self) -> str:
        """Says which data this is, wherever it is stored."""
        return self._native.digest

    def key(self, sample: int) -> str:
        """The name of a sample."""
        return self._native.key(sample)

    def column(self, name: str) -> np.ndarray | list[str]:
        """The values of a field for all samples, without reading objects.

        Numbers as an array of shape ``(samples,)``, texts as a list. Of a field of
        bytes: their lengths, int64, -1 where a sample lacks it.
        """
        try:
            return self._native.column(name)
        except KeyError:
            raise _no_field(name, self.fields) from None

    def take(self, count: int) -> Dataset:
        """The first ``count`` samples, or all if there are fewer."""
        return self[: _whole("count", count)]

    def skip(self, count: int) -> Dataset:
        """All but the first ``count`` samples."""
        return self[_whole("count", count) :]

    def select(self, samples: Sequence[int] | np.ndarray) -> Dataset:
        """These samples, by number, in this order; one may come twice."""
        chosen = np.asarray(samples)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise InvalidArgument("samples= is a list of sample numbers")
        return self._of(self._native.select(chosen.astype(np.int64)), self._dtypes)

    def filter(self, keep: Callable[[Mapping[str, Any]], Any]) -> Dataset:
        """The samples that ``keep`` is true for.

        It gets the columns (see `column`; texts as an array of objects) and gives
        back one bool for each sample::

            dataset.filter(lambda of: (of["label"] < 10) & (of["width"] >= 224))
        """
        mask = np.asarray(keep(_Columns(self)))
        if mask.dtype != bool or mask.shape != (len(self),):
            raise InvalidArgument(
                f"filter: keep gave {mask.dtype} of shape {mask.shape}; it is to give "
                f"a bool for each of the {len(self)} samples"
            )
        return self.select(np.flatnonzero(mask))

    def split(self, *fractions: float, seed: int = 0, by: str | None = None) -> tuple[Dataset, ...]:
        """Parts of about these sizes, such as ``0.9, 0.1``: a tuple of datasets.

        Which part a sample belongs to depends on its key and ``seed`` alone (a
        hash), so it stays there when others come or go. ``by`` names a column that
        is hashed instead: all samples of a patient stay together.
        """
        if not fractions or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-9:
            raise InvalidArgument(
                f"split{fractions}: fractions are above 0 and add up to 1"
            )
        ends = [*np.cumsum(fractions)[:-1].tolist(), 1.0]
        try:
            shares = self._native.shares(_whole("seed", seed), ends, by)
        except KeyError:
            raise _no_field(by, self.fields, "to hash; it is a column") from None
        parts = [np.flatnonzero(shares == part) for part in range(len(ends))]
        for part, chosen in enumerate(parts):
            if not len(chosen):
                raise InvalidArgument(
                    f"split: part {part}, of {fractions[part]}, got no sample of {len(self)}"
                )
        return tuple(map(self.select, parts))

    def __getitem__(self, sample: int | slice) -> Any:
        """A sample as a dict of its fields, bytes as they are stored; or, of a slice,
        a dataset. A field of bytes that the sample lacks is None."""
        if isinstance(sample, slice):
            return self.select(np.arange(*sample.indices(len(self))))
        number = sample.__index__()
        if number < 0:
            number += len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"sample {sample} of {len(self)}")
        return self._sample(number)

    def _sample(self, number: int) -> dict[str, Any]:
        if self._reader is None:
            self._reader = _native.SampleReader(self._native)
        values = dict(self._native.scalars(number))
        for index, (name, kind) in enumerate(self.fields.items()):
            if kind != "bytes":
                continue
            has_it = self._native.has_bytes(index, number)
            values[name] = self._reader.read(index, number) if has_it else None
            if name in self._dtypes:
                values[name] = np.frombuffer(values[name], self._dtypes[name])
        return {name: values[name] for name in self.fields}

    def __iter__(self) -> Any:
        return (self[number] for number in range(len(self)))

    def __len__(self) -> int:
        return self._native.samples

    def __reduce__(self) -> Any:
        raise TypeError(
            "a leat.Dataset holds a mapped catalogue and cannot be pickled; make it in "
            "each process, which takes a moment once the catalogue is kept"
        )

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {kind}" for name, kind in self.fields.items())
        return f"leat.Dataset({self.url!r}, {len(self)} samples, {fields})"


class _Columns(Mapping[str, Any]):
    """The columns of a dataset, made when asked for."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __getitem__(self, name: str) -> Any:
        values = self._dataset.column(name)
        return np.array(values, dtype=object) if isinstance(values, list) else values

    def __iter__(self) -> Any:
        return iter(self._dataset.fields)

    def __len__(self) -> int:
        return len(self._dataset.fields)


def _no_field(name: Any, fields: Mapping[str, str], what: str = "") -> InvalidArgument:
    known = ", ".join(f"{field} ({kind})" for field, kind in fields.items())
    return InvalidArgument(f"no field {name!r} {what}; there are {known}")


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
        raise InvalidArgument(f"{name}={value!r}; it is a whole number from 0")
    return value.__index__()


def store_options(
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    no_sign_request: bool = False,
    requester_pays: bool = False,
) -> Any:
    return _native.StoreOptions(
        endpoint_url=endpoint_url,
        region=region,
        profile=profile,
        no_sign_request=no_sign_request,
        requester_pays=requester_pays,
        credential_helper=helper_command(),
    )


def _read(url: str, store: Any) -> bytes:
    """A whole object; of a path as of a URL."""
    return _native.read_url(url, store, _MOST_MANIFEST_BYTES)
