"""Prices as a stranger's network brings them: bounded, signed by the operator's key, and read strictly. Pure.

A document is `{"issuedAt": 1767225600, "prices": {"evm:1:native": "3120.55"}}`: seconds since 1970, and dollars for one
whole unit under whole names of assets, as text. What is wrong in any part of it is wrong as a whole.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Meta

from custody.chains.prices import MAX_DOCUMENT, MAX_NAME, MAX_SIGNATURE, Prices, read_price
from custody.kit import environment as read
from custody.kit.environment import BadSetting
from custody.kit.errors import Invalid
from custody.kit.json_bodies import look_through

KEY_VARIABLE: Final = "SERVICE_PRICES_KEY_FILE"
# Prices in a document.
MAX_PRICES: Final = 2_000
# A plain decimal: no sign, no exponent, no words.
_PRICE: Final = re.compile(r"(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,29})?")
# Seconds until the year 9999.
_YEAR_9999: Final = 253_402_300_799
_UNREADABLE: Final = (Invalid, msgspec.MsgspecError, ValueError, RecursionError, ArithmeticError)

PriceKey = Ed25519PublicKey | EllipticCurvePublicKey


class BadDocument(Exception):
    """A document that is not believed; `problem` is the short word for why."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class PriceDocument(msgspec.Struct, frozen=True):
    """Prices by whole names of assets, and when they were issued, in seconds since 1970."""

    issued_at: int
    prices: Mapping[str, Decimal]


class _Sent(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    issued_at: Annotated[int, Meta(ge=0, le=_YEAR_9999)]
    prices: Annotated[dict[Annotated[str, Meta(min_length=1, max_length=MAX_NAME)], str], Meta(max_length=MAX_PRICES)]


def load_key(environment: Mapping[str, str]) -> PriceKey | None:
    """Read the key's file, which makes an endpoint the source of prices; BadSetting for another key."""
    if not environment.get(KEY_VARIABLE, "").strip():
        return None
    try:
        return read_key(read.path(environment, KEY_VARIABLE, "").read_bytes())
    except (OSError, ValueError) as problem:
        raise BadSetting(KEY_VARIABLE, f"must name a PEM file with a public key, Ed25519 or P-256: {problem}") from None


def read_key(pem: bytes) -> PriceKey:
    """Read a public key, Ed25519 or P-256; ValueError for anything else."""
    try:
        key: Any = load_pem_public_key(pem)
    except UnsupportedAlgorithm as problem:
        raise ValueError(str(problem)) from None
    if isinstance(key, Ed25519PublicKey) or (isinstance(key, EllipticCurvePublicKey) and type(key.curve) is SECP256R1):
        return key
    raise ValueError("the key is neither Ed25519 nor P-256")


def read_document(body: bytes, signature: str, key: PriceKey) -> PriceDocument:
    """Read a document that the key signed as it came; BadDocument otherwise. Nothing is parsed that is not signed."""
    if len(body) > MAX_DOCUMENT or len(signature) > MAX_SIGNATURE:
        raise BadDocument("too_large")
    _check_signature(body, signature, key)
    try:
        look_through(body)
        sent = msgspec.json.decode(body, type=_Sent)
        prices = {name: _read_price(text) for name, text in sent.prices.items()}
    except _UNREADABLE:
        raise BadDocument("unreadable") from None
    named = Prices(prices).by_whole_name
    if len(named) != len(prices):
        # Two spellings of one asset.
        raise BadDocument("unreadable")
    return PriceDocument(sent.issued_at, named)


def _check_signature(body: bytes, signature: str, key: PriceKey) -> None:
    try:
        made = b64decode(signature, validate=True)
        if isinstance(key, Ed25519PublicKey):
            key.verify(made, body)
        else:
            key.verify(made, body, ECDSA(SHA256()))
    except (InvalidSignature, binascii.Error, ValueError):
        raise BadDocument("signature") from None


def _read_price(text: str) -> Decimal:
    """A price of nothing would let everything pass: from elsewhere that is a fault, and no price."""
    if _PRICE.fullmatch(text) is None or (price := read_price(text)) == 0:
        raise ValueError
    return price
