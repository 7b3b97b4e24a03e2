"""Values of unequal length, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from leat.errors import InvalidArgument


class Ragged:
    """The values of a field whose samples differ in length.

    Attributes:
        values: all values one after another, shape ``(total, ...)``: bytes (uint8)
            of a field that no op has decoded, else of the type that its op gives.
        offsets: int64, shape ``(samples + 1,)``: sample ``i`` is
            ``values[offsets[i]:offsets[i + 1]]``.
    """

    __slots__ = ("offsets", "values")

    def __init__(self, values: Any, offsets: Any) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, sample: int) -> Any:
        """The values of one sample: a view, not a copy."""
        if not -len(self) <= sample < len(self):
            raise IndexError(f"sample {sample} of {len(self)}")
        sample %= len(self)
        return self.values[int(self.offsets[sample]) : int(self.offsets[sample + 1])]

    def tolist(self) -> list[Any]:
        """Each sample as bytes if it is a run of uint8, else as a list of numbers."""
        samples = [np.asarray(self[i]) for i in range(len(self))]
        if all(s.dtype == np.uint8 and s.ndim == 1 for s in samples):
            return [bytes(memoryview(s)) for s in samples]
        return [s.tolist() for s in samples]

    def pad(self, to: int | None = None, value: float = 0) -> Any:
        """A dense array, each sample filled up to `to` values.

        Args:
            to: the length; None for that of the longest sample.
            value: what it is filled with.

        Raises:
            leat.InvalidArgument: a sample is longer than that.
        """
        offsets = np.asarray(self.offsets)
        lengths = offsets[1:] - offsets[:-1]
        longest = int(lengths.max(initial=0))
        to = longest if to is None else to
        if longest > to:
            raise InvalidArgument(
                f"pad(to={to}): sample {int(lengths.argmax())} of the batch has "
                f"{longest} values; give to={longest} or more"
            )
        values = np.asarray(self.values)
        padded = np.full((len(self), to, *values.shape[1:]), value, values.dtype)
        padded[np.arange(to) < lengths[:, None]] = values[offsets[0] : offsets[-1]]
        if isinstance(self.values, np.ndarray):
            return padded
        import torch

        return torch.from_numpy(padded)

    def to_nested(self) -> Any:
        """A nested tensor of torch, in its jagged layout, over the same memory.

        Needs torch 2.5.
        """
        import torch

        return torch.nested.nested_tensor_from_jagged(
            torch.as_tensor(self.values), torch.as_tensor(self.offsets)
        )

    def __repr__(self) -> str:
        return f"leat.Ragged({len(self)} samples, {len(self.values)} values)"
