"""Writes the photographs and their classes as MDS."""
import boto3
from PIL import Image
from streaming import MDSWriter

CLASSES = ["ant", "bee", "cat"]
with MDSWriter(out="s3://data/mds/wild", columns={"image": "jpeg", "label": "int"}) as out:
    for photo in boto3.resource("s3").Bucket("data").objects.filter(Prefix="wild/"):
        label = CLASSES.index(photo.key.split("/")[-2])
        out.write({"image": Image.open(photo.get()["Body"]), "label": label})
