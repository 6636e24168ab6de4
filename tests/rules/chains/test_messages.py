"""Messages that wallets sign as they are: what is read of them, and that none can be taken for something else."""

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import rlp
from eth_account import Account
from hypothesis import example, given, settings
from hypothesis import strategies as st
from solders.hash import Hash
from solders.keypair import Keypair
from solders.message import Message as SolanaMessage
from solders.message import MessageV0, from_bytes_versioned, to_bytes_versioned
from solders.system_program import TransferParams, transfer
from solders.transaction import Transaction, VersionedTransaction

from custody.chains.message_effects import read_order, subject_of
from custody.chains.message_orders import MAX_MESSAGE, EvmMessageOrder, SolanaMessageOrder
from custody.chains.message_reading import BadMessage, MessageNotOurs, read
from custody.chains.messages import Message
from custody.chains.types import Effect, Subject
from custody.identity import siwe

US = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
SOLANA_US = "3uTFpmpBvStn9yCtFNvPQXqX7SsXwZwQXLLsUdMTEcBZ"
KEY = "0x" + "46" * 32
TO = "0x1111111111111111111111111111111111111111"
SIWE = f"""\
app.example.com wants you to sign in with your Ethereum account:
{US}

Accept the terms: https://app.example.com/tos

URI: https://app.example.com/login
Version: 1
Chain ID: 8453
Nonce: 32891756abcDEF
Issued At: 2026-01-01T11:59:00.123Z
Expiration Time: 2026-01-01T13:00:00Z
Not Before: 2026-01-01T11:00:00Z
Request ID: a-b
Resources:
- https://app.example.com/one
- ipfs://two"""


def of(content: bytes, family: str = "evm") -> Message:
    text = "0x" + content.hex() if family == "evm" else base64.b64encode(content).decode()
    return read(family, None, text)


def refusal_of(family: str, message: str | None = None, raw: str | None = None) -> str:
    with pytest.raises(BadMessage) as problem:
        read(family, message, raw)
    said = problem.value.message
    fields = ["message", "raw"] if said.startswith("Send one of") else [said.split(" ")[0]]
    assert problem.value.context == {"fields": fields}
    return said


# ---- what is refused


def fields(**others: Any) -> dict[str, Any]:
    return {"nonce": 0, "gas": 21_000, "to": TO, "value": 1, "data": b"", "chainId": 1, **others}


FEES = {"maxFeePerGas": 2, "maxPriorityFeePerGas": 1}
AUTHORIZATION = Account.sign_authorization({"chainId": 1, "address": TO, "nonce": 0}, KEY)
EVM = {
    "legacy": fields(gasPrice=1),
    "legacy without a chain": {**fields(gasPrice=1), "chainId": None},
    "legacy, long": fields(gasPrice=1, data="0x" + "ab" * 3_000),
    "a contract's creation": {**fields(gasPrice=1, data="0x6001"), "to": ""},
    "type 1": fields(gasPrice=1, type=1, accessList=[{"address": TO, "storageKeys": ["0x" + "01" * 32]}]),
    "type 2": fields(type=2, **FEES),
    "type 2, long": fields(type=2, data="0x" + "ab" * 5_000, **FEES),
    "type 3": fields(type=3, maxFeePerBlobGas=1, blobVersionedHashes=["0x01" + "00" * 31], **FEES),
    "type 4": fields(type=4, authorizationList=[AUTHORIZATION], **FEES),
}


@pytest.mark.parametrize("name", EVM)
@pytest.mark.parametrize("family", ["evm", "solana"])
def test_a_signed_evm_transaction_is_no_message(name: str, family: str) -> None:
    given = {key: value for key, value in EVM[name].items() if value is not None}
    raw = bytes(Account.sign_transaction(given, KEY).raw_transaction)

    with pytest.raises(BadMessage, match="can be read as a transaction"):
        of(raw, family)


