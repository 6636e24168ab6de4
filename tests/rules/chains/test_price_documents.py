"""Documents of prices: which are believed, and every way in which one is not."""

from decimal import Decimal
from functools import cache

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from custody.chains.price_document import (
    MAX_PRICES,
    BadDocument,
    load_key,
    read_document,
    read_key,
)
from custody.chains.prices import MAX_DOCUMENT
from custody.kit.environment import BadSetting
from tests.fixtures.each import each
from tests.fixtures.issued_prices import Issuer

NOW = 1_790_000_000
ISSUER = cache(Issuer)


@each("curve", ["ed25519", "p256"])
def test_a_document_that_the_key_signed_is_read_exactly(curve: str) -> None:
    issuer = ISSUER(curve)
    body, signature = issuer.issue(NOW, evm_1_native="3120.55", evm_1_0xAB="0.000001", solana_Mint="1")

    found = read_document(body, signature, issuer.key)

    assert found.issued_at == NOW
    # EVM addresses have one spelling, those of other chains keep their letters.
    wanted = {"evm:1:native": Decimal("3120.55"), "evm:1:0xab": Decimal("0.000001"), "solana:Mint": Decimal(1)}
    assert found.prices == wanted


def problem_of(body: bytes, signature: str | None = None, by: str = "ed25519") -> str:
    """Tell why a document is not believed that the key signed, or whose signature is another."""
    issuer = ISSUER(by)
    with pytest.raises(BadDocument) as refused:
        read_document(body, issuer.sign(body) if signature is None else signature, issuer.key)
    return refused.value.problem


def doc(inner: str, issued: str = str(NOW)) -> bytes:
    return f'{{"issuedAt": {issued}, "prices": {{{inner}}}}}'.encode()


GOOD = doc('"evm:1:native": "1"')
UNREADABLE = {
    "no JSON": b"prices",
    "half a document": GOOD[:-2],
    "a list": b"[]",
    "nothing": b"",
    "two documents": GOOD + GOOD,
    "a field more": GOOD[:-1] + b', "symbol": "x"}',
    "a field less": b'{"prices": {}}',
    "a price as a number": doc('"evm:1:native": 1.5'),
    "a price of nothing": doc('"evm:1:native": "0"'),
    "a price of nothing, at length": doc('"evm:1:native": "0.000"'),
    "a negative price": doc('"evm:1:native": "-1"'),
    "beyond all measure": doc('"evm:1:native": "' + "1" + "0" * 30 + '"'),
    "an exponent": doc('"evm:1:native": "1e30"'),
    "a small exponent": doc('"evm:1:native": "1e-3"'),
    "no number": doc('"evm:1:native": "NaN"'),
    "without an end": doc('"evm:1:native": "Infinity"'),
    "a sign": doc('"evm:1:native": "+1"'),
    "a blank": doc('"evm:1:native": " 1"'),
    "digits of another script": doc('"evm:1:native": "\\u0661"'),
    "a line more": doc('"evm:1:native": "1\\n"'),
    "one key twice": doc('"evm:1:native": "1", "evm:1:native": "2"'),
    "one key twice, escaped": doc('"evm:1:native": "1", "evm:1:n\\u0061tive": "2"'),
    "one asset in two spellings": doc('"evm:1:0xab": "1", "evm:1:0xAB": "2"'),
    "one field twice": b'{"issuedAt": 1, "issuedAt": 1790000000, "prices": {}}',
    "a name of nothing": doc('"": "1"'),
    "a long name": doc('"' + "a" * 129 + '": "1"'),
    "depth": b'{"issuedAt": 1, "prices": ' + b"[" * 60_000 + b"]" * 60_000 + b"}",
    "a time as text": doc("", '"1790000000"'),
    "a time with a fraction": doc("", "1790000000.5"),
    "a negative time": doc("", "-1"),
    "a time beyond the calendar": doc("", "1" + "0" * 15),
    "more prices than may be": doc(",".join(f'"a{number}": "1"' for number in range(MAX_PRICES + 1))),
}


@each("name", UNREADABLE)
def test_a_document_that_is_wrong_in_any_part_is_wrong_as_a_whole(name: str) -> None:
    assert problem_of(UNREADABLE[name]) == "unreadable"


def test_a_signature_is_of_the_whole_body_by_this_key() -> None:
    issuer, other = ISSUER("ed25519"), Issuer()
    body, signature = issuer.issue(NOW, evm_1_native="1")
    wrong = {
        "another key's": other.sign(body),
        "none": "",
        "no base64": "%%%",
        "cut": signature[:-8],
        "of another curve": Issuer("p256").sign(body),
    }

    assert {name: problem_of(body, made) for name, made in wrong.items()} == dict.fromkeys(wrong, "signature")
    assert problem_of(body + b" ", signature) == problem_of(body[:-1], signature) == "signature"
    assert problem_of(body.replace(b'"1"', b'"2"'), signature) == "signature"
    # Two headers of one name come as one, with a comma.
    assert problem_of(body, f"{signature}, {signature}") == problem_of(body, "A" * 129) == "too_large"
    # The control.
    assert read_document(body, signature, issuer.key).issued_at == NOW


def test_a_document_that_is_too_long_is_refused_before_it_is_looked_at() -> None:
    fits = doc("") + b" " * (MAX_DOCUMENT - len(doc("")))

    assert read_document(fits, ISSUER("ed25519").sign(fits), ISSUER("ed25519").key).prices == {}
    assert problem_of(fits + b" ") == "too_large"
    assert problem_of(b"x" * 10_000_000, "") == "too_large"


def test_only_ed25519_and_p256_keys_are_taken(tmp_path_factory: pytest.TempPathFactory) -> None:
    other = [ec.generate_private_key(ec.SECP384R1()), ed448.Ed448PrivateKey.generate()]
    pems = [key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in other]

    for pem in (*pems, b"", b"nonsense"):
        with pytest.raises(ValueError, match=r"PEM|neither"):
            read_key(pem)
    file = tmp_path_factory.mktemp("key") / "prices.pem"
    file.write_bytes(pems[0])
    with pytest.raises(BadSetting, match="SERVICE_PRICES_KEY_FILE: must name a PEM file"):
        load_key({"SERVICE_PRICES_KEY_FILE": str(file)})
    assert load_key({"SERVICE_PRICES_KEY_FILE": ISSUER("p256").write(file)}) is not None
    assert load_key({}) is None
