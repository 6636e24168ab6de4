"""A message that a wallet is asked to sign: what it says, letter for letter, and what a sign-in message asks for. Pure.

Whether it is a sign-in message to the letter is the service's word: the label of its effect. The text is its author's:
a bar stands before each line of it, and a line end is written out, `\\n`, so that nothing of it can pass for ours.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from words.orders.order import Known, Order
from words.texts.amounts import quote
from words.texts.fields import pluralize
from words.texts.lines import Line
from words.texts.plain import clip, plain

KINDS: Final = frozenset({"evm_message", "solana_message"})
_SIGN_IN: Final = "sign-in: "
_BARE: Final = "bytes"
_PHRASE: Final = "wants you to sign in with your"
_WIDTH: Final = 72
_SHOWN, _ALL = 40, 400
_BYTES: Final = 600
_DOMAIN: Final = 253
_VALUE: Final = 300
_LINE_END: Final = "\\n"
# The fields of a sign-in message, as people read them.
_FIELDS: Final[Mapping[str, str]] = {
    "URI": "for",
    "Chain ID": "chain",
    "Issued At": "issued",
    "Not Before": "good from",
    "Expiration Time": "good until",
    "Request ID": "request",
}
# The line of a sign-in message that is a sentence of its site, and what stands there where it has none.
_STATEMENT_LINE: Final = 3
_NO_STATEMENT: Final = re.compile(rf"(?:{'|'.join(_FIELDS)}|Version|Nonce|Resources):|\Z")
# As the service tells hex from base64, which may begin with the same two letters.
_HEX: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*\Z")
_HOST: Final = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)


def is_message(order: Order) -> bool:
    """Tell whether the order is a message, and no transaction or document."""
    return order.kind in KINDS


def site_of(order: Order) -> str | None:
    """Return the domain of a sign-in message; None for any other message."""
    label = next((effect.label for effect in order.effects if effect.label), None) or ""
    return clip(label.removeprefix(_SIGN_IN), _DOMAIN) if label.startswith(_SIGN_IN) else None


def chain_said(order: Order, data: object) -> str | None:
    """The chain that a sign-in message names, in its own words; None where it names none, or is no sign-in."""
    return None if site_of(order) is None else _fields(text_of(data) or "").get("Chain ID")


def message_in_words(order: Order, known: Known) -> list[Line]:
    """Describe the message to be signed, and its content."""
    site, text = site_of(order), text_of(known.data)
    said = [Line("Signs a message: anyone who holds the signature may use it for whatever it is good for.", "warn")]
    if site is not None:
        said = [Line(f"Signs in as this wallet to {quote(site, _DOMAIN)}.", "warn")]
        said += _sign_in(text)
    if text is None:
        return [*said, *_bytes(known.data)]
    return [*said, Line("It says:"), *_text(text, _SHOWN)]


def message_dangers(order: Order, known: Known) -> list[Line]:
    """List the dangers of signing the message."""
    site, text = site_of(order), text_of(known.data)
    if site is None:
        return _dangers_of_text(order, known, text)
    said = [Line(f"! Signing in as this wallet to {quote(site, _DOMAIN)}.", "bad")]
    if "xn--" in site.lower():
        said.append(Line("! The site's name is punycode (xn--): a browser may show it like another name.", "bad"))
    host = _HOST.match(_fields(text).get("URI", "")) if text is not None else None
    if host is not None and host[1].lower() != site.lower():
        said.append(Line(f"! Its URI is of another site: {quote(host[1], _DOMAIN)}.", "bad"))
    if text is not None and "urn:recap:" in text.lower():
        said.append(Line("! It gives others a capability (urn:recap).", "bad"))
    return said


def _dangers_of_text(order: Order, known: Known, text: str | None) -> list[Line]:
    said = []
    if text is not None and _PHRASE in text.casefold():
        said.append(Line("! It looks like a sign-in and is none to the letter: a careless site may take it.", "bad"))
    if is_bare(order) or (text is None and known.data is not None):
        said.append(Line("! Not plain text: nobody can read all of what is signed.", "bad"))
    return said or [Line("! What this message is good for only its reader knows: read all of it.", "bad")]


def message_lines(data: object) -> list[Line]:
    """The whole message, as far as it is no longer than a few screens."""
    text = text_of(data)
    return _bytes(data) if text is None else [Line("message:"), *_text(text, _ALL)]


def message_title(order: Order) -> str:
    """The order in a few words, for a list."""
    site = site_of(order)
    if site is not None:
        return f"Signs in to {quote(site, 40)}"
    return "Signs bytes that are no plain text" if is_bare(order) else "Signs a message"


def text_of(data: object) -> str | None:
    """The message as text in which nothing is hidden; None where it is not known, or its bytes are none."""
    if not isinstance(data, dict):
        return None
    message, raw = data.get("message"), _raw(data)
    if isinstance(message, str):
        return message
    try:
        return None if raw is None else plain(raw.decode())
    except UnicodeDecodeError:
        return None


def is_bare(order: Order) -> bool:
    """Tell whether a message is bytes that are no plain text."""
    return any(effect.label == _BARE for effect in order.effects)


def _raw(data: Mapping[object, object]) -> bytes | None:
    sent = data.get("raw")
    if not isinstance(sent, str):
        return None
    try:
        return bytes.fromhex(sent[2:]) if _HEX.match(sent) else base64.b64decode(sent, validate=True)
    except (ValueError, binascii.Error):
        return None


def _fields(text: str) -> dict[str, str]:
    """The fields of a message that the service read as a sign-in: no value of it holds a backslash."""
    lines = [line.partition(": ") for line in text.split(_LINE_END)]
    return {name: value for name, colon, value in lines if colon and name in _FIELDS}


def _sign_in(text: str | None) -> list[Line]:
    if text is None:
        return []
    found, lines = _fields(text), text.split(_LINE_END)[_STATEMENT_LINE:][:1]
    said = [Line(f"  statement: {quote(one, _VALUE)}") for one in lines if not _NO_STATEMENT.match(one)]
    said += [Line(f"  {word}: {quote(found[name], _VALUE)}") for name, word in _FIELDS.items() if name in found]
    return said if "Expiration Time" in found else [*said, Line("  it names no end", "warn")]


def _text(text: str, most: int) -> list[Line]:
    """One line for each of its own; beyond so many lines of a screen they are counted, and not shown."""
    said, left = [], most
    for piece in re.findall(rf".*?{re.escape(_LINE_END)}|.+\Z", text):
        if left > 0:
            said.append(Line(f"  | {piece[: left * _WIDTH]}"))
        left -= -(-len(piece) // _WIDTH)
    if left < 0:
        said.append(Line(f"Not all of the message is shown here: {pluralize(-left, 'line', 'lines')} more.", "bad"))
    return said


def _bytes(data: object) -> list[Line]:
    raw = _raw(data) if isinstance(data, dict) else None
    if raw is None:
        return [Line("The message is not known here.", "bad")]
    return [Line(f"Bytes that are no text, {len(raw):,} of them:", "bad"), Line(f"  {clip(raw.hex(), _BYTES)}")]
