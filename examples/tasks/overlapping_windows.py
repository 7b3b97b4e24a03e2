"""Windows of tokens that overlap by half."""
import leat

apart = leat.Dataset.tokens("s3://data/corpus", dtype="uint16", seq_len=128)
halves = leat.Dataset.tokens("s3://data/corpus", dtype="uint16", seq_len=128, stride=64)
(first,), (second,) = (next(iter(leat.Loader(each, batch_size=2, train=False, fields=("tokens",))))
                       for each in (apart, halves))
same = (first[0] == second[0]).all() and (first[0, 64:] == second[1, :64]).all()
print(f"{len(apart)} windows apart, {len(halves)} by halves, as they lie: {bool(same)}")
