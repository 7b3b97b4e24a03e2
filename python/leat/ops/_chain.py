"""Lists of ops, as the engine reads them."""

from __future__ import annotations

import json
from typing import Any, Iterable, Tuple

import numpy as np

from leat import _functions, _native
from leat._batches import _dtypes
from leat.errors import InvalidArgument
from leat.ops._op import Op
from leat.ops._python import Python


def functions_of(ops: Iterable[Op]) -> list[Any]:
    """The functions of the ops that call one for each sample, as the engine
    calls them."""
    return [
        _functions.call_per_sample(op.function, place, op.global_rng, op.fields)
        for place, op in enumerate(ops)
        if isinstance(op, Python) and op.per == "sample"
    ]


def listed(ops: Iterable[Op]) -> list[Op]:
    """Refuses what is no list, and a text, which is one of letters."""
    if isinstance(ops, str):
        raise InvalidArgument(
            f"ops={ops!r} is a text; write a list of leat.ops, such as "
            f"[leat.ops.DecodeImage(), leat.ops.Resize(224)]"
        )
    if isinstance(ops, Op):
        raise InvalidArgument(f"ops={ops!r} is one op; write a list of it: ops=[{ops!r}]")
    if not isinstance(ops, Iterable):
        raise InvalidArgument(f"ops={ops!r}; it is a list of leat.ops, such as [leat.ops.DecodeImage()]")
    return list(ops)


def specs_to_json(ops: Iterable[Op]) -> str:
    """The ops as one JSON list, as the engine reads them."""
    specs = []
    for op in ops:
        if not isinstance(op, Op):
            raise InvalidArgument(
                f"{op!r} is no op; write leat.ops.Resize(224) or another of leat.ops"
                + ("; a function of yours is leat.ops.Python(function)" if callable(op) else "")
            )
        if op.per != "batch":
            specs.append(op.to_spec())
    return json.dumps(specs)


class Chain:
    """Ops as a function from the bytes of one field to its array, or its str.

        chain = Chain([DecodeImage(), RandomResizedCrop(224)])
        array = chain(data, seed=0, epoch=3, sample=81)

    returns the array that a loader with these ops and this seed delivers. Any number of
    threads may call it; it releases the GIL while it works.

    A chain that begins with ``DecodeImage`` also takes decoded pixels, of shape ``(height,
    width, channels)``, or ``(height, width)`` of grey, uint8 (uint16 of the modes "I;16"
    and "RGB;16") in C order.
    """

    def __init__(self, ops: Iterable[Op]) -> None:
        self.ops: Tuple[Op, ...] = tuple(listed(ops))
        for op in self.ops:
            if isinstance(op, Op) and op.per == "batch":
                raise InvalidArgument(
                    f"{op!r} works on batches, and a Chain on one sample: give it to a "
                    f"leat.Loader"
                )
        _dtypes.check(self.ops, "numpy")
        self._program = _native.Program(specs_to_json(self.ops), functions_of(self.ops))

    def __call__(
        self, data: bytes | np.ndarray, seed: int = 0, epoch: int = 0, sample: int = 0
    ) -> np.ndarray | str:
        made = self._program.run(data, seed, epoch, sample)
        return made if isinstance(made, str) else _dtypes.to_numpy(made)

    def drawn(
        self, data: bytes | np.ndarray, seed: int = 0, epoch: int = 0, sample: int = 0
    ) -> list[dict[str, Any]]:
        """The draws of the random ops for this sample, in order: each with ``op``,
        its place in the chain, ``name``, as torchvision's functional calls the
        change, and its values. A change that the draws leave out is not in the
        list. Reads the header of the bytes alone; an empty list if the chain calls
        a function."""
        return list(json.loads(self._program.drawn(data, seed, epoch, sample)))

    def __repr__(self) -> str:
        return f"Chain({list(self.ops)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.ops,))
