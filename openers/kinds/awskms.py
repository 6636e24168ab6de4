"""A key of AWS KMS: `kms:Encrypt` for who locks the file, `kms:Decrypt` for the service.

Botocore finds the credentials and the address as AWS has it, and signs. What it signed goes our own, bounded way, and
what comes back is read to the letter.
"""

import re
from typing import Any

import botocore.session
import msgspec
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import (
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
)

from openers import asking, deadline
from openers.outcomes import Away, BadSettings, NotOpened, NotOurs, Refused

_ARN = re.compile(r"arn:aws[a-z-]{0,16}:kms:([a-z0-9-]{1,32}):[0-9]{12}:key/[A-Za-z0-9-]{1,64}", re.ASCII)
# On the way to credentials: those of a container or a machine, and those that a role is exchanged for.
_NO_ANSWER = (ConnectionError, HTTPClientError, CredentialRetrievalError, MetadataRetrievalError)
_AWAY = frozenset(
    {
        *("DependencyTimeoutException", "KMSInternalException", "KeyUnavailableException", "InternalFailure"),
        *("LimitExceededException", "RequestLimitExceeded", "RequestTimeout", "ServiceUnavailable"),
        *("Throttling", "ThrottlingException", "TooManyRequestsException"),
    }
)
_OTHERS = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})
_WRONG = frozenset({"ValidationException", "InvalidArnException", "InvalidKeyUsageException"})
_CURES = {
    "AccessDeniedException": "give it to this role in the key's policy or by IAM",
    "DisabledException": "enable the key again",
    "ExpiredTokenException": "the credentials have expired: give it new ones",
    "KMSInvalidStateException": "cancel the deletion of the key, or open by another holder",
    "NotFoundException": "no such key is in that account and region: open by another holder",
}


class _Encrypted(msgspec.Struct, rename="pascal"):
    key_id: str
    ciphertext_blob: bytes


class _Decrypted(msgspec.Struct, rename="pascal"):
    key_id: str
    plaintext: bytes


class _Failed(msgspec.Struct):
    kind: str = msgspec.field(name="__type")


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Have the file's key encrypted."""
    said = _ask(name, "Encrypt", {"Plaintext": key, "EncryptionContext": _context(file)}, _Encrypted)
    return name, said.ciphertext_blob


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Have what was wrapped decrypted, by this key and for this file alone."""
    return _ask(name, "Decrypt", {"CiphertextBlob": blob, "EncryptionContext": _context(file)}, _Decrypted).plaintext


def _context(file: str) -> dict[str, str]:
    return {"custody": "file-key/1", "file": file}


def _ask[Said: (_Encrypted, _Decrypted)](name: str, what: str, given: dict[str, Any], said: type[Said]) -> Said:
    deadline.begin()
    if not (arn := _ARN.fullmatch(name)):
        raise BadSettings(
            "A holder of the kind awskms is named by the ARN of the key itself: arn:aws:kms:REGION:ACCOUNT:key/ID"
        )
    # As AWS itself is asked: the key's name beside what another key may have wrapped, which is refused then.
    request, ca_file = _sign(arn[1], what, msgspec.json.encode({"KeyId": name, **given}))
    headers = {header: _text(value) for header, value in request.headers.items() if header.lower() != "content-length"}
    answer = asking.ask(request.url, request.body, headers, ca_file)
    if answer.status != 200:
        raise _outcome(answer, f"kms:{what}")
    found = asking.read(answer, said, "AWS KMS")
    if found.key_id != name:
        raise NotOurs("AWS KMS answered for another key than the one that was asked.")
    return found


def _sign(region: str, what: str, body: bytes) -> tuple[Any, str | None]:
    """A request that AWS takes, and the file of certificates that vouch for AWS here."""
    try:
        session = botocore.session.get_session()
        credentials = session.get_credentials()
        if credentials is None:
            raise BadSettings(
                "AWS is not asked, for there are no credentials: a role of this machine or container, AWS_PROFILE, "
                "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        # Its address depends on the partition and on several settings.
        address = session.create_client("kms", region_name=region).meta.endpoint_url
        headers = {"X-Amz-Target": f"TrentService.{what}", "Content-Type": "application/x-amz-json-1.1"}
        request = AWSRequest("POST", f"{address.rstrip('/')}/", headers, body)
        SigV4Auth(credentials.get_frozen_credentials(), "kms", region).add_auth(request)
        return request.prepare(), session.get_config_variable("ca_bundle")
    except _NO_ANSWER as problem:
        raise Away(f"AWS gives no credentials now ({type(problem).__name__}).") from None
    except ClientError as problem:
        raise Refused(f"AWS gives no credentials ({_code(problem.response)}): see to the role.") from None
    except NotOpened:
        raise
    except Exception as problem:
        # Files of settings and of tokens are read there, and raise what they raise. Their words may repeat a line.
        raise BadSettings(f"AWS is not asked, for a setting is wrong: {_tell(problem)}.") from None


def _text(value: str | bytes) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else value


def _code(response: Any) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", str(response.get("Error", {}).get("Code", "")))[:64]


def _outcome(answer: asking.Answer, right: str) -> NotOpened:
    try:
        kind = msgspec.json.decode(answer.body, type=_Failed).kind.rpartition("#")[2]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        kind = ""
    code = kind if kind.isalnum() and kind.isascii() and len(kind) <= 64 else ""
    said = code or answer.status
    if answer.status >= 500 or answer.status == 429 or code in _AWAY:
        return Away(f"AWS KMS cannot answer now ({said}).")
    if code in _OTHERS:
        return NotOurs("AWS KMS cannot open it: it was wrapped by another key, for another file, or was changed.")
    if code in _WRONG:
        return BadSettings(f"AWS KMS does not take this key ({said}): it must be a symmetric one for encryption.")
    if code.endswith("Exception"):
        return Refused(f"AWS KMS refuses {right} ({said}): {_CURES.get(code, 'see to its credentials')}.")
    return Away(f"What answers at the address of AWS KMS is something else ({said}).")


def _tell(problem: Exception) -> str:
    match type(problem).__name__:
        case "PartialCredentialsError":
            return "one half of the credentials is missing"
        case "ProfileNotFound":
            return "there is no such profile as AWS_PROFILE names"
        case other:
            return other
