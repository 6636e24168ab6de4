"""Signing what changes something, for deployments that want it. Pure; `docs/api.md` is the law."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SigningKey:
    """A managed signing key of the tenant: its id, and the secret as it was shown."""

    id: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class RequestSigner:
    """Signs the requests of one tenant."""

    key: SigningKey
    tenant: str

    def headers(self, method: str, target: str, given: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Sign a request: headers to send beside its own; `target` is path and query as sent."""
        timestamp, idempotency_key = given.get("X-Service-Request-Timestamp", ""), given.get("Idempotency-Key", "")
        # The empty line is for an expiry, which the timestamp makes unnecessary.
        lines = ["v1", method, target, self.tenant, timestamp, "", idempotency_key, hashlib.sha256(body).hexdigest()]
        signature = hmac.new(self.key.secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()
        return {"X-Service-Signature": f"v1={signature}", "X-Service-Signing-Key-Id": self.key.id}
