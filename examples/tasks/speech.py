"""Recordings of unequal length, decoded by Python's own module and padded in the batch."""
import io
import wave

import leat
import numpy as np
import torch
from leat import ops


def decode(data):
    with wave.open(io.BytesIO(data)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


loader = leat.Loader("s3://data/speech", batch_size=5, train=True, fields=("data", "label"),
                     ops=[ops.Python(decode, field="data", ragged=True)])
for recordings, labels in loader:
    padded = recordings.pad()
    spectra = torch.fft.rfft(padded).abs()
print(f"{padded.dtype}, {len(labels)} recordings, {len(set(map(len, recordings)))} lengths")
