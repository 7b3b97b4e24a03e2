"""Reads the bucket once: later epochs come from a cache in memory."""
import leat
from leat import ops

loader = leat.Loader("s3://data/photos/train", batch_size=16, train=True, drop_last=False, epochs=3,
                     cache=leat.Cache(ram="64MiB"), fields=("image", "label"),
                     ops=[ops.DecodeImage(), ops.RandomResizedCrop(32)])
for epoch in range(3):
    for images, labels in loader:
        pass
print("GETs an epoch:", [epoch["requests"]["get"] for epoch in loader.stats()])
