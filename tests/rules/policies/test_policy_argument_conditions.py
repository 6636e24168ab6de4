"""Conditions on arguments: `where` of a call, read by its `abi`, and of typed data, by its type. eth-abi judges."""

import re
from typing import Any, NamedTuple

import eth_abi
import msgspec
import pytest
from eth_abi.packed import encode_packed
from eth_utils import keccak
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from custody.chains.evm import typed_data, typed_effects
from custody.chains.evm.calldata import decode
from custody.chains.evm.typed_order import TypedDataField, TypedDataOrder
from custody.chains.types import Subject
from custody.policies.judge import judge
from custody.policies.kinds.argument_conditions import MAX_ITEMS, ConditionConfig, conditions_on
from custody.policies.kinds.argument_types import MAX_ARGUMENTS, MAX_DEPTH, MAX_VALUES, read_arguments, read_declaration
from custody.policies.tighten import widening
from custody.policies.types import InvalidPolicy
from tests.fixtures.each import each
from tests.fixtures.thorough import THOROUGH
from tests.rules.policies.makers import ALICE, BOB, TOKEN_CONTRACT, facts, rule, rules

ROUTER = "0x" + "c0" * 20
MAX = 2**256 - 1
PAY = (
    "pay(Order order,address[] path,bytes data,bool now,string memo,bytes4 kind,int8 tip)"
    "Order(address to,uint256 amount)"
)
PAY_TYPES = ["(address,uint256)", "address[]", "bytes", "bool", "string", "bytes4", "int8"]
PAID = [(ALICE, 500), [ALICE, BOB], b"\x01\x02", True, "hi", b"abcd", -5]
SELECTOR = keccak(text=f"pay({','.join(PAY_TYPES)})")[:4]


def condition(arg: str, op: str, value: Any) -> dict[str, Any]:
    """One condition; a list is of `values`."""
    return {"arg": arg, "op": op, ("values" if isinstance(value, list) else "value"): value}


def entry(*where: tuple[str, str, Any], **changes: Any) -> dict[str, Any]:
    constraint = {"abi": PAY, "where": [condition(*one) for one in where]}
    name = "0x" + SELECTOR.hex()
    return {"address": ROUTER, "selectors": [name], "constraints": {name: constraint}, "unread": "allow"} | changes


def allow(*entries: dict[str, Any]) -> Any:
    return rules(rule("contract-allowlist", {"contracts": list(entries)}))


def order(data: bytes, to: str = ROUTER, value: int = 0) -> Subject:
    effects, calls = decode(to, value, data, 1, BOB)
    return Subject("evm", "evm", 1, "eip155:1", to, effects, calls)


def pays(**changes: Any) -> Subject:
    names = ["order", "path", "data", "now", "memo", "kind", "tip"]
    return order(
        SELECTOR + eth_abi.encode(PAY_TYPES, [changes.get(name, old) for name, old in zip(names, PAID, strict=True)])
    )


def decision(set_: Any, subject: Subject, **known: Any) -> str:
    return judge(set_, subject, facts(**known)).decision


# ---- what a condition compares


@each(
    ("arg", "op", "value", "passes"),
    [
        ("order.amount", "eq", "500", True),
        ("order.amount", "eq", "501", False),
        ("order.amount", "ne", "500", False),
        ("order.amount", "ne", "0", True),
        ("order.amount", "lt", "500", False),
        ("order.amount", "lt", "501", True),
        ("order.amount", "lte", "500", True),
        ("order.amount", "lte", "499", False),
        ("order.amount", "gt", "500", False),
        ("order.amount", "gt", "499", True),
        ("order.amount", "gte", "500", True),
        ("order.amount", "gte", "501", False),
        ("order.amount", "lte", str(MAX), True),
        ("order.amount", "in", ["1", "500"], True),
        ("order.amount", "in", ["1", "2"], False),
        ("order.amount", "notIn", ["1", "2"], True),
        ("order.amount", "notIn", ["1", "500"], False),
        ("order.to", "eq", ALICE, True),
        ("order.to", "eq", "0x" + "A1" * 20, True),
        ("order.to", "in", [BOB], False),
        ("path[0]", "eq", ALICE, True),
        ("path[1]", "eq", ALICE, False),
        ("path[2]", "eq", ALICE, False),
        ("path[2]", "ne", ALICE, False),
        ("path[*]", "in", [ALICE, BOB], True),
        ("path[*]", "in", [ALICE], False),
        ("path[*]", "ne", TOKEN_CONTRACT, True),
        ("path.length", "lte", "2", True),
        ("path.length", "lt", "2", False),
        ("data", "eq", "0x0102", True),
        ("data", "eq", "0x01", False),
        ("data", "notIn", ["0x", "0x01"], True),
        ("data.length", "eq", "2", True),
        ("kind", "eq", "0x61626364", True),
        ("kind", "ne", "0x61626364", False),
        ("now", "eq", "true", True),
        ("now", "ne", "true", False),
        ("memo", "eq", "hi", True),
        ("memo", "eq", "Hi", False),
        ("memo", "in", ["hi", "ho"], True),
        ("tip", "lt", "0", True),
        ("tip", "gte", "-5", True),
        ("tip", "gt", "-5", False),
        ("tip", "eq", "-128", False),
    ],
)
def test_a_condition_holds_or_the_call_is_refused(arg: str, op: str, value: Any, passes: bool) -> None:
    set_ = allow(entry((arg, op, value)))

    assert decision(set_, pays()) == ("sign" if passes else "refuse")
    # A hard rule: no person lets it pass.
    assert decision(set_, pays(), approving=True) == ("sign" if passes else "refuse")


