"""Messages that wallets sign as they are, and what sign-in messages say, which `message_sign_in.py` reads."""

from datetime import datetime

import msgspec


class SignIn(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in message (EIP-4361, or Sign In With Solana) as far as a rule judges it; `chain` is a CAIP-2 name."""

    family: str
    scheme: str | None
    domain: str
    address: str
    uri: str | None
    chain: str | None
    issued_at: datetime | None
    expiration_time: datetime | None
    not_before: datetime | None
    resources: tuple[str, ...]


class Message(msgspec.Struct, frozen=True):
    """The bytes to sign and what they say.

    `text` is None unless they are text that shows as it is: printable characters and line ends. `claims` says that they
    look like a sign-in message; `sign_in` is None all the same where they are none to the letter.
    """

    raw: bytes
    text: str | None
    claims: bool
    sign_in: SignIn | None

    def __repr__(self) -> str:
        return f"Message({len(self.raw)} bytes)"
