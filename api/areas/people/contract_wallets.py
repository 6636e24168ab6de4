"""EIP-1271: a contract wallet has no key, so its contract is asked whether it agrees.

What is asked is a stranger's choice: any code of any address. So it is asked only where the signer found nothing else
wrong, once for a nonce, with little gas, and of few at a time. A wallet that is not on the chain yet (ERC-6492) is put
there within that one question, which changes nothing.
"""

import asyncio
from typing import Final

from custody.chains.evm.personal_message import digest
from custody.chains.evm.undeployed import BadWrapper, build_question, unwrap
from custody.chains.rpc import RpcRefused
from custody.identity import siwe
from custody.kit.errors import Unavailable
from custody.ports import Ports
from custody.protocol.identity.refusals import SignatureInvalid

# Enough for wallets of many owners and for curves that a contract computes itself; a node needs milliseconds for it.
GAS: Final = 1_000_000
# To put a wallet on the chain beside it: those of the field take 200,000 to 500,000.
GAS_UNDEPLOYED: Final = 2_000_000
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
    question = _call(said.address, digest(message), bytes.fromhex(signature.removeprefix("0x")))
    async with _asking:
        try:
            answer = await ports.rpc.apart.call(chain.rpc_urls, "eth_call", [question, "latest"])
        except RpcRefused:
            raise SignatureInvalid from None
    if answer != _AGREES:
        raise SignatureInvalid


def _call(address: str, hashed: bytes, signature: bytes) -> dict[str, str]:
    """The `eth_call` that asks the wallet; one without `to` where the signature brings the wallet's deployment."""
    try:
        wrapped = unwrap(signature)
    except BadWrapper:
        raise SignatureInvalid from None
    if wrapped is None:
        return {"to": address, "data": "0x" + _question(hashed, signature).hex(), "gas": hex(GAS)}
    code = build_question(bytes.fromhex(address[2:]), wrapped, _question(hashed, wrapped.signature))
    return {"data": "0x" + code.hex(), "gas": hex(GAS_UNDEPLOYED)}


def _question(hashed: bytes, signature: bytes) -> bytes:
    """The call `isValidSignature(bytes32,bytes)`."""
    padded = signature.ljust(-(-len(signature) // 32) * 32, b"\0")
    return _IS_VALID_SIGNATURE + hashed + (64).to_bytes(32) + len(signature).to_bytes(32) + padded
