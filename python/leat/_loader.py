"""The loader: batches of a dataset, in an order that is a function."""

from __future__ import annotations

import atexit
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Union

import numpy as np

from leat import _indexed, _litdata, _log, _mds, _native, _order, _parquet, ops as _ops
from leat._agreement import compare_ranks
from leat._arguments import checks_names, count
from leat._buckets import BucketOrder
from leat._budget import TokenBudget
from leat._budgeted import AddMicroBatches, BudgetOrder, budget_op
from leat._cache import CacheChoice, locality_of, options_of, shared_among
from leat._dataset import Dataset, Source
from leat._delivery import Collate, Delivery, Fields, Form, Output
from leat._lateness import Lateness, OwnWork
from leat._megatron_samples import MegatronSamples
from leat._mesh import RankChoice, mesh_of
from leat._mix import Begin, Mix
from leat._moved import MOVED
from leat._pack import Pack
from leat._packed import WINDOW, PackedOrder, PackRows, lengths_of, rows_maker, shuffled
from leat._ranks import check_place, pace_of, place_of
from leat._say import Introduction, LeftBehind, classes_met, drops_last, shown
from leat._shuffle import DropLast, Order, Sampler, Shuffled, order_of
from leat._storage import StorageOptions, checked_storage, native_storage
from leat._talk import Talk, Topic
from leat._traces import Trace, files_of
from leat._workers import FunctionWorkers
from leat.errors import InvalidArgument
from leat.ops import Op

_NOT_YET = (
    "its shards are being indexed by the first epoch (`leat index` does it before)"
)

_NO_LENGTH = "its sampler has no len(), so that iter() tells it"

_USUAL: Mapping[str, Any] = MappingProxyType({
    "hashes": True, "fetch_ahead": None, "tune": True, "start_threads": 0, "start_in_flight": 0,
    "tune_trace": "",
})  # fmt: skip
"""The engine's settings unless leat.research says otherwise."""

_NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})

Batch = Any
"""A dict or a tuple of arrays, as ``batch=`` says."""

# Names in the place of long types, so that help() stays short.
Places = Union[Source, Sequence[Source], Dataset]
OnError = Literal["raise", "substitute"]
Size = Union[str, int, None]


def _end(native: Any, workers: FunctionWorkers, talk: Talk | None) -> None:
    if talk:
        talk.close()
    native.close()
    workers.close()


