"""Trains a language model on windows of a file of tokens."""
from litdata import StreamingDataLoader, StreamingDataset, TokensLoader
from model import train_on_tokens

corpus = StreamingDataset("s3://data/chunks/corpus", item_loader=TokensLoader(block_size=65), shuffle=True)
loader = StreamingDataLoader(corpus, batch_size=10, drop_last=True)
for tokens in loader:
    tokens = tokens.long()
    train_on_tokens(tokens[:, :-1], tokens[:, 1:])
