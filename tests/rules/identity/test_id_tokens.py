"""ID tokens: the good one is taken, and each way of lying has its code."""

import hashlib
import hmac
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from identity.sign_on.id_tokens import MAX_TOKEN, REFUSALS, IdClaims, IdTokenRefused, KeyUnknown, verified_email, verify
from identity.sign_on.key_sets import KeySet, read
from tests.fixtures.each import each
from tests.rules.identity.issuers import (
    CLIENT,
    EXPECTED,
    ISSUER,
    NOW,
    by_hand,
    claims,
    ec_key,
    ed_key,
    encode,
    jwk,
    key_set,
    rsa_key,
    token,
)

KEYS = read(key_set(jwk(rsa_key())))
MOMENT = int(NOW.timestamp())
HEADER = b'{"alg":"RS256","kid":"k"}'
GUID = "72f988bf-86f1-41af-91ab-2d7cd011db47"
MICROSOFT = f"https://login.microsoftonline.com/{GUID}/v2.0"
OF_MICROSOFT = (
    MICROSOFT,
    f"https://login.microsoftonline.us/{GUID}/v2.0",
    f"https://login.partner.microsoftonline.cn/{GUID}/v2.0",
    f"https://sts.windows.net/{GUID}/",
    f"https://sts.chinacloudapi.cn/{GUID}/",
)


def code_of(given_token: str, keys: KeySet = KEYS, expected: Any = EXPECTED) -> str:
    with pytest.raises(IdTokenRefused) as refused:
        verify(given_token, expected, keys)
    assert refused.value.sentence
    return refused.value.code


@each(
    ("key", "alg"),
    [
        (rsa_key(), "RS256"),
        (rsa_key(), "RS512"),
        (rsa_key(), "PS256"),
        (ec_key("P-256"), "ES256"),
        (ec_key("P-384"), "ES384"),
        (ec_key("P-521"), "ES512"),
        (ed_key(), "EdDSA"),
    ],
)
def test_a_good_token_names_its_subject(key: Any, alg: str) -> None:
    proven = verify(token(claims(), key, alg), EXPECTED, read(key_set(jwk(key))))

    assert (proven.issuer, proven.subject) == (ISSUER, "user-1")


@each(
    "changed",
    [
        {"aud": [CLIENT]},
        {"aud": [CLIENT, "stranger"], "azp": CLIENT},
        {"azp": CLIENT},
        {"exp": MOMENT - 119},
        {"iat": MOMENT + 120},
        {"iat": MOMENT - 600},
        {"nbf": MOMENT + 120},
        {"exp": MOMENT + 0.5, "iat": float(MOMENT)},
        {"sub": "a" * 255},
        {"sub": "CN=Ada Lovelace, O=Example"},
    ],
)
def test_claims_that_the_standard_allows_are_taken(changed: dict[str, Any]) -> None:
    assert verify(token(claims(**changed)), EXPECTED, KEYS).subject


