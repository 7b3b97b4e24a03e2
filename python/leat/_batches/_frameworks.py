"""Batches for TensorFlow and for JAX's global arrays: `Loader.to_tf` and `Loader.to_jax`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from leat._batches import _dtypes
from leat._batches._ragged import Ragged
from leat._say import drops_last
from leat.errors import InvalidArgument
from leat.ops import PadTo

if TYPE_CHECKING:
    from leat._loader import Loader


def as_numpy(value: Any) -> Any:
    """An array of NumPy's over the same memory; a `leat.Ragged` of such; texts stay."""
    if isinstance(value, Ragged):
        parts = (value.values, value.offsets, value.shapes)
        return Ragged(*(None if part is None else as_numpy(part) for part in parts))
    if hasattr(value, "detach"):
        array = _dtypes.of_torch(value.detach().cpu())
        return _dtypes.to_numpy(array)
    return value if isinstance(value, list) else np.asarray(value)


def _mapped(batch: Any, make: Any) -> Any:
    """The same kind of batch, with each field made anew: make(name, value)."""
    if isinstance(batch, Mapping):
        return {name: make(name, value) for name, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(make(number, value) for number, value in enumerate(batch))
    raise InvalidArgument(
        f"a batch is a dict or a tuple here, and collate= or a function of batches made {type(batch).__name__}"
    )


# --- TensorFlow --------------------------------------------------------------


def to_tf(loader: Loader) -> Any:
    """See `leat.Loader.to_tf`."""
    try:
        import tensorflow as tf
    except ImportError as error:
        raise InvalidArgument("to_tf() needs TensorFlow: pip install tensorflow-cpu, or tensorflow") from error
    first = loader.peek()
    if first is None:
        raise InvalidArgument(
            "to_tf() learns types and shapes from the next batch, and the epoch is over; call set_epoch()"
        )
    is_whole = drops_last(loader._opened.options) or bool(loader._opened.options["pad"])
    varies = any(isinstance(op, PadTo) and op._params.get("size") is None for op in loader._delivery.ops)
    spec = _mapped(first, lambda _, value: _spec_of(tf, as_numpy(value), is_whole, varies))

    def batches() -> Iterator[Any]:
        for batch in loader:
            yield _mapped(batch, lambda name, value: _tensor_of(tf, name, as_numpy(value), spec[name]))

    dataset = tf.data.Dataset.from_generator(batches, output_signature=spec)
    options = tf.data.Options()
    # Else TensorFlow puts a buffer behind the loader, and its state would run ahead.
    options.experimental_optimization.inject_prefetch = False
    options.deterministic = True
    return dataset.with_options(options)


def _spec_of(tf: Any, value: Any, is_whole: bool, varies: bool) -> Any:
    """The type of a field, of any step."""
    samples = len(value) if is_whole else None
    if isinstance(value, list):
        return tf.TensorSpec((samples,), tf.string)
    if isinstance(value, Ragged):
        dims = 1 if value.shapes is None else value.shapes.shape[1]
        shape = (samples, *[None] * dims, *value.values.shape[1:])
        kind = tf.as_dtype(value.values.dtype)
        return tf.RaggedTensorSpec(shape, kind, ragged_rank=dims, row_splits_dtype=tf.int64)
    # The pictures of a step of one, and those that are padded to a step's largest, have sizes of their own.
    is_fixed = not varies and len(value) != 1
    shape = value.shape[1:] if is_fixed or value.ndim < 3 else (None,) * (value.ndim - 1)
    return tf.TensorSpec((samples, *shape), tf.as_dtype(value.dtype))


def _tensor_of(tf: Any, name: Any, value: Any, spec: Any) -> Any:
    if isinstance(value, list):
        return np.array([text.encode() for text in value], dtype=object)
    if isinstance(value, Ragged):
        return _ragged_of(tf, value)
    if not spec.shape.is_compatible_with(value.shape):
        raise InvalidArgument(
            f"to_tf(): the field {name!r} has shape {value.shape} in this step, and {tuple(spec.shape)} by the first one; "
            "give ragged=True to its decoder, or a PadTo or Resize that makes all alike"
        )
    return value  # TensorFlow takes it as it lies, if it is aligned as its own tensors are.


def _ragged_of(tf: Any, ragged: Ragged) -> Any:
    values, offsets = ragged.values, np.asarray(ragged.offsets)
    if offsets[0] != 0:
        values, offsets = values[offsets[0] : offsets[-1]], offsets - offsets[0]
    if ragged.shapes is None:
        return tf.RaggedTensor.from_row_splits(values, offsets, validate=False)
    splits, rows = [], np.ones(len(ragged), np.int64)
    for dimension in range(ragged.shapes.shape[1]):
        lengths = np.repeat(ragged.shapes[:, dimension], rows)
        splits.append(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
        rows = rows * ragged.shapes[:, dimension]
    return tf.RaggedTensor.from_nested_row_splits(values, splits, validate=False)


# --- JAX ---------------------------------------------------------------------


class JaxBatches:
    """The batches of a loader as global arrays; each iter() is an epoch, as of the loader."""

    def __init__(self, loader: Loader, sharding: Any) -> None:
        try:
            import jax
        except ImportError as error:
            raise InvalidArgument("to_jax() needs jax: pip install jax") from error
        if loader.world_size != jax.process_count() or loader.rank != jax.process_index():
            raise InvalidArgument(
                f"to_jax(): this is process {jax.process_index()} of {jax.process_count()} to jax, and rank "
                f"{loader.rank} of {loader.world_size} to the loader; give leat.Loader(…, rank=jax.process_index(), "
                "world_size=jax.process_count())"
            )
        self._loader = loader
        self._sharding = sharding
        self._jax = jax

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            yield _mapped(batch, self._array_of)

    def __len__(self) -> int:
        return len(self._loader)

    def _array_of(self, name: Any, value: Any) -> Any:
        value = as_numpy(value)
        if not isinstance(value, np.ndarray):
            kind = "texts" if isinstance(value, list) else "values of unequal length or shape"
            raise InvalidArgument(
                f"to_jax(): the field {name!r} has {kind}, and jax has no such arrays; make them one shape by an op, "
                "such as leat.ops.PadTo, or leave the field out with fields="
            )
        value = _dtypes.fit_for_jax(value, name)
        return self._jax.make_array_from_process_local_data(self._sharding_of(name), value)

    def _sharding_of(self, name: Any) -> Any:
        if not isinstance(self._sharding, Mapping):
            return self._sharding
        if name not in self._sharding:
            names = ", ".join(map(str, self._sharding))
            raise InvalidArgument(f"to_jax(): sharding= has none for the field {name!r}; it names {names}")
        return self._sharding[name]