@each("amount", [0, 1, 2**53, 2**53 + 1, 2**255, MAX - 1, MAX])
def test_numbers_are_exact_to_their_last_unit(amount: int) -> None:
    for op, bound, passes in (
        ("lte", amount, True),
        ("gte", amount, True),
        ("eq", amount, True),
        ("lte", amount - 1, False),
        ("gte", amount + 1, False),
        ("eq", amount - 1, False),
    ):
        if 0 <= bound <= MAX:
            said = decision(allow(entry(("order.amount", op, str(bound)))), pays(order=(ALICE, amount)))
            assert said == ("sign" if passes else "refuse"), (op, bound)


def test_all_conditions_must_hold_also_several_on_one_argument() -> None:
    bounds, gaps = (("gte", "5"), ("lte", "9")), (("ne", "6"), ("ne", "7"))
    between = allow(entry(*(("order.amount", *one) for one in (*bounds, *gaps))))

    said = {amount: decision(between, pays(order=(ALICE, amount))) for amount in (4, 5, 6, 7, 9, 10)}
    assert said == {4: "refuse", 5: "sign", 6: "refuse", 7: "refuse", 9: "sign", 10: "refuse"}


def test_a_text_that_looks_like_a_truth_value_is_a_text() -> None:
    assert decision(allow(entry(("memo", "eq", "true"))), pays(memo="true")) == "sign"


def test_a_condition_reaches_into_structs_within_lists() -> None:
    conditions = conditions_on(
        "f(Order[] orders,uint8[3] ids)Order(address to,uint256 amount)",
        [ConditionConfig("orders[*].amount", "lte", "5"), ConditionConfig("ids[*]", "gt", "0"),
         ConditionConfig("ids[2]", "eq", "9")],
    )  # fmt: skip

    def breach(*amounts: int, ids: tuple[int, int, int] = (1, 2, 9)) -> str | None:
        orders = [(ALICE, amount) for amount in amounts]
        return conditions.breach_in_call(eth_abi.encode(["(address,uint256)[]", "uint8[3]"], [orders, ids]))

    assert breach(5) is breach(0, 5) is None
    assert breach(5, 6) == "its `orders[*].amount` is 6, and must be at most 5"
    assert breach(5, ids=(1, 0, 9)) == "its `ids[*]` is 0, and must be at least 1"
    assert breach(5, ids=(1, 2, 3)) == "its `ids[2]` is 3, and must be 9"
    with pytest.raises(InvalidPolicy, match="no single value"):
        conditions_on("f(uint8[3] ids)", [ConditionConfig("ids[3]", "eq", "9")])


def test_a_condition_covers_nothing_that_was_not_covered() -> None:
    # What the service cannot read asks as before, unless the entry lets it pass.
    assert decision(allow(entry(("order.amount", "lte", "500"), unread="ask")), pays()) == "queue"
    assert decision(allow(entry(("order.amount", "lte", "499"), unread="ask")), pays()) == "refuse"


def test_another_entry_of_the_contract_may_permit_what_this_one_does_not() -> None:
    one, other = entry(("order.to", "eq", BOB)), entry(("order.amount", "lte", "500"), chainId=1)

    assert decision(allow(one, other), pays()) == "sign"
    assert decision(allow(one, other), pays(order=(ALICE, 501))) == "refuse"


def test_each_call_within_a_call_keeps_its_own_conditions() -> None:
    wrapper = keccak(text="multicall(bytes[])")[:4]
    listed = entry(("order.amount", "lte", "500"))
    listed["selectors"].append("0x" + wrapper.hex())

    def inner(*amounts: int) -> Subject:
        calls = [SELECTOR + eth_abi.encode(PAY_TYPES, [(ALICE, amount), *PAID[1:]]) for amount in amounts]
        return order(wrapper + eth_abi.encode(["bytes[]"], [calls]))

    assert decision(allow(listed), inner(500, 1)) == "sign"
    assert decision(allow(listed), inner(1, 501)) == "refuse"


def test_the_refusal_names_the_argument_its_value_and_what_would_pass() -> None:
    def why(*where: tuple[str, str, Any], **changes: Any) -> str:
        reason = judge(allow(entry(*where)), pays(**changes), facts()).results[0].reason
        return reason.partition("is outside its constraints: ")[2]

    assert why(("order.amount", "lte", "9"), ("order.amount", "gt", "2")) == (
        "its `order.amount` is 500, and must be at least 3 and at most 9"
    )
    assert why(("path[*]", "notIn", [BOB])) == f"its `path[*]` is {BOB}, and must be not {BOB}"
    assert why(("path[3]", "eq", BOB)) == "its `path[3]` is not there, or has more than 64 items"
    assert why(("path.length", "gte", "3")) == "its `path.length` is 2, and must be at least 3"
    assert why(("now", "eq", "false")) == "its `now` is true, and must be false"
    assert why(("order.amount", "in", ["1", "2", "3", "4", "5"])) == (
        "its `order.amount` is 500, and must be one of 1, 2, 3 and 2 more"
    )
    assert why(("order.amount", "in", ["1", "2", "3"])).endswith("must be one of 1, 2, 3")
    assert why(("order.amount", "in", ["1", "2"])).endswith("must be one of 1, 2")
    assert why(("data", "eq", "0x")) == "its `data` is 0x0102, and must be 0x"
    assert why(("memo", "eq", "a"), memo="b" * 78) == f"its `memo` is '{'b' * 78}', and must be 'a'"
    # Text of others is written out, and cut.
    assert why(("memo", "eq", "a"), memo="\x1b[2J\u202e`") == "its `memo` is '\\x1b[2J\\u202e`', and must be 'a'"
    assert len(why(("memo", "eq", "a"), memo="a" * 9_000)) < 200
    assert len(why(("data", "eq", "0x"), data=b"a" * 9_000)) < 200