@each(
    ("changed", "code"),
    [
        ({"iss": None}, "id_token_issuer"),
        ({"iss": ISSUER + "/"}, "id_token_issuer"),
        ({"iss": "https://IDP.example.com"}, "id_token_issuer"),
        ({"iss": [ISSUER]}, "id_token_issuer"),
        ({"aud": None}, "id_token_audience"),
        ({"aud": "other"}, "id_token_audience"),
        ({"aud": []}, "id_token_audience"),
        ({"aud": {CLIENT: True}}, "id_token_audience"),
        ({"aud": [CLIENT, 7]}, "id_token_audience"),
        ({"aud": CLIENT.upper()}, "id_token_audience"),
        ({"aud": [CLIENT, "stranger"]}, "id_token_azp"),
        ({"aud": [CLIENT, "stranger"], "azp": "stranger"}, "id_token_azp"),
        ({"azp": "other"}, "id_token_azp"),
        ({"azp": [CLIENT]}, "id_token_azp"),
        ({"nonce": None}, "id_token_nonce"),
        ({"nonce": "another"}, "id_token_nonce"),
        ({"nonce": ["n-0S6_WzA2Mj"]}, "id_token_nonce"),
        ({"nonce": "é"}, "id_token_nonce"),
        ({"exp": None}, "id_token_time"),
        ({"exp": str(MOMENT + 300)}, "id_token_time"),
        ({"exp": True}, "id_token_time"),
        ({"exp": -1}, "id_token_time"),
        ({"exp": 2**60}, "id_token_time"),
        ({"iat": None}, "id_token_time"),
        ({"nbf": "soon"}, "id_token_time"),
        ({"exp": MOMENT - 120}, "id_token_expired"),
        ({"iat": MOMENT + 121}, "id_token_early"),
        ({"nbf": MOMENT + 121}, "id_token_early"),
        ({"iat": MOMENT - 601}, "id_token_old"),
        ({"iat": MOMENT - 7200}, "id_token_old"),
        ({"sub": None}, "id_token_subject"),
        ({"sub": ""}, "id_token_subject"),
        ({"sub": 7}, "id_token_subject"),
        ({"sub": "a" * 256}, "id_token_subject"),
        ({"sub": "a" * 300}, "id_token_subject"),
        ({"sub": "a\nb"}, "id_token_subject"),
        ({"sub": "é"}, "id_token_subject"),
    ],
)
def test_a_claim_that_does_not_fit_is_refused(changed: dict[str, Any], code: str) -> None:
    # By hand, because the library that makes tokens refuses some of these.
    assert code_of(by_hand(HEADER, msgspec.json.encode(claims(**changed)))) == code


@each("number", [b"1e400", b"NaN", b"Infinity", b"9" * 5000])
def test_a_number_beyond_all_bounds_is_refused(number: bytes) -> None:
    said = msgspec.json.encode(claims(exp=0)).replace(b'"exp":0', b'"exp":' + number)

    assert code_of(by_hand(HEADER, said)) in ("id_token_malformed", "id_token_time")


@each(
    ("header", "code"),
    [
        ({"alg": "none"}, "id_token_algorithm"),
        ({"alg": "nOnE"}, "id_token_algorithm"),
        ({"alg": "HS256"}, "id_token_algorithm"),
        ({"alg": "ES256"}, "id_token_algorithm"),
        ({"alg": None}, "id_token_malformed"),
        ({"alg": ["RS256"]}, "id_token_malformed"),
        ({"alg": "RS256", "kid": 7}, "id_token_malformed"),
        ({"alg": "RS256", "crit": ["exp"]}, "id_token_header"),
        ({"alg": "RS256", "crit": []}, "id_token_header"),
        ({"alg": "RS256", "jwk": {"kty": "RSA"}}, "id_token_header"),
        ({"alg": "RS256", "jku": "https://evil.example.com"}, "id_token_header"),
        ({"alg": "RS256", "x5u": "https://evil.example.com"}, "id_token_header"),
        ({"alg": "RS256", "x5c": ["AAAA"]}, "id_token_header"),
        ({"alg": "RS256", "b64": False}, "id_token_header"),
        ({"alg": "RS256", "b64": True}, "id_token_header"),
        ({"alg": "RS256", "zip": "DEF"}, "id_token_header"),
        ({"alg": "RS256", "typ": "logout+jwt"}, "id_token_type"),
        ({"alg": "RS256", "typ": "at+jwt"}, "id_token_type"),
        ({"alg": "RS256", "typ": 1}, "id_token_type"),
    ],
)
def test_a_header_that_says_more_than_the_key_is_refused(header: dict[str, Any], code: str) -> None:
    said = msgspec.json.encode({"kid": "k", **header})

    assert code_of(by_hand(said, msgspec.json.encode(claims()))) == code


