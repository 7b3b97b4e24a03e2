"""Trains a classifier on a folder of class folders."""
import leat
import torch
from leat import ops

loader = leat.Loader(
    "s3://data/photos/train", batch_size=16, train=True, fields=("image", "label"),
    ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.RandomHorizontalFlip(), ops.Normalize("imagenet")])
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
for epoch in range(3):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
