"""The inhabitants of the tests' EVM chain: an agent, people, tokens, and contracts that call others."""

from functools import cache

from coincurve import PrivateKey

from custody.chains.evm.address import address_of
from tests.execution.chain import CHAIN_ID, Chain
from tests.execution.contracts import call, contracts_by_name

# Worthless keys: the chain exists in memory only.
KEY = PrivateKey(b"\x01" * 32)
AGENT = address_of(KEY.public_key.format(compressed=False)).lower()
SHOP, STRANGER, BLOCKED = "0x" + "51" * 20, "0x" + "52" * 20, "0x" + "53" * 20
PEOPLE = (SHOP, STRANGER, BLOCKED)
TOKEN, PLAIN, NFT, MULTI, VAULT, WRAPPED = ("0x" + f"a{index}" * 20 for index in range(6))
MULTICALL3, ROUTER, WALLET, SAFE = ("0x" + f"c{index}" * 20 for index in range(4))
PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
_SINGLETON = "0x" + "cf" * 20
CONTRACTS = {
    TOKEN: "Token",
    PLAIN: "PlainToken",
    NFT: "Nft",
    MULTI: "Multi",
    VAULT: "Vault",
    WRAPPED: "Wrapped",
    MULTICALL3: "Multicall3",
    ROUTER: "Router",
    WALLET: "Wallet",
    SAFE: "Safe",
    PERMIT2: "Permit2",
}
# What only the agent can dispose of.
OURS = frozenset((AGENT, WALLET, SAFE))
FUNGIBLE = (TOKEN, PLAIN, VAULT, WRAPPED)
HELD = 1_000
ALLOWED = 60
COINS = 10**18
NFTS = range(8)
ZERO = "0x" + "00" * 20


def raw(address: str) -> bytes:
    """The 20 bytes."""
    return bytes.fromhex(address[2:])


def asset(contract: str) -> str:
    """The asset name of a token."""
    return f"evm:{CHAIN_ID}:{contract}"


@cache
def world() -> Chain:
    """The chain as every case begins: the agent, its wallet and its Safe hold something of everything.

    Router, wallet, vault and Permit2 have allowances of the agent, as they have where agents trade.
    """
    chain, code = Chain(), contracts_by_name()
    us = raw(AGENT)
    made = {address: ([], []) for address in CONTRACTS} | {
        VAULT: (["address"], [TOKEN]),
        ROUTER: (["address"], [PERMIT2]),
        WALLET: (["address"], [AGENT]),
        SAFE: (["address"], [_SINGLETON]),
    }
    chain.place(raw(_SINGLETON), code["Safe"].code([], []))
    for address, arguments in made.items():
        name = CONTRACTS[address]
        chain.place(raw(address), code["SafeProxy" if name == "Safe" else name].code(*arguments))
    setup = "setup(address[],uint256,address,bytes,address,address,uint256,address)"
    chain.do(us, raw(SAFE), call("Safe", setup, [AGENT], 1, ZERO, b"", ZERO, ZERO, 0, ZERO))
    for who in (*OURS, *PEOPLE, ROUTER, WRAPPED):
        chain.fund(raw(who), COINS)
    for who in (*OURS, ROUTER, STRANGER):
        for token in (TOKEN, PLAIN):
            chain.do(us, raw(token), call(CONTRACTS[token], "mint(address,uint256)", who, HELD))
        chain.do(raw(who), raw(WRAPPED), call("Wrapped", "deposit()"), HELD)
        chain.fund(raw(who), COINS)
    for number in NFTS:
        chain.do(us, raw(NFT), call("Nft", "mint(address,uint256)", AGENT, number))
        # A receiver that has code would have to answer; the agent has none.
        chain.do(us, raw(MULTI), call("Multi", "mint(address,uint256,uint256)", AGENT, number, HELD))
    chain.do(us, raw(TOKEN), call("Token", "approve(address,uint256)", VAULT, ALLOWED))
    chain.do(us, raw(VAULT), call("Vault", "deposit(uint256,address)", ALLOWED // 2, AGENT))
    for token, spender in ((TOKEN, ROUTER), (PLAIN, ROUTER), (TOKEN, WALLET), (TOKEN, PERMIT2), (PLAIN, PERMIT2)):
        chain.do(us, raw(token), call(CONTRACTS[token], "approve(address,uint256)", spender, ALLOWED))
    approve = "approve(address,address,uint160,uint48)"
    chain.do(us, raw(PERMIT2), call("Permit2", approve, TOKEN, ROUTER, ALLOWED // 2, 2**48 - 1))
    chain.settle()
    return chain