# ---- what cannot be read


def word(number: int) -> bytes:
    return number.to_bytes(32)


FLAT = "move(address to,uint8 count,bool now,bytes2 kind,int16 tip)"
FLAT_TYPES = ["address", "uint8", "bool", "bytes2", "int16"]
LIST = "move(address[] to,bytes data)"
LIST_TYPES = ["address[]", "bytes"]
TWO = [int(ALICE, 16), int(BOB, 16)]


@each(
    ("declared", "types", "body"),
    [
        (FLAT, FLAT_TYPES, b""),
        (FLAT, FLAT_TYPES, b"\0" * 159),
        (FLAT, FLAT_TYPES, b"\0" * 161),
        (FLAT, FLAT_TYPES, b"\0" * 192),
        # High bytes above each type, and low ones below.
        (FLAT, FLAT_TYPES, word(1 << 160) + b"\0" * 128),
        (FLAT, FLAT_TYPES, word(MAX) + b"\0" * 128),
        (FLAT, FLAT_TYPES, word(0) + word(256) + b"\0" * 96),
        (FLAT, FLAT_TYPES, b"\0" * 64 + word(2) + b"\0" * 64),
        (FLAT, FLAT_TYPES, b"\0" * 96 + b"ab\1".ljust(32, b"\0") + word(0)),
        (FLAT, FLAT_TYPES, b"\0" * 96 + word(1) + word(0)),
        (FLAT, FLAT_TYPES, b"\0" * 128 + word(1 << 15)),
        (FLAT, FLAT_TYPES, b"\0" * 128 + word(MAX >> 1)),
        (FLAT, FLAT_TYPES, b"\0" * 128 + word(MAX ^ (1 << 100))),
        # Offsets: into the head, behind the end, back to front, twice the same, odd, huge.
        (LIST, LIST_TYPES, word(0) + word(64) + word(0) + word(0)),
        (LIST, LIST_TYPES, word(32) + word(64) + word(0) + word(0)),
        (LIST, LIST_TYPES, word(64) + word(64) + word(0)),
        (LIST, LIST_TYPES, word(64) + word(64) + word(0) + word(0)),
        (LIST, LIST_TYPES, word(96) + word(64) + word(0) + word(0)),
        (LIST, LIST_TYPES, word(64) + word(97) + word(0) + word(0) + word(0)),
        (LIST, LIST_TYPES, word(64) + word(128) + word(0) + word(0) + word(0)),
        (LIST, LIST_TYPES, word(MAX) + word(96) + word(0) + word(0)),
        (LIST, LIST_TYPES, word(1 << 64) + word(96) + word(0) + word(0)),
        # Lengths: more than is there, huge, and padding that is missing or not empty.
        (LIST, LIST_TYPES, word(64) + word(160) + word(3) + word(TWO[0]) + word(TWO[1]) + word(0)),
        (LIST, LIST_TYPES, word(64) + word(96) + word(MAX) + word(0)),
        (LIST, LIST_TYPES, word(64) + word(96) + word(1 << 40) + word(0)),
        (LIST, LIST_TYPES, word(64) + word(96) + word(0) + word(MAX)),
        (LIST, LIST_TYPES, word(64) + word(96) + word(0) + word(2) + b"ab"),
        (LIST, LIST_TYPES, word(64) + word(96) + word(0) + word(2) + b"abc".ljust(32, b"\0")),
        (LIST, LIST_TYPES, word(64) + word(96) + word(0) + word(0) + b"\0"),
        (LIST, LIST_TYPES, word(64) + word(96) + word(0) + word(0) + word(0)),
        (LIST, LIST_TYPES, word(64) + word(128) + word(1) + word(1 << 160) + word(0)),
        # The packed encoding of the same, and text that is none.
        (LIST, LIST_TYPES, encode_packed(["address[]", "bytes"], [[ALICE], b"ab"])),
        ("say(string text)", ["string"], word(32) + word(1) + b"\xff".ljust(32, b"\0")),
        ("say(string text)", ["string"], word(32) + word(3) + b"\xed\xa0\x80".ljust(32, b"\0")),
        # One that is longer than what is read.
        ("say(bytes text)", ["bytes"], eth_abi.encode(["bytes"], [b"a" * MAX_ARGUMENTS])),
    ],
)
def test_bytes_that_are_not_the_one_encoding_keep_no_condition(declared: str, types: list[str], body: bytes) -> None:
    name, shape = read_declaration(declared)
    assert shape.spelled == f"({','.join(types)})"
    selector = keccak(text=name + shape.spelled)[:4]
    arg = shape.fields[0][0]
    # Conditions that every value keeps.
    op, value = {"address": ("ne", BOB), "address[]": ("gte", "0"), "string": ("ne", ""), "bytes": ("ne", "0x")}[
        types[0]
    ]
    where = [condition(arg + ".length" * types[0].endswith("[]"), op, value)]
    constraints = {"0x" + selector.hex(): {"abi": declared, "where": where}}
    set_ = allow({"address": ROUTER, "selectors": list(constraints), "constraints": constraints, "unread": "allow"})
    found = order(selector + body)

    assert read_arguments(shape, body) is None
    assert decision(set_, found) == decision(set_, found, approving=True) == "refuse"
    said = f"its arguments are not those of {name}, or cannot be read, and `where` restricts them"
    assert judge(set_, found, facts()).results[0].reason.endswith(said)
    # The control: with the same conditions the honest encoding of some values passes.
    honest = {
        "address": ALICE,
        "uint8": 1,
        "bool": True,
        "bytes2": b"ab",
        "int16": -1,
        "address[]": [ALICE],
        "bytes": b"a",
    }
    assert decision(set_, order(selector + eth_abi.encode(types, [honest.get(one, "a") for one in types]))) == "sign"


