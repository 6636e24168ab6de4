"""Typed data is signed only where eth-account reads it as we do: naive readers differ on each of these documents."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import msgspec
import pytest

from custody.chains import chains_file
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.evm.typed_schema import BadTypedData
from custody.kit.refs import AgentRef
from custody.protocol.signer.refusals import TypedDataAmbiguous
from signer.cpu_throttle import CpuThrottle
from signer.orders import second_reader
from signer.orders.built_in import KINDS
from signer.orders.kind import Inputs
from signer.orders.typed_data import TYPED_DATA, TypedDataDraft
from signer.orders.typed_data_reader import EthAccountReader
from tests.outside.processes import PROJECT

INPUTS = Inputs(chains_file.load({}))
US = "0x" + "ab" * 20
# Signed: both make the same hash. Refused: by our own reader. Ambiguous: by the second one, after ours had read it.
SIGNED, REFUSED, AMBIGUOUS = "signed", "refused", "ambiguous"


def field(name: str, kind: str) -> dict[str, str]:
    return {"name": name, "type": kind}


def one(kind: str, it: Any, **more: Any) -> dict[str, Any]:
    """A document with one field of a type, and its value."""
    types = {"Thing": [field("it", kind)]} | more.pop("types", {})
    return {
        "domain": {"name": "n", "chainId": 1},
        "types": types,
        "primaryType": "Thing",
        "value": {"it": it},
    } | more


def check(document: dict[str, Any]) -> TypedDataDraft:
    return TYPED_DATA.check(msgspec.convert(document, TypedDataOrder), INPUTS)


def verdict(document: dict[str, Any]) -> str:
    try:
        draft = check(document)
    except (BadTypedData, msgspec.ValidationError):
        return REFUSED
    try:
        EthAccountReader().confirm(draft)
    except TypedDataAmbiguous:
        return AMBIGUOUS
    return SIGNED


PAIR = {"Pair": [field("a", "uint256"), field("b", "string")]}
TREE = {"Thing": [field("it", "Leaf[]")], "Leaf": [field("it", "Thing[]")]}
DOCUMENTS = {
    "a type with a space": (one("uint256 ", 1), REFUSED),
    "a type name with a space": (one("Pair x", {}, types={"Pair x": PAIR["Pair"]}), REFUSED),
    "a field name that spells a second field": (
        one("uint256", 1, types={"Thing": [field("it,uint256 other", "uint256")]}),
        REFUSED,
    ),
    "an alias of uint256": (one("uint", 1), REFUSED),
    "an array of structs": (one("Pair[]", [{"a": 1, "b": "x"}, {"a": "2", "b": ""}], types=PAIR), SIGNED),
    "an empty array of structs": (one("Pair[]", [], types=PAIR), SIGNED),
    "arrays of arrays of structs": (one("Pair[][1]", [[{"a": 1, "b": "x"}]], types=PAIR), SIGNED),
    "a fixed array that is too short": (one("uint8[2]", [1]), REFUSED),
    "a fixed array": (one("uint8[2]", [1, 2]), SIGNED),
    "an array of strings": (one("string[]", ["a", ""]), SIGNED),
    "an array of bytes": (one("bytes[]", ["0x", "0x00"]), SIGNED),
    "an integer as a string": (
        one("uint256", "115792089237316195423570985008687907853269984665640564039457584007"),
        SIGNED,
    ),
    "an integer in hex": (one("uint256", "0xff"), SIGNED),
    "an integer with a sign": (one("uint256", "+1"), REFUSED),
    "an integer with a separator": (one("uint256", "1_000"), REFUSED),
    "an integer with spaces": (one("uint256", " 1 "), REFUSED),
    "an integer with a fraction": (one("uint256", 1.0), REFUSED),
    "an empty integer": (one("uint256", ""), REFUSED),
    "a boolean as an integer": (one("uint256", True), REFUSED),
    "an integer that overflows": (one("uint8", 256), REFUSED),
    "an integer string that overflows": (one("uint8", "256"), REFUSED),
    "a negative unsigned integer": (one("uint8", -1), REFUSED),
    "the lowest signed integer": (one("int8", -128), SIGNED),
    "a negative string": (one("int256", "-5"), SIGNED),
    "below the lowest signed integer": (one("int8", -129), REFUSED),
    "the largest integer": (one("uint256", str(2**256 - 1)), SIGNED),
    "true": (one("bool", True), SIGNED),
    "a boolean as a string": (one("bool", "false"), REFUSED),
    "a boolean as a number": (one("bool", 0), REFUSED),
    "bytes as text": (one("bytes", "hello"), REFUSED),
    "bytes of odd length": (one("bytes", "0x123"), REFUSED),
    "no bytes": (one("bytes", "0x"), SIGNED),
    "bytes in upper case": (one("bytes", "0xABCDEF"), SIGNED),
    "bytes4 that are too short": (one("bytes4", "0xabcd"), REFUSED),
    "bytes4": (one("bytes4", "0xabcdef01"), SIGNED),
    "text that looks like bytes": (one("string", "0xabcd"), SIGNED),
    "text that looks like a number": (one("string", "12"), SIGNED),
    "a number as text": (one("string", 12), REFUSED),
    "text beyond the basic plane": (one("string", "\U0001f4b8 e\u0301"), SIGNED),
    "an address in lower case": (one("address", US), SIGNED),
    "an address with a wrong checksum": (one("address", "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD82a"), REFUSED),
    "an address as a number": (one("address", 1), REFUSED),
    "a short address": (one("address", "0x01"), REFUSED),
    "a missing field": (one("uint256", 1, value={}), REFUSED),
    "null": (one("uint256", None), REFUSED),
    "null for a struct": (one("Pair", None, types=PAIR), REFUSED),
    "null for text": (one("string", None), REFUSED),
    "a key that is not hashed": (one("uint256", 1, value={"it": 1, "more": 2}), SIGNED),
    "a type that nothing uses": (one("uint256", 1, types=PAIR), SIGNED),
    "a field twice": (one("uint256", 1, types={"Thing": [field("it", "uint256"), field("it", "uint256")]}), REFUSED),
    "a type of itself": (one("Thing[]", [{"it": []}]), SIGNED),
    "types of each other": (one("Leaf[]", [{"it": []}], types=TREE), SIGNED),
    "a type with a colon": (
        {
            "domain": {"name": "n", "chainId": 1},
            "types": {"Desk:Withdraw": [field("amount", "string")]},
            "primaryType": "Desk:Withdraw",
            "value": {"amount": "1"},
        },
        SIGNED,
    ),
    "a type that begins like bytes": (one("bytesOf", {"x": 1}, types={"bytesOf": [field("x", "uint8")]}), SIGNED),
    "a type that begins like int": (one("intent[]", [{"x": 1}], types={"intent": [field("x", "uint8")]}), SIGNED),
    "an empty domain": (one("uint256", 1, domain={}), SIGNED),
    "a domain in another order": (one("uint256", 1, domain={"chainId": 1, "version": "1", "name": "n"}), SIGNED),
    "a domain with everything": (
        one(
            "uint256",
            1,
            domain={"name": "n", "version": "1", "chainId": "0x1", "verifyingContract": US, "salt": "0x" + "11" * 32},
        ),
        SIGNED,
    ),
    "a domain with more": (one("uint256", 1, domain={"name": "n", "chain": 1}), REFUSED),
    "a domain with null": (one("uint256", 1, domain={"name": "n", "salt": None}), SIGNED),
    "a domain that is declared otherwise": (
        one("uint256", 1, types={"EIP712Domain": [field("chainId", "uint64"), field("name", "string")]}),
        SIGNED,
    ),
    "a domain of its own fields": (
        one("uint256", 1, types={"EIP712Domain": [field("pair", "Pair")], **PAIR}, domain={"pair": {"a": 1, "b": ""}}),
        SIGNED,
    ),
    "a domain declared as nothing": (one("uint256", 1, types={"EIP712Domain": []}), SIGNED),
    "a domain within the message": (
        one("EIP712Domain", {"name": "n"}, types={"EIP712Domain": [field("name", "string")]}),
        SIGNED,
    ),
    "a domain that lacks what it declares": (
        one("uint256", 1, types={"EIP712Domain": [field("salt", "bytes32")]}),
        REFUSED,
    ),
    "the domain alone": (
        one("uint256", 1, types={"EIP712Domain": [field("name", "string")]}, primaryType="EIP712Domain"),
        REFUSED,
    ),
    "the zero contract and no chain": (
        one("uint256", 1, domain={"chainId": 0, "verifyingContract": "0x" + "00" * 20}),
        SIGNED,
    ),
    "a chain beyond all chains": (one("uint256", 1, domain={"chainId": str(2**256 - 1)}), SIGNED),
    "a salt as text": (one("uint256", 1, domain={"salt": "decafbeef"}), REFUSED),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_hashed_alike_by_two_readers_or_not_signed(name: str) -> None:
    document, expected = DOCUMENTS[name]

    assert verdict(document) == expected


def test_the_check_bites_on_any_other_hash() -> None:
    draft = check(one("string", "hello"))
    other = check(one("string", "hell0"))

    EthAccountReader().confirm(draft)
    with pytest.raises(TypedDataAmbiguous):
        EthAccountReader().confirm(msgspec.structs.replace(draft, signable=other.signable))
    with pytest.raises(TypedDataAmbiguous):
        EthAccountReader().confirm(msgspec.structs.replace(draft, order=other.order))


def test_typed_data_too_costly_for_the_second_reader_is_refused_first() -> None:
    types = {"Item": [field("of", "Large[]")], "Large": [field(f"f{n}", "uint8") for n in range(60)]}

    assert verdict(one("Item[]", [{"of": []}] * 60, types=types)) == SIGNED
    with pytest.raises(BadTypedData, match="4096"):
        check(one("Item[]", [{"of": []}] * 490, types=types))


class OnlyThrottle:
    """As much of a signer as a second reader needs."""

    def __init__(self) -> None:
        self.throttle = CpuThrottle()


def test_a_second_reader_counts_in_its_agents_share_and_runs_off_the_loop() -> None:
    seen: list[str] = []

    class Reader(EthAccountReader):
        def confirm(self, draft: TypedDataDraft) -> None:
            seen.append(threading.current_thread().name)
            super().confirm(draft)

    class Kind(type(TYPED_DATA)):  # type: ignore[misc]
        second_reader = Reader()

    asyncio.run(second_reader.confirm(OnlyThrottle(), AgentRef("t", "a"), Kind(), check(one("bool", True))))

    assert seen == ["second-reader_0"]


def test_an_order_signed_as_it_comes_has_a_second_reader() -> None:
    assert {kind.name for kind in KINDS.by_order.values() if kind.second_reader is not None} == {
        "typed_data",
        "bitcoin",
    }


def test_the_libraries_are_there_before_the_first_order_and_not_at_the_start() -> None:
    """In a process of its own, for here others have imported them."""
    script = (
        "import asyncio, sys\n"
        "from signer import second_readers\n"
        "from signer.orders.built_in import KINDS\n"
        "there = lambda: [name for name in ('eth_account.messages', 'embit.psbt') if name in sys.modules]\n"
        "print(there()); asyncio.run(second_readers.load(KINDS, 0)); print(there())\n"
    )
    command = [sys.executable, "-P", "-c", script]

    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines() == ["[]", "['eth_account.messages', 'embit.psbt']"]
