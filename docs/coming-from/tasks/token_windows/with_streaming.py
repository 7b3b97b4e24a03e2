"""Trains a language model on windows of a file of tokens."""
from model import train_on_tokens
from streaming import StreamingDataLoader, StreamingDataset

corpus = StreamingDataset(remote="s3://data/mds/corpus", local="mds/corpus", shuffle=True, batch_size=10)
loader = StreamingDataLoader(corpus, batch_size=10, drop_last=True)
for batch in loader:
    tokens = batch["tokens"].long()
    train_on_tokens(tokens[:, :-1], tokens[:, 1:])
