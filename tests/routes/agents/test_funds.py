"""Funds of an agent: exact, best effort, and unharmed by what a contract says. docs/wallets.md."""

from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from eth_abi import encode

from api.areas.funds import erc20, spl
from api.areas.funds.types import Held
from custody.chains import prices
from custody.chains.built_in import CHAINS
from custody.chains.evm.address import checksum
from custody.chains.family import Chain
from custody.chains.rpc import Rpc
from custody.kit.environment import BadSetting
from tests.fixtures.callers import ADDRESS, Agent, Tenant
from tests.outside.bad_node import BadNode, running_bad_node
from tests.outside.evm_node import EvmNode
from tests.outside.solana_node import SolanaNode

BALANCE_OF, SYMBOL, DECIMALS = 0x70A08231, 0x95D89B41, 0x313CE567
ONE = (1).to_bytes(32)
# More than a symbol: 256 KiB of nothing, and more memory than any gas pays for.
HUGE, ENDLESS = bytes.fromhex("620400006000f3"), bytes.fromhex("63ffffffff6000f3")
REVERTS = bytes.fromhex("600080fd")


def says(content: bytes) -> bytes:
    """A word of a contract, as it is returned for one selector."""
    return b"say" + content


def contract(words: dict[int, bytes]) -> bytes:
    """Runtime code that answers each selector with its word, or runs it where it is code; others revert."""
    # Which selector was called: ten bytes for each that it may be, then its part, then what the parts return.
    parts_at = 6 + 10 * len(words) + len(REVERTS)
    data_at = parts_at + sum(14 if word.startswith(b"say") else 1 + len(word) for word in words.values())
    head, parts, data = bytes.fromhex("60003560e01c"), b"", b""
    for selector, word in words.items():
        head += b"\x80\x63" + selector.to_bytes(4) + b"\x14\x60" + bytes([parts_at + len(parts)]) + b"\x57"
        if word.startswith(b"say"):
            size, begin = len(word) - 3, data_at + len(data)
            parts += bytes([0x5B, 0x60, size, 0x60, begin, 0x60, 0, 0x39, 0x60, size, 0x60, 0, 0xF3, 0])
            data += word[3:]
        else:
            parts += b"\x5b" + word
    return head + REVERTS + parts + data


def token(symbol: bytes, decimals: bytes | None = None) -> dict[int, bytes]:
    """A contract that holds one unit for everybody."""
    return {BALANCE_OF: says(ONE), SYMBOL: symbol, **({DECIMALS: decimals} if decimals else {})}


def tokens(agent: Agent, *addresses: str, chain: int = 31337) -> dict[str, Any]:
    return agent.ok("GET", f"/agents/{agent.id}/tokens?chainId={chain}&tokens={','.join(addresses)}")


def test_native_coin_and_tokens_are_exact_and_cut(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address, 1_234_567_890_123_456_789)
    usdx = evm_node.deploy_erc20(agent.evm_address, supply=1_234_567_890_123)

    found = tokens(agent, usdx, ADDRESS)

    assert found == {
        "agentId": agent.id,
        "walletAddress": agent.evm_address,
        "chainId": 31337,
        "native": {"symbol": "ETH", "balance": "1234567890123456789", "formatted": "1.234567"},
        "tokens": [
            {
                "address": usdx.lower(),
                "symbol": "USDX",
                "balance": "1234567890123",
                "formatted": "1234567.890123",
                "decimals": 6,
            },
            {
                "address": ADDRESS,
                "symbol": None,
                "balance": None,
                "formatted": None,
                "note": "No token at this address reports a balance.",
            },
        ],
    }


