"""Key sets of issuers: what is taken, what is skipped, and what makes the whole set bad."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.sign_on.key_sets import BadKeySet, condense, read
from tests.rules.identity.issuers import ec_key, ed_key, jwk, key_set, rsa_key

RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


def problem_of(content: bytes) -> str:
    with pytest.raises(BadKeySet) as refused:
        read(content)
    return refused.value.problem


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
BAD: dict[str, tuple[bytes, str]] = {
    "two of one kid": (key_set(GOOD, jwk(ec_key(), "good")), "set_key_twice"),
    "two of one kid, one for encryption": (key_set(GOOD, jwk(ec_key(), "good", use="enc")), "set_key_twice"),
    "private": (key_set(GOOD, jwk(rsa_key(), private=True)), "set_key_private"),
    "private, of a curve": (key_set(GOOD, jwk(ec_key(), private=True)), "set_key_private"),
    "private, for encryption": (key_set(GOOD, jwk(ec_key(), private=True, use="enc")), "set_key_private"),
    "a shared secret": (key_set(GOOD, {"kty": "oct", "k": "AAAA", "kid": "s"}), "set_key_private"),
    "RSA 1024": (key_set(GOOD, jwk(rsa_key(1024))), "set_key_weak"),
    "RSA of 8200 bits": (key_set(GOOD, {**GOOD, "kid": "b", "n": "_" * 1368}), "set_key_weak"),
    "a long exponent": (key_set(GOOD, {**GOOD, "kid": "b", "e": "AQAAAAAB"}), "set_key_malformed"),
    "an even exponent": (key_set(GOOD, {**GOOD, "kid": "b", "e": "AAAC"}), "set_key_malformed"),
    "exponent one": (key_set(GOOD, {**GOOD, "kid": "b", "e": "AQ"}), "set_key_malformed"),
    "n is a number": (key_set(GOOD, {**GOOD, "kid": "b", "n": 7}), "set_key_malformed"),
    "n in other letters": (key_set(GOOD, {**GOOD, "kid": "b", "n": "a b"}), "set_key_malformed"),
    "a point off the curve": (key_set(GOOD, jwk(ec_key(), x="A" * 43)), "set_key_malformed"),
    "a short coordinate": (key_set(GOOD, jwk(ec_key(), x="AAAA")), "set_key_malformed"),
    "no coordinate": (key_set(GOOD, {"kty": "EC", "crv": "P-256"}), "set_key_malformed"),
    "a curve that is a list": (key_set(GOOD, {"kty": "EC", "crv": ["P-256"]}), "set_key_malformed"),
    "no kind": (key_set(GOOD, {"kid": "b"}), "set_key_malformed"),
    "a kid that is a number": (key_set(GOOD, {**GOOD, "kid": 1}), "set_key_malformed"),
    "an empty kid": (key_set(GOOD, {**GOOD, "kid": ""}), "set_key_malformed"),
    "a long kid": (key_set(GOOD, {**GOOD, "kid": "k" * 256}), "set_key_malformed"),
    "empty": (key_set(), "set_empty"),
    "51 keys": (key_set(*({**GOOD, "kid": str(number)} for number in range(51))), "set_too_many_keys"),
    "200 keys": (key_set(*({"kty": "AKP", "kid": str(number)} for number in range(200))), "set_too_many_keys"),
    "65 KiB": (key_set(GOOD) + b" " * (64 * 1024), "set_too_large"),
    "HTML": (b"<!doctype html><title>Sign in</title>", "set_malformed"),
    "nothing": (b"", "set_malformed"),
    "a list": (b"[]", "set_malformed"),
    "keys is an object": (b'{"keys": {}}', "set_malformed"),
    "a key is a text": (b'{"keys": ["a"]}', "set_malformed"),
    "keys twice": (b'{"keys": [], "keys": []}', "set_malformed"),
    "a member twice": (b'{"keys": [{"kty": "RSA", "kty": "EC"}]}', "set_malformed"),
    "UTF-16": (key_set(GOOD).decode().encode("utf-16"), "set_malformed"),
    "deep": (b'{"keys": ' + b"[" * 30_000, "set_malformed"),
}


@pytest.mark.parametrize("what", BAD)
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
