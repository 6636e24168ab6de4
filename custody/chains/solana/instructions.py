"""The few Solana instructions we understand; every other is refused by name.

Each is read in one exact layout: exact data length, exact accounts, our key wherever something leaves. A layout that
the runtime would accept too, with accounts or bytes whose meaning we do not know, is refused.
"""

from functools import lru_cache
from typing import NoReturn

import msgspec
from solders.pubkey import Pubkey
from solders.token.associated import get_associated_token_address

from custody.chains.solana import programs
from custody.chains.solana.message import Instruction, SolanaUnsupported

_SYSTEM_TRANSFER = (2).to_bytes(4, "little")
_TRANSFER_CHECKED = b"\x0c"
_TRANSFER_WITH_FEE = b"\x1a\x01"
_CREATE_TAGS = (b"", b"\x00", b"\x01")
# What is taken of a token program beside transfers: nothing of it can leave this wallet.
_TIDYING = {
    b"\x05": "only a revocation that this wallet signs is",
    b"\x09": "only closing into this wallet, which signs for it, is",
    b"\x11": "only that of this wallet's own associated account of wrapped SOL is",
}
# Compute budget: how many bytes of figure follow the tag.
HEAP_FRAME, UNIT_LIMIT, UNIT_PRICE, DATA_LIMIT = 1, 2, 3, 4
_FIGURES = {HEAP_FRAME: 4, UNIT_LIMIT: 4, UNIT_PRICE: 8, DATA_LIMIT: 4}


class NativeTransfer(msgspec.Struct, frozen=True):
    """Lamports leave our account."""

    to: Pubkey
    lamports: int


class TokenTransfer(msgspec.Struct, frozen=True):
    """Tokens leave our associated account; `destination` is a token account, not its owner."""

    program: Pubkey
    mint: Pubkey
    destination: Pubkey
    amount: int


class TokenAccountCreation(msgspec.Struct, frozen=True):
    """We pay the rent of an owner's associated token account."""

    program: Pubkey
    owner: Pubkey
    address: Pubkey


class Revocation(msgspec.Struct, frozen=True):
    """Nobody but its owner may spend from a token account any more."""

    account: Pubkey


class Closing(msgspec.Struct, frozen=True):
    """An account that is ours to close gives us its lamports, wrapped ones included."""

    account: Pubkey


class ComputeSetting(msgspec.Struct, frozen=True):
    """A setting of the compute budget; of these only the limit and the price of units cost."""

    tag: int
    figure: int


class Nothing(msgspec.Struct, frozen=True):
    """A memo, or the balance of our wrapped SOL counted again: nothing moves."""


Meaning = NativeTransfer | TokenTransfer | TokenAccountCreation | Revocation | Closing | ComputeSetting | Nothing


def read(instruction: Instruction, ours: Pubkey) -> Meaning:
    """Say what an instruction does, or raise SolanaUnsupported naming it."""
    program = instruction.program
    if program == programs.SYSTEM:
        return _native_transfer(instruction, ours)
    if program in (programs.TOKEN, programs.TOKEN_2022):
        return _token(instruction, ours)
    if program == programs.ASSOCIATED_TOKEN:
        return _token_account(instruction, ours)
    if program == programs.COMPUTE_BUDGET:
        return _compute_budget(instruction)
    if program in (programs.MEMO_V1, programs.MEMO_V2):
        return _memo(instruction, ours)
    refuse(instruction, "this program is not known")


@lru_cache(maxsize=256)
def wrapped_account(owner: Pubkey) -> Pubkey:
    """The associated account that holds an owner's wrapped SOL."""
    return get_associated_token_address(owner, programs.WRAPPED_SOL, programs.TOKEN)


def refuse(instruction: Instruction, why: str) -> NoReturn:
    """Raise SolanaUnsupported with the instruction's place and name."""
    name = programs.name_of(instruction.program, instruction.data)
    raise SolanaUnsupported(f"Instruction {instruction.number} ({name}) is not supported: {why}.", instruction=name)


