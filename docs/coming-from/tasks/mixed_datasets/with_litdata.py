"""Mixes two datasets: nine samples of the second for each of the first."""
from litdata import CombinedStreamingDataset, StreamingDataLoader, StreamingDataset
from model import train

parts = [StreamingDataset(f"s3://data/chunks/{name}", shuffle=True) for name in ("photos", "night")]
both = CombinedStreamingDataset(parts, weights=[0.1, 0.9], iterate_over_all=False)
loader = StreamingDataLoader(both, batch_size=16, drop_last=True)
for batch in loader:
    train(batch["image"], batch["label"])
