"""`leat bucket` as S3: boto3 and aws-cli, unchanged."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import socket
import ssl
import time
import urllib.parse

import botocore.exceptions
import pytest

from bucket_clients import aws, bucket, client_of, code_of, folder, get, s3  # noqa: F401
from leat.testing import Bucket

ODD_KEYS = [
    "a b.txt",
    "plus+and&=?#.txt",
    "per%20cent",
    "ünï/çødé/日本.bin",
    "quote\"'<>.xml",
    "tilde~(paren)*!.txt",
    "deep/er/and/deeper/x",
]


# boto3


def test_puts_and_gets_keys_of_any_shape(s3):
    for key in ODD_KEYS:
        put = s3.put_object(Bucket="photos", Key=key, Body=key.encode())
        got = s3.get_object(Bucket="photos", Key=key)
        assert got["Body"].read() == key.encode()
        assert got["ETag"] == put["ETag"] == f'"{hashlib.md5(key.encode()).hexdigest()}"'
    listed = s3.list_objects_v2(Bucket="photos")["Contents"]
    assert [item["Key"] for item in listed] == sorted(ODD_KEYS, key=str.encode)


def test_keeps_content_type_and_metadata(s3):
    s3.put_object(
        Bucket="photos", Key="k", Body=b"x", ContentType="image/png", Metadata={"who": "me"}
    )
    head = s3.head_object(Bucket="photos", Key="k")
    assert head["ContentType"] == "image/png"
    assert head["Metadata"] == {"who": "me"}
    assert head["ContentLength"] == 1


def test_etag_is_the_same_wherever_it_is_told(s3, folder):
    (folder / "photos/by-hand").write_bytes(b"12345")
    s3.put_object(Bucket="photos", Key="by-api", Body=b"12345")
    listed = {i["Key"]: i["ETag"] for i in s3.list_objects_v2(Bucket="photos")["Contents"]}
    for key in ("by-hand", "by-api"):
        assert s3.head_object(Bucket="photos", Key=key)["ETag"] == listed[key]
        assert s3.get_object(Bucket="photos", Key=key)["ETag"] == listed[key]


def test_etag_changes_with_the_file(s3, folder):
    s3.put_object(Bucket="photos", Key="k", Body=b"12345")
    before = s3.head_object(Bucket="photos", Key="k")["ETag"]
    (folder / "photos/k").write_bytes(b"54321")
    after = s3.head_object(Bucket="photos", Key="k")["ETag"]
    assert after != before
    assert s3.get_object(Bucket="photos", Key="k")["Body"].read() == b"54321"


def test_etag_outlives_the_server(folder):
    with Bucket(folder, latency="0") as first:
        etag = client_of(first).put_object(Bucket="photos", Key="k", Body=b"x")["ETag"]
    with Bucket(folder, latency="0") as second:
        assert client_of(second).head_object(Bucket="photos", Key="k")["ETag"] == etag


def test_reads_ranges(s3):
    data = bytes(range(256)) * 1000
    s3.put_object(Bucket="photos", Key="k", Body=data)

    def part(range_):
        got = s3.get_object(Bucket="photos", Key="k", Range=range_)
        return got["Body"].read(), got["ContentRange"]

    size = len(data)
    assert part("bytes=10-19") == (data[10:20], f"bytes 10-19/{size}")
    assert part("bytes=255000-") == (data[255000:], f"bytes 255000-{size - 1}/{size}")
    assert part("bytes=-7") == (data[-7:], f"bytes {size - 7}-{size - 1}/{size}")
    assert part(f"bytes=1-{size * 2}") == (data[1:], f"bytes 1-{size - 1}/{size}")
    with pytest.raises(botocore.exceptions.ClientError) as error:
        part(f"bytes={size}-")
    assert code_of(error) == "InvalidRange"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 416


def test_large_objects_come_whole(s3, tmp_path):
    data = os.urandom(24 << 20)
    source = tmp_path / "large"
    source.write_bytes(data)
    s3.upload_file(str(source), "photos", "large")  # In parts: it is over 8 MB.
    target = tmp_path / "back"
    s3.download_file("photos", "large", str(target))
    assert target.read_bytes() == data
    etag = s3.head_object(Bucket="photos", Key="large")["ETag"]
    parts = b"".join(
        hashlib.md5(data[i : i + (8 << 20)]).digest() for i in range(0, len(data), 8 << 20)
    )
    assert etag == f'"{hashlib.md5(parts).hexdigest()}-3"'


def test_conditions(s3):
    etag = s3.put_object(Bucket="photos", Key="k", Body=b"1")["ETag"]
    assert s3.get_object(Bucket="photos", Key="k", IfMatch=etag)["Body"].read() == b"1"
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.get_object(Bucket="photos", Key="k", IfMatch='"other"')
    assert code_of(error) == "PreconditionFailed"
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.get_object(Bucket="photos", Key="k", IfNoneMatch=etag)
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 304
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.put_object(Bucket="photos", Key="k", Body=b"2", IfNoneMatch="*")
    assert code_of(error) == "PreconditionFailed"
    assert s3.get_object(Bucket="photos", Key="k")["Body"].read() == b"1"


def test_lists_in_pages_and_folds(s3):
    keys = [f"{top}/{n:03}" for top in "abc" for n in range(40)] + ["z"]
    for key in keys:
        s3.put_object(Bucket="photos", Key=key, Body=b"")
    pages = list(
        s3.get_paginator("list_objects_v2").paginate(Bucket="photos", PaginationConfig={"PageSize": 7})
    )
    assert [i["Key"] for p in pages for i in p["Contents"]] == keys
    assert [p["KeyCount"] for p in pages] == [7] * 17 + [2]
    assert [p["IsTruncated"] for p in pages] == [True] * 17 + [False]

    folded = s3.list_objects_v2(Bucket="photos", Delimiter="/")
    assert [p["Prefix"] for p in folded["CommonPrefixes"]] == ["a/", "b/", "c/"]
    assert [i["Key"] for i in folded["Contents"]] == ["z"]
    inside = s3.list_objects_v2(Bucket="photos", Prefix="b/", Delimiter="/", StartAfter="b/037")
    assert [i["Key"] for i in inside["Contents"]] == ["b/038", "b/039"]
    first = s3.get_paginator("list_objects").paginate(
        Bucket="photos", Delimiter="/", PaginationConfig={"PageSize": 2}
    )
    assert [len(p.get("CommonPrefixes", [])) + len(p.get("Contents", [])) for p in first] == [2, 2]
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.list_objects_v2(Bucket="photos", ContinuationToken="nonsense")
    assert code_of(error) == "InvalidArgument"


def test_buckets_come_and_go(s3):
    s3.create_bucket(Bucket="newer")
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["newer", "photos"]
    s3.head_bucket(Bucket="newer")
    assert s3.get_bucket_location(Bucket="newer")["LocationConstraint"] is None
    s3.put_object(Bucket="newer", Key="a/b", Body=b"")
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.delete_bucket(Bucket="newer")
    assert code_of(error) == "BucketNotEmpty"
    s3.delete_object(Bucket="newer", Key="a/b")
    s3.delete_bucket(Bucket="newer")
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["photos"]


def test_deletes_one_and_many(s3, folder):
    for key in ("a/1", "a/2", "b"):
        s3.put_object(Bucket="photos", Key=key, Body=b"")
    s3.delete_object(Bucket="photos", Key="b")
    s3.delete_object(Bucket="photos", Key="never was")
    done = s3.delete_objects(
        Bucket="photos", Delete={"Objects": [{"Key": k} for k in ("a/1", "a/2", "gone")]}
    )
    assert len(done["Deleted"]) == 3
    assert "Contents" not in s3.list_objects_v2(Bucket="photos")
    assert list((folder / "photos").iterdir()) == []


def test_copies(s3):
    s3.put_object(Bucket="photos", Key="a b", Body=b"bytes", ContentType="text/x")
    copied = s3.copy_object(
        Bucket="photos", Key="c", CopySource={"Bucket": "photos", "Key": "a b"}
    )
    assert s3.get_object(Bucket="photos", Key="c")["Body"].read() == b"bytes"
    assert copied["CopyObjectResult"]["ETag"] == s3.head_object(Bucket="photos", Key="a b")["ETag"]
    assert s3.head_object(Bucket="photos", Key="c")["ContentType"] == "text/x"


def test_what_is_not_there(s3):
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.get_object(Bucket="photos", Key="none")
    assert code_of(error) == "NoSuchKey"
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.get_object(Bucket="nowhere", Key="none")
    assert code_of(error) == "NoSuchBucket"
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.list_objects_v2(Bucket="nowhere")
    assert code_of(error) == "NoSuchBucket"
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.put_object(Bucket="nowhere", Key="k", Body=b"")
    assert code_of(error) == "NoSuchBucket"
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.get_object_tagging(Bucket="photos", Key="none")
    assert code_of(error) == "NotImplemented"


def test_uploads_in_parts_are_checked(s3):
    upload = s3.create_multipart_upload(Bucket="photos", Key="k")["UploadId"]
    same = {"Bucket": "photos", "Key": "k", "UploadId": upload}
    one = s3.upload_part(**same, PartNumber=1, Body=b"1" * (5 << 20))["ETag"]
    two = s3.upload_part(**same, PartNumber=2, Body=b"old")["ETag"]
    two = s3.upload_part(**same, PartNumber=2, Body=b"new")["ETag"]
    assert "Contents" not in s3.list_objects_v2(Bucket="photos")
    assert [p["PartNumber"] for p in s3.list_parts(**same)["Parts"]] == [1, 2]
    assert len(s3.list_multipart_uploads(Bucket="photos")["Uploads"]) == 1

    def complete(*parts):
        listed = [{"PartNumber": n, "ETag": etag} for n, etag in parts]
        return s3.complete_multipart_upload(**same, MultipartUpload={"Parts": listed})

    for parts, code in [
        ([(1, '"' + "0" * 32 + '"')], "InvalidPart"),
        ([(1, one), (3, two)], "InvalidPart"),
        ([(2, two), (1, one)], "InvalidPartOrder"),
    ]:
        with pytest.raises(botocore.exceptions.ClientError) as error:
            complete(*parts)
        assert code_of(error) == code
    complete((1, one), (2, two))
    body = s3.get_object(Bucket="photos", Key="k")["Body"].read()
    assert body == b"1" * (5 << 20) + b"new"
    with pytest.raises(botocore.exceptions.ClientError) as error:
        complete((1, one))
    assert code_of(error) == "NoSuchUpload"


def test_aborted_uploads_leave_nothing(s3, folder):
    upload = s3.create_multipart_upload(Bucket="photos", Key="k")["UploadId"]
    s3.upload_part(Bucket="photos", Key="k", UploadId=upload, PartNumber=1, Body=b"x")
    s3.abort_multipart_upload(Bucket="photos", Key="k", UploadId=upload)
    left = [p for p in folder.rglob("*") if p.is_file()]
    assert left == []


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA256"])
def test_takes_bodies_in_chunks_with_a_checksum_behind(folder, algorithm):
    with Bucket(folder, latency="0", tls=True, credentials=("KEY", "SECRET")) as served:
        body = os.urandom(300_000)
        client_of(served).put_object(
            Bucket="photos", Key="k", Body=body, ChecksumAlgorithm=algorithm
        )
        assert (folder / "photos/k").read_bytes() == body


# Signatures and credentials


def test_signatures(folder):
    (folder / "photos/k").write_bytes(b"x")
    with Bucket(folder, latency="0", credentials=("KEY", "SECRET")) as served:
        good = client_of(served)
        assert good.get_object(Bucket="photos", Key="k")["Body"].read() == b"x"
        for key in ODD_KEYS:
            good.put_object(Bucket="photos", Key=key, Body=b"y")
            assert good.get_object(Bucket="photos", Key=key)["Body"].read() == b"y"
        for key, secret, code in [
            ("KEY", "WRONG", "SignatureDoesNotMatch"),
            ("NOBODY", "SECRET", "InvalidAccessKeyId"),
        ]:
            with pytest.raises(botocore.exceptions.ClientError) as error:
                client_of(served, key, secret).get_object(Bucket="photos", Key="k")
            assert code_of(error) == code
        status, _, body = get(served, "/photos/k")
        assert status == 403 and b"<Code>AccessDenied</Code>" in body
        # boto3 never puts the secret where a server could say it again.
        assert b"SECRET" not in body


def test_presigned_urls(folder):
    (folder / "photos/k").write_bytes(b"x")
    with Bucket(folder, latency="0", credentials=("KEY", "SECRET")) as served:
        url = client_of(served, signature_version="s3v4").generate_presigned_url(
            "get_object", Params={"Bucket": "photos", "Key": "k"}
        )
        path = url[len(served.url) :]
        assert get(served, path)[0] == 200
        status, _, body = get(served, path.replace("/photos/k?", "/photos/other?"))
        assert status == 403 and b"SignatureDoesNotMatch" in body


def test_session_tokens(folder):
    (folder / "photos/k").write_bytes(b"x")
    with Bucket(
        folder, latency="0", credentials=("K", "S"), session_token="now", expired_token="old"
    ) as served:
        good = client_of(served, token="now")
        assert good.get_object(Bucket="photos", Key="k")["Body"].read() == b"x"
        for token, code in [("old", "ExpiredToken"), ("other", "InvalidToken"), (None, "InvalidToken")]:
            with pytest.raises(botocore.exceptions.ClientError) as error:
                client_of(served, token=token).get_object(Bucket="photos", Key="k")
            assert code_of(error) == code
        status, _, body = get(served, "/photos/k")  # Nobody's.
        assert status == 403 and b"<Code>AccessDenied</Code>" in body


def signed_headers(host: str, path: str, date: str, key="K", secret="S") -> dict[str, str]:
    """SigV4 by hand, for a GET at any time."""
    scope = f"{date[:8]}/us-east-1/s3/aws4_request"
    names = "host;x-amz-content-sha256;x-amz-date"
    canonical = (
        f"GET\n{path}\n\nhost:{host}\nx-amz-content-sha256:UNSIGNED-PAYLOAD\n"
        f"x-amz-date:{date}\n\n{names}\nUNSIGNED-PAYLOAD"
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signing = ("AWS4" + secret).encode()
    for part in scope.split("/") + [f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}"]:
        signing = hmac.digest(signing, part.encode(), "sha256")
    return {
        "x-amz-date": date,
        "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{scope}, "
        f"SignedHeaders={names}, Signature={signing.hex()}",
    }


def test_clocks_may_not_be_far_apart(folder):
    with Bucket(folder, latency="0", credentials=("K", "S")) as served:
        host = urllib.parse.urlsplit(served.url).netloc

        def ask(minutes):
            date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + 60 * minutes))
            return get(served, "/photos", signed_headers(host, "/photos", date))

        assert [ask(minutes)[0] for minutes in (0, 14, -14)] == [200, 200, 200]
        for minutes in (16, -16):
            status, headers, body = ask(minutes)
            assert status == 403 and b"<Code>RequestTimeTooSkewed</Code>" in body
            assert "Date" in headers


def test_tls_is_verified(folder):
    (folder / "photos/k").write_bytes(b"x" * 500_000)
    with Bucket(folder, latency="0", tls=True) as served:
        assert served.url.startswith("https://")
        assert client_of(served).get_object(Bucket="photos", Key="k")["Body"].read() == b"x" * 500_000
        at = urllib.parse.urlsplit(served.url)
        trusting = ssl.create_default_context()
        with pytest.raises(ssl.SSLCertVerificationError):
            with socket.create_connection((at.hostname, at.port)) as raw:
                trusting.wrap_socket(raw, server_hostname=at.hostname)


# aws-cli


def test_aws_cli_copies_lists_syncs_and_removes(bucket, folder, tmp_path_factory):
    local = tmp_path_factory.mktemp("local")
    (local / "sub").mkdir()
    (local / "small.txt").write_text("hello")
    (local / "sub/large.bin").write_bytes(os.urandom(20 << 20))

    aws(bucket, "s3", "cp", str(local / "small.txt"), "s3://photos/one copy.txt")
    assert (folder / "photos/one copy.txt").read_text() == "hello"
    aws(bucket, "s3", "sync", str(local), "s3://photos/synced")
    assert (folder / "photos/synced/sub/large.bin").read_bytes() == (
        local / "sub/large.bin"
    ).read_bytes()
    assert aws(bucket, "s3", "sync", str(local), "s3://photos/synced").strip() == ""

    listed = aws(bucket, "s3", "ls", "s3://photos/")
    assert re.search(r"PRE synced/", listed) and re.search(r" 5 one copy.txt", listed)
    back = tmp_path_factory.mktemp("back")
    aws(bucket, "s3", "cp", "--recursive", "s3://photos/synced", str(back))
    assert (back / "sub/large.bin").read_bytes() == (local / "sub/large.bin").read_bytes()

    aws(bucket, "s3", "mv", "s3://photos/one copy.txt", "s3://photos/moved")
    assert (folder / "photos/moved").read_text() == "hello"
    aws(bucket, "s3", "rm", "--recursive", "s3://photos/")
    assert list((folder / "photos").iterdir()) == []


def test_aws_cli_is_told_of_a_wrong_secret(folder):
    with Bucket(folder, latency="0", credentials=("KEY", "SECRET")) as served:
        aws(served, "s3", "ls", "s3://photos/")
        served._credentials = ("KEY", "WRONG")
        said = aws(served, "s3", "ls", "s3://photos/", succeeds=False)
        assert "SignatureDoesNotMatch" in said
