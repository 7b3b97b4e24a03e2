"""MixUp on batches: labels become shares of classes."""
import leat
import torch
from leat import ops

loader = leat.Loader("s3://data/photos/train", batch_size=16, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.Normalize("imagenet"),
                          ops.MixUp(num_classes=3)])
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
for images, labels in loader:
    loss = torch.nn.functional.cross_entropy(network(images), labels)
print(f"labels {tuple(labels.shape)}, each adds up to {labels.sum(1).mean():.1f}")
