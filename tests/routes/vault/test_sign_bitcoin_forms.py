"""PSBTs as wallets make them today: any sequence, low fees, every output that is relayed; and texts that are none."""

import io
import random
from base64 import b64decode, b64encode
from contextlib import closing
from typing import Any

import httpx
import pytest
from embit.script import Script
from embit.transaction import Transaction

from tests.chains.bitcoin.wallet import Fields
from tests.fixtures.bitcoin import SOMEBODY, coin, script_of, spend, text
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.thorough import THOROUGH
from tests.routes.vault.bitcoin import LISTED, SCOPE, address, payment, sign_psbt
from tests.routes.vault.transfers import with_signer

SEQUENCES = (0, 1, 2, 0x0040_0001, 0x8000_0000, 0xFFFF_FFFD, 0xFFFF_FFFE, 0xFFFF_FFFF)
# Of a payment of one coin to one address with change, in vbytes: one signature in about 256 is a byte shorter.
SIZES = (140, 141)
BARE_KEY = Script(b"\x21\x02" + bytes(31) + b"\x01" + b"\xac")
ANCHOR, ANCHORS_ADDRESS = Script(b"\x51\x02\x4e\x73"), "bcrt1pfeesnyr2tx"


def payer_of(owner: Person, tenant: Tenant, *rules: dict[str, Any]) -> Agent:
    """An agent that may sign on regtest under more rules."""
    return with_signer(owner, tenant.agent(LISTED, *rules), "sign_transaction")


@pytest.fixture
def payer(as_owner: Person, tenant: Tenant) -> Agent:
    return payer_of(as_owner, tenant)


def paying(agent: Agent, fee: int, *outputs: tuple[Script, int], salt: str = "forms") -> str:
    """A PSBT over a fresh coin of the agent."""
    brings = fee + sum(amount for _, amount in outputs)
    own = script_of(address(agent)["address"])
    return text(spend([(coin(own, brings, f"{agent.id} {salt}"), 0)], list(outputs)))


def with_numbers(psbt: bytes, version: int, sequence: int, lock_time: int) -> tuple[str, bytes]:
    """A PSBT of one input with other numbers in its unsigned transaction, and that transaction."""
    fields = Fields(psbt)
    was = fields.of(0, 0)
    transaction = version.to_bytes(4, "little") + was[4:42] + sequence.to_bytes(4, "little") + was[46:-4]
    transaction += lock_time.to_bytes(4, "little")
    return b64encode(fields.put(0, b"\0", transaction).raw()).decode(), transaction


def test_every_number_of_a_transaction_is_signed_as_it_came(payer: Agent) -> None:
    drawn = random.Random(20)
    cases = [(version, one, lock_time) for version in (1, 2) for one in SEQUENCES for lock_time in (0, 100)]
    cases += [
        (drawn.randrange(4), drawn.choice((0, drawn.getrandbits(32))), drawn.choice((0, drawn.getrandbits(32))))
        for _ in range(10 * THOROUGH)
    ]
    psbt = payment(payer, 10_000).serialize()
    for numbers in cases:
        given, transaction = with_numbers(psbt, *numbers)

        answer = sign_psbt(payer, given, finalize=True)

        assert answer.status_code == 200, (numbers, answer.text)
        data = answer.json()["data"]
        assert Fields(b64decode(data["signedPsbtBase64"])).of(0, 0) == transaction
        done = Transaction.read_from(io.BytesIO(bytes.fromhex(data["finalizedTxHex"])))
        assert (done.version, done.vin[0].sequence, done.locktime) == numbers


def _version_2(psbt: bytes) -> bytes:
    """The same as BIP-370 writes it: no unsigned transaction, and its numbers in fields."""
    made = Fields(psbt).drop(0, 0)
    for kind, value in ((2, b"\2\0\0\0"), (4, b"\1"), (5, b"\2"), (0xFB, b"\2\0\0\0")):
        made.add(0, bytes((kind,)), value)
    return made.raw()


