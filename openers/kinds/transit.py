"""A key of the transit engine of Vault or OpenBao: `encrypt/KEY` for who locks the file, `decrypt/KEY` for the service.

Two calls, by the standard library alone. The key's type must be one that authenticates associated data.
"""

import os
import re
from base64 import b64decode, b64encode

import msgspec

from custody.kit.key_head import MAX_HOLDER_BLOB, binding
from custody.kit.opener_settings import TRANSIT_CA_FILE, TRANSIT_TOKEN_FILE, TRANSIT_URL
from openers import asking, deadline
from openers.files import secret_text
from openers.outcomes import Away, BadSettings, NotOpened, NotOurs, Refused

# `mount/key`; a mount may have several parts, with a namespace before it.
_NAME = re.compile(r"((?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/){1,8})([A-Za-z0-9_-][A-Za-z0-9_.-]{0,127})", re.ASCII)
_TOKEN = re.compile("[!-~]+", re.ASCII)
# Those of batches and of identities are the longest.
MOST_TOKEN_BYTES = 4096
_WRAPPED = re.compile(r"[a-z]{1,16}:v[0-9]{1,9}:[A-Za-z0-9+/=]{1,8000}", re.ASCII)


class _Wrapped(msgspec.Struct):
    ciphertext: str


class _Opened(msgspec.Struct):
    plaintext: str


class _Encrypted(msgspec.Struct):
    data: _Wrapped


class _Decrypted(msgspec.Struct):
    data: _Opened


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Have the file's key encrypted."""
    answer = _ask(name, "encrypt", {"plaintext": _base64(key), "associated_data": _base64(binding(file))})
    wrapped = asking.read(answer, _Encrypted, "Vault").data.ciphertext
    if not _WRAPPED.fullmatch(wrapped) or len(wrapped) > MAX_HOLDER_BLOB:
        raise Away("What answers at the address of Vault is something else.")
    return name, wrapped.encode()


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Have what was wrapped decrypted, for this file alone."""
    if not blob.isascii() or not _WRAPPED.fullmatch(blob.decode()):
        raise NotOurs("What the holder wrapped is nothing that Vault or OpenBao writes.")
    answer = _ask(name, "decrypt", {"ciphertext": blob.decode(), "associated_data": _base64(binding(file))})
    try:
        return b64decode(asking.read(answer, _Decrypted, "Vault").data.plaintext, validate=True)
    except ValueError:
        raise NotOurs("Vault opened something that is no key of a file.") from None


def _base64(content: bytes) -> str:
    return b64encode(content).decode()


def _ask(name: str, what: str, given: dict[str, str]) -> asking.Answer:
    deadline.begin()
    if not (said := _NAME.fullmatch(name)):
        raise BadSettings("A holder of the kind transit is named by mount and key: transit/custody.")
    address = os.environ.get(TRANSIT_URL, "").strip().rstrip("/")
    if not address:
        raise BadSettings(f"Set {TRANSIT_URL} to the address of Vault or OpenBao.")
    if (parts := asking.check(address)).query or parts.fragment:
        raise BadSettings(f"{TRANSIT_URL} is an address without a question or a fragment.")
    # The second is asked for by agents in front of Vault, against requests that a page forges.
    headers = {"X-Vault-Token": _token(), "X-Vault-Request": "true", "Content-Type": "application/json"}
    url = f"{address}/v1/{said[1]}{what}/{said[2]}"
    answer = asking.ask(url, msgspec.json.encode(given), headers, os.environ.get(TRANSIT_CA_FILE, "").strip() or None)
    if answer.status != 200:
        raise _outcome(answer.status, what, name)
    return answer


def _token() -> str:
    token = secret_text(TRANSIT_TOKEN_FILE, "/etc/custody/vault.token", MOST_TOKEN_BYTES)
    if not _TOKEN.fullmatch(token):
        raise BadSettings(f"The file of {TRANSIT_TOKEN_FILE} holds one token in one line, and nothing else.")
    return token


def _outcome(status: int, what: str, name: str) -> NotOpened:
    match status:
        case 403:
            return Refused(f"Vault refuses to {what} with {name}: the token has ended, or its policy lacks that path.")
        case 400 if what == "decrypt":
            return NotOurs(
                f"Vault cannot open it with {name}: it was wrapped by another key, for another file, or was changed; "
                "or its version lies below min_decryption_version."
            )
        case 400 | 405:
            return BadSettings(f"Vault does not encrypt with {name}: the key must be there, of the type aes256-gcm96.")
        case 404:
            return BadSettings(f"Vault has no transit engine at the mount of {name}, or the address has a path.")
        case 503:
            return Away("Vault is sealed or starting: unseal it.")
        case _:
            return Away(f"Vault cannot answer now ({status}).")
