"""Trains on WebDataset's tar shards: 0001.png, 0001.cls and 0001.json side by side.

    torchrun --nproc-per-node=4 examples/train_webdataset.py s3://mine/shards
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
        global_batch_size=64,
        train=True,  # Shuffled in pieces of about 8 MiB, which the ranks divide.
        fields=("image", "cls", "weight"),
        ops=[
            ops.DecodeImage(field="png", mode="L"),
            ops.Cast("float32"),
            ops.ParseInt("cls"),
            ops.ParseJson("quality.weight", to="weight", dtype="float32"),
        ],
        epochs=EPOCHS,
    )
    for epoch in range(EPOCHS):
        for images, labels, weights in loader:
            optimizer.zero_grad()
            losses = nn.functional.cross_entropy(network(images), labels, reduction="none")
            loss = (losses * weights).mean()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.3f}")
    loader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
