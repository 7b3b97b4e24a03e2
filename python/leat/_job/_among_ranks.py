"""A loader among those of the other ranks: what they compare, and what they tell each other."""

from __future__ import annotations

from typing import Any

from leat._job._agreement import compare_ranks, compare_versions
from leat._job._lateness import Lateness, OwnWork
from leat._job._place import Place
from leat._job._ranks import pace_of
from leat._job._talk import Talk, Topic
from leat._opened import Opened
from leat._say import drops_last
from leat.errors import InvalidArgument


class AmongRanks:
    """Compares this loader with those of other ranks, and talks with them while training runs.

    Without a store of the job, nothing is compared or told.

    Raises:
        leat.InvalidArgument: another rank reads other data, or in another order.
    """

    def __init__(self, opened: Opened, place: Place) -> None:
        process, processes = place.among(opened.native)
        order = _order_in_words(opened, place)
        self.met = compare_ranks(opened.url, opened.digest, opened.native.dealing, order, processes)
        """The store of the job and the name of this loader in it; None without one."""
        self._is_first = process == 0
        self._lateness: Lateness | None = None
        self._talk: Talk | None = None
        if self.met is None:
            return
        compare_versions(self.met, opened.url, opened.versions())
        self._lateness = Lateness(opened.native, (process, processes), waits=not place.skips)
        pace = pace_of(opened.native, process, processes)
        topics: list[Topic] = [self._lateness] if pace is None else [self._lateness, pace]
        for topic in (self._lateness, pace):
            opened.follow(topic)
        self._talk = Talk(*self.met, process, processes, topics)

    def take_waits_of(self, batches: Any) -> None:
        """The waits of steps are those that ``batches.take_waits()`` says."""
        if self._lateness is not None:
            self._lateness.take_waits = batches.take_waits

    def watch(self, module: Any) -> None:
        """Measures this rank's own work in each step of training a torch.nn.Module."""
        if self._lateness is None:
            raise InvalidArgument(
                "watch() compares ranks, and these share no store: call "
                "torch.distributed.init_process_group() before making the loader"
            )
        self._lateness.watch(OwnWork(module))

    def late_rank(self, epoch: int) -> dict[str, Any]:
        """The rank that others waited for most in an epoch, for the first rank's statistics; empty on others."""
        if self._lateness is None or not self._is_first:
            return {}
        return {"late_rank": self._lateness.worst(epoch)}

    def epoch_begins(self, iteration: int, opened: Opened) -> None:
        if self._lateness is not None:
            self._lateness.epoch_begins(iteration, opened.state()["epoch"])

    def step_begins(self) -> None:
        if self._lateness is not None:
            self._lateness.step_begins()

    def step_ended(self) -> None:
        if self._lateness is not None and self._talk is not None:
            self._lateness.step_ended()
            self._talk.trained()

    def epoch_ended(self) -> None:
        if self._lateness is not None and self._talk is not None:
            self._lateness.epoch_ended()
            self._talk.epoch_ended()

    def close(self) -> None:
        if self._talk is not None:
            self._talk.close()


def _order_in_words(opened: Opened, place: Place) -> str:
    """The part of the order that has to be the same on all ranks."""
    state, options = opened.state(), opened.options
    pads, joins = options["pad"], options["join"]
    tail = "pads" if pads else "joins" if joins else "drops" if drops_last(options) else "keeps"
    of_sources = f" of sources in shuffle {state['source_shuffle']}" if "source_shuffle" in state else ""
    return (
        f"{state['shuffle']} shuffle{of_sources} in windows of {state['shuffle_window']}, seed {state['seed']}, "
        f"steps of {state['global_batch_size']}, {tail} the last"
        + ("" if place.mesh is None else f", on a mesh of {place.mesh._words}")
    )
