"""Signed requests: the vectors of docs/api.md built a second time, and what is not accepted."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from hypothesis import given
from hypothesis import strategies as st

from custody.identity.request_signature import (
    ORDER,
    RequestExpired,
    RequestExpiryMalformed,
    RequestExpiryTooFar,
    RequestFromTheFuture,
    RequestStale,
    RequestTimestampMalformed,
    Signature,
    SignatureMalformed,
    canonical,
    check_times,
    moment,
    parse_header,
    until,
    verify,
)

VECTORS = msgspec.json.decode((Path(__file__).parents[2] / "vectors/request_signature.json").read_bytes())
REQUESTS = pytest.mark.parametrize("request_", VECTORS["requests"], ids=lambda vector: vector["name"])
SECRET = VECTORS["secret"].encode()
PUBLIC = load_pem_public_key(VECTORS["p256PublicKey"].encode())
PRIVATE = ec.derive_private_key(int(VECTORS["p256PrivateKey"], 16), ec.SECP256R1())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PARTS = ("POST", "/a?b=c", "acme", "1767225600", "1767225700", "key-0000001", b"{}")


def second(offset: float) -> str:
    return (NOW + timedelta(seconds=offset)).isoformat()


@REQUESTS
def test_the_vectors_follow_from_the_words_of_the_page_alone(request_) -> None:
    parts = ("method", "pathWithQuery", "tenant", "timestamp", "expiresAt", "idempotencyKey")
    body = hashlib.sha256(request_["body"].encode()).hexdigest()
    text = "v1\n" + "".join(request_[part] + "\n" for part in parts) + body

    assert request_["canonical"] == text
    assert request_["v1"] == "v1=" + hmac.new(SECRET, text.encode(), "sha256").hexdigest()
    assert isinstance(PUBLIC, ec.EllipticCurvePublicKey)
    PUBLIC.verify(b64decode(request_["p256"].removeprefix("p256=")), text.encode(), ec.ECDSA(SHA256()))
    assert PRIVATE.public_key() == PUBLIC


@REQUESTS
def test_the_code_agrees_with_the_vectors(request_) -> None:
    content = canonical(
        request_["method"],
        request_["pathWithQuery"],
        request_["tenant"],
        request_["timestamp"] or None,
        request_["expiresAt"] or None,
        request_["idempotencyKey"] or None,
        request_["body"].encode(),
    )

    assert content == request_["canonical"].encode()
    assert verify(parse_header(request_["v1"]), SECRET, content)
    assert verify(parse_header(request_["p256"]), PUBLIC, content)


@given(st.integers(0, 5), st.text("abc/", min_size=1, max_size=4), st.binary(max_size=4))
def test_every_part_is_signed(place: int, added: str, body: bytes) -> None:
    changed = list(PARTS)
    changed[place] = f"{changed[place]}{added}"
    mac = Signature("v1", hmac.digest(SECRET, canonical(*PARTS), "sha256"))

    assert verify(mac, SECRET, canonical(*PARTS))
    assert not verify(mac, SECRET, canonical(*changed))
    assert not verify(mac, SECRET, canonical(*PARTS[:6], PARTS[6] + b" " + body))


@pytest.mark.parametrize("place", range(6))
def test_no_part_can_reach_into_the_next(place: int) -> None:
    parts = list(PARTS)
    parts[place] = "x\ny"

    with pytest.raises(SignatureMalformed):
        canonical(*parts)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "v1",
        "v1=",
        "v1=" + "a" * 63,
        "v1=" + "a" * 65,
        "v1=" + "A" * 64,
        "v1=" + "g" * 64,
        "v1= " + "a" * 64,
        "v1=" + "a" * 64 + "\n",
        "v1=" + "a" * 64 + ",v1=" + "b" * 64,
        "V1=" + "a" * 64,
        "v2=" + "a" * 64,
        "a" * 64,
        "p256=",
        "p256=" + "a" * 64,
        "p256=AAAA",
        "p256=MAYCAQACAQA=",
        "p256=MAYCAQECAQA=",
        "p256=MAYCAQACAQE=",
        "p256=" + "A" * 200,
        " v1=" + "a" * 64,
        "p256=MAYCAQECAQE\n",
        "p256=MAYCAQECAQE",
        "p256=MAYCAQECAQF=",
        "p256=MAYCAQECAQE==",
        "p256=MAYCAQEC\nAQE=",
        "p256=MAYCAf8CAQE=",
        "p256=MAcCAgABAgEB",
        "p256=MIEGAgEBAgEB",
        "p256=MAYCAQECAQEA",
        "p256=MAYC-_ECAQE=",
    ],
)
def test_a_misspelt_signature_header_is_refused(value: str) -> None:
    with pytest.raises(SignatureMalformed) as refused:
        parse_header(value)

    assert refused.value.code == "signature_malformed"


def test_a_signature_with_a_number_outside_the_curve_is_refused() -> None:
    for r, s in ((ORDER, 1), (1, ORDER), (ORDER + 1, 1), (1, 2**256 - 1)):
        with pytest.raises(SignatureMalformed):
            parse_header("p256=" + b64encode(encode_dss_signature(r, s)).decode())


@given(st.integers(1, ORDER - 1), st.integers(1, ORDER - 1))
def test_every_signature_has_one_spelling(r: int, s: int) -> None:
    raw = encode_dss_signature(r, s)

    assert parse_header("p256=" + b64encode(raw).decode()) == Signature("p256", raw)


def test_a_key_of_the_other_kind_or_another_key_made_nothing() -> None:
    content = b"content"
    mac = Signature("v1", hmac.digest(SECRET, content, "sha256"))
    made = Signature("p256", PRIVATE.sign(content, ec.ECDSA(SHA256())))
    other = ec.derive_private_key(1, ec.SECP256R1()).public_key()

    assert verify(made, PUBLIC, content)
    assert not verify(made, SECRET, content)
    assert not verify(made, other, content)
    assert not verify(made, PUBLIC, b"other content")
    assert not verify(mac, PUBLIC, content)
    assert not verify(mac, SECRET + b" ", content)
    assert not verify(Signature("v1", b""), SECRET, content)
    assert not verify(Signature("v1", hmac.digest(b"", content, "sha256")), b"", content)


def test_a_key_on_another_curve_is_no_key() -> None:
    key = ec.derive_private_key(7, ec.SECP256K1())

    assert not verify(Signature("p256", key.sign(b"x", ec.ECDSA(SHA256()))), key.public_key(), b"x")


def test_both_forms_of_one_ecdsa_signature_have_one_mark() -> None:
    made = Signature("p256", PRIVATE.sign(b"x", ec.ECDSA(SHA256())))
    r, s = decode_dss_signature(made.value)
    twin = Signature("p256", encode_dss_signature(r, ORDER - s))

    assert verify(made, PUBLIC, b"x")
    assert verify(twin, PUBLIC, b"x")
    assert made != twin
    assert made.mark == twin.mark
    assert made.mark != Signature("p256", PRIVATE.sign(b"y", ec.ECDSA(SHA256()))).mark


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1767225600", NOW),
        ("1767225600000", NOW),
        ("1767225600123", NOW + timedelta(milliseconds=123)),
        ("2026-01-01T00:00:00Z", NOW),
        ("2026-01-01T01:00:00.000+01:00", NOW),
        ("0", datetime(1970, 1, 1, tzinfo=UTC)),
        ("99999999999", datetime(5138, 11, 16, 9, 46, 39, tzinfo=UTC)),
        ("100000000000", datetime(1973, 3, 3, 9, 46, 40, tzinfo=UTC)),
    ],
)
def test_a_moment_is_seconds_milliseconds_or_iso(text: str, expected: datetime) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1e9",
        "01767225600",
        "1767225600 ",
        "1767225600\n",
        "\u0661\u0662",
        "9" * 15,
        "9" * 16,
        "1" * 400,
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-13-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "now",
        "0x10",
    ],
)
def test_a_malformed_time_is_refused(text: str) -> None:
    with pytest.raises(RequestTimestampMalformed):
        moment(text)
    with pytest.raises(RequestTimestampMalformed):
        check_times(text, None, NOW)
    with pytest.raises(RequestExpiryMalformed):
        check_times(None, text, NOW)


@pytest.mark.parametrize(
    ("timestamp", "expires_at"),
    [
        (None, None),
        (second(0), None),
        (second(-300), None),
        (second(30), None),
        (None, second(1)),
        (None, second(300)),
        (second(-299), second(300)),
    ],
)
def test_a_request_in_its_time_passes(timestamp: str | None, expires_at: str | None) -> None:
    check_times(timestamp, expires_at, NOW)


@pytest.mark.parametrize(
    ("timestamp", "expires_at", "problem", "code"),
    [
        (second(-300.001), None, RequestStale, "request_stale"),
        ("0001-01-01T00:00:00Z", None, RequestStale, "request_stale"),
        (second(30.001), None, RequestFromTheFuture, "request_from_the_future"),
        (None, second(0), RequestExpired, "request_expired"),
        (second(0), second(-1), RequestExpired, "request_expired"),
        (None, second(300.001), RequestExpiryTooFar, "request_expiry_too_far"),
        (second(-301), second(10), RequestStale, "request_stale"),
        ("x", second(10), RequestTimestampMalformed, "request_timestamp_malformed"),
        (second(0), "x", RequestExpiryMalformed, "request_expiry_malformed"),
    ],
)
def test_a_request_out_of_its_time_is_refused(timestamp, expires_at, problem, code: str) -> None:
    with pytest.raises(problem) as refused:
        check_times(timestamp, expires_at, NOW)

    assert refused.value.code == code


offsets = st.none() | st.integers(-400, 400)


@given(offsets, offsets, st.integers(1, 100_000))
def test_after_its_last_moment_a_request_never_passes_again(made, ends, later: int) -> None:
    timestamp = second(made) if made is not None else None
    expires_at = second(ends) if ends is not None else None

    last = until(timestamp, expires_at)

    assert (last is None) == (timestamp is None and expires_at is None)
    if last is not None:
        with pytest.raises((RequestStale, RequestExpired, RequestFromTheFuture)):
            check_times(timestamp, expires_at, last + timedelta(milliseconds=later))


def test_the_last_moment_is_the_earlier_one() -> None:
    assert until(second(0), None) == NOW + timedelta(minutes=5)
    assert until(None, second(60)) == NOW + timedelta(seconds=60)
    assert until(second(0), second(60)) == NOW + timedelta(seconds=60)
    assert until(second(-290), second(60)) == NOW + timedelta(seconds=10)
    assert until(None, None) is None


def test_a_mark_is_kept_as_it_was_first_made() -> None:
    # Marks of used signatures stand in the database: made otherwise, each would pass once more.
    made = PRIVATE.sign(b"x", ec.ECDSA(SHA256()))
    r, s = decode_dss_signature(made)
    low = min(s, ORDER - s)

    assert Signature("p256", made).mark == hashlib.sha256(r.to_bytes(32, "big") + low.to_bytes(32, "big")).digest()


def test_a_scheme_has_its_own_name_only() -> None:
    good = b64encode(PRIVATE.sign(b"x", ec.ECDSA(SHA256()))).decode()

    assert parse_header(f"p256={good}").scheme == "p256"
    for scheme in ("", "p384", "v1", "p256 ", "P256"):
        with pytest.raises(SignatureMalformed):
            parse_header(f"{scheme}={good}")


def test_a_signature_of_one_scheme_is_none_of_the_other() -> None:
    der = PRIVATE.sign(b"x", ec.ECDSA(SHA256()))

    assert verify(Signature("p256", der), PUBLIC, b"x")
    assert not verify(Signature("v1", der), PUBLIC, b"x")
    assert not verify(Signature("p256", hmac.digest(SECRET, b"x", "sha256")), SECRET, b"x")


def test_the_calendar_ends_where_nothing_can_be_added() -> None:
    assert moment("253370764799999").year == 9998
    assert moment("9998-12-31T23:59:59Z").year == 9998
    for end in ("253370764800000", "9999-01-01T00:00:00Z", "9999-01-01T12:00:00Z"):
        with pytest.raises(RequestTimestampMalformed):
            moment(end)
