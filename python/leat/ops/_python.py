"""Functions of the user's."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from leat import _functions
from leat.errors import InvalidArgument, Skipped
from leat.ops._op import Op, fail, independent_or_none


class Python(Op):
    """Calls a function of yours in the threads that decode, or in worker processes.

        def augment(image, rng):            # (H, W, 3) uint8, as DecodeImage gives it
            return albumentation(image=image)["image"]

        ops = [DecodeImage(layout="HWC"), Python(augment)]

    The function gets the result of the ops before it: an array of its own, or a str. If it
    is the first op, it gets the bytes of the field, or the column of the catalogue that
    `field` names: a number as an array of shape ``()``, a text as a str. It returns an
    array, a torch tensor, a PIL image, a number or a str. Other ops may follow: functions
    of yours, and Leat's own ops for images, which take a uint8 array in the layout of
    `DecodeImage` (HWC if the chain has none) and keep that layout.

    **Several fields.** With ``fields=`` the function gets one argument for each field, and
    returns a tuple of as many values, which replace them:

        def paste(image, mask, rng):
            ...
            return image, mask

        ops = [DecodeImage("photo"), DecodeMask("labels"), Python(paste, fields=("image", "mask"))]

    A cache keeps such fields as bytes.

    **Draws.** A function with a parameter ``rng`` gets a `numpy.random.Generator` that
    depends on the seed, the epoch and the sample alone. If a function draws from the
    generators of `random`, NumPy or torch, give ``global_rng=True``: Leat then seeds them
    in the same way before each call, runs such functions one after another, and puts the
    generators back after each. So threads, world size and resume change no draw. A draw of
    the program's own at the moment when such a function runs comes from that seed; with
    ``workers="processes"`` there is no such moment.

    **Threads and processes.** Several threads call the function at once, each with another
    sample. While it runs Python code they take turns (the GIL); NumPy, Pillow, OpenCV and
    torch release the GIL in most of their work. A loader measures this: if calls of a
    millisecond or more take turns, it calls the function in worker processes from then on,
    and says so. Values, draws, order and exceptions are the same. Each process has a copy of
    the function, so that what a call changes, another process does not see: a function that
    counts or collects needs ``workers="threads"``.

    **Errors.** `next()` raises the function's exception, with its traceback and a
    note that names the sample. Two exceptions speak of the sample instead: `leat.Skipped`
    passes over it, as `Filter` does, and `leat.Corrupt` says that it is bad, which
    ``on_error="substitute"`` passes over.

    Args:
        function: takes one value, and ``rng`` if it draws.
        fields: names of two or more fields, instead of `field` and `to`.
        per: ``"sample"``; or ``"batch"``: it gets the batch as the loader delivers it (or
            the one field that `field` names), in the thread that calls `next()`, and
            returns the batch to deliver instead.
        field: the field; None for that of the op before, or the only one.
        to: the new name of its field.
        ragged: the first dimension may differ from sample to sample: `leat.Ragged`;
            of several fields, of each. One that is a `leat.Ragged` before stays so.
        global_rng: it draws from the process's own generators.
        workers: ``"auto"``; or ``"threads"`` or ``"processes"``, without measuring. A function
            that cannot be pickled stays in threads, and the log says why. A `leat.ops.Chain`
            calls it in the thread that asks.
        independent: it may draw apart from other fields of the sample, such as noise for
            the image alone. Two functions that draw, one for the image and one for its
            mask, raise without it: give one function both, with ``fields=``.
    """

    _name = "python"

    def __init__(
        self,
        function: Callable[..., Any],
        per: str = "sample",
        *,
        field: str | None = None,
        fields: Sequence[str] = (),
        to: str | None = None,
        ragged: bool = False,
        global_rng: bool = False,
        independent: bool = False,
        workers: str = "auto",
    ) -> None:
        if isinstance(fields, str) or not all(isinstance(name, str) for name in fields):
            fail(self, f"fields={fields!r} must be a tuple of names")
        if fields and (len(fields) < 2 or field is not None or to is not None or per == "batch"):
            fail(
                self,
                'fields= names two fields or more, of per="sample", instead of field= and to=',
            )
        if not callable(function):
            raise InvalidArgument(f"Python: {function!r} cannot be called")
        self.draws = global_rng or _functions.takes_rng(function)
        params = {
            "ragged": ragged or None, "fields": list(fields) or None, "draws": self.draws or None,
            "independent": independent_or_none(independent),
        }  # fmt: skip
        super().__init__({k: v for k, v in params.items() if v is not None}, field, to)
        self._choice("per", per, ("sample", "batch"))
        self._choice("workers", workers, ("auto", "threads", "processes"))
        if per == "batch" and (ragged or to is not None or workers != "auto"):
            fail(self, 'ragged=, to= and workers= are for per="sample"')
        self.function = function
        self.fields = tuple(fields)
        self.per = per
        self.global_rng = global_rng
        self.workers = workers

    @property
    def draws_alone(self) -> bool:
        """Whether it draws for one field, and has not said that this is meant."""
        sees_all = bool(self.fields) or (self.per == "batch" and self._field is None)
        return self.draws and not sees_all and "independent" not in self._params

    def __repr__(self) -> str:
        return f"Python({_name_of(self.function)}, per={self.per!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Python):
            return NotImplemented
        mine = (self.function, self.per, self.global_rng, self.workers, self.to_spec())
        return mine == (other.function, other.per, other.global_rng, other.workers, other.to_spec())

    def __hash__(self) -> int:
        return hash((self.function, self.per))

    def for_batch(self, place: int) -> Callable[..., Any]:
        """The function as a loader calls it for a batch; ``place`` is the op's own in
        its list."""
        return _functions.call_per_batch(
            self.function, place, self._field, self.global_rng
        )


def _name_of(function: Callable[..., Any]) -> str:
    """Its name, or that of its class, for messages: its own repr() may be long, or show a password that it holds."""
    if isinstance(function, functools.partial):
        return f"partial({_name_of(function.func)})"
    return str(getattr(function, "__qualname__", type(function).__qualname__))


class Filter(Python):
    """Keeps the samples for which a function of yours is true, and passes over the others.

        def is_large(image):                # (H, W, 3) uint8, as DecodeImage gives it
            return min(image.shape[:2]) >= 64

        ops = [DecodeImage(layout="HWC", ragged=True), Filter(is_large, name="large"), ...]

    For what the columns of the catalogue say, `leat.Dataset.filter` is better: it reads no
    sample.

    **Steps stay equal.** Another sample of the same epoch takes the place of one that is
    passed over. Which one follows from the seed, the epoch and the position alone, so it is
    the same for every number of ranks and after every resume, no rank has fewer batches,
    and ranks need not talk. In a mix it is of the same source. An epoch has as many
    positions as without the filter, and some of the samples that are kept come again in it.

    **Read once.** A loader reads a sample to learn that it is passed over, once: later
    epochs do not read it. With ``name=`` the answer is kept for later runs too, and for the
    other ranks of this node, in a file of Leat's cache folder that belongs to this very
    data (its catalogue). Give another name to a function that answers otherwise.

    `stats()` counts such places as ``"skipped"``. A row for which 1,000 samples in turn are
    passed over raises `leat.Skipped`.

    Args:
        function: takes the value of the field, as the ops before it made it, and returns
            whether to keep the sample. It must not draw, and no op before it may.
        name: of the function's answers, for later runs; None keeps them in this process.
        field, fields, workers: as for `Python`; with ``fields=`` it takes a value of each.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        field: str | None = None,
        fields: Sequence[str] = (),
        workers: str = "auto",
    ) -> None:
        if not callable(function):
            raise InvalidArgument(f"Filter: {function!r} cannot be called")
        if _functions.takes_rng(function):
            raise InvalidArgument("Filter: the function takes rng, and would skip other samples in each epoch")
        if name is not None and (not isinstance(name, str) or not name.strip() or not name.isprintable()):
            raise InvalidArgument(f"Filter(name={name!r}): give a text that can be printed, or None")
        super().__init__(_Keep(function, name), field=field, fields=fields, workers=workers)
        self._params["filters"] = True
        self.name = name
        self._called = _name_of(function)

    def __repr__(self) -> str:
        return f"Filter({self._called}, name={self.name!r})"


class _Keep:
    """Gives values back if the function wants them."""

    def __init__(self, function: Callable[..., Any], name: str | None) -> None:
        self.function = function
        self.name = name

    def __call__(self, *values: Any) -> Any:
        if not self.function(*values):
            raise Skipped(self.name or "a Filter skips it")
        return values if len(values) > 1 else values[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keep) and (self.function, self.name) == (other.function, other.name)

    def __hash__(self) -> int:
        return hash((self.function, self.name))
