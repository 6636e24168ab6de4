"""A PSBT is told from its own bytes, and where it is not what the service says, that is said."""

import hashlib
from base64 import b64decode, b64encode
from typing import Any

import pytest
from embit.psbt import PSBT
from embit.script import Script, p2pkh, p2sh, p2tr, p2wsh
from hypothesis import given
from hypothesis import strategies as st

from console.approver.matter import digest_of
from tests.console.orders import lines_of, order, tone_of
from tests.fixtures import bitcoin
from tests.fixtures.bitcoin import SOMEBODY, coin, script_of, spend, text
from words.orders.bitcoin_addresses import address_of
from words.orders.dangers import dangers
from words.orders.details import data_lines
from words.orders.order import Known, Order
from words.orders.psbt import taken_apart
from words.orders.psbt_in_words import agrees
from words.orders.words import summary
from words.shapes import Effect
from words.texts.chains import BITCOIN_NETWORKS

REGTEST = BITCOIN_NETWORKS["regtest"]
OWN = "bcrt1q6rz28mcfaxtmd6v789l9rrlrusdprr9pz3cppk"
KEY = bitcoin.PublicKey.parse(bytes.fromhex("02" + "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"))
THEM = bitcoin.address_of(SOMEBODY)


def effect(amount: int, to: str | None = THEM, kind: str = "transfer", label: str | None = None) -> Effect:
    """An effect as the service has it."""
    return Effect(kind, "bitcoin" if kind != "unread" else None, str(amount), OWN, to, label=label)


FEE = effect(1_000, None, "fee")
OTHERS = effect(0, None, "unread", "others pay in this transaction")


def psbt_order(*effects: Effect, **changed: Any) -> Order:
    """An order on regtest."""
    given: dict[str, Any] = {"kind": "bitcoin", "chain_id": None, "caip2": REGTEST.caip2, "agent_name": ""}
    return order(*effects, **given, **changed)


def paying(*outputs: tuple[Script, int], brings: int = 61_000, others: int = 0) -> PSBT:
    """A PSBT over one coin of the agent, and one of somebody else."""
    coins = [(coin(script_of(OWN), brings), 0)]
    coins += [(coin(SOMEBODY, others, "theirs"), 0)] if others else []
    return spend(coins, list(outputs))


PLAIN = paying((SOMEBODY, 50_000), (script_of(OWN), 10_000))


def test_a_payment_has_its_coins_change_fee_and_rate() -> None:
    lines = lines_of(psbt_order(effect(50_000), FEE), Known(data=text(PLAIN)))

    assert lines == [
        "Sends 0.0005 BTC (50,000 sat) to",
        f"  {THEM}",
        "Network fee 0.00001 BTC (1,000 sat).",
        "Spends 1 coin, 0.00061 BTC (61,000 sat), of the address that signs.",
        "Change: 0.0001 BTC (10,000 sat) comes back to",
        f"  {OWN}",
        "  this is the address that signs",
        "Fee rate: at most 7.1 sat/vB (1,000 sat, 141 vbytes or more).",
        "On Bitcoin regtest (test network).",
        "Agent payer asks for this.",
    ]


def test_the_order_is_one_line_of_a_list() -> None:
    assert summary(psbt_order(effect(50_000), FEE), Known()) == f"Sends 0.0005 BTC to {THEM[:7]}…{THEM[-6:]}"
    assert summary(psbt_order(OTHERS, effect(5), FEE), Known()) == "Pays together with others, and 1 more"
    assert summary(psbt_order(effect(0, None, label="data"), FEE), Known()) == "Writes data into the chain"


def test_others_who_pay_are_named_before_the_payments() -> None:
    shown, known = psbt_order(effect(50_000), FEE, OTHERS), Known(data=text(paying((SOMEBODY, 50_000), others=20_000)))
    with_fee = psbt_order(effect(50_000), effect(31_000, None, "fee"), OTHERS)

    assert lines_of(with_fee, known)[1].startswith("Others pay in this transaction too")
    assert "Spends also 1 coin, 0.0002 BTC (20,000 sat), of other addresses." in lines_of(with_fee, known)
    assert dangers(with_fee, known)[0].text == (
        "! Others pay in this transaction: it is complete only once they have signed too."
    )
    assert "The PSBT is not what the service says: its fee is 31,000 sat." in lines_of(shown, known)


def test_data_is_shown_and_stays_in_its_quotation_marks() -> None:
    hostile = 'pay" \x1b[31m\u202e'.encode()
    script = Script(b"\x6a" + bytes((len(hostile),)) + hostile)
    known = Known(data=text(paying((SOMEBODY, 50_000), (script, 0), (script_of(OWN), 10_000))))

    lines = lines_of(psbt_order(effect(50_000), effect(0, None, label="data"), FEE), known)

    assert "Writes data into the chain, where anyone can read it." in lines
    assert 'Writes 13 bytes into the chain, for ever: "pay\' \\x1b[31m<U+202E>"' in lines


@pytest.mark.parametrize(
    ("effects", "sentence"),
    [
        ([effect(49_999), FEE], f'it has no output of 0.00049999 BTC (49,999 sat) to "{THEM}".'),
        ([effect(50_000), effect(50_000), FEE], f'it has no output of 0.0005 BTC (50,000 sat) to "{THEM}".'),
        ([effect(50_000, OWN), FEE], f'it has no output of 0.0005 BTC (50,000 sat) to "{OWN}".'),
        ([effect(50_000), effect(999, None, "fee")], "its fee is 1,000 sat."),
        ([effect(50_000)], "its fee is 1,000 sat."),
        ([effect(50_000), FEE, OTHERS], "nobody else pays in it."),
    ],
    ids=["amount", "twice", "recipient", "fee", "no fee", "others"],
)
def test_a_service_that_tells_something_else_is_named_in_red(effects: list[Effect], sentence: str) -> None:
    shown, known = psbt_order(*effects), Known(data=text(PLAIN))

    line = f"The PSBT is not what the service says: {sentence}"
    assert line in lines_of(shown, known)
    assert tone_of(line, shown, known) == "bad"
    assert line in [one.text for one in dangers(shown, known)]


