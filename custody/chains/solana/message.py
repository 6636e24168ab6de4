"""A serialized Solana transaction, taken apart strictly.

Whatever comes out of `parse` serializes to exactly the bytes that went in, so judging the parsed form is judging
what would be signed.
"""

import base64
import binascii
from itertools import pairwise

import msgspec
from solders.hash import Hash
from solders.message import Message, MessageV0, from_bytes_versioned, to_bytes_versioned
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from custody.kit.errors import Invalid

MAX_BYTES = 1_232
ANY_BLOCKHASH = Hash.default()
UNSIGNED = Signature.default()


class SolanaMalformed(Invalid):
    """Not a serialized Solana transaction."""


class SolanaUnsupported(Invalid):
    """This Solana transaction does something that is not supported."""


class Instruction(msgspec.Struct, frozen=True):
    """One instruction with its account indices resolved; `number` counts from 1 as people do.

    `inert` are the accounts of the whole message that neither sign nor can be written.
    """

    number: int
    program: Pubkey
    accounts: tuple[Pubkey, ...]
    data: bytes
    inert: frozenset[Pubkey]


class SolanaTransaction(msgspec.Struct, frozen=True):
    """A message, the signatures that came with it, and its instructions."""

    message: Message | MessageV0
    signatures: tuple[Signature, ...]
    instructions: tuple[Instruction, ...]

    @property
    def signers(self) -> list[Pubkey]:
        """Every key that must sign; the first pays the fee."""
        return self.message.account_keys[: self.message.header.num_required_signatures]

    def renewable(self, ours: Pubkey) -> bool:
        """Say whether a new blockhash spoils nobody else's signature: nobody else signs, or has signed yet."""
        return all(
            signer == ours or made == UNSIGNED for signer, made in zip(self.signers, self.signatures, strict=True)
        )


def _unread(raw: bytes, otherwise: str) -> str:
    """Explain bytes that are no transaction: libraries serialize the message alone, too."""
    try:
        if to_bytes_versioned(from_bytes_versioned(raw)) != raw:
            return otherwise
    except ValueError:
        return otherwise
    return (
        "This is a message alone: send the transaction, in which the message stands behind a slot of 64 bytes for each "
        "of its signatures, zeros where one is not made yet."
    )


def parse(transaction_b64: str) -> SolanaTransaction:
    """Take a base64 transaction apart, or raise SolanaMalformed or SolanaUnsupported."""
    raw = _decode(transaction_b64)
    try:
        transaction = VersionedTransaction.from_bytes(raw)
    except ValueError as problem:
        raise SolanaMalformed(_unread(raw, f"The transaction cannot be read: {str(problem)[:100]}.")) from problem
    message = transaction.message
    if not isinstance(message, Message | MessageV0):
        raise SolanaUnsupported("Only legacy and version 0 transactions are supported.")
    # Trailing bytes and every second way to write the same thing fail here.
    if bytes(transaction) != raw:
        raise SolanaMalformed(_unread(raw, "The transaction is not in its canonical form."))
    _check_keys(message, len(transaction.signatures))
    return SolanaTransaction(message, tuple(transaction.signatures), _instructions(message))


def blockhash_of(raw: bytes) -> str:
    """The blockhash of serialized transaction bytes: once no block takes it any more, they can never land."""
    return str(VersionedTransaction.from_bytes(raw).message.recent_blockhash)


def id_of(raw: bytes) -> str | None:
    """The signature of who pays the fee, by which a cluster knows a transaction; None while it is missing."""
    first = VersionedTransaction.from_bytes(raw).signatures[0]
    return None if first == UNSIGNED else str(first)


def with_blockhash(message: Message | MessageV0, blockhash: Hash) -> Message | MessageV0:
    """Build the same message again with another blockhash."""
    header = message.header
    if isinstance(message, MessageV0):
        return MessageV0(header, message.account_keys, blockhash, message.instructions, [])
    return Message.new_with_compiled_instructions(
        header.num_required_signatures,
        header.num_readonly_signed_accounts,
        header.num_readonly_unsigned_accounts,
        message.account_keys,
        blockhash,
        message.instructions,
    )


def digest_bytes(parsed: SolanaTransaction) -> bytes:
    """Serialize the message with a blockhash of zero, so that a fresh one does not change an approval's digest."""
    return to_bytes_versioned(with_blockhash(parsed.message, ANY_BLOCKHASH))


def _decode(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise SolanaMalformed("The transaction is not base64.") from problem
    # Python's decoder lets stray bits in the last character pass.
    if base64.b64encode(raw).decode() != text:
        raise SolanaMalformed("The transaction is not canonical base64.")
    if len(raw) > MAX_BYTES:
        raise SolanaMalformed(f"A transaction has at most {MAX_BYTES} bytes.")
    return raw


def _check_keys(message: Message | MessageV0, signatures: int) -> None:
    header, keys = message.header, message.account_keys
    if isinstance(message, MessageV0) and message.address_table_lookups:
        raise SolanaUnsupported("Address lookup tables are not supported.", instruction="address lookup table")
    required = header.num_required_signatures
    if required < 1 or signatures != required:
        raise SolanaMalformed("The number of signatures is not the number of signers.")
    if header.num_readonly_signed_accounts >= required:
        raise SolanaMalformed("The account that pays the fee is read-only.")
    if required + header.num_readonly_unsigned_accounts > len(keys):
        raise SolanaMalformed("The header counts more accounts than there are.")
    ordered = sorted(bytes(key) for key in keys)
    if any(one == next_ for one, next_ in pairwise(ordered)):
        raise SolanaMalformed("An account is listed twice.")


def _instructions(message: Message | MessageV0) -> tuple[Instruction, ...]:
    keys, header = message.account_keys, message.header
    inert = frozenset(keys[max(header.num_required_signatures, len(keys) - header.num_readonly_unsigned_accounts) :])
    found = []
    for number, compiled in enumerate(message.instructions, start=1):
        program, accounts = compiled.program_id_index, compiled.accounts
        # Index 0 pays the fee; an account that pays cannot be a program.
        if not 0 < program < len(keys) or any(account >= len(keys) for account in accounts):
            raise SolanaMalformed(f"Instruction {number} names an account that is not in the transaction.")
        named = tuple(keys[account] for account in accounts)
        found.append(Instruction(number, keys[program], named, bytes(compiled.data), inert))
    return tuple(found)
