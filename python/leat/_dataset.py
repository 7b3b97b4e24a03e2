"""Datasets: the samples that a loader delivers."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

import numpy as np

from leat import _as_of, _native, _recipe
from leat._arguments import checks_names
from leat._columns import Columns, bytes_are_no_column, parse_all
from leat._formats import _indexed, _parquet
from leat._formats._array import _dataset as _array, _chunks as _array_chunks
from leat._formats._array._stored import digest_of, objects_of
from leat._formats._audio import _dataset as _audio, _decode as _audio_decode
from leat._formats._litdata import _index as _litdata, _chunks as _litdata_chunks, _packed as _litdata_packed
from leat._formats._mds import _index as _mds, _shards as _mds_shards, _zip as _mds_zip
from leat._formats._megatron import _index as _megatron
from leat._formats._table import _manifest, _columns as _table_columns, _files as _table_files
from leat._formats._video import _dataset as _video, _decode as _video_decode
from leat._measured import measure_all
from leat._recipe import Recipe
from leat._storage import StorageOptions, checked_storage, native_storage
from leat.errors import Corrupt, InvalidArgument, NotFound
from leat.ops._op import dtype_name

if TYPE_CHECKING:
    from leat._orders._chosen import Order

_TABLE_VERSION = 2
"""Changes with what is made of a table."""
_log = logging.getLogger("leat")

Source = Union[str, "os.PathLike[str]"]
"""A URL, a path, or a pattern of them."""


class Rows(NamedTuple):
    """A field's bytes are numbers, as many in each sample unless `is_ragged`."""

    dtype: np.dtype[Any]
    is_ragged: bool
    shape: tuple[int, ...] | None = None
    """A sample's, where it has not just one dimension."""

    def in_words(self) -> str:
        of = "of any length" if self.is_ragged else "" if not self.shape else f"of shape {self.shape}"
        return f"{self.dtype.name} {of}".rstrip()

    def of(self, data: bytes) -> Any:
        """The numbers of a sample: an array, or one number if the shape is ()."""
        numbers = self.numbers_in(np.frombuffer(data, np.uint8))
        return numbers if self.shape is None else numbers.reshape(self.shape)[()]

    def numbers_in(self, values: np.ndarray) -> np.ndarray:
        """Bytes as numbers, over the same memory where any byte is one."""
        return values != 0 if self.dtype == bool else values.view(self.dtype)


def fields_in_words(dataset: Dataset) -> str:
    """Names, kinds and shapes, for messages."""
    return "(" + ", ".join(
        f"{name}: {dataset._dtypes[name].in_words() if name in dataset._dtypes else kind}"
        for name, kind in dataset.fields.items()
    ) + ")"  # fmt: skip


_MOVED = {
    name: f'give storage_options={{"{name}": …}}' for name in StorageOptions.__annotations__
}