def test_an_output_that_the_service_does_not_name_is_shown_as_change() -> None:
    known = Known(data=text(paying((SOMEBODY, 50_000), (SOMEBODY, 10_000))))

    lines = lines_of(psbt_order(effect(50_000), FEE), known)

    place = lines.index("Change: 0.0001 BTC (10,000 sat) comes back, by the service's word, to")
    assert lines[place + 1] == f"  {THEM}"
    assert not any("this is the address that signs" in line for line in lines)


def test_nothing_is_said_of_bytes_that_are_not_known() -> None:
    assert lines_of(psbt_order(effect(50_000), FEE))[3:-1] == ["On Bitcoin regtest (test network)."]


@pytest.mark.parametrize(
    ("caip2", "line"),
    [
        (BITCOIN_NETWORKS["mainnet"].caip2, "On Bitcoin."),
        ("bip122:" + "0" * 32, "On a network of Bitcoin that is not known here."),
        (None, "On Bitcoin."),
    ],
    ids=["mainnet", "unknown", "none"],
)
def test_the_network_is_named(caip2: str | None, line: str) -> None:
    assert line in lines_of(order(effect(5), kind="bitcoin", chain_id=None, caip2=caip2))


def test_the_details_name_inputs_and_outputs() -> None:
    lines = [one.text for one in data_lines("bitcoin", text(PLAIN), REGTEST)]

    assert lines[:-2] == [
        "inputs: 1",
        "  1. 61,000 sat",
        f"     coin {coin(script_of(OWN), 61_000).txid().hex()}:0",
        f"     of {OWN}",
        "outputs: 2",
        "  1. 50,000 sat",
        f"     to {THEM}",
        "  2. 10,000 sat",
        f"     to {OWN}",
        "version 2, lock time 0",
    ]


def test_very_many_outputs_are_counted_where_not_shown() -> None:
    lines = [one.text for one in data_lines("bitcoin", text(paying(*[(SOMEBODY, 500)] * 100)), REGTEST)]

    assert "  …and 60 more, not shown here." in lines
    assert len(lines) < 100


@pytest.mark.parametrize("network", BITCOIN_NETWORKS)
@pytest.mark.parametrize(
    "script",
    [SOMEBODY, p2pkh(KEY), p2sh(SOMEBODY), p2wsh(p2pkh(KEY)), p2tr(KEY)],
    ids=["p2wpkh", "p2pkh", "p2sh", "p2wsh", "p2tr"],
)
def test_addresses_are_those_of_another_library(script: Script, network: str) -> None:
    assert address_of(script.data, network) == bitcoin.address_of(script, network)


def of_another(psbt: PSBT) -> PSBT:
    psbt.inputs[0].non_witness_utxo = coin(script_of(OWN), 61_000, "another")
    return psbt


def with_another_amount(psbt: PSBT) -> PSBT:
    psbt.inputs[0].witness_utxo.value += 1
    return psbt


@pytest.mark.parametrize(
    "data",
    [
        "",
        "AAAA",
        "not base64",
        text(PLAIN)[:-8],
        b64encode(PLAIN.serialize() + b"\x00").decode(),
        text(PLAIN) + "\n",
        text(of_another(paying((SOMEBODY, 50_000)))),
        text(with_another_amount(paying((SOMEBODY, 50_000)))),
        "A" * 400_004,
        {"psbt": text(PLAIN)},
    ],
    ids=["empty", "zeros", "words", "cut", "longer", "line", "another coin", "another amount", "huge", "object"],
)
def test_a_psbt_that_cannot_be_decoded_is_said_to_be_so(data: object) -> None:
    assert taken_apart(data, "regtest") is None
    lines = lines_of(psbt_order(effect(50_000), FEE), Known(data=data))
    assert "The PSBT cannot be decoded here: what is said of it is the service's word alone." in lines


def test_a_vote_is_asked_for_only_where_the_order_does_what_is_shown() -> None:
    stored = {"walletScope": "bitcoin:regtest:p2wpkh:0:0:0", "psbtBase64": text(PLAIN)}

    assert agrees(stored, [effect(50_000), FEE])
    assert not agrees(stored, [effect(40_000), FEE])
    assert not agrees({**stored, "walletScope": "bitcoin:mainnet:p2wpkh:0:0:0"}, [effect(50_000), FEE])
    assert not agrees({**stored, "psbtBase64": 5}, [effect(50_000), FEE])
    assert not agrees({}, [])


def test_the_digest_is_of_every_byte_of_the_order() -> None:
    assert digest_of("bitcoin", "{}") == hashlib.sha256(b"custody-order-v1:bitcoin:{}").hexdigest()


RAW = b64decode(text(paying((SOMEBODY, 50_000), (script_of(OWN), 10_000), others=5_000)))


@given(st.dictionaries(st.integers(0, len(RAW) - 1), st.integers(0, 255), max_size=4))
def test_no_psbt_raises(changed: dict[int, int]) -> None:
    spoilt = bytes(changed.get(place, byte) for place, byte in enumerate(RAW))
    data = b64encode(spoilt).decode()

    assert data_lines("bitcoin", data, REGTEST)
    assert lines_of(psbt_order(effect(50_000), FEE), Known(data=data))
