"""Mixes two datasets: nine samples of the second for each of the first."""
import leat
import numpy as np
from leat import ops
from model import train

parts = [leat.Dataset("s3://data/photos"), leat.Dataset("s3://data/night")]
weights = np.repeat([1 / len(parts[0]), 9 / len(parts[1])], [len(part) for part in parts])
loader = leat.Loader(leat.Dataset.concat(parts), batch_size=16, train=True, sampler=leat.WeightedSampler(weights),
                     fields=("image", "label"), ops=[ops.DecodeImage()])
for images, labels in loader:
    train(images, labels)
