"""RandAugment and random erasing, as recipes of torchvision have them."""
import leat
import torch
from leat import ops

loader = leat.Loader("s3://data/photos/train", batch_size=16, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.RandomHorizontalFlip(), ops.RandAugment(),
                          ops.Normalize("imagenet"), ops.RandomErasing(0.25)])
for images, labels in loader:
    assert torch.isfinite(images).all()
print(f"{images.dtype} {tuple(images.shape)}")
