"""Photographs of unequal sizes, one at a time: a batch of one has its own shape."""
import leat
from leat import ops

loader = leat.Loader("s3://data/wild", batch_size=1, train=False, fields=("image", "label"), ops=[ops.DecodeImage()])
shapes = [tuple(images.shape) for images, _ in loader]
print(f"{len(shapes)} photographs of {len(set(shapes))} sizes, the first {shapes[0]}")
