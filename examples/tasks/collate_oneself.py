"""Pads photographs of unequal sizes by a function of one's own."""
import leat
import torch
from leat import ops


def pad_all(samples):
    images, labels = zip(*samples)
    height, width = (max(image.shape[side] for image in images) for side in (1, 2))
    padded = torch.zeros(len(images), 3, height, width, dtype=torch.uint8)
    for into, image in zip(padded, images):
        into[:, : image.shape[1], : image.shape[2]] = image
    return padded, torch.stack(labels)


loader = leat.Loader("s3://data/wild", batch_size=8, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage()], collate=pad_all)
for images, labels in loader:
    pass
print(f"{len(labels)} photographs in one tensor: {images.ndim} dimensions")
