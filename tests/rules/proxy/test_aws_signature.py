"""Signing for AWS: read by a judge that somebody else wrote, and held to what AWS itself has published."""

import hashlib
import logging
from datetime import UTC, datetime

import awssig
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from custody.credentials.aws_key import AwsKey, is_scope, read_key
from proxy_addon.aws_chunks import FRAME_BYTES, SignedChunks
from proxy_addon.aws_request import PayloadUnfit, payload_of, plain_query
from proxy_addon.aws_signature import AwsSignature
from proxy_addon.chunks import BadChunk
from proxy_addon.inject import TooManyPairs
from tests.fixtures.each import each

ID, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
HOST = "bucket.example.com:8443"


def signature(service="s3", token=None):
    return AwsSignature(AwsKey(ID, SECRET, token), f"us-east-1/{service}")


def sign(method, target, headers=(), service="s3", token=None):
    said = payload_of([(b"Host", HOST.encode()), *headers], service, has_body=False, changed=False)
    return signature(service, token).sign(method, HOST, target, said.headers, said.digest)[0]


def judge(method, target, headers, service="s3"):
    """Raise unless the signature holds."""
    path, _, query = target.decode().partition("?")
    found = {}
    for name, value in headers:
        found.setdefault(name.decode().lower(), []).append(value.decode().strip())
    kind = awssig.AWSSigV4S3Verifier if service == "s3" else awssig.AWSSigV4Verifier
    kind(
        request_method=method,
        uri_path=path,
        query_string=query,
        headers=found,
        body=b"",
        region="us-east-1",
        service=service,
        key_mapping=lambda *_: SECRET,
    ).verify()


letters = st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="%?#\\+")
# A slash that is escaped is one to S3 itself, and another byte to this judge.
bytes_but_slashes = st.binary(min_size=1, max_size=2).filter(lambda raw: b"/" not in raw)
escapes = bytes_but_slashes.map(lambda raw: "".join(f"%{byte:02x}" for byte in raw))
texts = st.lists(st.text(letters, max_size=5) | escapes, max_size=4).map("".join)
words = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)


@given(texts, st.none() | texts, st.lists(words, max_size=3))
def test_a_judge_reads_whatever_goes_out(path, query, values):
    target = f"/b/{path}".encode()
    if (plain := plain_query(None if query is None else query.encode())) is not None:
        target += b"?" + plain
        # AWS, whose own code signs here, sorts by names; this judge sorts what it has joined, so `a-=` before `a=`.
        pairs = [tuple(pair.partition("=")[::2]) for pair in plain.decode().split("&")]
        assume(
            sorted(f"{name}={value}" for name, value in pairs) == [f"{name}={value}" for name, value in sorted(pairs)]
        )
    headers = [(b"X-Amz-Meta-A", value.strip().encode()) for value in values]

    judge("GET", target, sign("GET", target, headers))


@each(("target", "service"), [(b"/b/k?a=1&a=0&b", "s3"), (b"/", "dynamodb"), (b"/a//b?z=%20&a=%2F", "execute-api")])
def test_a_judge_refuses_one_byte_that_is_other(target, service):
    headers = sign("GET", target, [(b"x-amz-target", b"Put")], service)
    judge("GET", target, headers, service)

    with pytest.raises(awssig.InvalidSignatureError):
        judge("PUT", target, headers, service)
    with pytest.raises(awssig.InvalidSignatureError):
        judge("GET", target.replace(b"/", b"/c", 1), headers, service)
    other = [(name, b"Get" if name == b"x-amz-target" else value) for name, value in headers]
    with pytest.raises(awssig.InvalidSignatureError):
        judge("GET", target, other, service)


def canonical_path(path, service):
    """The path as the library signs it, which nothing but its log shows."""
    lines = []
    log = logging.getLogger("botocore.auth")
    kept = log.level
    log.setLevel(logging.DEBUG)
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    try:
        sign("GET", path, service=service)
    finally:
        log.removeHandler(handler)
        log.setLevel(kept)
    return next(line for line in lines if line.startswith("CanonicalRequest")).split("\n")[2]


@each(
    ("path", "service", "canonical"),
    [
        # What S3 and another service said that the canonical path of one request is (aws-sdk-js 853).
        (b"/%3Fa=b%20c", "s3", "/%3Fa%3Db%20c"),
        (b"/_search/%3Fa=b%20c", "es", "/_search/%253Fa%3Db%2520c"),
        (b"/a//b/", "s3", "/a//b/"),
        (b"/a//b/", "es", "/a/b/"),
        (b"/%7e%2a/%2F", "s3", "/~%2A//"),
        (b"/", "s3", "/"),
    ],
)
def test_a_path_is_signed_as_its_service_reads_it(path, service, canonical):
    assert canonical_path(path, service) == canonical


