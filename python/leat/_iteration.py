"""The batches of a loader, one by one."""

from __future__ import annotations

from typing import Any

from leat import _functions
from leat._batches._delivery import Delivery
from leat._job._among_ranks import AmongRanks
from leat._job._place import Place
from leat._job._siblings import Maker, OwnMaker, Siblings
from leat._native import BatchPlace
from leat._opened import Opened
from leat._say import Introduction, LeftBehind, classes_met

Batch = Any
"""A dict or a tuple of arrays, as ``batch=`` says."""


class Batches:
    """Takes batches of the engine, and makes those that a program gets."""

    def __init__(self, opened: Opened, delivery: Delivery, place: Place, siblings: Siblings | None) -> None:
        self._opened, self._delivery = opened, delivery
        self._siblings = siblings
        """Until it is known who makes the batches."""
        self._maker: Maker = OwnMaker(opened)
        self._skips = place.skips
        self.loses_failed = False
        """Whether a batch that cannot be made is lost alone, and the next one comes after it: as torch's DataLoader has it."""
        is_first = place.among(opened.native)[0] == 0
        self._left_behind = LeftBehind(opened.url, delivery.ops) if is_first else None
        """Until the first batch."""

    def begin(self) -> int:
        """Starts the next epoch if the running one has delivered a batch; returns the number of the iteration."""
        if self._skips:
            return self._opened.native.begin_skipping()
        if self._siblings is not None:
            self._maker = self._siblings.maker()
            self._siblings = None
        iteration = self._maker.begin()
        is_own = isinstance(self._maker, OwnMaker)
        self._delivery.begin(self._opened.dtypes, self._opened.native.look if is_own else None)
        return iteration

    def next(self, iteration: int, place: BatchPlace) -> tuple[bool, Batch | None]:
        """The next batch; (False, None) at the end. A process that needs none gets None each step.

        If this raises, or the batch does not reach the program, `put_back` it.

        Args:
            place: becomes that of the batch as soon as it is taken.
        """
        if self._skips:
            return self._opened.native.skip(iteration, place), None
        fields = self._maker.next(iteration, place)
        if fields is None:
            self.leave()
            return False, None
        return True, self._made_of(fields, place)

    def put_back(self, place: BatchPlace, error: BaseException) -> None:
        """The state leads to the batch of this place, and what comes raises the error until another pass begins.

        Does no more than `leave` if none was taken.
        """
        is_kept = isinstance(error, Exception)  # All others stop the program, once.
        if self.loses_failed and is_kept and place.is_taken:
            return
        told = "could not be made" if is_kept else f"was interrupted ({type(error).__name__})"
        why = f"the batch at position {place.at} of epoch {place.epoch} {told}"
        try:
            # First: `leave` waits, and another Ctrl-C ends that.
            self._opened.native.put_back(
                place,
                f"{why}: load_state_dict(state_dict()) goes on with it",
                _functions.copy_of(error) if is_kept else None,
            )
        finally:
            self.leave()

    def leave(self) -> None:
        """The pass is over: nobody looks at a next batch until another one begins."""
        self._delivery.end()

    def peek(self) -> Batch | None:
        """A copy of the next batch; None at the end."""
        if self._skips:
            return None
        place = BatchPlace()
        fields = self._maker.peek(place)
        return None if fields is None else self._made_of(fields, place, is_next=False)

    def take_waits(self) -> list[tuple[float, str]]:
        """The waits of the steps since the last call, and their causes."""
        return self._maker.take_waits()

    def close(self) -> None:
        self._maker.close()
        self._delivery.close()

    def _made_of(self, fields: list[tuple[str, Any]], place: BatchPlace, *, is_next: bool = True) -> Batch:
        if self._left_behind is not None:
            self._left_behind.meet(fields)
            self._left_behind = None
        numbers: tuple[int, ...] = ()
        if self._delivery.draws:
            numbers = (self._opened.options["seed"], place.epoch, place.at, self._opened.native.rank)
        return self._delivery.batch_of(fields, self._opened.dtypes, numbers, is_next=is_next)


class Iterator:
    """One pass over an epoch.

    Args:
        loader: lives as long as this.
        introduction: says at the end what was not known before; None: another process does.
    """

    def __init__(
        self, loader: Any, batches: Batches, among: AmongRanks, introduction: Introduction | None, iteration: int
    ) -> None:
        self._loader = loader
        self._batches = batches
        self._among = among
        self._introduction = introduction
        self._iteration = iteration
        self._is_done = False
        self._has_begun = False

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Batch:
        if self._is_done:  # For good, however the loader goes on.
            raise StopIteration
        if self._has_begun:
            self._among.step_ended()
        place = BatchPlace()
        try:
            has_one, batch = self._batches.next(self._iteration, place)
            if has_one:
                self._has_begun = True
                self._among.step_begins()
                return batch
        except BaseException as error:  # A handler of a signal may raise anywhere.
            self._batches.put_back(place, error)
            raise
        self._is_done = True
        self._among.epoch_ended()
        if self._introduction is not None:
            self._introduction.say(self._loader)
        raise StopIteration


def introduction_of(opened: Opened, place: Place, delivery: Delivery, *, drawn_by: str, is_end_said: bool) -> Introduction | None:
    """The words on the log as epochs begin; None: another process says them."""
    if place.among(opened.native)[0] != 0:
        return None
    made = Introduction(
        opened.url, opened.options, drawn_by=drawn_by, is_end_said=is_end_said, ops=delivery.ops
    )
    classes_met.meet(opened.url, opened.classes)
    return made
