"""Looks at one batch before anything is trained."""
import leat
import torch
from leat import ops

loader = leat.Loader("s3://data/photos/train", batch_size=4, train=True,
                     ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.Normalize("imagenet")])
batch = loader.peek()
for name, values in batch.items():
    print(name, values.dtype, tuple(values.shape), torch.is_tensor(values))
print(f"{len(loader)} batches, classes {loader.dataset.classes}")
