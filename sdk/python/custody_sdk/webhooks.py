"""The receiver's side of a webhook: is this delivery from Custody, and is it fresh?"""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from custody_sdk.errors import VaultError

MAX_WEBHOOK_BYTES: Final = 2**20
_FRESH_SECONDS: Final = 300
_MOST_SIGNATURES: Final = 16


class NotGenuine(VaultError):
    """It was not made by whom it should be, or not now: answer 401, and use nothing of it."""


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, *, now: float | None = None) -> dict[str, Any]:
    """Return the event of a delivery, or raise NotGenuine. Expect one more than once: note its `id`.

    `body` is the raw body as it came. Signatures are those of Standard Webhooks, and cover id and time too.
    """
    given = {name.lower(): value for name, value in headers.items()}
    delivery, moment = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if len(body) > MAX_WEBHOOK_BYTES or not delivery.isascii():
        raise _refusal("the body is too long, or its id is none")
    if not (moment.isascii() and moment.isdigit() and len(moment) <= 12):
        raise _refusal("webhook-timestamp is missing")
    if abs((time.time() if now is None else now) - int(moment)) > _FRESH_SECONDS:
        raise _refusal("it is older than five minutes, or the clocks differ")
    signed = f"{delivery}.{moment}.".encode() + body
    wanted = b"v1," + base64.b64encode(hmac.digest(_key_of(secret), signed, hashlib.sha256))
    found = given.get("webhook-signature", "").encode("utf-8", "replace").split(b" ")[:_MOST_SIGNATURES]
    # During a change of the secret there is one for each.
    if not any(hmac.compare_digest(wanted, one) for one in found):
        raise _refusal("no signature fits: another secret, or a body that was changed on the way")
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise _refusal("the body is no event")
    return event


def _key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < 16:
        # An empty secret would let everybody sign.
        raise NotGenuine(0, "bad_secret", "the secret must be whsec_ and base64, as the endpoint's answer shows it.")
    return key


def _refusal(why: str) -> NotGenuine:
    return NotGenuine(0, "not_genuine", f"The delivery is not accepted: {why}.")
