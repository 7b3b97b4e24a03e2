"""Goes on at the very next sample after it was stopped in the middle of an epoch."""
import os

import torch
from litdata import StreamingDataLoader, StreamingDataset
from model import train

photos = StreamingDataset("s3://data/chunks/classes", shuffle=True)
loader = StreamingDataLoader(photos, batch_size=8, drop_last=True)
if os.path.exists("state.pt"):
    loader.load_state_dict(torch.load("state.pt"))
for batch in loader:
    train(batch["image"], batch["label"])
    torch.save(loader.state_dict(), "state.pt")
