"""Validates on many ranks, though the samples divide by nothing: each counts once.

    torchrun --nproc-per-node=4 examples/validate_ddp.py s3://mine/digits
"""

import sys

import leat
import torch
import torch.distributed as dist
from leat import ops
from torch import nn
from torch.nn.parallel import DistributedDataParallel as Parallel


def make_loader(url: str, **options: object) -> leat.Loader:
    return leat.Loader(url, global_batch_size=64,
                       ops=[ops.DecodeImage(mode="L"), ops.Cast("float32")], **options)  # fmt: skip


def in_turn(network: nn.Module, loader: leat.Loader) -> float:
    """Each sample once over all ranks, of which some may have one more than others."""
    hits = ((network(images).argmax(1) == labels).sum() for images, labels in loader)
    right = sum(hits, start=torch.tensor(0))  # A rank may have no batch at all.
    dist.all_reduce(right)  # Not in the loop, in which ranks may differ by a step.
    return right.item() / len(loader.dataset)


def in_step(network: nn.Module, loader: leat.Loader) -> float:
    """For what all ranks do in every step; `valid` tells the samples that fill up."""
    right = 0
    for images, labels, valid in loader:
        hits = (network(images).argmax(1) == labels) & valid
        dist.all_reduce(step := hits.sum())
        right += step.item()
    return right / len(loader.dataset)


def main(url: str) -> None:
    dist.init_process_group("gloo")
    model = Parallel(network := nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    train = make_loader(f"{url}/train", train=True, fields=("image", "label"))
    kept = make_loader(f"{url}/test", train=False, fields=("image", "label"), drop_last="join")
    padded = make_loader(f"{url}/test", train=False, fields=("image", "label", "valid"), drop_last="pad")
    for epoch in range(3):
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            once, filled = in_turn(network, kept), in_step(network, padded)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.3f}, accuracy {once:.4f} {filled:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
