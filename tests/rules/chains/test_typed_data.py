"""EIP-712: known digests, equality with eth-account, and everything that is refused with its reason."""

import contextlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from coincurve import PrivateKey
from eth_abi import encode
from eth_account import Account
from eth_account.messages import _hash_eip191_message, encode_typed_data
from eth_utils import keccak, to_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.chains.evm.typed_data import digest, digest_of, hashed_part, read, sign
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.evm.typed_schema import ATOMS, BadTypedData

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "typed_data.json").read_text())
DOMAIN_TYPES = [
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
    ("salt", "bytes32"),
]
ONE = "0x" + "00" * 19 + "01"


def order(**changes: Any) -> TypedDataOrder:
    plain = {"domain": {}, "types": {"Note": {"text": "string"}}, "primaryType": "Note", "value": {"text": "hi"}}
    merged = {**plain, **changes}
    types = {
        name: [{"name": field, "type": kind} for field, kind in fields.items()]
        for name, fields in merged["types"].items()
    }
    return msgspec.convert({**merged, "types": types}, TypedDataOrder)


def of_one(kind: str, value: Any, **changes: Any) -> TypedDataOrder:
    return order(types={"Note": {"it": kind}, **changes}, value={"it": value})


def as_eth_account_reads_it(document: TypedDataOrder) -> bytes:
    full = msgspec.to_builtins(document)
    declared = [{"name": name, "type": kind} for name, kind in DOMAIN_TYPES if name in document.domain]
    full["types"] = {**full["types"], "EIP712Domain": declared}
    full["message"] = full.pop("value")
    full.pop("referenceId")
    return bytes(_hash_eip191_message(encode_typed_data(full_message=full)))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_known_documents_keep_their_digest_and_signature(vector: dict[str, Any]) -> None:
    fields = {key: vector[key] for key in ("domain", "types", "primaryType", "value")}
    document = msgspec.convert(fields, TypedDataOrder)

    assert digest(document).hex() == vector["digest"]
    assert sign(document, PrivateKey(bytes.fromhex(vector["key"]))) == vector["signature"]


def values_of(kind: str) -> st.SearchStrategy[Any]:
    if kind.startswith(("uint", "int")):
        bits = int(kind.lstrip("uint"))
        low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return st.integers(low, high) | st.sampled_from([low, high])
    if kind == "address":
        return st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
    if kind.startswith("bytes"):
        size = int(kind[5:]) if kind[5:] else None
        return st.binary(min_size=size or 0, max_size=size or 70).map(lambda raw: "0x" + raw.hex())
    return st.booleans() if kind == "bool" else st.text(max_size=40)


atoms = st.sampled_from(sorted(ATOMS))
suffixes = st.sampled_from(["", "", "", "[]", "[2]", "[][]", "[2][]"])


def fill(draw: st.DrawFn, kind: str, structs: dict[str, dict[str, str]]) -> Any:
    if kind.endswith("]"):
        inner, _, size = kind[:-1].rpartition("[")
        count = int(size) if size else draw(st.integers(0, 3))
        return [fill(draw, inner, structs) for _ in range(count)]
    if kind in structs:
        return {field: fill(draw, each, structs) for field, each in structs[kind].items()}
    return draw(values_of(kind))


@st.composite
def documents(draw: st.DrawFn) -> TypedDataOrder:
    structs: dict[str, dict[str, str]] = {}
    for name in [*draw(st.lists(st.sampled_from(["Zed", "Alpha", "M_1"]), unique=True, max_size=3)), "Top"]:
        kinds = draw(st.lists(st.tuples(atoms, suffixes).map("".join), min_size=1, max_size=3))
        if structs:
            kinds.append(list(structs)[-1] + draw(suffixes))
        structs[name] = {f"f{index}": kind for index, kind in enumerate(kinds)}
    chosen = draw(st.sets(st.sampled_from(DOMAIN_TYPES), min_size=1))
    domain = {name: draw(values_of(kind)) for name, kind in chosen}
    return order(domain=domain, types=structs, primaryType="Top", value=fill(draw, "Top", structs))


