"""Converts fields from the engine into the user's form.

A field comes as a NumPy array over its slot, as three of them (values, offsets and, if
more than lengths differ, shapes), or as a list of texts. The arrays made here share the
slot's memory; only fields that are pinned or go to a device are copied (`Moved`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from leat._batches import _dtypes
from leat._batches._ragged import Ragged
from leat.errors import InvalidArgument

Fields = list[tuple[str, Any]]


def name_of(output: str, *, pins: bool, device: Any) -> str:
    """Which of ``"numpy"``, ``"torch"`` and ``"jax"`` is meant.

    Raises:
        leat.InvalidArgument: there is no such output.
    """
    if output not in ("auto", "numpy", "torch", "jax"):
        raise InvalidArgument(f'output={output!r}; it is "auto", "numpy", "torch" or "jax"')
    if output != "auto":
        return output
    is_imported = hasattr(sys.modules.get("torch"), "from_numpy")
    return "torch" if is_imported or pins or device is not None else "numpy"


def choose(output: str, *, pins: bool, device: Any) -> Callable[[Fields], Fields]:
    """The function that converts the fields of each batch for an output that
    `name_of` gave.

    Raises:
        leat.InvalidArgument: it cannot be pinned or sent.
    """
    if output != "torch" and (pins or device is not None):
        named = "pin_memory=True" if pins else f"device={device!r}"
        raise InvalidArgument(f'{named} needs output="torch"; it is {output!r}')
    if output == "numpy":
        return lambda fields: [(name, _mapped(_dtypes.to_numpy, value)) for name, value in fields]
    if output == "jax":
        return _to_jax()
    return _to_torch(pins, device)


def _mapped(make: Callable[[Any], Any], value: Any) -> Any:
    """Makes every array of a field; texts stay."""
    if isinstance(value, tuple):
        return Ragged(*(part if part is None else make(part) for part in value))
    if isinstance(value, list):
        return value
    return make(value)


def _to_torch(pins: bool, device: Any) -> Callable[[Fields], Fields]:
    import torch

    def tensors(fields: Fields) -> Fields:
        return [(name, _mapped(_dtypes.to_torch, value)) for name, value in fields]

    target = None if device is None else _device_of(device)
    if target is not None and target.type == "cpu":
        target = None
    if target is None and pins and not has_accelerator():
        warnings.warn(
            "leat.Loader: pin_memory=True, but torch finds no accelerator: nothing is pinned",
            stacklevel=6,  # The line that makes the loader.
        )
        pins = False
    if target is None and not pins:
        return tensors

    return Moved(tensors, target)


def _device_of(device: Any) -> Any:
    import torch

    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        why = str(error).splitlines()[0]
        raise InvalidArgument(
            f"device={device!r}: torch knows no such device ({why}); it is one as torch names it, such as "
            '"cuda" or "cuda:1"'
        ) from None


class Moved:
    """Copies the fields of each batch into pinned memory or to a device, in two steps that two threads may take.

    Args:
        tensors: makes the tensors of a batch, over the engine's memory.
        device: None pins alone.

    Raises:
        leat.InvalidArgument: torch finds no such device.
    """

    def __init__(self, tensors: Callable[[Fields], Fields], device: Any) -> None:
        from leat.torch._device import Mover

        self._tensors = tensors
        self._mover = Mover(device)
        self._has_prepared = False

    def preparation(self) -> Callable[[], None]:
        """The first work of a thread that copies for the calling one, whose current device it then has."""
        from leat.torch._threads import preparation

        prepare_as_torch = preparation()

        def prepare() -> None:
            prepare_as_torch()
            self._has_prepared = True

        return prepare

    def copy(self, fields: Fields) -> Any:
        """Begins the copy; `hand_over` takes it."""
        return self._mover.copy(self._tensors(fields))

    def hand_over(self, copied: Any) -> Fields:
        """The fields, for work that the calling thread begins from now on."""
        if self._has_prepared:
            from leat.torch._threads import restore_threads

            self._has_prepared = False
            restore_threads()
        return self._mover.hand_over(copied)

    def __call__(self, fields: Fields) -> Fields:
        return self.hand_over(self.copy(fields))


def has_accelerator() -> bool:
    """Whether torch finds a device to which pinned memory is copied faster."""
    import torch

    if hasattr(torch, "accelerator"):
        return torch.accelerator.is_available()
    return torch.cuda.is_available()  # torch before 2.6.


def _to_jax() -> Callable[[Fields], Fields]:
    try:
        import jax.dlpack  # noqa: F401
    except ImportError as error:
        raise InvalidArgument('output="jax" needs jax: pip install jax') from error

    def arrays(fields: Fields) -> Fields:
        return [(name, _mapped(lambda part: _dtypes.to_jax(part, name), value)) for name, value in fields]

    return arrays
