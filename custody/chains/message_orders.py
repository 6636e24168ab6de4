"""Messages as they are asked for."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.shapes import ChainId, ReferenceId

# Bytes of a message.
MAX_MESSAGE: Final = 16 * 1024


class MessageOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="chainFamily"):
    """A message that a wallet signs as it is; exactly one of `message` and `raw`."""

    message: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE)] | None,
        described(f"The message as text, which is signed as UTF-8; at most {MAX_MESSAGE:,} bytes."),
    ] = None
    raw: Annotated[
        Annotated[str, Meta(min_length=2, max_length=2 * MAX_MESSAGE + 2, pattern=r"^[A-Za-z0-9+/]+={0,2}\Z")] | None,
        described("The message as bytes: 0x and hex for an EVM wallet, standard base64 for a Solana wallet."),
    ] = None
    chain_id: Annotated[
        ChainId | None, described("The chain that it is meant for; a sign-in message says so itself.")
    ] = None
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None


class EvmMessageOrder(MessageOrder, frozen=True, forbid_unknown_fields=True, rename="camel", tag="evm"):
    """A message for the EVM wallet, which signs it as personal_sign does (EIP-191)."""


class SolanaMessageOrder(MessageOrder, frozen=True, forbid_unknown_fields=True, rename="camel", tag="solana"):
    """A message for the Solana wallet, which signs the bytes themselves."""
