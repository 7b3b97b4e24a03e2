"""bfloat16, which NumPy has not: from the engine it comes as its bits.

They stand in an array of `BITS`, which only this package sees.
"""

from __future__ import annotations

import logging
from typing import Any, Iterable

import numpy as np

from leat.errors import InvalidArgument

BITS = np.dtype([("bfloat16", "<u2")])


def numpy_bfloat16() -> np.dtype:
    """ml_dtypes' type.

    Raises:
        leat.InvalidArgument: it is not installed.
    """
    try:
        import ml_dtypes
    except ImportError:
        raise InvalidArgument(
            "NumPy has no bfloat16 of its own: pip install ml_dtypes, or have torch's "
            'with output="torch"'
        ) from None
    return np.dtype(ml_dtypes.bfloat16)


def check(ops: Iterable[Any], output: str) -> None:
    """Refuses ops that make bfloat16 where nothing can hold it.

    Raises:
        leat.InvalidArgument: as `numpy_bfloat16`.
    """
    if output == "numpy" and any(
        getattr(op, "_params", {}).get("dtype") == "bfloat16" for op in ops
    ):
        numpy_bfloat16()


def to_numpy(array: np.ndarray) -> np.ndarray:
    """Over the same memory."""
    return array.view(numpy_bfloat16()) if array.dtype == BITS else array


def to_torch(array: np.ndarray) -> Any:
    """A tensor over the same memory."""
    import torch

    if array.dtype == BITS:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


_HALF = {"int64": np.dtype("int32"), "uint64": np.dtype("uint32"), "float64": np.dtype("float32")}


def fit_for_jax(array: np.ndarray, field: Any) -> np.ndarray:
    """With 32 bits, where jax would make it so.

    Raises:
        leat.InvalidArgument: whole numbers that need 64 bits; jax would cut them without a word.
    """
    import jax

    from leat._say import once  # Which imports leat.ops, and they this module.

    half = _HALF.get(array.dtype.name)
    if half is None or jax.config.jax_enable_x64:
        return array
    keeps = 'jax.config.update("jax_enable_x64", True) keeps them'
    if half.kind == "f":
        once(logging.WARNING, f"the field {field!r} is float64, and jax makes float32 of its numbers: {keeps}")
    elif array.size and not np.iinfo(half.str).min <= int(array.min()) <= int(array.max()) <= np.iinfo(half.str).max:
        raise InvalidArgument(
            f"the field {field!r} has numbers that need 64 bits, and jax would cut them to 32: {keeps}"
        )
    return array.astype(half)


def to_jax(array: np.ndarray, field: Any) -> Any:
    """Over the same memory; bfloat16 are a copy, since DLPack of NumPy has none, and so is what
    has 64 bits, unless jax keeps them.

    Raises:
        leat.InvalidArgument: as `fit_for_jax`.
    """
    from jax.dlpack import from_dlpack

    array = fit_for_jax(array, field)
    if array.dtype == BITS:
        import jax.numpy as jnp

        return from_dlpack(array.view(np.uint16)).view(jnp.bfloat16)
    return from_dlpack(array)


def is_torch(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def of_torch(tensor: Any) -> np.ndarray:
    """The array of a tensor on the CPU."""
    import torch

    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(BITS)
    return tensor.numpy()


def name_of(dtype: np.dtype) -> str:
    """As the engine calls it."""
    return "bfloat16" if dtype == BITS else dtype.name
