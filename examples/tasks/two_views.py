"""Two random views of each photograph, for contrastive learning."""
import leat
import torch
from leat import ops

photos = leat.Dataset("s3://data/photos/train")
view = dict(independent=True)
loader = leat.Loader(photos, batch_size=16, train=True, fields=("a", "b"),
                     ops=[ops.DecodeImage(to="a"), ops.DecodeImage(to="b"), ops.RandomResizedCrop(32, **view),
                          ops.RandomHorizontalFlip(**view), ops.Normalize("imagenet")])
for a, b in loader:
    different = torch.any((a != b).flatten(1), 1).all()
print(f"two views of {len(a)}, all different: {bool(different)}")
