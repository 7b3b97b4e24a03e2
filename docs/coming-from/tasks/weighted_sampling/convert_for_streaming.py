"""Writes the photographs of each class as an MDS of its own."""
import boto3
from PIL import Image
from streaming import MDSWriter

for label, name in enumerate(["ant", "bee", "cat"]):
    with MDSWriter(out=f"s3://data/mds/rare/{name}", columns={"image": "jpeg", "label": "int"}) as out:
        for photo in boto3.resource("s3").Bucket("data").objects.filter(Prefix=f"rare/{name}/"):
            out.write({"image": Image.open(photo.get()["Body"]), "label": label})
