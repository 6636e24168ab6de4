"""Demands of servers by x402: what is read of them, and what is left unpaid where it is not quite a demand."""

import base64
import json
from typing import Any

import msgspec
import pytest
from solders.pubkey import Pubkey
from solders.token.associated import get_associated_token_address

from custody.chains.chains_file import load
from custody.chains.orders import load_order
from custody.chains.solana.programs import COMPUTE_BUDGET, MEMO_V2, SYSTEM, TOKEN
from custody.chains.table import ChainTable
from custody.payments.choice import Allowed, choose
from custody.payments.demand import (
    MAX_BYTES,
    MAX_OFFERS,
    MAX_WORDS,
    Demand,
    read_answer,
    read_header,
    read_object,
    words,
)
from custody.payments.offers import Terms, terms_of
from custody.payments.orders import order_of
from custody.protocol.signer.payment_routes import PaidRequest
from tests.fixtures.each import each

USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
SELLER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
FACILITATOR = "0x8d170db9ab247e7013d024566093e13dc7b0f181"
SOLANA_USDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
SOLANA_SELLER = "2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4"
SPONSOR = "EwWqGE4ZFKLofuestmU4LDdK7XM1N4ALgdZccwYugwGd"
ASSET = f"evm:84532:{USDC.lower()}"
CHAINS_FILE = f"""
[[chains]]
id = 101
[[chains.tokens]]
address = "{SOLANA_USDC}"
symbol = "USDC"
decimals = 6
[[chains]]
id = 8453
[[chains.tokens]]
address = "{USDC}"
symbol = "USDC"
decimals = 6
eip712_name = "USD Coin"
eip712_version = "2"
"""


@pytest.fixture(name="chains", scope="module")
def chains_fixture(tmp_path_factory: pytest.TempPathFactory) -> ChainTable:
    """The chains that are built in, with two tokens of an operator."""
    file = tmp_path_factory.mktemp("chains") / "chains.toml"
    file.write_text(CHAINS_FILE)
    return load({"SERVICE_CHAINS_FILE": str(file)})


def v2_offer(**changed: object) -> dict[str, object]:
    """An offer of version 2, as the specification shows one."""
    return {
        "scheme": "exact",
        "network": "eip155:84532",
        "amount": "10000",
        "asset": USDC,
        "payTo": SELLER,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "USDC", "version": "2"},
    } | changed


def v2_demand(*offers: object, **changed: object) -> dict[str, object]:
    """A demand of version 2."""
    resource = {"url": "https://api.example.com/weather", "description": "Weather", "mimeType": "application/json"}
    return {"x402Version": 2, "error": "pay", "resource": resource, "accepts": list(offers or (v2_offer(),))} | changed


def v1_offer(**changed: object) -> dict[str, object]:
    """An offer of version 1."""
    one = v2_offer(network="base-sepolia", resource="https://api.example.com/weather", description="Weather")
    return {**one, "maxAmountRequired": one.pop("amount"), "mimeType": "", "outputSchema": None} | changed


def v1_demand(*offers: object, **changed: object) -> dict[str, object]:
    """A demand of version 1."""
    return {"x402Version": 1, "error": "pay", "accepts": list(offers or (v1_offer(),))} | changed


def header(demand: object) -> str:
    """A demand as the header carries it."""
    return base64.b64encode(json.dumps(demand).encode()).decode()


def chosen_from(demand: object, chains: ChainTable, allowed: Allowed | None = None) -> Terms | None:
    """The offer of a demand of version 2 that is chosen."""
    found = read_header(header(demand))
    return None if found is None else choose(found, chains, allowed or Allowed())


def as_shown(demand: Demand | None) -> tuple[Any, ...]:
    """Tell what people are shown of a demand."""
    assert demand is not None
    return demand.version, demand.resource, demand.description, demand.error


def test_both_versions_are_read(chains: ChainTable) -> None:
    """The header is version 2, the body version 1; each offer comes to the same terms, its text as it came."""
    second, first = read_answer([header(v2_demand())], b""), read_answer([], json.dumps(v1_demand()).encode())
    assert as_shown(second)[1:] == as_shown(first)[1:] == ("https://api.example.com/weather", "Weather", "pay")
    assert second is not None
    assert first is not None
    read = [choose(demand, chains, Allowed()) for demand in (second, first)]
    for terms, offer in zip(read, (v2_offer(), v1_offer()), strict=True):
        assert terms is not None
        assert terms.offer.text == json.dumps(offer)
        paid = (terms.network, terms.asset, terms.amount, terms.pay_to, terms.seconds, terms.name, terms.version)
        assert paid == ("eip155:84532", ASSET, 10_000, SELLER.lower(), 60, "USDC", "2")


