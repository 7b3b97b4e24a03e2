"""Trains on pictures whose labels are in a CSV beside them: path,class_id,writer.

    torchrun --nproc-per-node=4 examples/train_csv.py s3://mine/digits/labels.csv
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
    rows = leat.Dataset.from_manifest(
        url, fields={"image": "path", "label": "class_id"}, columns=["writer"]
    )
    dataset = rows.filter(lambda of: of["writer"] != 3)  # Kept for a test.
    loader = leat.Loader(
        dataset,
        global_batch_size=64,
        train=True,
        fields=("image", "label"),
        ops=[ops.DecodeImage(field="image", mode="L"), ops.Cast("float32")],
        epochs=EPOCHS,
    )
    for epoch in range(EPOCHS):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(images), labels)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.3f}")
    loader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