def test_an_account_tells_wallets_worth_and_what_they_may_be_asked(
    tenant: Tenant, agent: Agent, evm_node: EvmNode
) -> None:
    evm_node.fund(agent.evm_address, 5)
    priced = evm_node.deploy_erc20(agent.evm_address, symbol="PRICED", supply=2_500_000)

    found = tenant.ok("GET", f"/agents/{agent.id}/account?tokens={priced}")

    assert found == {
        "id": agent.id,
        "type": "agent",
        "agentId": agent.id,
        "walletAddress": agent.evm_address,
        "wallets": [
            {"chainFamily": "evm", "address": agent.evm_address},
            {"chainFamily": "solana", "address": agent.solana_address},
        ],
        "portfolio": {
            "chainId": 31337,
            "native": {"symbol": "ETH", "formatted": "0.000000"},
            "tokens": [
                {
                    "address": priced.lower(),
                    "symbol": "PRICED",
                    "balance": "2500000",
                    "formatted": "2.500000",
                    "usdValueText": "2.50",
                }
            ],
            "totalUsdText": "2.50",
        },
        "capabilities": ["sign", "sign-typed-data", "sign-message", "sign-solana"],
        "sponsorship": {"enabled": False},
    }
    tenant.ok("POST", f"/agents/{agent.id}/freeze", {})
    assert tenant.ok("GET", f"/agents/{agent.id}/account")["capabilities"] == []


def test_a_solana_wallet_tells_all_its_tokens_or_those_that_are_named(agent: Agent, solana_node: SolanaNode) -> None:
    solana_node.fund(agent.solana_address, 2_000_000_001)
    held, other = solana_node.create_mint(), solana_node.create_mint(0)
    solana_node.mint_to(held, agent.solana_address, 1_500_000)

    every = agent.ok("GET", f"/agents/{agent.id}/account?chainId=102")
    named = tokens(agent, other, held, held, chain=102)

    assert every["walletAddress"] == agent.solana_address
    assert every["portfolio"] == {
        "chainId": 102,
        "native": {"symbol": "SOL", "formatted": "2.000000", "usdValueText": "300.50"},
        "tokens": [{"address": held, "symbol": None, "balance": "1500000", "formatted": "1.500000"}],
        "totalUsdText": "300.50",
    }
    assert [(one["address"], one["balance"]) for one in named["tokens"]] == [(other, "0"), (held, "1500000")]


def test_a_node_that_is_away_is_a_note_and_no_failure(agent: Agent) -> None:
    found = tokens(agent, ADDRESS, chain=1)
    account = agent.ok("GET", f"/agents/{agent.id}/account?chainId=1")

    assert (found["native"], found["note"]) == (None, "No node address is configured for this chain.")
    assert found["tokens"] == [{"address": ADDRESS, "symbol": None, "balance": None, "formatted": None}]
    assert account["portfolio"] == {"chainId": 1, "native": None, "tokens": [], "note": found["note"]}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("tokens=0x12", "bad_token"),
        ("tokens=,", "bad_token"),
        (f"tokens={ADDRESS}&chainId=102", "bad_token"),
        ("tokens=" + checksum("0x" + "ab" * 20).swapcase().replace("0X", "0x"), "bad_token"),
        ("tokens=" + ",".join([ADDRESS] * 26), "too_many_tokens"),
        ("chainId=999", "unknown_chain"),
        ("chainId=x", "bad_query"),
        ("tokens=" + "1" * 2001, "bad_query"),
    ],
    ids=range(8),
)
@pytest.mark.parametrize("route", ["account", "tokens"])
def test_an_invalid_question_is_400(agent: Agent, route: str, query: str, code: str) -> None:
    answer = agent.get(f"/agents/{agent.id}/{route}?{query}")

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, code)


def test_twenty_five_tokens_may_be_named(agent: Agent) -> None:
    named = ["0x" + f"{number:040x}" for number in range(1, 26)]

    assert [one["address"] for one in tokens(agent, *named, chain=1)["tokens"]] == named


