"""Two folders as one dataset, though their classes differ."""
import leat
from leat import ops

photos = leat.Dataset.concat([leat.Dataset("s3://data/photos/train"), leat.Dataset("s3://data/night")])
loader = leat.Loader(photos, batch_size=15, train=True, fields=("image", "label"), ops=[ops.DecodeImage()])
count = sum(len(labels) for _, labels in loader)
print(f"{count} of {photos.classes}")
