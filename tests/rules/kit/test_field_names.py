"""Foreign names of a field: the refusal names the one that is meant, and has nobody drop what is signed."""

import re
from collections.abc import Iterator
from typing import Any

import coincurve
import msgspec
import pytest
from eth_account import Account
from msgspec import inspect

from api.areas.signing.questions import MessageBody
from api.routes import endpoints
from custody.chains.bitcoin.orders import PsbtOrder
from custody.chains.chains_file import load
from custody.chains.evm.action_orders import CallsOrder, ReplacementFees, TransferOrder
from custody.chains.evm.orders import EvmOrder
from custody.chains.message_effects import read_order
from custody.chains.message_orders import EvmMessageOrder, SolanaMessageOrder
from custody.chains.solana.orders import SolanaOrder
from custody.chains.typed_body import TypedDataBody
from custody.intents import payloads
from custody.kit.field_names import FIELD_NAMES, Meant
from custody.kit.validation import explain
from signer.ledger import Facts
from signer.orders.evm import EVM_TRANSACTION
from signer.orders.kind import Inputs
from tests.fixtures.callers import ADDRESS
from tests.fixtures.each import each
from tests.rules.chains.test_evm_fees import FACTS

KEY = b"\7" * 32
CALL = "0xa9059cbb" + "00" * 12 + "22" * 20 + f"{5:064x}"
BODIES: dict[type[msgspec.Struct], dict[str, Any]] = {
    EvmOrder: {
        "to": ADDRESS, "value": "7", "data": CALL, "chainId": 8453, "nonce": 3, "broadcast": False, "gasLimit": "50000",
        "maxFeePerGas": "30000000000", "maxPriorityFeePerGas": "2000000000", "referenceId": "bill-7",
    },
    TransferOrder: {
        "to": ADDRESS, "value": "7", "token": ADDRESS, "chainId": 8453, "broadcast": False, "referenceId": "bill-7",
        "sponsor": False,
    },
    CallsOrder: {"calls": [{"to": ADDRESS, "value": "7", "data": CALL}], "chainId": 8453, "referenceId": "bill-7"},
    ReplacementFees: {"maxFeePerGas": "30000000000", "maxPriorityFeePerGas": "2000000000"},
    TypedDataBody: {
        "domain": {"name": "Notes"}, "types": {"Note": [{"name": "text", "type": "string"}]}, "primaryType": "Note",
        "message": {"text": "hello"}, "referenceId": "bill-7",
    },
    SolanaOrder: {
        "transaction": "AQAB", "to": "1" * 32, "value": "7", "chainId": 102, "broadcast": False, "referenceId": "b",
    },
    PsbtOrder: {
        "walletScope": "bitcoin:mainnet:p2wpkh:0:0:0", "psbtBase64": "cHNidP8=", "finalize": True, "referenceId": "b",
    },
    EvmMessageOrder: {
        "chainFamily": "evm", "message": "hello", "raw": "0x00ff", "chainId": 8453, "referenceId": "b",
    },
    SolanaMessageOrder: {
        "chainFamily": "solana", "message": "hello", "raw": "AP8=", "chainId": 102, "referenceId": "b",
    },
}  # fmt: skip
# Of these a body has one.
FORMS = {"message": "raw", "raw": "message"}
MESSAGES = (EvmMessageOrder, SolanaMessageOrder)


def structs_of(shape: Any) -> Iterator[type[msgspec.Struct]]:
    """Every struct that a body may have in it."""
    seen: set[type] = set()
    waiting = [inspect.type_info(shape)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, inspect.StructType):
            if node.cls in seen:
                continue
            seen.add(node.cls)
            yield node.cls
            waiting += [field.type for field in node.fields]
        else:
            inner = (getattr(node, name, None) for name in ("type", "item_type", "key_type", "value_type"))
            waiting += [one for one in inner if isinstance(one, inspect.Type)]
            waiting += [*getattr(node, "types", ()), *getattr(node, "item_types", ())]


SHAPES = [(one.handler.__name__, one.body) for one in endpoints() if one.body is not None]
STRUCTS = {
    struct.__name__: struct
    for shape in [*(shape for _, shape in SHAPES), *payloads.SHAPES.values()]
    for struct in structs_of(shape)
}


