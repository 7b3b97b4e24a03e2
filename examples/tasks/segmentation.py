"""Trains on photographs and their masks, cropped and flipped together."""
import leat
import torch
from leat import ops

pairs = leat.Dataset.from_manifest("s3://data/voc/pairs.csv", fields={"image": "image", "mask": "mask"})
loader = leat.Loader(
    pairs, batch_size=8, train=True, fields=("image", "mask"),
    ops=[ops.DecodeImage("image"), ops.DecodeMask("mask", dtype="int64"), ops.RandomCrop(32),
         ops.RandomHorizontalFlip(), ops.Normalize("imagenet")])
network = torch.nn.Conv2d(3, 4, 1)
optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
for epoch in range(8):
    for images, masks in loader:
        loss = torch.nn.functional.cross_entropy(network(images), masks, ignore_index=255)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
right = (network(images).argmax(1) == masks).float().mean()
print(f"masks {tuple(masks.shape)} {masks.dtype}, {right:.0%} of pixels right")
