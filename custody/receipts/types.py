"""A receipt as it is shown. Normative text: docs/receipts.md."""

from typing import Any

import msgspec

from custody.kit.errors import Conflict


class NotSigned(Conflict):
    """This transaction was not signed, so there is nothing to give a receipt for."""


class Receipt(msgspec.Struct, frozen=True):
    """The statement, the Ed25519 signature over its canonical JSON (base64url), and the key's id in the JWK set."""

    receipt: dict[str, Any]
    signature: str
    kid: str