NO_DEMANDS: dict[str, tuple[list[str], bytes]] = {
    "not base64": (["%%%"], b""),
    "base64 of a browser's alphabet": ([header(v2_demand(error="?>?>")).replace("/", "_")[:-1] + "_"], b""),
    "not json": ([base64.b64encode(b"{").decode()], b""),
    "a list": ([header([])], b""),
    "no object": ([header(2)], b""),
    "depth 1,000": ([base64.b64encode(b"[" * 1000 + b"]" * 1000).decode()], b""),
    "depth 100": ([header(v2_demand(extensions=json.loads('{"a":' * 100 + "1" + "}" * 100)))], b""),
    "a key twice": ([base64.b64encode(b'{"x402Version":2,' + json.dumps(v2_demand())[1:].encode()).decode()], b""),
    "17 KiB": ([header(v2_demand(error="x" * 17 * 1024))], b""),
    "a body of 17 KiB": ([], json.dumps(v1_demand(error="x" * 17 * 1024)).encode()),
    "nine offers": ([header(v2_demand(*[v2_offer()] * (MAX_OFFERS + 1)))], b""),
    "no offer": ([header(v2_demand(accepts=[]))], b""),
    "version 3": ([header(v2_demand(x402Version=3))], b""),
    "version of text": ([header(v2_demand(x402Version="2"))], b""),
    "version 1 in the header": ([header(v1_demand())], b""),
    "version 2 in the body": ([], json.dumps(v2_demand()).encode()),
    "two headers": ([header(v2_demand())] * 2, b""),
    "a number beyond 64 bits": ([header(v2_demand(v2_offer(maxTimeoutSeconds=10**30)))], b""),
    "a lone surrogate": ([base64.b64encode(json.dumps(v2_demand(error="\ud800")).encode()).decode()], b""),
    "utf-16": ([base64.b64encode(json.dumps(v2_demand()).encode("utf-16")).decode()], b""),
    "a header that is unread beside a body": (["%%%"], json.dumps(v1_demand()).encode()),
}


@each("name", NO_DEMANDS)
def test_an_unreadable_demand_is_none(name: str) -> None:
    """It is none, and never an exception; the same without its fault is read."""
    headers, body = NO_DEMANDS[name]
    assert read_answer(headers, body) is None


def test_the_header_stands_above_the_body() -> None:
    """A demand of version 2 in the header is the demand, whatever the body says."""
    found = read_answer([header(v2_demand())], json.dumps(v1_demand(v1_offer(payTo=FACILITATOR))).encode())
    assert as_shown(found)[0] == 2


def test_as_much_as_may_be_is_read() -> None:
    """Each bound is held by what is just within it."""
    full = v2_demand(*[v2_offer()] * MAX_OFFERS, error="")
    full["error"] = "x" * (MAX_BYTES - len(json.dumps(full)))
    assert read_object(json.dumps(full).encode()) is not None
    full["error"] = f"{full['error']}x"
    assert read_object(json.dumps(full).encode()) is None


NOT_ACCEPTABLE: dict[str, dict[str, object]] = {
    **{
        f"amount {amount[:8]}": {"amount": amount}
        for amount in ("0", "-1", "1.0", "0x10", "01", "", " 1", "1\n", "\u0661")
    },
    "amount 2^256": {"amount": str(2**256)},
    "amount of 79 digits": {"amount": "1" * 79},
    "amount as a number": {"amount": 10000},
    "scheme": {"scheme": "batch-settlement"},
    "upto where exact alone is allowed": {"scheme": "upto", "extra": {"facilitatorAddress": FACILITATOR}},
    "unknown network": {"network": "eip155:84533"},
    "nickname in version 2": {"network": "base-sepolia"},
    "network of no form": {"network": "84532"},
    "wrong checksum": {"payTo": SELLER.replace("B", "b")},
    "recipient of another family": {"payTo": SOLANA_SELLER},
    "asset of no form": {"asset": "USDC"},
    "no recipient": {"payTo": ""},
    "no domain": {"extra": {}},
    "a domain without version": {"extra": {"name": "USDC"}},
    "a domain's name of 129 characters": {"extra": {"name": "x" * 129, "version": "2"}},
    "another way to transfer": {"extra": {"name": "USDC", "version": "2", "assetTransferMethod": "erc7710"}},
    "text of more than 2 KiB": {"extra": {"name": "USDC", "version": "2", "more": "x" * 2049}},
    "seconds as text": {"maxTimeoutSeconds": "60"},
    "null": {"payTo": None},
}


@pytest.mark.parametrize("name", NOT_ACCEPTABLE)
def test_an_offer_that_cannot_be_paid_is_passed_over(chains: ChainTable, name: str) -> None:
    """Alone it is not paid; with one behind it that can be, that is."""
    bad, good = v2_offer(**NOT_ACCEPTABLE[name]), v2_offer(amount="7")
    assert chosen_from(v2_demand(bad), chains) is None
    terms = chosen_from(v2_demand(bad, good), chains)
    assert terms is not None
    assert terms.amount == 7


@pytest.mark.parametrize(("said", "meant"), [(10**9, 300), (301, 300), (60, 60), (29, 30), (0, 30), (-1, 30)])
def test_seconds_stay_within_bounds(chains: ChainTable, said: int, meant: int) -> None:
    """Whatever an offer says, a payment can be used for 30 seconds to five minutes."""
    terms = chosen_from(v2_demand(v2_offer(maxTimeoutSeconds=said)), chains)
    assert terms is not None
    assert terms.seconds == meant


