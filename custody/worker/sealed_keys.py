"""The sealed master key file: its lines under one key, which any holder of its head opens. docs/sealed-blob.md 8."""

import binascii
import os
from base64 import b64decode, b64encode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from custody.kit.errors import Conflict
from custody.kit.key_head import KEY_BYTES, MAX_FILE, Head, MalformedHead, split
from custody.worker.key_file import bytes_of, text_of

_INFO = b"custody/v1 key file"
_NONCE_BYTES = 12
_TAG_BYTES = 16


class CannotBeOpened(Conflict):
    """The key is not this file's, or something of the file is not what was written; which is not said."""


class FileKey:
    """The 32 bytes that a sealed file is opened with. It shows itself to nobody."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise CannotBeOpened("The key of a sealed key file has exactly 32 bytes.")
        self._key = key

    def __repr__(self) -> str:
        return "FileKey()"

    def seal(self, head: Head, lines: str) -> bytes:
        """The whole file: the head as it is, and a line of these keys."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher(head).encrypt(nonce, bytes_of(lines), head.text)
        content = head.text + b"keys " + b64encode(sealed) + b"\n"
        if len(content) > MAX_FILE:
            raise MalformedHead("The sealed key file would be longer than 64 KiB: retire old versions first.")
        return content

    def open(self, content: bytes) -> str:
        """The lines that a file keeps; MalformedHead and CannotBeOpened, without a word of them, where that fails."""
        head, text = split(content)
        try:
            sealed = b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise MalformedHead("The sealed key file is malformed: its keys are not base64.") from None
        if len(sealed) < _NONCE_BYTES + _TAG_BYTES or b64encode(sealed).decode() != text:
            raise MalformedHead("The sealed key file is malformed: its keys are too short, or not base64.")
        nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return text_of(self._cipher(head).decrypt(nonce, rest, head.text))
        except InvalidTag:
            raise CannotBeOpened("The sealed key file cannot be opened with this key.") from None

    def _cipher(self, head: Head) -> AESGCM:
        info = _INFO + bytes.fromhex(head.file)
        return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(self._key))