@checks_names(_MOVED)
class Dataset:
    """The samples at a URL, or at several: a table of named fields.

    Leat looks for the catalogue beside the data, then in the user's cache folder. If there
    is none, Leat lists the store once and keeps the catalogue in that folder.

    A dataset pickles as the recipe that made it: a process that unpickles it opens it
    again, and raises an error if other data lies there. So it works in worker processes.

    Args:
        url: ``s3://bucket/prefix``, ``http(s)://…``, ``file:///…`` or a path: a folder; one
            object (``….tar``, ``….jpg``); or a pattern of objects, with braces
            (``shard-{0000..0128}.tar``, ``{a,b}``) and wildcards (``*``, ``?``, ``[0-9]``;
            ``**`` is any number of folders). Or a list of these, whose samples come one
            after the other. HTTP cannot list, so braces work there and wildcards raise.
            The samples of Parquet files are their rows, if nothing else is there: see
            `parquet`. A folder of MosaicML Streaming's shards and their ``index.json`` is
            opened as by `mds`, and one of LitData's chunks as by `litdata`. The samples of
            ``.tar`` and ``.tfrecord`` files are what lies in them.
        include, exclude: one or several patterns of objects' names below the folder. Only
            objects that match one of `include` count, and none that match one of `exclude`.
            A pattern without a slash matches in every folder.
        extensions: the extensions that count, such as ``("jpg", "png")``, in any case. By
            default, only images count if at least half of all objects are images; otherwise
            all objects count except documents, such as README.md and labels.csv, if those
            are few. ``"*"``: all. The loader logs once what it leaves out.
        refresh: ``"auto"`` (default) uses a kept catalogue if a cheap look at the store
            agrees with it (docs/howto/data-that-changes.md says what that cannot see);
            otherwise it lists again and logs the changes. ``"never"`` uses the catalogue as
            it stands (but tables, MDS, LitData and Megatron are read again if the table or
            the index has changed), ``"always"`` lists again, ``"if-older-than:1d"`` lists
            again if it is older (units s, m, h, d).
        inventory: the ``manifest.json`` of an S3 Inventory (CSV), a URL or a path. To make
            a catalogue, Leat reads the inventory and lists nothing.
        classes: the names of the folders that are classes, in the order of their labels,
            such as another dataset's: ``classes=train.classes`` gives validation data the
            labels of the training data, even if it lacks a class. By default, labels count
            through the sorted names of this dataset's own folders.
        as_of: a time: the dataset is what the last snapshot of then or before says
            (``leat index --snapshot`` keeps one), such as ``"2026-11-26T02:47:00Z"``, seconds
            since 1970 or a datetime; UTC if it names no zone. Reading an object that has
            changed since raises an error.
        storage_options: how to reach the store: a `leat.StorageOptions`, such as
            ``{"endpoint_url": "http://localhost:9000"}``. The environment and AWS's files
            give the options that it leaves out.

    Raises:
        leat.InvalidArgument: a folder is not in `classes`, and is named; or there are no
            folders that `classes` could name.
        leat.NotFound: no such bucket or folder, or nothing is in it.
        leat.PermissionDenied: credentials are missing or refused.
        leat.Corrupt: a shard or a catalogue is damaged.
    """

    def __init__(
        self,
        url: Source | Sequence[Source],
        *,
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        extensions: str | Sequence[str] = (),
        refresh: str = "auto",
        inventory: str | os.PathLike[str] | None = None,
        classes: Sequence[str] | None = None,
        as_of: _as_of.Time | None = None,
        storage_options: StorageOptions | None = None,
    ) -> None:
        store = checked_storage(storage_options)
        if as_of is not None:
            given = {"include": include, "exclude": exclude, "extensions": extensions, "inventory": inventory,
                     "classes": classes}  # fmt: skip
            self._open_as_of(_as_of.checked_place(url, given, refresh), as_of, store)
            return
        self._open(url, include, exclude, extensions, refresh, inventory, store, classes=_named(classes))

    def _open(
        self,
        url: Source | Sequence[Source],
        include: str | Sequence[str],
        exclude: str | Sequence[str],
        extensions: str | Sequence[str],
        refresh: str,
        inventory: str | os.PathLike[str] | None,
        store: StorageOptions,
        wanted: frozenset[str] | None = None,
        classes: Sequence[str] = (),
    ) -> None:
        """`wanted`: of rows of Parquet files, the columns that somebody asks for, if they are there."""
        told = None if inventory is None else os.fspath(inventory)
        chosen = _chosen(include, exclude, extensions)
        native = _native.Dataset(_sources(url), native_storage(store), refresh, told, chosen, list(classes))
        are_rows = not extensions and _parquet.are_rows(native)
        if classes and (are_rows or native.has_shards):
            raise InvalidArgument(
                f"{native.url}: classes= names folders, and these samples lie in files of many samples"
            )
        if are_rows:
            fields = _parquet.choose(native, wanted=wanted)
            self._set(*_rows_of_parquet(native, url, fields, refresh, chosen, store))
            return
        if not extensions and _indexed.are_shards(native, _mds.FAMILY):
            _check_whole_folder(url, chosen, _mds.FAMILY)
            self._set(*_samples_of_mds(os.fspath(url), None, wanted, refresh, store))  # type: ignore[arg-type]
            return
        if not extensions and _indexed.are_shards(native, _litdata.FAMILY):
            _check_whole_folder(url, chosen, _litdata.FAMILY)
            folder = os.fspath(url)  # type: ignore[arg-type]
            self._set(*_samples_of_litdata(folder, None, None, wanted, refresh, store))
            return
        options = _recipe.options_said(
            inventory=None if told is None else _recipe.place_anywhere(told),
            include=tuple(chosen[0]),
            exclude=tuple(chosen[1]),
            extensions=tuple(chosen[2]),
            classes=tuple(classes),
            storage_options=store or None,
        )
        self._set(native, _made("open", [url], options, native))

    def _open_as_of(self, url: str, as_of: _as_of.Time, store: StorageOptions) -> None:
        options = native_storage(store)
        name = _as_of.snapshot_at(url, as_of, options)
        native = _native.Dataset.as_of(url, name, options)
        families = (_mds.FAMILY, _litdata.FAMILY)
        if _parquet.are_rows(native) or any(_indexed.are_shards(native, family) for family in families):
            raise InvalidArgument(
                f"{url}: as_of= is for folders of objects and for tar and TFRecord shards; the samples of these files are "
                "not in the snapshot's catalogue"
            )
        said = _recipe.options_said(as_of=_as_of.iso(name), storage_options=store or None)
        self._set(native, _made("open", [url], said, native))

    def _set(
        self,
        native: Any,
        recipe: Recipe | None,
        dtypes: Mapping[str, Rows] = MappingProxyType({}),
    ) -> None:
        self._native = native
        self._recipe = recipe
        """None: nobody knows how to make it again."""
        self._dtypes = dtypes
        """The types of fields whose bytes are numbers: each sample is a row of as many."""
        self._readers: dict[int, Any] = {}
        """By process: threads and connections do not survive a fork."""

    @classmethod
    def _of(
        cls,
        native: Any,
        dtypes: Mapping[str, Rows] = MappingProxyType({}),
        recipe: Recipe | None = None,
    ) -> Dataset:
        dataset = cls.__new__(cls)
        dataset._set(native, recipe, dtypes)
        return dataset

    @classmethod
    def _of_source(
        cls,
        url: Source | Sequence[Source],
        wanted: frozenset[str] | None,
        storage_options: StorageOptions | None,
    ) -> Dataset:
        """Opens what a loader reads that wants these fields; None: all."""
        dataset = cls.__new__(cls)
        dataset._open(url, (), (), (), "auto", None, checked_storage(storage_options), wanted)
        return dataset

    @classmethod
    @checks_names(_MOVED)
    def from_manifest(
        cls,
        url: Source | Sequence[Source],
        *,
        fields: Mapping[str, str],
        columns: Mapping[str, str] | Iterable[str] = (),
        base: str | os.PathLike[str] | None = None,
        classes: Sequence[str] | None = None,
        sizes: Mapping[str, str] | None = None,
        ranges: Mapping[str, tuple[str, str]] | None = None,
        format: Literal["csv", "tsv", "jsonl", "parquet"] | None = None,
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """The rows of a table: CSV with a first line of names, JSON lines, Parquet.

            leat.Dataset.from_manifest("s3://bucket/labels.csv",
                                       fields={"image": "path", "label": "class_id"})

        Samples have the numbers of their rows. Leat lists nothing: it requests the size of
        each object once, unless `sizes` has it. The user's cache folder keeps the result, and
        Leat reads the table again only if it has changed.

        Args:
            url: the manifest; Parquet needs pyarrow. A pattern or a list, as for
                `leat.Dataset`, names several manifests with the same columns, one below the
                other.
            fields: from the name of a field to a column. A column of texts holds paths of
                objects, whose bytes are the field (empty: the sample lacks it); one of
                numbers is the field itself. If the texts of a field ``label`` are names of
                classes, the field is their number.
            columns: further columns that become fields unchanged: numbers as int64 or
                float64, texts as str.
            base: the folder for relative paths; None for the manifest's own folder. Whole
                URLs may lead elsewhere, also to several places (``s3://a/…``, ``s3://b/…``,
                ``/data/…``), which Leat reaches with the same options. A manifest from
                elsewhere cannot name files of this machine.
            classes: the names of the classes, in the order of their labels; None for the
                sorted names.
            sizes: from a field of paths to the column of its objects' sizes. Leat then
                sends no requests for sizes, and does not notice a changed object of the
                same size.
            ranges: from a field of paths to two columns, offset and length in bytes: the
                value is that part of the object, for files that hold many values. Such
                samples are shuffled in blocks, as shards are.
            format: the format of the manifest, if its name does not give it.
            refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: a column does not exist, or a value is missing or does not
                fit; the error names the row.
            leat.NotFound: no manifest, or an object that it names; names the row.
            leat.Corrupt: the manifest cannot be read; names the line.
        """
        store = checked_storage(storage_options)
        options = native_storage(store)
        name = str(url)
        place = _manifest.base_of(url) if base is None else os.fspath(base)
        parts = {field: (str(at), str(length)) for field, (at, length) in (ranges or {}).items()}
        said: list[Any] = [
            dict(fields), columns if isinstance(columns, Mapping) else list(columns), dict(sizes or {}), parts
        ]  # fmt: skip
        chosen = None if classes is None else list(classes)
        plan = _table_columns.Plan(said[0], _table_columns.columns_said(said[1]), said[2], parts, chosen)
        files = _table_files.files_of(url, options, store)
        reader = _table_columns.TableReader(files, format, plan, place, name)
        told = json.dumps([
            _TABLE_VERSION, said, plan.classes, format, place, _recipe.place_anywhere(place),
            _table_files.identity_of(files),
        ])  # fmt: skip
        native = _native.rows_of_table(
            store=options,
            read=reader.read,
            description=hashlib.blake2b(told.encode()).hexdigest(),
            refresh=refresh,
        )
        given = _recipe.options_said(
            fields=said[0],
            columns=said[1],
            sizes=said[2],
            ranges=parts or None,
            classes=None if classes is None else list(classes),
            base=None if base is None else _recipe.place_anywhere(base),
            format=format,
            storage_options=store or None,
        )
        return cls._of(native, recipe=_made("from_manifest", [url], given, native))

    @classmethod
    @checks_names(_MOVED)
    def parquet(
        cls,
        url: Source | Sequence[Source],
        *,
        fields: Sequence[str] | None = None,
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """The rows of Parquet files, with the bytes that lie in them, as the Hugging Face
        Hub keeps images; needs pyarrow.

            leat.Dataset.parquet("s3://bucket/train-*.parquet", fields=("image", "label"))

        A column of binary values, or of structs of ``bytes`` and ``path``, is a field of
        bytes; numbers are int64 or float64, texts str. Texts called ``label`` are names
        of classes, and it is their number; so are the names that the library datasets
        writes into its files. Shuffled in blocks, as shards are; of several columns of
        bytes, one is read in pieces and the others as they are wanted.

        Columns of bytes are read once when the files are first opened, to learn where
        each value lies. That is kept in the user's cache folder.

        Args:
            url: a folder, a file, a pattern or a list, as for `leat.Dataset`.
            fields: columns; None for all that can be fields.
            include, exclude, refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: a column that is not there or is no field; a row without
                a value (null); a row group of more than 1 GiB; names it.
            leat.Corrupt: a file that cannot be read.
            leat.NotFound: no such file.
        """
        if isinstance(fields, str):
            raise InvalidArgument(f"fields={fields!r}; it is a list of columns: [{fields!r}]")
        store = checked_storage(storage_options)
        chosen = _chosen(include, exclude, "parquet")
        native = _native.Dataset(_sources(url), native_storage(store), refresh, None, chosen)
        made = cls.__new__(cls)
        named = _parquet.choose(native, None if fields is None else list(fields))
        made._set(*_rows_of_parquet(native, url, named, refresh, chosen, store))
        return made

    @classmethod
    @checks_names(_MOVED)
    def tokens(
        cls,
        url: Source | Sequence[Source],
        *,
        dtype: Any,
        seq_len: int,
        stride: int | None = None,
        eos: int | None = None,
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """Windows of tokens out of ``.bin`` and ``.npy`` files: one field, ``tokens``.

            leat.Dataset.tokens("s3://bucket/corpus", dtype="uint16", seq_len=2049)

        A sample is ``seq_len`` tokens, an array of shape ``(seq_len,)`` and of `dtype`; a
        batch is ``(samples, seq_len)``. No window reaches from one file into the next, and
        the rest at the end of a file is left out. Without ``stride=`` windows do not
        overlap, so every byte is read once an epoch. To predict each next token, give one
        token more than the context and shift::

            inputs, targets = tokens[:, :-1], tokens[:, 1:]

        Shuffled in blocks, as shards are.

        Args:
            url: a folder of files, one file, a pattern or a list, as for
                `leat.Dataset`.
            dtype: the type of the tokens, little-endian; the type in a ``.npy`` must agree.
            seq_len: tokens a window.
            stride: tokens from the beginning of a window to that of the next, at
                most `seq_len`; None for `seq_len`. If it is ``seq_len - 1``, each
                window begins with the last token of the one before it.
            eos: the token that ends a document, and is its last: windows then begin and
                end with documents, and are at most `seq_len` long; a batch is a
                `leat.Ragged`, whose ``offsets`` are what kernels call cu_seqlens. All
                files are read once to find these ends; where they are, is kept. To
                have whole windows and know the documents in them, see
                `leat.ops.Documents`.
            refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: a file that holds something else; a stride above
                seq_len, which would leave tokens out.
            leat.NotFound: no such file, or none that holds a window.
        """
        kind = dtype_name(dtype)
        if stride == 0:
            raise InvalidArgument("stride=0; it is at least 1")
        store = checked_storage(storage_options)
        native = _native.Dataset.tokens(
            _sources(url),
            native_storage(store),
            kind,
            _whole("seq_len", seq_len),
            0 if stride is None else _whole("stride", stride),
            refresh,
            ([], [], []),
            None if eos is None else _whole("eos", eos),
        )
        given = _recipe.options_said(
            dtype=kind, seq_len=seq_len, stride=stride, eos=eos, storage_options=store or None
        )
        # Windows of two lengths are two shapes, which no batch can have.
        shape = None if eos is not None else (seq_len,)
        rows = Rows(np.dtype(kind).newbyteorder("<"), is_ragged=eos is not None, shape=shape)
        return cls._of(native, {"tokens": rows}, _made("tokens", [url], given, native))

    @classmethod
    @checks_names(_MOVED)
    def megatron(
        cls,
        url: Source | Sequence[Any],
        *,
        order: Literal["leat", "megatron"] = "leat",
        seq_len: int | None = None,
        seed: int | None = None,
        samples: int | None = None,
        split: str | None = None,
        part: Literal["train", "valid", "test"] | None = None,
        extra_token: bool | None = None,
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """The documents of a corpus as Megatron-LM's tools write it: one field, ``tokens``.

            leat.Dataset.megatron("s3://bucket/my-gpt2_text_document")

        A sample is a document, an array of shape ``(tokens,)`` and of the type that the index
        tells; a batch is a `leat.Ragged`. `leat.Pack` lays documents in rows, and `leat.mix`
        blends corpora. Empty documents are left out.

        With ``order="megatron"``, samples are those of Megatron's GPTDataset, or of its
        BlendedDataset, element by element: ``seq_len + 1`` tokens each, cut across
        documents. Their order is fixed here, so that a loader shuffles nothing::

            data = leat.Dataset.megatron(["0.7", "s3://bucket/books", "0.3", "s3://bucket/code"],
                                         order="megatron", seq_len=4096, samples=1_000_000,
                                         split="969,30,1", seed=1234)
            loader = leat.Loader(data, global_batch_size=512, fields=("tokens",), epochs=1)

        Such a dataset has ``state_after(consumed_samples, state)``, by which a loader goes on
        where a training of Megatron's stopped.

        Leat reads the index, ``URL.idx``, each time, and of ``URL.bin`` what a batch needs, in
        pieces of about 8 MiB; in Megatron's order, each part of a document by itself.

        Args:
            url: the path of both files without their endings, or that of one of them. With
                ``order="megatron"`` also a list of paths, or of weights and paths by turns, as
                ``--data-path`` has them.
            order: ``"leat"``, of documents, or ``"megatron"``. The arguments from `seq_len` to
                `extra_token` belong to the latter.
            seq_len: ``--seq-length``.
            seed: ``--seed``; None for Megatron's 1234. The seed of a loader draws for ops alone.
            samples: the samples of the whole training: its steps times its global batch. A
                corpus comes as often as that takes. None for those of one epoch; a blend by
                weights needs a number.
            split: ``--split``, such as ``"969,30,1"``; None if all sequences belong to the
                part, as with ``--train-data-path``.
            part: ``"train"`` (default), ``"valid"`` or ``"test"``.
            extra_token: False for samples of `seq_len` tokens, which share none: Megatron's
                ``add_extra_token_to_sequence``.
            refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: an argument that cannot be; a part with too few tokens for a
                sample; corpora of different types of tokens.
            leat.NotFound: one of the files is missing.
            leat.Corrupt: the index is damaged, or of another version than 1; or it names
                tokens beyond the end of the ``.bin``.
        """
        given = {"seq_len": seq_len, "seed": seed, "samples": samples, "split": split, "part": part,
                 "extra_token": extra_token}  # fmt: skip
        if order == "megatron":
            from leat._formats._megatron import _samples as _megatron_samples

            cut = _megatron_samples.checked_cut(given)
            return _megatron_samples.open_samples(url, cut, refresh, storage_options)
        path = _megatron.checked_documents(url, order, given)
        store = checked_storage(storage_options)
        options = native_storage(store)
        prefix = _megatron.prefix_of(path)
        data = _native.read_url(prefix + ".idx", options, _megatron.MOST_INDEX_BYTES)
        index = _megatron.parse(data, prefix + ".idx")
        folder, _, name = prefix.rpartition("/")

        def make(_is_stopped: Any) -> tuple[Any, ...]:
            rows = len(index.offsets)
            names = [f"{name}:{number}" for number in range(rows)]
            column = ("tokens", "bytes", [name + ".bin"] * rows, None, index.offsets, index.lengths)
            return rows, names, [column], []

        try:
            native = _native.Dataset.from_rows_made(
                places=[folder or "."],
                store=options,
                make=make,
                description="megatron " + name + " " + hashlib.blake2b(data, digest_size=16).hexdigest(),
                refresh=refresh,
            )
        except InvalidArgument as error:
            if "outside their object" not in str(error):
                raise
            raise Corrupt(f"{prefix}.idx names tokens beyond the end of {prefix}.bin: {error}") from None
        rows = Rows(index.dtype, is_ragged=True)
        given = _recipe.options_said(storage_options=store or None)
        return cls._of(native, {"tokens": rows}, _made("megatron", [prefix], given, native))

    @classmethod
    @checks_names(_MOVED)
    def mds(
        cls,
        url: Source,
        *,
        fields: Sequence[str] | None = None,
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """The samples of shards that MosaicML Streaming's ``MDSWriter`` wrote (MDS), where they lie.

            leat.Dataset.mds("s3://bucket/train", fields=("image", "label"))

        A column is a field. Numbers (``int``, ``uint8`` to ``float64``) and arrays of one type
        and shape (``ndarray:uint16:65``) come as such: a batch is an array of shape ``(samples,)``
        or ``(samples, 65)``. All other columns are bytes as they are stored, for ops: `DecodeImage`
        for ``jpeg`` and ``png``, `ParseText` for ``str``, `ParseInt` and `ParseFloat` for
        ``str_int`` and ``str_float``, `ParseJson` for ``json``, `LoadMdsArray` for any other
        ``ndarray``. Shuffled in blocks and read in pieces, as tar shards are.

        Leat reads the index each time, and the heads of shards once. If two columns or more have
        no fixed size, it also reads the sizes at the head of each sample once; samples of less than
        1 MiB are read whole for that. The result is kept in the user's cache folder. Compressed
        shards are read whole, then as well as in an epoch; those of zstd, br and snappy need pyarrow.

        Args:
            url: the folder of ``index.json``, or that file itself. The store need not list.
            fields: columns; None for all. Pickled columns (``pkl``) come only if they are named,
                as their bytes.
            refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: a column that is not there, a pickled one unless it is named,
                shards of another format, or compressed ones of more than 1 GiB.
            leat.NotFound: no index there, or a shard is missing.
            leat.Corrupt: the index or a shard is damaged, or they do not fit; names it.
        """
        if isinstance(fields, str):
            raise InvalidArgument(f"fields={fields!r}; it is a list of columns: [{fields!r}]")
        store = checked_storage(storage_options)
        made = cls.__new__(cls)
        named = None if fields is None else list(fields)
        made._set(*_samples_of_mds(os.fspath(url), named, None, refresh, store))
        return made

    @classmethod
    @checks_names(_MOVED)
    def array(
        cls,
        url: Source | Sequence[Source],
        *,
        variables: Sequence[str] | Mapping[str, str] | None = None,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        gap_bytes: int = 1 << 20,
        format: Literal["hdf5", "npy", "npz", "zarr"] | None = None,
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """Samples of arrays in HDF5, NetCDF4, Zarr, ``.npy`` and ``.npz`` files, where they lie.

            leat.Dataset.array("s3://bucket/sim.h5", variables=["/density", "/labels"])

        A sample is one index of the first dimension, or a window (`shape`). An array is a field:
        of the type in the file, little-endian. Arrays of one dimension are kept in the catalogue,
        as int64 or float64, unless `shape` is given. Shuffled in blocks, as shards are: windows whose
        chunks take about 8 MiB together are read at once, and each chunk is decoded once for them.

        Leat reads the index of each file once, and keeps it in the user's cache folder; that of the
        first file, or a Zarr store's metadata, each time. HDF5 and NetCDF4 need h5py.

        Args:
            url: a file, a folder of files, a pattern or a list, as for `leat.Dataset`; or the
                folder of one Zarr store. The samples of a file come after those of the one before.
            variables: the arrays that are fields; or, from the name of a field to an array. None:
                the only array that there is; of a ``.npy`` it is the field ``data``.
            shape: of a window, along the first dimensions; the others are whole. All arrays have
                the same sides there. Windows come in C order.
            stride: from one window to the next; None for `shape`. The rest at an end is left out.
            gap_bytes: chunks with no more than these between them are read at once. The gaps of a
                run are at most a quarter of what is wanted.
            format: if neither names nor metadata tell.
            refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: no such array; one that is no numbers, or that is stored in a way that
                Leat does not undo; windows that do not fit.
            leat.NotFound: no such file.
            leat.Corrupt: a file is damaged or cut short; names it. Also from a loader, of a chunk.
        """
        store = checked_storage(storage_options)
        chosen = _array.choice_of(variables, shape, stride, gap_bytes)
        place = _array.place_of(_sources(url), native_storage(store), format, refresh)
        files = _array.Files(place, chosen)
        said = [_array.VERSION, place.digest, place.format, chosen.said()]
        native = _rows_made("array", said, place.places, files.rows, _array_chunks.derive, refresh, store)
        dtypes = {name: Rows(dtype, is_ragged=False, shape=sides) for name, (dtype, sides) in files.dtypes().items()}
        given = _recipe.options_said(
            variables=chosen.variables, shape=chosen.shape, stride=chosen.stride, gap_bytes=gap_bytes, format=format,
            storage_options=store or None,
        )  # fmt: skip
        return cls._of(native, dtypes, _made("array", [url], given, native))

    @classmethod
    @checks_names(_MOVED)
    def audio(
        cls,
        url: Source | Sequence[Source],
        *,
        seconds: float | None = None,
        stride: float | None = None,
        rate: int | None = None,
        dtype: Any = "float32",
        mono: bool = False,
        rest: Literal["drop", "pad"] = "drop",
        drawn: bool = False,
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """Segments of sound in WAV and FLAC files, where they lie.

            leat.Dataset.audio("s3://bucket/speech", seconds=10, rate=16000, mono=True)

        A sample is `seconds` of a file, read by range and decoded: ``audio``, an array of shape
        ``(channels, frames)``; ``file``, the number of the file; ``start`` in it, in seconds; and
        ``label``, if the files lie in folders, as for `leat.Dataset`. Without `seconds`, a sample is
        a whole file of one channel: an array of shape ``(frames,)``, and a batch is a `leat.Ragged`.

        Leat reads the headers once, and keeps what it found in the user's cache folder; that of
        the first file each time. FLAC files have no list of their blocks, so that they are read
        once, unless a sample is a whole file. FLAC needs soundfile, and `rate` needs soxr.

        Args:
            url: a folder, a file, a pattern or a list, as for `leat.Dataset`. Only names that end in
                ``.wav``, ``.wave`` and ``.flac`` count.
            seconds: the length of a segment. Segments begin `stride` seconds apart, by default `seconds`.
            rate: frames a second; files of others are resampled. A segment is that part of the
                resampled file. None: all files have one rate.
            dtype: ``"float32"``, from -1 to 1, or ``"int16"``, if files have at most 16 bits; or NumPy's, torch's or
                jax's type of that name.
            mono: the mean of the channels. Otherwise all files have as many channels.
            rest: ``"drop"`` leaves out what is no whole segment at the end of a file; ``"pad"``
                fills it up with silence, and ``frames`` is how many are there.
            drawn: each segment is read by itself, for `leat.SegmentSampler` and other samplers.
                Otherwise segments that lie together, about 8 MiB, are read at once.
            refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: files of several rates or numbers of channels, or stored in a way
                that Leat does not read; no file is long enough; soundfile or soxr is missing.
            leat.NotFound: no such file.
            leat.Corrupt: a file is damaged or cut short; names it. Also from a loader, of a FLAC's block.
        """
        chosen = _audio.check(_audio.Choice(seconds, stride, rate, dtype_name(dtype), bool(mono), rest, bool(drawn)))
        store = checked_storage(storage_options)
        objects = _native.Dataset(_sources(url), native_storage(store), refresh, None, ([], [], _audio.EXTENSIONS))
        files = _audio.Files(objects, chosen)
        said = [_audio.VERSION, files.digest, *chosen]
        native = _rows_made("audio", said, objects.places, files.rows, _audio_decode.derive, refresh, store)
        dtypes = {"audio": Rows(files.dtype, is_ragged=files.shape is None, shape=files.shape)}
        given = _recipe.options_said(**{**chosen._asdict(), "storage_options": store or None})
        return cls._of(native, dtypes, _made("audio", [url], given, native))

    @classmethod
    @checks_names(_MOVED)
    def video(
        cls,
        url: Source | Sequence[Source],
        *,
        frames: int,
        fps: float | None = None,
        step: int = 1,
        stride: int | None = None,
        size: tuple[int, int] | None = None,
        drawn: bool = False,
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """Clips of the pictures in MP4 and WebM files, where they lie.

            leat.Dataset.video("s3://bucket/clips", frames=16, fps=8, size=(224, 224))

        A sample is `frames` pictures of a file, read by range and decoded: ``video``, an array of
        uint8, of shape ``(frames, height, width, 3)``, RGB; ``file``, the number of the file; ``start``
        in it, in seconds; and ``label``, if the files lie in folders, as for `leat.Dataset`. Leat reads
        the groups of pictures that a clip needs: from a keyframe to its last picture. It delivers no
        sound. Needs PyAV.

        Leat reads the index of each file once, and keeps what it found in the user's cache folder; that
        of the first file each time, unless `size` is given. A WebM file has an index of keyframes alone,
        which is enough with `fps`; without it, such a file is read once.

        Args:
            url: a folder, a file, a pattern or a list, as for `leat.Dataset`. Only names that end in
                ``.mp4``, ``.m4v``, ``.mov``, ``.webm`` and ``.mkv`` count.
            frames: pictures of a clip.
            fps: pictures a second: each is the one that a player shows at that time. None: as
                they come, whatever the time between them.
            step: takes each such picture, such as each second one.
            stride: from the begin of a clip to that of the next, in pictures before `step` takes
                some. None: clips lie end to end. The rest of a file that makes no whole clip is left out.
            size: (height, width) that pictures are scaled to. None: all files have one size.
            drawn: each clip is read by itself, for `leat.SegmentSampler` and other samplers.
                Otherwise neighbouring clips are read and decoded together.
            refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: files of several sizes, or stored in a way that Leat does not read; no
                file is long enough; PyAV is missing.
            leat.NotFound: no such file.
            leat.Corrupt: a file is damaged or cut short; names it. Also from a loader, of pictures.
        """
        chosen = _video.check(_video.Choice(frames, fps, step, stride, size, bool(drawn)))
        store = checked_storage(storage_options)
        objects = _native.Dataset(_sources(url), native_storage(store), refresh, None, ([], [], _video.EXTENSIONS))
        files = _video.Files(objects, chosen)
        said = [_video.VERSION, files.digest, *chosen]
        native = _rows_made("video", said, objects.places, files.rows, _video_decode.derive, refresh, store)
        dtypes = {"video": Rows(np.dtype(np.uint8), is_ragged=False, shape=files.shape)}
        given = _recipe.options_said(**{**chosen._asdict(), "storage_options": store or None})
        return cls._of(native, dtypes, _made("video", [url], given, native))

    @classmethod
    def litdata(
        cls,
        url: Source,
        *,
        fields: Sequence[str] | None = None,
        block_size: int | None = None,
        refresh: str = "auto",
        storage_options: StorageOptions | None = None,
    ) -> Dataset:
        """The samples of chunks that LitData's ``optimize`` wrote, where they lie.

            leat.Dataset.litdata("s3://bucket/train", fields=("image", "label"))

        A value of a sample is a field, named by its keys: ``image``, ``meta.id``, ``0`` of a
        tuple; ``data`` if the sample is the value. Numbers (``int``, ``float``, ``bool``) come as
        such: a batch is an array of shape ``(samples,)``. Arrays of one dimension come as
        `leat.Ragged`. All other values are bytes as they are stored, for ops: `DecodeImage` for
        ``jpeg`` and ``image``, `ParseText` for ``str``, `LoadLitdataArray` for ``tensor`` and
        ``numpy``. Shuffled in blocks and read in pieces, as tar shards are.

        Chunks that were written for LitData's ``TokensLoader`` have one field, ``tokens``. A
        sample is a run of tokens as it was written; with `block_size`, a window of as many.

        Leat reads the index each time, and the heads of chunks once. If two values or more have
        no fixed size, it also reads the sizes at the head of each sample once; samples of less than
        1 MiB are read whole for that. The result is kept in the user's cache folder. Compressed
        chunks, and those in which LitData keeps dicts of plain values as an Arrow table, are read
        whole, then as well as in an epoch; that needs pyarrow.

        Args:
            url: the folder of ``index.json``, or that file itself. The store need not list.
            fields: values; None for all. Pickled ones (``pickle``, ``graph``) come only if they
                are named, as their bytes.
            block_size: tokens a window, as of LitData's ``TokensLoader``: windows do not overlap,
                and the rest at the end of a chunk is left out.
            refresh, storage_options: as for `leat.Dataset`.

        Raises:
            leat.InvalidArgument: a value that is not there, a pickled one unless it is named,
                chunks that are encrypted, or ones of more than 1 GiB that are read whole.
            leat.NotFound: no index there, or a chunk is missing.
            leat.Corrupt: the index or a chunk is damaged, or they do not fit; names it.
        """
        if isinstance(fields, str):
            raise InvalidArgument(f"fields={fields!r}; it is a list of values: [{fields!r}]")
        if block_size is not None and _whole("block_size", block_size) == 0:
            raise InvalidArgument("block_size=0; it is at least 1")
        store = checked_storage(storage_options)
        made = cls.__new__(cls)
        named = None if fields is None else list(fields)
        made._set(*_samples_of_litdata(os.fspath(url), named, block_size, None, refresh, store))
        return made

    @classmethod
    def concat(cls, datasets: Sequence[Dataset]) -> Dataset:
        """The samples of all of them, one dataset after the other.

        The datasets may lie in different places, and the fields come in the order of the
        first. A loader shuffles in blocks if all are shards, otherwise in full.

        Classes are merged by name, and labels are renumbered. If each dataset's names are
        sorted, as those of folders are, the sorted names of all count; otherwise the names
        count in order of first appearance. Datasets with the same classes keep their
        numbers.

        Raises:
            leat.InvalidArgument: the names or kinds of fields differ; or some labels have
                names and others have none, so their meaning is unknown.
        """
        for each in datasets:
            if not isinstance(each, Dataset):
                raise InvalidArgument(f"concat: {each!r} is no dataset; write leat.Dataset({each!r})")
            each._check_joins("concat")
        joined = _native.Dataset.join([each._native for each in datasets])
        dtypes = datasets[0]._dtypes
        if any(each._dtypes != dtypes for each in datasets):
            raise InvalidArgument(
                "concat: numbers of different dtypes or shapes, or tokens of which some are "
                f"cut at documents (eos=): {' and '.join(sorted({fields_in_words(each) for each in datasets}))}"
            )
        say_if_merged("concat", datasets, joined)
        parts = [each._recipe for each in datasets]
        recipe = None
        if None not in parts:
            recipe = Recipe("concat", tuple(parts), {}, joined.digest)
        return cls._of(joined, dtypes, recipe)

    @property
    def url(self) -> str:
        """The URL of the data; never holds credentials."""
        return self._native.url

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a sample and their kinds: bytes, int64, float64, string."""
        return self._native.fields

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by ``label``; empty if there are none."""
        return self._native.classes

    @property
    def nbytes(self) -> int:
        """The bytes of all byte fields of all samples."""
        return self._native.bytes

    @property
    def listed_at(self) -> float | None:
        """The time of the listing, in seconds since 1970; None if it is unknown.

        For joined datasets: the time of the oldest listing.
        """
        listed_at = self._native.listed_at
        return None if listed_at is None else float(listed_at)

    @property
    def catalogue_age(self) -> float | None:
        """Seconds since the listing, at least 0; None if unknown."""
        listed_at = self.listed_at
        return None if listed_at is None else max(0.0, time.time() - listed_at)

    @property
    def digest(self) -> str:
        """Identifies the data, wherever it is stored."""
        return self._native.digest

    def key(self, sample: int) -> str:
        """The name of a sample."""
        return self._native.key(sample)

    def column(self, name: str) -> np.ndarray | list[str]:
        """The values of a field for all samples, without reading objects.

        Numbers as an array of shape ``(samples,)``, texts as a list of str.

        Raises:
            leat.InvalidArgument: no such field, or one of bytes: see `parsed`,
                `lengths` and `has`.
        """
        if self.fields.get(name) == "bytes":
            raise bytes_are_no_column(name)
        return self._known(self._native.column, name)

    def lengths(self, name: str) -> np.ndarray:
        """The numbers of bytes of a field of bytes: int64, of shape ``(samples,)``.

        This reads nothing. A sample that lacks the field has -1.
        """
        self._want_bytes("lengths", name)
        return self._native.column(name)

    def has(self, name: str) -> np.ndarray:
        """Which samples have a field of bytes: bool, of shape ``(samples,)``."""
        return self.lengths(name) >= 0

    def parsed(self, name: str, parse: Callable[[bytes], Any]) -> np.ndarray:
        """The results of ``parse`` on a field of bytes, for all samples: an array of
        shape ``(samples,)``, of numbers if all results are numbers, else of objects.

            labels = dataset.parsed("cls", int)

        Each call reads that field of every sample, with as many requests in flight as a
        loader has. It is meant for small fields, such as a shard's ``.cls``.

        Args:
            name: of the field.
            parse: gets the bytes of a sample, or its number where the field is numbers (see
                `mds`); ``str`` decodes UTF-8.

        Raises:
            leat.InvalidArgument: no such field of bytes, samples that lack it, or
                ``parse`` raised; names the sample.
        """
        self._want_bytes("parsed", name)
        lacks = np.flatnonzero(~self.has(name))
        if len(lacks):
            raise InvalidArgument(
                f"parsed({name!r}): {len(lacks)} of {len(self)} samples lack the field, "
                f"such as {self.key(int(lacks[0]))}; leave them out before, with "
                f"filter(lambda of: of.has({name!r}))"
            )
        return parse_all(self, name, parse)

    def measured(self, name: str, measure: Callable[[Any], Any], *, kept_as: str) -> np.ndarray:
        """A whole number for each sample, such as how many tokens its text has: int64, of
        shape ``(samples,)``.

            lengths = dataset.measured("text", lambda text: len(tokenize(text)), kept_as="llama3")
            loader = leat.Loader(dataset, batch_size=8, train=True, sampler=leat.Pack(8192, lengths=lengths), ...)

        The first call reads that field of every sample, and calls the function as an op of a
        loader: in several threads, or in worker processes. The numbers are kept in Leat's
        cache folder; later calls and runs read no sample, until the data changes. Processes
        of one node that call it at once measure once.

        Args:
            name: of the field.
            measure: gets the field's bytes, or the value of a column, as `leat.ops.Python`
                does; and returns a whole number of at least 0.
            kept_as: names the function in the cache: give one that measures otherwise
                another name.

        Raises:
            leat.InvalidArgument: no such field, or the function gave something else; names
                the sample.
        """
        if name not in self.fields:
            raise _no_field(name, self.fields)
        return measure_all(self, name, measure, kept_as)

    def _check_joins(self, how: str) -> None:
        """Raises `InvalidArgument` if the samples cannot stand among those of other datasets."""

    def _order_as_given(self, train: bool | None, shuffle: Any, sampler: Any, drop_last: Any) -> Order | None:
        """The order that a loader's arguments specify, if these samples have one of their own."""
        return None

    def _want_bytes(self, what: str, name: str) -> None:
        kind = self.fields.get(name)
        if kind is None:
            raise _no_field(name, self.fields)
        if kind != "bytes":
            raise InvalidArgument(
                f"{what}({name!r}): the field is {kind}, of which column({name!r}) has the values"
            )

    def _known(self, ask: Callable[[str], Any], name: str) -> Any:
        try:
            return ask(name)
        except KeyError:
            raise _no_field(name, self.fields) from None

    def take(self, count: int) -> Dataset:
        """The first ``count`` samples, or all if there are fewer."""
        return self[: _whole("count", count)]

    def skip(self, count: int) -> Dataset:
        """All but the first ``count`` samples."""
        return self[_whole("count", count) :]

    def select(self, samples: Sequence[int] | np.ndarray) -> Dataset:
        """The samples with these numbers, in this order; a number may come twice."""
        chosen = np.asarray(samples)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise InvalidArgument("samples= is a list of sample numbers")
        chosen = chosen.astype(np.int64)
        if (wrong := chosen[(chosen < 0) | (chosen >= len(self))]).size:
            raise InvalidArgument(f"no sample {wrong[0]}: samples= has numbers from 0 to {len(self) - 1}")
        native = self._native.select(chosen)
        recipe = _recipe.selection(self._recipe, chosen, native.digest)
        return self._of(native, self._dtypes, recipe)

    def filter(self, keep: Callable[[Mapping[str, Any]], Any]) -> Dataset:
        """The samples for which ``keep`` is true.

        ``keep`` gets the columns (see `column`; texts as an array of objects) and returns
        one bool for each sample::

            dataset.filter(lambda of: (of["label"] < 10) & (of["width"] >= 224))

        A field of bytes is not a column: ``of.lengths(name)``, ``of.has(name)`` and
        ``of.parsed(name, int)`` return the same as `lengths`, `has` and `parsed`::

            shards.filter(lambda of: of.parsed("cls", int) == 1)

        Raises:
            leat.InvalidArgument: the result is not such bools, a field of bytes was used as a
                column, or numbers were compared with a text, which differs from all of them.
        """
        mask = np.asarray(keep(Columns(self)))
        if mask.dtype != bool or mask.shape != (len(self),):
            raise InvalidArgument(
                f"filter: keep gave {mask.dtype} of shape {mask.shape}; it is to give "
                f"a bool for each of the {len(self)} samples"
            )
        return self.select(np.flatnonzero(mask))

    def query(self, sql: str, *, parsed: Mapping[str, Callable[[bytes], Any]] | None = None) -> Dataset:
        """The samples that a query names, by DuckDB, over the columns of the catalogue.

            dataset.query("select index from samples where label < 10 and size > 1000")

        A row of the table ``samples`` is a sample. Its columns are ``index``, its number; ``key``;
        ``size``, the length of all its fields of bytes; ``class``, the name of its label; of each
        field of bytes ``NAME_bytes``, its length, or NULL if the sample lacks it; and each field of
        numbers or texts. If a field has such a name, ours has ``leat_`` before it. No object is read.

        The rows give a column ``index``. Samples come in the order of a query that ends with ORDER
        BY, otherwise by number; one that comes twice is there twice. Needs duckdb and pyarrow.

        Args:
            sql: one SELECT. It may join with files that DuckDB reads.
            parsed: further columns: small fields of bytes, read and parsed as by `parsed`.

        Raises:
            leat.InvalidArgument: duckdb or pyarrow is missing, DuckDB refuses the query, or its
                rows name no samples.
        """
        from leat import _query

        return self.select(_query.samples_of(_query.run(self, sql, parsed), sql))

    def split(self, *fractions: float, seed: int = 0, by: str | None = None) -> tuple[Dataset, ...]:
        """Parts of about these sizes, such as ``0.9, 0.1``: a tuple of datasets.

        A hash of its key and ``seed`` alone decides a sample's part, so the sample stays
        there when others come or go. ``by`` names a column to hash instead, for example so
        that all samples of a patient stay together.
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
        if not hasattr(sample, "__index__"):
            raise TypeError(f"dataset[{sample!r}]: a sample has a number; columns are dataset.column(name)")
        number = sample.__index__()
        if number < 0:
            number += len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"sample {sample} of {len(self)}")
        return self._sample(number)

    def _sample(self, number: int, leave_out: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """A sample; of fields in `leave_out`, the values that stand there."""
        reader = self._readers.get(os.getpid())
        if reader is None:
            reader = self._readers[os.getpid()] = _native.SampleReader(self._native)
        values = dict(self._native.scalars(number))
        for index, (name, kind) in enumerate(self.fields.items()):
            if kind != "bytes":
                continue
            if name in leave_out:
                values[name] = leave_out[name]
                continue
            has_it = self._native.has_bytes(index, number)
            values[name] = reader.read(index, number) if has_it else None
            if name in self._dtypes:
                values[name] = self._dtypes[name].of(values[name])
        return {name: values[name] for name in self.fields}

    def __iter__(self) -> Any:
        return (self[number] for number in range(len(self)))

    def __len__(self) -> int:
        return self._native.samples

    def __reduce__(self) -> Any:
        if self._recipe is None:
            raise TypeError(
                "this dataset came of a loader, and nobody knows how to make it again; "
                f"pickle leat.Dataset({self.url!r}) instead"
            )
        return _recipe.make_again, (self._recipe,)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {kind}" for name, kind in self.fields.items())
        return f"leat.Dataset({self.url!r}, {len(self)} samples, {fields})"


def say_if_merged(how: str, datasets: Sequence[Dataset], joined: Any) -> None:
    """Logs that labels of the engine's `joined` have other numbers than before."""
    if any(each.classes != joined.classes for each in datasets):
        _log.info(
            "%s: the classes differ, so labels are renumbered through the %d "
            "names of all of them (`Dataset.classes` has the order)",
            how, len(joined.classes),
        )  # fmt: skip


def _sources(url: Source | Sequence[Source]) -> list[str]:
    several = [url] if isinstance(url, (str, os.PathLike)) else url
    if not isinstance(several, Iterable) or not all(isinstance(each, (str, os.PathLike)) for each in several):
        raise InvalidArgument(f"{url!r} is no place; give a URL, a path, or a list of these")
    return [os.fspath(each) for each in several]


def _named(classes: Sequence[str] | None) -> tuple[str, ...]:
    if classes is None:
        return ()
    is_list = isinstance(classes, Iterable) and not isinstance(classes, str)
    if not is_list or not classes or not all(isinstance(name, str) for name in classes):
        raise InvalidArgument(
            f"classes={classes!r}; it is a list of the folders' names, such as another dataset's .classes"
        )
    return tuple(classes)


def _chosen(
    include: str | Sequence[str], exclude: str | Sequence[str], extensions: str | Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    def several(name: str, patterns: str | Sequence[str]) -> list[str]:
        if isinstance(patterns, str):
            return [patterns]
        texts = list(patterns) if isinstance(patterns, Iterable) else [None]
        if not all(isinstance(text, str) for text in texts):
            raise InvalidArgument(f"{name}={patterns!r}; it is a text or a list of texts")
        return texts

    return several("include", include), several("exclude", exclude), several("extensions", extensions)


def _rows_of_parquet(
    files: Any,
    url: Source | Sequence[Source],
    fields: list[str],
    refresh: str,
    chosen: tuple[list[str], list[str], list[str]],
    store: StorageOptions,
) -> tuple[Any, Recipe]:
    """The engine's dataset of their rows, and how it is made again."""
    def make(is_stopped: Callable[[], bool]) -> Any:
        return _parquet.rows_of(files, fields, is_stopped)

    said = [_parquet.VERSION, files.digest, digest_of(objects_of(files)), fields]
    native = _rows_made("parquet", said, files.places, make, _parquet.derive, refresh, store)
    given = _recipe.options_said(
        fields=fields,
        include=tuple(chosen[0]),
        exclude=tuple(chosen[1]),
        storage_options=store or None,
    )
    return native, _made("parquet", [url], given, native)


def _rows_made(
    kind: str,
    said: list[Any],
    places: list[str],
    make: Callable[[Callable[[], bool]], Any],
    derive: Callable[..., Any],
    refresh: str,
    store: StorageOptions,
) -> Any:
    """The engine's dataset of rows that `make` gives, whose objects `derive` makes. It is kept under what is `said`."""
    options = native_storage(store)
    options.derive_with(derive)
    return _native.Dataset.from_rows_made(
        places=places,
        store=options,
        make=make,
        description=f"{kind} {hashlib.blake2b(json.dumps(said).encode()).hexdigest()}",
        refresh=refresh,
    )


def _check_whole_folder(
    url: Source | Sequence[Source],
    chosen: tuple[list[str], list[str], list[str]],
    family: _indexed.Family,
) -> None:
    is_folder = isinstance(url, (str, os.PathLike)) and not _manifest.is_pattern(os.fspath(url))
    if not is_folder or any(chosen):
        raise InvalidArgument(
            f"{url!r} has {family.words}, and their {_indexed.INDEX} says which belong to it: open the whole folder, "
            f"with {family.opener}(folder), and choose samples with select or filter"
        )


def _samples_of_mds(
    url: str, fields: list[str] | None, wanted: frozenset[str] | None, refresh: str, store: StorageOptions
) -> tuple[Any, Recipe, dict[str, Rows]]:
    """The engine's dataset of them, how it is made again, and the types of numbers."""
    options = native_storage(store)
    folder, name, data = _index_of(url, options, _mds.FAMILY)
    index = _mds.parse(data, name)
    columns = _mds.choose(index, fields, wanted)
    if index.is_zipped:
        options.derive_with(_mds_zip.derive)
    named = [column.name for column in columns]
    told = hashlib.blake2b(json.dumps([_mds.VERSION, named]).encode() + data, digest_size=16)
    native = _native.Dataset.from_rows_made(
        places=[folder],
        store=options,
        make=lambda is_stopped: _mds_shards.rows_of(folder, options, index, columns, is_stopped),
        description=f"mds {told.hexdigest()}",
        refresh=refresh,
    )
    dtypes = {
        column.name: Rows(np.dtype(column.dtype).newbyteorder("<"), is_ragged=False, shape=column.shape)
        for column in columns
        if column.dtype is not None
    }
    given = _recipe.options_said(fields=named, storage_options=store or None)
    return native, _made("mds", [folder], given, native), dtypes


def _samples_of_litdata(
    url: str,
    fields: list[str] | None,
    block_size: int | None,
    wanted: frozenset[str] | None,
    refresh: str,
    store: StorageOptions,
) -> tuple[Any, Recipe, dict[str, Rows]]:
    """As `_samples_of_mds`."""
    options = native_storage(store)
    folder, name, data = _index_of(url, options, _litdata.FAMILY)
    index = _litdata.parse(data, name)
    if block_size is not None and not index.are_tokens:
        raise InvalidArgument(
            f"{name} has samples of {_indexed.words(index.leaves)}, and block_size= is for chunks that were written "
            "with item_loader=TokensLoader()"
        )
    leaves = _litdata.choose(index, fields, wanted)
    options.derive_with(_litdata_packed.deriver(index.leaves, leaves))
    named = [leaf.name for leaf in leaves]
    said = json.dumps([_litdata.VERSION, named, block_size])
    told = hashlib.blake2b(said.encode() + data, digest_size=16)
    native = _native.Dataset.from_rows_made(
        places=[folder],
        store=options,
        make=lambda is_stopped: _litdata_chunks.rows_of(folder, options, index, leaves, block_size, is_stopped),
        description=f"litdata {told.hexdigest()}",
        refresh=refresh,
    )
    dtypes = {}
    for leaf in leaves:
        if leaf.dtype is not None:
            shape = () if leaf.size is not None else None if block_size is None else (block_size,)
            is_ragged = leaf.size is None and block_size is None
            dtypes[leaf.name] = Rows(np.dtype(leaf.dtype).newbyteorder("<"), is_ragged, shape)
    given = _recipe.options_said(fields=named, block_size=block_size, storage_options=store or None)
    return native, _made("litdata", [folder], given, native), dtypes


def _index_of(url: str, options: Any, family: _indexed.Family) -> tuple[str, str, bytes]:
    """The folder, and the name and the bytes of its index."""
    folder = _indexed.folder_of(url)
    name = _indexed.index_url(folder)
    try:
        return folder, name, _native.read_url(name, options, _indexed.MOST_INDEX_BYTES)
    except NotFound as error:
        raise _indexed.missing(folder, error, family) from None


def _made(how: str, what: list[Any], options: dict[str, Any], native: Any) -> Recipe:
    return Recipe(how, tuple(map(_recipe.place_anywhere, what)), options, native.digest)


def _no_field(name: Any, fields: Mapping[str, str], what: str = "") -> InvalidArgument:
    known = ", ".join(f"{field} ({kind})" for field, kind in fields.items())
    return InvalidArgument(f"no field {name!r}{what and ' '}{what}; there are {known}")


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
        raise InvalidArgument(f"{name}={value!r}; it is a whole number from 0")
    return value.__index__()
