"""A store that speaks as much of S3 as its clients need, and a table that speaks DynamoDB: both check signatures.

The judge is another's: it reads a request as it came and computes the signature again. What the signature covers is
checked here: the digest, the length, and checksums behind the body.
"""

import zlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from hashlib import md5, sha256
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

import awssig
import awssig.sigv4

from tests.outside.upstream_server import Visit

KEY_ID, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+of=an-hour"
REGION = "eu-central-1"
FRAMES = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
# The judge is older than this word, and knows another in its place.
awssig.sigv4._streaming_aws4_hmac_sha256_payload = FRAMES


class Unacceptable(Exception):
    """The request is not what its signature, its digest or its length says."""


class Store(Mapping[str, Callable[[Visit], Awaitable[None]]]):
    """Objects by path, for all who ask; of uploads in parts the parts."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._parts: dict[str, dict[int, bytes]] = {}

    def __getitem__(self, _path: str) -> Callable[[Visit], Awaitable[None]]:
        return self.serve

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1

    def get(self, path: str, _default: object = None) -> Callable[[Visit], Awaitable[None]]:
        """Every path is served."""
        return self[path]

    async def serve(self, visit: Visit) -> None:
        """Judge a request, then do it."""
        sent = await visit.body()
        try:
            service = judge(visit, sent)
            body = whole(visit, sent)
        except Unacceptable as problem:
            visit.note("judged", problem=str(problem))
            signed = (visit.header("authorization") or "").rpartition("=")[2]
            error = f"<Error><Code>SignatureDoesNotMatch</Code><SignatureProvided>{signed}</SignatureProvided></Error>"
            await visit.answer(error.encode(), 403, content_type="application/xml")
            return
        visit.note("judged", problem=None, size=len(body), digest=visit.header("x-amz-content-sha256"))
        if service == "dynamodb":
            await visit.answer_json({"Item": {"asked": {"B": b64encode(body).decode()}}})
        else:
            await self._do(visit, body)

    async def _do(self, visit: Visit, body: bytes) -> None:
        path, query = unquote(visit.path), visit.query
        if "list-type" in query:
            prefix = f"{path.rstrip('/')}/{query.get('prefix', '')}"
            keys = [key.removeprefix(f"{path.rstrip('/')}/") for key in sorted(self._objects) if key.startswith(prefix)]
            listed = "".join(f"<Contents><Key>{escape(quote(key))}</Key></Contents>" for key in keys)
            await _xml(visit, f"<ListBucketResult><EncodingType>url</EncodingType>{listed}</ListBucketResult>")
        elif visit.method == "POST" and "uploads" in query:
            upload = f"u{len(self._parts)}"
            self._parts[upload] = {}
            await _xml(
                visit, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
        elif visit.method == "PUT" and "uploadId" in query:
            self._parts[query["uploadId"]][int(query["partNumber"])] = body
            await visit.answer(etag=_tag(body))
        elif visit.method == "POST" and "uploadId" in query:
            parts = self._parts.pop(query["uploadId"])
            self._objects[path] = b"".join(parts[number] for number in sorted(parts))
            await _xml(visit, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
        elif visit.method == "PUT":
            self._objects[path] = body
            await visit.answer(etag=_tag(body))
        elif (found := self._objects.get(path)) is None:
            await visit.answer(b"<Error><Code>NoSuchKey</Code></Error>", 404, content_type="application/xml")
        else:
            await visit.answer(found, etag=_tag(found), content_type="application/octet-stream")


def judge(visit: Visit, sent: bytes) -> str:
    """The service that a request is rightly signed for, or Unacceptable."""
    scope = (visit.header("authorization") or "").partition("Credential=")[2].partition(",")[0].split("/")
    service = scope[3] if len(scope) == 5 else ""
    headers: dict[str, list[str]] = {}
    for name, value in visit.headers:
        headers.setdefault(name.lower(), []).append(value)
    verifier = {"s3": awssig.AWSSigV4S3Verifier, "dynamodb": awssig.AWSSigV4Verifier}.get(service)
    if verifier is None or any(name.lower().startswith("x-amz-") for name in visit.query if "sign" in name.lower()):
        raise Unacceptable(f"no signature, or one in the query beside it: {scope}")
    path, _, query = visit.target.partition("?")
    try:
        verifier(
            request_method=visit.method,
            uri_path=path,
            query_string=query,
            headers=headers,
            body=sent,
            region=REGION,
            service=service,
            key_mapping=_secret_of,
        ).verify()
    except awssig.InvalidSignatureError as problem:
        raise Unacceptable(str(problem)) from None
    signed = (visit.header("authorization") or "").partition("SignedHeaders=")[2].partition(",")[0].split(";")
    if missing := {name for name in headers if name == "host" or name.startswith("x-amz-")} - set(signed):
        raise Unacceptable(f"not signed: {missing}")
    return service


def whole(visit: Visit, sent: bytes) -> bytes:
    """The body without frames, once all that is said of it holds."""
    said = visit.header("x-amz-content-sha256")
    framed = "aws-chunked" in (visit.header("content-encoding") or "")
    if framed != (said == FRAMES):
        raise Unacceptable("framed, or not, against its word")
    if framed:
        sent = _without_frames(visit, sent)
    if said not in (None, "UNSIGNED-PAYLOAD", FRAMES) and sha256(sent).hexdigest() != said:
        raise Unacceptable("another digest")
    checksum = visit.header("x-amz-checksum-crc32")
    if checksum is not None and checksum != _crc(sent):
        raise Unacceptable("another checksum")
    return sent


def _without_frames(visit: Visit, sent: bytes) -> bytes:
    pieces, last = [], False
    while not last:
        size, _, sent = sent.partition(b"\r\n")
        length = int(size, 16)
        last = length == 0
        if not last and length < 8192 and sent[length + 2 :].partition(b"\r\n")[0] != b"0":
            raise Unacceptable("a frame that is too small")
        if not last:
            pieces.append(sent[:length])
            if sent[length : length + 2] != b"\r\n":
                raise Unacceptable("a frame without an end")
            sent = sent[length + 2 :]
    trailers = dict(line.split(":", 1) for line in sent.decode().split("\r\n") if line)
    body = b"".join(pieces)
    if len(body) != int(visit.header("x-amz-decoded-content-length") or -1):
        raise Unacceptable("another length")
    if visit.header("x-amz-trailer") != "x-amz-checksum-crc32" or trailers != {"x-amz-checksum-crc32": _crc(body)}:
        raise Unacceptable(f"another checksum behind it: {trailers}")
    return body


def _secret_of(key_id: str, token: str | None = None) -> str:
    if key_id != KEY_ID or token not in (None, TOKEN):
        raise KeyError(key_id)
    return SECRET


def _crc(body: bytes) -> str:
    return b64encode(zlib.crc32(body).to_bytes(4)).decode()


def _tag(body: bytes) -> str:
    return f'"{md5(body).hexdigest()}"'


async def _xml(visit: Visit, text: str) -> None:
    await visit.answer(text.encode(), content_type="application/xml")
