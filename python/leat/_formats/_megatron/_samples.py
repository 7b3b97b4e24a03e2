"""Corpora of Megatron-LM as samples of one length, in Megatron's order."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from leat import _native, _recipe
from leat._arguments import count
from leat._dataset import Dataset, Rows, Source
from leat._formats._megatron import _index, _order as _rule
from leat._formats._megatron._order import Part, Pieces, Stream
from leat._orders._chosen import Order, order_of
from leat._orders._epochs import Arrangement, EpochOrder, Epochs
from leat._orders._pack import Pack, Rows as PackedRows
from leat._orders._packed import PackedOrder, PackRows
from leat._recipe import Recipe
from leat._storage import StorageOptions, checked_storage, native_storage
from leat.errors import Corrupt, InvalidArgument
from leat.ops import Op, Python
from leat.ops._mix import BatchOp

_VERSION = 1


class Cut(NamedTuple):
    """The arguments of `leat.Dataset.megatron` for Megatron's order."""

    seq_len: int
    seed: int
    samples: int | None
    split: str | None
    part: Part
    extra: int


class _Corpus(NamedTuple):
    prefix: str
    data: bytes
    """The bytes of the ``.idx``."""
    sequences: _index.Sequences


class _Plan(NamedTuple):
    """The pieces of all samples, in their order."""

    corpora: np.ndarray
    pieces: Pieces
    ends: np.ndarray
    """The number of pieces before each sample, and of all."""


