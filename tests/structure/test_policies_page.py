"""The pages on policies say what the code does: fields come from the structs, examples are parsed and judged."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from eth_abi import encode

from custody.chains.bitcoin.networks import NETWORKS
from custody.chains.chains_file import load
from custody.chains.evm.calldata import decode
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.message_effects import subject_of
from custody.chains.message_orders import EvmMessageOrder
from custody.chains.message_reading import read
from custody.chains.solana.family import SOLANA_NATIVE
from custody.chains.types import Call, Effect, Subject
from custody.chains.units import SOLANA_RENT
from custody.policies.judge import judge
from custody.policies.kinds import KINDS, PolicyRule
from custody.policies.rules import MAX_BYTES, MAX_RULES, MAX_VALUES, parse
from custody.policies.types import Facts, Spend

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "policies.md").read_text()
OVERVIEW = PAGE.split("\n## Every type of rule\n")[0]
SECTIONS = dict(re.findall(r"^## `([a-z-]+)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
MONDAY_NOON = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC)

# ---- the fields, from the structs


def rows_of(kind: str) -> list[str]:
    """The rows of the table of fields, as the page must have them."""
    (found,), components = msgspec.json.schema_components([KINDS[kind]], ref_template="{name}")
    config = components[components[found["$ref"]]["properties"]["config"]["$ref"]]
    return list(_rows("", config, components))


def _rows(prefix: str, struct: dict[str, Any], components: dict[str, Any]) -> Any:
    for name, field in struct["properties"].items():
        shape = next((one for one in field.get("anyOf", ()) if one != {"type": "null"}), field)
        default = "needed" if name in struct["required"] else "none"
        if "default" in field:
            default = f"`{msgspec.json.encode(field['default']).decode()}`"
        unit = field.get("x-service-unit", "")
        yield f"| `{prefix}{name}` | {_type(shape)} | {unit} | {default} | {field['description']} |"
        mark, inner = ("[].", shape.get("items")) if "items" in shape else (".*.", shape.get("additionalProperties"))
        if inner and "$ref" in inner:
            yield from _rows(f"{prefix}{name}{mark}", components[inner["$ref"]], components)


def _type(shape: dict[str, Any]) -> str:
    if "enum" in shape:
        return " or ".join(f"`{one}`" for one in shape["enum"])
    if "anyOf" in shape:
        return " or ".join(_type(one) for one in shape["anyOf"])
    kind = shape.get("type")
    if kind == "array":
        least, most = shape.get("minItems"), shape.get("maxItems")
        bounds = f", at least {least}" if least else f", at most {most}" if most else ""
        return f"list of {_type(shape['items'])}{bounds}"
    if kind == "integer":
        most = "2^53" if shape["maximum"] == 2**53 else shape["maximum"]
        return f"whole number, {shape['minimum']} to {most}"
    if kind == "object":
        return "object by selector"
    if "pattern" not in shape:
        return "object" if kind is None else "text"
    if shape["pattern"].startswith("^(0|[1-9]"):
        return "decimal text, 0 to 2^256-1"
    if "{8}-" in shape["pattern"]:
        return "UUID"
    if "{8}" in shape["pattern"]:
        return "8 hex digits, with or without `0x`"
    return f"text, {shape['minLength']} to {shape['maxLength']} characters"


def test_the_page_has_every_type_and_no_other() -> None:
    assert list(SECTIONS) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_lists_the_fields_of_the_structs(kind: str) -> None:
    listed = [line for line in SECTIONS[kind].splitlines() if re.match(r"\| `[a-z]", line)]

    assert listed == rows_of(kind)


# ---- the examples, judged

TOKEN, SHOP, STRANGER = "0x" + "7a" * 20, "0x" + "11" * 20, "0x" + "22" * 20
WALLET, ROUTER = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0x7a250d5630b4cf539739df2c5dacb4c659f2488d"
ETH = 10**18
RENT = 2_039_280
MINT, OWNER = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", "3uTFpmpBvStn9yCtFNvPQXqX7SsXwZwQXLLsUdMTEcBZ"
UNITS = load({}).units


def pays(amount: int, to: str = SHOP, chain: int = 1) -> Subject:
    effect = Effect("transfer", EVM_NATIVE, amount, None, to)
    return Subject("evm", "evm", chain, f"eip155:{chain}", to, (effect,))


def pays_bitcoins(network: str) -> Subject:
    paid = Effect("transfer", "bitcoin", 50_000, None, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
    return Subject("bitcoin", "bitcoin", None, NETWORKS[network].caip2, paid.to, (paid,), listed=True)


def calls(selector: str, recipient: str, amount: int) -> Subject:
    call = Call(1, TOKEN, selector, recipient=recipient, amount=amount, decoded=selector == "0xa9059cbb")
    moved = Effect("transfer", f"evm:1:{TOKEN}", amount, None, recipient, call=call)
    effect = moved if call.decoded else Effect("unread", None, 0, None, TOKEN, call=call)
    return Subject("evm", "evm", 1, "eip155:1", TOKEN, (effect,), (call,))


def swaps(amount: int = 5, to: str = WALLET, by: str = SHOP, more: bytes = b"") -> Subject:
    arguments = encode(["uint256", "uint256", "address[]", "address", "uint256"], [amount, 1, [TOKEN, by], to, 2**31])
    effects, calls = decode(ROUTER, 0, bytes.fromhex("38ed1739") + arguments + more, 1, WALLET)
    return Subject("evm", "evm", 1, "eip155:1", ROUTER, effects, calls)


def pays_tokens(rent: int = 0) -> Subject:
    """50 units of a token of Solana, to an owner whose token account is paid for if it is new."""
    paid = Effect("transfer", f"solana:{MINT}", 50, None, OWNER)
    account = Effect("fee", SOLANA_NATIVE, rent, None, OWNER, label="rent")
    return Subject("solana", "solana", 101, None, OWNER, (paid, account) if rent else (paid,))


def at(now: datetime = MONDAY_NOON, **facts: Any) -> Facts:
    return Facts(now=now, units=UNITS, **facts)


def signs(text: str) -> Subject:
    return subject_of(EvmMessageOrder(text), read("evm", text, None), WALLET, 1, "eip155:1")


def signs_in(site: str, uri: str = "", days: int = 0) -> Subject:
    issued = (MONDAY_NOON + timedelta(days=days)).isoformat()
    return signs(
        f"{site} wants you to sign in with your Ethereum account:\n{WALLET}\n\n\nURI: https://{uri or site}\n"
        f"Version: 1\nChain ID: 1\nNonce: 12345678\nIssued At: {issued}"
    )


SIGNED = {"spend": {EVM_NATIVE: Spend(7 * ETH // 10, 7 * ETH // 10)}}
EVER = {"spend": {EVM_NATIVE: Spend(0, 0, 7 * ETH // 10)}}
# The people and keys that the example of approval-quorum names.
VOTES = [(f"00000000-0000-4000-8000-00000000000{n}", str(n) * 64) for n in (1, 2)]
ORDERS: dict[str, tuple[Subject, Facts]] = {
    "0.2 ETH": (pays(ETH // 5), at()),
    "0.6 ETH": (pays(6 * ETH // 10), at()),
    "0.6 ETH, ten minutes later": (pays(6 * ETH // 10), at(waited=600)),
    "0.6 ETH, approved by a person": (pays(6 * ETH // 10), at(approving=True)),
    "0.6 ETH, one vote": (pays(6 * ETH // 10), at(approving=True, votes={VOTES[0]})),
    "0.6 ETH, two votes": (pays(6 * ETH // 10), at(approving=True, votes=set(VOTES))),
    "0.4 ETH after 0.7 ETH that day": (pays(4 * ETH // 10), at(**SIGNED)),
    "0.3 ETH after 0.7 ETH that day": (pays(3 * ETH // 10), at(**SIGNED)),
    "0.4 ETH after 0.7 ETH in its life": (pays(4 * ETH // 10), at(**EVER)),
    "0.3 ETH after 0.7 ETH in its life": (pays(3 * ETH // 10), at(**EVER)),
    "5 tokens to the shop": (calls("0xa9059cbb", SHOP, 5), at()),
    "200 tokens to the shop": (calls("0xa9059cbb", SHOP, 200), at()),
    "5 tokens to a stranger": (calls("0xa9059cbb", STRANGER, 5), at()),
    "50 tokens of Solana": (pays_tokens(), at()),
    "50 tokens of Solana to a new account": (pays_tokens(RENT), at()),
    "50 tokens of Solana to the third new account of the day": (
        pays_tokens(RENT),
        at(spend={SOLANA_RENT: Spend(2 * RENT, 2 * RENT)}),
    ),
    "0.0005 BTC": (pays_bitcoins("mainnet"), at()),
    "0.0005 BTC on testnet": (pays_bitcoins("testnet"), at()),
    "a sign-in to app.example.com": (signs_in("app.example.com"), at()),
    "a sign-in to evil.example": (signs_in("evil.example"), at()),
    "a sign-in to app.example.com for evil.example": (signs_in("app.example.com", "evil.example"), at()),
    "a sign-in to app.example.com of yesterday": (signs_in("app.example.com", days=-1), at()),
    '"Example: log in as 17"': (signs("Example: log in as 17"), at()),
    '"hello"': (signs("hello"), at()),
    "0.2 ETH at 3,000 dollars": (pays(ETH // 5), at(worth={"evm:1:native": 600 * 10**6})),
    "0.2 ETH at 3,000 dollars after 500 dollars that day": (
        pays(ETH // 5),
        at(worth={"evm:1:native": 600 * 10**6}, spend={"usd": Spend(500 * 10**6, 500 * 10**6)}),
    ),
    "a swap to the wallet": (swaps(), at()),
    "a swap to a stranger": (swaps(to=STRANGER), at()),
    "a swap of more": (swaps(10**9 + 1), at()),
    "a swap by another token": (swaps(by=STRANGER), at()),
    "a swap with a byte behind it": (swaps(more=b"\0"), at()),
    "an unlisted call": (calls("0xdeadbeef", SHOP, 0), at()),
    "0.2 ETH to a stranger": (pays(ETH // 5, STRANGER), at()),
    "0.2 ETH to a stranger, approved by a person": (pays(ETH // 5, STRANGER), at(approving=True)),
    "0.2 ETH to a stranger who was paid before": (
        pays(ETH // 5, STRANGER),
        at(recipients={("paid", f"eip155:1:{STRANGER}")}),
    ),
    "0.2 ETH on Base": (pays(ETH // 5, chain=8453), at()),
    "2 POL on Polygon": (pays(2 * ETH, chain=137), at()),
    "3 POL on Polygon": (pays(3 * ETH, chain=137), at()),
    "0.2 ETH on a Monday at 13:00 in Berlin": (pays(ETH // 5), at(datetime(2026, 6, 1, 11, tzinfo=UTC))),
    "0.2 ETH on a Monday at 19:00 in Berlin": (pays(ETH // 5), at(datetime(2026, 6, 1, 17, tzinfo=UTC))),
    "0.2 ETH on a Sunday at 13:00 in Berlin": (pays(ETH // 5), at(datetime(2026, 6, 7, 11, tzinfo=UTC))),
    "0.2 ETH before the opening": (pays(ETH // 5), at(datetime(2026, 6, 1, 9, 59, 59, tzinfo=UTC))),
    "the 10th order within the hour": (pays(ETH // 5), at(orders_last_hour=9, orders_last_day=9)),
    "the 11th order within the hour, the first was at 11:20:40": (
        pays(ETH // 5),
        at(orders_last_hour=10, orders_last_day=10, minutes=[(int(MONDAY_NOON.timestamp()) - 2430, 10)]),
    ),
}


def answer(config: bytes, order: str) -> tuple[str, str]:
    """Say what the judge makes of an order under the example alone, in the page's words."""
    rules = parse([msgspec.json.decode(config, type=PolicyRule)], lambda: "example")  # type: ignore[arg-type]
    verdict = judge(rules, *ORDERS[order])
    reason = next((one.reason for one in verdict.results if not one.passed), verdict.results[0].reason)
    if verdict.room is not None:
        return f"429, `Retry-After: {verdict.room.seconds}`", reason
    return {"sign": "200", "queue": "202", "refuse": "403"}[verdict.decision], reason


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_is_judged_as_the_page_says(kind: str) -> None:
    examples = re.findall(r"```json\n(.*?)```(.*?)(?=```|\Z)", SECTIONS[kind], re.DOTALL)

    assert examples
    for example, table in examples:
        said = re.findall(r"^\| ([^`|]+) \| ([0-9][^|]*) \| (.+) \|$", table, re.MULTILINE)
        assert len(said) >= 2
        assert msgspec.json.decode(example)["type"] == kind
        assert [(order, *answer(example.encode(), order)) for order, _, _ in said] == said


