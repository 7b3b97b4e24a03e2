"""Trains on photographs and their masks, cropped and flipped together."""
import leat
from leat import ops
from model import train

pairs = leat.Dataset.from_manifest("s3://data/voc/pairs.csv", fields={"image": "image", "mask": "mask"})
loader = leat.Loader(
    pairs, batch_size=8, train=True, fields=("image", "mask"),
    ops=[ops.DecodeImage("image"), ops.DecodeMask("mask", dtype="int64"), ops.RandomCrop(32),
         ops.RandomHorizontalFlip(), ops.Normalize("imagenet")])
for images, masks in loader:
    train(images, masks)
