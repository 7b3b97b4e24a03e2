"""Values of unequal length or shape, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leat._batches._dtypes import is_torch
from leat.errors import InvalidArgument

_MOST_CHANNELS = 4


class Ragged:
    """The values of a field whose samples differ in length, or in shape.

    ``ragged[i]`` is one sample, a view of its own shape; ``list(ragged)`` is a list of
    them.

    Attributes:
        values: all values one after another, shape ``(total, ...)``: bytes (uint8) if no op
            has decoded the field, otherwise of the type that its op makes. With `shapes` it
            is flat, ``(total,)``.
        offsets: int64, shape ``(samples + 1,)``: sample ``i`` is
            ``values[offsets[i]:offsets[i + 1]]``, in its shape.
        shapes: None if only the first dimension differs; otherwise int64, shape ``(samples,
            dimensions)``: for pictures ``(C, H, W)`` or ``(H, W, C)``, by the layout of
            `leat.ops.DecodeImage`.
    """

    __slots__ = ("offsets", "shapes", "values")

    def __init__(self, values: Any, offsets: Any, shapes: Any = None) -> None:
        self.values = values
        self.offsets = offsets
        self.shapes = shapes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, sample: int) -> Any:
        """The values of one sample: a view, not a copy."""
        if not -len(self) <= sample < len(self):
            raise IndexError(f"sample {sample} of {len(self)}")
        sample %= len(self)
        values = self.values[int(self.offsets[sample]) : int(self.offsets[sample + 1])]
        if self.shapes is None:
            return values
        return values.reshape(tuple(int(side) for side in self.shapes[sample]))

    def __iter__(self) -> Iterator[Any]:
        return (self[sample] for sample in range(len(self)))

    def tolist(self) -> list[Any]:
        """Each sample as bytes if it is a run of uint8, else as a list of numbers."""
        # NumPy has not all of torch's types.
        samples = [sample.cpu() if is_torch(sample) else np.asarray(sample) for sample in self]
        if all(str(s.dtype) in ("uint8", "torch.uint8") and s.ndim == 1 for s in samples):
            return [np.asarray(s).tobytes() for s in samples]
        return [s.tolist() for s in samples]

    def pad(self, to: Any = None, value: float = 0) -> Any:
        """A dense array, each sample padded after its end.

        Args:
            to: the length; with `shapes`, that of each dimension, or of the two of them
                but channels: ``(height, width)``, where only one dimension can be channels.
                None for the longest of the batch.
            value: the padding.

        Raises:
            leat.InvalidArgument: a sample is longer than that, or ``(height, width)`` may mean
                either layout.
        """
        if self.shapes is not None:
            return self._pad_shapes(to, value)
        offsets = np.asarray(self.offsets.cpu() if hasattr(self.offsets, "cpu") else self.offsets)
        lengths = offsets[1:] - offsets[:-1]
        longest = int(lengths.max(initial=0))
        to = longest if to is None else to
        if longest > to:
            raise InvalidArgument(
                f"pad(to={to}): sample {int(lengths.argmax())} of the batch has "
                f"{longest} values; give to={longest} or more"
            )
        if is_torch(self.values):
            padded = self._full((len(self), to, *self.values.shape[1:]), value)
            for row, begin, end in zip(padded, offsets[:-1].tolist(), offsets[1:].tolist()):
                row[: end - begin] = self.values[begin:end]
            return padded
        values = np.asarray(self.values)
        made = np.full((len(self), to, *values.shape[1:]), value, values.dtype)
        made[np.arange(to) < lengths[:, None]] = values[offsets[0] : offsets[-1]]
        if isinstance(self.values, np.ndarray):
            return made
        import jax

        return jax.numpy.asarray(made)

    def _pad_shapes(self, to: Any, value: float) -> Any:
        if not isinstance(self.values, np.ndarray) and not is_torch(self.values):
            import jax

            here = Ragged(np.asarray(self.values), np.asarray(self.offsets), np.asarray(self.shapes))
            return jax.numpy.asarray(here._pad_shapes(to, value))
        shapes = np.asarray(self.shapes)
        largest = shapes.max(axis=0, initial=0)
        wanted = self._wanted(to, shapes, largest)
        if too_large := np.argwhere((shapes > wanted).any(axis=1)).ravel().tolist():
            shape = tuple(shapes[too_large[0]].tolist())
            raise InvalidArgument(
                f"pad(to={to}): sample {too_large[0]} of the batch is {shape}; give "
                f"to={tuple(largest.tolist())} or more"
            )
        padded = self._full((len(self), *wanted.tolist()), value)
        for row, sample in zip(padded, self):
            row[tuple(slice(side) for side in sample.shape)] = sample
        return padded

    def _full(self, shape: tuple[int, ...], value: float) -> Any:
        """An array of that shape, where the values are and of their type."""
        if isinstance(self.values, np.ndarray):
            return np.full(shape, value, self.values.dtype)
        import torch

        return torch.full(shape, value, dtype=self.values.dtype, device=self.values.device)

    @staticmethod
    def _wanted(to: Any, shapes: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """The shape of each sample once it is padded."""
        if to is None:
            return largest
        sides = np.atleast_1d(np.asarray(to, np.int64))
        if len(sides) == len(largest):
            return sides
        # Channels are as many in all: they are the dimension that need not be said.
        if len(sides) == 2 and len(largest) == 3:
            first, last = (_may_be_channels(shapes[:, at]) for at in (0, 2))
            if first and last:
                height, width = sides.tolist()
                raise InvalidArgument(
                    f"pad(to={to}): the samples, such as {tuple(shapes[0].tolist())}, may be (C, H, W) or (H, W, C); give "
                    f"all three lengths: ({largest[0]}, {height}, {width}) or ({height}, {width}, {largest[2]})"
                )
            return np.array([largest[0], *sides] if first else [*sides, largest[2]])
        raise InvalidArgument(
            f"pad(to={to}): the samples have {len(largest)} dimensions; give as many "
            "lengths, or (height, width) of pictures"
        )

    def to_nested(self) -> Any:
        """A nested tensor of torch: over the same memory, in its jagged layout
        (torch 2.5), or with `shapes` a copy, in its strided one.
        """
        import torch

        if self.shapes is not None:
            return torch.nested.nested_tensor([torch.as_tensor(s) for s in self])
        return torch.nested.nested_tensor_from_jagged(
            torch.as_tensor(self.values), torch.as_tensor(self.offsets)
        )

    def __repr__(self) -> str:
        if self.shapes is not None:
            return f"leat.Ragged({len(self)} samples of {self.shapes.shape[1]} dimensions)"
        return f"leat.Ragged({len(self)} samples, {len(self.values)} values)"


def _may_be_channels(sides: np.ndarray) -> bool:
    """Whether a dimension of these lengths may be the channels of pictures."""
    return bool((sides == sides[0]).all() and sides[0] <= _MOST_CHANNELS)
