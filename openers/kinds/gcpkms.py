"""A key of Google Cloud KMS: the role of an encrypter for who locks the file, of a decrypter for the service.

Credentials are found by google-auth, as Google has it. The two calls are as its documentation has them, with a checksum
of everything in both directions: until somebody ran it against Google itself, that is all that vouches for it.
"""

import re
import warnings
from typing import Any

import msgspec

from custody.kit.key_head import binding
from openers import asking, deadline
from openers.outcomes import Away, BadSettings, NotOpened, NotOurs, Refused

_HOST = "cloudkms.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/cloudkms"
_PART = "[A-Za-z0-9_.:-]{1,100}"
_NAME = re.compile(f"projects/{_PART}/locations/{_PART}/keyRings/{_PART}/cryptoKeys/{_PART}", re.ASCII)
# Of CRC-32C, with its bits in reverse.
_POLYNOMIAL = 0x82F63B78


# As Google spells these fields; the usual way to write such names has a capital after a figure.
_NAMES = {
    "additional_authenticated_data": "additionalAuthenticatedData",
    "additional_authenticated_data_crc32c": "additionalAuthenticatedDataCrc32c",
    "ciphertext_crc32c": "ciphertextCrc32c",
    "plaintext_crc32c": "plaintextCrc32c",
    "verified_additional_authenticated_data_crc32c": "verifiedAdditionalAuthenticatedDataCrc32c",
    "verified_plaintext_crc32c": "verifiedPlaintextCrc32c",
}


class _Encrypt(msgspec.Struct, rename=_NAMES):
    plaintext: bytes
    plaintext_crc32c: str
    additional_authenticated_data: bytes
    additional_authenticated_data_crc32c: str


class _Decrypt(msgspec.Struct, rename=_NAMES):
    ciphertext: bytes
    ciphertext_crc32c: str
    additional_authenticated_data: bytes
    additional_authenticated_data_crc32c: str


class _Encrypted(msgspec.Struct, rename=_NAMES):
    name: str
    ciphertext: bytes
    ciphertext_crc32c: str
    verified_plaintext_crc32c: bool = False
    verified_additional_authenticated_data_crc32c: bool = False


class _Decrypted(msgspec.Struct, rename=_NAMES):
    plaintext_crc32c: str
    plaintext: bytes = b""


class _Error(msgspec.Struct):
    status: str = ""


class _Failed(msgspec.Struct):
    error: _Error


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Have the file's key encrypted."""
    data = binding(file)
    said = asking.read(_ask(name, "encrypt", _Encrypt(key, _checksum(key), data, _checksum(data))), _Encrypted, _HOST)
    if not said.verified_plaintext_crc32c or not said.verified_additional_authenticated_data_crc32c:
        raise Away("Google KMS did not get what was sent: a checksum differs.")
    if said.ciphertext_crc32c != _checksum(said.ciphertext):
        raise Away("What Google KMS encrypted was changed on its way: its checksum differs.")
    if not said.name.startswith(f"{name}/cryptoKeyVersions/"):
        raise NotOurs("Google KMS answered for another key than the one that was asked.")
    return name, said.ciphertext


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Have what was wrapped decrypted, for this file alone."""
    data = binding(file)
    said = asking.read(_ask(name, "decrypt", _Decrypt(blob, _checksum(blob), data, _checksum(data))), _Decrypted, _HOST)
    if said.plaintext_crc32c != _checksum(said.plaintext):
        raise Away("What Google KMS opened was changed on its way: its checksum differs.")
    return said.plaintext


def _ask(name: str, what: str, given: msgspec.Struct) -> asking.Answer:
    deadline.begin()
    if not _NAME.fullmatch(name):
        raise BadSettings(
            "A holder of the kind gcpkms is named as Google names a key: "
            "projects/P/locations/L/keyRings/R/cryptoKeys/K, without a version."
        )
    url = f"https://{_HOST}/v1/{name}:{what}"
    headers = {"content-type": "application/json"}
    _sign(url, headers)
    answer = asking.ask(url, msgspec.json.encode(given), headers)
    if answer.status != 200:
        raise _outcome(answer, what)
    return answer


def _sign(url: str, headers: dict[str, str]) -> None:
    try:
        import google.auth  # noqa: PLC0415
        import google.auth.exceptions as errors  # noqa: PLC0415
        from google.auth.transport.requests import Request  # noqa: PLC0415
    except ImportError:
        raise BadSettings("The kind gcpkms needs a package: pip install 'custody[opener-gcp]'") from None
    try:
        with warnings.catch_warnings():
            # They advise developers, on standard error, where our one sentence stands.
            warnings.simplefilter("ignore")
            credentials: Any = google.auth.default(scopes=[_SCOPE])[0]
            credentials.before_request(Request(), "POST", url, headers)
    except errors.DefaultCredentialsError:
        raise BadSettings(
            "Google KMS is not asked, for there are no credentials: a service account of this machine, "
            "or GOOGLE_APPLICATION_CREDENTIALS with a file that can be read."
        ) from None
    except errors.TransportError:
        raise Away("Google does not answer the question for a token.") from None
    except errors.RefreshError as problem:
        # Of a machine's metadata it says that nothing may be tried again, whatever the reason.
        if problem.retryable or isinstance(problem.__cause__, errors.TransportError):
            raise Away("Google gives no token now.") from None
        raise Refused("Google gives no token for these credentials: see to the service account and its key.") from None
    except Exception as problem:
        # Files of settings and of tokens are read there, and raise what they raise. Their words may repeat a line.
        raise BadSettings(f"The credentials for Google cannot be used ({type(problem).__name__}).") from None


def _outcome(answer: asking.Answer, what: str) -> NotOpened:
    try:
        status = msgspec.json.decode(answer.body, type=_Failed).error.status
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        status = ""
    match answer.status, status:
        case 400, "FAILED_PRECONDITION":
            return Refused("Google KMS refuses: the version of the key is disabled or destroyed: enable or restore it.")
        case 400, "INVALID_ARGUMENT" if what == "decrypt":
            return NotOurs(
                "Google KMS cannot open it: it was wrapped by another key, for another file, or was changed."
            )
        case 400, _:
            return BadSettings("Google KMS does not take this key: its purpose must be ENCRYPT_DECRYPT.")
        case ((401 | 403), _):
            return Refused(f"Google KMS refuses to {what}: give the service account that role on the key.")
        case 404, _:
            return BadSettings("Google KMS has no such key: see to its name, or open by another holder.")
        case other, _:
            return Away(f"Google KMS cannot answer now ({other}).")


def _checksum(content: bytes) -> str:
    """Checksum by CRC-32C, in decimal, as Google writes numbers of 64 bits."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return str(crc ^ 0xFFFFFFFF)
