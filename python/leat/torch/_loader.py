"""The DataLoader that takes torch's place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch.utils.data
from torch.utils.data import Sampler

import leat
from leat._arguments import checks_names
from leat.errors import InvalidArgument
from leat.torch import _engine as engines
from leat.torch import _position as positions
from leat.torch._position import Position
from leat.torch._processes import InProcesses, with_threads
from leat.torch._randomness import Habits
from leat.torch._resume import InCaller
from leat.torch._sampled import WINDOW, Place, Sampled
from leat.torch._threads import Ahead, AtOnce
from leat.torch._where import Where

T = TypeVar("T")

DEFAULT_THREADS = 64
"""Published measurements of GETs in flight level off here; docs/coming-from."""


@checks_names()
class DataLoader(torch.utils.data.DataLoader[T]):
    """torch's DataLoader, but threads fetch its items concurrently.

    It takes torch's arguments and gives torch's batches: the same items in the same
    order, from the same draws of the same generators. It *is* a torch DataLoader
    (``isinstance`` says so). It differs in how it fetches the items of a map-style
    dataset:

    - ``num_workers=0``: the items of one batch at once, while next() waits. Items
      quicker than 0.2 ms, and items that draw from a global random generator, are
      fetched one after another in the calling thread, as torch does.
    - ``num_workers=n``: the items of ``n * prefetch_factor`` batches at once, ahead
      of the training loop, and collated there. No process is started; the dataset is
      not copied; ``worker_init_fn`` runs once for each of the n, in a thread.
    - ``workers="processes"``, or ``multiprocessing_context=``: torch's own n worker
      processes. With ``threads=`` each fetches the items of its batch by that many threads.

    Several threads call ``dataset[i]`` at a time, so it must allow that. torch's own
    iterators, with their processes, iterate an IterableDataset.

    The engine serves a `leat.Dataset`: see ``engine=``. Without a sampler, samples come in
    the engine's order, sharded by rank. With ``sampler`` or ``batch_sampler`` they come in
    the order that torch's DataLoader would give. ``collate_fn`` gets the list of samples,
    each a dict (a tuple with ``engine={"batch": "tuple"}``). The engine draws by a `leat.WeightedSampler` or
    `leat.SizeBuckets` itself, sharded by rank.

    Args (besides torch's):
        threads: the largest number of items to fetch at a time, over all batches; None for
            64. 1 with ``num_workers=0`` works exactly as torch does.
        workers: of ``num_workers=n``: ``"threads"``, ``"processes"`` (by forkserver), or
            ``"auto"``: threads, and from an epoch on processes if the threads of the one
            before took turns (the GIL) and training waited for them. Each process has a copy
            of the dataset.
        engine: for a `leat.Dataset`, further arguments of `leat.Loader`, such as
            ``{"ops": [...], "fields": ("image", "label"), "batch": "tuple"}``.

    Errors are those of torch. If an item raises, the next() that would have returned its
    batch raises the same exception, with its own traceback and a note that names the index.
    Other batches are not affected.

    Raises:
        leat.InvalidArgument: ``threads`` or ``engine`` is invalid, the dataset is a URL or
            a path, or the engine cannot honour an argument of torch's for a `leat.Dataset`;
            the message says what to do instead.
    """

    dataset: Any
    sampler: Any

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | leat.WeightedSampler | leat.SizeBuckets | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        threads: int | None = None,
        workers: str = "threads",
        engine: Mapping[str, Any] | None = None,
    ) -> None:
        later: dict[str, tuple[Any, Any]] = {
            "prefetch_factor": (prefetch_factor, None),
            "pin_memory_device": (pin_memory_device, ""),
            "in_order": (in_order, True),
        }
        engines.refuse_places(dataset)
        is_ours = isinstance(dataset, leat.Dataset)
        order = None
        if isinstance(sampler, (leat.WeightedSampler, leat.SizeBuckets)):
            engine = engines.with_sampler(sampler, dataset, shuffle, engine)
            sampler = None
        if is_ours and sampler is None and batch_sampler is None:
            order = engines.Order(dataset)
        if is_ours and workers != "threads":
            raise InvalidArgument(
                f'workers="{workers}" is for other datasets: the engine reads a leat.Dataset, and functions in '
                'its chain take it: engine={"ops": [leat.ops.Python(fn, workers=…)]}'
            )
        if _wants_processes(workers, num_workers, multiprocessing_context):
            multiprocessing_context = "forkserver"
        super().__init__(
            dataset,
            batch_size,
            shuffle if order is None else None,
            sampler if order is None else order,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            persistent_workers=persistent_workers,
            # An older torch has not all of them, or other defaults.
            **{name: value for name, (value, default) in later.items() if value != default},
        )
        self.in_order = in_order
        self.threads = _checked_threads(threads)
        self._habits = Habits(are_accepted=threads is not None)
        self._where = Where(self, workers)
        self._position: Position | None = None
        self._loaded_state: dict[str, Any] | None = None
        self._engine: leat.Loader | None = None
        self._is_sampled = is_ours and order is None
        self._place: Place | None = None
        self._seed: int | None = None
        if is_ours:
            given = {"sampler": sampler, "batch_sampler": batch_sampler, "shuffle": shuffle,
                     "collate_fn": collate_fn, "prefetch_factor": prefetch_factor}  # fmt: skip
            self._engine = engines.make(self, given, engine or {})
            self._seed = engines.seed_of(self, engine or {})
            if order is not None:
                self._is_accelerate_prepared = True  # Accelerate would shard it again.
        elif engine is not None:
            raise InvalidArgument(
                f"engine= is for a leat.Dataset and this is a {type(dataset).__name__}: "
                "leave it out, or give leat.Dataset(url)"
            )

    @classmethod
    def like(cls, loader: torch.utils.data.DataLoader[T], *, threads: int | None = None) -> DataLoader[T]:
        """A DataLoader with the dataset, the batches and the settings of one of torch's.

        Use it with libraries that build torch's own, such as Accelerate::

            loader = accelerator.prepare(torch_loader)
            loader.base_dataloader = DataLoader.like(loader.base_dataloader)

        The two share sampler and generator: iterate over only one of them.
        """
        batches: dict[str, Any] = {"batch_sampler": loader.batch_sampler}
        if loader.batch_sampler is None:  # Without batches.
            batches = {"batch_size": None, "sampler": loader.sampler}
        if isinstance(loader.dataset, torch.utils.data.IterableDataset):
            batches = {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
        kept = {name: getattr(loader, name) for name in _KEPT if hasattr(loader, name)}
        if not loader.num_workers:
            kept.pop("prefetch_factor")
        return cls(loader.dataset, **batches, **kept, threads=threads)

    def __getattr__(self, name: str) -> Any:
        if name == "_is_accelerate_prepared":  # Accelerate asks, and then replaces us.
            if self.__dict__.get("_is_sampled"):
                raise InvalidArgument(_REPLACED_ENGINE)
            warnings.warn(_REPLACED, stacklevel=3)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        """Starts an epoch; after `load_state_dict`, goes on with the one saved."""
        if self._engine is None or self._is_sampled:
            return super().__iter__()
        if (epoch := self.sampler.take_epoch()) is not None:
            self._engine.set_epoch(epoch)
        return iter(self._engine)

    def __len__(self) -> int:
        """Batches of a whole epoch, also after a resume."""
        if self._engine is None or self._is_sampled:
            return super().__len__()
        return len(self._engine)

    def state_dict(self) -> dict[str, Any]:
        """The delivered position, for `load_state_dict`; JSON values.

        The state counts the delivered batches of the running epoch, and not those
        fetched ahead. The samplers of torch are exact, with or without a generator. A
        sampler or dataset that offers ``state_dict`` is asked for its own, and JSON is
        then up to it. A dataset's is as of now: with ``num_workers=0`` it is exact.

        Raises:
            leat.InvalidArgument: worker processes with ``in_order=False``: torch does not
                tell which of their batches were delivered.
        """
        if self._engine is not None and not self._is_sampled:
            return self._engine.state_dict()
        if not self.in_order and self._is_torchs and self.num_workers > 0:
            raise InvalidArgument(
                "in_order=False with worker processes cannot be saved: torch does not tell "
                "which batches it delivered. Leave out in_order= or multiprocessing_context="
            )
        position = self._position
        running = position is not None and not position.is_over
        if position is None or position.is_over:
            state = positions.between_epochs(self)
        else:
            state = position.to_dict()
        if self._loaded_state is not None:  # Not begun since.
            state = {name: self._loaded_state[name] for name in state}
        if self._is_sampled:
            state["engine"] = self._next_place(running).to_dict()
        stateful = positions.is_stateful(self.dataset) and not self._is_in_processes
        dataset_state = self.dataset.state_dict() if stateful else None
        return {"leat_dataloader": positions.VERSION, **self._settings(), **state,
                "dataset": dataset_state}  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iter() continue after the last batch delivered before the save.

        This does not touch torch's global generator: save that separately, as for a model.

        Raises:
            leat.InvalidArgument: the state is of other data, or of other batches.
        """
        if self._engine is not None and not self._is_sampled:
            self.sampler.take_epoch()  # One set before is not meant for this state.
            self._engine.load_state_dict(state)
            return
        positions.check(state, self._settings())
        if state["dataset"] is not None and positions.is_stateful(self.dataset):
            self.dataset.load_state_dict(state["dataset"])
        self._loaded_state = {"iterated": 0, **state}

    def check_worker_number_rationality(self) -> None:
        """Warns of too many worker processes, where there are any."""
        if self._is_torchs:
            super().check_worker_number_rationality()

    @property
    def _is_torchs(self) -> bool:
        """Whether torch's own iterators are used."""
        return self.multiprocessing_context is not None or isinstance(
            self.dataset, _ITERATED_BY_TORCH
        )

    @property
    def _is_in_processes(self) -> bool:
        return self._is_torchs and self.num_workers > 0

    @property
    def _thread_limit(self) -> int:
        return self.threads or max(DEFAULT_THREADS, self.num_workers)

    def _get_iterator(self) -> Any:
        if self._is_sampled:
            return Sampled(self)
        if self._is_in_processes:
            super().check_worker_number_rationality()
            return InProcesses(with_threads(self, self.threads))
        if self.num_workers > 0:
            return Ahead(self)
        return InCaller(self) if self._is_torchs or self.threads == 1 else AtOnce(self)

    def _take_loaded_state(self) -> dict[str, Any] | None:
        state, self._loaded_state = self._loaded_state, None
        return state

    def _next_place(self, is_running: bool) -> Place:
        """The place in the running epoch, or in the next one."""
        if self._loaded_state is not None:  # Not begun since.
            return Place(**self._loaded_state["engine"])
        if self._place is None or self._position is None:
            return Place()
        if is_running:
            return self._place
        return Place(self._place.epoch + self._position.delivered // WINDOW + 1)

    def _take_place(self) -> Place:
        """The place at which an iterator of the engine's begins."""
        # One that was left in the middle is over, too.
        self._place = self._next_place(is_running=False)
        return self._place

    def _settings(self) -> dict[str, Any]:
        """The settings that a state has to agree with."""
        try:
            samples = len(self.dataset)
        except TypeError:  # It need not have a length.
            samples = None
        told = {"batch_size": self.batch_size, "drop_last": self.drop_last, "samples": samples}
        if self._is_sampled and self._engine is not None:
            told["catalogue"] = self.dataset.digest
            told["seed"] = self._seed  # Not the engine's, which is of this rank alone.
        return told


# The arguments that torch's constructor takes and keeps, besides the dataset
# and its batches.
_KEPT = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn",
         "multiprocessing_context", "generator", "prefetch_factor", "persistent_workers",
         "pin_memory_device", "in_order")  # fmt: skip

_REPLACED = (
    "Accelerate puts a DataLoader of torch's in the place of this leat.torch.DataLoader, and "
    "torch fetches one item after another. Give prepare() a DataLoader of torch's and then set "
    "loader.base_dataloader = leat.torch.DataLoader.like(loader.base_dataloader)"
)

_REPLACED_ENGINE = (
    "Accelerate would put a DataLoader of torch's in the place of this one, which reads a "
    "leat.Dataset in a sampler's order: the engine and its ops would be left out. Leave it out of "
    "prepare(), with a sampler that is of this rank alone (DistributedSampler), or give "
    "leat.Loader(dataset, sampler=…), which shards by itself"
)

_ITERATED_BY_TORCH = tuple(
    getattr(torch.utils.data, name)
    for name in ("IterableDataset", "IterDataPipe", "MapDataPipe")
    if hasattr(torch.utils.data, name)
)


def _wants_processes(workers: str, num_workers: int, context: Any) -> bool:
    """Whether `workers` chooses them; multiprocessing_context= may have."""
    if workers not in ("threads", "processes", "auto"):
        raise InvalidArgument(f'workers={workers!r}; it is "threads", "processes" or "auto"')
    if workers != "threads" and num_workers == 0:
        raise InvalidArgument(f'workers="{workers}" is for num_workers= of 1 or more: without workers nothing runs ahead')
    if workers == "auto" and context is not None:
        raise InvalidArgument(
            'workers="auto" beside multiprocessing_context=, which chooses processes: leave out one of them'
        )
    return workers == "processes" and context is None


def _checked_threads(threads: int | None) -> int | None:
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidArgument(
            f"threads={threads!r}; it is how many items are fetched at a time, at least 1"
        )
    return threads
