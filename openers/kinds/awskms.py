"""A key of AWS KMS: `kms:Encrypt` for who locks the file, `kms:Decrypt` for the service.

Credentials are found and requests are signed by botocore, as AWS has it; what it would send goes our own, bounded way.
"""

import re
from collections.abc import Iterator
from typing import Any

import botocore.session
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
)
from botocore.parsers import ResponseParserError

from openers import asking, deadline
from openers.outcomes import Away, BadSettings, NotOpened, NotOurs, Refused

_ARN = re.compile(r"arn:aws[a-z-]{0,16}:kms:([a-z0-9-]{1,32}):[0-9]{12}:key/[A-Za-z0-9-]{1,64}", re.ASCII)
_USAGE = "is named by the ARN of the key itself: arn:aws:kms:REGION:ACCOUNT:key/ID"
_NO_ANSWER = (ConnectionError, HTTPClientError, CredentialRetrievalError, MetadataRetrievalError, ResponseParserError)
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


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Have the file's key encrypted."""
    said = _ask(name, "encrypt", Plaintext=key, EncryptionContext=_context(file))
    return name, said["CiphertextBlob"]


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Have what was wrapped decrypted, by this key and for this file alone."""
    key: bytes = _ask(name, "decrypt", CiphertextBlob=blob, EncryptionContext=_context(file))["Plaintext"]
    return key


def _context(file: str) -> dict[str, str]:
    return {"custody": "file-key/1", "file": file}


def _ask(name: str, what: str, **given: Any) -> dict[str, Any]:
    deadline.begin()
    if not (arn := _ARN.fullmatch(name)):
        raise BadSettings(f"A holder of the kind awskms {_USAGE}.")
    try:
        said: dict[str, Any] = getattr(_client(arn[1]), what)(KeyId=name, **given)
    except ClientError as problem:
        raise _outcome(problem, f"kms:{what.capitalize()}") from None
    except _NO_ANSWER as problem:
        raise Away(f"AWS does not answer as it does: {type(problem).__name__}.") from None
    except (BotoCoreError, ValueError) as problem:
        # Its own words may repeat a line of a file of credentials.
        raise BadSettings(f"AWS is not asked, for a setting is missing or wrong: {_told(problem)}.") from None
    if said.get("KeyId") != name:
        raise NotOurs("AWS KMS answered for another key than the one that was asked.")
    return said


def _client(region: str) -> Any:
    session = botocore.session.get_session()
    # One try: who started this asks again, and says why.
    once = Config(retries={"total_max_attempts": 1}, connect_timeout=asking.SECONDS, read_timeout=asking.SECONDS)
    client = session.create_client("kms", region_name=region, config=once)
    asking.check(client.meta.endpoint_url)
    ca_file = session.get_config_variable("ca_bundle")

    def send(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        headers = {name: _text(value) for name, value in request.headers.items() if name.lower() != "content-length"}
        came = asking.ask(request.url, request.body, headers, ca_file)
        return AWSResponse(request.url, came.status, came.headers, _Body(came.body))

    client.meta.events.register("before-send.kms", send)
    return client


def _text(value: str | bytes) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else value


class _Body:
    """The body of an answer, as botocore reads it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content


def _outcome(problem: ClientError, right: str) -> NotOpened:
    error = problem.response.get("Error", {})
    status = problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = re.sub(r"[^A-Za-z0-9]", "", str(error.get("Code", "")))[:64]
    if code in _OTHERS:
        return NotOurs("AWS KMS cannot open it: it was wrapped by another key, for another file, or was changed.")
    if code in _WRONG:
        return BadSettings(f"AWS KMS does not take this key ({code}): it must be a symmetric one for encryption.")
    if status >= 500 or status == 429 or code in _AWAY:
        return Away(f"AWS KMS cannot answer now ({code or status}).")
    if code.endswith("Exception") or status in (401, 403):
        return Refused(f"AWS KMS refuses {right} ({code or status}): {_CURES.get(code, 'see to its credentials')}.")
    return Away(f"What answers instead of AWS KMS is something else ({code or status}).")


def _told(problem: Exception) -> str:
    match type(problem).__name__:
        case "NoCredentialsError":
            return "there are no credentials (a role of this machine, AWS_PROFILE, or AWS_ACCESS_KEY_ID)"
        case "PartialCredentialsError":
            return "one half of the credentials is missing"
        case "ProfileNotFound":
            return "there is no such profile as AWS_PROFILE names"
        case other:
            return other
