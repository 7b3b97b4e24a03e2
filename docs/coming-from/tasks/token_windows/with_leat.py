"""Trains a language model on windows of a file of tokens."""
import leat
from model import train_on_tokens

corpus = leat.Dataset.tokens("s3://data/corpus/train.bin", dtype="uint16", seq_len=65)
loader = leat.Loader(corpus, batch_size=10, train=True, fields=("tokens",))
for (tokens,) in loader:
    tokens = tokens.long()
    train_on_tokens(tokens[:, :-1], tokens[:, 1:])