@pytest.mark.parametrize(
    ("words", "symbol", "formatted", "decimals"),
    [
        (token(says(b"MKR".ljust(32, b"\0")), says((18).to_bytes(32))), "MKR", "0.000000", 18),
        (token(HUGE, says((0).to_bytes(32))), None, "1.000000", 0),
        (token(ENDLESS), None, None, None),
        (token(REVERTS, REVERTS), None, None, None),
        (
            token(says(encode(["string"], ["A\u202eB\n\x1b[31m"])), says((-1).to_bytes(32, signed=True))),
            None,
            None,
            None,
        ),
        (token(says(b"\xff" * 32), says((78).to_bytes(32))), None, None, None),
        (token(says((32).to_bytes(32) + (2**255).to_bytes(32)), says(b"\x06")), None, None, None),
    ],
    ids=["bytes32", "huge", "endless", "reverts", "control characters", "no text", "a length that lies"],
)
def test_a_hostile_contract_spoils_no_more_than_its_own_line(
    agent: Agent,
    evm_node: EvmNode,
    words: dict[int, bytes],
    symbol: str | None,
    formatted: str | None,
    decimals: int | None,
) -> None:
    hostile, good = evm_node.deploy(contract(words)), evm_node.deploy_erc20(agent.evm_address)

    [bad, fine] = tokens(agent, hostile, good)["tokens"]

    assert bad.pop("decimals", None) == decimals
    assert bad == {"address": hostile.lower(), "symbol": symbol, "balance": "1", "formatted": formatted}
    assert (fine["symbol"], fine["formatted"]) == ("USDX", "1000000.000000")


@pytest.fixture(scope="module")
def lying() -> Iterator[BadNode]:
    """A node that says whatever a test tells it to."""
    with running_bad_node() as node:
        yield node


@pytest.fixture
async def rpc() -> AsyncIterator[Rpc]:
    async with Rpc() as one:
        yield one


def at(node: BadNode, family: str) -> Chain:
    found = next(chain for chain in CHAINS if chain.family == family)
    return Chain(id=found.id, family=found.family, name="", symbol="X", rpc_urls=(f"http://{node.address}",))


@pytest.mark.parametrize("answer", [None, 7, "0xzz", "0x", "0x01", "0x" + "00" * 33, {}, "f" * 64])
async def test_a_malformed_balance_counts_as_none(lying: BadNode, rpc: Rpc, answer: object) -> None:
    lying.results = {"eth_call": answer}

    [found] = await erc20.balances(rpc, at(lying, "evm"), ADDRESS, [ADDRESS])

    assert found == Held(ADDRESS, note="No token at this address reports a balance.")


async def test_accounts_of_others_and_absurd_amounts_are_not_counted(lying: BadNode, rpc: Rpc) -> None:
    def account(owner: str, amount: str, decimals: int = 2) -> dict[str, Any]:
        info = {"mint": "mint", "owner": owner, "tokenAmount": {"amount": amount, "decimals": decimals}}
        return {"account": {"data": {"parsed": {"info": info}}}}

    entries = [
        account("me", "5"),
        account("me", "6"),
        account("you", "100"),
        account("me", "-1"),
        account("me", "9" * 99),
    ]
    lying.results = {"getTokenAccountsByOwner": {"value": entries}}

    assert await spl.balances(rpc, at(lying, "solana"), "me", ["mint"]) == [Held("mint", amount=11, decimals=2)]


def price_list(folder: Path, text: str) -> prices.Prices:
    (folder / "prices.toml").write_text(text)
    return prices.load({"SERVICE_PRICES_FILE": str(folder / "prices.toml")})


def test_worth_is_exact_and_cut_to_the_cent(tmp_path: Path) -> None:
    found = price_list(tmp_path, 'ETH = "0.1"\nBIG = 123456789.123456789123456789\n"evm:1:0xAA" = 2')

    # In floats 3 * 0.1 is more than 0.3.
    assert prices.worth(found.find("evm:native", "eth"), 3 * 10**18, 18) == Decimal("0.3")
    big = prices.worth(found.find("x", "BIG"), 2**256 - 1, 0)
    assert f"{big:f}".replace(".", "") == str(123456789123456789123456789 * (2**256 - 1))
    assert prices.text(Decimal("0.999")) == "0.99"
    # The whole name of an asset counts before its symbol.
    assert found.find("evm:1:0xaa", "ETH") == 2
    assert found.find("evm:1:0xbb", "USDC") is None
    assert {prices.worth(*known) for known in ((None, 1, 1), (Decimal(1), None, 1), (Decimal(1), 1, None))} == {None}


@pytest.mark.parametrize(
    "text", ['ETH = "dear"', "ETH = true", "ETH = -1", 'ETH = "inf"', "ETH = nan", "[ETH]", "ETH", 'ETH = "1e99"']
)
def test_a_bad_list_of_prices_is_refused_at_the_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadSetting, match="SERVICE_PRICES_FILE"):
        price_list(tmp_path, text)
