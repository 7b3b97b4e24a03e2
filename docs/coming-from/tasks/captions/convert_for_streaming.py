"""Writes the photographs and their captions as MDS."""
import io
import json

import boto3
from PIL import Image
from streaming import MDSWriter

s3 = boto3.client("s3")


def read(key):
    return s3.get_object(Bucket="data", Key=key)["Body"].read()


with MDSWriter(out="s3://data/mds/captions", columns={"image": "jpeg", "caption": "str"}) as out:
    for row in map(json.loads, read("captions.jsonl").splitlines()):
        out.write({"image": Image.open(io.BytesIO(read(row["path"]))), "caption": row["caption"]})
