"""The few Solana instructions we understand; every other is refused by name.

Each is read in one exact layout: exact data length, exact accounts, our key wherever something leaves. A layout that
the runtime would accept too, with accounts or bytes whose meaning we do not know, is refused.
"""

from typing import NoReturn

import msgspec
from solders.pubkey import Pubkey
from solders.token.associated import get_associated_token_address

from custody.chains.solana import programs
from custody.chains.solana.message import Instruction, SolanaUnsupported

# Bytes of data and number of accounts of the two transfers.
_NATIVE_SHAPE, _TOKEN_SHAPE = (12, 2), (10, 4)
_SYSTEM_TRANSFER = (2).to_bytes(4, "little")
_TRANSFER_CHECKED = b"\x0c"
_CREATE_TAGS = (b"", b"\x00", b"\x01")


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
    mint: Pubkey
    owner: Pubkey
    address: Pubkey


class ComputeLimit(msgspec.Struct, frozen=True):
    """The most compute units the transaction may use."""

    units: int


class ComputePrice(msgspec.Struct, frozen=True):
    """The price of a compute unit in millionths of a lamport."""

    micro_lamports: int


class Memo(msgspec.Struct, frozen=True):
    """A note that moves nothing."""

    text: bytes


Meaning = NativeTransfer | TokenTransfer | TokenAccountCreation | ComputeLimit | ComputePrice | Memo


def read(instruction: Instruction, ours: Pubkey) -> Meaning:
    """Say what an instruction does, or raise SolanaUnsupported naming it."""
    program = instruction.program
    if program == programs.SYSTEM:
        return _native_transfer(instruction, ours)
    if program in (programs.TOKEN, programs.TOKEN_2022):
        return _token_transfer(instruction, ours)
    if program == programs.ASSOCIATED_TOKEN:
        return _token_account(instruction, ours)
    if program == programs.COMPUTE_BUDGET:
        return _compute_budget(instruction)
    if program in (programs.MEMO_V1, programs.MEMO_V2):
        return _memo(instruction, ours)
    refuse(instruction, "this program is not known")


def refuse(instruction: Instruction, why: str) -> NoReturn:
    """Raise SolanaUnsupported with the instruction's place and name."""
    name = programs.name_of(instruction.program, instruction.data)
    raise SolanaUnsupported(f"Instruction {instruction.number} ({name}) is not supported: {why}.", instruction=name)


def _native_transfer(instruction: Instruction, ours: Pubkey) -> NativeTransfer:
    data, accounts = instruction.data, instruction.accounts
    if data[:4] != _SYSTEM_TRANSFER:
        refuse(instruction, "only transfers of the system program are")
    if (len(data), len(accounts)) != _NATIVE_SHAPE:
        refuse(instruction, "it has accounts or data beyond those of a transfer")
    if accounts[0] != ours:
        refuse(instruction, "it takes from an account that is not this wallet")
    return NativeTransfer(accounts[1], int.from_bytes(data[4:], "little"))


def _token_transfer(instruction: Instruction, ours: Pubkey) -> TokenTransfer:
    data, accounts = instruction.data, instruction.accounts
    if data[:1] != _TRANSFER_CHECKED:
        refuse(instruction, "only TransferChecked is, because it names its mint")
    # More accounts mean a transfer hook or a multisignature: code or keys we know nothing of.
    if (len(data), len(accounts)) != _TOKEN_SHAPE:
        refuse(instruction, "it has accounts or data beyond those of a plain transfer")
    source, mint, destination, authority = accounts
    if authority != ours or source != get_associated_token_address(ours, mint, instruction.program):
        refuse(instruction, "it takes from a token account that is not this wallet's associated one")
    return TokenTransfer(instruction.program, mint, destination, int.from_bytes(data[1:9], "little"))


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
    return TokenAccountCreation(token, mint, owner, address)


def _compute_budget(instruction: Instruction) -> ComputeLimit | ComputePrice:
    if instruction.accounts:
        refuse(instruction, "it takes no accounts")
    tag, figure = instruction.data[:1], instruction.data[1:]
    match tag, len(figure):
        case b"\x02", 4:
            return ComputeLimit(int.from_bytes(figure, "little"))
        case b"\x03", 8:
            return ComputePrice(int.from_bytes(figure, "little"))
    refuse(instruction, "only the limit and the price of compute units are")


def _memo(instruction: Instruction, ours: Pubkey) -> Memo:
    if any(account != ours for account in instruction.accounts):
        refuse(instruction, "a memo is signed by this wallet only")
    return Memo(instruction.data)
