"""Splits one folder into training and validation; a photograph stays where it was when others come."""
import leat
from leat import ops

photos = leat.Dataset("s3://data/photos/train")
train, val = photos.split(0.8, 0.2, seed=0)
chain = [ops.DecodeImage(), ops.CenterCrop(32), ops.Normalize("imagenet")]
train_loader = leat.Loader(train, batch_size=8, train=True, ops=chain, fields=("image", "label"))
val_loader = leat.Loader(val, batch_size=8, train=False, ops=chain, fields=("image", "label"))
print(f"{sum(len(labels) for _, labels in val_loader)} of {len(val)} held out, {len(train)} to train")
