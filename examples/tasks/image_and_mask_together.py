"""A function of one's own that sees the photograph and its mask."""
import leat
import numpy as np
from leat import ops


def black_out(image, mask):
    image[mask == 0] = 0
    return image, mask


pairs = leat.Dataset.from_manifest("s3://data/voc/pairs.csv", fields={"image": "image", "mask": "mask"})
loader = leat.Loader(pairs, batch_size=8, train=True, fields=("image", "mask"), output="numpy",
                     ops=[ops.DecodeImage("image", layout="HWC"), ops.DecodeMask("mask"),
                          ops.RandomHorizontalFlip(), ops.Python(black_out, fields=("image", "mask"))])
black = all(not images[masks == 0].any() for images, masks in loader)
print(f"black where the mask is 0: {black}")