def test_the_preimage_of_an_evm_transaction_is_no_message() -> None:
    to, access = bytes.fromhex(TO[2:]), [[bytes.fromhex(TO[2:]), [b"\1" * 32]]]
    for preimage in (
        rlp.encode([b"", b"\1", b"\x52\x08", to, b"\1" * 9, b""]),
        rlp.encode([b"", b"\1", b"\x52\x08", to, b"\1" * 9, b"", b"\1", b"", b""]),
        b"\1" + rlp.encode([b"\1", b"", b"\1", b"\x52\x08", to, b"\1" * 9, b"", access]),
        b"\2" + rlp.encode([b"\1", b"", b"\1", b"\2", b"\x52\x08", to, b"\1" * 9, b"", access]),
        b"\3" + rlp.encode([b"\1", b"", b"\1", b"\2", b"\x52\x08", to, b"\1" * 9, b"", [], b"\1", [b"\1" + bytes(31)]]),
        b"\4" + rlp.encode([b"\1", b"", b"\1", b"\2", b"\x52\x08", to, b"\1" * 9, b"", [], [[b"\1", to, b"", b""]]]),
        # The authorization of EIP-7702, which gives an account's code away.
        b"\5" + rlp.encode([b"\1", to, b""]),
    ):
        with pytest.raises(BadMessage, match="can be read as a transaction"):
            of(preimage)


SHORT = [b"\1"] * 5
# Lists and texts at the bounds where the first byte begins to say something else.
AT_BOUNDS = {
    "a list of nothing as an item": rlp.encode([*SHORT, []]),
    "a text of nothing as an item": rlp.encode([*SHORT, b""]),
    "a typed list of nothing": b"\2\xc0",
    "a typed list of 55 bytes": b"\2" + rlp.encode([b"a" * 54]),
    "a typed list of 56 bytes": b"\2" + rlp.encode([b"a" * 55]),
    "a list of 55 bytes": rlp.encode([b"a" * 49, *SHORT]),
    "a list of 56 bytes": rlp.encode([b"a" * 50, *SHORT]),
    "a text of 55 bytes": rlp.encode([b"a" * 55, *SHORT]),
    "a text of 56 bytes": rlp.encode([b"a" * 56, *SHORT]),
    "a byte of its own": rlp.encode([b"\x7f", b"\x80", b"\0", *SHORT]),
    "a list of 200 bytes": rlp.encode([b"a" * 193, *SHORT]),
}


@pytest.mark.parametrize("name", AT_BOUNDS)
def test_a_list_is_read_to_its_last_byte(name: str) -> None:
    said = refusal_of("evm", raw="0x" + AT_BOUNDS[name].hex())
    assert said == "raw can be read as a transaction; send transactions to the route that signs them."
    # A byte more or less is no list.
    for content in (AT_BOUNDS[name] + b"\1", AT_BOUNDS[name][:-1]):
        if len(content) > 1:
            assert of(content).raw == content


def solana_bytes() -> dict[str, bytes]:
    payer, blockhash = Keypair.from_seed(bytes(32)), Hash.new_unique()
    moves = [transfer(TransferParams(from_pubkey=payer.pubkey(), to_pubkey=payer.pubkey(), lamports=1))]
    legacy = SolanaMessage.new_with_blockhash(moves, payer.pubkey(), blockhash)
    v0 = MessageV0.try_compile(payer.pubkey(), moves, [], blockhash)
    return {
        "legacy message": bytes(legacy),
        "version 0 message": to_bytes_versioned(v0),
        "legacy transaction": bytes(Transaction([payer], legacy, blockhash)),
        "unsigned transaction": bytes(Transaction.new_unsigned(legacy)),
        "version 0 transaction": bytes(VersionedTransaction(v0, [payer])),
        "legacy message and a tail": bytes(legacy) + b"hello",
    }


@pytest.mark.parametrize(("name", "content"), solana_bytes().items())
@pytest.mark.parametrize("family", ["evm", "solana"])
def test_bytes_of_a_solana_transaction_are_no_message(name: str, content: bytes, family: str) -> None:
    with pytest.raises(BadMessage, match="can be read as a transaction"):
        of(content, family)


def reads_as_a_transaction(content: bytes) -> bool:
    """Tell whether other libraries read a transaction of either chain."""
    for reader in (
        from_bytes_versioned,
        VersionedTransaction.from_bytes,
        Transaction.from_bytes,
        Account.recover_transaction,
        _check_typed,
        _legacy,
    ):
        try:
            reader(content)
        except Exception:
            continue
        return True
    return False


def _check_typed(raw: bytes) -> None:
    if raw[0] not in range(1, 6) or not isinstance(rlp.decode(raw[1:]), list):
        raise ValueError("not typed")