@given(documents())
@settings(max_examples=120, deadline=None)
def test_digests_equal_eth_accounts(document: TypedDataOrder) -> None:
    assert digest(document) == as_eth_account_reads_it(document)


@given(documents(), st.binary(min_size=32, max_size=32).filter(lambda key: 0 < int.from_bytes(key) < 2**255))
@settings(max_examples=20, deadline=None)
def test_signatures_equal_eth_accounts(document: TypedDataOrder, secret: bytes) -> None:
    theirs = Account.unsafe_sign_hash(digest(document), secret)

    assert sign(document, PrivateKey(secret)) == "0x" + theirs.signature.hex()


@pytest.mark.parametrize("spelling", [255, "255", "0xff", "0xFF", "0x00ff"])
def test_a_number_may_be_spelled_in_three_ways(spelling: Any) -> None:
    assert digest(of_one("uint8", spelling)) == digest(of_one("uint8", 255))


# ---- the domain, hashed as it is declared

NOTE = {"Note": {"text": "string"}}
FULL = {"name": "x", "version": "1", "chainId": 5, "verifyingContract": ONE, "salt": "0x" + "11" * 32}
DECLARED = {
    "as the standard has it": ({"name": "string", "chainId": "uint256"}, 5, None),
    "in another order": ({"chainId": "uint256", "name": "string"}, 5, None),
    "some of what is given": ({"name": "string"}, None, None),
    "nothing": ({}, None, None),
    "a narrow chain": ({"chainId": "uint64", "verifyingContract": "address"}, 5, ONE),
    "a chain as text": ({"name": "string", "chainId": "string"}, None, None),
    "a chain with a sign": ({"chainId": "int256"}, None, None),
    "a contract as text": ({"chainId": "uint256", "verifyingContract": "string"}, 5, None),
    "fields of its own": ({"owner": "address", "fee": "uint8", "memo": "bytes"}, None, None),
    "with a salt": ({"name": "string", "verifyingContract": "address", "salt": "bytes32"}, None, ONE),
}


def spelled_domain(fields: dict[str, str], domain: dict[str, Any]) -> bytes:
    """The separator as the standard says it, by another library."""
    kinds = ["bytes32"] + ["bytes32" if kind in ("string", "bytes") else kind for kind in fields.values()]
    spelled = "EIP712Domain(" + ",".join(f"{kind} {name}" for name, kind in fields.items()) + ")"
    words: list[Any] = [keccak(text=spelled)]
    for name, kind in fields.items():
        value = domain[name]
        words.append(keccak(text=value) if kind == "string" else keccak(hexstr=value) if kind == "bytes" else value)
    return keccak(encode(kinds, [to_bytes(hexstr=word) if str(word).startswith("0x11") else word for word in words]))


@pytest.mark.parametrize(("fields", "chain", "contract"), DECLARED.values(), ids=DECLARED)
def test_the_domain_is_hashed_as_it_is_declared(
    fields: dict[str, str], chain: int | None, contract: str | None
) -> None:
    domain = (
        FULL
        | {"owner": ONE, "fee": 3, "memo": "0x0102"}
        | ({"chainId": "5"} if fields.get("chainId") == "string" else {})
    )
    document = read(order(domain=domain, types={**NOTE, "EIP712Domain": fields}))

    message = keccak(keccak(text="Note(string text)") + keccak(text="hi"))
    assert digest_of(document) == keccak(b"\x19\x01" + spelled_domain(fields, domain) + message)
    assert (document.chain_id, document.verifying_contract) == (chain, contract)


def test_a_domain_that_says_what_follows_from_its_fields_changes_nothing() -> None:
    domain = {"chainId": 1, "name": "x"}
    declared = {**NOTE, "EIP712Domain": {"name": "string", "chainId": "uint256"}}

    assert digest(order(domain=domain, types=declared)) == digest(order(domain=domain, types=NOTE))


