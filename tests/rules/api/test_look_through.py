"""Rules for a body beside its type: no key twice, no number or nesting that the signer's frames cannot hold."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.kit.json_bodies import BadBody, look_through
from tests.fixtures.each import each

# Quotes, backslashes and what looks like an escape, in keys and in values.
TEXT = st.text(alphabet='"\\u0022:{}[],aé\n\t', max_size=8)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(DOCUMENTS, st.booleans())
def test_a_document_without_twins_passes(document: Any, escaped: bool) -> None:
    look_through(json.dumps(document, ensure_ascii=escaped, indent=1).encode())


@given(st.dictionaries(TEXT, DOCUMENTS, min_size=1, max_size=4), DOCUMENTS, st.booleans())
def test_a_key_given_twice_is_named_however_it_is_spelled(document: dict[str, Any], other: Any, escaped: bool) -> None:
    key = next(iter(document))
    spelled = json.dumps(document, ensure_ascii=escaped)
    twin = '"' + "".join(f"\\u{ord(letter):04x}" for letter in key) + '":' + json.dumps(other)

    with pytest.raises(BadBody) as refused:
        look_through(f'{{"deep":[{spelled[:-1]},{twin}}}]}}'.encode())

    assert (refused.value.code, refused.value.context["fields"]) == ("duplicate_key", [key])


def test_among_many_objects_it_is_refused_without_its_name() -> None:
    with pytest.raises(BadBody) as refused:
        look_through(b"[" + b"{}," * 2_000 + b'{"a":1,"a":2}]')

    assert (refused.value.code, refused.value.context) == ("duplicate_key", {})


@each("number", ["18446744073709551616", "-9223372036854775809", "1" * 300])
def test_a_number_beyond_64_bits_is_refused(number: str) -> None:
    with pytest.raises(BadBody) as refused:
        look_through(f'{{"value":[{number}]}}'.encode())

    assert refused.value.code == "number_out_of_range"


@each("opening", ["[", '{"a":'])
def test_nesting_has_an_end(opening: str) -> None:
    closing = {"[": "]", '{"a":': "}"}[opening]
    look_through((opening * 64 + "1" + closing * 64).encode())

    with pytest.raises(BadBody) as refused:
        look_through((opening * 65 + "1" + closing * 65).encode())

    assert refused.value.code == "nested_too_deeply"