@each("form", ["pem", "jwk"])
def test_the_public_key_is_no_shared_secret(form: str) -> None:
    public = rsa_key().public_key()
    secret = (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        if form == "pem"
        else msgspec.json.encode(jwk(rsa_key()))
    )
    signed = f"{encode(b'{"alg":"HS256","kid":"k"}')}.{encode(msgspec.json.encode(claims()))}"
    forged = f"{signed}.{encode(hmac.digest(secret, signed.encode(), hashlib.sha256))}"

    assert code_of(forged) == "id_token_algorithm"


def test_an_algorithm_is_the_keys_and_not_the_tokens() -> None:
    two = read(key_set(jwk(ec_key(), "k"), jwk(rsa_key(), "r", alg="PS256")))

    assert code_of(token(claims()), two) == "id_token_algorithm"
    assert code_of(token(claims(), kid="r"), two) == "id_token_algorithm"
    assert verify(token(claims(), alg="PS256", kid="r"), EXPECTED, two).subject == "user-1"


def test_a_token_of_another_key_or_with_another_payload_is_refused() -> None:
    head, _, signature = token(claims()).split(".")
    other = token(claims(sub="user-2")).split(".")[1]

    assert code_of(token(claims(), rsa_key(name="stranger"))) == "id_token_signature"
    assert code_of(f"{head}.{other}.{signature}") == "id_token_signature"


@each(
    "text",
    [
        "",
        "a.b",
        "a.b.c.d.e",
        "..",
        token(claims()) + "=",
        token(claims()) + "\n",
        " " + token(claims()),
        token(claims()).replace(".", "..", 1),
        "é" + token(claims()),
        "e30.e30.e30",
        by_hand(b"[]", b"{}"),
        by_hand(b"{", b"{}"),
        by_hand(b'{"alg":"RS256","alg":"RS256","kid":"k"}', msgspec.json.encode(claims())),
        by_hand(HEADER, b'{"sub":"a",' + msgspec.json.encode(claims())[1:]),
        by_hand(HEADER, b'{"x":{"a":1,"a":2},' + msgspec.json.encode(claims())[1:]),
        by_hand(HEADER, b'{"x":"\\ud800",' + msgspec.json.encode(claims())[1:]),
        by_hand(HEADER, b"[]"),
        by_hand(HEADER, b"null"),
        by_hand(HEADER, b"\xff"),
        by_hand(HEADER, b"[" * 9000),
    ],
)
def test_a_text_that_two_readers_could_read_differently_is_refused(text: str) -> None:
    assert code_of(text) == "id_token_malformed"


def test_a_token_is_measured_before_it_is_read() -> None:
    longest = token(claims(x="a" * 11_500))
    assert len(longest) < MAX_TOKEN
    assert verify(longest, EXPECTED, KEYS).subject == "user-1"

    assert code_of("a" * (MAX_TOKEN + 1)) == "id_token_too_large"


def test_an_unknown_key_is_told_apart_from_a_bad_token() -> None:
    for keys in (KeySet(), read(key_set(jwk(rsa_key(), "another")))):
        with pytest.raises(KeyUnknown):
            verify(token(claims()), EXPECTED, keys)


def test_a_token_without_kid_needs_an_issuer_with_one_key() -> None:
    bare = by_hand(b'{"alg":"RS256"}', msgspec.json.encode(claims()))

    assert verify(bare, EXPECTED, KEYS).subject == "user-1"
    assert code_of(bare, read(key_set(jwk(rsa_key()), jwk(ec_key(), "b")))) == "id_token_kid_missing"


def test_a_former_key_verifies_beside_the_new_ones() -> None:
    new = read(key_set(jwk(ec_key(), "new")))

    assert verify(token(claims()), EXPECTED, new.with_former(KEYS)).subject == "user-1"


def test_further_audiences_are_those_that_the_tenant_lists() -> None:
    listed = msgspec.structs.replace(EXPECTED, audience=("api://custody",))

    assert verify(token(claims(aud=["api://custody", CLIENT])), listed, KEYS).subject
    assert verify(token(claims(aud="api://custody", azp=CLIENT)), listed, KEYS).subject
    assert code_of(token(claims(aud="api://custody")), expected=listed) == "id_token_azp"
    assert code_of(token(claims(aud=CLIENT)), expected=listed) == "id_token_audience"


