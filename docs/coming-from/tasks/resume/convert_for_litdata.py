"""Writes the photographs and their classes as LitData's chunks."""
import io

import boto3
import litdata
from PIL import Image

CLASSES = ["ant", "bee", "cat"]
bucket = boto3.resource("s3").Bucket("data")


def sample(key):
    image = Image.open(io.BytesIO(bucket.Object(key).get()["Body"].read()))
    return {"image": image, "label": CLASSES.index(key.split("/")[-2])}


if __name__ == "__main__":
    keys = [photo.key for photo in bucket.objects.filter(Prefix="photos/")]
    litdata.optimize(sample, keys, output_dir="s3://data/chunks/classes", chunk_bytes="64MB", num_workers=1)
