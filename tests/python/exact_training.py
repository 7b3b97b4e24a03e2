"""A training of two layers on any mesh, whose losses tell whether the batches were the same: to the last bit.

Weights, activations and errors are rounded to multiples of 2^-16, and pixels are multiples of 2^-8. So each product
and each sum of a matrix product is exact in float64, and its result depends neither on the order of additions, nor on
how samples are divided among processes, nor on the number of processes that gloo reduces over. Gradients are summed
over the data ranks by torch's DistributedDataParallel, and divided by the size of the global batch. Losses are
gathered by sample.

    python exact_training.py '{"url": …, "dims": {"dp": 2, "tp": 2, "pp": 1}, "global_batch_size": 12, "folder": …}'

Each step saves the weights and the loader's state in the folder, and appends a line to its file `losses`. It goes on
with the last step that was saved whole. With "gate", a step waits until that file has a number above its own.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import signal
import sys
import time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

import leat

GRID = 2.0**16
PIXELS, HIDDEN, RATE = 3 * 8 * 8, 8, 2.0**-6


class Rounded(torch.autograd.Function):
    """To the grid; the gradient too, if it is one of a sample."""

    @staticmethod
    def forward(context: Any, value: torch.Tensor, of_samples: bool) -> torch.Tensor:
        context.of_samples = of_samples
        return torch.round(value * GRID) / GRID

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        return (torch.round(gradient * GRID) / GRID if context.of_samples else gradient), None


class SummedOver(torch.autograd.Function):
    """Tensor parallel: the sum of what the ranks of a group have."""

    @staticmethod
    def forward(context: Any, value: torch.Tensor, group: Any) -> torch.Tensor:
        value = value.clone()
        dist.all_reduce(value, group=group)
        return value

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        return gradient, None


class First(nn.Module):
    """A part of the hidden units."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(weights)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return Rounded.apply(pixels @ Rounded.apply(self.weights, False).T, True)


class Last(nn.Module):
    """The output, of all parts."""

    def __init__(self, weights: torch.Tensor, tensor_group: Any) -> None:
        super().__init__()
        self.weights = nn.Parameter(weights)
        self._group = tensor_group

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return Rounded.apply(SummedOver.apply(hidden @ Rounded.apply(self.weights, False), self._group), True)


def summed(group, bucket):
    """In place of DistributedDataParallel's mean, which divides by the number of ranks."""
    return dist.all_reduce(bucket.buffer(), group=group, async_op=True).get_future().then(lambda done: done.value()[0])


def saved(folder: pathlib.Path) -> tuple[int, list[torch.Tensor], dict | None]:
    """The last step that is there whole: its number, the weights of both layers, and the loader's state."""
    draw = np.random.default_rng(7)
    weights = [torch.from_numpy(draw.normal(size=size)) / 16 for size in ((HIDDEN, PIXELS), (HIDDEN,))]
    for path in sorted(folder.glob("*.json"), key=lambda path: int(path.stem), reverse=True):
        told = json.loads(path.read_text())
        parts = [[folder / f"{path.stem}.{layer}.{part}.pt" for part in range(told["tp"])] for layer in range(2)]
        if all(part.exists() for part in sum(parts, [])):
            weights = [torch.cat([torch.load(part) for part in of_layer]) for of_layer in parts]
            return int(path.stem), weights, told["state"]
    return 0, weights, None


def keep(path: pathlib.Path, write: Any) -> None:
    """Whole, or not at all."""
    new = path.with_name(f"{path.name}.new")
    write(new)
    new.rename(path)


