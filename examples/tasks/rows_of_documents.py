"""Documents packed into rows, none of which attends to another: hardly any padding."""
import leat
import torch

documents = leat.Dataset.tokens("s3://data/corpus", dtype="uint16", seq_len=4096, eos=0)
pack = leat.Pack(256, method="best_fit", adds=("segment_ids", "labels"))
loader = leat.Loader(documents, batch_size=4, train=True, fields=("tokens",), sampler=pack)
model = torch.nn.Embedding(256, 256)
padding = rows = 0
for tokens, segment_ids, labels in loader:
    same = segment_ids[:, :, None] == segment_ids[:, None, :]  # With tril(): an attention mask.
    loss = torch.nn.functional.cross_entropy(model(tokens.long()).flatten(0, 1), labels.flatten())
    rows += len(tokens)
    padding += int((segment_ids == 0).sum())
print(f"{rows} rows, {padding / rows / 256:.0%} padding, loss {loss.item():.1f}")