class MegatronSamples(Dataset):
    """A `leat.Dataset` whose samples are those of Megatron's GPTDataset or BlendedDataset, in
    their order: see `leat.Dataset.megatron`. The engine's samples are their pieces."""

    def _set_rows(self, rows: PackedRows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, sample: int) -> str:
        """The name of a sample: the file, and the byte that its first token begins with."""
        return super().key(int(self._rows.offsets[sample]))

    def lengths(self, name: str) -> np.ndarray:
        """The numbers of bytes of a sample's tokens: int64, of shape ``(samples,)``."""
        self._want_bytes("lengths", name)
        return np.full(len(self), self._rows.capacity * self._dtypes[name].dtype.itemsize)

    def select(self, samples: Sequence[int] | np.ndarray) -> Dataset:
        """Raises an error: these samples have Megatron's order."""
        raise self._refused("choose samples by samples=, split= and part=")

    def parsed(self, name: str, parse: Any) -> np.ndarray:
        """Raises an error: a sample has several pieces."""
        raise self._refused("parse documents, of leat.Dataset.megatron without order=")

    def _check_joins(self, how: str) -> None:
        raise self._refused(
            f"{how} would part them; give leat.Dataset.megatron the blend: [weight, path, weight, path, …]"
        )

    def _refused(self, remedy: str) -> InvalidArgument:
        return InvalidArgument(f"{self.url}: samples are in Megatron's order, each cut of several documents; {remedy}")

    def _sample(self, number: int, leave_out: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        if "tokens" in leave_out:
            return {"tokens": leave_out["tokens"]}
        first, end = self._rows.offsets[number], self._rows.offsets[number + 1]
        pieces = [super(MegatronSamples, self)._sample(piece)["tokens"] for piece in range(first, end)]
        return {"tokens": np.concatenate(pieces)}

    def state_after(self, consumed_samples: int, state: Mapping[str, Any]) -> dict[str, Any]:
        """The state of a loader that has delivered as many samples, such as Megatron's training had::

            loader.load_state_dict(data.state_after(consumed_samples, loader.state_dict()))

        Args:
            consumed_samples: as Megatron's checkpoint has it, of all steps and ranks.
            state: of a loader of these samples that has delivered none.

        Raises:
            leat.InvalidArgument: there are not so many, or the state is another loader's.
        """
        number = count("consumed_samples", consumed_samples, below=len(self))
        if state.get("catalogue") != self.digest or state.get("position") != 0:
            raise self._refused("state= is that of a loader of these samples that has delivered none")
        return {**state, "position": int(self._rows.offsets[number])}

    def _order_as_given(self, train: bool | None, shuffle: Any, sampler: Any, drop_last: Any) -> Order:
        for name, value in (("shuffle", shuffle), ("sampler", sampler)):
            if value is not None and value is not False:
                raise self._refused(f"leave {name}= out, which says another order")
        if train is None and drop_last is None:
            train = True
        order = order_of(train, False, None, drop_last)
        if order.pad:
            raise self._refused('drop_last="pad" fills a step with single pieces; leave it out')
        drops = train is True if drop_last is None else order.drop_last
        return dataclasses.replace(order, arrangement=_InMegatronsOrder(self), drop_last=drops)


class _InMegatronsOrder(Arrangement):
    """Rows of pieces: each row is a sample."""

    unit = "rows"

    def __init__(self, samples: MegatronSamples) -> None:
        self._samples = samples
        self._op = PackRows(_pack_of(samples._rows.capacity))

    def ops_beside(self, ops: Sequence[Op], fields: Any, *, ids: bool, on_error: str) -> Sequence[Op]:
        refused = self._samples._refused
        named = fields.values() if isinstance(fields, Mapping) else fields or ()
        if ids or not {"index", "key"}.isdisjoint(named):
            raise refused(
                "index and key would be those of the pieces; leave ids= out: the position in the epoch is the number "
                "of the sample"
            )
        if on_error != "raise":
            raise refused(f"on_error={on_error!r} would put a piece in the place of another; leave it out")
        for op in ops:
            if not isinstance(op, BatchOp) and not (isinstance(op, Python) and op.per == "batch"):
                raise refused(
                    f"{type(op).__name__} would get the pieces one by one; give ops of whole batches, "
                    'such as leat.ops.Documents or leat.ops.Python(function, per="batch")'
                )
        return [self._op, *ops]  # Ops get whole samples.

    def words(self, seed: int, *, mixes: bool) -> str:
        return f"Megatron's order, samples of {self._samples._rows.capacity:,} tokens"

    def order(self, epochs: Epochs) -> EpochOrder:
        made = _Told(
            self._samples._rows, epochs.rows_of_a_step, ranks=epochs.ranks, drops=bool(epochs.drops)
        )
        self._op.expect(made)
        return made


class _Told(PackedOrder):
    """The same rows in each epoch."""

    def __init__(self, rows: PackedRows, rows_of_a_step: int, *, ranks: int, drops: bool) -> None:
        none = np.empty(0, np.int64)
        super().__init__(
            _pack_of(rows.capacity), rows.lengths, rows_of_a_step, documents_of=lambda epoch: none, seed=None, ranks=ranks, drops=drops
        )
        self._rows = rows

    def set_epoch(self, epoch: int) -> None:
        """Changes nothing: Megatron has no epochs but those that its samples need."""


def _pack_of(capacity: int) -> Pack:
    return Pack(capacity, method="concat_then_split", adds=())


def open_samples(
    url: Source | Sequence[Any], cut: Cut, refresh: str, storage_options: StorageOptions | None
) -> MegatronSamples:
    """The samples of a corpus, or of a blend.

    Raises:
        leat.InvalidArgument: an argument that cannot be, or tokens of different types.
        leat.NotFound, leat.Corrupt: as `leat.Dataset.megatron`.
    """
    is_one = isinstance(url, (str, os.PathLike))
    paths, weights = _rule.blend_of([os.fspath(url)] if isinstance(url, (str, os.PathLike)) else url)
    store = checked_storage(storage_options)
    options = native_storage(store)
    corpora = [_corpus(path, options) for path in paths]
    dtype = corpora[0].sequences.dtype
    for other in corpora[1:]:
        if other.sequences.dtype != dtype:
            raise InvalidArgument(
                f"{corpora[0].prefix} has tokens of {dtype.name}, and {other.prefix} of {other.sequences.dtype.name}; "
                "write all corpora of a blend with one type"
            )
    plan = _planned(corpora, weights, cut, is_blend=not is_one)
    digest = hashlib.blake2b(json.dumps([_VERSION, weights, *cut]).encode(), digest_size=16)
    for corpus in corpora:
        digest.update(corpus.prefix.rpartition("/")[2].encode() + b"\0" + corpus.data)
    native = _opened(corpora, plan, options, f"megatron order {digest.hexdigest()}", refresh)
    given = _recipe.options_said(
        order="megatron", seq_len=cut.seq_len, samples=cut.samples, split=cut.split, part=cut.part,
        storage_options=store or None,
    )  # fmt: skip
    given.update(seed=cut.seed, extra_token=bool(cut.extra))
    places = [_recipe.place_anywhere(corpus.prefix) for corpus in corpora]
    what: Any = places[0] if is_one else places
    if weights is not None:
        what = [word for weight, place in zip(weights, places) for word in (repr(weight), place)]
    recipe = Recipe("megatron", (what,), given, native.digest)
    made = MegatronSamples._of(native, {"tokens": Rows(dtype, is_ragged=True)}, recipe)
    assert isinstance(made, MegatronSamples)
    none = np.zeros(len(plan.corpora), np.int64)
    made._set_rows(
        PackedRows(cut.seq_len + cut.extra, np.arange(len(none)), none, plan.pieces.lengths, plan.ends)
    )
    return made


def _corpus(path: str, options: Any) -> _Corpus:
    prefix = _index.prefix_of(path)
    data = _native.read_url(prefix + ".idx", options, _index.MOST_INDEX_BYTES)
    return _Corpus(prefix, data, _index.sequences(data, prefix + ".idx"))


def _planned(corpora: Sequence[_Corpus], weights: list[float] | None, cut: Cut, *, is_blend: bool) -> _Plan:
    # Megatron blends one path that has a weight; but not if that is the path of one part of the data.
    is_single = len(corpora) == 1 and (weights is None or cut.split is None)
    shares = None if weights is None or is_single else _rule.normalized(weights)
    wanted = _rule.Wanted([cut.samples], cut.samples)
    if not is_single:
        wanted = _rule.wanted_of(shares, cut.samples, len(corpora))
    streams = []
    for corpus, asked in zip(corpora, wanted.of_each):
        sizes = corpus.sequences.sizes
        chosen = _rule.part_of(cut.split, cut.part, len(sizes))
        streams.append(Stream(sizes, chosen, cut.seq_len, cut.extra, asked, cut.seed, corpus.prefix))
    turns = np.zeros(len(streams[0]), np.int64) if is_single else _turns(streams, shares, wanted.of_all)
    if cut.samples is not None:
        turns = turns[: cut.samples]
    return _joined(streams, corpora, turns)


def _turns(streams: Sequence[Stream], shares: list[float] | None, of_all: int | None) -> np.ndarray:
    sizes = [len(stream) for stream in streams]
    if shares is None and of_all is None:
        return _rule.turns_of_all(sizes)
    if shares is None:
        shares, of_all = [float(size) for size in sizes], min(of_all or 0, sum(sizes))
    assert of_all is not None
    return _rule.turns_by_weight(_rule.normalized(shares), of_all)


def _joined(streams: Sequence[Stream], corpora: Sequence[_Corpus], turns: np.ndarray) -> _Plan:
    parts, numbers, places = [], [], []
    for number, (stream, corpus) in enumerate(zip(streams, corpora)):
        mine = np.flatnonzero(turns == number)
        if len(mine) > len(stream):
            raise InvalidArgument(
                f"the blend asks for {len(mine)} samples of {corpus.prefix}, which gives {len(stream)}; Megatron, too, "
                "raises an error here: ask for a few samples more or fewer"
            )
        pieces = stream.pieces(len(mine))
        parts.append(pieces)
        numbers.append(np.full(len(pieces.samples), number))
        places.append(mine[pieces.samples])
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    pieces = Pieces(*(np.concatenate(each)[order] for each in zip(*parts)))
    ends = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(turns)))])
    return _Plan(np.concatenate(numbers)[order], pieces, ends)


