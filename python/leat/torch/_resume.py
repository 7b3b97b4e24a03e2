"""Iterators that begin where a state says, and count what they deliver.

Everything here draws from the sampler and the generators at the moments when
torch's own iterators do, so that the same seeds give the same batches. That is
why they derive from torch's: `_next_index` is where any of them draws.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import dataloader as torchs

from leat.torch import _position as positions
from leat.torch._position import Position


class Resumable:
    """A mix-in that comes before one of torch's iterators, which have the rest."""

    _dataset: Any
    _dataset_kind: Any
    _index_sampler: Any
    _num_workers: int
    _iterated = -1
    """The epochs that it has begun before this one: persistent workers keep their seed."""

    def __init__(self, loader: Any) -> None:
        self._begin(loader, lambda: self._start(loader))

    def _start(self, loader: Any) -> None:
        super().__init__(loader)  # type: ignore[call-arg]

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        def ask_sampler() -> None:
            self._undo_draws()
            if self._behind is None:
                self._position.begin(self._generators, seed_follows=False)
            super(Resumable, self)._reset(loader, first_iter)  # type: ignore[misc]

        if first_iter:  # Called by __init__, so it has begun.
            ask_sampler()
        else:  # The next epoch of persistent workers.
            self._begin(loader, ask_sampler)

    def _begin(self, loader: Any, start: Callable[[], None]) -> None:
        """Starts an epoch, or goes on with one of which the loader was given a state.

        Going on draws nothing from torch's global generator: when the state was
        saved, those draws had been made.
        """
        self._generators = positions.generators_of(loader)
        self._stateful_sampler = positions.stateful_sampler(loader)
        self._drawn_batches = 0
        self._lives_on: dict[str, Any] | None = None
        self._before: dict[str, str] = {}
        resumed = loader._take_loaded_state()
        if resumed is not None and resumed["delivered"] is None:  # Between two epochs.
            self._load(resumed)
            if resumed["base_seed"] is not None:
                self._lives_on, self._before = resumed, positions.states_of(self._generators)
                self._iterated = resumed["iterated"] - 1
            resumed = None
        self._iterated = self._iterated + 1 if resumed is None else resumed["iterated"]
        self._behind = resumed  # The batches that are still to be made up for.
        self._position = loader._position = Position(loader, resumed)
        with contextlib.nullcontext() if resumed is None else positions.kept_global_generator():
            start()
            self._catch_up()
        if self._undo_draws():
            self._sampler_iter = iter(self._index_sampler)
        self._position.base_seed = self._base_seed
        self._position.iterated = self._iterated

    def _load(self, state: dict[str, Any]) -> None:
        """Puts the generators and the sampler back to where they were."""
        positions.set_states(self._generators, state["generators"])
        if self._stateful_sampler is not None:
            self._stateful_sampler.load_state_dict(state["sampler"])

    def _undo_draws(self) -> bool:
        """Before the sampler is asked, takes the seed of workers that lived on when the state was
        saved, and undoes what starting has drawn for another one. False if there is none.
        """
        state, self._lives_on = self._lives_on, None
        if state is None:
            return False
        self._load({**state, "generators": self._before})
        self._base_seed = state["base_seed"]
        return True

    def _catch_up(self) -> None:
        """Draws again what was delivered, and one more: the generators have drawn then."""
        resumed, self._behind = self._behind, None
        if resumed is None:
            return
        self._load(resumed)
        if self._dataset_kind != torchs._DatasetKind.Iterable:
            self._skip_indices(resumed)
        self._base_seed = resumed["base_seed"]

    def _skip_indices(self, resumed: dict[str, Any]) -> None:
        order = iter(self._index_sampler)
        if resumed["seed_follows"]:
            generator = self._generators.get("loader")
            torch.empty((), dtype=torch.int64).random_(generator=generator)
        done = self._drawn_batches = resumed["delivered"]
        if self._stateful_sampler is not None:
            done = 0  # It goes on by itself.
        order = itertools.islice(order, done, None)
        self._sampler_iter = itertools.chain(list(itertools.islice(order, 1)), order)

    def _next_numbered_index(self) -> tuple[int, Any]:
        """The next batch that is to be delivered: its number and its indices."""
        if self._behind is not None:
            self._catch_up()
        while True:
            index = super()._next_index()  # type: ignore[misc]
            self._position.drew()
            number = self._drawn_batches
            self._drawn_batches += 1
            if not self._position.is_delivered(number):
                return number, index

    def _next_index(self) -> Any:
        return self._next_numbered_index()[1]


class InTurn(Resumable):
    """torch's own iterators deliver in the order drawn."""

    def _begin(self, loader: Any, start: Callable[[], None]) -> None:
        self._is_skipping = True
        super()._begin(loader, start)

    def _next_data(self) -> Any:
        if self._is_skipping:
            self._is_skipping = False
            self._skip_samples()
        try:
            data = super()._next_data()  # type: ignore[misc]
        except StopIteration:
            self._position.is_over = True
            raise
        except Exception:
            self._position.deliver(self._position.delivered)
            raise
        self._position.deliver(self._position.delivered)
        return data

    def _skip_samples(self) -> None:
        """For an IterableDataset, fetches the delivered samples again, and drops
        them."""
        if self._dataset_kind != torchs._DatasetKind.Iterable or self._offers_state():
            return
        for _ in range(self._position.delivered):
            super()._next_data()  # type: ignore[misc]

    def _offers_state(self) -> bool:
        return self._num_workers == 0 and positions.is_stateful(self._dataset)


class InCaller(InTurn, torchs._SingleProcessDataLoaderIter):
    """torch's own, one item after another in the calling thread."""
