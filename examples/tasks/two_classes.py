"""Trains on some of the classes only."""
import leat
from leat import ops

photos = leat.Dataset("s3://data/photos/train")
wanted = [photos.classes.index(name) for name in ("ant", "cat")]
some = photos.filter(lambda of: (of["label"] == wanted[0]) | (of["label"] == wanted[1]))
loader = leat.Loader(some, batch_size=8, train=True, fields=("image", "label"), ops=[ops.DecodeImage()])
found = {photos.classes[int(label)] for _, labels in loader for label in labels}
print(f"{len(some)} of {len(photos)}: {sorted(found)}")
