"""Check a receipt with the public key alone: no network, no database. Normative text: docs/receipts.md. Pure."""

import base64
import binascii
import json  # noqa: TID251 - only it shows duplicate keys
from collections.abc import Iterator
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from custody.identity.assertions import Evidence, Matter, NotAVote, check, fingerprint, from_base64url
from custody.kit import ids
from custody.policies.fingerprint import policy_hash
from custody.policies.kinds import PolicyRule
from custody.policies.rules import read
from custody.receipts.canonical import FORMAT, NotCanonical, canonical

USE = "receipt"


class Unreadable(Exception):
    """A file is not what it should be; nothing was checked."""


class NotValid(Exception):
    """The receipt is not what the signer signed, or not signed by this signer."""


class StatedVote(msgspec.Struct, frozen=True):
    """A vote as a receipt states it, in base64url."""

    user_id: str = msgspec.field(name="userId")
    key_id: str = msgspec.field(name="keyId")
    rp_id: str = msgspec.field(name="rpId")
    public_key: str = msgspec.field(name="publicKey")
    authenticator_data: str = msgspec.field(name="authenticatorData")
    client_data: str = msgspec.field(name="clientDataJSON")
    signature: str


class Verified(msgspec.Struct, frozen=True):
    """A receipt that the key really signed."""

    receipt: dict[str, Any]
    kid: str
    # Who voted, and the fingerprint of the key that signed the vote.
    votes: tuple[tuple[str, str], ...] = ()


class _Signed(msgspec.Struct, forbid_unknown_fields=True):
    receipt: dict[str, Any]
    signature: str
    kid: str


class _Jwk(msgspec.Struct):
    kid: str = ""
    use: str = ""
    kty: str = ""
    crv: str = ""
    x: str = ""


class _Jwks(msgspec.Struct):
    keys: list[_Jwk]


def verify(document: bytes, jwks: bytes) -> Verified:
    """The receipt in a file, as `GET .../receipt` answers it, with or without its envelope. Raises as above."""
    found = _read(document)
    key = _key(found.kid, jwks)
    try:
        key.verify(_decode(found.signature), canonical(found.receipt))
    except (InvalidSignature, NotCanonical):
        raise NotValid("the signature does not match the receipt: one of them was changed") from None
    if found.receipt.get("format") != FORMAT:
        raise NotValid(
            f"the signature is valid, but the format is not {FORMAT}; a newer version of custody may support it"
        )
    return Verified(found.receipt, found.kid, tuple(_votes(found.receipt)))


def _votes(receipt: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The votes under which the order was signed, each checked by itself: the signer's word is not needed for them."""
    approval = receipt.get("approval")
    if not approval or "votes" not in approval:
        return
    try:
        votes = msgspec.convert(approval["votes"], list[StatedVote])
        matter = Matter("approval", receipt["tenantId"], approval["id"], receipt["txId"], receipt["digest"])
        for vote in votes:
            shown = Evidence(
                from_base64url(vote.authenticator_data),
                from_base64url(vote.client_data),
                from_base64url(vote.signature),
            )
            public_key = from_base64url(vote.public_key)
            check(shown, public_key, vote.rp_id, matter, vote.user_id)
            yield vote.user_id, fingerprint(public_key)
    except NotAVote as problem:
        raise NotValid(f"a vote in it is none: {problem}") from None
    except (msgspec.ValidationError, KeyError, ValueError):
        raise NotValid("the votes in it cannot be read") from None


def judged_by(receipt: dict[str, Any], policies: bytes) -> bool:
    """Say whether this rule set, as `GET .../policies` answers it, is the one that judged."""
    document = _document(policies, "policies")
    try:
        rules = msgspec.convert(document, list[PolicyRule])
        return bool(policy_hash(read(rules, ids.new_uuid)).hex() == receipt["policyHash"])
    except (msgspec.ValidationError, ValueError, KeyError) as problem:
        raise Unreadable(f"the policies are not a rule set: {problem}") from None


def _read(document: bytes) -> _Signed:
    try:
        return msgspec.convert(_document(document, "receipt"), _Signed)
    except msgspec.ValidationError as problem:
        raise Unreadable(f"not a receipt: {problem}") from None


def _document(content: bytes, what: str) -> Any:
    """The JSON in a file, out of its envelope. A key given twice could be read in two ways."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise Unreadable(f"the {what} name one key twice")
        return dict(pairs)

    try:
        document = json.loads(content, object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise Unreadable(f"the file of the {what} is not JSON") from None
    if isinstance(document, dict) and document.get("ok") is True and "data" in document:
        return document["data"]
    return document


def _key(kid: str, jwks: bytes) -> Ed25519PublicKey:
    try:
        keys = msgspec.json.decode(jwks, type=_Jwks).keys
    except (msgspec.ValidationError, msgspec.DecodeError):
        raise Unreadable("the keys are not a JWK set") from None
    for key in keys:
        # A key of another use, such as tokens, signs no receipt.
        if (key.kid, key.use, key.kty, key.crv) == (kid, USE, "OKP", "Ed25519"):
            try:
                return Ed25519PublicKey.from_public_bytes(_decode(key.x))
            except (ValueError, NotValid):
                raise Unreadable("the key of this receipt is malformed in the JWK set") from None
    raise NotValid("the JWK set has no receipt key with this id: the receipt is from another service, or forged")


def _decode(text: str) -> bytes:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise NotValid("the signature is not base64url") from None
    # One spelling: the last character may not carry bits that nobody reads.
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise NotValid("the signature is not base64url")
    return raw