def test_an_item_of_a_list_that_is_empty_or_too_long_keeps_no_condition() -> None:
    each_item, first = allow(entry(("path[*]", "eq", ALICE))), allow(entry(("path[0]", "eq", ALICE)))

    assert decision(each_item, pays(path=[])) == decision(first, pays(path=[])) == "refuse"
    assert decision(each_item, pays(path=[ALICE])) == decision(each_item, pays(path=[ALICE] * MAX_ITEMS)) == "sign"
    assert decision(each_item, pays(path=[ALICE] * (MAX_ITEMS + 1))) == "refuse"
    assert decision(first, pays(path=[ALICE] * (MAX_ITEMS + 1))) == "sign"


def test_arguments_are_read_up_to_their_bound() -> None:
    _, shape = read_declaration("say(bytes text)")

    whole = eth_abi.encode(["bytes"], [b"a" * (MAX_ARGUMENTS - 64)])
    assert len(whole) == MAX_ARGUMENTS
    assert read_arguments(shape, whole) == {"text": b"a" * (MAX_ARGUMENTS - 64)}


def test_a_declaration_has_so_many_values_and_levels_at_most() -> None:
    def lists(number: int) -> str:
        return ",".join(f"bool[] a{place}" for place in range(number))

    def levels(number: int) -> str:
        return (
            "f(S0 a)" + "".join(f"S{place}(S{place + 1} a)" for place in range(number - 1)) + f"S{number - 1}(bool a)"
        )

    assert read_declaration(f"f({lists(MAX_VALUES)})")[1].values == MAX_VALUES
    assert read_declaration(f"f(S a,bool b)S({lists(MAX_VALUES - 1)})")[1].values == MAX_VALUES
    assert read_declaration(levels(MAX_DEPTH))[1].spelled == "(" * (MAX_DEPTH + 1) + "bool" + ")" * (MAX_DEPTH + 1)
    for beyond in (f"f({lists(MAX_VALUES + 1)})", f"f(S a,S b)S({lists(200)})", levels(MAX_DEPTH + 1)):
        with pytest.raises(InvalidPolicy, match=f"more than {MAX_VALUES} values|deeper than {MAX_DEPTH}"):
            read_declaration(beyond)


def test_a_call_without_arguments_keeps_no_condition() -> None:
    assert decision(allow(entry(("order.amount", "gte", "0"))), order(SELECTOR)) == "refuse"


class Drawn(NamedTuple):
    """A type as a rule declares it, the structs that it needs, as eth-abi spells it, and its values."""

    said: str
    structs: tuple[str, ...]
    spelled: str
    values: st.SearchStrategy[Any]


