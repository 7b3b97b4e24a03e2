"""Validates on several ranks, each sample counted once."""
import leat
import torch
import torch.distributed as dist
from leat import ops
from model import validate

dist.init_process_group("gloo")
loader = leat.Loader("s3://data/val", batch_size=8, train=False, drop_last="join", fields=("image", "label"),
                     ops=[ops.DecodeImage()])
counts = torch.zeros(2)
for images, labels in loader:
    hits = validate(images, labels)
    counts += torch.tensor([hits.sum(), len(hits)])
dist.all_reduce(counts)
print(f"{counts[0]:.0f} right of {counts[1]:.0f}")
dist.destroy_process_group()
