"""Two datasets by turns: three photographs of the day for each of the night."""
import leat
import torch
from leat import ops

sources = {"day": (leat.Dataset("s3://data/photos/train"), 0.75), "night": (leat.Dataset("s3://data/night"), 0.25)}
mix = leat.mix(sources, samples=400, composition="stratified")
loader = leat.Loader(mix, batch_size=16, train=True, fields=("image", "label", "source"), ops=[ops.DecodeImage()])
counts = torch.zeros(2, dtype=torch.int64)
for images, labels, source in loader:
    counts += source.bincount(minlength=2)
print(f"{dict(zip(mix.sources, counts.tolist()))} of {mix.classes}")