def test_the_servers_order_decides_among_what_is_allowed(chains: ChainTable) -> None:
    """The first that is allowed; another contract with the same symbol is not, and nothing listed is nothing paid."""
    other = v2_offer(asset=SELLER, amount="1")
    demand = v2_demand(other, v2_offer(amount="2"), v2_offer(amount="3"))
    found = [chosen_from(demand, chains, Allowed(assets=each)) for each in (None, frozenset({ASSET}), frozenset[str]())]
    assert [terms.amount if terms else None for terms in found] == [1, 2, None]


def test_the_operators_token_names_its_domain(chains: ChainTable) -> None:
    """Name and version that the operator gives are used, and the offer's are not."""
    terms = chosen_from(v2_demand(v2_offer(network="eip155:8453", extra={"name": "Other", "version": "9"})), chains)
    assert terms is not None
    assert (terms.name, terms.version) == ("USD Coin", "2")


def test_each_way_to_pay_is_told(chains: ChainTable) -> None:
    """Permit2 in both schemes, and Solana, whose decimals are the operator's."""
    permit2 = chosen_from(v2_demand(v2_offer(extra={"assetTransferMethod": "permit2"})), chains)
    upto = v2_demand(v2_offer(scheme="upto", extra={"facilitatorAddress": FACILITATOR}))
    counted = chosen_from(upto, chains, Allowed(schemes=frozenset({"upto"})))
    solana = v2_offer(
        network="solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
        asset=SOLANA_USDC,
        payTo=SOLANA_SELLER,
        extra={"feePayer": SPONSOR, "memo": "order 7"},
    )
    sponsored = chosen_from(v2_demand(solana), chains)
    assert permit2 is not None
    assert counted is not None
    assert sponsored is not None
    assert [permit2.method, counted.method, sponsored.method] == ["permit2", "upto", "solana"]
    assert (counted.third, sponsored.third) == (FACILITATOR.lower(), SPONSOR)
    assert (sponsored.asset, sponsored.decimals, sponsored.memo) == (f"solana:{SOLANA_USDC}", 6, "order 7")
    memos = [{"extra": {"feePayer": SPONSOR, "memo": "é" * count}} for count in (128, 129)]
    assert chosen_from(v2_demand(solana | memos[0]), chains) is not None
    unsponsored = ({"extra": {}}, {"extra": {"feePayer": USDC}})
    for changed in ({"asset": SOLANA_SELLER}, {"amount": str(2**64)}, *unsponsored, memos[1]):
        assert chosen_from(v2_demand(solana | changed), chains) is None


def test_an_offer_that_names_its_sponsor_gives_way_to_the_next(chains: ChainTable) -> None:
    """An account that the payment itself names cannot sign last, and what nobody can use is not made."""
    network, paid = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", get_associated_token_address
    account = str(paid(Pubkey.from_string(SOLANA_SELLER), Pubkey.from_string(SOLANA_USDC), TOKEN))

    def offer(sponsor: str) -> dict[str, Any]:
        extra = {"feePayer": sponsor}
        return v2_offer(network=network, asset=SOLANA_USDC, payTo=SOLANA_SELLER, extra=extra)

    for useless in (SOLANA_USDC, account, *map(str, (TOKEN, MEMO_V2, COMPUTE_BUDGET, SYSTEM))):
        assert chosen_from(v2_demand(offer(useless)), chains) is None, useless
        found = chosen_from(v2_demand(offer(useless), offer(SPONSOR)), chains)
        assert found is not None
        assert found.third == SPONSOR
    # Who is paid may pay the fee as well.
    assert chosen_from(v2_demand(offer(SOLANA_SELLER)), chains) is not None


def test_a_nickname_is_read_in_version_1_alone(chains: ChainTable) -> None:
    """And CAIP-2 in version 2 alone, so that an offer has one meaning."""
    found = read_object(json.dumps(v1_demand(v1_offer(network="eip155:84532"), v1_offer(network="base"))).encode())
    assert found is not None
    assert [terms.network if (terms := terms_of(offer, chains)) else None for offer in found.offers] == [
        None,
        "eip155:8453",
    ]


def test_an_order_for_the_longest_request_is_read_again_as_it_was_kept(chains: ChainTable) -> None:
    """A person approves what was kept, whatever the proxy let through."""
    longest = PaidRequest(method="A" * 20, host="h" * 254 + ":65535", path="/" * 32_768, body_hash="0" * 64)
    demand = read_object(json.dumps(v2_demand()).encode())
    assert demand is not None
    terms = terms_of(demand.offers[0], chains)
    assert terms is not None

    order = order_of(demand, terms, method=longest.method, host=longest.host, path=longest.path)

    assert msgspec.json.decode(msgspec.json.encode(longest), type=PaidRequest) == longest
    assert load_order("x402", msgspec.json.encode(order).decode()) == order


def test_words_of_strangers_are_cut() -> None:
    """Printable characters alone, and not many: no line break, no control, nothing that turns the text around."""
    assert words("a\nb\x1b[31m\u202ec\x00" + "d" * 300) == ("ab[31mc" + "d" * 300)[:MAX_WORDS]
    assert words(None) == ""
