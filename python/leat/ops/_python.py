"""Functions of the user's."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from leat import _functions
from leat.ops._op import Op, fail


class Python(Op):
    """A function of yours, in the threads that decode.

        def augment(image, rng):            # (H, W, 3) uint8, as DecodeImage gives it
            return albumentation(image=image)["image"]

        ops = [DecodeImage(layout="HWC"), Python(augment)]

    It gets what the ops before made of the field: an array of its own, or a str; if
    there are none, the bytes of the field, or the column of the catalogue that `field`
    names: a number as an array of shape ``()``, a text as a str. It gives back an array, a torch tensor, a
    PIL image, a number or a str. Other ops may follow it: functions of yours, and
    Leat's own for images, which take a uint8 array in the layout of `DecodeImage`
    (HWC if the chain has none) and keep it.

    **Several fields.** With ``fields=`` it gets one argument for each, and gives back
    a tuple of as many, which take their places:

        def paste(image, mask, rng):
            ...
            return image, mask

        ops = [DecodeImage("photo"), DecodeMask("labels"), Python(paste, fields=("image", "mask"))]

    Such fields are not kept decoded by a cache.

    **Draws.** A function with a parameter ``rng`` gets a `numpy.random.Generator`
    that depends on the seed, the epoch and the sample alone. One that draws from the
    generators of `random`, NumPy or torch says ``global_rng=True``: they are seeded
    likewise before each call, and such functions run one after another. Then threads,
    world size and resume change no draw.

    **Threads.** Several threads call it at once, each with another sample. While it
    runs Python code they take turns (the GIL); NumPy, Pillow, OpenCV and torch let
    go of it in most of their work. A function that takes longer than the training
    step in Python alone belongs into processes: see `leat.torch.DataLoader`.

    **Errors.** `next()` raises the function's exception, with its traceback and a
    note that names the sample.

    Args:
        function: of one value, and of ``rng`` if it draws.
        fields: names of two or more fields, instead of `field` and `to`.
        per: ``"sample"``; or ``"batch"``: it gets the batch as the loader delivers
            it (or the one field that `field` names), in the thread that calls
            `next()`, and gives back what is delivered instead.
        field: the field; None for that of the op before, or the only one.
        to: the name of its field from there on.
        ragged: the first dimension may differ from sample to sample: `leat.Ragged`;
            of several fields, of each. One that is a `leat.Ragged` before stays so.
        global_rng: it draws from the process's own generators.
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
    ) -> None:
        if isinstance(fields, str) or not all(isinstance(name, str) for name in fields):
            fail(self, f"fields={fields!r} must be a tuple of names")
        if fields and (len(fields) < 2 or field is not None or to is not None or per == "batch"):
            fail(
                self,
                'fields= names two fields or more, of per="sample", instead of field= and to=',
            )
        params = {"ragged": True if ragged else None, "fields": list(fields) or None}
        super().__init__({k: v for k, v in params.items() if v is not None}, field, to)
        if not callable(function):
            fail(self, f"{function!r} cannot be called")
        self._choice("per", per, ("sample", "batch"))
        if per == "batch" and (ragged or to is not None):
            fail(self, 'ragged= and to= are for per="sample"')
        self.function = function
        self.fields = tuple(fields)
        self.per = per
        self.global_rng = global_rng

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"Python({name}, per={self.per!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Python):
            return NotImplemented
        mine = (self.function, self.per, self.global_rng, self.to_spec())
        return mine == (other.function, other.per, other.global_rng, other.to_spec())

    def __hash__(self) -> int:
        return hash((self.function, self.per))

    def for_batch(self, place: int) -> Callable[..., Any]:
        """The function as a loader calls it for a batch; ``place`` is the op's own in
        its list."""
        return _functions.call_per_batch(
            self.function, place, self._field, self.global_rng
        )
