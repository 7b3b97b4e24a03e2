"""Next-token prediction on a file of tokens."""
import leat
import torch

corpus = leat.Dataset.tokens("s3://data/corpus", dtype="uint16", seq_len=65)
loader = leat.Loader(corpus, batch_size=16, train=True, fields=("tokens",))
network = torch.nn.Sequential(torch.nn.Embedding(256, 32), torch.nn.Linear(32, 256))
optimizer = torch.optim.Adam(network.parameters(), lr=3e-2)
for (tokens,) in loader:
    inputs, targets = tokens[:, :-1].long(), tokens[:, 1:].long()
    loss = torch.nn.functional.cross_entropy(network(inputs).flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
