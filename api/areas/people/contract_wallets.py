"""EIP-1271: a contract wallet has no key, so its contract is asked whether it agrees.

What is asked is a stranger's choice: any code of any address. So it is asked only where the signer found nothing else
wrong, once for a nonce, with little gas, and of few at a time.
"""

import asyncio
from typing import Final

from custody.chains.evm.personal_message import digest
from custody.chains.rpc import RpcRefused
from custody.identity import siwe
from custody.kit.errors import Unavailable
from custody.ports import Ports
from custody.protocol.identity.refusals import SignatureInvalid

# Enough for wallets of many owners and for curves that a contract computes itself; a node needs milliseconds for it.
GAS: Final = 1_000_000
AT_ONCE: Final = 8
_IS_VALID_SIGNATURE: Final = bytes.fromhex("1626ba7e")
_AGREES: Final = "0x" + _IS_VALID_SIGNATURE.ljust(32, b"\0").hex()
_asking = asyncio.Semaphore(AT_ONCE)


class ContractsBusy(Unavailable):
    """Too many contract-wallet checks are running; get another nonce and retry shortly."""


async def demand_agreement(ports: Ports, message: str, signature: str) -> None:
    """Raise SignatureInvalid unless the address in the message is a contract that takes the signature for its own.

    Also where the chain has no node to ask. RpcUnavailable when the node does not answer.
    """
    said = siwe.parse(message)
    chain = ports.chains.find(said.chain_id)
    if chain is None or chain.family != "evm" or not chain.rpc_urls:
        raise SignatureInvalid
    if _asking.locked():
        raise ContractsBusy
    question = {"to": said.address, "data": "0x" + _question(message, signature).hex(), "gas": hex(GAS)}
    async with _asking:
        try:
            answer = await ports.rpc.apart.call(chain.rpc_urls, "eth_call", [question, "latest"])
        except RpcRefused:
            raise SignatureInvalid from None
    if answer != _AGREES:
        raise SignatureInvalid


def _question(message: str, signature: str) -> bytes:
    """The call `isValidSignature(bytes32,bytes)`."""
    raw = bytes.fromhex(signature.removeprefix("0x"))
    padded = raw.ljust(-(-len(raw) // 32) * 32, b"\0")
    return _IS_VALID_SIGNATURE + digest(message) + (64).to_bytes(32, "big") + len(raw).to_bytes(32, "big") + padded
