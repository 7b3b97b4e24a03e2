"""Images in bfloat16, made in the same pass that normalises them."""
import leat
import torch
from leat import ops

loader = leat.Loader("s3://data/photos/train", batch_size=16, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.Normalize("imagenet", dtype=torch.bfloat16)])
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3)).to(torch.bfloat16)
for images, labels in loader:
    loss = torch.nn.functional.cross_entropy(network(images), labels)
print(f"{images.dtype}, loss {loss.item():.2f}")