def _legacy(raw: bytes) -> None:
    found = rlp.decode(raw)
    if not isinstance(found, list) or len(found) not in (6, 9):
        raise ValueError("not legacy")


SEEDS = [*solana_bytes().values(), b"\2" + rlp.encode([b"\1"] * 9), rlp.encode([b"\1"] * 6), rlp.encode([b"\1"] * 9)]
MUTATED = st.sampled_from(SEEDS).flatmap(
    lambda seed: st.lists(st.tuples(st.integers(0, len(seed) - 1), st.integers(0, 255)), max_size=3).map(
        lambda changes: bytes(dict(changes).get(at, byte) for at, byte in enumerate(seed))
    )
)


@settings(max_examples=400)
@given(MUTATED | st.binary(max_size=400) | st.text(max_size=400).map(str.encode), st.sampled_from(["evm", "solana"]))
@example(b"\x19\x01" + bytes(64), "evm")
@example(bytes(range(32)), "evm")
def test_nothing_that_is_accepted_reads_as_a_transaction_a_hash_or_a_preimage(content: bytes, family: str) -> None:
    try:
        message = of(content, family)
    except BadMessage:
        return

    assert message.raw == content
    assert len(content) != 32
    assert content[0] != 0x19
    assert not reads_as_a_transaction(content)


@pytest.mark.parametrize(
    ("family", "message", "raw", "said"),
    [
        ("evm", None, None, "Send one of message and raw."),
        ("evm", "hello", "0x68", "Send one of message and raw."),
        ("evm", "", None, "message must be 1 to 16,384 bytes."),
        ("evm", None, "0x", "raw must be 1 to 16,384 bytes."),
        ("evm", "é" * 8_193, None, "message must be 1 to 16,384 bytes."),
        ("evm", "\ud800", None, "message has half of a surrogate pair, which is no character; send its bytes as raw."),
        ("evm", None, "68656c6c6f", "raw must be 0x and bytes in hex for an EVM wallet."),
        ("evm", None, "0x123", "raw must be 0x and bytes in hex for an EVM wallet."),
        ("solana", None, "0x68656c6c6f", "raw must be bytes in standard base64 with padding for a Solana wallet."),
        ("solana", None, "aGVsbG8", "raw must be bytes in standard base64 with padding for a Solana wallet."),
        ("solana", None, "aGVsbG9=", "raw must be bytes in standard base64 with padding for a Solana wallet."),
        ("evm", "\x19Ethereum Signed Message:\n5hello", None, "message begins with 0x19, as what wallets sign does; "
         "send the message without its prefix."),
        ("evm", None, "0x" + "61" * 32, "raw has 32 bytes, as a hash has; hashes are not signed. Send what was "
         "hashed."),
        ("evm", "\0" * 32, None, "message has 32 bytes, as a hash has; hashes are not signed. Send what was hashed."),
        ("solana", None, base64.b64encode(b"\7" * 32).decode(), "raw has 32 bytes, as a hash has; hashes are not "
         "signed. Send what was hashed."),
    ],
)  # fmt: skip
def test_a_refusal_tells_its_cure(family: str, message: str | None, raw: str | None, said: str) -> None:
    assert refusal_of(family, message, raw) == said


def test_a_text_of_32_letters_is_a_text() -> None:
    assert read("evm", "a" * 32, None).text == "a" * 32


def test_the_largest_message_is_read() -> None:
    assert len(read("solana", "a" * MAX_MESSAGE, None).raw) == MAX_MESSAGE


@pytest.mark.parametrize(
    "content",
    [
        b"a",
        b"\xc0",
        # A byte that may be a type, and no list behind it; a list behind a byte that is none.
        b"\x02a",
        b" \xc0",
        # One item that is no list, and a list of as few fields as no transaction has.
        b"\x87abcdefg",
        rlp.encode([b"a" * 57, *SHORT[:4]]),
    ],
)
def test_bytes_that_are_nearly_a_transaction_are_a_message(content: bytes) -> None:
    assert of(content).raw == content


# ---- what they say


def test_the_same_bytes_say_the_same_in_either_form() -> None:
    assert read("evm", SIWE, None) == of(SIWE.encode())


