"""Batches on their way to a device.

Memory from which a device can be written at full speed is page-locked, and making
such memory is slow. torch's host allocator keeps the memory that it once made, and
knows which copies still read it. So tensors are pinned by torch and copied on a
stream of their own, beside the work of the device, and the stream of the training
loop waits for them. The training loop's thread waits for nothing.
"""

from __future__ import annotations

from typing import Any

import torch

from leat._batches._ragged import Ragged
from leat.errors import InvalidArgument

Fields = list[tuple[str, Any]]


class Mover:
    """Pins the tensors of batches, and copies them to a device if there is one.

    Threads: one at a time; the copies belong to the current stream of that thread.

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
        self._side = self._streams.Stream(device=device)

    def move(self, fields: Fields) -> Fields:
        """The same fields, pinned or on the device; texts stay as they are."""
        pinned = [(name, _each(torch.Tensor.pin_memory, value)) for name, value in fields]
        if self._device is None:
            return pinned
        current = self._streams.current_stream(self._device)

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            there = tensor.to(self._device, non_blocking=True)
            # The side stream's allocator may not use the memory again until the
            # training loop's stream is done with it.
            there.record_stream(current)
            return there

        with self._streams.stream(self._side):
            moved = [(name, _each(copy, value)) for name, value in pinned]
        current.wait_stream(self._side)
        return moved


def _module_of(device: torch.device) -> Any:
    """torch.cuda for "cuda:1", and so on."""
    if hasattr(torch, "get_device_module"):
        return torch.get_device_module(device)
    return getattr(torch, device.type)  # torch before 2.5.


def _each(make: Any, value: Any) -> Any:
    if isinstance(value, Ragged):
        # Shapes are read on the CPU.
        return Ragged(make(value.values), make(value.offsets), value.shapes)
    return make(value) if isinstance(value, torch.Tensor) else value