class Training:
    """One process of it."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told
        dims = told.get("dims") or {"dp": dist.get_world_size(), "tp": 1, "pp": 1}
        self.mesh = init_device_mesh("cpu", tuple(dims.values()), mesh_dim_names=tuple(dims))
        self._at = dict(zip(dims, self.mesh.get_coordinate()))
        self._tensors, self._stages = dims["tp"], dims["pp"]
        self._folder = pathlib.Path(told["folder"])
        self.step, weights, self.state = saved(self._folder)
        mine = slice(HIDDEN // self._tensors * self._at["tp"], HIDDEN // self._tensors * (self._at["tp"] + 1))
        self._layers: dict[int, nn.Module] = {}
        self._wrapped: dict[int, nn.Module] = {}
        self._data_group = self.mesh.get_group("dp")
        for layer in range(2) if self._stages == 1 else [self._at["pp"]]:
            part = weights[layer][mine].clone()
            self._layers[layer] = First(part) if layer == 0 else Last(part, self.mesh.get_group("tp"))
            wrapped = DistributedDataParallel(self._layers[layer], process_group=self._data_group)
            wrapped.register_comm_hook(self._data_group, summed)
            self._wrapped[layer] = wrapped

    def take(self, batch: dict[str, Any]) -> list[float] | None:
        """One step; the losses of the global batch where the last stage is."""
        pixels = torch.from_numpy(np.asarray(batch["image"])).reshape(-1, PIXELS).double() / 256
        wanted = torch.from_numpy(batch["index"] % 7).double() / 8
        group, losses = self.mesh.get_group("pp"), None
        if 0 in self._layers:
            hidden = self._wrapped[0](pixels)
            if self._stages > 1:
                dist.send(hidden.detach(), dist.get_global_rank(group, 1))
                gradient = torch.empty_like(hidden)
                dist.recv(gradient, dist.get_global_rank(group, 1))
                hidden.backward(gradient)
        else:
            hidden = torch.empty(len(pixels), HIDDEN // self._tensors, dtype=torch.float64)
            dist.recv(hidden, dist.get_global_rank(group, 0))
            hidden.requires_grad_()
        if 1 in self._layers:
            losses = (self._wrapped[1](hidden) - wanted) ** 2 / 2
            losses.sum().backward()
            if self._stages > 1:
                dist.send(hidden.grad, dist.get_global_rank(group, 0))
        with torch.no_grad():
            for layer in self._layers.values():
                layer.weights -= RATE * layer.weights.grad / self._told["global_batch_size"]
                layer.weights.grad = None
        if losses is None:
            return None
        parts: list[Any] = [None] * dist.get_world_size(self._data_group)
        dist.all_gather_object(parts, losses.tolist(), group=self._data_group)
        return sum(parts, [])

    def save(self, state: dict[str, Any], losses: list[float] | None) -> None:
        self.step += 1
        if self._at["dp"] == 0:
            for layer, module in self._layers.items():
                path = self._folder / f"{self.step}.{layer}.{self._at['tp']}.pt"
                keep(path, lambda new, module=module: torch.save(module.weights.detach(), new))
        if dist.get_rank() == 0:
            told = json.dumps({"state": state, "tp": self._tensors})
            keep(self._folder / f"{self.step}.json", lambda new: new.write_text(told))
        if losses is not None and self._at["dp"] == self._at["tp"] == 0:
            said = {"step": self.step, "loss": math.fsum(losses), "ranks": dist.get_world_size(self._data_group),
                    "processes": dist.get_world_size()}  # fmt: skip
            with (self._folder / "losses").open("a") as file:
                file.write(json.dumps(said) + "\n")

    def wait(self) -> None:
        """Until the gate is open for the next step."""
        while "gate" in self._told and int(pathlib.Path(self._told["gate"]).read_text()) <= self.step:
            time.sleep(0.05)


def main() -> None:
    told = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    training = Training(told)
    if dist.get_rank() == 0:
        (pathlib.Path(told["folder"]) / f"began-{dist.get_world_size()}-{time.time_ns()}").touch()
    options = {"seed": 5, "train": True, "epochs": 1, "ids": True, "batch": "dict", "output": "numpy", "threads": 1}
    ops = [leat.ops.DecodeImage(), leat.ops.RandomCrop(8)]
    storage = {"storage_options": {"no_sign_request": True}} if "://" in told["url"] else {}
    with leat.Loader(
        told["url"], global_batch_size=told["global_batch_size"], rank=training.mesh, ops=ops, **storage, **options
    ) as loader:
        if training.state is not None:
            loader.load_state_dict(training.state)
        training.wait()
        for batch in loader:
            if told.get("dies") == [dist.get_rank(), training.step]:
                os.kill(os.getpid(), signal.SIGKILL)
            losses = training.take(batch)
            training.save(loader.state_dict(), losses)
            training.wait()
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