@pytest.mark.parametrize("text", ["a\0b", "a\r\nb", "\ufeffhello", "a\u202eb", "a\u200bb", "tab\there"])
def test_text_that_does_not_show_as_it_is_is_no_plain_text(text: str) -> None:
    assert read("evm", text, None).text is None


def test_a_sign_in_is_read_in_its_fields() -> None:
    said = read("evm", SIWE, None).sign_in

    assert said is not None
    assert msgspec.structs.asdict(said) == {
        "family": "evm",
        "scheme": None,
        "domain": "app.example.com",
        "address": US,
        "uri": "https://app.example.com/login",
        "chain": "eip155:8453",
        "issued_at": datetime(2026, 1, 1, 11, 59, 0, 123_000, tzinfo=UTC),
        "expiration_time": datetime(2026, 1, 1, 13, tzinfo=UTC),
        "not_before": datetime(2026, 1, 1, 11, tzinfo=UTC),
        "resources": ("https://app.example.com/one", "ipfs://two"),
    }


LINES = SIWE.split("\n")


@settings(max_examples=300)
@given(st.data())
def test_sign_ins_of_people_are_read_alike(data: st.DataObject) -> None:
    """The strict reader of people's sign-ins shares nothing with this one."""
    lines = list(LINES)
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "empty", "swap", "letter"]))
        if change == "drop":
            del lines[at]
        elif change == "double":
            lines.insert(at, lines[at])
        elif change == "empty":
            lines.insert(at, "")
        elif change == "swap":
            lines[at - 1], lines[at] = lines[at], lines[at - 1]
        else:
            lines[at] += data.draw(st.sampled_from(["x", " ", "/", "\r", "é", "0"]))
    text = "\n".join(lines)
    try:
        strict = siwe.parse(text)
    except siwe.SiweMalformed:
        return

    said = read("evm", text, None).sign_in

    assert said is not None
    assert (said.domain, said.scheme, said.address, said.uri) == (
        strict.domain, strict.scheme, strict.address, strict.uri,
    )  # fmt: skip
    assert (said.issued_at, said.expiration_time, said.not_before, said.resources) == (
        strict.issued_at, strict.expiration_time, strict.not_before, strict.resources,
    )  # fmt: skip
    assert said.chain == f"eip155:{strict.chain_id}"


@pytest.mark.parametrize(
    "text",
    [
        SIWE + "\n",
        SIWE.replace("\n", "\r\n"),
        SIWE.replace("Version: 1", "Version: 2"),
        SIWE.replace("Nonce: 32891756abcDEF\n", ""),
        SIWE.replace("URI: https://app.example.com/login\n", ""),
        SIWE.replace("Chain ID: 8453", "Chain ID: 08453"),
        SIWE.replace("2026-01-01T13:00:00Z", "2026-02-30T13:00:00Z"),
        SIWE.replace("Accept the terms: https://app.example.com/tos\n\n", ""),
        SIWE.replace("app.example.com wants", "app.ex\u0430mple.com wants"),
        SIWE.replace("app.example.com wants", "app.example.com  wants"),
        SIWE.replace("Ethereum account", "ethereum account"),
        "Hello. " + SIWE,
        "\n" + SIWE,
    ],
)  # fmt: skip
def test_a_text_that_only_looks_like_a_sign_in_claims_to_be_one(text: str) -> None:
    message = read("evm", text, None)

    assert message.claims
    assert message.sign_in is None


MAINNET, DEVNET = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1"
TESTNET = "solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z"
PHANTOM = {
    "address alone": f"example.com wants you to sign in with your Solana account:\n{SOLANA_US}",
    "statement": f"example.com wants you to sign in with your Solana account:\n{SOLANA_US}\n\nClicking Sign is free.",
    "fields": f"example.com wants you to sign in with your Solana account:\n{SOLANA_US}\n\n"
    "URI: https://example.com\nVersion: 1\nChain ID: mainnet\nNonce: oBbLoEldZs\nIssued At: 2026-01-01T12:00:00.000Z",
    "all": f"https://example.com wants you to sign in with your Solana account:\n{SOLANA_US}\n\nHello.\n\n"
    "URI: https://example.com/in\nVersion: 1\nChain ID: solana:devnet\nNonce: oBbLoEldZs\n"
    "Issued At: 2026-01-01T12:00:00Z\nExpiration Time: 2026-01-01T13:00:00Z\nNot Before: 2026-01-01T12:00:00Z\n"
    "Request ID: one\nResources:\n- https://example.com/a\n- https://example.com/b",
    "a chain by its whole name": f"example.com wants you to sign in with your Solana account:\n{SOLANA_US}\n\n"
    f"Chain ID: {DEVNET}\nNonce: oBbLoEldZs",
    "testnet": f"example.com wants you to sign in with your Solana account:\n{SOLANA_US}\n\nChain ID: testnet",
    "two empty lines": f"example.com wants you to sign in with your Solana account:\n{SOLANA_US}\n\n\n"
    "URI: https://example.com\nNonce: oBbLoEldZs",
}


