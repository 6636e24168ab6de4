"""The bytes of a message to sign, and which bytes nobody may have signed.

What is signed must be good for nothing but being a message. On EVM chains the prefix of EIP-191 sees to that; on Solana
a wallet signs the bytes alone, as it signs transactions. So bytes that some chain or contract could take for something
else are refused on both, whatever stands before them.
"""

import base64
import binascii
import re
from typing import Final, NoReturn

from solders.message import from_bytes_versioned
from solders.transaction import Transaction, VersionedTransaction

from custody.chains.message_orders import MAX_MESSAGE
from custody.chains.message_sign_in import sign_in_of
from custody.chains.messages import Message
from custody.kit.errors import Invalid

_HASH: Final = 32
_PHRASE: Final = "wants you to sign in with your"
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*\Z")
# What a type byte of EIP-2718 may be that no text begins with, and the fewest fields of a transaction without one.
_TYPE_BYTES: Final = 0x20
_LEGACY_FIELDS: Final = 6


class BadMessage(Invalid):
    """This message is not signed."""


class MessageNotOurs(Invalid):
    """The sign-in message names another address than this wallet's; make it for the wallet that signs it."""


def read(family: str, message: str | None, raw: str | None) -> Message:
    """Read a message of which exactly one form was sent, or raise BadMessage with a sentence that says what to do."""
    field = "message" if raw is None else "raw"
    if (message is None) == (raw is None):
        _refuse("Send one of message and raw.", "message", "raw")
    content = _encode(message) if message is not None else _decode(family, raw or "")
    if not 0 < len(content) <= MAX_MESSAGE:
        _refuse(f"{field} must be 1 to {MAX_MESSAGE:,} bytes.", field)
    said = _text(content)
    plain = said is not None and all(letter.isprintable() or letter == "\n" for letter in said)
    if content[0] == 0x19:
        _refuse(f"{field} begins with 0x19, as what wallets sign does; send the message without its prefix.", field)
    if len(content) == _HASH and (raw is not None or not plain):
        # A hash is as good as what it is the hash of, and nobody can tell what that is.
        _refuse(f"{field} has 32 bytes, as a hash has; hashes are not signed. Send what was hashed.", field)
    if _is_transaction(content) or _is_solana(content):
        _refuse(f"{field} can be read as a transaction; send transactions to the route that signs them.", field)
    claims = said is not None and _PHRASE in said.casefold()
    return Message(content, said if plain else None, claims, sign_in_of(said) if claims and said is not None else None)


def _refuse(sentence: str, *fields: str) -> NoReturn:
    raise BadMessage(sentence, fields=list(fields))


def _encode(message: str) -> bytes:
    try:
        return message.encode()
    except UnicodeEncodeError:
        _refuse("message has half of a surrogate pair, which is no character; send its bytes as raw.", "message")


def _decode(family: str, raw: str) -> bytes:
    if family == "evm":
        if not _HEX.match(raw):
            _refuse("raw must be 0x and bytes in hex for an EVM wallet.", "raw")
        return bytes.fromhex(raw[2:])
    try:
        content = base64.b64decode(raw)
    except (binascii.Error, ValueError):
        content = b""
    # Python's decoder skips foreign characters, and stray bits in the last. And hex may be base64 of something else.
    if base64.b64encode(content).decode() != raw or _HEX.match(raw):
        _refuse("raw must be bytes in standard base64 with padding for a Solana wallet.", "raw")
    return content


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _is_transaction(content: bytes) -> bool:
    """Say whether the bytes are one list in RLP as a transaction or an authorization is, of whatever type."""
    if content[0] < _TYPE_BYTES and content[1:2] >= b"\xc0":
        return _items(content, 1) == 1
    begin = 1 + max(0, content[0] - 0xF7)
    return content[0] >= 0xC0 and _items(content, 0) == 1 and (_items(content, begin) or 0) >= _LEGACY_FIELDS


def _items(content: bytes, at: int) -> int | None:
    """Count the items of RLP from here to the end, or None where the last does not end there."""
    count = 0
    while at < len(content):
        first, offset = content[at], 0xC0 if content[at] >= 0xC0 else 0x80
        if (long := first - offset - 55) > 0:
            at += long + int.from_bytes(content[at + 1 : at + 1 + long])
        elif first >= 0x80:
            at += first - offset
        at += 1
        count += 1
    return count if at == len(content) else None


def _is_solana(content: bytes) -> bool:
    """Say whether Solana's own reader finds a transaction or a message of one; it takes trailing bytes as well."""
    for reader in (from_bytes_versioned, VersionedTransaction.from_bytes, Transaction.from_bytes):
        try:
            reader(content)
        except ValueError:
            continue
        return True
    return False
