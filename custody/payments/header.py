"""The header that carries a payment to the server that demanded it, with its own offer exactly as it came."""

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from custody.chains.payment_orders import PaymentOrder
from custody.payments.offers import Terms

_IDENTIFIER: Final = "payment-identifier"
_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def header(order: PaymentOrder, terms: Terms, payload: Mapping[str, Any], nonce: bytes) -> tuple[str, str]:
    """The name and the value of the header."""
    if order.version == 1:
        offer = terms.offer
        told: dict[str, Any] = {"x402Version": 1, "scheme": offer.scheme, "network": offer.network, "payload": payload}
        return "X-PAYMENT", _encode(told)
    told = {"x402Version": 2, "payload": payload, "accepted": msgspec.Raw(order.offer.encode())}
    if order.resource is not None:
        told["resource"] = msgspec.Raw(order.resource.encode())
    if order.extensions is not None:
        told["extensions"] = _name_payment(_parts.decode(order.extensions), nonce)
    return "PAYMENT-SIGNATURE", _encode(told)


def _name_payment(extensions: dict[str, msgspec.Raw], nonce: bytes) -> dict[str, Any]:
    """The extensions as they came; a server that wants payments named gets this one's name, the same each time."""
    if _IDENTIFIER not in extensions:
        return extensions
    declared = msgspec.json.decode(extensions[_IDENTIFIER])
    if not isinstance(declared, dict) or not isinstance(info := declared.get("info"), dict):
        return extensions
    return extensions | {_IDENTIFIER: declared | {"info": info | {"id": f"pay_{nonce[:16].hex()}"}}}


def _encode(told: dict[str, Any]) -> str:
    return base64.b64encode(msgspec.json.encode(told)).decode()
