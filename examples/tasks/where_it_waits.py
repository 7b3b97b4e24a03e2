"""Says what the training waited for."""
import leat
from leat import ops

with leat.Loader("s3://data/photos/train", batch_size=16, train=True, fields=("image", "label"),
                 ops=[ops.DecodeImage(), ops.RandomResizedCrop(32)]) as loader:
    for images, labels in loader:
        pass
    epoch = loader.stats()[-1]
longest = max(epoch["stalls"], key=epoch["stalls"].get)
print(f"{epoch['samples']} samples, waited mostly for {longest}; {epoch['requests']['get']} GETs")