@checks_names(MOVED)
class Loader:
    """Iterates over batches of a dataset, epoch after epoch.

        loader = leat.Loader("s3://bucket/photos", batch_size=64, train=True, ops=[...])

    Args (docs/reference/loader.md has them in full):
        source: a URL, a path, a pattern, a list of these, or a `leat.Dataset`.
        batch_size, global_batch_size: samples a step, for each rank or for all ranks.
        train: True shuffles and drops the last incomplete step; False does neither.
        shuffle: True, False, "full", "block", "stream" or a `leat.Shuffle`.
        sampler: a list, torch's sampler, a `leat.WeightedSampler`, `leat.SizeBuckets`,
            `leat.Pack` or `leat.TokenBudget`.
        seed: with the epoch, fixes the order and every random op.
        drop_last: True leaves the last incomplete step out; False keeps it; "pad" fills it
            with the epoch's first samples; "join" lets ranks end one batch apart.
        epochs: the number of epochs; the loader fetches nothing beyond them.
        fields: the fields of a batch, in order; a dict gives them other names.
        ids: adds ``index`` and ``key`` of each sample, and ``valid`` with "pad".
        batch: "tuple", "dict", or "auto": a tuple if ``fields`` is a sequence.
        ops: the operations on the fields; see `leat.ops`.
        collate: a function that makes a batch of a list of samples, in the calling thread.
        output: "numpy", "torch", "jax", or "auto": torch if it has been imported.
        pin_memory, device: for torch: as in its DataLoader; the device for batches.
        on_error: "raise", or "substitute": a good sample takes a bad one's place.
        cache: a `leat.Cache`, or "auto"; None keeps nothing.
        memory, threads, max_in_flight: upper bounds for this node; None lets Leat choose.
        trace: a file for a trace that Perfetto opens; or ``{"order_log": file}``, for
            `leat verify`, or ``{"timeline": file, "order_log": file}``.
        rank, world_size: this rank; None asks torch.distributed or the launcher. A `leat.Mesh`
            or a DeviceMesh as ``rank``, alone, says who reads the same.
        storage_options: a `leat.StorageOptions`, such as ``{"endpoint_url": "http://…"}``.

    Each array has its own memory: writable, and recycled once its last view is gone. Dense
    fields have shape ``(samples, ...)``; values of unequal length or shape come as
    `leat.Ragged`, texts as a list of str. An invalid option raises leat.InvalidArgument.
    """

    _settings = _NO_SETTINGS  # leat.research tells the engine more.

    def __init__(
        self,
        source: Places,
        *,
        batch_size: int | None = None,
        global_batch_size: int | None = None,
        train: bool | None = None,
        shuffle: Shuffled = None,
        sampler: Sampler = None,
        seed: int = 0,
        drop_last: DropLast = None,
        epochs: int | None = None,
        fields: Fields = None,
        ids: bool = False,
        batch: Form = "auto",
        ops: Sequence[Op] = (),
        collate: Collate = None,
        output: Output = "auto",
        pin_memory: bool = False,
        device: Any = None,
        on_error: OnError = "raise",
        cache: CacheChoice = None,
        memory: Size = None,
        threads: int | None = None,
        max_in_flight: int | None = None,
        trace: Trace = None,
        rank: RankChoice = None,
        world_size: int | None = None,
        storage_options: StorageOptions | None = None,
    ) -> None:
        own = source if isinstance(source, MegatronSamples) else None
        order = (order_of if own is None else own.order_as_given)(train, shuffle, sampler, drop_last)
        self._is_placed = rank is not None
        self._mesh = mesh_of(rank, world_size)
        if self._mesh is None:
            rank, world_size = place_of(rank, world_size)
        else:
            rank, world_size = self._mesh.rank, self._mesh.world_size
        if own is not None:
            own.check_beside(ops, fields, ids=ids, on_error=on_error)
        self._rows = _row_op(order, ops, on_error)
        if order.budget is not None and batch_size is None and global_batch_size is None:
            batch_size = 1
        if self._rows is not None:  # Ops of samples in Megatron's order get whole ones.
            ops = [*ops, self._rows] if own is None else [self._rows, *ops]
        self._delivery = Delivery(
            fields=fields, batch=batch, ops=ops, collate=collate, output=output,
            pin_memory=pin_memory, device=device,
        )  # fmt: skip
        wanted = self._delivery.fields_wanted(order.columns)
        self._dataset = _opened(source, order, wanted, storage_options)
        if self._dataset is not None:
            self._delivery.check_fields(self._dataset.fields)
        self._sampled = None
        if order.sampler is not None and not isinstance(order.sampler, _order.Told):
            self._sampled = _order.Sampled(order.sampler)
        threads = count("threads", threads, at_least=1)
        self._workers = FunctionWorkers(self._delivery.ops, threads)
        mesh = self._mesh
        is_shared = mesh is not None and mesh._has_copies and mesh.needs_data
        if is_shared:
            cache = shared_among(cache, memory=memory, reads_alone=_reads_alone(order, self._dataset, world_size))
        self._options = {
            **_USUAL,
            **_order_options(order, self._dataset),
            "global_batch_size": count("global_batch_size", global_batch_size),
            "batch_size": count("batch_size", batch_size),
            "seed": _seed(seed),
            "locality": locality_of(cache),
            "epochs": None if epochs is None else count("epochs", epochs),
            "ops": _ops.specs_to_json(self._delivery.ops),
            "functions": self._workers.functions,
            "fields": self._delivery.fields,
            "ids": ids,
            "collates": self._delivery.collates,
            "on_error": str(on_error),
            "recorded_filters": [op.name for op in self._delivery.ops if isinstance(op, _ops.Filter) and op.name],
            **files_of(trace, logs_order=mesh is None or mesh._speaks),
            "memory": None if memory is None else str(memory),
            "cache": options_of(cache, world_size if mesh is None else mesh.processes, is_shared=is_shared),
            "threads": threads,
            "max_in_flight": count("max_in_flight", max_in_flight, at_least=1),
            "rank": None if rank is None else count("rank", rank, below=2**32),
            "world_size": None
            if world_size is None
            else count("world_size", world_size, below=2**32),
            "process": None if mesh is None or mesh._is_plain else (mesh.process, mesh.processes),
            **self._settings,
        }
        if self._dataset is not None:
            self._native = _native.Loader(self._dataset._native, self._options)
            url, digest = self._dataset.url, self._dataset.digest
        else:
            url = os.fspath(source)  # type: ignore[arg-type]
            storage = native_storage(checked_storage(storage_options))
            self._native = _native.Loader.of_url(url, storage, "auto", self._options)
            _parquet.check_no_rows(self._native.dataset(), url)
            for family in (_mds.FAMILY, _litdata.FAMILY):
                _indexed.check_none(self._native.dataset(), url, family)
            # Shards that one rank has to index, another may have a catalogue of.
            digest = self.state_dict()["catalogue"]
        self._delivery.expect(self._native.field_names)
        if order.buckets is not None:
            self._sampled = _order.Sampled(self._in_buckets(order))
        if order.weighted is not None and order.weighted.may_change:
            draws = _draws_of(order, self.dataset)
            weighted = _order.ChangingWeights(order.weighted, self.dataset, self._options["seed"], draws)
            self._sampled = _order.Sampled(weighted)
        if order.pack is not None:
            self._sampled = _order.Sampled(self._in_rows(order, order.pack))
        if order.budget is not None:
            self._sampled = _order.Sampled(self._in_budget(order, order.budget))
        self._process, self._processes = self.rank, self.world_size
        if mesh is not None:
            self._process, self._processes = mesh.process, mesh.processes
        self._introduction: Introduction | None = None
        self._left_behind: LeftBehind | None = None
        """Until the first batch."""
        if self._process == 0:
            self._left_behind = LeftBehind(url, self._delivery.ops)
            drawn_by = _drawn_by(order, self._options["seed"])
            self._introduction = Introduction(
                url, self._options, drawn_by=drawn_by, is_end_said=drop_last is not None, ops=self._delivery.ops
            )
            if self._dataset is not None:
                classes_met.meet(url, self._dataset.classes)
        met = compare_ranks(
            url, digest, self._native.dealing, self._order_in_words(), self._processes
        )
        self._met = met
        place = (self._process, self._processes)
        self._lateness = None if met is None else Lateness(self._native, place, waits=not self._skips)
        self._pace = None if met is None else pace_of(self._native, *place)
        self._talk = None if met is None else Talk(*met, *place, self._topics())
        _alive.add(self)

    def _topics(self) -> list[Topic]:
        topics: list[Topic | None] = [self._lateness, self._pace]
        return [topic for topic in topics if topic is not None]

    def _order_in_words(self) -> str:
        """The part of the order that has to be the same on all ranks."""
        state, options = self.state_dict(), self._options
        pads, joins = options["pad"], options["join"]
        tail = "pads" if pads else "joins" if joins else "drops" if drops_last(options) else "keeps"
        return (
            f"{state['shuffle']} shuffle in windows of {state['shuffle_window']}, seed {state['seed']}, "
            f"steps of {state['global_batch_size']}, {tail} the last"
            + ("" if self._mesh is None else f", on a mesh of {self._mesh._words}")
        )

    @property
    def dataset(self) -> Dataset:
        """The loader's dataset. Raises an error while its shards are being indexed."""
        dataset = self._known_dataset()
        if dataset is None:
            raise InvalidArgument(f"the samples are not known yet; {_NOT_YET}")
        return dataset

    @property
    def rank(self) -> int:
        """The number of this rank, from 0 on. Processes of a mesh that read the same have one."""
        return self._native.rank

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self._native.world_size

    def __iter__(self) -> Iterator[Batch]:
        """Starts the next epoch if the running one has delivered a batch."""
        if not self._is_placed:
            check_place(self.rank, self.world_size)
        if self._sampled is not None:
            self._sampled.begin(self._native, len(self.dataset), self._met)
        iteration = self._native.begin_skipping() if self._skips else self._native.begin()
        self._introduce()
        if self._lateness is not None:
            self._lateness.epoch_begins(iteration, self.state_dict()["epoch"])
        return _Iterator(self, iteration)

    def _introduce(self) -> None:
        if self._introduction is not None:
            self._introduction.say(self)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank. TypeError while the number is unknown."""
        if self._sampled is not None:
            self._sampled.expect(self._native)
        length = self._steps()
        if length is None:
            raise TypeError(f"this loader has no length yet; {self._why_not_yet()}")
        return length

    def _steps(self) -> int | None:
        if self._sampled is not None:
            steps = self._sampled.steps(self.state_dict()["epoch"])
            if steps is not None:
                return steps
        return self._native.length()

    @property
    def remaining(self) -> int:
        """Batches of the running epoch that are yet to come. TypeError as for len()."""
        if self._sampled is not None:
            self._sampled.expect(self._native)
        remaining = self._native.remaining()
        if remaining is None:
            raise TypeError(f"nobody knows what remains yet; {self._why_not_yet()}")
        return remaining

    def peek(self) -> Batch | None:
        """A copy of the next batch; the position does not move. None at the end."""
        if self._skips:
            return None
        place = self._place()
        fields = self._native.peek()
        return None if fields is None else self._to_batch(fields, place)

    def set_epoch(self, epoch: int) -> None:
        """Makes ``epoch`` the one that iter() starts."""
        self._native.set_epoch(count("epoch", epoch))

    def state_dict(self) -> dict[str, Any]:
        """The delivered position: a few JSON values, the same on every rank."""
        state = json.loads(self._native.state())
        if isinstance(self._dataset, Mix):
            state["data"] = self._dataset.data()
        if self._sampled is not None:
            self._sampled.describe(state)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from a state, at any world size."""
        if self._goes_on_in_another_mix(state):  # May make another engine's loader.
            return
        if self._sampled is not None:
            self._sampled.check(state)
        fitted = self._fit_to_catalogue(state)  # So may this.
        self._native.load_state(json.dumps(fitted))

    def _goes_on_in_another_mix(self, state: dict[str, Any]) -> bool:
        """Begins the mix where that of the state began; or, if that is another one, where its
        sources stopped, and returns True."""
        if not isinstance(self._dataset, Mix) or not isinstance(state, dict) or state.get("drawn_by") != "mix":
            return False
        if self._options["mix"] is None:
            return False  # Its documents are packed.
        try:
            begin, is_another = self._dataset.begin_of(state, self.state_dict())
        except (KeyError, TypeError):
            return False  # The engine says what is missing.
        order = self._dataset.order_of(begin)
        if order != self._options["mix"] or is_another:
            self._options["mix"] = order
            self._reopen()
        if is_another:
            _log.logger.info(
                "%s: the state is of another mix: each source goes on where it stopped, and epoch %d begins with "
                "this one's sources and weights",
                shown(self._dataset.url), begin.epoch,
            )  # fmt: skip
        return is_another

    def _reopen(self) -> None:
        """Another engine's loader, by the options as they are now."""
        assert self._dataset is not None
        self._native.close()
        self._native = _native.Loader(self._dataset._native, self._options)
        for part in (self._lateness, self._pace):
            if part is not None:
                part._native = self._native

    def _fit_to_catalogue(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state, for the catalogue that is there; or that, for the state."""
        wanted = state.get("catalogue") if isinstance(state, dict) else None
        if self._dataset is None or not isinstance(wanted, str) or wanted == self._dataset.digest:
            return state
        native = self._dataset._native.earlier(wanted)
        if native is None:
            return state  # The loaded state says what differs.
        if state.get("position") == 0:
            self._check_labels(native.classes, state)
            return {**state, "catalogue": self._dataset.digest, "samples": len(self._dataset)}
        self._dataset = Dataset._of(native, self._dataset._dtypes)
        self._reopen()
        _log.logger.warning(
            "%s: the epoch goes on with the catalogue that it began with, of %d samples, and so "
            "does this loader; what has changed since is seen when one starts between two epochs",
            self._dataset.url, len(self._dataset),
        )
        return state

    def _check_labels(self, former: list[str], state: dict[str, Any]) -> None:
        """Raises `InvalidArgument` if a model that was trained up to the state knows other labels."""
        if changes := _native.label_changes(former, self.dataset.classes):
            raise InvalidArgument(
                f"{shown(self.dataset.url)}: since this state was saved, the classes have changed: {changes}. "
                f"To train on with the labels of now, call set_epoch({state.get('epoch')}) in place of "
                "load_state_dict()"
            )

    def to_tf(self) -> Any:
        """The loader as a tf.data.Dataset, for Keras too: each iteration is the next epoch."""
        from leat._frameworks import to_tf

        return to_tf(self)

    def to_jax(self, sharding: Any) -> Any:
        """Its batches as global arrays of jax, with this sharding, or with a dict's by field."""
        from leat._frameworks import JaxBatches

        return JaxBatches(self, sharding)

    def stats(self) -> list[dict[str, Any]]:
        """The time of training and its waits by cause: a dict for each of the last 256 epochs."""
        epochs = [json.loads(epoch) for epoch in self._native.stats()]
        if self._lateness is not None and self._process == 0:
            for epoch in epochs:
                epoch["late_rank"] = self._lateness.worst(epoch["epoch"])
        if self._sampled is not None:
            for epoch in epochs:
                if (balance := self._sampled.balance(epoch["epoch"])) is not None:
                    epoch["balance"] = balance
        return epochs

    def recent(self) -> dict[str, Any]:
        """The same for the last minute, to the second."""
        return self._native.recent()

    def watch(self, module: Any) -> None:
        """Measures this rank's own work in each step of training a torch.nn.Module."""
        if self._lateness is None:
            raise InvalidArgument(
                "watch() compares ranks, and these share no store: call "
                "torch.distributed.init_process_group() before making the loader"
            )
        self._lateness.watch(OwnWork(module))

    def decisions(self) -> list[dict[str, Any]]:
        """The changes of the tuner and of the cache, with their reasons."""
        return [json.loads(decision) for decision in self._native.decisions()]

    def explain(self) -> dict[str, Any] | None:
        """Explains what limits the speed, and the gain of one more of each resource."""
        found = self._native.explain()
        return None if found is None else json.loads(found)

    def metrics(self) -> dict[str, int]:
        """The counters and gauges of this loader; docs/reference/metrics.md."""
        return self._native.metrics()

    def ledger(self) -> dict[str, Any]:
        """The requests of this rank so far, and their cost; docs/reference/ledger.md."""
        return json.loads(self._native.ledger())

    def close(self) -> None:
        """Ends threads, processes and requests; twice does no harm. Batches stay valid."""
        _end(self._native, self._workers, getattr(self, "_talk", None))

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Also runs when __init__ failed, before there is anything to close.
        native = getattr(self, "_native", None)
        if not native:
            return
        if native.is_in_own_function():  # Collected there; it would wait for itself.
            parts = (native, self._workers, getattr(self, "_talk", None))
            threading.Thread(target=_end, args=parts).start()
        else:
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a leat.Loader has threads and cannot be pickled; make one in each process"
        )

    def __repr__(self) -> str:
        dataset, length = self._known_dataset(), self._native.length()
        if dataset is None or length is None:
            return "leat.Loader(shards that the first epoch indexes)"
        return f"leat.Loader({dataset!r}, {length} batches an epoch)"

    def _known_dataset(self) -> Dataset | None:
        """None while shards have yet to be indexed."""
        if self._dataset is None and (native := self._native.dataset()) is not None:
            self._dataset = Dataset._of(native)
        return self._dataset

    def _why_not_yet(self) -> str:
        return _NO_LENGTH if self._sampled is not None else _NOT_YET

    def _in_buckets(self, order: Order) -> BucketOrder:
        buckets, step = order.buckets, self.state_dict()["global_batch_size"]
        assert buckets is not None
        return BucketOrder(
            buckets.sizes_of(self.dataset), buckets.count, step,
            seed=self._options["seed"], shuffles=order.mixes,
        )  # fmt: skip

    def _in_rows(self, order: Order, pack: Pack) -> PackedOrder:
        rows, drops = self.state_dict()["global_batch_size"], self._options["drop_last"]
        if isinstance(self.dataset, MegatronSamples):
            packed = self.dataset.rows_of(rows, ranks=self.world_size, drops=drops)
        else:
            packed = PackedOrder(
                pack, lengths_of(pack, self.dataset), rows,
                documents_of=self._taken_of(order), seed=self._options["seed"] if order.mixes else None,
                ranks=self.world_size, drops=drops,
            )  # fmt: skip
        assert isinstance(self._rows, PackRows)
        self._rows.expect(packed)
        return packed

    def _in_budget(self, order: Order, budget: TokenBudget) -> BudgetOrder:
        # A mix has its weights in each window.
        window = WINDOW if isinstance(self.dataset, Mix) else max(1, len(self.dataset))
        made = BudgetOrder(
            budget, budget.lengths_of(self.dataset), self.state_dict()["global_batch_size"],
            samples_of=self._taken_of(order), window=window, seed=self._options["seed"] if order.mixes else None,
            ranks=self.world_size, drops=self._options["drop_last"],
        )  # fmt: skip
        if isinstance(self._rows, AddMicroBatches):
            self._rows.expect(made)
        return made

    def _taken_of(self, order: Order) -> Callable[[int], np.ndarray]:
        """The samples of an epoch, in the order in which rows take them."""
        seed, dataset = self._options["seed"], self.dataset
        if isinstance(dataset, Mix):
            dataset.check_rows("leat.TokenBudget" if order.pack is None else "leat.Pack")

        def taken(epoch: int) -> np.ndarray:
            if isinstance(dataset, Mix):
                return _native.mixed_documents(dataset.order_of(Begin()), seed, order.mixes, epoch).astype(np.int64)
            return shuffled(len(dataset), seed, epoch) if order.mixes else np.arange(len(dataset))

        return taken

    def _next(self, iteration: int) -> tuple[bool, Batch | None]:
        """The next batch; (False, None) at the end. A process that needs none gets None each step."""
        if self._skips:
            return self._native.skip(iteration), None
        place = self._place()
        fields = self._native.next(iteration)
        return (False, None) if fields is None else (True, self._to_batch(fields, place))

    @property
    def _skips(self) -> bool:
        return self._mesh is not None and not self._mesh.needs_data

    def _to_batch(self, fields: list[tuple[str, Any]], place: tuple[int, ...]) -> Batch:
        if self._left_behind is not None:
            self._left_behind.meet(fields)
            self._left_behind = None
        dtypes = {} if self._dataset is None else self._dataset._dtypes
        return self._delivery.batch_of(fields, dtypes, place)

    def _place(self) -> tuple[int, ...]:
        """The place of the next batch, for functions of batches that draw."""
        if not self._delivery.draws:
            return ()
        state = self.state_dict()
        return (state["seed"], state["epoch"], state["position"], self.rank)