# Of each: what is sent for a PSBT, and the sentence that says what it is or what would pass.
MISTAKEN = {
    "a PSBT in hex": (lambda raw: raw.hex(), "this is a PSBT in hex; psbtBase64 takes base64"),
    "a PSBT in upper case hex": (lambda raw: raw.hex().upper(), "this is a PSBT in hex; psbtBase64 takes base64"),
    "a file of a PSBT in hex": (lambda raw: raw.hex() + "\n", "this is a PSBT in hex; psbtBase64 takes base64"),
    "hex in base64": (
        lambda raw: b64encode(raw.hex().encode()).decode(),
        "this is a PSBT in hex; psbtBase64 takes base64",
    ),
    "base64 twice": (lambda raw: b64encode(b64encode(raw)).decode(), "encoded in base64 twice; decode it once"),
    "a raw transaction": (
        lambda raw: b64encode(Fields(raw).of(1, 0)).decode(),
        "this is a raw transaction; make a PSBT",
    ),
    "an unsigned transaction": (
        lambda raw: b64encode(Fields(raw).of(0, 0)).decode(),
        "this is a raw transaction; make",
    ),
    "a raw transaction in hex": (lambda raw: Fields(raw).of(1, 0).hex(), "this is a raw transaction; make a PSBT"),
    "a PSBT of version 2": (
        lambda raw: b64encode(_version_2(raw)).decode(),
        "is of version 2; only version 0 is signed here, so convert it",
    ),
    "a PSBT of version 1": (
        lambda raw: b64encode(Fields(raw).put(0, b"\xfb", b"\1\0\0\0").raw()).decode(),
        "is of version 1; only version 0 is signed here",
    ),
    "a field of version 2": (
        lambda raw: b64encode(Fields(raw).put(1, b"\x10", bytes(4)).raw()).decode(),
        "input 0 has the field 10, which is of version 2; leave it out",
    ),
    "something else": (lambda raw: b64encode(b"hello").decode(), "this is no PSBT. A PSBT begins with"),
    "base64 for addresses of the web": (
        lambda raw: b64encode(raw + b"\xfb\xff\xbf").decode().translate(str.maketrans("+/", "-_")),
        "must be standard base64 with padding",
    ),
}


@pytest.mark.parametrize("name", MISTAKEN)
def test_a_text_that_is_taken_for_a_psbt_is_named(name: str, payer: Agent) -> None:
    written, sentence = MISTAKEN[name]

    answer = sign_psbt(payer, written(payment(payer, 10_000).serialize()))

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "psbt_malformed")
    assert sentence in answer.json()["error"]


def test_an_input_that_is_final_or_of_another_address_is_named(payer: Agent) -> None:
    other = address(payer, f"{SCOPE[:-1]}3")
    theirs = payment(payer, 10_000, scope=other["walletScope"])
    final = sign_psbt(payer, payment(payer, 10_000), finalize=True).json()["data"]["signedPsbtBase64"]
    path = b"".join(number.to_bytes(4, "little") for number in (84 + 2**31, 1 + 2**31, 2**31, 0, 3))
    hinted = Fields(theirs.serialize()).put(
        1, b"\6" + bytes.fromhex(other["publicKey"]), bytes.fromhex(other["fingerprint"]) + path
    )

    answers = [sign_psbt(payer, final), sign_psbt(payer, b64encode(hinted.raw()).decode())]

    assert [answer.json()["data"]["code"] for answer in answers] == ["psbt_no_own_input"] * 2
    assert f"every input of {SCOPE} is final already" in answers[0].json()["error"]
    assert f"input 0 is of {other['walletScope']}, so ask with that" in answers[1].json()["error"]


def test_a_fee_of_half_a_satoshi_a_vbyte_is_signed(payer: Agent) -> None:
    answer = sign_psbt(payer, payment(payer, 10_000, fee=70), finalize=True)

    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["feeSats"] == "70"
    assert answer.json()["data"]["vsize"] in SIZES
    refused = sign_psbt(payer, payment(payer, 10_000, fee=13))
    assert "below the 15 sat that nodes relay 141 vbytes from, at 0.1 sat/vB" in refused.json()["error"]