def test_null_in_a_domain_that_is_not_declared_is_as_if_it_were_not_there() -> None:
    assert digest(order(domain={"name": "x", "salt": None, "other": None})) == digest(order(domain={"name": "x"}))


@pytest.mark.parametrize(
    ("given", "known"), [(0, None), (1, 1), (2**63 - 1, 2**63 - 1), (2**63, None), (2**64, None), (2**256 - 1, None)]
)
def test_a_chain_id_is_hashed_as_it_comes_and_believed_where_a_chain_could_have_it(
    given: int, known: int | None
) -> None:
    document = read(order(domain={"chainId": str(given)}))

    assert document.domain == {"chainId": given}
    assert document.chain_id == known
    assert digest_of(document) == as_eth_account_reads_it(order(domain={"chainId": given}))


def test_the_zero_contract_is_hashed() -> None:
    domain = {"name": "Exchange", "verifyingContract": "0x" + "0" * 40}

    assert digest(order(domain=domain)) == as_eth_account_reads_it(order(domain=domain))


# ---- what is not hashed


def test_keys_and_types_beyond_the_hash_are_neither_read_nor_kept() -> None:
    plain = order(
        types={"Note": {"of": "Item[]"}, "Item": {"a": "uint8"}}, value={"of": [{"a": 1}]}, domain={"name": "x"}
    )
    more = order(
        types={"Note": {"of": "Item[]"}, "Idle": {"a": "what, is (this"}, "Item": {"a": "uint8"}, "no name": {}},
        value={"of": [{"a": 1, "b": {"c": None}}], "more": "7"},
        domain={"name": "x", "salt": None},
    )

    assert digest(more) == digest(plain)
    assert read(more) == read(plain)
    assert hashed_part(more, read(more)) == hashed_part(plain, read(plain))
    assert hashed_part(plain, read(plain)) == {
        "domain": plain.domain,
        "types": plain.types,
        "primaryType": "Note",
        "value": plain.value,
    }


def test_a_type_may_contain_itself_in_an_array() -> None:
    tree = order(types={"Node": {"of": "Node[]"}}, primaryType="Node", value={"of": [{"of": []}, {"of": [{"of": []}]}]})

    assert len(digest(tree)) == 32


