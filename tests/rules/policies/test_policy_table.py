"""The table of what becomes of bytes that are not read: each cell of docs/policies.md is a case."""

from pathlib import Path

import msgspec
import pytest
from eth_abi import encode

from custody.chains.evm.calldata import decode
from custody.chains.types import Effect, Subject
from custody.policies.judge import judge
from tests.rules.policies.makers import (
    ALICE,
    BOB,
    TOKEN,
    TOKEN_CONTRACT,
    TRANSFER,
    UNKNOWN,
    evm,
    facts,
    rule,
    rules,
    typed_data,
    unknown,
)

PAGE = Path(__file__).parents[3] / "docs" / "policies.md"
MULTICALL = "0xac9650d8"
DECISIONS = {"ask": "queue", "ask*": "queue", "sign": "sign", "refuse": "refuse"}
ALLOWED = {"ask": "queue", "ask*": "sign", "sign": "sign", "refuse": "refuse"}


def listing(unread):
    entry = {"address": TOKEN_CONTRACT, "selectors": [TRANSFER, UNKNOWN, MULTICALL], "unread": unread}
    return rule("contract-allowlist", {"contracts": [entry]})


ON_IT = rule("spending-limit", {"maxPerDay": "1000", "asset": TOKEN})
ON_ANOTHER = rule("auto-approve-threshold", {"threshold": "1000"})
BLOCKED = rule("approved-addresses", {"addresses": [BOB], "mode": "blacklist"})
SETS = {
    "no rule": [],
    "limit on it": [ON_IT],
    "limit on another": [ON_ANOTHER],
    "approved list": [rule("approved-addresses", {"addresses": [ALICE, TOKEN_CONTRACT]})],
    "blocked list": [BLOCKED],
    "call list": [listing("ask")],
    "call list, allow": [listing("allow")],
    "allow, limit on another": [listing("allow"), ON_ANOTHER],
    "allow, limit on it": [listing("allow"), ON_IT],
    "allow, blocked list": [listing("allow"), BLOCKED],
}


def call(data: bytes, value: int = 0) -> Subject:
    effects, calls = decode(TOKEN_CONTRACT, value, data, 1, BOB)
    return evm(*effects, calls=calls, destination=TOKEN_CONTRACT)


def multicall(*inner: bytes) -> bytes:
    return bytes.fromhex(MULTICALL[2:]) + encode(["bytes[]"], [inner])


SENT = bytes.fromhex(TRANSFER[2:]) + encode(["address", "uint256"], [ALICE, 5])
DIRTY = SENT[:4] + b"\x01" + SENT[5:]
ORDERS = {
    "all of a call": call(SENT),
    "a call, and bytes behind it": call(SENT + b"\x00"),
    "a call, and coins beside it": call(SENT, value=1),
    "a call, and what a word holds more": call(DIRTY),
    "nothing of a call": call(bytes.fromhex(UNKNOWN[2:])),
    "that a call moves value, not how": call(SENT[:-1]),
    "calls within a call, one unread": call(multicall(SENT, bytes.fromhex(UNKNOWN[2:]))),
    "that calls are within, not which": call(multicall(SENT)[:-1]),
    "a document of unknown kind": unknown(),
    "that a document moves value, not how": typed_data(Effect("unread", None, 0, BOB, TOKEN_CONTRACT)),
}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def table() -> list[tuple[str, str, str]]:
    section = PAGE.read_text().split("## What is not read", 1)[1].split("\n## ", 1)[0]
    head, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    return [
        (row[0], column, cell)
        for row in map(cells, rows)
        for column, cell in zip(cells(head)[1:], row[1:], strict=True)
    ]


def test_the_table_has_every_row_and_column_that_is_tried() -> None:
    assert {(row, column) for row, column, _ in table()} == {(row, column) for row in ORDERS for column in SETS}


@pytest.mark.parametrize(("row", "column", "cell"), table())
def test_a_cell_is_what_the_judge_says(row: str, column: str, cell: str) -> None:
    set_, order = rules(*SETS[column]), ORDERS[row]

    said = {setting: judge(set_, order, facts(uncovered=setting)).decision for setting in ("queue", "allow", "refuse")}

    assert said == {
        "queue": DECISIONS[cell],
        "allow": ALLOWED[cell],
        "refuse": "refuse" if cell.startswith("ask") else DECISIONS[cell],
    }


@pytest.mark.parametrize("row", ORDERS)
def test_a_blocked_contract_or_recipient_is_refused_in_every_row(row: str) -> None:
    blocked = rules(rule("approved-addresses", {"addresses": [TOKEN_CONTRACT, ALICE], "mode": "blacklist"}))
    strangers = rules(rule("approved-addresses", {"addresses": [BOB]}))

    assert judge(blocked, ORDERS[row], facts(uncovered="allow")).decision == "refuse"
    wanted = "queue" if row == "a document of unknown kind" else "refuse"
    assert judge(strangers, ORDERS[row], facts(uncovered="allow")).decision == wanted


@pytest.mark.parametrize(
    ("asset", "wanted"),
    [
        (f"evm:1:0x{'5a' * 20}", "queue"),
        (f"evm:10:0x{'5a' * 20}", "sign"),
        ("evm:1:native", "sign"),
        ("bitcoin", "sign"),
    ],
)
def test_unread_bytes_ask_where_a_token_of_their_chain_is_limited(asset: str, wanted: str) -> None:
    limited = rules(rule("spending-limit", {"maxPerDay": "1000", "asset": asset}))

    for row in ("nothing of a call", "a document of unknown kind"):
        assert judge(limited, ORDERS[row], facts(uncovered="allow")).decision == wanted


@pytest.mark.parametrize("row", ORDERS)
def test_a_person_settles_what_asks(row: str) -> None:
    order = msgspec.structs.replace(ORDERS[row])
    for column, set_ in SETS.items():
        plain, approved = (judge(rules(*set_), order, facts(approving=value)).decision for value in (False, True))
        assert (approved == "sign") == (plain != "refuse"), column
