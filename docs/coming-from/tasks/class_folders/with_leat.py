"""Trains a classifier on photographs that lie in a folder for each class."""
import leat
from leat import ops
from model import train

loader = leat.Loader(
    "s3://data/photos", batch_size=16, train=True, fields=("image", "label"),
    ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.RandomHorizontalFlip(), ops.Normalize("imagenet")])
for epoch in range(2):
    for images, labels in loader:
        train(images, labels)