MISFITS = [
    ("uint8", 256),
    ("uint8", -1),
    ("int8", 128),
    ("int8", -129),
    ("uint256", 2**256),
    ("uint256", 1.0),
    ("uint256", True),
    ("uint256", None),
    ("uint256", ""),
    ("uint256", "01"),
    ("uint256", "1.0"),
    ("uint256", "1e3"),
    ("uint256", " 1"),
    ("uint256", "1\n"),
    ("uint256", "0x"),
    ("uint256", "0x1\n"),
    ("uint256", "\u0661"),
    ("int256", "-0"),
    ("int8", "-0x1"),
    ("bool", 1),
    ("bool", "true"),
    ("bool", None),
    ("string", 1),
    ("string", None),
    ("string", "\ud800"),
    ("bytes", "00"),
    ("bytes", "0x0"),
    ("bytes", "0x0g"),
    ("bytes", [1]),
    ("bytes", "0x00\n"),
    ("bytes4", "0x"),
    ("bytes4", "0x0000000000"),
    ("address", "0x01"),
    ("address", ONE[2:]),
    ("address", 1),
    ("address", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"),
    ("uint8[]", "0x01"),
    ("uint8[]", {}),
    ("uint8[]", None),
    ("uint8[2]", [1]),
    ("uint8[2]", [1, 2, 3]),
    ("uint8[2][]", [[1]]),
    ("uint8[][2]", [[1]]),
    ("uint8[]", [256]),
]


@pytest.mark.parametrize(("kind", "value"), MISFITS, ids=repr)
def test_a_value_that_does_not_fit_is_refused_by_its_place(kind: str, value: Any) -> None:
    with pytest.raises(BadTypedData, match=r"^value\.it"):
        digest(of_one(kind, value))


UNKNOWN_KINDS = [
    "uint",
    "int",
    "uint7",
    "uint264",
    "uint08",
    "int0",
    "bytes0",
    "bytes33",
    "byte",
    "fixed",
    "function",
    "Missing",
    "uint8[0]",
    "uint8[-1]",
    "uint8[01]",
    "uint8[",
    "uint8]",
    "uint8[]x",
    "uint8 []",
    "",
    "EIP712Domain",
    "uint8[1000000]",
    "uint8" + "[]" * 9,
    "uint8\n",
]


@pytest.mark.parametrize("kind", [kind for kind in UNKNOWN_KINDS if kind])
def test_a_field_of_an_unknown_type_is_refused(kind: str) -> None:
    with pytest.raises(BadTypedData, match=r"Note\.it"):
        digest(of_one(kind, 1))


STRUCTURES = [
    ({"primaryType": "Other"}, "primaryType"),
    ({"primaryType": "EIP712Domain"}, "primaryType"),
    ({"primaryType": "EIP712Domain", "types": {"EIP712Domain": {}}, "value": {}}, "primaryType"),
    ({"types": {"Note": {}}, "value": {}}, "fields"),
    ({"types": {"Note": {f"f{index}": "bool" for index in range(65)}}}, "between 1 and 64"),
    ({"types": {f"T{index}": {"a": "bool"} for index in range(65)}}, "more than 64"),
    ({"types": {"A(uint8 x)B": {"text": "string"}}, "primaryType": "A(uint8 x)B"}, "cannot name"),
    ({"types": {"uint7": {"text": "string"}}, "primaryType": "uint7"}, "cannot name"),
    ({"types": {"Note": {"a,uint8 b": "string"}}}, "identifier"),
    ({"value": {}}, "lacks 'text'"),
    ({"domain": {"owner": ONE}}, "'owner'.*declare the domain as the verifier hashes it"),
    ({"domain": {"chainId": 2**256}}, "domain.chainId does not fit uint256"),
    ({"domain": {"salt": "0x00"}}, "domain.salt"),
    ({"types": {"Note": {"text": "string"}, "EIP712Domain": {"name": "string"}}}, "domain lacks 'name'"),
    ({"types": {"Note": {"text": "string"}, "EIP712Domain": {"name": "text"}}}, "EIP712Domain.name has type 'text'"),
    (
        {"domain": {"salt": None}, "types": {"Note": {"text": "string"}, "EIP712Domain": {"salt": "bytes32"}}},
        "domain.salt must be a string",
    ),
    ({"value": {"text": "x" * 65_536}}, "larger than"),
    ({"value": {"text": "\u20ac" * 22_000}}, "larger than"),
]


@pytest.mark.parametrize(("changes", "reason"), STRUCTURES, ids=[reason for _, reason in STRUCTURES])
def test_a_malformed_document_is_refused_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadTypedData, match=reason):
        digest(order(**changes))


def test_a_field_named_twice_is_refused() -> None:
    fields = [{"name": "text", "type": "string"}] * 2
    document = msgspec.structs.replace(
        order(), types=msgspec.convert({"Note": fields}, TypedDataOrder.__annotations__["types"])
    )

    with pytest.raises(BadTypedData, match="two fields"):
        digest(document)


@pytest.mark.parametrize(("depth", "passes"), [(8, True), (9, False)])
def test_structs_nest_eight_deep_and_no_deeper(depth: int, passes: bool) -> None:
    value: dict[str, Any] = {"of": []}
    for _ in range(depth - 1):
        value = {"of": [value]}
    tree = order(types={"Node": {"of": "Node[]"}}, primaryType="Node", value=value)

    if passes:
        assert len(digest(tree)) == 32
    else:
        with pytest.raises(BadTypedData, match="deeper than 8"):
            digest(tree)


@pytest.mark.parametrize(("levels", "says"), [(900, "must be an integer"), (100_000, "more than 1000 values")])
def test_a_bottomless_value_is_refused(levels: int, says: str) -> None:
    value: Any = []
    for _ in range(levels):
        value = [value]

    with pytest.raises(BadTypedData, match=says):
        digest(of_one("uint8[]", value))


