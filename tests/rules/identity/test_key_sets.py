"""Key sets of issuers: which keys are taken, which are skipped, and which sets are refused whole."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.sign_on.key_sets import BadKeySet, condense, read
from tests.fixtures.each import each
from tests.rules.identity.issuers import ec_key, ed_key, jwk, key_set, rsa_key

RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


def problem_of(content: bytes) -> str:
    with pytest.raises(BadKeySet) as refused:
        read(content)
    return refused.value.problem


@each(
    ("entry", "algorithms"),
    [
        (jwk(rsa_key()), RSA_ALGORITHMS),
        (jwk(rsa_key(), alg="RS256", use="sig", x5c=["AAAA"], x5t="a"), ("RS256",)),
        (jwk(ec_key("P-256")), ("ES256",)),
        (jwk(ec_key("P-384"), key_ops=["verify"]), ("ES384",)),
        (jwk(ec_key("P-521")), ("ES512",)),
        (jwk(ed_key()), ("EdDSA",)),
    ],
)
def test_public_signing_keys_are_taken_with_their_algorithms(entry: dict[str, Any], algorithms: tuple[str]) -> None:
    [key] = read(key_set(entry)).keys

    assert (key.kid, key.algorithms) == ("k", algorithms)


@each(
    "entry",
    [
        jwk(rsa_key(), "other", use="enc", alg="RSA-OAEP"),
        jwk(rsa_key(), "other", alg="RSA-OAEP"),
        jwk(ec_key(), "other", key_ops=["deriveKey"]),
        jwk(ec_key("secp256k1"), "other"),
        jwk(rsa_key(), "other", use=7),
        jwk(rsa_key(), "other", alg="HS256"),
        jwk(rsa_key(), "other", alg="ES256"),
        {"kty": "AKP", "kid": "other", "pub": "AAAA"},
        {"kty": "OKP", "crv": "X25519", "x": "AAAA", "kid": "other"},
    ],
)
def test_keys_for_something_else_are_skipped_and_are_no_set_alone(entry: dict[str, Any]) -> None:
    assert [key.kid for key in read(key_set(entry, jwk(rsa_key()))).keys] == ["k"]
    assert problem_of(key_set(entry)) == "set_empty"


GOOD = jwk(rsa_key(), "good")
# Each may stand in an honest issuer's set, and verifies nothing.
ODD: dict[str, tuple[Any, str]] = {
    "RSA 1024": (jwk(rsa_key(1024), "odd"), "set_key_weak"),
    "RSA of 8200 bits": ({**GOOD, "kid": "odd", "n": "_" * 1368}, "set_key_weak"),
    "a long exponent": ({**GOOD, "kid": "odd", "e": "AQAAAAAB"}, "set_key_malformed"),
    "an even exponent": ({**GOOD, "kid": "odd", "e": "AAAC"}, "set_key_malformed"),
    "exponent one": ({**GOOD, "kid": "odd", "e": "AQ"}, "set_key_malformed"),
    "n with padding": ({**jwk(rsa_key(name="x"), "odd"), "n": jwk(rsa_key(name="x"))["n"] + "=="}, "set_key_malformed"),
    "n is a number": ({**GOOD, "kid": "odd", "n": 7}, "set_key_malformed"),
    "n in other letters": ({**GOOD, "kid": "odd", "n": "a b"}, "set_key_malformed"),
    "no n": ({"kty": "RSA", "kid": "odd", "e": "AQAB"}, "set_key_malformed"),
    "a point off the curve": (jwk(ec_key(), "odd", x="A" * 43), "set_key_malformed"),
    "a short coordinate": (jwk(ec_key(), "odd", x="AAAA"), "set_key_malformed"),
    "no coordinate": ({"kty": "EC", "crv": "P-256", "kid": "odd"}, "set_key_malformed"),
    "a curve that is a list": ({"kty": "EC", "crv": ["P-256"], "kid": "odd"}, "set_key_malformed"),
    "no kind": ({"kid": "odd"}, "set_key_malformed"),
    "a kind that is a list": ({"kty": ["RSA"], "kid": "odd"}, "set_key_malformed"),
    "a kid that is a number": ({**jwk(rsa_key(name="x")), "kid": 1}, "set_key_malformed"),
    "a kid that is null": ({**jwk(rsa_key(name="x")), "kid": None}, "set_key_malformed"),
    "an empty kid": ({**jwk(rsa_key(name="x")), "kid": ""}, "set_key_malformed"),
    "a long kid": ({**jwk(rsa_key(name="x")), "kid": "k" * 256}, "set_key_malformed"),
    "an algorithm that is a list": ({**jwk(rsa_key(name="x"), "odd"), "alg": ["RS256"]}, "set_empty"),
    "a text": ("a", "set_key_malformed"),
    "null": (None, "set_key_malformed"),
    "a list": ([GOOD], "set_key_malformed"),
}


@each("what", ODD)
def test_an_odd_member_is_skipped_and_the_good_one_beside_it_is_taken(what: str) -> None:
    odd, problem = ODD[what]

    for content in (key_set(odd, GOOD), key_set(GOOD, odd)):
        assert [key.kid for key in read(content).keys] == ["good"]
        assert condense(content) == condense(key_set(GOOD))
    assert problem_of(key_set(odd)) == problem


def test_different_keys_of_one_id_are_skipped_unless_their_algorithms_tell_them_apart() -> None:
    one, other = jwk(rsa_key(), "same", alg="RS256"), jwk(rsa_key(name="x"), "same", alg="RS256")

    assert [key.kid for key in read(key_set(one, GOOD, other)).keys] == ["good"]
    assert problem_of(key_set(one, other)) == "set_key_twice"
    assert problem_of(key_set(one, {**other, "alg": None})) == "set_key_twice"
    by_algorithm = read(key_set(one, jwk(ec_key(), "same")))
    assert [by_algorithm.find("same", alg) for alg in ("RS256", "ES256")] == list(by_algorithm.keys)


def test_one_key_that_is_given_twice_is_one_key() -> None:
    assert len(read(key_set(GOOD, GOOD)).keys) == 1
    assert len(read(key_set(GOOD, {**GOOD, "use": "enc"})).keys) == 1
    # Some issuers show a key once for each of its algorithms.
    several = read(key_set({**GOOD, "alg": "RS256"}, {**GOOD, "alg": "RS512"}))
    assert [several.find("good", alg).algorithms for alg in ("RS512", "RS256")] == [("RS512",), ("RS256",)]  # type: ignore[union-attr]


BAD: dict[str, tuple[bytes, str]] = {
    "private": (key_set(GOOD, jwk(rsa_key(), private=True)), "set_key_private"),
    "private, of a curve": (key_set(GOOD, jwk(ec_key(), private=True)), "set_key_private"),
    "private, for encryption": (key_set(GOOD, jwk(ec_key(), private=True, use="enc")), "set_key_private"),
    "private, of an odd one": (key_set(GOOD, {"d": "AAAA"}), "set_key_private"),
    "a shared secret": (key_set(GOOD, {"kty": "oct", "k": "AAAA", "kid": "s"}), "set_key_private"),
    "empty": (key_set(), "set_empty"),
    "51 keys": (key_set(*({**GOOD, "kid": str(number)} for number in range(51))), "set_too_many_keys"),
    "51 odd ones": (key_set(GOOD, *({} for _ in range(50))), "set_too_many_keys"),
    "200 keys": (key_set(*({"kty": "AKP", "kid": str(number)} for number in range(200))), "set_too_many_keys"),
    "65 KiB": (key_set(GOOD) + b" " * (64 * 1024), "set_too_large"),
    "HTML": (b"<!doctype html><title>Sign in</title>", "set_malformed"),
    "nothing": (b"", "set_malformed"),
    "a list": (b"[]", "set_malformed"),
    "keys is an object": (b'{"keys": {}}', "set_malformed"),
    "keys twice": (b'{"keys": [], "keys": []}', "set_malformed"),
    "a member twice": (b'{"keys": [{"kty": "RSA", "kty": "EC"}]}', "set_malformed"),
    "UTF-16": (key_set(GOOD).decode().encode("utf-16"), "set_malformed"),
    "deep": (b'{"keys": ' + b"[" * 30_000, "set_malformed"),
}


@each("what", BAD)
def test_a_bad_set_is_refused_whole_with_a_word_for_why(what: str) -> None:
    content, problem = BAD[what]

    assert problem_of(content) == problem


def test_the_condensed_form_is_equal_for_equal_keys_and_reads_as_the_same() -> None:
    one, other = jwk(rsa_key(), "a", x5c=["A" * 1000], use="sig"), jwk(ec_key(), "b")

    text = condense(key_set(one, other, jwk(rsa_key(name="x"), "c", use="enc")))

    assert text == condense(key_set(other, one))
    assert {key.kid for key in read(text.encode()).keys} == {"a", "b"}
    assert "x5c" not in text
    assert condense(text.encode()) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["kty", "kid", "n", "e", "x", "y", "crv", "use", "alg", "key_ops"]),
                inner | st.sampled_from(["RSA", "EC", "OKP", "P-256", "Ed25519", "sig", "AQAB"]),
            )
        ),
        max_leaves=20,
    )
)
def test_every_served_text_is_a_set_or_a_bad_one(keys: Any) -> None:
    with contextlib.suppress(BadKeySet):
        read(msgspec.json.encode({"keys": keys}))