def test_a_signature_has_the_time_of_the_process_and_not_the_clients():
    headers = dict(sign("GET", b"/", [(b"X_Amz-Date", b"1"), (b"x-amz-date", b"2"), (b"authorization", b"AWS4 x")]))

    said = datetime.strptime(headers[b"X-Amz-Date"].decode(), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - said).total_seconds()) < 60
    assert b"X_Amz-Date" not in headers
    assert b"authorization" not in headers


def test_a_signature_covers_only_what_aws_reads():
    headers = dict(sign("GET", b"/", [(b"User-Agent", b"x"), (b"Accept", b"y"), (b"X-Amzn-Trace-Id", b"z")]))

    names = headers[b"Authorization"].partition(b"SignedHeaders=")[2].partition(b",")[0]
    assert names == b"host;x-amz-content-sha256;x-amz-date"
    assert headers[b"Accept"] == b"y"


@each(
    ("query", "plain"),
    [
        (None, None),
        (b"", None),
        (b"&&", None),
        (b"uploads", b"uploads"),
        (b"a=&b", b"a=&b"),
        (b"b=2&a=1&b=1", b"b=2&a=1&b=1"),
        (b"p=a/b+c%2b%7e", b"p=a%2Fb%20c%2B~"),
        (b"a=b=c", b"a=b%3Dc"),
        (b"%ff=%zz", b"%FF=%25zz"),
        (b"X-Amz-Signature=1&x%2Damz-date=2&x-amz-acl=3&X-Amz-Credential", b"x-amz-acl=3"),
    ],
)
def test_a_query_is_written_as_it_is_signed(query, plain):
    assert plain_query(query) == plain


def test_a_query_has_a_bound():
    with pytest.raises(TooManyPairs):
        plain_query(b"&" * 10_000)


EMPTY = hashlib.sha256(b"").hexdigest()
CASES = [
    ("s3", None, False, False, EMPTY),
    ("s3", None, True, False, "UNSIGNED-PAYLOAD"),
    ("s3", None, True, True, None),
    ("es", None, False, False, EMPTY),
    ("es", None, True, False, None),
    ("es", "a" * 64, True, False, "a" * 64),
    ("es", "a" * 64, True, True, None),
    ("s3", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", True, False, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
]


@each(("service", "said", "has_body", "changed", "digest"), CASES)
def test_a_body_is_signed_by_what_is_said_of_it(service, said, has_body, changed, digest):
    headers = [] if said is None else [(b"X-Amz-Content-Sha256", said.encode())]

    assert payload_of(headers, service, has_body=has_body, changed=changed).digest == digest


@each("values", [[b"x"], [b""], [b"a" * 64] * 2, [b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD"]])
def test_a_digest_that_is_none_is_refused(values):
    with pytest.raises(PayloadUnfit):
        payload_of([(b"x-amz-content-sha256", value) for value in values], "s3", has_body=True, changed=False)


@given(st.binary(max_size=40_000), st.integers(1, 20_000), st.integers(1, 5_000), st.booleans())
def test_signed_chunks_hold_what_was_in_them_however_they_are_cut(body, size, cut, framed):
    pieces = [body[at : at + size] for at in range(0, len(body), size)] if len(body) < 64 * size else [body]
    sent = b"".join(b"%x;chunk-signature=%s\r\n%s\r\n" % (len(piece), b"5" * 64, piece) for piece in pieces)
    sent += b"0;chunk-signature=%s\r\n" % (b"5" * 64) + b"x-amz-checksum:x\r\nx-amz-trailer-signature:y\r\n\r\n"
    chunks = SignedChunks(len(body), framed=framed)

    found = [chunks.feed(sent[at : at + cut]) for at in range(0, len(sent), cut)]
    before = sum(map(len, found))
    found.append(chunks.end())

    whole = [body[at : at + FRAME_BYTES] for at in range(0, len(body), FRAME_BYTES)]
    frames = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in whole) + b"0\r\nx-amz-checksum:x\r\n\r\n"
    assert b"".join(found) == (frames if framed else body)
    # Until the end was read nobody has the whole of it.
    assert before < max(1, len(body)) or framed


@each("sent", [b"5\r\nabc", b"3\r\nabc\r\n", b"4\r\nabcd\r\n0\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\nx", b"zz\r\n"])
def test_chunks_of_another_length_are_broken(sent):
    chunks = SignedChunks(3, framed=False)

    with pytest.raises(BadChunk):
        _ = chunks.feed(sent), chunks.end()


@each("text", ["us-east-1/s3", "auto/s3", "eu-central-1/execute-api"])
def test_a_scope_is_a_region_and_a_service(text):
    assert is_scope(text)
    assert not any(map(is_scope, (f"{text}/", f"/{text}", f"{text}\n", text.partition("/")[0], f"{text} ")))


def test_a_key_is_shown_by_nothing():
    key = read_key(b'{"accessKeyId": "AKID", "secretAccessKey": "a/b+", "sessionToken": "t", "more": 1}')

    assert "a/b+" not in repr(key) + repr(signature()) + repr(SignedChunks(1, framed=False))
