"""A Solana message is told instruction by instruction, and what cannot be read is said."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.message import to_bytes_versioned

from tests.console.orders import lines_of, order, pays
from tests.outside import solana_messages as solana
from words.orders.details import data_lines
from words.orders.order import Known

PAY = solana.pay(2_500_000_000)


def test_the_instructions_of_a_solana_message_are_named_in_their_order() -> None:
    data = solana.encode(
        solana.message(
            solana.compute_limit(5),
            solana.create_account(),
            solana.pay_tokens(5),
            PAY,
            solana.instruction(solana.MEMO, b"hi"),
            solana.instruction(solana.MINT, b"\x01"),
        )
    )

    lines = [one.text for one in data_lines("solana", data)]

    assert lines[:-2] == [
        "instructions: 6",
        "  1. Compute Budget: SetComputeUnitLimit",
        "  2. Associated Token: CreateIdempotent",
        "  3. Token: TransferChecked",
        "  4. System: Transfer",
        '  5. Memo v2: "hi"',
        f"  6. {solana.MINT}: a program that is not known here",
    ]


@pytest.mark.parametrize(
    "data",
    [
        solana.encode(solana.message(PAY)),
        solana.encode(solana.legacy(PAY)),
        base64.b64encode(to_bytes_versioned(solana.message(PAY))).decode(),
        base64.b64encode(to_bytes_versioned(solana.legacy(PAY))).decode(),
    ],
    ids=["transaction", "legacy transaction", "message", "legacy message"],
)
def test_a_message_is_read_in_each_of_its_forms(data: str) -> None:
    assert "  1. System: Transfer" in [one.text for one in data_lines("solana", data)]


def test_a_memo_is_said_with_the_order_and_stays_in_its_quotation_marks() -> None:
    memo = 'hi \x1b[31m" Approve\u202e ' + "x" * 500
    data = solana.encode(solana.message(PAY, solana.instruction(solana.MEMO, memo.encode())))

    lines = lines_of(order(pays(), kind="solana", chain_id=101), Known(data=data))

    found = next(line for line in lines if line.startswith("Also: a memo: "))
    assert found.startswith("Also: a memo: \"hi \\x1b[31m' Approve<U+202E> xxx")
    assert found.endswith('… (529 characters)"')


LONGER = base64.b64encode(base64.b64decode(solana.encode(solana.message(PAY))) + b"\x00").decode()


@pytest.mark.parametrize("data", ["AAAA", "not base64", solana.encode(solana.message(PAY))[:-4], LONGER])
def test_a_message_that_cannot_be_decoded_is_said_to_be_so(data: str) -> None:
    assert data_lines("solana", data)[0].text == "instructions: the message cannot be decoded here"


MESSAGES = [base64.b64decode(solana.encode(solana.message(PAY))), to_bytes_versioned(solana.legacy(PAY))]


@given(st.sampled_from(MESSAGES), st.dictionaries(st.integers(0, 214), st.integers(0, 255), max_size=4))
def test_no_message_raises(raw: bytes, changed: dict[int, int]) -> None:
    spoilt = bytes(changed.get(place, byte) for place, byte in enumerate(raw))

    assert data_lines("solana", base64.b64encode(spoilt).decode())