def _opened(
    source: Places, order: Order, wanted: frozenset[str] | None, storage_options: StorageOptions | None
) -> Dataset | None:
    """The dataset; None of a stream of shards, which may have no index yet."""
    if isinstance(source, Dataset):
        if storage_options is not None:
            raise InvalidArgument(
                "storage_options= beside a leat.Dataset, which is open already; give them to "
                "leat.Dataset"
            )
        return source
    if order.shuffle == "stream" and _parquet.may_be_shards(source):
        return None
    return Dataset._of_source(source, wanted, storage_options)


def _row_op(order: Order, ops: Sequence[Op], on_error: str) -> PackRows | AddMicroBatches | None:
    """The op that lays out rows, or tells where they end."""
    if order.pack is not None:
        return rows_maker(order.pack, ops, on_error)
    return budget_op(order.budget, ops, on_error) if order.budget is not None else None


def _reads_alone(order: Order, dataset: Dataset | None, world_size: int | None) -> str:
    """Why the processes of one rank share no cache unless the user gives one; "" if they do.

    With a cache, these orders fetch samples one by one, and no pieces of shards.
    """
    if dataset is None:
        return "a stream indexes its shards as it reads them"
    is_drawn = order.weighted is not None or order.sampler is not None or order.buckets is not None
    if not dataset._native.has_shards or is_drawn or order.has_rows:
        return ""
    if isinstance(dataset, Mix) and order.shuffle in ("auto", "block"):
        return "a cache would keep a mix from reading its shards in pieces"
    if order.shuffle == "none" and not isinstance(dataset, Mix) and world_size != 1:
        return "a cache would keep ranks from reading shards in pieces, without a shuffle"
    return ""


