"""Writes both datasets as MDS."""
import boto3
from PIL import Image
from streaming import MDSWriter

CLASSES = ["ant", "bee", "cat", "dog"]
for name in ("photos", "night"):
    with MDSWriter(out=f"s3://data/mds/{name}", columns={"image": "jpeg", "label": "int"}) as out:
        for photo in boto3.resource("s3").Bucket("data").objects.filter(Prefix=f"{name}/"):
            label = CLASSES.index(photo.key.split("/")[-2])
            out.write({"image": Image.open(photo.get()["Body"]), "label": label})
