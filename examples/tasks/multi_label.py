"""Several labels a photograph, from a table with a list in each row."""
import leat
import torch
from leat import ops

tagged = leat.Dataset.from_manifest("s3://data/tags.csv", fields={"image": "path"}, columns=["tags"])
loader = leat.Loader(tagged, batch_size=16, train=True, fields=("image", "tags"),
                     ops=[ops.DecodeImage(), ops.Cast("float32"), ops.ParseJson(field="tags", dtype="float32")])
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(3))
for images, tags in loader:
    loss = torch.nn.functional.binary_cross_entropy_with_logits(network(images), tags)
print(f"tags {tuple(tags.shape)} {tags.dtype}, loss {loss.item():.3f}")