@pytest.mark.parametrize(
    ("part", "given", "says"),
    [
        ("value", {"text": [""] * 1_001}, "value has more than 1000 values"),
        ("domain", {"name": [""] * 64}, "domain has more than 64 values"),
        ("types", {f"T{number}": {"f": "bool"} for number in range(65)}, "types has more than 64 entries"),
        ("types", {"EIP712Domain": {f"f{number}": "bool" for number in range(65)}}, "more than 64 fields"),
    ],
)
def test_everything_is_counted_before_any_of_it_is_read(part: str, given: Any, says: str) -> None:
    """Each is also wrong in other ways, which only reading it would find."""
    with pytest.raises(BadTypedData, match=says):
        digest(order(**{part: given}))


@pytest.mark.parametrize(("kind", "item"), [("bytes[][][]", [[]]), ("bool[]", True)])
def test_a_document_of_too_many_values_is_refused(kind: str, item: Any) -> None:
    with pytest.raises(BadTypedData, match="more than 1000 values"):
        digest(of_one(kind, [item] * 1_001))


def test_empty_arrays_count_on_every_level() -> None:
    # The field, 499 arrays and 499 empty ones within them: 999 values.
    assert len(digest(of_one("bytes[][][]", [[[]]] * 499))) == 32
    with pytest.raises(BadTypedData, match="values"):
        digest(of_one("bytes[][][]", [[[]]] * 500))


def test_types_of_too_many_fields_in_all_are_refused() -> None:
    types = {f"T{number}": {f"f{index}": "bool" for index in range(64)} for number in range(5)}

    with pytest.raises(BadTypedData, match="more than 256 fields in all"):
        digest(order(types=types, primaryType="T0", value={}))


@pytest.mark.parametrize(("beyond", "says"), [(0, ""), (1, "types has more than 64 entries")])
def test_sixty_four_types_may_be_there_besides_the_domain(beyond: int, says: str) -> None:
    types = {f"T{number}": {"f": "bool"} for number in range(64 + beyond)}
    document = order(types=types | {"EIP712Domain": {"name": "string"}}, primaryType="T0", value={"f": True})
    check_bound(msgspec.structs.replace(document, domain={"name": "x"}), says)


@pytest.mark.parametrize(("beyond", "says"), [(0, ""), (1, "types has more than 256 fields in all")])
def test_so_many_fields_may_be_there_besides_those_of_the_domain(beyond: int, says: str) -> None:
    types = {f"T{number}": {f"f{index}": "bool" for index in range(64)} for number in range(4)}
    types |= {"T4": {"more": "bool"}} if beyond else {}
    types["EIP712Domain"] = {"name": "string"}
    document = order(types=types, primaryType="T0", value={f"f{index}": True for index in range(64)})
    check_bound(msgspec.structs.replace(document, domain={"name": "x"}), says)


@pytest.mark.parametrize(("beyond", "says"), [(0, ""), (1, "EIP712Domain has more than 64 fields")])
def test_a_domain_may_have_as_many_fields_as_any_type(beyond: int, says: str) -> None:
    fields = {f"f{index}": "bool" for index in range(64 + beyond)}
    check_bound(order(types=NOTE | {"EIP712Domain": fields}, domain=dict.fromkeys(list(fields)[:64], True)), says)


@pytest.mark.parametrize(("depth", "says"), [(8, ""), (9, "nests arrays deeper than 8")])
def test_arrays_nest_eight_deep_and_no_deeper(depth: int, says: str) -> None:
    value: Any = True
    for _ in range(depth):
        value = [value]
    check_bound(of_one("bool" + "[]" * depth, value), says)


def check_bound(document: TypedDataOrder, says: str) -> None:
    """Read it, or find it refused with these words."""
    if not says:
        assert len(digest(document)) == 32
        return
    with pytest.raises(BadTypedData, match=says):
        digest(document)