@each(
    ("issuer", "said", "address"),
    [
        (ISSUER, {"email_verified": True}, "ada@example.com"),
        (ISSUER, {"email_verified": "true"}, "ada@example.com"),
        (ISSUER, {"email_verified": False}, None),
        (ISSUER, {}, None),
        (ISSUER, {"email_verified": "false"}, None),
        (ISSUER, {"email_verified": "True"}, None),
        (ISSUER, {"email_verified": 1}, None),
        (ISSUER, {"email_verified": [True]}, None),
        (ISSUER, {"xms_edov": True}, None),
        *(
            (issuer, {"xms_edov": form}, "ada@example.com")
            for issuer in OF_MICROSOFT
            for form in (True, "true", 1, "1")
        ),
        *((MICROSOFT, {"xms_edov": form}, None) for form in (False, "false", 0, "0", None, "", "yes", "True", " 1")),
        *((MICROSOFT, {"xms_edov": form}, None) for form in (1.0, 2, "1.0", [True], ["1"], {"value": True})),
        *((issuer, {"email_verified": True}, None) for issuer in OF_MICROSOFT),
        (MICROSOFT, {}, None),
        (f"https://login.microsoftonline.com.evil.com/{GUID}/v2.0", {"xms_edov": True}, None),
        (f"https://login.microsoftonline.com/{GUID}/v2.0/", {"xms_edov": True}, None),
        (f"https://login.microsoftonline.com/{GUID}/", {"xms_edov": True}, None),
        (f"https://login.microsoftonline.cn/{GUID}/v2.0", {"xms_edov": True}, None),
        (f"https://login-microsoftonline.us/{GUID}/v2.0", {"xms_edov": True}, None),
        (f"https://sts.windows.net/{GUID}", {"xms_edov": True}, None),
        (f"https://sts.windows.net/{GUID}/v2.0", {"xms_edov": True}, None),
        ("https://sts.windows.net/common/", {"xms_edov": True}, None),
        (f"https://evil.sts.windows.net/{GUID}/", {"xms_edov": True}, None),
        (f"{MICROSOFT}\n", {"xms_edov": True}, None),
        (ISSUER, {"email_verified": True, "email": "a@b@c.com"}, None),
        (ISSUER, {"email_verified": True, "email": ["ada@example.com"]}, None),
        (ISSUER, {"email_verified": True, "email": "=?utf-8?q?a?=@example.com"}, None),
    ],
)
def test_an_address_counts_only_where_its_issuer_says_that_it_is_verified(
    issuer: str, said: dict[str, Any], address: str | None
) -> None:
    proven = IdClaims(issuer=issuer, subject="s", said={"email": "Ada@Example.com", **said})

    assert verified_email(proven, issuer) == address


def test_only_short_texts_in_one_line_are_shown() -> None:
    proven = IdClaims(issuer=ISSUER, subject="s", said={"name": "Ada", "a": "x\ny", "b": 7, "c": "x" * 256, "d": "\0"})

    assert [proven.text(name) for name in ("name", "a", "b", "c", "d", "e")] == ["Ada", *[None] * 5]


@given(st.text(alphabet="eyJhbGciOi._-", max_size=200) | st.text(max_size=50))
def test_no_text_does_anything_but_be_refused(text: str) -> None:
    assert code_of(text) in REFUSALS


@given(st.integers(0, 10_000), st.integers(0, 63))
def test_no_flipped_character_of_a_good_token_is_taken(place: int, letter: int) -> None:
    good = token(claims())
    place %= len(good)
    flipped = (
        good[:place] + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[letter] + good[place + 1 :]
    )
    if flipped == good:
        return

    with pytest.raises((IdTokenRefused, KeyUnknown)):
        verify(flipped, EXPECTED, KEYS)
