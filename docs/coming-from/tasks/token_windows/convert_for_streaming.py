"""Writes each window of tokens as a sample of MDS."""
import boto3
import numpy as np
from streaming import MDSWriter

data = boto3.client("s3").get_object(Bucket="data", Key="corpus/train.bin")["Body"].read()
tokens = np.frombuffer(data, "uint16")
with MDSWriter(out="s3://data/mds/corpus", columns={"tokens": "ndarray:uint16:65"}) as out:
    for start in range(0, len(tokens) - 64, 65):
        out.write({"tokens": tokens[start : start + 65]})
