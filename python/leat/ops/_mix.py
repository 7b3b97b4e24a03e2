"""Ops that mix the samples of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leat import _functions, _native
from leat._batches._dtypes import is_torch
from leat.ops._batch_memory import dtype_name, reach
from leat.ops._decode import DecodeMask
from leat.ops._op import Op, fail
from leat.ops._parse import ParseBoxes, ParseKeypoints

BatchFunction = Callable[[Any, str, "tuple[int, ...]"], Any]


class BatchOp(Op):
    """An op that gets the batch as the loader delivers it, in the thread that calls
    `next()`. Its draws depend only on the seed, the epoch, the position and the rank."""

    per = "batch"

    def for_batch(self, place: int, *, is_own: bool = False) -> BatchFunction:
        """The op as a loader calls it: with the fields, the kind of the batch, and the
        numbers of its position. ``place`` is the op's place in its list; ``is_own`` as for
        `apply`."""

        def call(batch: Any, kind: str, numbers: tuple[int, ...]) -> Any:
            if not isinstance(batch, dict):
                fail(self, "it needs the fields by name: put it before other ops of batches")
            return self.apply(batch, _functions.rng_of(*numbers, place), is_own=is_own)

        return call

    def apply(
        self, batch: dict[str, Any], rng: np.random.Generator, *, is_own: bool = False
    ) -> dict[str, Any]:
        """The batch that is delivered instead. If ``is_own``, nobody else has the arrays of
        ``batch``, and the op may write into them."""
        raise NotImplementedError

    def check_beside(self, ops: Sequence[Op]) -> None:
        """Raises `leat.InvalidArgument` if it would part what other ops of a loader keep together."""


class _Mixing(BatchOp):
    """The common part of MixUp and CutMix."""

    def __init__(
        self,
        alpha: float = 1.0,
        num_classes: int | None = None,
        *,
        image: str = "image",
        label: str = "label",
        layout: str = "CHW",
    ) -> None:
        if not 0 < alpha < math.inf:
            fail(self, f"alpha={alpha!r} must be above 0")
        if num_classes is not None and (isinstance(num_classes, bool) or num_classes < 1):
            fail(self, f"num_classes={num_classes!r} must be a whole number above 0")
        params = {
            "alpha": float(alpha),
            "num_classes": num_classes,
            "image": image,
            "label": label,
            "layout": self._choice("layout", layout, ("CHW", "HWC")),
        }
        super().__init__(params, None, None)

    def check_beside(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, (DecodeMask, ParseBoxes, ParseKeypoints)):
                fail(self, f"it mixes the pictures of a batch, and what {type(op).__name__} reads of each "
                           "would stay as it was: leave one of the two out")  # fmt: skip

    def apply(
        self, batch: dict[str, Any], rng: np.random.Generator, *, is_own: bool = False
    ) -> dict[str, Any]:
        image, label = self._params["image"], self._params["label"]
        for name in (image, label):
            if name not in batch:
                fail(self, f"the batch has no field {name!r}; it has {', '.join(batch)}")
        images, given = batch[image], batch[label]
        if not hasattr(images, "ndim") or images.ndim != 4:
            fail(self, f"{image!r} is no batch of pictures of one size, an array of 4 dimensions")
        labels = self._soft(given)
        if labels.shape[0] != images.shape[0]:
            fail(self, f"{images.shape[0]} pictures, and {labels.shape[0]} labels")
        share = float(rng.beta(self._params["alpha"], self._params["alpha"]))
        images, share = self._mixed(images, share, rng, is_own)
        labels = _blended(labels, share, is_own or labels is not given)
        return {**batch, image: images, label: labels}

    def _mixed(
        self, images: Any, share: float, rng: np.random.Generator, is_own: bool
    ) -> tuple[Any, float]:
        """The images, and what share of each is its own."""
        raise NotImplementedError

    def _soft(self, labels: Any) -> Any:
        """As float32 of shape (samples, classes)."""
        count = self._params["num_classes"]
        if not hasattr(labels, "ndim") or labels.ndim not in (1, 2):
            fail(self, "the labels are no array of shape (samples,) or (samples, classes)")
        if labels.ndim == 2:
            if count is not None and labels.shape[1] != count:
                fail(self, f"the labels have {labels.shape[1]} classes, not {count}")
            return labels if _is_float(labels) else _as_float32(labels)
        if count is None:
            fail(self, "num_classes has to be given where labels are numbers of classes")
        numbers = np.asarray(labels.cpu() if hasattr(labels, "cpu") else labels)
        if numbers.dtype.kind not in "iu":
            fail(self, f"labels of {numbers.dtype} are no numbers of classes")
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
            fail(self, f"labels reach from {numbers.min()} to {numbers.max()}, not 0 to {count - 1}")
        hot = np.zeros((len(numbers), count), np.float32)
        hot[np.arange(len(numbers)), numbers] = 1
        return _like(labels, hot)


class MixUp(_Mixing):
    """Blends each picture of a batch with the one before it, and their labels, as
    torchvision's op of that name does.

        ops = [DecodeImage(), RandomResizedCrop(224), Normalize("imagenet"),
               MixUp(num_classes=1000)]

    Labels become float32 of shape ``(samples, num_classes)``. The op draws one share for
    the whole batch, from Beta(alpha, alpha). Pictures must be floats.

    Args:
        alpha: of the distribution; above 0.
        num_classes: the number of classes; None if the labels already have a column for
            each.
        image, label: the names of the fields.
        layout: of the pictures, as `DecodeImage` has it.
    """

    def _mixed(
        self, images: Any, share: float, rng: np.random.Generator, is_own: bool
    ) -> tuple[Any, float]:
        if not _is_float(images):
            fail(self, f"it blends floats, not {images.dtype}: put Normalize or Cast before it")
        return _blended(images, share, is_own), share


class CutMix(_Mixing):
    """Replaces a random part of each picture of a batch by that of the one before it, and
    blends their labels by its area, as torchvision's op of that name does.

    Labels become float32 of shape ``(samples, num_classes)``. The op draws one part for the
    whole batch.

    Args:
        alpha: of the distribution of the area that is kept, Beta(alpha, alpha).
        num_classes, image, label, layout: as for `MixUp`.
    """

    def _mixed(
        self, images: Any, share: float, rng: np.random.Generator, is_own: bool
    ) -> tuple[Any, float]:
        is_chw = self._params["layout"] == "CHW"
        channels, other = (images.shape[1], images.shape[3]) if is_chw else (images.shape[3], images.shape[1])
        if channels > 4 >= other:
            fail(self, f'pictures of shape {tuple(images.shape[1:])} are not {self._params["layout"]}: say layout=')
        height, width = images.shape[2:] if is_chw else images.shape[1:3]
        middle_x, middle_y = int(rng.integers(width)), int(rng.integers(height))
        half = 0.5 * math.sqrt(1 - share)
        half_x, half_y = int(half * width), int(half * height)
        rows = slice(max(middle_y - half_y, 0), min(middle_y + half_y, height))
        columns = slice(max(middle_x - half_x, 0), min(middle_x + half_x, width))
        area = (rows.stop - rows.start) * (columns.stop - columns.start)
        return _pasted(images, rows, columns, is_chw, is_own), 1 - area / (width * height)


class RandomChoice(BatchOp):
    """Applies one of several ops of batches to each batch, such as `MixUp` or `CutMix`.

    Args:
        ops: the ops.
        p: the probability of each; None for equal ones.
    """

    def __init__(self, ops: Sequence[BatchOp], p: Sequence[float] | None = None) -> None:
        self.ops = list(ops)
        if not self.ops or not all(isinstance(op, BatchOp) for op in self.ops):
            fail(self, f"ops={ops!r} must be a list of ops of batches: MixUp, CutMix")
        weights = [1.0] * len(self.ops) if p is None else [float(one) for one in p]
        if len(weights) != len(self.ops) or min(weights) < 0 or not 0 < sum(weights) < math.inf:
            fail(self, f"p={p!r} must be {len(self.ops)} numbers from 0 on, not all 0")
        self._weights = np.asarray(weights) / sum(weights)
        specs = [{"op": type(op).__name__, **op._params} for op in self.ops]
        super().__init__({"ops": specs, "p": self._weights.tolist()}, None, None)

    def check_beside(self, ops: Sequence[Op]) -> None:
        for op in self.ops:
            op.check_beside(ops)

    def apply(
        self, batch: dict[str, Any], rng: np.random.Generator, *, is_own: bool = False
    ) -> dict[str, Any]:
        chosen = self.ops[int(rng.choice(len(self.ops), p=self._weights))]
        return chosen.apply(batch, rng, is_own=is_own)


_BLENDED_BY_ENGINE = ("float16", "bfloat16", "float32", "float64")


def _is_float(array: Any) -> bool:
    if is_torch(array):
        return bool(array.is_floating_point())
    # ml_dtypes' bfloat16 is of no kind of NumPy's.
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _as_float32(array: Any) -> Any:
    return array.float() if is_torch(array) else array.astype(np.float32)


def _like(array: Any, made: np.ndarray) -> Any:
    """A NumPy array as one of the kind of another, and where that lies."""
    if is_torch(array):
        import torch

        return torch.from_numpy(made).to(array.device)
    if isinstance(array, np.ndarray):
        return made
    import jax

    return jax.numpy.asarray(made)


def _rolled(array: Any) -> Any:
    """Each sample's neighbour: the one before it; the first's is the last."""
    if is_torch(array):
        return array.roll(1, 0)
    if isinstance(array, np.ndarray):
        return np.concatenate((array[-1:], array[:-1]))
    import jax

    return jax.numpy.roll(array, 1, 0)


def _blended(array: Any, share: float, is_own: bool) -> Any:
    dtype = dtype_name(array)
    if dtype in _BLENDED_BY_ENGINE and (reached := reach(array, is_own=is_own)) is not None:
        made, memory = reached
        _native.blend_samples(memory, len(made), dtype, share)
        return made
    other = _rolled(array)
    if isinstance(array, np.ndarray) or is_torch(array):
        other *= 1 - share  # A copy already; no need of another.
        other += array * share
        return other
    return other * (1 - share) + array * share


def _pasted(images: Any, rows: slice, columns: slice, is_chw: bool, is_own: bool) -> Any:
    """Each image with a part of its neighbour."""
    if (reached := reach(images, is_own=is_own)) is not None:
        made, memory = reached
        _paste(memory, made.shape, memory.size // math.prod(made.shape), rows, columns, is_chw)
        return made
    where = (slice(None), slice(None), rows, columns) if is_chw else (slice(None), rows, columns)
    if is_torch(images):
        made = images.clone()
    elif isinstance(images, np.ndarray):
        made = images.copy()
    else:
        return images.at[where].set(_rolled(images)[where])
    made[1:][where] = images[:-1][where]
    made[:1][where] = images[-1:][where]
    return made


def _paste(
    memory: np.ndarray, shape: Sequence[int], item_bytes: int, rows: slice, columns: slice, is_chw: bool
) -> None:
    _, first, second, third = shape
    planes, height, width = (first, second, third) if is_chw else (1, first, second)
    pixel_bytes = item_bytes if is_chw else third * item_bytes
    _native.paste_samples(
        memory, planes=planes, rows=height, row_bytes=width * pixel_bytes,
        first_row=rows.start, part_rows=rows.stop - rows.start,
        first_byte=columns.start * pixel_bytes, part_bytes=(columns.stop - columns.start) * pixel_bytes,
    )  # fmt: skip