_ATOMS = [
    Drawn("address", (), "address", st.binary(min_size=20, max_size=20).map(lambda made: "0x" + made.hex())),
    Drawn("bool", (), "bool", st.booleans()),
    Drawn("bytes", (), "bytes", st.binary(max_size=70)),
    Drawn("string", (), "string", st.text(st.characters(exclude_categories=("Cs",)), max_size=20)),
    *(Drawn(f"uint{bits}", (), f"uint{bits}", st.integers(0, 2**bits - 1)) for bits in (8, 48, 160, 256)),
    *(
        Drawn(f"int{bits}", (), f"int{bits}", st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
        for bits in (8, 24, 256)
    ),
    *(Drawn(f"bytes{size}", (), f"bytes{size}", st.binary(min_size=size, max_size=size)) for size in (1, 4, 31, 32)),
]


@st.composite
def _arrays(draw: Any, inner: st.SearchStrategy[Drawn]) -> Drawn:
    one, size = draw(inner), draw(st.sampled_from(("", "1", "2", "3")))
    assume(one.said.count("[") < 4)
    least, most = (int(size), int(size)) if size else (0, 3)
    values = st.lists(one.values, min_size=least, max_size=most)
    return Drawn(f"{one.said}[{size}]", one.structs, f"{one.spelled}[{size}]", values)


@st.composite
def _structs(draw: Any, inner: st.SearchStrategy[Drawn]) -> Drawn:
    fields = draw(st.lists(inner, min_size=1, max_size=4))
    body = ",".join(f"{one.said} f{place}" for place, one in enumerate(fields))
    structs = tuple(dict.fromkeys(each for one in fields for each in one.structs))
    name = f"S{len(structs)}x{abs(hash(body)) % 10**9}"
    values = st.tuples(*(one.values for one in fields))
    return Drawn(name, (f"{name}({body})", *structs), f"({','.join(one.spelled for one in fields)})", values)


drawn_types = st.recursive(st.sampled_from(_ATOMS), lambda inner: _arrays(inner) | _structs(inner), max_leaves=6)
signatures = st.lists(drawn_types, min_size=1, max_size=4)


def plain(value: Any) -> Any:
    """Our structs are by name and eth-abi's in a row; its lists are tuples."""
    if isinstance(value, dict):
        return tuple(plain(one) for one in value.values())
    return tuple(plain(one) for one in value) if isinstance(value, list | tuple) else value


def declared_by(arguments: list[Drawn]) -> str:
    body = ",".join(f"{one.said} a{place}" for place, one in enumerate(arguments))
    structs = dict.fromkeys(each for one in arguments for each in one.structs)
    return f"call({body}){''.join(structs)}"


@settings(max_examples=200 * THOROUGH)
@given(signatures, st.data())
def test_arguments_are_read_as_a_foreign_decoder_reads_them(arguments: list[Drawn], data: Any) -> None:
    values = [data.draw(one.values) for one in arguments]
    types = [one.spelled for one in arguments]
    body = eth_abi.encode(types, values)

    name, shape = read_declaration(declared_by(arguments))
    read = read_arguments(shape, body)

    assert name + shape.spelled == f"call({','.join(types)})"
    assert plain(read) == plain(values) == plain(eth_abi.decode(types, body))


@settings(max_examples=300 * THOROUGH)
@given(signatures, st.data())
def test_arguments_that_are_read_have_no_other_encoding(arguments: list[Drawn], data: Any) -> None:
    types = [one.spelled for one in arguments]
    body = bytearray(eth_abi.encode(types, [data.draw(one.values) for one in arguments]))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body)))
        match data.draw(st.sampled_from(("flip", "set", "cut", "add", "swap"))):
            case "flip" if place < len(body):
                body[place] ^= 1 << data.draw(st.integers(0, 7))
            case "set" if place < len(body):
                body[place] = data.draw(st.sampled_from((0, 1, 32, 64, 96, 255)))
            case "cut":
                del body[place : place + data.draw(st.sampled_from((1, 32)))]
            case "add":
                body[place:place] = data.draw(st.sampled_from((b"\0", b"\xff", b"\0" * 32, b"\1" * 32)))
            case "swap":
                start = place // 32 * 32
                body[start : start + 64] = body[start + 32 : start + 64] + body[start : start + 32]
    _, shape = read_declaration(declared_by(arguments))

    read = read_arguments(shape, bytes(body))

    if read is not None:
        assert eth_abi.encode(types, plain(read)) == bytes(body)


# ---- what makes no sense as a condition


