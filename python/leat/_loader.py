"""The loader: batches of a dataset, in an order that is a function."""

from __future__ import annotations

import atexit
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from leat import _batch, _dtypes, _functions, _log, _native, _order, _outputs, ops as _ops
from leat._agreement import compare_ranks
from leat._arguments import count, names_of, order_of, tuning
from leat._lateness import Lateness, OwnWork
from leat._ranks import check_place, pace_of, place_in_torch_distributed
from leat._say import Introduction
from leat._buckets import BucketOrder, SizeBuckets
from leat._cache import Cache, options_of
from leat._dataset import Dataset, Source, store_options
from leat.errors import InvalidArgument
from leat.fetch_ahead import FetchAhead, pair_of

_NOT_YET = (
    "its shards are being indexed by the first epoch (`leat index` does it before)"
)

_NO_LENGTH = "its sampler has no len(), so that iter() tells it"

Batch = Any
"""A dict or a tuple of arrays, as ``batch=`` says."""


class Loader:
    """Iterates over batches of a dataset, epoch after epoch.

    Args:
        source: a `leat.Dataset`, or what one is made of: a URL, a path, a pattern, or
            a list of these.
        global_batch_size: samples a step over all ranks. Or
        batch_size: samples a step of each rank.
        train: True shuffles, and leaves out the last incomplete step; False keeps
            the samples' order and delivers each. It has to be said, or else
        shuffle: True shuffles in full over objects and in blocks over shards;
            ``"full"`` and ``"block"`` force it; False keeps the samples' order.
            None: as ``train`` says.
            ``"stream"`` mixes windows of shards as they lie: shards at a URL that
            nobody has indexed are then indexed while the first epoch runs.
        weights: draws samples, with replacement, each as often as its weight says: an
            array of shape ``(len(dataset),)`` of numbers from 0 on, or the name of a
            column of such. A function of (seed, epoch, position), whatever the
            world; then ``shuffle=`` is left out, and a last step that is not whole, too.
        samples_per_epoch: how many ``weights`` draw; None for as many as the dataset has.
        sampler: gives the order of each epoch, of all ranks: numbers of samples, anew
            with each iter(), such as a list or a Sampler of torch's, after
            ``set_epoch(epoch)`` if it has that. The same on all ranks, to whom steps are
            dealt as ever. ``shuffle=`` is left out; nothing is dropped unless asked.
        buckets: a `leat.SizeBuckets`: steps of samples of like size, so that padding
            wastes little. With ``shuffle=True`` or ``False``, or ``train=``. Shards are
            read sample by sample then.
        seed: with the epoch, fixes the order and every random op.
        shuffle_window: pieces of shards, about 8 MiB each, that a block shuffle
            or a stream mixes at a time.
        locality: deals the samples of each step to the ranks that met them in
            earlier epochs, as far as all get as many: caches of several nodes then
            hit more. Steps keep their samples. Not for a BatchNorm whose statistics
            are a rank's own. The same on all ranks. ``"sticky"``: every sample has a
            rank where it is at home. ``"remap"``: to the rank whose cache holds it,
            in a simulation of all caches, which are then of the same size on every
            node. ``"balance"``: so too, and dealt so that all ranks fetch evenly. These
            two begin with epoch 1 of a ``"stream"``.
        fields: which fields come, and in which order; None for all. ``index``
            (int64 sample ids) and ``key`` may be among them, and ``valid`` of ``pad``.
        ids: adds ``index`` and ``key``, and ``valid`` where there is ``pad``.
        rename: other names for fields in a batch, such as ``{"label": "labels"}``.
            Everything else here names them as they were.
        batch: ``"tuple"``, ``"dict"`` of name to array, or ``"auto"`` (default): a
            tuple if ``fields`` are given, else a dict. Such a dict refuses to be
            unpacked as a tuple, which would give its names.
        ops: what is done to the fields; see `leat.ops`.
        collate: makes of the samples of a batch, a list of dicts or tuples, what is
            delivered in its place; in the thread that calls next(). Each sample has
            arrays of its own shape, whatever that is.
        output: ``"numpy"``, ``"torch"`` or ``"jax"`` (by DLPack; jax makes 32-bit
            integers of 64-bit ones unless told otherwise). ``"auto"`` (default): torch
            if the program has imported it before it makes the loader, else numpy.
        pin_memory: of torch: whether batches come in memory of torch's host
            allocator, from which copies to a device run beside the program.
        device: of torch: where batches go, such as ``"cuda"``; they are pinned and
            copied on a stream of their own, for which the current one waits.
        drop_last: whether samples after the last whole step are left out; None
            does so if shuffled, unless ``train=False``.
        pad: fills the last step with the epoch's first samples, so that ranks
            are equal. The field ``valid`` (bool), which is False of these, comes if
            ``fields`` names it, or with ``ids``.
        join: that some ranks may get a batch less than others: they do not meet in
            the loop, or they do in torch's Join. Else an epoch that would end so
            is refused, as ranks that meet in each step would hang.
        epochs: how many there will be, if known: nothing is fetched past them.
        on_error: ``"raise"``, or ``"substitute"``: a corrupt or missing sample's
            place is taken by the next good one of the same batch, and counted.
        memory: bytes that this node's ranks may hold on the way, together, such as
            ``"64MiB"``; None for 2 GiB, at most a quarter of what there is.
        cache: a `leat.Cache`, which keeps what was fetched for later epochs and
            runs, or ``"auto"``, which chooses one from what is free; None for
            none.
        threads: that decode, of this node; None for as many as it may use CPUs.
        max_in_flight: requests in flight, of this node; None for 128.
        fetch_ahead: a `leat.FetchAhead`: reads ahead as DELI does, to compare with; None
            for as far ahead as latency and the rate of training ask for.
        tune: whether threads and requests in flight are tuned while training runs,
            within ``threads`` and ``max_in_flight`` where they are given. Else requests
            may grow to four times what is said above; threads too if a function of
            yours is among ``ops``, else to twice as many as CPUs where tasks get
            less than one each, and neither an agent nor ranks divide them. A dict says where to begin, of this rank,
            such as ``{"threads": 1, "max_in_flight": 1}``. Order and content do not
            depend on it. LEAT_TUNE=off in the environment turns it off.
        tune_trace: a file for what the tuner sees, for ``leat explain --replay``.
        hashes: whether `stats` holds order and content hashes.
        trace: a file for a trace that Perfetto and chrome://tracing open: a
            slice for each fetch, decode, batch, wait and step; of more than 5,000
            samples a second, that many are drawn. With several ranks
            each has its own: ``t.json`` becomes ``t.rank3.json``. `leat.trace.merge`
            lays it over others and over torch.profiler's.
        rank, world_size: who this is; None asks torch.distributed, if the program
            has initialised it, else the launcher's environment.
        refresh, endpoint_url, region, profile, no_sign_request, requester_pays:
            of `leat.Dataset`.

    Each array is over memory of its own: writable, and recycled once the last
    view of it is gone. Dense fields have shape ``(samples, ...)``; bytes that no
    op has decoded, and lists and pictures that an op's `ragged` lets differ,
    come as `leat.Ragged`; pictures may be filled up to one size by
    `leat.ops.PadTo`, and have any in batches of one; texts as a list of str.

    Raises:
        leat.InvalidArgument: an option that cannot be; the message says why.
    """

    def __init__(
        self,
        source: Source | Sequence[Source] | Dataset,
        *,
        global_batch_size: int | None = None,
        batch_size: int | None = None,
        train: bool | None = None,
        shuffle: bool | Literal["full", "block", "stream"] | None = None,
        weights: Sequence[float] | str | Any = None,
        samples_per_epoch: int | None = None,
        sampler: Iterable[int] | None = None,
        buckets: SizeBuckets | None = None,
        seed: int = 0,
        shuffle_window: int = 16,
        locality: Literal["none", "sticky", "remap", "balance"] = "none",
        fields: Sequence[str] | None = None,
        ids: bool = False,
        rename: Mapping[str, str] | None = None,
        batch: Literal["auto", "dict", "tuple"] = "auto",
        ops: Sequence[_ops.Op] = (),
        collate: Callable[[list[Any]], Any] | None = None,
        output: Literal["auto", "numpy", "torch", "jax"] = "auto",
        pin_memory: bool = False,
        device: Any = None,
        drop_last: bool | None = None,
        pad: bool = False,
        join: bool = False,
        epochs: int | None = None,
        on_error: Literal["raise", "substitute"] = "raise",
        memory: str | int | None = None,
        cache: Cache | Literal["auto"] | None = None,
        threads: int | None = None,
        max_in_flight: int | None = None,
        fetch_ahead: FetchAhead | None = None,
        tune: bool | dict[str, int] = True,
        tune_trace: str | os.PathLike[str] | None = None,
        hashes: bool = True,
        trace: str | os.PathLike[str] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        refresh: str = "auto",
        endpoint_url: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        no_sign_request: bool = False,
        requester_pays: bool = False,
    ) -> None:
        _order.check_one_order(shuffle, weights, samples_per_epoch, sampler)
        if weights is not None or sampler is not None:
            shuffle = weights is not None
            drop_last = train if drop_last is None else drop_last
        order, drop_last = order_of(train, shuffle, drop_last)
        mixes_buckets = order != "none"
        if buckets is not None:
            _order.check_buckets(buckets, order, weights, sampler)
            order, drop_last = "none", mixes_buckets if drop_last is None else drop_last
        if (rank is None) != (world_size is None):
            raise InvalidArgument(
                "rank= and world_size= are given together or not at all"
            )
        self._is_placed = rank is not None
        if rank is None:
            rank, world_size = place_in_torch_distributed()
        store = {
            "endpoint_url": endpoint_url,
            "region": region,
            "profile": profile,
            "no_sign_request": no_sign_request,
            "requester_pays": requester_pays,
        }
        self._dataset: Dataset | None = None
        if isinstance(source, Dataset):
            self._dataset = source
        elif order != "stream" or not isinstance(source, (str, os.PathLike)):
            self._dataset = Dataset(source, refresh=refresh, **store)
        if weights is not None:
            weights = _order.weights_of(weights, self._dataset)
        self._sampled = None
        if sampler is not None and not isinstance(sampler, _order.Told):
            self._sampled = _order.Sampled(sampler)
        if collate is not None and not callable(collate):
            raise InvalidArgument(f"collate={collate!r}; it is a function")
        ops = _ops.listed(ops)
        names = names_of(fields)
        self._batch = _batch.choose(batch, names)
        self._collate = collate
        self._batch_functions = [
            op.for_batch(place)
            for place, op in enumerate(ops)
            if getattr(op, "per", None) == "batch"
        ]
        output = _outputs.name_of(output, pins=pin_memory, device=device)
        _dtypes.check(ops, output)
        self._to_output = _outputs.choose(output, pins=pin_memory, device=device)
        if self._batch == "dict":
            _batch.register_as_tree(output)
        options = {
            "global_batch_size": count("global_batch_size", global_batch_size),
            "batch_size": count("batch_size", batch_size),
            "shuffle": order,
            "weights": weights,
            "samples_per_epoch": 0 if weights is None else len(weights)
            if samples_per_epoch is None
            else count("samples_per_epoch", samples_per_epoch, at_least=1, below=2**40),
            "sampler": sampler is not None or buckets is not None,
            "seed": count("seed", seed),
            "shuffle_window": count("shuffle_window", shuffle_window, below=2**32),
            "locality": str(locality),
            "drop_last": drop_last,
            "pad": pad,
            "join": join,
            "epochs": None if epochs is None else count("epochs", epochs),
            "ops": _ops.specs_to_json(ops),
            "functions": _ops.functions_of(ops),
            "fields": names,
            "ids": ids,
            "collates": collate is not None,
            "on_error": str(on_error),
            "hashes": hashes,
            "trace": "" if trace is None else os.fspath(trace),
            "memory": None if memory is None else str(memory),
            "cache": options_of(cache, world_size),
            "threads": count("threads", threads, at_least=1),
            "max_in_flight": count("max_in_flight", max_in_flight, at_least=1),
            "fetch_ahead": pair_of(fetch_ahead),
            **tuning(tune),
            "tune_trace": "" if tune_trace is None else os.fspath(tune_trace),
            "rank": None if rank is None else count("rank", rank, below=2**32),
            "world_size": None
            if world_size is None
            else count("world_size", world_size, below=2**32),
        }
        if self._dataset is not None:
            self._native = _native.Loader(self._dataset._native, options)
            self._options = options
        else:
            self._native = _native.Loader.of_url(
                os.fspath(source), store_options(**store), refresh, options
            )
        if buckets is not None:
            step = self.state_dict()["global_batch_size"]
            sizes = buckets.sizes_of(self._dataset)
            in_buckets = BucketOrder(
                sizes, buckets.count, step, seed=options["seed"], shuffles=mixes_buckets
            )
            self._sampled = _order.Sampled(in_buckets)
        made_anew = any(
            op.per == "batch" and op._field is None for op in ops if isinstance(op, _ops.Python)
        )
        added = [name for op in ops for name in getattr(op, "adds", ())]
        delivered = () if made_anew else [*self._native.field_names, *added]
        self._rename = _batch.renaming(rename, delivered)
        if self._dataset is not None:
            url, digest = self._dataset.url, self._dataset.digest
        else:
            # Shards that one rank has to index, another may have a catalogue of.
            url, digest = os.fspath(source), self.state_dict()["catalogue"]
        self._introduction: Introduction | None = None
        if self._native.rank == 0:
            by = "in a sampler's order" if sampler is not None else ""
            if buckets is not None:
                by = f"steps of like size{', seed ' + str(seed) if mixes_buckets else ''}"
            self._introduction = Introduction(url, options, drawn_by=by)
        met = compare_ranks(url, digest, self._native.dealing, self._native.world_size)
        self._met = met
        self._lateness = None if met is None else Lateness(self._native, *met)
        self._pace = None if met is None else pace_of(self._native, *met)
        _alive.add(self)

    @property
    def dataset(self) -> Dataset:
        """The dataset that it reads.

        Raises:
            leat.InvalidArgument: its shards have yet to be indexed, as happens
                during the first epoch of ``shuffle="stream"``.
        """
        dataset = self._known_dataset()
        if dataset is None:
            raise InvalidArgument(f"the samples are not known yet; {_NOT_YET}")
        return dataset

    @property
    def rank(self) -> int:
        """Which of the ranks this is."""
        return self._native.rank

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self._native.world_size

    def __iter__(self) -> Iterator[Batch]:
        """Starts the next epoch if the running one has delivered a batch.

        After `load_state_dict` it goes on from there. Ends any other iterator of
        this loader, which then raises.

        Raises:
            leat.InvalidArgument: torch.distributed was initialised after the loader was
                made, and says another rank or world size.
        """
        if not self._is_placed:
            check_place(self.rank, self.world_size)
        if self._sampled is not None:
            self._sampled.begin(self._native, len(self._dataset), self._met)
        iteration = self._native.begin()
        if self._introduction is not None:
            self._introduction.say(self)
            self._introduction = None
        if self._lateness is not None:
            self._lateness.epoch_begins(iteration, self.state_dict()["epoch"])
        return _Iterator(self, iteration)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank, also after a resume.

        Raises:
            TypeError: shards have yet to be indexed, as happens during the first
                epoch of ``shuffle="stream"``.
        """
        if self._sampled is not None:
            self._sampled.expect(self._native)
        length = self._native.length()
        if length is None:
            raise TypeError(f"this loader has no length yet; {self._why_not_yet()}")
        return length

    @property
    def remaining(self) -> int:
        """Batches of the running epoch that are yet to come on this rank.

        Raises:
            TypeError: as for ``len()``.
        """
        if self._sampled is not None:
            self._sampled.expect(self._native)
        remaining = self._native.remaining()
        if remaining is None:
            raise TypeError(f"nobody knows what remains yet; {self._why_not_yet()}")
        return remaining

    def peek(self) -> Batch | None:
        """A copy of the batch that comes next; moves nothing. None at the end."""
        place = self._place()
        fields = self._native.peek()
        return None if fields is None else self._to_batch(fields, place)

    def set_epoch(self, epoch: int) -> None:
        """Makes ``epoch`` the one that iter() starts.

        After `load_state_dict` of a position within that epoch, it goes on there.
        """
        self._native.set_epoch(count("epoch", epoch))

    def state_dict(self) -> dict[str, Any]:
        """The delivered position: a few JSON values, the same on every rank.

        With ``first_within=`` of a cache it lists what was overtaken too, and is of
        this rank alone.
        """
        return json.loads(self._native.state())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a state, at any world size; from one of a rank, on that rank.

        If objects came or went since, an epoch that had begun goes on with the
        catalogue that it began with, while that is kept; so does this loader then.
        A state between two epochs goes on with the data that is there now.

        Raises:
            leat.InvalidArgument: the state is of other data, seed or shuffle.
        """
        fitted = self._fit_to_catalogue(state)  # May make another engine's loader.
        self._native.load_state(json.dumps(fitted))

    def _fit_to_catalogue(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state, for the catalogue that is there; or that, for the state."""
        wanted = state.get("catalogue") if isinstance(state, dict) else None
        if self._dataset is None or not isinstance(wanted, str) or wanted == self._dataset.digest:
            return state
        native = self._dataset._native.earlier(wanted)
        if native is None:
            return state  # The loaded state says what differs.
        if state.get("position") == 0:
            return {**state, "catalogue": self._dataset.digest, "samples": len(self._dataset)}
        self._native.close()
        self._dataset = Dataset._of(native, self._dataset._dtypes)
        self._native = _native.Loader(native, self._options)
        for part in (self._lateness, self._pace):
            if part is not None:
                part._native = self._native
        _log.logger.warning(
            "%s: the epoch goes on with the catalogue that it began with, of %d samples, and so "
            "does this loader; what has changed since is seen when one starts between two epochs",
            self._dataset.url, len(self._dataset),
        )
        return state

    def stats(self) -> list[dict[str, Any]]:
        """The time of training and its waits by cause, one entry for each
        epoch, the latest last.

        ``wait_seconds`` is the time in iter() and next(); ``stalls`` splits
        exactly that by cause. The keys are those of ``leat bench --json``.

        If torch.distributed joins the ranks, rank 0 has ``late_rank`` too: the rank
        that the others waited for, as ``{"rank", "cause", "fraction"}`` (the share
        of their time that they would be spared), or None if none stands out. `watch`
        tells which rank computes longest.
        """
        epochs = [json.loads(epoch) for epoch in self._native.stats()]
        if self._lateness is not None and self.rank == 0:
            for epoch in epochs:
                epoch["late_rank"] = self._lateness.worst(epoch["epoch"])
        return epochs

    def recent(self) -> dict[str, Any]:
        """The same for the last minute, in any epoch, to the second.

        ``seconds`` (less than 60 at the beginning), ``samples`` and ``wait_seconds``
        in them, and ``stalls``, which splits exactly that by cause. A wait is in it
        from the moment that it ends.
        """
        return self._native.recent()

    def watch(self, module: Any) -> None:
        """Measures this rank's own work in each step of training ``module``.

        Measures from a batch to the last gradient; the time after that is waiting
        for other ranks. With it on every rank, ``late_rank`` in `stats` can say
        ``"compute"``. Adds a hook to each parameter, which looks at the time; for a
        module on a device, one event a step.

        Args:
            module: a torch.nn.Module, also in DistributedDataParallel.

        Raises:
            leat.InvalidArgument: the ranks of this job share no store: one rank, or
                torch.distributed is not initialised.
        """
        if self._lateness is None:
            raise InvalidArgument(
                "watch() compares ranks, and these share no store: call "
                "torch.distributed.init_process_group() before making the loader"
            )
        self._lateness.watch(OwnWork(module))

    def decisions(self) -> list[dict[str, Any]]:
        """The changes of the tuner and of the cache, with their reasons; the
        latest last.

        ``at_seconds`` since the loader was made; ``setting``, ``before``, ``after``,
        ``reason``; ``expected_gain`` and ``found_gain`` in samples a second, as a
        ratio less one, None if there is none.
        """
        return [json.loads(decision) for decision in self._native.decisions()]

    def explain(self) -> dict[str, Any] | None:
        """Explains the limit of the loader's speed, and what one more of
        anything would buy.

        The keys are those of ``leat explain --json``, but for ``decisions``. None
        if too little was seen, or ``tune=False``.
        """
        found = self._native.explain()
        return None if found is None else json.loads(found)

    def metrics(self) -> dict[str, int]:
        """The counters and gauges of this loader; docs/reference/metrics.md.

        Values that are not known here, such as energy that cannot be read, are
        left out.
        """
        return self._native.metrics()

    def ledger(self) -> dict[str, Any]:
        """The requests of this rank so far, and their cost.

        The keys are those of ``ledger`` in ``leat bench --json``
        (docs/reference/ledger.md); unknown values are left out. Dollars of
        requests are there if the provider is known: the store's, or
        LEAT_PROVIDER.
        """
        return json.loads(self._native.ledger())

    def close(self) -> None:
        """Ends its threads and requests. Batches stay. May be called twice."""
        self._native.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Also runs when __init__ failed, before there is anything to close.
        if native := getattr(self, "_native", None):
            native.close()

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

    def _place(self) -> tuple[int, ...]:
        """The place of the next batch, for functions of batches that draw."""
        if not self._batch_functions:
            return ()
        state = self.state_dict()
        return (state["seed"], state["epoch"], state["position"], self.rank)

    def _to_batch(self, fields: list[tuple[str, Any]], place: tuple[int, ...]) -> Batch:
        if self._dataset is not None and (dtypes := self._dataset._dtypes):
            fields = [(name, _rows(value, dtypes.get(name))) for name, value in fields]
        batch: Any = dict(self._to_output(fields))
        for function in self._batch_functions:
            batch = function(batch, self._batch, place)
        if isinstance(batch, dict):
            if self._rename is not None:
                batch = self._rename(batch)
            if self._batch == "tuple":
                batch = tuple(batch.values())
        if self._collate is not None:
            return self._collate(_functions.split_samples(batch))
        return _batch.BatchDict(batch) if type(batch) is dict else batch


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
        lateness = self._loader._lateness
        if lateness is not None and self._has_begun:
            lateness.step_ended()
            if self._loader._pace is not None:
                self._loader._pace.step_ended()
        place = self._loader._place()
        fields = self._loader._native.next(self._iteration)
        if fields is None:
            self._is_done = True
            if lateness is not None:
                lateness.epoch_ended()
            raise StopIteration
        batch = self._loader._to_batch(fields, place)
        self._has_begun = True
        if lateness is not None:
            lateness.step_begins()
        return batch


def _rows(value: Any, dtype: Any) -> Any:
    """Bytes of equal length as rows of numbers, over the same memory."""
    if dtype is None or not isinstance(value, tuple):
        return value
    values, offsets, _ = value
    return values.view(dtype).reshape(len(offsets) - 1, -1)


_alive: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads of the engine must not outlive the interpreter.
    for loader in list(_alive):
        loader.close()
