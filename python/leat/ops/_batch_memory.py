"""The memory of a batch, which the engine mixes."""

from __future__ import annotations

from typing import Any

import numpy as np

from leat._batches._dtypes import is_torch


def dtype_name(array: Any) -> str:
    """As the engine calls it; another name if its bytes are in another order."""
    return str(array.dtype).removeprefix("torch.")


def reach(array: Any, *, is_own: bool) -> tuple[Any, np.ndarray] | None:
    """The array that is to be written, and its bytes, one after the other.

    The array is the given one if ``is_own`` and it is writable, and a copy otherwise. None
    if the engine cannot reach its numbers: they lie on a device or apart, or torch follows
    what becomes of them.
    """
    if type(array) is np.ndarray:
        flags = array.flags
        if array.size == 0 or not (flags.c_contiguous and flags.aligned) or array.dtype.hasobject:
            return None
        mine = array if is_own and flags.writeable else array.copy()
        return mine, mine.reshape(-1).view(np.uint8)
    return _reach_tensor(array, is_own) if is_torch(array) else None


def _reach_tensor(tensor: Any, is_own: bool) -> tuple[Any, np.ndarray] | None:
    import torch

    is_plain = type(tensor) is torch.Tensor and tensor.layout == torch.strided
    if not is_plain or tensor.device.type != "cpu" or not tensor.is_contiguous() or tensor.numel() == 0:
        return None
    if tensor.requires_grad or tensor.is_complex() or tensor.is_quantized:
        return None
    mine = tensor if is_own else tensor.clone()
    return mine, mine.reshape(-1).view(torch.uint8).numpy()
