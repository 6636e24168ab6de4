"""Requests signed for AWS: a store that checks each signature, and AWS' own client with a key of no worth."""

import hashlib
import json
import os
import uuid
import zlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from proxy_addon.admission import MAX_INJECTED_BODY
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless
from tests.outside.store import KEY_ID, REGION, SECRET, TOKEN
from tests.proxy.envelope import refusal

KEY = {"accessKeyId": KEY_ID, "secretAccessKey": SECRET}
FORMS = ("gateway", "forward")
LARGE = os.urandom(2**20) * 20


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test says decides where its client goes."""
    for name in [name for name in os.environ if name.lower().endswith(("_proxy", "_ca_bundle"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")


def make_route(
    keyless: Keyless, service: str = "s3", held: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """Make a route to the store whose requests are signed."""
    value = json.dumps(KEY if held is None else held)
    secret = keyless.tenant.ok("POST", "/secrets", {"name": f"s-{uuid.uuid4().hex}", "value": value})
    said = {"injectAs": "awsSigV4", "injectKey": f"{REGION}/{service}", "injectFormat": "{value}", **more}
    return keyless.route("store", secretId=secret["id"], **said)


def client(keyless: Keyless, form: str, service: str = "s3", **config: Any) -> Any:
    """AWS' own client, whose key is the agent's token in the gateway form, and of no worth in the other."""
    said: dict[str, Any] = {"retries": {"total_max_attempts": 1}, "s3": {"addressing_style": "path"}, **config}
    if form == "forward":
        said["proxies"] = {"https": keyless.proxy_url()}
    at = f"{keyless.proxy.url}/store" if form == "gateway" else f"https://localhost:{keyless.upstream.ports['store']}"
    return boto3.client(
        service,
        endpoint_url=at,
        region_name=REGION,
        aws_access_key_id=keyless.token if form == "gateway" else "AKIANOBODY",
        aws_secret_access_key="of no worth",
        verify=str(keyless.proxied.proxy_ca),
        config=Config(**said),
    )


def judgements(keyless: Keyless) -> list[dict[str, Any]]:
    return keyless.upstream.lines("judged")


@pytest.fixture
def storing(keyless: Keyless) -> Iterator[Keyless]:
    make_route(keyless)
    yield keyless
    # Nothing of the key, of the token, or of what the client signed with has left.
    assert SECRET not in str(keyless.upstream.lines("request"))
    assert keyless.token.encode() not in keyless.upstream.raw()
    assert b"AKIANOBODY" not in keyless.upstream.raw()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", ["plain", "dir/a b+c(d)~'e'!*;:@&=$,%20.txt", "üml/ä😀", "a//b", "dot./x..y"])
def test_boto3_puts_gets_and_lists_objects_of_odd_names(storing: Keyless, form: str, key: str) -> None:
    store, bucket = client(storing, form), f"b-{uuid.uuid4().hex}"

    store.put_object(Bucket=bucket, Key=key, Body=b"content", Metadata={"a": "x   y", "b": ""}, ContentType="text/x")
    answer = store.get_object(Bucket=bucket, Key=key)
    listed = store.list_objects_v2(Bucket=bucket, Prefix=key[:5])

    assert answer["Body"].read() == b"content"
    assert [one["Key"] for one in listed["Contents"]] == [key]
    assert [line["problem"] for line in judgements(storing)] == [None] * 3


@pytest.mark.parametrize("form", FORMS)
def test_boto3_uploads_twenty_mebibytes_as_a_stream(storing: Keyless, form: str) -> None:
    store = client(storing, form)

    store.put_object(Bucket="large", Key="k", Body=LARGE, ChecksumAlgorithm="CRC32")

    (line,) = judgements(storing)
    assert (line["problem"], line["size"]) == (None, len(LARGE))
    # Over TLS the checksum follows the body, else the client knows the digest.
    assert (line["digest"] == "STREAMING-UNSIGNED-PAYLOAD-TRAILER") == (form == "forward")
    assert store.get_object(Bucket="large", Key="k")["Body"].read() == LARGE


def test_boto3_uploads_in_parts(storing: Keyless) -> None:
    store = client(storing, "forward")
    upload = store.create_multipart_upload(Bucket="parts", Key="k")["UploadId"]
    said = {"Bucket": "parts", "Key": "k", "UploadId": upload}
    tags = [
        {"ETag": store.upload_part(**said, PartNumber=number, Body=part)["ETag"], "PartNumber": number}
        for number, part in ((1, b"one"), (2, b"two"))
    ]

    store.complete_multipart_upload(**said, MultipartUpload={"Parts": tags})

    assert store.get_object(Bucket="parts", Key="k")["Body"].read() == b"onetwo"
    assert {line["problem"] for line in judgements(storing)} == {None}


@pytest.mark.parametrize("form", FORMS)
def test_boto3_asks_a_table(keyless: Keyless, form: str) -> None:
    make_route(keyless, "dynamodb")

    answer = client(keyless, form, "dynamodb").get_item(TableName="t", Key={"id": {"S": "ü"}})

    assert b'"TableName": "t"' in answer["Item"]["asked"]["B"]
    assert [line["problem"] for line in judgements(keyless)] == [None]


def test_a_key_that_expires_is_sent_with_its_token_which_does_not_come_back(keyless: Keyless) -> None:
    make_route(keyless, held=KEY | {"sessionToken": TOKEN})

    answer = client(keyless, "gateway").put_object(Bucket="b", Key="k", Body=b"")

    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    (heard,) = keyless.upstream.requests()
    assert heard.all("x-amz-security-token") == [TOKEN]


def send(keyless: Keyless, method: str, path: str, **given: Any) -> httpx.Response:
    """Send a request of a client that signs nothing, or something of its own."""
    return keyless.gateway("store").request(method, path, **given)


PLAIN = [
    "/b/k?list-type=2&prefix=a/b c&x=1&x=0&empty=&alone",
    "/b/k?list-type=2&prefix=%c3%a4+%2B&&delimiter=/",
    "/b/k?list-type=2&X-Amz-Signature=abc&X-Amz-Credential=me&x-amz-date=1&X-Amz-Algorithm=A",
    "/b/a(b)@c:d,e=f$?list-type=2",
    "/b/%2a%7e%41?list-type=2",
    "/b//c/?list-type=2",
]


@pytest.mark.parametrize("path", PLAIN)
def test_a_request_that_nobody_signed_is_signed_as_it_goes_out(storing: Keyless, path: str) -> None:
    answer = send(storing, "GET", path, headers={"X-Amz-Date": "20000101T000000Z", "X-Amz-Security-Token": "mine"})

    assert answer.status_code == 200
    (heard,) = storing.upstream.requests()
    assert heard.target.partition("?")[0] == path.partition("?")[0]
    assert "mine" not in str(heard.headers)
    assert "Signature=abc" not in heard.target


@pytest.mark.parametrize("said", [None, "UNSIGNED-PAYLOAD", "digest"])
def test_a_body_streams_whatever_is_said_of_it(storing: Keyless, said: str | None) -> None:
    body = b"x" * (MAX_INJECTED_BODY + 1)
    told = hashlib.sha256(body).hexdigest() if said == "digest" else said

    answer = send(storing, "PUT", "/b/k", content=body, headers={"x-amz-content-sha256": told} if told else {})

    assert answer.status_code == 200
    (line,) = judgements(storing)
    assert line["digest"] == (told or "UNSIGNED-PAYLOAD")
    assert line["size"] == len(body)


def test_a_wrong_digest_is_the_stores_to_refuse_and_its_signature_does_not_come_back(storing: Keyless) -> None:
    answer = send(storing, "PUT", "/b/k", content=b"other", headers={"x-amz-content-sha256": "0" * 64})

    assert answer.status_code == 403
    assert "<SignatureProvided>*" in answer.text
    (heard,) = storing.upstream.requests()
    assert heard.all("authorization")[0].rpartition("=")[2] not in answer.text


def test_a_body_that_is_held_to_be_signed_has_a_bound(keyless: Keyless) -> None:
    make_route(keyless, "dynamodb")
    target = {"X-Amz-Target": "DynamoDB_20120810.GetItem", "Content-Type": "application/x-amz-json-1.0"}

    assert send(keyless, "POST", "/", content=b"{}", headers=target).status_code == 200
    large = send(keyless, "POST", "/", content=b"x" * (MAX_INJECTED_BODY + 1), headers=target)
    chunks = send(keyless, "POST", "/", content=iter([b"x" * 2**20] * 9), headers=target)

    assert refusal(large) == refusal(chunks) == (413, "body_too_large")
    assert "x-amz-content-sha256" in large.json()["error"]["message"]
    assert len(keyless.upstream.requests()) == 1


def signed_chunks(body: bytes, size: int = 8192, *, trailed: bool = False) -> bytes:
    """A body as clients write it that sign each chunk, with signatures by a key of no worth."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    written = b"".join(b"%x;chunk-signature=%s\r\n%s\r\n" % (len(piece), b"5" * 64, piece) for piece in pieces)
    if not trailed:
        return written + b"0;chunk-signature=%s\r\n\r\n" % (b"5" * 64)
    crc = b64encode(zlib.crc32(body).to_bytes(4))
    return written + b"0\r\nx-amz-checksum-crc32:%s\r\nx-amz-trailer-signature:%s\r\n\r\n" % (crc, b"5" * 64)


