"""Both kinds of wallet write and sign the same messages, and siwe accepts what they sign. EIP-4361."""

from collections.abc import Iterator

import msgspec
import pytest

from tests.judges import npm
from tests.outside.wallet import NodeWallet, Refused, SignIn, Wallet

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

SHORT = SignIn(domain="app.test", uri="https://app.test/in", nonce="abcd1234efgh", issued_at="2026-03-01T12:00:00.000Z")
LONG = SignIn(
    domain="app.test:8443",
    uri="https://app.test:8443/in?a=b",
    nonce="A1b2C3d4E5",
    chain_id=8453,
    issued_at="2026-03-01T12:00:00.000Z",
    scheme="https",
    statement="Sign in, and nothing else.",
    expiration_time="2026-03-01T12:05:00Z",
    not_before="2026-03-01T11:59:59.5+00:00",
    request_id="7-of-9",
    resources=("https://app.test/terms", "ipfs://bafy/terms"),
)
NO_RESOURCES = msgspec.structs.replace(LONG, resources=())
NOON = "2026-03-01T12:00:00Z"


@pytest.fixture(scope="module")
def node() -> Iterator[NodeWallet]:
    with NodeWallet() as started:
        yield started


@pytest.mark.parametrize("says", [SHORT, LONG, NO_RESOURCES], ids=["short", "long", "no resources"])
def test_siwe_and_our_own_hand_write_and_sign_the_same(node: NodeWallet, says: SignIn) -> None:
    person = Wallet()

    assert node.sign_in(says, person.key) == person.sign_in(says)


@pytest.mark.parametrize("says", [SHORT, LONG], ids=["short", "long"])
def test_siwe_accepts_what_either_signs(node: NodeWallet, says: SignIn) -> None:
    for signed in (Wallet().sign_in(says), node.sign_in(says)):
        found = node.verify(signed.message, signed.signature, domain=says.domain, nonce=says.nonce, time=NOON)

        assert found == signed.address


def test_each_wallet_is_somebody_else(node: NodeWallet) -> None:
    assert len({Wallet().address, Wallet().address, node.sign_in(SHORT).address, node.sign_in(SHORT).address}) == 4


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"domain": "evil.test"}, "Domain does not match"),
        ({"nonce": "somebodyelse"}, "Nonce does not match"),
        ({"time": "2026-03-01T12:05:00Z"}, "Expired message"),
        ({"time": "2026-03-01T11:59:59Z"}, "not valid yet"),
    ],
)
def test_siwe_refuses_what_is_not_as_expected(node: NodeWallet, expected: dict[str, str], words: str) -> None:
    signed = Wallet().sign_in(LONG)

    with pytest.raises(Refused, match=words):
        node.verify(signed.message, signed.signature, **{"time": NOON} | expected)


def test_siwe_refuses_another_wallets_signature(node: NodeWallet) -> None:
    with pytest.raises(Refused):
        node.verify(Wallet().sign_in(SHORT).message, Wallet().sign_in(SHORT).signature)


def test_siwe_makes_no_malformed_message(node: NodeWallet) -> None:
    with pytest.raises(Refused):
        node.sign_in(msgspec.structs.replace(SHORT, nonce="short"))
