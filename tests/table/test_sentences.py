"""Every value that a route refuses to decode is explained in words that callers know."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta
from msgspec.inspect import (
    DictType,
    ListType,
    Metadata,
    StructType,
    TupleType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from api.http.endpoint import PATH_SHAPES
from api.routes import endpoints
from custody.chains.evm.orders import EvmOrder
from custody.kit.described import described
from custody.kit.shapes import DecimalAmount
from custody.kit.validation import explain, must_be
from tests.fixtures.each import each
from tests.table.sentences import in_plain_words

TABLE = endpoints()
JUNK = (5, -1, 1.5, 10**18, True, None, "", "~ \n", "x" * 70_000, "0" * 100, [], {}, [5], {"surplus": 1}, ["x"] * 5_000)
KEYS = ("x", "a9059cbb", "google", "visible")
DEEPEST = 6


def wrong(node: Type, depth: int = 0) -> Iterator[Any]:
    """Documents of a type with one wrong value in each of its places."""
    yield from JUNK
    match node:
        case Metadata():
            yield from wrong(node.type, depth)
        case UnionType():
            for one in node.types:
                yield from wrong(one, depth)
        case StructType() if depth < DEEPEST:
            tag = {node.tag_field: node.tag} if node.tag_field else {}
            for field in node.fields:
                yield from ({**tag, field.encode_name: value} for value in wrong(field.type, depth + 1))
        case ListType() | VarTupleType() if depth < DEEPEST:
            yield from ([value] for value in wrong(node.item_type, depth + 1))
        case TupleType() if depth < DEEPEST:
            yield from ([value] * len(node.item_types) for value in wrong(node.item_types[0], depth + 1))
        case DictType() if depth < DEEPEST:
            yield from ({key: value} for key in KEYS for value in wrong(node.value_type, depth + 1))


def shapes() -> dict[str, tuple[Any, bool]]:
    """Everything that callers send, by name, and whether it is decoded strictly."""
    found = {}
    for endpoint in TABLE:
        for shape, strict in ((endpoint.body, True), (endpoint.query, False), (endpoint.headers, True)):
            if shape is not None:
                found[str(shape)[:120]] = (shape, strict)
    return found


@each(("shape", "strict"), shapes().values(), ids=shapes())
def test_a_refused_value_is_explained_in_plain_words(shape: Any, strict: bool) -> None:
    said = set()
    for document in wrong(type_info(shape)):
        try:
            msgspec.convert(document, shape, strict=strict)
        except msgspec.ValidationError as problem:
            said.add(explain(problem, shape).sentence("The body"))

    assert said
    assert [sentence for sentence in said if not in_plain_words(sentence)] == []


@each("name", PATH_SHAPES)
def test_an_id_in_a_path_is_explained_in_plain_words(name: str) -> None:
    assert in_plain_words(f"id in the path {must_be(PATH_SHAPES[name])}.")


class Payment(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """An order with units."""

    fee_cap: Annotated[DecimalAmount | None, Meta(description="The most in wei.")] = None
    rent: Annotated[DecimalAmount | None, Meta(extra_json_schema={"x-service-unit": "lamports"})] = None
    cap: Annotated[DecimalAmount, Meta(extra_json_schema={"x-service-unit": "smallest unit of `asset`"})] = "0"
    price: Annotated[DecimalAmount | None, described("The price of gas in wei.", such="30000000000")] = None


@each(
    ("field", "unit", "such"),
    [
        ("feeCap", " of wei", "1000000000000000000"),
        ("rent", " of lamports", "1000000"),
        ("cap", " in the smallest unit of asset", "1000000"),
        ("price", " of wei", "30000000000"),
    ],
)
@each("value", [5, "1.5", "-1", ""])
def test_an_amount_is_asked_for_in_its_unit(field: str, unit: str, such: str, value: Any) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert({field: value}, Payment)

    said = explain(refused.value, Payment).sentence("The body")
    assert said.startswith(f'{field} must be a whole number{unit} as a decimal string, such as "{such}"')


GOOD = {"to": "0x" + "11" * 20, "value": "1"}


@each(
    ("changed", "sentence"),
    [
        (
            {"value": 5},
            'value must be a whole number of wei as a decimal string, such as "1000000000000000000", not a number.',
        ),
        ({"value": "1.5"}, 'value must be a whole number of wei as a decimal string, such as "1000000000000000000".'),
        ({"to": "0x"}, "to must be an EVM address: 0x and 40 hex digits."),
        ({"chainId": "1"}, "chainId must be a whole number from 1 to 9007199254740992, not a text."),
        ({"chain_id": 1}, 'chain_id is no field here; call it "chainId".'),
        ({"broadcast": "yes"}, "broadcast must be true or false, not a text."),
        ({"surplus": 1}, "surplus is no field here. The fields are to, value, "),
        ({"gasPrice": "1"}, 'gasPrice is no field here; call it "maxFeePerGas", in wei; on a chain without '),
        ({"gas_price": "1"}, 'gas_price is no field here; call it "maxFeePerGas"'),
        ({"input": "0x"}, 'input is no field here; call it "data".'),
        ({"maxFeePerBlobGas": "1"}, "maxFeePerBlobGas is no field here; no blobs are signed here."),
        ({"from": "0x"}, "from is no field here; the agent in the path signs with its own wallet, and no other is "),
        ({"gasLimit": 5}, 'gasLimit must be a whole number as a decimal string, such as "100000", not a number.'),
    ],
)
def test_a_sentence_names_the_field_and_what_would_pass(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(GOOD | changed, EvmOrder)

    assert explain(refused.value, EvmOrder).sentence("The body").startswith(sentence)


def test_a_missing_field_says_what_to_send() -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert({"value": "1"}, EvmOrder)

    said = explain(refused.value, EvmOrder)
    assert (said.sentence("The body"), said.fields) == (
        "to is missing; it must be an EVM address: 0x and 40 hex digits.",
        ["to"],
    )
