"""A training of bench/gpu_bench.py by itself, as `leat profile` runs it: on one card, or on a card for each rank.

    gpu_training.py resnet50|gpt URL [--fake SECONDS-OF-A-STEP] [--epochs 1000]

It finds the bucket by AWS's variables. Several ranks exchange gradients over NCCL; on fake devices, over Gloo.
"""

from __future__ import annotations

import argparse
import os
from typing import Any, NamedTuple

import leat
from gpu_devices import Card, Device, Fake
from leat import ops

CONTEXT = 1024
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


class Work(NamedTuple):
    """A training, and its data."""

    name: str
    batch: int
    fake_step: float  # Seconds, on the device that sleeps.


WORKS = {"resnet50": Work("resnet50", 128, 0.25), "gpt": Work("gpt", 16, 0.05)}


def loader_of(work: Work, url: str, device: Device | None, *, epochs: int, context: int = CONTEXT) -> leat.Loader:
    """Batches as the training takes them: (images, labels), or (tokens,). Without a device they stay in memory."""
    options: dict[str, Any] = dict(device.loader_options) if device is not None else {"output": "numpy"}
    options.update(global_batch_size=work.batch, train=True, seed=3, epochs=epochs, batch="tuple")
    if work.name == "gpt":
        tokens = leat.Dataset.tokens(url, dtype="uint16", seq_len=context + 1)
        return leat.Loader(tokens, fields=("tokens",), **options)
    chain = [ops.DecodeImage(), ops.RandomResizedCrop(224), ops.RandomHorizontalFlip(), ops.Normalize(**IMAGENET)]
    return leat.Loader(url, fields=("image", "label"), ops=chain, **options)


class JoinedFake(Fake):
    """Steps that end with an exchange between ranks."""

    def step(self, batch: Any) -> None:
        import torch

        super().step(batch)
        torch.distributed.all_reduce(torch.zeros(1))


def device_of(seconds: float | None, work: str) -> Device:
    """The device of this rank."""
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        import torch

        if seconds is None:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl" if seconds is None else "gloo")
    if seconds is not None:
        return (JoinedFake if ranks > 1 else Fake)({work: seconds})
    card = Card()
    card.begin(work)
    if ranks > 1:
        card.join_ranks()
    return card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=list(WORKS))
    parser.add_argument("url")
    parser.add_argument("--batch", type=int, help="of a rank")
    parser.add_argument("--context", type=int, default=CONTEXT)
    parser.add_argument("--fake", type=float, metavar="SECONDS", help="a step of a device that sleeps")
    parser.add_argument("--epochs", type=int, default=1000)
    args = parser.parse_args()
    work = WORKS[args.work]
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    work = work._replace(batch=(args.batch or work.batch) * ranks)
    device = device_of(args.fake, work.name)
    if isinstance(device, Fake):
        device.begin(work.name)
    with loader_of(work, args.url, device, epochs=args.epochs, context=args.context) as loader:
        for _ in range(args.epochs):
            for batch in loader:
                device.step(batch)
    busy, _ = device.finish()
    print(f"steps took {busy:.1f} s of the device")


if __name__ == "__main__":
    main()
