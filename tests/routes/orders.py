"""Orders as agents send them: typed data and Solana transactions, with good defaults."""

import base64
from typing import Any

from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from tests.fixtures.callers import Agent
from tests.outside import solana_messages
from tests.outside.solana_messages import ASSOCIATED, SYSTEM, TOKEN, instruction, token_account

TOKEN_CONTRACT = "0x" + "33" * 20
SPENDER = "0x" + "44" * 20
SELLER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
UNLIMITED = 2**256 - 1
CHAIN = 31337
SOLANA_CHAIN = 102
RECEIVER = str(Keypair.from_seed(b"\x05" * 32).pubkey())


def mail(text: str = "Hello, Bob!") -> dict[str, Any]:
    """The example of EIP-712, which is known to move nothing."""
    person = [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}]
    fields = [("from", "Person"), ("to", "Person"), ("contents", "string")]
    somebody = {"name": "Bob", "wallet": SPENDER}
    return {
        "domain": {"name": "Ether Mail", "version": "1", "chainId": CHAIN, "verifyingContract": TOKEN_CONTRACT},
        "types": {"Person": person, "Mail": [{"name": name, "type": kind} for name, kind in fields]},
        "primaryType": "Mail",
        "value": {"from": somebody, "to": somebody, "contents": text},
    }


def note(text: str = "hello") -> dict[str, Any]:
    """A document of a kind that nobody knows, signed at once where no rule limits spend or addresses."""
    return {
        "domain": {"name": "Notes", "chainId": CHAIN},
        "types": {"Note": [{"name": "text", "type": "string"}]},
        "primaryType": "Note",
        "value": {"text": text},
    }


def message(text: str = "hello", family: str = "evm") -> dict[str, Any]:
    """A plain message, signed at once where no rule limits anything."""
    return {"chainFamily": family, "message": text}


def permit(owner: str, value: int, *, contract: str = TOKEN_CONTRACT) -> dict[str, Any]:
    """An ERC-2612 Permit: its holder may spend the owner's tokens."""
    kinds = [("owner", "address"), ("spender", "address"), ("value", "uint256"), ("nonce", "uint256")]
    fields = [{"name": name, "type": kind} for name, kind in [*kinds, ("deadline", "uint256")]]
    return {
        "domain": {"name": "USDX", "version": "1", "chainId": CHAIN, "verifyingContract": contract},
        "types": {"Permit": fields},
        "primaryType": "Permit",
        "value": {"owner": owner, "spender": SPENDER, "value": str(value), "nonce": "0", "deadline": "9999999999"},
    }


def solana_payment(agent: Agent, lamports: int, *, to: str = RECEIVER, blockhash: str | None = None) -> dict[str, Any]:
    """A native payment out of an agent's wallet."""
    us = Pubkey.from_string(agent.solana_address)
    data = (2).to_bytes(4, "little") + lamports.to_bytes(8, "little")
    pay = instruction(SYSTEM, data, us, Pubkey.from_string(to), signers=(us,))
    return _order(us, to, str(lamports), blockhash, pay)


def token_payment(
    agent: Agent, mint: str, amount: int, *, to: str = RECEIVER, blockhash: str | None = None, creates: bool = False
) -> dict[str, Any]:
    """An SPL TransferChecked between associated token accounts; `creates` the receiver's first, at our expense."""
    us, token = Pubkey.from_string(agent.solana_address), Pubkey.from_string(mint)
    accounts = (token_account(us, token), token, token_account(Pubkey.from_string(to), token), us)
    data = bytes([12]) + amount.to_bytes(8, "little") + bytes([6])
    owner = Pubkey.from_string(to)
    first = instruction(ASSOCIATED, b"\x01", us, accounts[2], owner, token, SYSTEM, TOKEN, signers=(us,))
    payment = instruction(TOKEN, data, *accounts, signers=(us,))
    return _order(us, to, "0", blockhash, *((first, payment) if creates else (payment,)))


def with_sponsor(order: dict[str, Any], payer: Pubkey) -> dict[str, Any]:
    """The same order in a message whose fee somebody else pays, who has not signed yet."""
    content = VersionedTransaction.from_bytes(base64.b64decode(order["transaction"])).message
    keys = content.account_keys
    made = [
        Instruction(
            keys[one.program_id_index],
            bytes(one.data),
            [
                AccountMeta(keys[place], content.is_signer(place), content.is_maybe_writable(place))
                for place in one.accounts
            ],
        )
        for one in content.instructions
    ]
    message = solana_messages.message(*made, payer=payer, blockhash=str(content.recent_blockhash))
    return {**order, "transaction": solana_messages.encode(message)}


def unknown_instruction(agent: Agent) -> dict[str, Any]:
    """A call of a program that nobody here knows."""
    us = Pubkey.from_string(agent.solana_address)
    stranger = Keypair.from_seed(b"\x06" * 32).pubkey()
    return _order(us, RECEIVER, "1", None, instruction(stranger, b"\x01", us, signers=(us,)))


def _order(us: Pubkey, to: str, value: str, blockhash: str | None, *instructions: Any) -> dict[str, Any]:
    message = solana_messages.message(*instructions, payer=us, blockhash=blockhash)
    return {
        "transaction": solana_messages.encode(message),
        "to": to,
        "value": value,
        "chainId": SOLANA_CHAIN,
        "broadcast": False,
    }


def payment_offer(**changed: object) -> dict[str, Any]:
    """An offer of a server by x402, version 2, for the local chain."""
    return {
        "scheme": "exact",
        "network": f"eip155:{CHAIN}",
        "amount": "60",
        "asset": TOKEN_CONTRACT,
        "payTo": SELLER,
        "maxTimeoutSeconds": 120,
        "extra": {"name": "USDX", "version": "1"},
    } | changed


def payment_demand(*offers: dict[str, Any], **changed: object) -> dict[str, Any]:
    """A demand with these offers."""
    resource = {"url": "https://api.example.com/weather?q=1", "description": "Weather\u202e today"}
    return {"x402Version": 2, "resource": resource, "accepts": list(offers or (payment_offer(),))} | changed
