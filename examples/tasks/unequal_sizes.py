"""Photographs of unequal sizes, as a list of tensors."""
import leat
from leat import ops

loader = leat.Loader("s3://data/wild", batch_size=8, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage(ragged=True), ops.RandomHorizontalFlip()])
for images, labels in loader:
    shapes = {tuple(image.shape) for image in images}
print(f"{len(labels)} photographs of {len(shapes)} sizes")