def signed_head(length: int, *, trailed: bool = False) -> dict[str, str]:
    kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + ("-TRAILER" if trailed else "")
    trailer = {"x-amz-trailer": "x-amz-checksum-crc32"} if trailed else {}
    said = {"x-amz-content-sha256": kind, "x-amz-decoded-content-length": str(length)}
    return said | trailer | {"content-encoding": "aws-chunked"}


@pytest.mark.parametrize("trailed", [False, True])
@pytest.mark.parametrize("length", [0, 1, 8192, 100_000])
def test_chunks_signed_with_a_key_of_no_worth_go_out_without(storing: Keyless, length: int, trailed: bool) -> None:
    body = os.urandom(length)

    answer = send(
        storing,
        "PUT",
        "/b/chunks",
        content=signed_chunks(body, trailed=trailed),
        headers=signed_head(length, trailed=trailed),
    )

    assert answer.status_code == 200, judgements(storing)
    assert send(storing, "GET", "/b/chunks").content == body
    assert b"chunk-signature" not in storing.upstream.raw()


BROKEN: dict[str, tuple[bytes, int]] = {
    "more than was said": (signed_chunks(b"x" * 100), 99),
    "less than was said": (signed_chunks(b"x" * 100), 101),
    "no end": (signed_chunks(b"x" * 100)[:-30], 100),
    "something behind the end": (signed_chunks(b"x" * 100) + b"GET / HTTP/1.1\r\n\r\n", 100),
    "no chunks": (b"x" * 100, 100),
}


