"""torch's samplers over a bucket, in the drop-in for torch's DataLoader."""
import leat.torch
from torch.utils.data import SubsetRandomSampler, WeightedRandomSampler

photos = leat.Dataset("s3://data/photos/train")
subset = leat.torch.DataLoader(photos, batch_size=8, sampler=SubsetRandomSampler(range(20)),
                               collate_fn=lambda samples: [sample["label"] for sample in samples])
weighted = leat.torch.DataLoader(photos, batch_size=8, sampler=WeightedRandomSampler([1.0] * 85, 40),
                                 collate_fn=lambda samples: [sample["label"] for sample in samples])
print(f"{sum(map(len, subset))} of a subset, {sum(map(len, weighted))} by weight")
