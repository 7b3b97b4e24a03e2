"""Draws rare classes as often as common ones."""
import leat
import numpy as np
from leat import ops

photos = leat.Dataset("s3://data/photos/train").filter(lambda of: (of["label"] != 0) | (np.arange(85) < 5))
labels = photos.column("label")
weights = 1 / np.bincount(labels)[labels]
loader = leat.Loader(photos, batch_size=16, train=True, sampler=leat.WeightedSampler(weights, num_samples=960),
                     fields=("image", "label"), ops=[ops.DecodeImage()])
drawn = np.bincount([int(label) for _, labels in loader for label in labels])
print(f"there are {np.bincount(labels)}, drawn {drawn}")
