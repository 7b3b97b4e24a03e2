"""Tar shards as WebDataset writes them: a photograph and its class in each sample."""
import leat
import torch
from leat import ops

loader = leat.Loader("s3://data/boxes", batch_size=16, train=True, fields=("image", "cls"),
                     ops=[ops.DecodeImage("jpg"), ops.RandomResizedCrop(32), ops.ParseInt("cls")])
count = 0
for images, classes in loader:
    count += len(torch.unique(images.flatten(1), dim=0))
print(f"{count} of {len(loader.dataset)}, classes {classes.dtype}")
