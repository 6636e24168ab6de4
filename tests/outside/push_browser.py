"""A browser that subscribed at a push service, and what it and the service make of a push, by others' code."""

import base64
from typing import Any

import http_ece
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


class PushBrowser:
    """Keys of a subscription, as a browser has them."""

    def __init__(self, secret: bytes = b"sixteen bytes, s") -> None:
        self._own, self._sender = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        self._secret = secret
        self.sender_point = _text(_point(self._sender))

    @property
    def keys(self) -> dict[str, str]:
        """The part of them that the page sends."""
        sender = self._sender.private_numbers().private_value.to_bytes(32)
        return {"p256dh": _text(_point(self._own)), "auth": _text(self._secret), "senderKey": _text(sender)}

    def open(self, body: bytes) -> Any:
        """Open a push as a browser does."""
        plain = http_ece.decrypt(body, private_key=self._own, auth_secret=self._secret, version="aes128gcm")
        return msgspec.json.decode(plain)

    def is_sender(self, authorization: str) -> bool:
        """Say whether this names the key of the subscription, and is signed by it: a push service's questions."""
        _, _, key = authorization.partition("k=")
        return key == self.sender_point and bool(Vapid02.verify(authorization))


def claims(authorization: str) -> Any:
    """The claims of a push's sender, unverified."""
    payload = authorization.split("t=")[1].split(".")[1]
    return msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
