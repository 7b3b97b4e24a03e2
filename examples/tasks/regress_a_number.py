"""Regresses a number that a table has for each photograph."""
import leat
import torch
from leat import ops

aged = leat.Dataset.from_manifest("s3://data/tags.csv", fields={"image": "path", "age": "age"})
loader = leat.Loader(aged, batch_size=16, train=True, fields=("image", "age"),
                     ops=[ops.DecodeImage(), ops.Cast("float32")])
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(1))
for images, ages in loader:
    loss = torch.nn.functional.mse_loss(network(images).squeeze(1), ages.float())
print(f"ages {ages.dtype}, mean {aged.column('age').mean():.2f}")
