"""Reads photographs of unequal sizes, as a list of tensors."""
import leat
from leat import ops
from model import train

loader = leat.Loader("s3://data/wild", batch_size=8, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage(ragged=True)])
for images, labels in loader:
    train(images, labels)
