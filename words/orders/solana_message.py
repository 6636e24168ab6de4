"""A Solana message taken apart: which programs it calls, by which instruction, and what its memos say. Pure.

The service refuses what it does not know, so this only names for people what it has let through. Whatever is read
here writes out to exactly the bytes it was read from; else it counts as not to be decoded.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from solders.message import Message, MessageV0, VersionedMessage, from_bytes_versioned, to_bytes_versioned
from solders.transaction import VersionedTransaction

from words.texts.plain import plain

_SYSTEM: Final = (
    "CreateAccount Assign Transfer CreateAccountWithSeed AdvanceNonceAccount WithdrawNonceAccount "
    "InitializeNonceAccount AuthorizeNonceAccount Allocate AllocateWithSeed AssignWithSeed TransferWithSeed "
    "UpgradeNonceAccount"
)
_SPL: Final = (
    "InitializeMint InitializeAccount InitializeMultisig Transfer Approve Revoke SetAuthority MintTo Burn CloseAccount "
    "FreezeAccount ThawAccount TransferChecked ApproveChecked MintToChecked BurnChecked InitializeAccount2 SyncNative "
    "InitializeAccount3 InitializeMultisig2 InitializeMint2 GetAccountDataSize InitializeImmutableOwner "
    "AmountToUiAmount UiAmountToAmount InitializeMintCloseAuthority TransferFeeExtension"
)
_ASSOCIATED: Final = "Create CreateIdempotent RecoverNested"
_COMPUTE: Final = "RequestUnits RequestHeapFrame SetComputeUnitLimit SetComputeUnitPrice SetLoadedAccountsDataSizeLimit"
# A program's name, how many bytes of the data say which instruction it is, and their names in order.
_PROGRAMS: Final = {
    "11111111111111111111111111111111": ("System", 4, _SYSTEM),
    "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA": ("Token", 1, _SPL),
    "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb": ("Token-2022", 1, _SPL),
    "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL": ("Associated Token", 1, _ASSOCIATED),
    "ComputeBudget111111111111111111111111111111": ("Compute Budget", 1, _COMPUTE),
}
_MEMOS: Final = {
    "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo": "Memo v1",
    "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr": "Memo v2",
}
# Whose first instruction may be written without data.
_BARE: Final = "Associated Token"


@dataclass(frozen=True)
class Instruction:
    """One instruction: its program by name, or by address where it is not known; a memo's text is made plain."""

    program: str
    name: str = ""
    memo: str | None = None
    known: bool = True


def instructions(data: object) -> list[Instruction] | None:
    """Those of a message or transaction in base64, in their order; None where it cannot be decoded."""
    try:
        raw = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        return None
    message = _message(raw)
    if message is None:
        return None
    keys = message.account_keys
    found = []
    for one in message.instructions:
        # From an address lookup table, whose content is not in the message.
        program = str(keys[one.program_id_index]) if one.program_id_index < len(keys) else ""
        found.append(_instruction(program, bytes(one.data)))
    return found


def _message(raw: bytes) -> Message | MessageV0 | None:
    found: VersionedMessage | None = None
    try:
        transaction = VersionedTransaction.from_bytes(raw)
        found = transaction.message if bytes(transaction) == raw else None
    except ValueError:
        try:
            message = from_bytes_versioned(raw)
            found = message if to_bytes_versioned(message) == raw else None
        except ValueError:
            return None
    # There are later versions, whose instructions may mean something else.
    return found if isinstance(found, Message | MessageV0) else None


def _instruction(program: str, data: bytes) -> Instruction:
    if program in _MEMOS:
        return Instruction(_MEMOS[program], memo=plain(data.decode("utf-8", "backslashreplace")))
    if program not in _PROGRAMS:
        return Instruction(program or "a program missing from the message", known=False)
    title, width, words = _PROGRAMS[program]
    names = words.split()
    if not data and title == _BARE:
        return Instruction(title, names[0])
    tag = int.from_bytes(data[:width], "little")
    if len(data) < width or tag >= len(names):
        return Instruction(title, "an unknown instruction", known=False)
    return Instruction(title, names[tag])
