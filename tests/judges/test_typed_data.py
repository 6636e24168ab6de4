"""Whatever document we sign, viem, ethers and MetaMask's encoder hash as we do; or they do not take it at all."""

import json
import shutil
import subprocess
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from custody.chains import chains_file
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.evm.typed_schema import BadTypedData
from signer.orders.kind import Inputs
from signer.orders.typed_data import TYPED_DATA
from signer.orders.typed_data_reader import EthAccountReader
from tests.judges import npm
from tests.rules.chains.test_typed_data import documents, fill

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

INPUTS = Inputs(chains_file.load({}))
ZERO, SOMEBODY = "0x" + "00" * 20, "0x" + "ab" * 20
FULL = {"name": "x", "version": "1", "chainId": 5, "verifyingContract": SOMEBODY, "salt": "0x" + "11" * 32}
STANDARD = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
    "salt": "bytes32",
}


@pytest.fixture(scope="module", autouse=True)
def _encoders() -> None:
    npm.install()


def field_list(fields: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "type": kind} for name, kind in fields.items()]


def note(domain: dict[str, Any], declared: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    types = {"Note": field_list({"text": "string"})} | (
        {} if declared is None else {"EIP712Domain": field_list(declared)}
    )
    return {"domain": domain, "types": types, "primaryType": "Note", "value": {"text": "hi"}} | changes


def ours(document: dict[str, Any]) -> str | None:
    """The digest that would be signed, which the second reader makes too; None where it is refused."""
    try:
        draft = TYPED_DATA.check(msgspec.convert(document, TypedDataOrder), INPUTS)
    except (BadTypedData, msgspec.ValidationError):
        return None
    EthAccountReader().confirm(draft)
    return "0x" + draft.signable.hex()


def theirs(these: list[dict[str, Any]]) -> list[dict[str, str]]:
    node = shutil.which("node")
    assert node
    lines = "\n".join(map(json.dumps, these))
    done = subprocess.run(
        [node, "typed_data.mjs"], cwd=npm.JUDGES, input=lines, capture_output=True, text=True, check=True, timeout=120
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def differing(these: list[dict[str, Any]], by: list[int]) -> list[Any]:
    """The documents that we would sign otherwise than an encoder, or that fewer encoders take than are named."""
    wrong: list[Any] = []
    for document, made, least in zip(these, theirs(these), by, strict=True):
        digest = ours(document)
        others = [each for each in made.values() if not each.startswith("refused")]
        if digest is not None and (set(others) - {digest} or len(others) < least):
            wrong.append((document, digest, made))
    return wrong


AGENT = {"Agent": field_list({"source": "string", "connectionId": "bytes32"})}
OWN = {"owner": "address", "fee": "uint8", "memo": "bytes", "ok": "bool"}
# Each with how many encoders take it: MetaMask's needs a declared domain, ethers takes no null in a declared one.
FORMS: dict[str, tuple[dict[str, Any], int]] = {
    "an exchange at no contract": (
        {
            "domain": {"name": "Exchange", "version": "1", "chainId": 1337, "verifyingContract": ZERO},
            "types": {**AGENT, "EIP712Domain": field_list({name: STANDARD[name] for name in list(STANDARD)[:4]})},
            "primaryType": "Agent",
            "value": {"source": "a", "connectionId": "0x" + "22" * 32},
        },
        3,
    ),
    "the same, not declared": (
        {
            "domain": {"name": "Exchange", "version": "1", "chainId": 1337, "verifyingContract": ZERO},
            "types": AGENT,
            "primaryType": "Agent",
            "value": {"source": "a", "connectionId": "0x" + "22" * 32},
        },
        2,
    ),
    "fewer fields than there are": (note(FULL, {"name": "string"}), 3),
    "no field of those that are there": (note(FULL, {}), 3),
    "another order": (note(FULL, dict(reversed(STANDARD.items()))), 3),
    "a narrow chain": (note(FULL, {"chainId": "uint64"}), 3),
    "a chain as text": (note(FULL | {"chainId": "5"}, {"chainId": "string", "name": "string"}), 3),
    "fields of its own": (note({"owner": SOMEBODY, "fee": 3, "memo": "0x01", "ok": True}, OWN), 3),
    "no domain": (note({}), 2),
    "all of it": (note(FULL), 2),
    "chain zero": (note({"chainId": 0}), 2),
    "a chain beyond 2^63": (note({"chainId": str(2**64)}), 2),
    "a chain of 2^255": (note({"chainId": str(2**255)}, {"chainId": "uint256"}), 3),
    "the largest chain": (note({"chainId": str(2**256 - 1)}), 2),
    "null where nothing is declared": (note({"name": "x", "salt": None}), 2),
    "a type that nothing uses": (
        note(FULL, STANDARD, types={"Note": field_list({"text": "string"}), "Idle": field_list({"a": "bool"})}),
        2,
    ),
    "a key beyond the type": (note(FULL, STANDARD, value={"text": "hi", "totalOriginal": "2"}), 2),
    "types of each other": (
        note(
            FULL,
            types={
                "EIP712Domain": field_list(STANDARD),
                "Note": field_list({"of": "Leaf[]"}),
                "Leaf": field_list({"of": "Note[]"}),
            },
            value={"of": [{"of": []}]},
        ),
        2,
    ),
}


def test_domains_as_the_world_writes_them_are_hashed_alike() -> None:
    these, by = zip(*FORMS.values(), strict=True)

    assert differing(list(these), list(by)) == []
    assert [name for name, (document, _) in FORMS.items() if ours(document) is None] == []


def test_another_digest_would_be_seen() -> None:
    """The comparison fails for a document that the encoders are given with another domain."""
    document = note(FULL, {"name": "string"})

    (made,) = theirs([note(FULL)])

    assert ours(document) not in made.values()


KINDS = ["string", "uint256", "uint64", "int256", "address", "bytes32", "bytes", "bool", "uint8[]", "Part"]


@st.composite
def any_documents(draw: st.DrawFn) -> dict[str, Any]:
    """A document with any domain, with keys and types beyond what is hashed, or with something amiss."""
    document: dict[str, Any] = msgspec.to_builtins(draw(documents()))
    document.pop("referenceId")
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from([*STANDARD, "owner", "fee"]), unique=True, max_size=5))
        chosen = {
            name: STANDARD.get(name, "uint8") if draw(st.booleans()) else draw(st.sampled_from(KINDS)) for name in names
        }
        structs = {"Part": {"a": "uint256", "b": "string"}}
        domain = {name: fill(draw, kind, structs) for name, kind in chosen.items()}
        document["types"] |= {"EIP712Domain": field_list(chosen), "Part": field_list(structs["Part"])}
        document["domain"] = (document["domain"] if draw(st.booleans()) else {}) | domain
    else:
        nothing = draw(st.sampled_from(list(STANDARD)))
        document["domain"] = document["domain"] | ({nothing: None} if draw(st.booleans()) else {})
    if draw(st.booleans()):
        document["types"]["Idle"] = field_list({"x": draw(st.sampled_from(KINDS))})
    document["value"] |= draw(
        st.sampled_from([{}, {"beyond": "1"}, {"f0": None}, {"f0": -1}, {"beyond": {"deep": []}}])
    )
    # Numbers that JavaScript would round are refused before a document comes here.
    return json.loads(json.dumps(document), parse_int=lambda digits: int(digits) if len(digits) < 16 else digits)


@given(st.lists(any_documents(), min_size=30, max_size=40))
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_signed_document_is_hashed_alike_by_all_who_take_it(these: list[dict[str, Any]]) -> None:
    assert differing(these, [1] * len(these)) == []
