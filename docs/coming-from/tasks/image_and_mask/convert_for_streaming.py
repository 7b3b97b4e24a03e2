"""Writes the photographs and their masks as MDS."""
import csv
import io

import boto3
from PIL import Image
from streaming import MDSWriter

s3 = boto3.client("s3")


def read(key):
    return s3.get_object(Bucket="data", Key=f"voc/{key}")["Body"].read()


with MDSWriter(out="s3://data/mds/voc", columns={"image": "jpeg", "mask": "png"}) as out:
    for row in csv.DictReader(io.StringIO(read("pairs.csv").decode())):
        out.write({name: Image.open(io.BytesIO(read(row[name]))) for name in ("image", "mask")})
