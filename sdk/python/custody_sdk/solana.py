"""For programs that use solders: their transactions, signed by the vault's wallet.

The vault reads every instruction, and wants said what a transaction does; that is read here from its instructions.
Where a person decides, an approval may renew the blockhash. The message is another one then: `sign` takes it if told.
"""

import base64
import binascii
import contextlib
from collections.abc import Iterator
from typing import Final

from solders.message import Message, MessageV0, to_bytes_versioned
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from custody_sdk import _types as types
from custody_sdk._asks import Signed
from custody_sdk.client import Vault
from custody_sdk.errors import BadArgument, NotAsked

MAINNET: Final = 101
_SYSTEM: Final = Pubkey.from_string("11111111111111111111111111111111")
_TOKENS: Final = tuple(
    Pubkey.from_string(one)
    for one in ("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
)
_ASSOCIATED: Final = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
_WRAPPED: Final = Pubkey.from_string("So11111111111111111111111111111111111111112")
type _Any = Message | MessageV0
_TRANSFER, _TRANSFER_CHECKED = (2).to_bytes(4, "little"), 12


class SolanaWallet:
    """The vault's Solana wallet. It takes a transaction and gives the signed one; it is no keypair and holds no key."""

    def __init__(self, vault: Vault, *, chain_id: int = MAINNET, wait: float = 0) -> None:
        self._vault, self._chain, self._wait = vault, chain_id, wait
        self._pubkey = Pubkey.from_string(vault.wallet()["walletAddresses"]["solana"])

    def __repr__(self) -> str:
        return f"<SolanaWallet {self._pubkey}>"

    def pubkey(self) -> Pubkey:
        """Return the wallet's address."""
        return self._pubkey

    def send(self, name: str, transaction: VersionedTransaction) -> Signed:
        """Sign a transaction, and have the service send it and track it."""
        order = order_of(transaction, self._pubkey, chain_id=self._chain)
        return self._vault.sign_solana(name, order, wait=self._wait)

    def sign(self, name: str, transaction: VersionedTransaction, *, renewed: bool = False) -> VersionedTransaction:
        """Sign a transaction and return it; `renewed` allows another blockhash than it had."""
        order = order_of(transaction, self._pubkey, chain_id=self._chain)
        order["broadcast"] = False
        signed = self._vault.sign_solana(name, order, wait=self._wait)
        return _same_transaction(signed, transaction, self._pubkey, renewed=renewed)


def order_of(transaction: VersionedTransaction, wallet: Pubkey, *, chain_id: int = MAINNET) -> types.SolanaOrder:
    """Return the order of a transaction, with whom it pays and how many lamports."""
    message = transaction.message
    if not isinstance(message, Message | MessageV0):
        raise BadArgument(0, "unsupported", "only legacy messages and those of version 0 are signed.")
    if isinstance(message, MessageV0) and message.address_table_lookups:
        raise BadArgument(0, "unsupported", "address lookup tables are not read, so nothing with one is signed.")
    own = _own_wrapped(wallet)
    paid = list(_payments(message))
    others = [receiver for receiver, _ in paid if receiver not in (wallet, own)]
    to = next(iter([*others, *_token_receivers(message)]), wallet)
    return {
        "transaction": base64.b64encode(bytes(transaction)).decode(),
        "to": str(to),
        "value": str(sum(lamports for _, lamports in paid)),
        "chainId": chain_id,
    }


def _payments(message: _Any) -> Iterator[tuple[Pubkey, int]]:
    """Find each transfer of lamports: who gets how many."""
    keys = message.account_keys
    for one in message.instructions:
        data = bytes(one.data)
        if keys[one.program_id_index] == _SYSTEM and data[:4] == _TRANSFER and len(data) == 12:
            yield keys[bytes(one.accounts)[1]], int.from_bytes(data[4:], "little")


def _token_receivers(message: _Any) -> Iterator[Pubkey]:
    """Find the accounts that tokens go to; whose they are no message says."""
    keys = message.account_keys
    for one in message.instructions:
        if keys[one.program_id_index] in _TOKENS and bytes(one.data)[:1] == bytes((_TRANSFER_CHECKED,)):
            yield keys[bytes(one.accounts)[2]]


def _own_wrapped(wallet: Pubkey) -> Pubkey:
    seeds = [bytes(wallet), bytes(_TOKENS[0]), bytes(_WRAPPED)]
    return Pubkey.find_program_address(seeds, _ASSOCIATED)[0]


def _same_transaction(
    signed: Signed, asked: VersionedTransaction, wallet: Pubkey, *, renewed: bool
) -> VersionedTransaction:
    """Return what was signed, if it is what was asked for, with the other signatures as they were."""
    found = None
    with contextlib.suppress(ValueError, binascii.Error):
        found = VersionedTransaction.from_bytes(base64.b64decode(signed.signed_transaction or "", validate=True))
    if found is None or not _same(found, asked, wallet, renewed=renewed):
        raise NotAsked(
            200, "not_asked", "The bytes are not the transaction that was asked for.", {"txId": signed.tx_id}
        )
    return found


def _same(found: VersionedTransaction, asked: VersionedTransaction, wallet: Pubkey, *, renewed: bool) -> bool:
    fresh = found.message.recent_blockhash != asked.message.recent_blockhash
    if (fresh and not renewed) or not isinstance(found.message, Message | MessageV0):
        return False
    if not isinstance(asked.message, Message | MessageV0):
        return False
    if _does(found.message) != _does(asked.message):
        return False
    own = list(found.message.account_keys).index(wallet)
    if own >= len(found.signatures) or not found.signatures[own].verify(wallet, to_bytes_versioned(found.message)):
        return False
    others = [
        (new, old)
        for place, (new, old) in enumerate(zip(found.signatures, asked.signatures, strict=True))
        if place != own
    ]
    return all(new == old and not (fresh and old != Signature.default()) for new, old in others)


def _does(message: _Any) -> tuple[object, ...]:
    """Return what a message is but for its blockhash."""
    return type(message), message.header, message.account_keys, message.instructions
