"""Signs requests for AWS (Signature Version 4) with AWS' own library, which is loaded with this module.

Guarantees: what is signed is what goes out, read as AWS reads it; of the key nothing but the signature leaves.
"""

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest

from custody.credentials.aws_key import AwsKey
from proxy_addon.aws_request import DIGEST, in_store
from proxy_addon.inject import Headers, into_headers

# What is signed beside all that AWS reads; the rest is none of its business, and what is between may change it.
_SIGNED: Final = frozenset((b"host", b"content-type", b"content-md5"))
_MADE: Final = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-SHA256")
_BLANKS = re.compile(" +")


class _Credentials:
    """A key as the library asks for it."""

    def __init__(self, key: AwsKey) -> None:
        self.access_key, self.secret_key, self.token = key.access_key_id, key.secret_access_key, key.session_token


class _AsSent(SigV4Auth):  # type: ignore[misc]
    """Takes the digest of the body as it is told, and blanks for white space alone."""

    def payload(self, request: AWSRequest) -> str:
        return str(request.context["payload"])

    def _header_value(self, value: str) -> str:
        return _BLANKS.sub(" ", value.strip(" "))


class _AsSentToStore(_AsSent, S3SigV4Auth):  # type: ignore[misc]
    """The same for S3, which signs the path as it has read it: decoded, and encoded once."""

    def _normalize_url_path(self, path: str) -> str:
        return quote(unquote_to_bytes(path), safe="/~")


class AwsSignature:
    """A key, and the region and service that it signs for."""

    __slots__ = ("_auth", "service")

    def __init__(self, key: AwsKey, scope: str) -> None:
        region, _, self.service = scope.partition("/")
        made = _AsSentToStore if in_store(self.service) else _AsSent
        self._auth = made(_Credentials(key), self.service, region)

    def __repr__(self) -> str:
        return f"AwsSignature({self.service})"

    def sign(self, method: str, host: str, target: bytes, headers: Headers, digest: str) -> tuple[Headers, bytes]:
        """Sign a request as it goes out; give its headers, and the signature."""
        request = AWSRequest(method, f"https://{host}{target.decode('ascii')}")
        request.context["payload"] = digest
        for name, value in headers:
            known = name.lower()
            # S3 has the digest in a header, others where the client says it.
            if known == DIGEST:
                request.headers["X-Amz-Content-SHA256"] = digest
            elif known in _SIGNED or known.startswith(b"x-amz-"):
                request.headers[name.decode("latin-1")] = _text(value)
        self._auth.add_auth(request)
        for made in _MADE:
            if made in request.headers:
                headers = into_headers(headers, made, request.headers[made])
        return headers, request.headers["Authorization"].rpartition("=")[2].encode()


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
