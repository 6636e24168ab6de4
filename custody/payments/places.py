"""The places that a payment is said to be for: by its agent, and by the server that demands it."""

from urllib.parse import urlsplit

import msgspec

from custody.chains.payment_orders import PaymentOrder


class _Resource(msgspec.Struct):
    url: str


class _Offer(msgspec.Struct):
    resource: str | None = None


def place_in(url: str | None) -> tuple[str, str] | None:
    """The host, with its port where it has one, and the path of an address, as far as it is one.

    A stranger says it: letters other than addresses have could be read in two ways.
    """
    text = url or ""
    try:
        parts = urlsplit(text if text.isascii() and text.isprintable() else "")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if host is None:
        return None
    # As an address in IPv6 is written.
    host = f"[{host}]" if ":" in host else host
    return (host if port is None else f"{host[:253]}:{port}")[:260], parts.path or "/"


def places_of(order: PaymentOrder) -> list[tuple[str, str]]:
    """Every place that is named: neither who demands nor who pays can talk another one's away."""
    named = [(order.host, order.path or "/")] if order.host is not None else []
    said = place_in(_seller_says(order))
    return named if said is None or said in named else [*named, said]


def _seller_says(order: PaymentOrder) -> str | None:
    try:
        if order.version == 1:
            return msgspec.json.decode(order.offer, type=_Offer).resource
        return None if order.resource is None else msgspec.json.decode(order.resource, type=_Resource).url
    except msgspec.MsgspecError:
        return None
