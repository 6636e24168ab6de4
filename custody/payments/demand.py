"""Demands of servers by x402, in the header of version 2 or the body of version 1. A stranger wrote every byte.

Whatever is not a demand in every detail is none: nothing here raises, and nobody pays for what was not understood.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from custody.kit.errors import Invalid
from custody.kit.json_bodies import look_through

# Bytes of a demand once it is decoded, what it may offer, and characters of a text in an offer.
MAX_BYTES: Final = 16 * 1024
MAX_OFFERS: Final = 8
MAX_TEXT: Final = 2 * 1024
# Of a stranger's words so many characters are shown to people.
MAX_WORDS: Final = 200
MAX_HEADER: Final = (MAX_BYTES + 2) // 3 * 4
_UNREADABLE: Final = (Invalid, msgspec.MsgspecError, ValueError, RecursionError)

Text = Annotated[str, Meta(max_length=MAX_TEXT)]


class Offer(msgspec.Struct, frozen=True):
    """One way in which a server would be paid. Its words are as they came, and so is `text`, the whole of it."""

    version: Literal[1, 2]
    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str
    seconds: int
    extra: dict[str, Any]
    text: str


class Demand(msgspec.Struct, frozen=True):
    """A demand that was understood: what is offered, and what the server says about it, cut for people.

    `resource_text` and `extensions` are JSON as it came, which goes back to the server with a payment. `resource` is
    the whole address that it says is paid for.
    """

    version: Literal[1, 2]
    offers: tuple[Offer, ...]
    resource: str | None
    resource_text: str | None
    extensions: str | None
    description: str
    error: str


class _OfferV2(msgspec.Struct, rename="camel"):
    scheme: Text
    network: Text
    asset: Text
    amount: Text
    pay_to: Text
    max_timeout_seconds: int
    extra: dict[str, Any] | None = None


class _OfferV1(msgspec.Struct, rename="camel"):
    scheme: Text
    network: Text
    asset: Text
    max_amount_required: Text
    pay_to: Text
    max_timeout_seconds: int
    resource: Text | None = None
    description: str | None = None
    extra: dict[str, Any] | None = None


class _Resource(msgspec.Struct):
    url: Text
    description: str | None = None


class _Demand(msgspec.Struct, rename="camel"):
    version: Literal[1, 2] = msgspec.field(name="x402Version")
    accepts: Annotated[list[msgspec.Raw], Meta(max_length=MAX_OFFERS)]
    error: str | None = None
    resource: msgspec.Raw = msgspec.Raw()
    extensions: msgspec.Raw = msgspec.Raw()


def read_answer(headers: Sequence[str], body: bytes) -> Demand | None:
    """Read the demand of a 402 from its `PAYMENT-REQUIRED` headers, or where there is none from its body.

    Two such headers are none that could be read: which of them is meant, nobody can say.
    """
    if not headers:
        return _of_version(read_object(body), 1)
    return _of_version(read_header(headers[0]), 2) if len(headers) == 1 else None


def read_header(text: str) -> Demand | None:
    """Read a demand from base64, as a header carries it."""
    if len(text) > MAX_HEADER:
        return None
    try:
        return read_object(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return None


def read_object(content: bytes) -> Demand | None:
    """Read a demand of either version from JSON."""
    if len(content) > MAX_BYTES:
        return None
    try:
        look_through(content)
        found = msgspec.json.decode(content, type=_Demand)
        return _read(found)
    except _UNREADABLE:
        return None


def read_offer(version: Literal[1, 2], text: str) -> Offer | None:
    """Read one offer of a demand again, from its own text."""
    content = text.encode()
    if len(content) > MAX_BYTES:
        return None
    try:
        look_through(content)
        return (_offer_v2 if version == 2 else _offer_v1)(content)
    except _UNREADABLE:
        return None


def words(text: str | None) -> str:
    """Cut a stranger's words for people: printable characters alone, and not many."""
    return "".join(each for each in (text or "")[:MAX_BYTES] if each.isprintable())[:MAX_WORDS]


def _of_version(demand: Demand | None, version: int) -> Demand | None:
    return demand if demand is not None and demand.version == version else None


def _read(found: _Demand) -> Demand | None:
    read = _offer_v2 if found.version == 2 else _offer_v1
    offers = tuple(offer for raw in found.accepts if (offer := read(bytes(raw))) is not None)
    if not offers:
        return None
    if found.version == 1:
        first = msgspec.json.decode(offers[0].text, type=_OfferV1)
        return Demand(1, offers, first.resource, None, None, words(first.description), words(found.error))
    told, extensions = _part(found.resource), _part(found.extensions)
    resource = None if told is None else msgspec.json.decode(told, type=_Resource)
    if extensions is not None:
        msgspec.json.decode(extensions, type=dict[str, msgspec.Raw])
    return Demand(
        version=2,
        offers=offers,
        resource=resource.url if resource else None,
        resource_text=told,
        extensions=extensions,
        description=words(resource.description if resource else None),
        error=words(found.error),
    )


def _part(part: msgspec.Raw) -> str | None:
    """Take a part as it came; a null is none."""
    return None if bytes(part) in (b"", b"null") else bytes(part).decode()


def _offer_v2(raw: bytes) -> Offer | None:
    try:
        one = msgspec.json.decode(raw, type=_OfferV2)
    except msgspec.MsgspecError:
        # Of a scheme that nobody here knows, perhaps: the others stand.
        return None
    extra, seconds = one.extra or {}, one.max_timeout_seconds
    return _offer(Offer(2, one.scheme, one.network, one.asset, one.amount, one.pay_to, seconds, extra, raw.decode()))


def _offer_v1(raw: bytes) -> Offer | None:
    try:
        one = msgspec.json.decode(raw, type=_OfferV1)
    except msgspec.MsgspecError:
        return None
    extra, seconds, amount = one.extra or {}, one.max_timeout_seconds, one.max_amount_required
    return _offer(Offer(1, one.scheme, one.network, one.asset, amount, one.pay_to, seconds, extra, raw.decode()))


def _offer(offer: Offer) -> Offer | None:
    return None if any(len(value) > MAX_TEXT for value in offer.extra.values() if isinstance(value, str)) else offer
