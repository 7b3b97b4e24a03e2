"""Reads photographs and their captions."""
import leat
from leat import ops
from model import train

captioned = leat.Dataset.from_manifest("s3://data/captions.jsonl", fields={"image": "path"}, columns=["caption"])
loader = leat.Loader(captioned, batch_size=16, train=True, fields=("image", "caption"),
                     ops=[ops.DecodeImage(), ops.Resize((32, 32))])
for images, captions in loader:
    train(images, captions)