@pytest.mark.parametrize("name", BROKEN)
def test_chunks_that_are_none_never_become_a_request(storing: Keyless, name: str) -> None:
    sent, length = BROKEN[name]

    answer = send(storing, "PUT", "/b/broken", content=sent, headers=signed_head(length))

    assert refusal(answer) == (400, "malformed_request")
    assert judgements(storing) == []
    assert send(storing, "GET", "/b/broken").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-content-sha256": "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"},
        {"x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
        {"x-amz-content-sha256": "abc"},
    ],
)
def test_a_payload_that_cannot_be_signed_goes_nowhere(storing: Keyless, headers: dict[str, str]) -> None:
    answer = send(storing, "PUT", "/b/k", content=b"x", headers=headers)

    assert refusal(answer) == (400, "payload_unfit")
    assert "UNSIGNED-PAYLOAD" in answer.json()["error"]["message"]
    assert storing.upstream.requests() == []


def test_the_store_refuses_another_key(keyless: Keyless) -> None:
    """The control: the judge looks at every byte."""
    make_route(keyless, held=KEY | {"secretAccessKey": SECRET[:-1] + "x"})

    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        client(keyless, "gateway").get_object(Bucket="b", Key="k")

    assert "Signature mismatch" in judgements(keyless)[0]["problem"]