@pytest.mark.parametrize(("name", "text"), PHANTOM.items())
def test_a_sign_in_with_solana_is_read_as_wallets_write_it(name: str, text: str) -> None:
    said = read("solana", text, None).sign_in

    assert said is not None
    assert (said.family, said.domain, said.address) == ("solana", "example.com", SOLANA_US)
    chains = {"fields": MAINNET, "testnet": TESTNET, "all": DEVNET, "a chain by its whole name": DEVNET}
    assert said.chain == chains.get(name)
    assert len(said.resources) == (2 if name == "all" else 0)


@pytest.mark.parametrize("tail", ["\n", "\n\n", "\n\nHello.\n", "\n\nHello.\n\n", "\n\nHello.\n\n\nNonce: oBbLoEldZs",
                                  "\n\nChain ID: nowhere", "\n\nNonce: short", "\n\nResources:\n-x"])  # fmt: skip
def test_a_text_that_wallets_of_solana_never_write_is_no_sign_in(tail: str) -> None:
    message = read("solana", PHANTOM["address alone"] + tail, None)

    assert (message.claims, message.sign_in) == (True, None)


# ---- whose they are


def test_a_sign_in_by_another_wallet_is_refused() -> None:
    other = "0x" + "11" * 20
    cases = [
        (EvmMessageOrder(SIWE), other),
        (EvmMessageOrder(raw="0x" + SIWE.encode().hex()), other),
        (EvmMessageOrder(PHANTOM["all"]), US),
        (SolanaMessageOrder(PHANTOM["all"]), "11111111111111111111111111111112"),
        (SolanaMessageOrder(SIWE), SOLANA_US),
    ]
    for order, address in cases:
        message = read(str(order.__struct_config__.tag), order.message, order.raw)
        with pytest.raises(MessageNotOurs):
            subject_of(order, message, address, None, None)


@pytest.mark.parametrize(("content", "label"), [(b"hello", "message"), (b"\xff\xfe", "bytes")])
def test_a_message_is_one_effect_that_nobody_can_read(content: bytes, label: str) -> None:
    order = EvmMessageOrder(raw="0x" + content.hex())

    subject = subject_of(order, of(content), US, 8453, "eip155:8453")

    effect = Effect("unread", None, 0, US.lower(), unknown=True, label=label, size=len(content))
    assert subject == Subject("evm", "message", 8453, "eip155:8453", None, (effect,), message=of(content))


@pytest.mark.parametrize("text", [SIWE, SIWE.replace(US, US.lower())])
def test_a_sign_in_is_ours_in_either_spelling(text: str) -> None:
    subject = subject_of(EvmMessageOrder(text), read("evm", text, None), US, 8453, "eip155:8453")

    (effect,) = subject.effects
    assert (effect.kind, effect.label, effect.size) == ("unread", "sign-in: app.example.com", len(text))
    assert effect.from_ == US.lower()


def test_our_address_in_another_case_is_not_taken() -> None:
    text = SIWE.replace(US, "0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED")

    with pytest.raises(MessageNotOurs):
        subject_of(EvmMessageOrder(text), read("evm", text, None), US, None, None)


@pytest.mark.parametrize(
    ("order", "content"),
    [
        (EvmMessageOrder("a text"), b"a text"),
        (EvmMessageOrder(None, "0x" + "ab" * 40), b"\xab" * 40),
        (SolanaMessageOrder(None, base64.b64encode(b"\xab" * 40).decode()), b"\xab" * 40),
    ],
)
def test_an_orders_message_is_read_as_its_wallet_signs_it(
    order: EvmMessageOrder | SolanaMessageOrder, content: bytes
) -> None:
    assert read_order(order).raw == content
