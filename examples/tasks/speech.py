"""Recordings of unequal length in WAV or FLAC files, decoded and padded in the batch."""
import leat
import torch

recordings = leat.Dataset.audio("s3://data/speech")
loader = leat.Loader(recordings, batch_size=5, train=True, fields=("audio", "label"))
for audio, labels in loader:
    padded = audio.pad()
    spectra = torch.fft.rfft(padded).abs()
print(f"{padded.dtype}, {len(labels)} recordings, {len(set(map(len, audio)))} lengths")
