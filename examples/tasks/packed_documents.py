"""Windows of several documents, whose tokens attend to their own document alone."""
import leat
import torch
from leat import ops

corpus = leat.Dataset.tokens("s3://data/corpus", dtype="uint16", seq_len=128)
loader = leat.Loader(corpus, batch_size=4, train=True, fields=("tokens",), ops=[ops.Documents(eos=0)])
embedding = torch.nn.Embedding(256, 16)
for tokens, document_ids, position_ids in loader:
    same = document_ids[:, :, None] == document_ids[:, None, :]
    mask = same & torch.ones(128, 128, dtype=torch.bool).tril()
    x = embedding(tokens.long())
    attended = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    counts = document_ids[:, 1:] == document_ids[:, :-1]  # For a loss: it skips the first of the next document.
ends = ((tokens[:, :-1] == 0) == ~counts).all()
print(f"{tuple(attended.shape)}, up to {int(document_ids.max()) + 1} documents a window, a loss within each: {bool(ends)}")
