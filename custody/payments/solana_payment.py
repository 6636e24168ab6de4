"""The transaction by which a Solana wallet pays what an offer demands: somebody else pays its fee, and signs last."""

import base64
from collections.abc import Mapping
from typing import Any, Final

from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.message import MessageV0
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.token.associated import get_associated_token_address
from solders.transaction import VersionedTransaction

from custody.chains.solana.programs import COMPUTE_BUDGET, MEMO_V2, SYSTEM, TOKEN
from custody.payments.offers import Terms

# What x402's own client sets; whom it pays takes no more.
_UNITS: Final = 20_000
_MICRO_LAMPORTS_PER_UNIT: Final = 1


def transaction(terms: Terms, wallet: str, nonce: bytes, blockhash: str | None) -> str:
    """Build the transaction, in base64, with nobody's signature in it. Its memo makes it another than the next one."""
    ours, mint, payer = (Pubkey.from_string(text) for text in (wallet, terms.contract, terms.third or wallet))
    source = get_associated_token_address(ours, mint, TOKEN)
    destination = get_associated_token_address(Pubkey.from_string(terms.pay_to), mint, TOKEN)
    accounts = [
        AccountMeta(source, is_signer=False, is_writable=True),
        AccountMeta(mint, is_signer=False, is_writable=False),
        AccountMeta(destination, is_signer=False, is_writable=True),
        AccountMeta(ours, is_signer=True, is_writable=False),
    ]
    moved = b"\x0c" + terms.amount.to_bytes(8, "little") + bytes([terms.decimals])
    memo = terms.memo.encode() if terms.memo is not None else nonce[:16].hex().encode()
    instructions = [
        Instruction(COMPUTE_BUDGET, b"\x02" + _UNITS.to_bytes(4, "little"), []),
        Instruction(COMPUTE_BUDGET, b"\x03" + _MICRO_LAMPORTS_PER_UNIT.to_bytes(8, "little"), []),
        Instruction(TOKEN, moved, accounts),
        Instruction(MEMO_V2, memo, []),
    ]
    recent = Hash.default() if blockhash is None else Hash.from_string(blockhash)
    message = MessageV0.try_compile(payer, instructions, [], recent)
    unsigned = [Signature.default()] * message.header.num_required_signatures
    return base64.b64encode(bytes(VersionedTransaction.populate(message, unsigned))).decode()


def names_sponsor(terms: Terms) -> bool:
    """Say whether the payment itself names whom the offer has pay the fee: nobody signs such a one, or could use it."""
    if terms.method != "solana":
        return False
    paid = get_associated_token_address(Pubkey.from_string(terms.pay_to), Pubkey.from_string(terms.contract), TOKEN)
    return terms.third in {terms.contract, *map(str, (paid, TOKEN, MEMO_V2, COMPUTE_BUDGET, SYSTEM))}


def payload(raw: bytes) -> Mapping[str, Any]:
    """Make what the server is given: the transaction, in which the payer's signature is still missing."""
    return {"transaction": base64.b64encode(raw).decode()}