def _opened(corpora: Sequence[_Corpus], plan: _Plan, options: Any, description: str, refresh: str) -> Any:
    """The engine's dataset of the pieces."""
    folders = list(dict.fromkeys(corpus.prefix.rpartition("/")[0] or "." for corpus in corpora))
    numbered = [corpus.prefix.rpartition("/")[::2] for corpus in corpora]
    several = len(folders) > 1
    keys = [(f"{folders.index(folder or '.')}/" if several else "") + f"{name}.bin" for folder, name in numbered]

    def make(_is_stopped: Any) -> tuple[Any, ...]:
        offsets = np.empty(len(plan.corpora), np.uint64)
        lengths = np.empty(len(plan.corpora), np.uint64)
        for number, corpus in enumerate(corpora):
            mine = plan.corpora == number
            item = corpus.sequences.dtype.itemsize
            begins = corpus.sequences.pointers[plan.pieces.sequences[mine]]
            offsets[mine] = begins + plan.pieces.begins[mine] * item
            lengths[mine] = plan.pieces.lengths[mine] * item
        objects = [keys[number] for number in plan.corpora.tolist()]
        names = [f"{key}:{offset}" for key, offset in zip(objects, offsets.tolist())]
        return len(objects), names, [("tokens", "bytes", objects, None, offsets, lengths)], []

    try:
        return _native.Dataset.from_rows_made(
            places=folders, store=options, make=make, description=description, refresh=refresh
        )
    except InvalidArgument as error:
        if "outside their object" not in str(error):
            raise
        bins = " or ".join(dict.fromkeys(f"{corpus.prefix}.bin" for corpus in corpora))
        raise Corrupt(f"{bins} ends before the tokens that its .idx names: {error}") from None


def checked_cut(given: dict[str, Any]) -> Cut:
    """The arguments, as far as they can be known to be right before a file is read.

    Raises:
        leat.InvalidArgument: one that cannot be; names it.
    """
    if given["seq_len"] is None:
        raise InvalidArgument('order="megatron" cuts samples of one length; give seq_len=, as --seq-length says it')
    samples, seed, split = given["samples"], given["seed"], given["split"]
    if split is not None and not isinstance(split, str):
        raise InvalidArgument(f'split={split!r}; it is a text with the shares of train, valid and test: "969,30,1"')
    return Cut(
        count("seq_len", given["seq_len"], at_least=1, below=2**31 - 1),
        1234 if seed is None else count("seed", seed, below=2**32),
        None if samples is None else count("samples", samples, at_least=1, below=2**40),
        split,
        "train" if given["part"] is None else given["part"],
        1 if given["extra_token"] is None else int(bool(given["extra_token"])),
    )
