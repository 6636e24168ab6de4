"""The answer of a signing route for an order of its kind: fields of `Released` in `api/areas/signing/types.py`."""

from typing import Annotated

import msgspec

from custody.kit.described import Id, described


class EvmSigned(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A signed EVM transaction; with its bytes if it was not broadcast."""

    tx_id: Annotated[Id, described("The transaction.")]
    tx_hash: Annotated[str, described("The hash of the transaction.")]
    signed_transaction: Annotated[
        str | None, described("The signed bytes in hex, if the service did not broadcast them.")
    ] = None


class TypedDataSigned(msgspec.Struct, frozen=True, rename="camel"):
    """An EIP-712 signature: 65 bytes, r s v."""

    signature: Annotated[str, described("The signature in hex, 65 bytes.")]
    tx_id: Annotated[Id, described("The transaction.")]


class SolanaSigned(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A signed Solana transaction."""

    tx_id: Annotated[Id, described("The transaction.")]
    signature: Annotated[
        str,
        described("The wallet's signature in base58; also the transaction's id, if this wallet pays the fee."),
    ]
    broadcast: Annotated[bool, described("True if the service sends it.")]
    chain_id: Annotated[int, described("The chain: its EIP-155 number, or 101 for Solana.")]
    caip2: Annotated[str, described("The chain by its CAIP-2 name, such as `eip155:8453`.")]
    signed_transaction: Annotated[
        str | None,
        described(
            "The signed bytes in base64, if the service did not broadcast them. A fee payer who signs last adds their "
            "signature."
        ),
    ] = None


class MessageSigned(msgspec.Struct, frozen=True, rename="camel"):
    """A signature of a message."""

    signature: Annotated[str, described("EVM: 65 bytes r s v in hex. Solana: 64 bytes of Ed25519 in base58.")]
    tx_id: Annotated[Id, described("The transaction.")]
