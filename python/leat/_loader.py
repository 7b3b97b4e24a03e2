"""The loader: batches of a dataset, in an order that is a function."""

from __future__ import annotations

import atexit
import contextlib
import json
import threading
import weakref
from abc import ABCMeta
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from leat import _options
from leat._arguments import checks_names, count, flag
from leat._batches._delivery import Collate, Delivery, Fields, Form, Output
from leat._cache import CacheChoice
from leat._dataset import Dataset
from leat._iteration import Batch, Batches, Iterator as _Iterator, introduction_of
from leat._job._among_ranks import AmongRanks
from leat._job._mesh import RankChoice
from leat._job._place import Place
from leat._job._siblings import siblings_of
from leat._moved import MOVED
from leat._opened import NOT_YET, Opened, Places, dataset_of
from leat._options import Size
from leat._orders._chosen import Order, order_of
from leat._orders._epochs import Epochs
from leat._orders._given import Sampled
from leat._orders._shuffle import DropLast, Sampler, Shuffled
from leat._storage import StorageOptions
from leat._traces import Trace, files_of
from leat._workers import FunctionWorkers
from leat.ops import Op, listed

_NO_LENGTH = "its sampler has no len(), so that iter() tells it"

_NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})

OnError = Literal["raise", "substitute"]


def _end(native: Any, workers: FunctionWorkers, among: AmongRanks | None, batches: Batches | None) -> None:
    if among:
        among.close()
    if batches:
        batches.close()
    if not native.is_in_own_function():  # There close() raises.
        workers.stop()
    native.close(workers.names)
    workers.close()


class _Told(ABCMeta):
    """Keeps out of dir(), and so out of help(), what a class has for Python itself: help() fits two screens."""

    _UNTOLD = frozenset({"__abstractmethods__", "__del__", "__dict__", "__enter__", "__exit__", "__init__", "__reduce__",
                         "__repr__", "__weakref__"})  # fmt: skip

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name not in cls._UNTOLD]


