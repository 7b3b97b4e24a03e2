"""Writes the tokens as LitData's chunks."""
import boto3
import litdata
import numpy as np
import torch


def tokens_of(key):
    data = boto3.client("s3").get_object(Bucket="data", Key=key)["Body"].read()
    yield torch.from_numpy(np.frombuffer(data, "uint16").astype(np.int32))


if __name__ == "__main__":
    litdata.optimize(tokens_of, ["corpus/train.bin"], output_dir="s3://data/chunks/corpus", num_workers=1,
                     chunk_size=65 * 8192, item_loader=litdata.TokensLoader())