def _seed(seed: int) -> int:
    if seed is None:
        raise InvalidArgument(
            "seed=None; elsewhere it means another order in each run, and here the order is a function of "
            "the seed: give a number, the same on all ranks; for another order in each run, one process "
            "may draw it, with random.randrange(2**63). Without seed= it is 0"
        )
    return count("seed", seed)


def _drawn_by(order: Order, seed: int) -> str:
    """The words for an order whose length nobody knows yet; empty for others."""
    if order.buckets is not None:
        return "steps of like size" + (f", seed {seed}" if order.mixes else "")
    if order.pack is not None and not order.pack.adds:
        return f"Megatron's order, samples of {order.pack.capacity:,} tokens"
    if order.pack is not None:
        return f"rows of {order.pack.capacity:,} tokens" + (f", seed {seed}" if order.mixes else "")
    if order.budget is not None:
        return f"micro-batches of at most {order.budget.max_tokens:,} tokens" + (
            f", seed {seed}" if order.mixes else ""
        )
    if order.weighted is not None and order.weighted.may_change:
        return f"drawn by weights that may change, seed {seed}"
    return "in a sampler's order" if order.sampler is not None else ""


def _draws_of(order: Order, dataset: Dataset) -> int:
    """The draws of an epoch by weights."""
    assert order.weighted is not None
    if order.weighted.num_samples is None:
        return len(dataset)
    return count("num_samples", order.weighted.num_samples, at_least=1, below=2**40)


