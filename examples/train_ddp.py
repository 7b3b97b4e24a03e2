"""Trains on many processes: each rank gets its share of every global batch.

    torchrun --nproc-per-node=4 examples/train_ddp.py s3://mine/digits/train
"""

from __future__ import annotations

import sys

import leat
import torch
import torch.distributed as dist
from leat import ops
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 4


def main(url: str) -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    network = DistributedDataParallel(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    loader = leat.Loader(
        url,
        # The batch of all ranks; the number of ranks changes no step.
        global_batch_size=64,
        # Shuffled; samples that do not fill a step are left out, so ranks stay
        # together.
        train=True,
        fields=("image", "label"),
        ops=[ops.DecodeImage(mode="L"), ops.Cast("float32")],
        epochs=EPOCHS,
    )
    for epoch in range(EPOCHS):
        total = torch.zeros(2)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(images), labels)
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item() * len(labels), len(labels)])
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {total[0] / total[1]:.3f} of {total[1]:.0f} samples")
    loader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
