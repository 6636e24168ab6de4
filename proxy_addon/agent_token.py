"""Find the agent's token in a request's head, wherever its client puts what it takes for its API key.

Guarantees: no place is read beyond its bound, and a head with two different agent tokens shows none: readers of one
place and readers of another would see different agents. Nothing here says that a token is good.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from custody.kit.jwt import MAX_TOKEN_CHARACTERS

Headers = list[tuple[bytes, bytes]]

# Bytes of one header that are looked at; a token has at most 4,096, and half as many more in the base64 of Basic.
MAX_PLACE: Final = 8192
# Subprotocols of a websocket that are looked at.
MAX_OFFERS: Final = 64
# How headers end in which SDKs put the key of an API: `x-api-key`, `x-goog-api-key`, `apikey`, `PRIVATE-TOKEN`. Others
# end so, too: what is no token counts nowhere.
_KEYS: Final = (b"key", b"token")
OFFERS: Final = b"sec-websocket-protocol"
# A browser can give a websocket no header; OpenAI's realtime clients offer the key as a subprotocol of this name.
_OFFERED_KEY: Final = b"openai-insecure-api-key."
# The id of the key that a client for AWS signs with; what it signs is signed anew.
_AWS_KEY = re.compile(rb"Credential=([^/, ]+)/")
_SPELLING = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class TwoTokens(Exception):
    """The head has two different agent tokens."""


def gateway_token(headers: Headers) -> str | None:
    """The token of a request to the gateway itself, or None. Raises TwoTokens."""
    places = _credentials(headers, b"authorization")
    return None if places is None else _only_token(places + _keys_of(headers))


def _keys_of(headers: Headers) -> list[bytes]:
    places = []
    for name, value in headers:
        # One with an underscore is read as another header by some servers, and by some as none.
        if (known := name.lower()).endswith(_KEYS) and b"_" not in known:
            places.append(value.strip())
        elif known == OFFERS and len(value) <= MAX_PLACE:
            places.extend(
                offer[len(_OFFERED_KEY) :]
                for offer in map(bytes.strip, value.split(b",", MAX_OFFERS))
                if offer.startswith(_OFFERED_KEY)
            )
    return places


def check_no_other(headers: Headers, token: str) -> None:
    """Raise TwoTokens where another agent's token stands in a place that is meant for the upstream."""
    shown = [value for name, value in headers if name.lower() == b"authorization" and len(value) <= MAX_PLACE]
    places = [*_keys_of(headers), *(part for value in shown for part in _parts(value))]
    others = {place for place in places if place != token.encode() and len(place) <= MAX_TOKEN_CHARACTERS}
    if any(_SPELLING.fullmatch(place) and _claims_to_be_an_agents(place) for place in others):
        raise TwoTokens


def forward_token(headers: Headers) -> str | None:
    """The token of a request to another host, which the client sends its proxy, or None. Raises TwoTokens."""
    places = _credentials(headers, b"proxy-authorization")
    return None if places is None else _only_token(places)


def without_offers(headers: Headers, token: str) -> tuple[Headers, bytes | None]:
    """The headers without the subprotocols that hold the token, and one of those where no other was offered."""
    raw, kept, gone, left = token.encode(), [], [], False
    for name, value in headers:
        if name.lower() == OFFERS:
            offers = [offer.strip() for offer in value.split(b",")]
            others = [offer for offer in offers if raw not in offer]
            gone += [offer for offer in offers if raw in offer]
            left = left or bool(others)
            if not others:
                continue
            if len(others) < len(offers):
                kept.append((name, b", ".join(others)))
                continue
        kept.append((name, value))
    return kept, gone[0] if gone and not left else None


def _credentials(headers: Headers, name: bytes) -> list[bytes] | None:
    """Texts that may be a token, of the one header of this name; None where several differ by who reads them."""
    shown = [value for key, value in headers if key.lower() == name]
    if len(shown) > 1:
        return None
    return list(_parts(shown[0])) if shown and len(shown[0]) <= MAX_PLACE else []


def _parts(value: bytes) -> Iterator[bytes]:
    """User and password of `Basic`, an AWS client's key, and of all else (`Bearer`, `token`, no word) what is last."""
    scheme, _, rest = value.partition(b" ")
    kind, text = scheme.lower(), rest.strip()
    if kind == b"basic":
        try:
            user, _, password = base64.b64decode(text, validate=True).partition(b":")
        except binascii.Error:
            return
        yield password
        yield user
    elif kind == b"aws4-hmac-sha256":
        if (key := _AWS_KEY.match(text)) is not None:
            yield key[1]
    else:
        yield text or scheme


def _only_token(places: list[bytes]) -> str | None:
    found = {place for place in places if len(place) <= MAX_TOKEN_CHARACTERS and _SPELLING.fullmatch(place)}
    if len(found) > 1:
        # A key of the upstream's, or a user's name, may look like one and claim nothing of the kind.
        found = {place for place in found if _claims_to_be_an_agents(place)}
    if len(found) > 1:
        raise TwoTokens
    return found.pop().decode() if found else None


class _Claims(msgspec.Struct):
    """Claims that tell an agent's token from any other."""

    scope: str
    tid: str
    inc: str


def _claims_to_be_an_agents(token: bytes) -> bool:
    text = token.split(b".")[1]
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)), type=_Claims)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return claims.scope == "agent"
