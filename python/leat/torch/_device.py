"""Batches on their way to a device.

Memory from which a device can be written at full speed is page-locked, and making
such memory is slow. torch's host allocator keeps the memory that it once made, and
knows which copies still read it. So tensors are pinned by torch and copied on a
stream of their own, beside the work of the device, and the stream of the training
loop waits for them. The training loop's thread waits for nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from leat._batches._ragged import Ragged
from leat.errors import InvalidArgument

Fields = list[tuple[str, Any]]


class Copied(NamedTuple):
    """Fields that are pinned, or on their way to the device."""

    fields: Fields
    is_there: Any
    """An event of the device; None if they are pinned alone."""


class Mover:
    """Pins the tensors of batches, and copies them to a device if there is one.

    Threads: `copy` by any; `hand_over` by the training loop's, on whose stream batches are used.

    Args:
        device: where they go; None pins only.

    Raises:
        leat.InvalidArgument: torch finds no such device.
    """

    def __init__(self, device: torch.device | None) -> None:
        self._device = device
        self._side: Any = None
        if device is None:
            return
        self._streams = _module_of(device)
        if not self._streams.is_available():
            raise InvalidArgument(
                f'device="{device}": torch finds none here; leave it out, or give device="cpu"'
            )
        if device.index is None:  # One for good: threads have current devices of their own.
            self._device = torch.device(device.type, self._streams.current_device())
        self._side = self._streams.Stream(device=self._device)

    def copy(self, fields: Fields) -> Copied:
        """The same fields, pinned or on their way to the device; texts stay as they are."""
        if self._device is None:
            return Copied(_of_each(torch.Tensor.pin_memory, fields), None)
        with self._streams.stream(self._side):  # It makes the device that of this thread, too.
            pinned = _of_each(torch.Tensor.pin_memory, fields)
            moved = _of_each(lambda tensor: tensor.to(self._device, non_blocking=True), pinned)
            return Copied(moved, self._side.record_event())

    def hand_over(self, copied: Copied) -> Fields:
        """The fields, for the work that the current stream gets from now on."""
        if copied.is_there is None:
            return copied.fields
        current = self._streams.current_stream(self._device)
        current.wait_event(copied.is_there)

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            # The side stream's allocator may not use the memory again until the
            # training loop's stream is done with it.
            tensor.record_stream(current)
            return tensor

        return _of_each(keep, copied.fields)


def _module_of(device: torch.device) -> Any:
    """torch.cuda for "cuda:1", and so on.

    Raises:
        leat.InvalidArgument: torch copies to no such device.
    """
    try:
        if hasattr(torch, "get_device_module"):
            return torch.get_device_module(device)
        return getattr(torch, device.type)  # torch before 2.5.
    except (AttributeError, RuntimeError):
        raise InvalidArgument(f'device="{device}": torch has no torch.{device.type}, which copies to it') from None


def _of_each(make: Any, fields: Fields) -> Fields:
    return [(name, _each(make, value)) for name, value in fields]


def _each(make: Any, value: Any) -> Any:
    if isinstance(value, Ragged):
        # Shapes are read on the CPU.
        return Ragged(make(value.values), make(value.offsets), value.shapes)
    return make(value) if isinstance(value, torch.Tensor) else value
