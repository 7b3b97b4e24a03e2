"""Draws rare classes as often as common ones."""
import leat
import numpy as np
from leat import ops
from model import train

photos = leat.Dataset("s3://data/rare")
labels = photos.column("label")
loader = leat.Loader(photos, batch_size=16, train=True, fields=("image", "label"), ops=[ops.DecodeImage()],
                     sampler=leat.WeightedSampler(1 / np.bincount(labels)[labels], num_samples=480))
for images, labels in loader:
    train(images, labels)