def test_a_rotated_key_signs_the_next_request(keyless: Keyless) -> None:
    route = make_route(keyless, held=KEY | {"secretAccessKey": "wrong"})
    assert send(keyless, "GET", "/b?list-type=2").status_code == 403

    keyless.tenant.ok("PUT", f"/secrets/{route['secretId']}", {"value": json.dumps(KEY)})

    eventually(lambda: send(keyless, "GET", "/b?list-type=2").status_code == 200)


def test_further_secrets_go_in_before_the_signature(keyless: Keyless) -> None:
    further = keyless.tenant.ok("POST", "/secrets", {"name": f"s-{uuid.uuid4().hex}", "value": "a further/value"})
    places = [
        {"secretId": further["id"], "injectAs": "header", "injectKey": "X-Amz-Meta-App"},
        {"secretId": further["id"], "injectAs": "query", "injectKey": "app"},
        {"secretId": further["id"], "injectAs": "body", "injectKey": "app"},
    ]
    make_route(keyless, alsoInject=places)

    answer = send(keyless, "PUT", "/b/k", json={"app": "mine"}, headers={"x-amz-content-sha256": "0" * 64})

    assert answer.status_code == 200, judgements(keyless)
    (heard,) = keyless.upstream.requests()
    assert json.loads(heard.body) == {"app": "a further/value"}
    assert heard.all("x-amz-content-sha256") == [hashlib.sha256(heard.body.encode()).hexdigest()]


UNFIT: list[tuple[dict[str, Any], Any, str]] = [
    ({"injectKey": "s3"}, KEY, "invalid_route"),
    ({"injectKey": ""}, KEY, "invalid_route"),
    ({"injectKey": "eu/s3/x"}, KEY, "invalid_route"),
    ({"injectFormat": "x{value}"}, KEY, "invalid_route"),
    ({"keepAuthorization": True}, KEY, "invalid_route"),
    ({"exchange": {"grant": "githubApp"}}, KEY, "invalid_route"),
    ({}, "AKID:secret", "value_not_for_aws"),
    ({}, {"accessKeyId": "AKID"}, "value_not_for_aws"),
    ({}, KEY | {"accessKeyId": "a/b"}, "value_not_for_aws"),
    ({}, KEY | {"secretAccessKey": "a\nb"}, "value_not_for_aws"),
    ({}, KEY | {"sessionToken": "ü"}, "value_not_for_aws"),
]


@pytest.mark.parametrize(("changed", "held", "code"), UNFIT, ids=str)
def test_a_route_that_could_not_sign_is_refused(
    keyless: Keyless, changed: dict[str, Any], held: Any, code: str
) -> None:
    value = held if isinstance(held, str) else json.dumps(held)
    secret = keyless.tenant.ok("POST", "/secrets", {"name": f"s-{uuid.uuid4().hex}", "value": value})
    fields = {"hostPattern": "*.amazonaws.com", "injectAs": "awsSigV4", "injectKey": "eu-central-1/s3", **changed}

    answer = keyless.tenant.post("/secrets/routes", json=fields | {"secretId": secret["id"]})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, code)
    assert value not in answer.text


def test_a_key_is_not_rotated_to_what_cannot_sign(keyless: Keyless) -> None:
    route = make_route(keyless)

    answer = keyless.tenant.put(f"/secrets/{route['secretId']}", json={"value": "no key"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "value_not_for_aws")
    assert "no key" not in answer.text
