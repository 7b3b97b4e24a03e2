"""The samples of a mix that rows are made of, and how another mix goes on with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from leat import _native
from leat._orders._epochs import Epochs
from leat._orders._mix import Begin, Mix
from leat.errors import InvalidArgument


class MixedSamples:
    """The samples of each epoch of a mix, in the order in which rows take them.

    Rows are laid in windows of samples and are then shuffled, so within an epoch no number for
    each source says which samples have come. Between two epochs it does.

    Args:
        mix: its sources, weights and options.
        seed: of the loader.
        mixes: whether each source is shuffled.
    """

    def __init__(self, mix: Mix, seed: int, *, mixes: bool) -> None:
        self._mix, self._seed, self._mixes = mix, seed, mixes
        self._shuffle = "full" if mixes else "none"
        self._begin = Begin()
        self._known: tuple[int, str, list[int]] | None = None
        """An epoch, the digest of the mix, and the samples of each source before that epoch."""

    def __call__(self, epoch: int) -> np.ndarray:
        if epoch < self._begin.epoch:
            raise InvalidArgument(f"the mix began with epoch {self._begin.epoch}, and has no epoch {epoch}")
        found = _native.mixed_documents(self._mix.order_of(self._begin), self._seed, self._mixes, epoch)
        return found.astype(np.int64)

    def describe(self, state: dict[str, Any]) -> None:
        """Adds the mix to a state, and the samples of each source that came before its epoch."""
        digest, had = self._before(state["epoch"])
        sources = self._mix.sources
        state["mix"] = {"drawn": digest, "sources": sources, "had": had, "source_shuffle": self._shuffle}
        if self._begin != Begin():
            begin = [self._begin.had.get(name, 0) for name in sources]
            state["mix"].update(first_epoch=self._begin.epoch, begin=begin)

    def go_on(self, state: Any) -> bool:
        """Takes over where the sources of a state's mix stopped, if that is another mix than this.

        Raises:
            leat.InvalidArgument: it is within an epoch, where nobody knows that.
        """
        mix = state.get("mix") if isinstance(state, dict) else None
        if not isinstance(mix, dict):
            return False  # The engine says what is missing.
        window = state.get("shuffle_window")
        mine = {
            "drawn": self._before(self._begin.epoch)[0], "seed": self._seed, "shuffle_window": window,
            "source_shuffle": self._shuffle,
        }  # fmt: skip
        try:
            begin, is_another = self._mix.begin_of({**state, "shuffle_window": window, **mix}, mine)
        except (KeyError, TypeError):
            return False
        if is_another and state.get("position") != 0:
            raise InvalidArgument(
                f"the state was saved within epoch {state['epoch']} of another mix, whose samples are in rows or "
                "micro-batches: only between two epochs is it known which of each source have come. Load it into "
                "the mix that it is of, and save a state at the end of the epoch; leat.mix(…, samples=) makes "
                "epochs short"
            )
        self._begin, self._known = begin, None
        return is_another

    def _before(self, epoch: int) -> tuple[str, list[int]]:
        epoch = max(epoch, self._begin.epoch)
        if self._known is None or self._known[0] != epoch:
            self._known = (epoch, *_native.mixed_before(self._mix.order_of(self._begin), epoch))
        return self._known[1:]


def mixed_of(epochs: Epochs, sampler: str) -> MixedSamples | None:
    """The samples, if they are of a mix.

    Raises:
        leat.InvalidArgument: its composition gives whole steps to a source.
    """
    if not isinstance(epochs.dataset, Mix):
        return None
    epochs.dataset.check_rows(sampler)
    return MixedSamples(epochs.dataset, epochs.seed, mixes=epochs.mixes)