def _order_options(order: Order, dataset: Dataset | None) -> dict[str, Any]:
    """The order, for the engine."""
    weights, drawn, changes = None, 0, False
    if order.weighted is not None:
        assert dataset is not None, "only a stream has none, and a sampler is no stream"
        changes = order.weighted.may_change
        if not changes:
            weights, drawn = _order.weights_of(order.weighted.weights, dataset), _draws_of(order, dataset)
    return {
        "shuffle": order.shuffle,
        "shuffle_window": order.window,
        "weights": weights,
        "mix": dataset.order_of(Begin()) if isinstance(dataset, Mix) and not order.has_rows else None,
        "samples_per_epoch": drawn,
        "sampler": changes or order.has_rows or order.sampler is not None or order.buckets is not None,
        "drop_last": order.drop_last,
        "pad": order.pad,
        "join": order.join,
    }


class _Iterator:
    """One pass over an epoch."""

    def __init__(self, loader: Loader, iteration: int) -> None:
        self._loader = loader
        self._iteration = iteration
        self._is_done = False
        self._has_begun = False

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Batch:
        if self._is_done:  # For good, however the loader goes on.
            raise StopIteration
        lateness, talk = self._loader._lateness, self._loader._talk
        if lateness is not None and talk is not None and self._has_begun:
            lateness.step_ended()
            talk.trained()
        has_one, batch = self._loader._next(self._iteration)
        if not has_one:
            self._is_done = True
            if lateness is not None and talk is not None:
                lateness.epoch_ended()
                talk.epoch_ended()
            self._loader._introduce()
            raise StopIteration
        self._has_begun = True
        if lateness is not None:
            lateness.step_begins()
        return batch


_alive: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads of the engine must not outlive the interpreter.
    for loader in list(_alive):
        loader.close()