@checks_names(MOVED)
class Loader(metaclass=_Told):
    """Iterates over batches of a dataset, epoch after epoch.

        loader = leat.Loader("s3://bucket/photos", batch_size=64, train=True, ops=[...])

    Args (docs/reference/loader.md has them in full):
        source: a URL, a path, a pattern, a list of these, or a `leat.Dataset`.
        batch_size, global_batch_size: samples a step, for each rank or for all ranks.
        train: True shuffles and drops the last incomplete step; False does neither.
        shuffle: True, False, "full", "block", "stream" or a `leat.Shuffle`.
        sampler: a list, torch's, a `leat.WeightedSampler`, `SizeBuckets`, `Pack`, `TokenBudget`.
        seed: with the epoch, fixes the order and every random op.
        drop_last: True, False, "pad" to fill the last step, "join": ranks end one batch apart.
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
        trace: a file for Perfetto; or ``{"timeline": file, "order_log": file}``, for `leat verify`.
        rank, world_size: None asks torch.distributed, Ray or the launcher; rank may be a `leat.Mesh`.
        storage_options: a `leat.StorageOptions`, such as ``{"endpoint_url": "http://…"}``.

    An array is writable, and its memory recycled once the last view is gone. Values of unequal
    length or shape come as `leat.Ragged`, texts as a list of str.
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
        ids, ops = flag("ids", ids), listed(ops)
        order = _order_of(source, train, shuffle, sampler, drop_last)
        place = self._place = Place(rank, world_size)
        self._delivery = Delivery(
            fields=fields, batch=batch, ops=order.ops_beside(ops, fields, ids=ids, on_error=on_error),
            collate=collate, output=output, pin_memory=pin_memory, device=device,
        )  # fmt: skip
        dataset = dataset_of(source, order, self._delivery.fields_wanted(order.columns), storage_options)
        if dataset is not None:
            self._delivery.check_fields(dataset.fields)
        threads = count("threads", threads, at_least=1)
        self._workers = FunctionWorkers(self._delivery.ops, threads)
        options = {
            **_options.USUAL,
            **order.options(dataset),
            **_options.of_epochs(
                order, batch_size=batch_size, global_batch_size=global_batch_size, seed=seed, epochs=epochs
            ),
            **self._delivery.options(),
            "functions": self._workers.functions,
            "ids": ids,
            "on_error": str(on_error),
            **files_of(trace, logs_order=place.speaks),
            **_options.of_cache(cache, order, dataset, place, memory),
            **_options.of_limits(memory, threads, max_in_flight),
            **place.options(),
            **self._settings,
        }
        self._opened = Opened(source, dataset, options, storage_options)
        self._delivery.expect(self._native.field_names)
        self._order = order
        self._sampled = self._sampled_in_steps_of(self._opened.state()["global_batch_size"])
        self._among = AmongRanks(self._opened, place)
        siblings = siblings_of(self._opened, place, self._delivery.ops, self._among.met)
        self._batches = Batches(self._opened, self._delivery, place, siblings)
        self._among.take_waits_of(self._batches)
        self._introduction = introduction_of(
            self._opened, place, self._delivery, drawn_by=order.words(options["seed"]), is_end_said=drop_last is not None
        )
        _alive.add(self)

    @property
    def _native(self) -> Any:
        """The engine's loader; a state may bring another one."""
        return self._opened.native

    def _sampled_in_steps_of(self, size: int) -> Sampled | None:
        order, opened = self._order, self._opened  # Not self, or only a collection would end the loader.
        if order.arrangement is None:
            return None
        epochs = Epochs(
            opened.dataset, lambda: len(opened.dataset), seed=opened.options["seed"], mixes=order.mixes,
            rows_of_a_step=size, ranks=self.world_size, drops=order.drop_last,
        )  # fmt: skip
        made = order.arrangement.order(epochs)
        if made is None:
            return None
        options = opened.options
        return Sampled(made, tells_next=options["cache"] is not None, epochs=options["epochs"])

    @property
    def dataset(self) -> Dataset:
        """The loader's dataset. Raises an error while its shards are being indexed."""
        return self._opened.dataset

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
        self._place.check(self._native)
        if self._sampled is not None:
            self._sampled.begin(self._native, self._among.met)
        iteration = self._batches.begin()
        if self._introduction is not None:
            self._introduction.say(self)
        self._among.epoch_begins(iteration, self._opened)
        return _Iterator(self, self._batches, self._among, self._introduction, iteration)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank. TypeError while the number is unknown."""
        length = self._steps()
        if length is None:
            raise TypeError(f"this loader has no length yet; {self._why_not_yet()}")
        return length

    def _steps(self) -> int | None:
        if self._sampled is not None:
            self._sampled.expect(self._native)
            steps = self._steps_of_rows(self.state_dict()["epoch"])
            if steps is not None:
                return steps
        return self._native.length()

    def _steps_of_rows(self, epoch: int, position: int = 0) -> int | None:
        """From the position on; None if the engine counts them."""
        assert self._sampled is not None
        return self._sampled.steps(epoch, position, left_out=self.rank if self._order.join else None)

    @property
    def remaining(self) -> int:
        """Batches of the running epoch that are yet to come. TypeError as for len()."""
        if self._sampled is not None:
            self._sampled.expect(self._native)
        remaining = self._native.remaining()
        if remaining is None and self._sampled is not None:  # The engine is told rows when their epoch begins.
            state = self.state_dict()
            remaining = self._steps_of_rows(state["epoch"], state["position"])
        if remaining is None:
            raise TypeError(f"nobody knows what remains yet; {self._why_not_yet()}")
        return remaining

    def peek(self) -> Batch | None:
        """A copy of the next batch; the position does not move. None at the end."""
        if self._sampled is not None:
            self._sampled.look(self._native, self._among.met)
        return self._batches.peek()

    def set_epoch(self, epoch: int) -> None:
        """Makes ``epoch`` the one that iter() starts."""
        self._batches.leave()
        self._native.set_epoch(count("epoch", epoch))

    def state_dict(self) -> dict[str, Any]:
        """The delivered position: a few JSON values, the same on every rank."""
        state = self._opened.state()
        if self._sampled is not None:
            self._sampled.describe(state)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from a state, at any world size."""
        self._batches.leave()
        if self._opened.go_on_in_another_mix(state):  # May make another engine's loader.
            return
        if self._sampled is not None and self._sampled.go_on(state):
            self._native.set_epoch(state["epoch"])
            return
        mine = self._opened.state()["global_batch_size"]
        size = self._steps_taken_over(state, mine)
        try:
            if size != mine:
                self._sampled = self._sampled_in_steps_of(size)
            if self._sampled is not None:
                self._sampled.go_on(state)
                self._sampled.check(state)
            fitted = self._opened.fit_to_catalogue(state)  # So may this.
            self._native.load_state(json.dumps(fitted))
        except BaseException:
            if size != mine:
                self._sampled = self._sampled_in_steps_of(mine)
            raise

    def _steps_taken_over(self, state: Any, mine: int) -> int:
        """The size of steps of an order that depends on it: the state's, if a rank's was given, as for the engine."""
        arrangement = self._order.arrangement
        if arrangement is None or not (arrangement.has_rows or arrangement.follows_steps):
            return mine
        size = state.get("global_batch_size") if isinstance(state, dict) else None
        if isinstance(size, int) and size > 0 and self._opened.options["batch_size"]:
            return size
        return mine

    def to_tf(self) -> Any:
        """The loader as a tf.data.Dataset, for Keras too: each iteration is the next epoch."""
        from leat._batches._frameworks import to_tf

        return to_tf(self)

    def to_jax(self, sharding: Any) -> Any:
        """Its batches as global arrays of jax, with this sharding, or with a dict's by field."""
        from leat._batches._frameworks import JaxBatches

        return JaxBatches(self, sharding)

    def stats(self) -> list[dict[str, Any]]:
        """The time of training and its waits by cause: a dict for each of the last 256 epochs."""
        epochs = [json.loads(epoch) for epoch in self._native.stats()]
        for epoch in epochs:
            number = epoch["epoch"]
            epoch.update(self._among.late_rank(number))
            if self._sampled is not None and (balance := self._sampled.balance(number)) is not None:
                epoch["balance"] = balance
        return epochs

    def recent(self) -> dict[str, Any]:
        """The last minute, to the second: seconds, samples, wait_seconds and its stalls by cause."""
        return self._native.recent()

    def watch(self, module: Any) -> None:
        """Measures this rank's own work in each step of training a torch.nn.Module."""
        self._among.watch(module)

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
        _end(*self._parts())

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Also runs when __init__ failed, before there is anything to close.
        # Or the interpreter ends, and has cleared this module: then all loaders are closed.
        if not hasattr(self, "_opened") or _end is None:
            return
        native = self._native
        if native.is_in_own_function():  # Collected there; it would wait for itself.
            threading.Thread(target=_end, args=self._parts()).start()
        else:
            self.close()

    def _parts(self) -> tuple[Any, FunctionWorkers, AmongRanks | None, Batches | None]:
        return self._native, self._workers, getattr(self, "_among", None), getattr(self, "_batches", None)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a leat.Loader has threads and cannot be pickled; make one in each process"
        )

    def __repr__(self) -> str:
        dataset = self._opened.known_dataset()
        if dataset is None:
            return "leat.Loader(shards that the first epoch indexes)"
        length = self._steps()
        said = "as many batches as its sampler gives" if length is None else f"{length} batches an epoch"
        return f"leat.Loader({dataset!r}, {said})"

    def _why_not_yet(self) -> str:
        return _NO_LENGTH if self._sampled is not None else NOT_YET


def _order_of(source: Places, train: bool | None, shuffle: Shuffled, sampler: Sampler, drop_last: DropLast) -> Order:
    own = source._order_as_given(train, shuffle, sampler, drop_last) if isinstance(source, Dataset) else None
    return order_of(train, shuffle, sampler, drop_last) if own is None else own


_alive: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads of the engine must not outlive the interpreter.
    for loader in list(_alive):
        with contextlib.suppress(KeyboardInterrupt):  # It leaves one whose function does not return.
            loader.close()