@each(
    ("abi", "why"),
    [
        ("", "an `abi`"),
        ("pay", "must be spelled as"),
        ("pay()", "must be spelled as"),
        ("pay(address)", "a known type and a name of its own"),
        ("pay(address to,address to)", "a known type and a name of its own"),
        ("pay(adress to)", "a known type and a name of its own"),
        ("pay(uint to)", "a known type and a name of its own"),
        ("pay(uint257 to)", "a known type and a name of its own"),
        ("pay(bytes33 to)", "a known type and a name of its own"),
        ("pay(fixed128x18 to)", "a known type and a name of its own"),
        ("pay(address[0] to)", "a known type and a name of its own"),
        ("pay(address[][][][][] to)", "a known type and a name of its own"),
        ("pay(address to) external", "must be spelled as"),
        ("pay((address to) order)", "must be spelled as"),
        ("pay(address\u00a0to)", "a known type and a name of its own"),
        ("pay(Order order)", "a known type and a name of its own"),
        ("pay(Order order)Order(Order order)", "holds itself"),
        ("pay(A a)A(B b)B(A[] a)", "holds itself"),
        ("pay(address[257] to)", f"more than {MAX_VALUES} values"),
        ("pay(bytes[16][17] to)", f"more than {MAX_VALUES} values"),
        ("pay(A a)" + "".join(f"{x}({y} x,{y} y)" for x, y in zip("ABCDEFGHI", "BCDEFGHIJ", strict=True)) + "J(bool a)",
         f"nested deeper than {MAX_DEPTH}"),
        ("pay(A[999] a)A(B[999] b)B(bytes[999] c)", f"more than {MAX_VALUES} values"),
        ("pay(address to,uint256 amount)", "with the selector 0xc4076876, and stands at"),
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_be_meant_is_not_accepted(abi: str, why: str) -> None:
    name = "0x" + SELECTOR.hex()
    constraint = {"abi": abi, "where": [condition("to", "eq", ALICE)]}

    with pytest.raises(InvalidPolicy, match=why):
        allow({"address": ROUTER, "selectors": [name], "constraints": {name: constraint}})


@each(
    ("arg", "op", "value", "why"),
    [
        ("nobody", "eq", "1", "no single value"),
        ("order", "eq", "1", "no single value"),
        ("path", "eq", ALICE, "no single value"),
        ("order.nobody", "eq", "1", "no single value"),
        ("order.amount.length", "eq", "1", "no single value"),
        ("order[0]", "eq", "1", "no single value"),
        ("path[0", "eq", ALICE, "no single value"),
        ("path[-1]", "eq", ALICE, "no single value"),
        ("path[]", "eq", ALICE, "no single value"),
        ("path[0][0]", "eq", ALICE, "no single value"),
        ("path..length", "eq", "1", "no single value"),
        ("path.nobody", "eq", "1", "no single value"),
        ("path.length.length", "eq", "1", "no single value"),
        ("memo.length", "eq", "1", "no single value"),
        ("0", "eq", "1", "no single value"),
        ("", "eq", "1", "no single value"),
        (" order.amount", "eq", "1", "no single value"),
        ("order.amount", "eq", "01", "which is no uint256"),
        ("order.amount", "eq", "-1", "which is no uint256"),
        ("order.amount", "eq", "+1", "which is no uint256"),
        ("order.amount", "eq", "1.0", "which is no uint256"),
        ("order.amount", "eq", "1e3", "which is no uint256"),
        ("order.amount", "eq", "0x10", "which is no uint256"),
        ("order.amount", "eq", "", "which is no uint256"),
        ("order.amount", "eq", "\u0661", "which is no uint256"),
        ("order.amount", "eq", "1\n", "which is no uint256"),
        ("order.amount", "lte", str(MAX + 1), "which is no uint256"),
        ("tip", "eq", "128", "which is no int8"),
        ("tip", "eq", "-129", "which is no int8"),
        ("order.amount", "lt", "0", "no value can keep together"),
        ("order.amount", "gt", str(MAX), "no value can keep together"),
        ("order.to", "eq", "alice.eth", "hex digits"),
        ("order.to", "eq", "0x" + "aB" * 20, "checksum"),
        ("order.to", "lt", ALICE, "only numbers are less or greater"),
        ("data", "eq", "0x1", "which is no bytes"),
        ("data", "eq", "01", "which is no bytes"),
        ("kind", "eq", "0x616263", "which is no bytes4"),
        ("kind", "eq", "0x6162636465", "which is no bytes4"),
        ("now", "eq", "1", "which is no bool"),
        ("now", "eq", "True", "which is no bool"),
        ("now", "gte", "true", "only numbers are less or greater"),
        ("memo", "gt", "a", "only numbers are less or greater"),
        ("memo", "lte", "a", "only numbers are less or greater"),
        ("order.amount", "in", "1", "need `values`"),
        ("order.amount", "eq", ["1"], "need `values`"),
        ("order.amount", "in", [], "need `values`"),
        ("order.amount", "between", "1", "op"),
    ],
)
def test_a_condition_that_cannot_be_meant_is_not_accepted(arg: str, op: str, value: Any, why: str) -> None:
    said = f"compares {re.escape(repr(arg))} with .*{why}" if why.startswith("which is no ") else why
    with pytest.raises(InvalidPolicy, match=said):
        allow(entry((arg, op, value)))


@each(
    "where",
    [
        [("order.amount", "gt", "5"), ("order.amount", "lt", "6")],
        [("order.amount", "eq", "5"), ("order.amount", "ne", "5")],
        [("order.amount", "in", ["5", "6"]), ("order.amount", "gt", "6")],
        [("now", "ne", "true"), ("now", "ne", "false")],
        [("order.to", "eq", ALICE), ("order.to", "eq", BOB)],
    ],
)
def test_conditions_that_nothing_can_keep_are_not_accepted(where: Any) -> None:
    with pytest.raises(InvalidPolicy, match="no value can keep together"):
        allow(entry(*where))


def test_a_call_has_sixteen_conditions_at_most() -> None:
    many = [("order.amount", "ne", str(number)) for number in range(17)]

    assert len(allow(entry(*many[:16]))) == 1
    with pytest.raises(InvalidPolicy, match="where"):
        allow(entry(*many))


@each(
    "constraint",
    [{"abi": PAY}, {"where": [condition("order.amount", "eq", "1")]}, {"abi": PAY, "where": []}],
)
def test_conditions_and_their_declaration_come_together(constraint: dict[str, Any]) -> None:
    name = "0x" + SELECTOR.hex()

    with pytest.raises(InvalidPolicy, match="an `abi`"):
        allow({"address": ROUTER, "selectors": [name], "constraints": {name: constraint}})


def test_a_condition_has_a_value_or_values_and_not_both() -> None:
    both = {"arg": "order.amount", "op": "eq", "value": "1", "values": ["1"]}
    name = "0x" + SELECTOR.hex()

    with pytest.raises(InvalidPolicy, match="all others `value`"):
        allow({"address": ROUTER, "selectors": [name], "constraints": {name: {"abi": PAY, "where": [both]}}})


# ---- tightening

OPS = {
    "amount": ("eq", "ne", "lt", "lte", "gt", "gte", "in", "notIn"),
    "tip": ("eq", "ne", "lt", "lte", "gt", "gte", "in", "notIn"),
    "to": ("eq", "ne", "in", "notIn"),
    "now": ("eq", "ne"),
    "ids[*]": ("eq", "ne", "lt", "gte", "in", "notIn"),
    "ids[0]": ("eq", "ne", "lte"),
    "ids.length": ("eq", "lt", "gt"),
}
SMALL = "f(uint256 amount,int8 tip,address to,bool now,uint8[] ids)"
VALUES = {
    "amount": st.integers(0, 4).map(str),
    "tip": st.integers(-2, 2).map(str),
    "to": st.sampled_from((ALICE, BOB, TOKEN_CONTRACT)),
    "now": st.sampled_from(("true", "false")),
    **dict.fromkeys(("ids[*]", "ids[0]", "ids.length"), st.integers(0, 3).map(str)),
}


@st.composite
def _condition(draw: Any) -> ConditionConfig:
    arg = draw(st.sampled_from(tuple(OPS)))
    op = draw(st.sampled_from(OPS[arg]))
    several = st.lists(VALUES[arg], min_size=1, max_size=3)
    made = {"values": draw(several)} if op in ("in", "notIn") else {"value": draw(VALUES[arg])}
    return ConditionConfig(arg, op, **made)


def _conditions(where: list[ConditionConfig]) -> Any:
    try:
        return conditions_on(SMALL, where)
    except InvalidPolicy:
        assume(False)


_AMOUNTS, _TIPS, _IDS = range(6), range(-3, 4), ([], [0], [1, 2], [3, 0, 2], [2, 2])
EVERYTHING = [
    {"amount": amount, "tip": tip, "to": to, "now": now, "ids": ids}
    for amount in _AMOUNTS
    for tip in _TIPS
    for to in (ALICE, BOB, TOKEN_CONTRACT, ROUTER)
    for now in (True, False)
    for ids in _IDS
]
wheres = st.lists(_condition(), min_size=1, max_size=3)


@settings(max_examples=300 * THOROUGH)
@given(wheres, wheres)
def test_conditions_that_tighten_let_nothing_more_pass(wide: Any, narrow: Any) -> None:
    old, new = _conditions(wide), _conditions(narrow)
    assume(new.tightens(old))

    for values in EVERYTHING:
        assert old.breach(values) is None or new.breach(values) is not None


@settings(max_examples=200 * THOROUGH)
@given(wheres, wheres)
def test_one_more_condition_always_tightens(where: Any, more: Any) -> None:
    assert _conditions([*where, *more]).tightens(_conditions(where))


@settings(max_examples=100 * THOROUGH)
@given(wheres)
def test_a_set_of_conditions_is_what_each_of_them_says(where: Any) -> None:
    whole, parts = _conditions(where), [_conditions([one]) for one in where]

    for values in EVERYTHING:
        assert (whole.breach(values) is None) == all(one.breach(values) is None for one in parts)


@each(
    ("old", "new", "tightens"),
    [
        ([("order.amount", "lte", "9")], [("order.amount", "lte", "9")], True),
        ([("order.amount", "lte", "9")], [("order.amount", "lt", "9")], True),
        ([("order.amount", "lt", "9")], [("order.amount", "lte", "8")], True),
        ([("order.amount", "lte", "9")], [("order.amount", "in", ["9", "0"])], True),
        ([("order.amount", "lte", "9")], [("order.amount", "in", ["9", "10"])], False),
        ([("order.amount", "lte", "9")], [("order.amount", "lte", "10")], False),
        ([("order.amount", "lte", "9")], [("order.amount", "gte", "1")], False),
        ([("order.amount", "lte", "9")], [("order.to", "eq", ALICE)], False),
        ([("order.amount", "ne", "5")], [("order.amount", "gt", "5")], True),
        ([("order.amount", "ne", "5")], [("order.amount", "gte", "5")], False),
        ([("order.to", "in", [ALICE, BOB])], [("order.to", "eq", BOB)], True),
        ([("order.to", "in", [ALICE, BOB])], [("order.to", "ne", ROUTER)], False),
        ([("order.to", "notIn", [ALICE])], [("order.to", "notIn", [ALICE, BOB])], True),
        ([("order.to", "notIn", [ALICE, BOB])], [("order.to", "ne", ALICE)], False),
        ([("now", "eq", "true")], [("now", "ne", "false")], True),
        ([("now", "eq", "true")], [("now", "eq", "false")], False),
        ([("memo", "in", ["a", "b"])], [("memo", "eq", "a"), ("order.amount", "eq", "1")], True),
    ],
)
def test_an_agent_may_add_conditions_and_narrow_them(old: Any, new: Any, tightens: bool) -> None:
    said = widening(allow(entry(*old)), allow(entry(*new)))

    assert (said is None) == tightens, said


def test_conditions_may_not_go_nor_be_read_in_another_way() -> None:
    name = "0x" + SELECTOR.hex()
    narrow = entry(("order.amount", "lte", "9"))
    free = entry() | {"constraints": {}}
    renamed = msgspec.json.decode(msgspec.json.encode(narrow).replace(b"uint256 amount", b"uint256 most"))
    renamed["constraints"][name]["where"][0]["arg"] = "order.most"

    assert widening(allow(free), allow(narrow)) is None
    assert widening(allow(narrow), allow(free)) is not None
    # Names are only names, but who cannot prove that may not say so.
    assert widening(allow(narrow), allow(renamed)) is not None


def test_conditions_under_names_that_changed_places_are_others() -> None:
    where = [ConditionConfig("a", "eq", ALICE)]
    one, other = conditions_on("f(address a,address b)", where), conditions_on("f(address b,address a)", where)

    assert one.tightens(one)
    assert not one.tightens(other)


# ---- typed data

ORDER = (
    "Order(Asset give,address to,uint256 amount,string memo,bytes32 salt,bool now,address[] by)"
    "Asset(address token,uint256 id)"
)
VALUE: dict[str, Any] = {
    "give": {"token": TOKEN_CONTRACT, "id": "1"},
    "to": ALICE,
    "amount": str(MAX),
    "memo": "hi",
    "salt": "0x" + "AB" * 32,
    "now": True,
    "by": [ALICE, BOB],
}


def document(**changes: Any) -> Subject:
    """Read a document as the service does, from the order as it is sent."""
    structs = {one.partition("(")[0]: one.partition("(")[2].rstrip(")") for one in ORDER.split(")") if one}
    types = {
        name: [TypedDataField(field.split(" ")[1], field.split(" ")[0]) for field in body.split(",")]
        for name, body in structs.items()
    }
    domain = {"name": "Desk", "chainId": 1, "verifyingContract": ROUTER}
    sent = TypedDataOrder(domain=domain, types=types, primary_type="Order", value=VALUE | changes)
    return typed_effects.subject_of(typed_data.read(sent), BOB)


def signs(*where: tuple[str, str, Any], type_: str = ORDER) -> dict[str, Any]:
    kinds = [{"type": type_, "where": [condition(*one) for one in where]}]
    return {"address": ROUTER, "selectors": ["0xdeadbeef"], "unread": "allow", "typedData": kinds}


@each(
    ("arg", "op", "value", "passes"),
    [
        ("amount", "eq", str(MAX), True),
        ("amount", "lt", str(MAX), False),
        ("to", "eq", "0x" + "A1" * 20, True),
        ("to", "ne", ALICE, False),
        ("give.token", "in", [TOKEN_CONTRACT], True),
        ("give.id", "gte", "2", False),
        ("memo", "eq", "hi", True),
        ("memo", "eq", "HI", False),
        ("salt", "eq", "0x" + "ab" * 32, True),
        ("now", "eq", "false", False),
        ("by[*]", "in", [ALICE, BOB], True),
        ("by[*]", "in", [ALICE], False),
        ("by[1]", "eq", BOB, True),
        ("by[2]", "eq", BOB, False),
        ("by.length", "lte", "1", False),
    ],
)
def test_a_condition_on_typed_data_holds_or_it_is_refused(arg: str, op: str, value: Any, passes: bool) -> None:
    set_ = allow(signs((arg, op, value)))

    assert decision(set_, document()) == decision(set_, document(), approving=True) == ("sign" if passes else "refuse")


def test_typed_data_is_listed_by_its_whole_type() -> None:
    other = ORDER.replace("uint256 id", "uint128 id")

    assert decision(allow(signs()), document()) == "sign"
    assert decision(allow(signs(type_=other)), document()) == "refuse"
    assert decision(allow(signs() | {"typedData": []}), document()) == "refuse"
    # Without a word on unread documents a person decides over one that keeps the conditions, and over no other.
    assert decision(allow(signs(("amount", "gt", "0")) | {"unread": "ask"}), document()) == "queue"
    assert decision(allow(signs(("amount", "eq", "0")) | {"unread": "ask"}), document()) == "refuse"


def test_an_entry_that_lets_unread_documents_pass_does_so_for_those_it_lists() -> None:
    # The second entry permits every document and asks; the first asks nobody, and permits small ones.
    small = signs(("amount", "lte", "9"))
    rest = {"address": ROUTER, "selectors": ["0x00000001"]}

    assert decision(allow(small, rest), document(amount="9")) == "sign"
    assert decision(allow(small, rest), document(amount="10")) == "queue"


def test_fields_that_are_not_hashed_keep_no_condition() -> None:
    beside = document(amount="10", Amount="1", **{"give": {"token": TOKEN_CONTRACT, "id": "1", "amount": "1"}})

    assert decision(allow(signs(("amount", "lte", "9"))), beside) == "refuse"


def test_a_condition_on_a_call_lets_no_document_pass_that_has_no_arguments() -> None:
    transfer = "0xa9059cbb"
    where = [condition("amount", "gte", "0")]
    constraints = {transfer: {"abi": "transfer(address to, uint256 amount)", "where": where}}
    listed = {"address": ROUTER, "selectors": [transfer], "constraints": constraints, "unread": "allow"}

    assert decision(allow(listed), document()) == "refuse"
    assert decision(allow(listed), order(bytes.fromhex("a9059cbb") + word(1) + word(1))) == "sign"


def test_a_subject_without_its_document_keeps_no_condition() -> None:
    bare = msgspec.structs.replace(document(), typed=None)

    assert decision(allow(signs()), bare) == "refuse"


@each(
    ("old", "new", "tightens"),
    [
        (signs(), signs(("amount", "lte", "9")), True),
        (signs(("amount", "lte", "9")), signs(("amount", "lte", "8"), ("to", "eq", ALICE)), True),
        (signs(("amount", "lte", "9")), signs() | {"typedData": []}, True),
        ({key: value for key, value in signs().items() if key != "typedData"}, signs(), True),
        (signs(), {key: value for key, value in signs().items() if key != "typedData"}, False),
        (signs(("amount", "lte", "9")), signs(), False),
        (signs() | {"typedData": []}, signs(("amount", "lte", "9")), False),
        (signs(), signs(type_=ORDER.replace("uint256 id", "uint128 id")), False),
    ],
)
def test_kinds_of_typed_data_may_go_and_be_narrowed(old: Any, new: Any, tightens: bool) -> None:
    said = widening(allow(old), allow(new))

    assert (said is None) == tightens, said


def test_a_kind_of_typed_data_stands_once_and_has_a_type() -> None:
    twice = signs()
    twice["typedData"] *= 2

    with pytest.raises(InvalidPolicy, match="names a type twice"):
        allow(twice)
    with pytest.raises(InvalidPolicy, match="must be spelled as"):
        allow(signs(type_=""))
