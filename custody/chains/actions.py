"""Acts of a wallet in the words of who asks for them."""

from typing import Literal

import msgspec


class WalletAction(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The act of a wallet, in the caller's terms: the transaction that it becomes may name only a contract.

    `throttled`: a rate limit refused it, so its reference is free for the same action to be asked for again. A batch of
    calls has no one recipient and amount; its row is there only if it was refused.
    """

    type: Literal["transfer", "send_calls"]
    recipient: str = ""
    amount: str = "0"
    token: str | None = None
    throttled: bool = False