def refusal(body: dict[str, Any], shape: type[msgspec.Struct]) -> str:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(body, shape)
    return explain(refused.value, shape).sentence("The body")


def test_every_struct_of_the_table_is_one_that_callers_send() -> None:
    assert set(FIELD_NAMES) <= set(STRUCTS)


@each("struct", FIELD_NAMES)
def test_names_are_no_fields_and_what_is_meant_is_one(struct: str) -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(STRUCTS[struct])}
    tag = STRUCTS[struct].__struct_config__.tag_field

    assert not fields & set(FIELD_NAMES[struct])
    assert tag not in FIELD_NAMES[struct]
    assert {one.field for one in FIELD_NAMES[struct].values() if isinstance(one, Meant)} <= fields


RENAMED = [
    (shape, name, meant.field)
    for shape in BODIES
    for name, meant in FIELD_NAMES[shape.__name__].items()
    if isinstance(meant, Meant)
]


@each(("shape", "name", "field"), RENAMED, ids=lambda one: getattr(one, "__name__", str(one)))
def test_following_the_advice_gives_the_same_order(shape: type[msgspec.Struct], name: str, field: str) -> None:
    body = dict(BODIES[shape])
    if shape in MESSAGES:
        del body[FORMS.get(field, "raw")]
    given = {**body, name: body[field]}
    del given[field]
    assert f'{name} is no field here; call it "{field}"' in refusal(given, shape)

    advised = re.search(r'call it "(\w+)"', refusal(given, shape))
    assert advised is not None
    given[advised[1]] = given.pop(name)

    order = msgspec.convert(given, shape)
    assert order == msgspec.convert(body, shape)
    if isinstance(order, MESSAGES):
        assert read_order(order).raw == (b"hello" if "message" in body else b"\0\xff")


@each("struct", ["EvmMessageOrder", "SolanaMessageOrder"])
def test_an_encoding_of_a_message_is_never_guessed(struct: str) -> None:
    """Text in hex or base64 is signed as the letters it is: a caller who names an encoding means `raw`."""
    for name in ("encoding", "display", "format", "payload", "data"):
        told = str(FIELD_NAMES[struct][name])
        assert '"message"' in told
        assert '"raw"' in told


@each(
    ("struct", "names", "field"),
    [
        ("EvmMessageOrder", "text content", "message"),
        ("SolanaMessageOrder", "text content", "message"),
        ("EvmMessageOrder", "hexstr hex primitive", "raw"),
        ("SolanaMessageOrder", "base64 messageBase64", "raw"),
    ],
)
def test_bytes_are_never_called_the_text_of_a_message(struct: str, names: str, field: str) -> None:
    meant = [FIELD_NAMES[struct][name] for name in names.split()]

    assert [one.field for one in meant if isinstance(one, Meant)] == [field] * len(meant)


def test_the_route_of_messages_tells_of_both_wallets() -> None:
    asked = {"chainFamily": "evm", "hexstr": "0x00ff"}
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(asked, MessageBody)

    assert explain(refused.value, MessageBody).sentence("The body") == (
        'hexstr is no field here; call it "raw", 0x and hex for the EVM wallet; or give the same bytes in standard '
        'base64, as "raw".'
    )


TOLD = [
    (struct, name) for struct in FIELD_NAMES for name, one in FIELD_NAMES[struct].items() if not isinstance(one, Meant)
]


def test_no_sentence_of_the_table_has_a_caller_drop_a_field() -> None:
    for struct, name in TOLD:
        said = str(FIELD_NAMES[struct][name])
        assert not re.search(r"leave|omit|drop|remove|without it|not needed", said), (struct, name)
        # What a sentence puts into quotes is a field, or an example of a value.
        for field in re.findall(r'"(\w+)"', said):
            outer = {one.encode_name for shape in STRUCTS.values() for one in msgspec.structs.fields(shape)}
            assert field in outer, (struct, name)


@each(("name", "shape"), SHAPES, ids=lambda one: one if isinstance(one, str) else "")
def test_no_route_has_a_caller_drop_a_field_that_it_does_not_know(name: str, shape: Any) -> None:
    for struct in structs_of(shape):
        if not struct.__struct_config__.forbid_unknown_fields:
            continue
        problem = msgspec.ValidationError("Object contains unknown field `zzzz`")
        assert "leave" not in explain(problem, struct).sentence("The body")


