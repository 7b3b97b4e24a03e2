"""Goes on at the very next sample after it was stopped in the middle of an epoch."""
import os

import leat
import torch
from leat import ops
from model import train

loader = leat.Loader("s3://data/photos", batch_size=8, train=True, fields=("image", "label"), ops=[ops.DecodeImage()])
if os.path.exists("state.pt"):
    loader.load_state_dict(torch.load("state.pt"))
for images, labels in loader:
    train(images, labels)
    torch.save(loader.state_dict(), "state.pt")
