"""16-bit PNGs keep their 16 bits."""
import leat
import numpy as np
from leat import ops

loader = leat.Loader("s3://data/depth", batch_size=8, train=False, fields=("image",), output="numpy",
                     ops=[ops.DecodeImage(mode="I;16")])
depths = np.concatenate([images for (images,) in loader])
print(f"{depths.dtype}, {len(np.unique(depths)) > 256}")
