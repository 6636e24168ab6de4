"""The bytes that an approver's key signs, computed here from the order itself, never taken from the service. Pure.

docs/signers.md says it byte by byte.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from solders.hash import Hash
from solders.message import Message, MessageV0, VersionedMessage, to_bytes_versioned
from solders.transaction import VersionedTransaction

FORMAT: Final = "custody-approval/1"
NONCE_BYTES: Final = 16
# The canonical SPKI of a P-256 key: this, and a point without compression.
_SPKI: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
_SPKI_BYTES: Final = 91
_GROUP: Final = 4
# Orders of which every byte counts.
_EXACT: Final = frozenset({"evm", "typed_data", "bitcoin", "evm_message", "solana_message", "x402", "solana_x402"})


@dataclass(frozen=True)
class Matter:
    """One order that waits, and who votes on it."""

    tenant: str
    approval: str
    transaction: str
    digest: str
    user: str

    def challenge(self, nonce: bytes, until: int) -> bytes:
        """The bytes that the key is asked to sign; until `until` (Unix seconds) the vote counts."""
        head = nonce + until.to_bytes(4, "big")
        said = (FORMAT, self.tenant, "approval", self.approval, self.transaction, self.digest, self.user, "approve")
        return head + hashlib.sha256(_frame(*said, head.hex())).digest()


def digest_of(kind: str, order: str) -> str | None:
    """The digest of an order, in hex, from its stored text; None where this console cannot compute it."""
    exact = order.encode() if kind in _EXACT else None
    content = _solana_content(order) if kind == "solana" else exact
    if content is None:
        return None
    return hashlib.sha256(f"custody-order-v1:{kind}:".encode() + content).hexdigest()


def same_digest(ours: str | None, theirs: str) -> bool:
    """Compare the service's digest of the order with ours."""
    return ours is not None and hmac.compare_digest(ours.encode(), theirs.encode(errors="replace"))


def order_fields(order: str) -> dict[str, Any]:
    """The order's own fields; empty where the text is no JSON object."""
    try:
        found = msgspec.json.decode(order)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def fingerprint(public_key: bytes) -> str | None:
    """By what rules name a key, in hex; None for what is not the canonical SPKI of a P-256 key."""
    if len(public_key) != _SPKI_BYTES or not public_key.startswith(_SPKI):
        return None
    return hashlib.sha256(public_key).hexdigest()


def group_digits(hexadecimal: str) -> str:
    """A fingerprint as people read it to one another: in groups of four."""
    return " ".join(hexadecimal[at : at + _GROUP] for at in range(0, len(hexadecimal), _GROUP))


def base64url(raw: bytes) -> str:
    """Bytes as WebAuthn writes them."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Bytes from base64url without padding; ValueError for anything else."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("not base64url") from None
    if base64url(raw) != text:
        raise ValueError("not base64url")
    return raw


def client_data(raw: bytes) -> dict[str, Any]:
    """Decode a browser's account of the request that a key answered; ValueError where it is no JSON object."""
    found = msgspec.json.decode(raw)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _frame(*parts: str) -> bytes:
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def _solana_content(order: str) -> bytes | None:
    """The message with a blockhash of zero, which a fresh one does not change, and what the order declares."""
    said = order_fields(order)
    try:
        raw = base64.b64decode(said["transaction"], validate=True)
        message = _with_zero_blockhash(VersionedTransaction.from_bytes(raw).message)
    except (KeyError, TypeError, ValueError):
        return None
    chain, broadcast = said.get("chainId", 101), said.get("broadcast", True)
    return to_bytes_versioned(message) + f":{said.get('to')}:{said.get('value')}:{chain}:{broadcast}".encode()


def _with_zero_blockhash(message: VersionedMessage) -> VersionedMessage:
    blockhash, header = Hash.default(), message.header
    if isinstance(message, MessageV0):
        tables = message.address_table_lookups
        return MessageV0(header, message.account_keys, blockhash, message.instructions, tables)
    if not isinstance(message, Message):
        raise TypeError("a later version")
    return Message.new_with_compiled_instructions(
        header.num_required_signatures,
        header.num_readonly_signed_accounts,
        header.num_readonly_unsigned_accounts,
        message.account_keys,
        blockhash,
        message.instructions,
    )