def _native_transfer(instruction: Instruction, ours: Pubkey) -> NativeTransfer:
    data, accounts = instruction.data, instruction.accounts
    if data[:4] != _SYSTEM_TRANSFER:
        refuse(instruction, "only transfers of the system program are")
    # The program looks at two accounts; whatever else stands there, as references of Solana Pay do, must be inert.
    if len(data) != 12 or len(accounts) < 2 or not instruction.inert.issuperset(accounts[2:]):
        refuse(instruction, "it has data or accounts beyond a transfer, other than read-only ones that do not sign")
    if accounts[0] != ours:
        refuse(instruction, "it takes from an account that is not this wallet")
    return NativeTransfer(accounts[1], int.from_bytes(data[4:], "little"))


def _token(instruction: Instruction, ours: Pubkey) -> TokenTransfer | Revocation | Closing | Nothing:
    program, data, accounts = instruction.program, instruction.data, instruction.accounts
    if data[:1] == _TRANSFER_CHECKED:
        return _token_transfer(instruction, ours, data[1:9], exact=len(data) == 10)
    if data[:2] == _TRANSFER_WITH_FEE and program == programs.TOKEN_2022:
        return _token_transfer(instruction, ours, data[2:10], exact=len(data) == 19)
    match data, accounts:
        case b"\x05", (account, authority) if authority == ours:
            return Revocation(account)
        case b"\x09", (account, receiver, authority) if receiver == authority == ours:
            return Closing(account)
        case b"\x11", (account,) if program == programs.TOKEN and account == wrapped_account(ours):
            return Nothing()
    refuse(instruction, _TIDYING.get(data[:1], "only transfers that name their mint are, such as TransferChecked"))


def _token_transfer(instruction: Instruction, ours: Pubkey, amount: bytes, *, exact: bool) -> TokenTransfer:
    program, accounts = instruction.program, instruction.accounts
    # The classic program takes more accounts for co-signers of a multisignature, which a key has none of, and ignores
    # references; to Token-2022 they may mean a transfer hook: code that we know nothing of.
    more = accounts[4:]
    inert = not more or (program == programs.TOKEN and instruction.inert.issuperset(more))
    if not exact or len(accounts) < 4 or not inert:
        refuse(instruction, "it has accounts or data beyond those of a plain transfer")
    source, mint, destination, authority = accounts[:4]
    if authority != ours or source != get_associated_token_address(ours, mint, program):
        refuse(instruction, "it takes from a token account that is not this wallet's associated one")
    return TokenTransfer(program, mint, destination, int.from_bytes(amount, "little"))


def _token_account(instruction: Instruction, ours: Pubkey) -> TokenAccountCreation:
    if instruction.data not in _CREATE_TAGS:
        refuse(instruction, "only Create and CreateIdempotent are")
    match instruction.accounts:
        # Older libraries append the rent account.
        case (payer, address, owner, mint, system, token) | (
            payer,
            address,
            owner,
            mint,
            system,
            token,
            programs.RENT_SYSVAR,
        ):
            pass
        case _:
            refuse(instruction, "it does not have the accounts of a creation")
    if system != programs.SYSTEM or token not in (programs.TOKEN, programs.TOKEN_2022):
        refuse(instruction, "it names a different system or token program")
    if payer != ours:
        refuse(instruction, "another account would pay")
    if address != get_associated_token_address(owner, mint, token):
        refuse(instruction, "the account is not the one derived from its owner and mint")
    return TokenAccountCreation(token, owner, address)


def _compute_budget(instruction: Instruction) -> ComputeSetting:
    if instruction.accounts:
        refuse(instruction, "it takes no accounts")
    tag, figure = instruction.data[:1], instruction.data[1:]
    if len(figure) != _FIGURES.get(int.from_bytes(tag)):
        refuse(instruction, "only limits, the heap and the price of compute units are")
    return ComputeSetting(int.from_bytes(tag), int.from_bytes(figure, "little"))


def _memo(instruction: Instruction, ours: Pubkey) -> Nothing:
    if any(account != ours for account in instruction.accounts):
        refuse(instruction, "a memo is signed by this wallet only")
    return Nothing()
