"""Solana transactions as they are asked for, and what a node suggests for one."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.shapes import ChainId, DecimalAmount, ReferenceId, SolanaAddress


class SolanaOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A serialized Solana transaction, and the caller's statement of what it does; the two must agree."""

    transaction: Annotated[
        str, Meta(min_length=4, max_length=1_644), described("The serialized transaction in base64.")
    ]
    to: Annotated[
        SolanaAddress,
        described(
            "The recipient, as the transaction has it: of several any one, of a token account its owner; the wallet "
            "itself where the transaction pays nobody else."
        ),
    ]
    value: Annotated[
        DecimalAmount,
        described("All the lamports that the transaction transfers, to any receiver; fee and rent are not in it."),
    ]
    chain_id: Annotated[ChainId, described("101 for mainnet, 102 for devnet.")] = 101
    broadcast: Annotated[
        bool,
        described(
            "True to have the service send the signed transaction to a node; false returns it. It must be false where "
            "somebody else pays the fee and signs last."
        ),
    ] = True
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None


class SolanaPrepared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="solana"):
    """A recent blockhash (base58) and the last block height at which it is valid. Untrusted."""

    blockhash: str
    last_valid_height: int
