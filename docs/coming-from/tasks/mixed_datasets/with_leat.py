"""Mixes two datasets: nine samples of the second for each of the first."""
import leat
from leat import ops
from model import train

mix = leat.mix({"day": (leat.Dataset("s3://data/photos"), 1), "night": (leat.Dataset("s3://data/night"), 9)})
loader = leat.Loader(mix, batch_size=16, train=True, fields=("image", "label"), ops=[ops.DecodeImage()])
for images, labels in loader:
    train(images, labels)
