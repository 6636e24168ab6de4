"""Solana transactions as wallets build them, from layouts written out by hand."""

import base64

from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.token.associated import get_associated_token_address
from solders.transaction import VersionedTransaction

SYSTEM = Pubkey.from_string("11111111111111111111111111111111")
TOKEN = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
TOKEN_2022 = Pubkey.from_string("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
ASSOCIATED = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
COMPUTE = Pubkey.from_string("ComputeBudget111111111111111111111111111111")
WRAPPED_SOL = Pubkey.from_string("So11111111111111111111111111111111111111112")
MEMO = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")

OWN_KEY = Keypair.from_seed(b"\x01" * 32)
US = OWN_KEY.pubkey()
THEM = Keypair.from_seed(b"\x02" * 32).pubkey()
MINT = Keypair.from_seed(b"\x03" * 32).pubkey()


def instruction(program: Pubkey, data: bytes, *accounts: Pubkey, signers: tuple[Pubkey, ...] = (US,)) -> Instruction:
    """Any instruction; every account is writable, as a program may always be offered more than it needs."""
    return Instruction(program, data, [AccountMeta(one, one in signers, True) for one in accounts])


def with_references(made: Instruction, *keys: Pubkey) -> Instruction:
    """The same with further accounts that neither sign nor are written, as Solana Pay has them."""
    return Instruction(
        made.program_id, bytes(made.data), [*made.accounts, *(AccountMeta(one, False, False) for one in keys)]
    )


def system(tag: int, rest: bytes, *accounts: Pubkey) -> Instruction:
    """An instruction of the system program."""
    return instruction(SYSTEM, tag.to_bytes(4, "little") + rest, *accounts)


def pay(lamports: int, to: Pubkey = THEM, source: Pubkey = US) -> Instruction:
    """A native transfer."""
    return system(2, lamports.to_bytes(8, "little"), source, to)


def token_account(owner: Pubkey, mint: Pubkey = MINT, program: Pubkey = TOKEN) -> Pubkey:
    """The associated token account of an owner."""
    return get_associated_token_address(owner, mint, program)


def pay_tokens(
    amount: int, to_account: Pubkey | None = None, mint: Pubkey = MINT, program: Pubkey = TOKEN, decimals: int = 6
) -> Instruction:
    """TransferChecked out of our associated account."""
    destination = to_account or token_account(THEM, mint, program)
    data = bytes([12]) + amount.to_bytes(8, "little") + bytes([decimals])
    return instruction(program, data, token_account(US, mint, program), mint, destination, US)


def pay_tokens_with_fee(amount: int, fee: int, mint: Pubkey = MINT, decimals: int = 6) -> Instruction:
    """TransferCheckedWithFee of Token-2022 out of our associated account."""
    data = bytes([26, 1]) + amount.to_bytes(8, "little") + bytes([decimals]) + fee.to_bytes(8, "little")
    source, destination = (token_account(owner, mint, TOKEN_2022) for owner in (US, THEM))
    return instruction(TOKEN_2022, data, source, mint, destination, US)


def revoke(account: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """Take back what a delegate may spend from our account."""
    return instruction(program, b"\x05", account, US)


def close(account: Pubkey, receiver: Pubkey = US, program: Pubkey = TOKEN) -> Instruction:
    """Close our token account."""
    return instruction(program, b"\x09", account, receiver, US)


def sync(account: Pubkey | None = None) -> Instruction:
    """Have the lamports of our wrapped SOL counted."""
    return instruction(TOKEN, b"\x11", account or token_account(US, WRAPPED_SOL))


def create_account(
    owner: Pubkey = THEM, mint: Pubkey = MINT, program: Pubkey = TOKEN, *, data: bytes = b"\x01"
) -> Instruction:
    """Create an associated token account at our expense."""
    return instruction(ASSOCIATED, data, US, token_account(owner, mint, program), owner, mint, SYSTEM, program)


def compute_limit(units: int) -> Instruction:
    """Set the compute unit limit."""
    return instruction(COMPUTE, b"\x02" + units.to_bytes(4, "little"))


def compute_price(micro_lamports: int) -> Instruction:
    """Set the compute unit price."""
    return instruction(COMPUTE, b"\x03" + micro_lamports.to_bytes(8, "little"))


def message(*instructions: Instruction, payer: Pubkey = US, blockhash: str | None = None) -> MessageV0:
    """A version 0 message."""
    return MessageV0.try_compile(payer, list(instructions), [], _hash(blockhash))


def legacy(*instructions: Instruction, payer: Pubkey = US, blockhash: str | None = None) -> Message:
    """A legacy message."""
    return Message.new_with_blockhash(list(instructions), payer, _hash(blockhash))


def encode(content: Message | MessageV0, signatures: list[Signature] | None = None) -> str:
    """A transaction in base64, unsigned unless signatures are given."""
    empty = [Signature.default()] * content.header.num_required_signatures
    return base64.b64encode(bytes(VersionedTransaction.populate(content, signatures or empty))).decode()


def _hash(text: str | None) -> Hash:
    return Hash.from_string(text) if text else Hash(b"\x09" * 32)
