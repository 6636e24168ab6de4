"""boto3, with a secret key that is worth nothing."""

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError
from steps import BASE, FILE, KEY, PARTS, UPLOADED, of_file, run, size_and_digest


def store(base: str) -> object:
    by_path = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    key = {"aws_access_key_id": KEY, "aws_secret_access_key": "placeholder"}
    return boto3.client("s3", endpoint_url=base, region_name="eu-central-1", config=by_path, **key)


s3 = store(BASE)


def in_parts(base: str) -> object:
    store(base).download_file("bkt", "file", str(FILE), Config=TransferConfig(multipart_threshold=8 * 2**20))
    return of_file()


def upload() -> object:
    size, digest = s3.put_object(Bucket="bkt", Key="up", Body=UPLOADED)["ETag"].strip('"').split()
    return [int(size), digest]


def pages() -> list[str]:
    listed = s3.get_paginator("list_objects_v2").paginate(Bucket="bkt", PaginationConfig={"PageSize": 1})
    return [item["Key"] for page in listed for item in page["Contents"]]


def busy() -> object:
    try:
        s3.get_object(Bucket="bkt", Key="busy")
    except ClientError as refused:
        said = refused.response["ResponseMetadata"]
        return [said["HTTPStatusCode"], said["HTTPHeaders"]["retry-after"]]


run(
    {
        "call": lambda: s3.get_object(Bucket="bkt", Key="words")["Body"].read().decode(),
        "pages": pages,
        "download": lambda: size_and_digest(s3.get_object(Bucket="bkt", Key="file")["Body"].read()),
        "parts": lambda: in_parts(PARTS),
        "no parts": lambda: in_parts(BASE),
        "upload": upload,
        "busy": busy,
    }
)
