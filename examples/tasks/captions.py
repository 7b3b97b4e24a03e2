"""Pairs of a photograph and its caption."""
import leat
from leat import ops

captioned = leat.Dataset.from_manifest("s3://data/captions.jsonl", fields={"image": "path"}, columns=["caption"])
loader = leat.Loader(captioned, batch_size=16, train=True, fields=("image", "caption"),
                     ops=[ops.DecodeImage(), ops.RandomResizedCrop(32)])
for images, captions in loader:
    tokens = [caption.split() for caption in captions]
print(f"{len(images)} images, {len(tokens)} captions such as {captions[0]!r}")
