"""Trains on a Dataset of one's own, transformed in Python: only the import is Leat's.

    torchrun --nproc-per-node=4 examples/train_own_dataset.py build/demo-data/v1/digits/train
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import torch
import torch.distributed as dist
from leat.torch import DataLoader, get_worker_info  # torch.utils.data has both.
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset, DistributedSampler


class Pictures(Dataset):
    """folder/class/name.png, turned a little."""

    def __init__(self, folder: str) -> None:
        self.paths = sorted(pathlib.Path(folder).glob("*/*.png"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        degrees = get_worker_info().rng.random_generator.uniform(-10, 10)
        picture = Image.open(self.paths[index]).rotate(degrees, Image.Resampling.BILINEAR)
        return torch.from_numpy(np.float32(picture) / 255), int(self.paths[index].parent.name)


def main(folder: str) -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    network = DistributedDataParallel(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    dataset = Pictures(folder)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, 64 // dist.get_world_size(), sampler=sampler, num_workers=2)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(images), labels)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