def test_every_kind_of_output_that_is_relayed_is_paid_and_counted(as_owner: Person, tenant: Tenant) -> None:
    payer = payer_of(as_owner, tenant, rule("spending-limit", asset="bitcoin", maxPerDay="40000"))
    data = [(Script(b"\x6a\x4c\x64" + bytes(100)), 0), (Script(b"\x6a\x01\x00"), 0)]
    outputs = [*data, (BARE_KEY, 10_000), (ANCHOR, 240), (Script(b"\x52\x20" + bytes(32)), 20_000)]

    answer = sign_psbt(payer, paying(payer, 1_000, *outputs), finalize=True)
    beyond = sign_psbt(payer, paying(payer, 1_000, (BARE_KEY, 10_000), salt="beyond"))

    assert (answer.status_code, beyond.status_code) == (200, 403), answer.text
    kept = payer.ok("GET", f"/vault/{payer.id}/transactions/{answer.json()['data']['transactionId']}")
    assert [(one.get("to"), one["amount"], one.get("label")) for one in kept["effects"]] == [
        (None, "0", "data"),
        (None, "0", "data"),
        (None, "10000", "p2pk"),
        (ANCHORS_ADDRESS, "240", None),
        ("bcrt1zqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqnv9lj9", "20000", None),
        (None, "1000", None),
    ]


def test_data_of_a_hundred_thousand_bytes_is_written(payer: Agent) -> None:
    data = Script(b"\x6a\x4e" + (99_700).to_bytes(4, "little") + random.Random(1).randbytes(99_700))

    answer = sign_psbt(payer, paying(payer, 20_000, (SOMEBODY, 10_000), (data, 0)), finalize=True)

    assert answer.status_code == 200, answer.text
    assert data.data.hex() in answer.json()["data"]["finalizedTxHex"]


@pytest.mark.parametrize("mode", ["whitelist", "blacklist"])
def test_a_payment_to_a_bare_key_passes_no_list_of_addresses(mode: str, as_owner: Person, tenant: Tenant) -> None:
    """It has no address: a list of approved ones can't have it, and one of blocked ones can't tell that it has not."""
    payer = payer_of(as_owner, tenant, rule("approved-addresses", mode=mode, addresses=[ANCHORS_ADDRESS]))

    answer = sign_psbt(payer, paying(payer, 1_000, (BARE_KEY, 10_000)))
    anchored = sign_psbt(payer, paying(payer, 1_000, (ANCHOR, 240), (Script(b"\x6a\x01\x00"), 0), salt="anchor"))

    assert answer.status_code in (202, 403), answer.text
    assert anchored.status_code == (200 if mode == "whitelist" else 403), anchored.text


def _queue(payer: Agent, *, finalize: bool) -> str:
    waiting = sign_psbt(payer, payment(payer, 30_000), finalize=finalize)
    assert waiting.status_code == 202, waiting.text
    return waiting.json()["data"]["txId"]


def _whole(found: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(found.get(name) for name in ("finalizedTxHex", "vsize", "feeSats"))


def test_an_approved_psbt_has_its_transaction_as_a_signed_one_has(
    service: Service, as_owner: Person, tenant: Tenant
) -> None:
    payer = payer_of(as_owner, tenant, rule("auto-approve-threshold", asset="bitcoin", threshold="20000"))
    first, second, third = (_queue(payer, finalize=finalize) for finalize in (True, True, False))
    item = next(one for one in tenant.ok("GET", "/approvals") if one["txId"] == second)

    by_transaction = tenant.ok("POST", f"/vault/{payer.id}/approve/{first}", {})
    by_item = tenant.ok("POST", f"/approvals/{item['id']}/approve", {})
    unfinished = tenant.ok("POST", f"/vault/{payer.id}/approve/{third}", {})

    for tx, approved in ((first, by_transaction), (second, by_item)):
        kept = payer.ok("GET", f"/vault/{payer.id}/transactions/{tx}")
        raw, vsize, fee = _whole(approved)
        assert _whole(kept) == (raw, vsize, fee)
        assert (Transaction.parse(bytes.fromhex(raw)).txid().hex(), fee) == (kept["txHash"], "1000")
        assert vsize in SIZES
    assert set(unfinished) == {"txId", "txHash"}
    assert _whole(payer.ok("GET", f"/vault/{payer.id}/transactions/{third}")) == (None, None, None)
    with closing(member(service, tenant, "viewer")) as viewer:
        shown: httpx.Response = viewer.get(f"/vault/{payer.id}/transactions/{first}")
    assert shown.json()["data"]["txHash"] == by_transaction["txHash"]
    assert _whole(shown.json()["data"]) == (None, by_transaction["vsize"], "1000")
    assert by_transaction["finalizedTxHex"][100:200] not in shown.text
