"""Tokens as the owners of a tenant call them: words for people. What is judged stays in raw units of the asset. Pure.

What a token says of itself is hearsay: anybody can write a token that calls itself USDC. What the owners say is theirs.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from custody.kit.described import described

MAX_TOKENS: Final = 64


class NamedToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token, and what the owners of the tenant call it."""

    asset: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)],
        described("The token as rules name it: `evm:<chainId>:<address>`, or `solana:<mint>`."),
    ]
    symbol: Annotated[
        Annotated[str, Meta(min_length=1, max_length=16, pattern=r"^[A-Za-z0-9_\-.:]+\Z")],
        described("The name that people use, such as `USDC`."),
    ]
    decimals: Annotated[
        Annotated[int, Meta(ge=0, le=36)],
        described("Number of digits behind the point when an amount is shown."),
    ]
