"""Receipts, checked offline: statements of the signer about what it signed, each checked with its public key.

This needs `cryptography` (`custody-sdk[receipts]`). The check is worth as much as the way on which the key set came:
get `/.well-known/jwks.json` once, on one that you trust. Votes inside are not checked; `custody receipt verify` does.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from custody_sdk.webhooks import NotGenuine

FORMAT: Final = "custody-receipt-v1"
_LARGEST: Final = 2**53 - 1
_DEEPEST: Final = 64


def verify_receipt(
    answer: Mapping[str, Any], jwks: Mapping[str, Any], *, tx_id: str | None = None, issuer: str | None = None
) -> dict[str, Any]:
    """Return the statement of a receipt, or raise NotGenuine.

    `answer` is what `Vault.receipt` returns, `jwks` the key set. Name the transaction that you mean: a genuine receipt
    of another one proves nothing about yours.
    """
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  an extra: nothing else here needs it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    receipt, kid = answer.get("receipt"), answer.get("kid")
    keys = [one for one in jwks.get("keys", ()) if isinstance(one, dict) and one.get("kid") == kid]
    # A key of another use signs other things, which could read as a receipt.
    if not isinstance(receipt, dict) or len(keys) != 1 or keys[0].get("use") != "receipt":
        raise _refusal("no key of this kid that is for receipts is in the key set")
    if (keys[0].get("kty"), keys[0].get("crv")) != ("OKP", "Ed25519"):
        raise _refusal("the key is none of Ed25519")
    public, signature = _bytes(keys[0].get("x"), 32), _bytes(answer.get("signature"), 64)
    good = False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, canonical(receipt))
        good = True
    except InvalidSignature:
        pass
    if not good:
        raise _refusal("the signature does not fit: it was changed, or another key made it")
    if receipt.get("format") != FORMAT:
        raise _refusal("it is of another format")
    if tx_id is not None and receipt.get("txId") != tx_id:
        raise _refusal("it is of another transaction")
    if issuer is not None and receipt.get("issuer") != issuer:
        raise _refusal("it is of another issuer")
    return receipt


def canonical(receipt: Mapping[str, Any]) -> bytes:
    """Return the bytes that are signed: RFC 8785 for what receipts consist of."""
    _check(receipt, 0)
    return json.dumps(receipt, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "strict")


def _check(value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise _refusal("it is nested too deeply")
    if isinstance(value, dict):
        if not all(isinstance(name, str) and name.isascii() for name in value):
            raise _refusal("it has a name that is not ASCII")
        for one in value.values():
            _check(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            _check(one, depth + 1)
    elif isinstance(value, str):
        # Half of a surrogate pair has no bytes.
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise _refusal("it has a text that is none")
    elif isinstance(value, float) or (isinstance(value, int) and abs(value) > _LARGEST):
        raise _refusal("it has a number that readers round")


def _bytes(text: Any, size: int) -> bytes:
    found = b""
    if isinstance(text, str) and len(text) <= 2 * size:
        try:
            found = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            found = b""
    if len(found) != size or base64.urlsafe_b64encode(found).decode().rstrip("=") != text:
        raise _refusal("key or signature is not in base64url")
    return found


def _refusal(why: str) -> NotGenuine:
    return NotGenuine(0, "not_genuine", f"The receipt proves nothing: {why}.")
