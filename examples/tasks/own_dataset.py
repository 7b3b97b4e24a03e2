"""A torch dataset of one's own, in the drop-in for torch's DataLoader."""
import io
import os
import urllib.request

import leat.torch
import numpy as np
import torch
from PIL import Image

URL = os.environ["AWS_ENDPOINT_URL"] + "/data/photos/val/ant"


class Photographs(torch.utils.data.Dataset):
    def __len__(self):
        return 11

    def __getitem__(self, index):
        data = urllib.request.urlopen(f"{URL}/{3 * index:04}.jpg").read()
        return torch.from_numpy(np.asarray(Image.open(io.BytesIO(data))).copy()), index


loader = leat.torch.DataLoader(Photographs(), batch_size=4, shuffle=True, num_workers=2)
print(f"{sum(len(images) for images, _ in loader)} photographs")
