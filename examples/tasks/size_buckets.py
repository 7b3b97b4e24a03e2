"""Photographs of unequal sizes, padded within batches of like size."""
import leat
from leat import ops

photos = leat.Dataset.from_manifest("s3://data/wild.csv", fields={"image": "path"}, columns=["height", "width"])


def padding(sampler):
    loader = leat.Loader(photos, batch_size=4, train=True, sampler=sampler, fields=("image", "image_size"),
                         ops=[ops.DecodeImage(), ops.PadTo()])
    padded = filled = 0
    for images, sizes in loader:
        padded += images[:, 0].size
        filled += int(sizes.prod(1).sum())
    return 1 - filled / padded


by_size = leat.SizeBuckets("height", "width", count=10)
print(f"padding: {padding(None):.0%} without buckets, {padding(by_size):.0%} with them")
