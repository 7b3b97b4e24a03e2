"""Reads what patterns name, out of a folder that holds other things too."""
import leat

ants = leat.Dataset("s3://data/photos/*/ant/*.jpg")
shards = leat.Dataset("s3://data/boxes/{00000..00001}.tar")
one = leat.Dataset("s3://data/boxes/00002.tar")
some = leat.Dataset("s3://data/photos/train", include=["*.jpg"], exclude=["cat/*"])
print(len(ants), len(shards), len(one), len(some))
