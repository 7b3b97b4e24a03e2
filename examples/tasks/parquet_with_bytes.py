"""Photographs in Parquet files, as the Hugging Face Hub keeps them."""
import leat
import torch
from leat import ops

loader = leat.Loader("s3://data/hub/train-*.parquet", batch_size=16, train=True, fields=("image", "label"),
                     ops=[ops.DecodeImage(), ops.RandomResizedCrop(32), ops.Normalize("imagenet")])
model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for epoch in range(3):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"{len(loader.dataset)} rows, classes {loader.dataset.classes}, loss {loss.item():.3f}")
