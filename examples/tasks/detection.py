"""Photographs with boxes, which follow every crop and flip; as many boxes as each has."""
import leat
import torch
from leat import ops

loader = leat.Loader(
    "s3://data/boxes", batch_size=4, train=True, fields=("image", "boxes", "labels"),
    ops=[ops.DecodeImage("jpg"), ops.ParseBoxes("json", path="boxes", labels="labels"),
         ops.RandomResizedCrop(32), ops.RandomHorizontalFlip(), ops.Normalize("imagenet")])
for images, boxes, labels in loader:
    targets = [{"boxes": b, "labels": l} for b, l in zip(boxes, labels)]
inside = torch.cat([t["boxes"] for t in targets]).clamp(0, 32).equal(torch.cat([t["boxes"] for t in targets]))
print(f"{len(targets)} targets, boxes {targets[0]['boxes'].dtype}, all inside: {inside}")