@pytest.mark.parametrize("kind", [f"bytes{size}" for size in range(1, 33)])
def test_bytes_of_every_length_are_read(kind: str) -> None:
    content = "0x" + "ab" * int(kind.removeprefix("bytes"))
    assert read(of_one(kind, content)).message == {"it": bytes.fromhex(content[2:])}


@pytest.mark.parametrize("value", ["text", ["text"], 1, None, True, 1.5])
def test_a_struct_is_an_object(value: Any) -> None:
    with pytest.raises(BadTypedData, match=r"value\.it must be an object of type Part"):
        digest(of_one("Part", value, Part={"text": "string"}))


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("uint8[2]", [1], r"value\.it must be an array of type uint8\[2\] with 2 elements\.\Z"),
        ("uint8[]", 1, r"value\.it must be an array of type uint8\[\]\.\Z"),
        ("Part[]", [{"text": "x"}, {"text": 1}], r"value\.it\[1\]\.text must be a string"),
        ("Part", {"text": 1}, r"value\.it\.text must be a string"),
    ],
)
def test_a_refusal_names_the_place_and_the_type(kind: str, value: Any, says: str) -> None:
    with pytest.raises(BadTypedData, match=says):
        digest(of_one(kind, value, Part={"text": "string"}))


@pytest.mark.parametrize(("parts", "passes"), [(14, True), (15, False)])
def test_struct_values_times_fields_are_bounded(parts: int, passes: bool) -> None:
    """Of the domain too: those parts, the message and the domain are 16 structs beside 256 fields, which may pass."""
    types = {"Note": {"of": "Part[]"}, "Part": {"a": "bool"}}
    types |= {f"T{number}": {f"f{index}": "bool" for index in range(64)} for number in range(3)}
    types |= {"T3": {f"f{index}": "bool" for index in range(62)}}
    document = order(types=types, value={"of": [{"a": True}] * parts})

    if passes:
        assert len(digest(document)) == 32
        return
    with pytest.raises(BadTypedData, match="more than 4096"):
        digest(document)


@pytest.mark.parametrize(
    ("beyond", "value", "domain"),
    [
        (0, [""] * 999, {"name": "x"}),
        (1, [""] * 1_000, {"name": "x"}),
        (0, [], {"of": ["x"] * 63}),
        (1, [], {"of": ["x"] * 64}),
    ],
)
def test_exactly_as_many_values_may_be_there(beyond: int, value: list[str], domain: dict[str, Any]) -> None:
    types = {"Note": {"it": "string[]"}, "EIP712Domain": {name: "string[]" for name in domain if name == "of"}}
    document = order(types=types, value={"it": value}, domain=domain)

    if not beyond:
        assert len(digest(document)) == 32
        return
    with pytest.raises(BadTypedData, match=r"more than (1000|64) values"):
        digest(document)


@pytest.mark.parametrize("letter", ["x", "\u20ac"])
def test_a_document_is_measured_in_bytes_of_utf_8(letter: str) -> None:
    """Not in the escapes of JSON, which are six bytes for a letter."""
    empty = order(value={"text": ""})
    spare = 65_536 - len(json.dumps(msgspec.to_builtins([empty.domain, empty.types, empty.value])))
    width = len(letter.encode())
    text = letter * (spare // width) + "x" * (spare % width)

    assert len(digest(order(value={"text": text}))) == 32
    with pytest.raises(BadTypedData, match="larger than 65536 bytes"):
        digest(order(value={"text": text + "x"}))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "of", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(junk, st.sampled_from(["string", "bytes", "uint256", "address[]", "Node", "Node[2]"]))
def test_any_value_is_accepted_or_refused_and_never_an_error(value: Any, kind: str) -> None:
    types = {"Note": {"it": kind}} | ({"Node": {"of": "string", "x": "Note[]"}} if "Node" in kind else {})
    document = order(types=types, value={"it": value})

    with contextlib.suppress(BadTypedData):
        assert len(digest_of(read(document))) == 32