# As the documentation of each library lists the fields of a request.
VIEM = (
    "account to data value gas gasPrice maxFeePerGas maxPriorityFeePerGas maxFeePerBlobGas nonce type accessList "
    "authorizationList blobs blobVersionedHashes kzg sidecars chain chainId dataSuffix"
)
VIEM_CONTRACT = "abi address args functionName account chain dataSuffix gas value"
ETHERS = (
    "type to from nonce gasLimit gasPrice maxPriorityFeePerGas maxFeePerGas data value chainId accessList "
    "blobVersionedHashes maxFeePerBlobGas blobs kzg authorizationList"
)
WEB3JS = "from to value gas gasPrice type maxFeePerGas maxPriorityFeePerGas accessList data input nonce chainId"
NODES = (
    "type nonce to from gas value input data gasPrice maxPriorityFeePerGas maxFeePerGas maxFeePerBlobGas accessList "
    "blobVersionedHashes blobs chainId"
)
# Of messages: viem, eth-account and web3.py, Solana's wallets, Privy and Turnkey.
SIGN_MESSAGE = "account message raw"
ENCODE_DEFUNCT = "primitive hexstr text account data"
WALLET_STANDARD = "account message display"
PRIVY = "walletId method params message encoding chainType caip2 address"
TURNKEY = "signWith payload encoding hashFunction parameters type"
SEND_CALLS = "version id chainId from atomicRequired calls capabilities"


@each(
    ("shape", "names"),
    [
        *((EvmOrder, names) for names in (VIEM, VIEM_CONTRACT, ETHERS, WEB3JS, NODES)),
        (CallsOrder, SEND_CALLS),
        (TypedDataBody, "account domain types primaryType message"),
        *((EvmMessageOrder, names) for names in (SIGN_MESSAGE, ENCODE_DEFUNCT, PRIVY, TURNKEY)),
        *((SolanaMessageOrder, names) for names in (WALLET_STANDARD, PRIVY, TURNKEY)),
    ],
    ids=[
        "viem",
        "viem's contracts",
        "ethers",
        "web3.js",
        "nodes",
        "wallet_sendCalls",
        "viem's typed data",
        "viem's messages",
        "eth-account",
        "Privy",
        "Turnkey",
        "wallets of Solana",
        "Privy on Solana",
        "Turnkey on Solana",
    ],
)
def test_every_field_of_the_libraries_is_taken_or_explained(shape: type[msgspec.Struct], names: str) -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(shape)}

    assert set(names.split()) - fields <= set(FIELD_NAMES[shape.__name__])


def test_a_call_as_nodes_name_it_is_signed_as_a_call_or_not_at_all() -> None:
    """The value without the call would be another payment."""
    asked = {"to": ADDRESS, "value": "7", "input": CALL, "chainId": 1, "nonce": 0, "gas": "60000", "broadcast": False}
    assert refusal(asked, EvmOrder) == 'input is no field here; call it "data".'
    asked["data"] = asked.pop("input")
    assert refusal(asked, EvmOrder) == 'gas is no field here; call it "gasLimit", as a decimal string.'
    asked["gasLimit"] = asked.pop("gas")

    order = msgspec.convert(asked, EvmOrder)
    draft = EVM_TRANSACTION.check(order, Inputs(load({})))
    facts = msgspec.convert({"address": ADDRESS} | FACTS, Facts)
    final = EVM_TRANSACTION.finish(draft, EVM_TRANSACTION.effects(draft, facts), facts)

    signed = Account.from_key(KEY).sign_transaction(
        {
            "to": ADDRESS, "value": 7, "data": CALL, "chainId": 1, "nonce": 0, "gas": 60_000,
            "maxFeePerGas": final.transaction.max_fee,
            "maxPriorityFeePerGas": final.transaction.priority_fee, "type": 2,
        }
    )  # fmt: skip

    assert EVM_TRANSACTION.sign(final, coincurve.PrivateKey(KEY)).raw == bytes(signed.raw_transaction)
