"""S3 Inventory instead of listing."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pathlib
import subprocess
import urllib.parse

import pytest

import leat
from small_datasets import write

SCHEMA = ["Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker", "Size", "LastModifiedDate",
          "ETag"]
KEYS = ["cat/a b+c.bin", "cat/ä&=.bin", "cat/1.bin", "dog/2.bin", "dog/100%.bin"]


def index(served, manifest: str, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["leat", "index", f"{served.url}/train", "--inventory", manifest, "--json",
         "--endpoint-url", served.bucket.url, "--no-sign-request", *options],
        capture_output=True, text=True, timeout=60)


def write_inventory(folder: pathlib.Path, etags: dict[str, str], *, packed=True, **changes) -> str:
    """Two files, as S3 writes them: not in order, with old versions and deleted keys."""
    rows = [["data", urllib.parse.quote_plus(f"train/{key}", safe="/"), "v2", "true", "false",
             str(len(key.encode())), "2026-01-01T00:00:00.000Z", etags.get(key, "")]
            for key in reversed(KEYS)]
    rows += [
        ["data", "train/cat/1.bin", "v1", "false", "false", "9999", "", "old"],
        ["data", "train/cat/deleted.bin", "v2", "true", "true", "", "", ""],
        ["data", "training/other.bin", "v1", "true", "false", "1", "", ""],
        ["data", "train/.hidden", "v1", "true", "false", "1", "", ""],
    ]
    files = []
    for number, part in enumerate((rows[:3], rows[3:])):
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(part)
        data = out.getvalue().encode()
        name = f"inventory/data/{number}.csv" + (".gz" if packed else "")
        data = gzip.compress(data) if packed else data
        write(folder / name, data)
        files.append({"key": name, "size": len(data), "MD5checksum": "x"})
    manifest = {"sourceBucket": "data", "destinationBucket": "arn:aws:s3:::data",
                "version": "2016-11-30", "creationTimestamp": "1767225600000",
                "fileFormat": "CSV", "fileSchema": ", ".join(SCHEMA), "files": files} | changes
    write(folder / "inventory/2026-01-01/manifest.json", json.dumps(manifest).encode())
    return "inventory/2026-01-01/manifest.json"


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    for key in KEYS:
        write(tmp_path / "data" / "train" / key, key.encode())
    return tmp_path / "data"


@pytest.mark.parametrize("packed", [True, False])
def test_an_inventory_tells_what_a_listing_tells(folder, serve, packed, fresh_cache):
    served = serve(folder)
    listed = json.loads(subprocess.run(
        ["leat", "index", f"{served.url}/train", "--json", "--endpoint-url", served.bucket.url,
         "--no-sign-request"], capture_output=True, check=True).stdout)
    # Beside the data as S3 gives them: without the quotes.
    etags = {}
    for key in KEYS:
        head = subprocess.run(
            ["curl", "-sI", f"{served.http_url}/train/{urllib.parse.quote(key)}"],
            capture_output=True, text=True, check=True).stdout
        etags[key] = next(line.split('"')[1] for line in head.splitlines() if "ETag" in line)
    manifest = write_inventory(folder, etags, packed=packed)
    served.reset()

    told = index(served, f"{served.url}/{manifest}")

    assert told.returncode == 0, told.stderr
    assert served.counters()["list"] == 0
    told = json.loads(told.stdout)
    assert told["samples"] == len(KEYS) and told["classes"] == ["cat", "dog"]
    assert told["digest"] == listed["digest"]
    # The next open finds the one that it made, and its ETags are the bucket's.
    with leat.Loader(f"{served.url}/train", **served.options, global_batch_size=5, shuffle=False, output="numpy",
                     fields=["data", "key"], batch="dict") as loader:
        (batch,) = loader
    assert [data.decode() for data in batch["data"].tolist()] == batch["key"]
    assert sorted(batch["key"], key=str.encode) == batch["key"]


def test_a_dataset_from_an_inventory_lists_nothing(folder, serve, fresh_cache):
    served = serve(folder)
    manifest = f"{served.url}/{write_inventory(folder, {})}"
    served.reset()

    dataset = leat.Dataset(f"{served.url}/train", inventory=manifest, **served.options)

    assert len(dataset) == len(KEYS) and dataset.classes == ["cat", "dog"]
    assert dataset[0]["data"] == dataset.key(0).encode()
    assert served.counters()["list"] == 0
    again = leat.Dataset(f"{served.url}/train", inventory="gone", **served.options)
    assert again.digest == dataset.digest  # It was kept, so nobody asked the inventory.
    with pytest.raises(leat.NotFound, match="gone"):
        leat.Dataset(f"{served.url}/train", inventory=str(folder / "gone"), refresh="always",
                     **served.options)  # fmt: skip


def test_a_manifest_in_a_folder(folder, serve, tmp_path):
    served = serve(folder)
    write_inventory(tmp_path, {})
    told = index(served, str(tmp_path / "inventory/2026-01-01/manifest.json"))
    assert told.returncode == 1 and "0.csv.gz" in told.stderr
    (tmp_path / "inventory/data").rename(tmp_path / "inventory/2026-01-01/data")

    told = index(served, str(tmp_path / "inventory/2026-01-01/manifest.json"))

    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["samples"] == len(KEYS)


@pytest.mark.parametrize("changes, why", [
    ({"fileFormat": "Parquet"}, "output format to CSV"),
    ({"fileFormat": "ORC"}, "output format to CSV"),
    ({"sourceBucket": "another"}, "inventory of bucket 'another'"),
    ({"fileSchema": "Bucket, Key"}, "add Size"),
    ({"fileSchema": ", ".join(SCHEMA[:-1])}, "row 1"),
    ({"fileSchema": ", ".join(SCHEMA).replace("IsLatest", "X")}, "has 'cat/1.bin' twice"),
])  # fmt: skip
def test_what_cannot_be_read_says_why(folder, serve, changes, why):
    served = serve(folder)
    manifest = write_inventory(folder, {}, **changes)

    told = index(served, f"{served.url}/{manifest}")

    assert told.returncode != 0 and why in told.stderr, told.stderr


def test_a_file_that_is_damaged(folder, serve):
    served = serve(folder)
    manifest = write_inventory(folder, {})
    path = folder / "inventory/data/1.csv.gz"
    whole = path.read_bytes()
    for damaged, why in [(whole[:-1], "bytes, and the manifest says"),
                         (whole[:-9] + b"\0" * 9, "damaged"),
                         (b"\0" * len(whole), "no gzip")]:
        path.write_bytes(damaged)
        told = index(served, f"{served.url}/{manifest}")
        assert told.returncode != 0 and why in told.stderr and "1.csv.gz" in told.stderr
