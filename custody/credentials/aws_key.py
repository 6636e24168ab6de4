"""Requests that are signed for AWS (Signature Version 4): what a secret must hold for it, and whom it is signed for.

Pure: `proxy_addon/aws_signature.py` signs (docs/decisions/0124).
"""

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from custody.kit.errors import Invalid

AWS_SIGNATURE: Final = "awsSigV4"
_SCOPE = re.compile(r"[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,64}")
# It stands in a list with commas, before a slash.
_KeyId = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[!-+.0-~-]*\Z")]
_Secret = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[\x21-\x7e]*\Z")]
# As long as a header may be.
_Token = Annotated[str, Meta(min_length=1, max_length=16_384, pattern=r"^[\x21-\x7e]*\Z")]


class AwsKey(msgspec.Struct, frozen=True, rename="camel"):
    """An access key; one that expires has a session token."""

    access_key_id: _KeyId
    secret_access_key: _Secret
    session_token: _Token | None = None

    def __repr__(self) -> str:
        return "AwsKey()"


class ValueNotForAws(Invalid):
    """For awsSigV4 the value is a JSON object with accessKeyId and secretAccessKey, perhaps with sessionToken."""


def read_key(value: bytes) -> AwsKey:
    """Read what a secret holds, or ValueNotForAws; nothing of the value is said."""
    try:
        return msgspec.json.decode(value, type=AwsKey)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueNotForAws from None


def is_scope(text: str) -> bool:
    """Say whether this is a region and a service, such as `us-east-1/s3`."""
    return _SCOPE.fullmatch(text) is not None