# ---- the page that says how rules combine


def test_the_example_of_a_set_is_a_set() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", OVERVIEW, re.DOTALL)
    rules = parse(msgspec.json.decode(example, type=list[PolicyRule]), iter("abc").__next__)

    decisions = [judge(rules, *ORDERS[order]).decision for order in ("0.2 ETH", "0.6 ETH")]
    assert [*decisions, judge(rules, pays(2 * ETH), at()).decision] == ["sign", "queue", "refuse"]


def test_the_page_lists_the_fields_that_every_rule_has() -> None:
    listed = re.findall(r"^\| `([a-z]+)` \|", OVERVIEW, re.MULTILINE)

    for kind in KINDS.values():
        _, components = msgspec.json.schema_components([kind])
        assert set(listed) == set(components[kind.__name__]["properties"])


def test_the_page_states_the_bounds_of_a_set() -> None:
    assert f"at most {MAX_RULES} rules, {MAX_BYTES // 1024} KiB and {MAX_VALUES:,} values" in OVERVIEW


def test_the_page_names_every_soft_type() -> None:
    soft = [name for name, kind in KINDS.items() if not kind.hard]

    assert [name for name in soft if f"`{name}` is soft" not in OVERVIEW] == []
    assert OVERVIEW.count("` is soft") == len(soft)
