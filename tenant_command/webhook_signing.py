"""The headers of a webhook's delivery, as the service makes them: docs/webhooks.md. Pure, but for what is drawn."""

import base64
import hashlib
import hmac
import secrets
import uuid
from datetime import datetime
from typing import Final

_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32


def draw_secret() -> str:
    """Draw a secret that signs deliveries."""
    drawn = secrets.token_bytes(_SECRET_BYTES)  # noqa: TID251 - this command imports nothing of Custody
    return _PREFIX + base64.b64encode(drawn).decode()


def draw_id() -> str:
    """Draw the id of a delivery."""
    return str(uuid.uuid4())  # noqa: TID251 - this command imports nothing of Custody


def headers_of(secret: str, delivery: str, moment: datetime, body: bytes) -> dict[str, str]:
    """Make the headers of one attempt."""
    second = str(int(moment.timestamp()))
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = hmac.digest(key, f"{delivery}.{second}.".encode() + body, hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "User-Agent": "Custody-Webhooks",
        "X-Service-Signature": f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}",
        "webhook-id": delivery,
        "webhook-timestamp": second,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
