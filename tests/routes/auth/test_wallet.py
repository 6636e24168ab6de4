"""Sign-in with Ethereum over HTTP. EIP-4361, EIP-191, EIP-1271."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest
from eth_abi import encode

from custody.chains.evm.address import checksum, keccak256
from custody.chains.evm.signature import ORDER
from tests.fixtures.callers import Client, Tenant
from tests.fixtures.deployments import partner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, says, sign_in
from tests.fixtures.server import EVM_CHAIN, SOLANA_CHAIN, Service
from tests.outside.bad_node import BadNode, running_bad_node
from tests.outside.evm_node import EvmNode, creation_code
from tests.outside.wallet import NodeWallet, SignedIn, Wallet


def nonce(client: Client) -> str:
    return client.ok("GET", "/auth/nonce")["nonce"]


def sign(service: Service, client: Client, wallet: Wallet | None = None, **changed: Any) -> SignedIn:
    """A message that says what an honest one says but for this, signed by a new wallet unless told otherwise."""
    return (wallet or Wallet()).sign_in(says(service, changed.pop("nonce", None) or nonce(client), **changed))


def verify(client: Client, it: SignedIn, **more: Any) -> httpx.Response:
    return client.post("/auth/verify", json={"message": it.message, "signature": it.signature, **more})


def outcome(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def at(**ago: float) -> str:
    """A moment so long ago, or ahead, as a message writes it."""
    return (datetime.now(UTC) - timedelta(**ago)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_first_sign_in_makes_a_tenant_whose_key_works(service: Service, person: Person) -> None:
    session = person.session

    assert session["tenant"]["id"] == f"personal-{person.id}"
    assert session["tenant"]["role"] == "owner"
    assert session["expiresIn"] == 900
    assert session["user"]["walletAddress"] == person.wallet.address
    assert session["mfa"] == {"verifiedAt": None, "methods": []}
    assert session["provider"] == "siwe"
    assert person.ok("GET", "/agents", None) == []
    key = {"X-Service-Key": session["tenant"]["apiKey"], "Authorization": ""}
    assert person.ok("GET", "/agents", None, **key) == []


def test_second_sign_in_finds_the_same_person_and_shows_no_key(service: Service, person: Person) -> None:
    with closing(sign_in(service, person.wallet)) as again:
        assert again.id == person.id
        assert "apiKey" not in again.session["tenant"]


def test_another_wallet_is_another_person(service: Service, person: Person) -> None:
    with closing(sign_in(service)) as other:
        assert other.id != person.id


def test_two_first_sign_ins_at_once_make_one_person(service: Service, as_nobody: Client) -> None:
    wallet = Wallet()
    messages = [sign(service, as_nobody, wallet) for _ in range(4)]

    with ThreadPoolExecutor(4) as threads:
        sessions = [answer.json()["data"] for answer in threads.map(lambda it: verify(as_nobody, it), messages)]

    assert len({session["user"]["id"] for session in sessions}) == 1
    assert len({session["tenant"]["id"] for session in sessions}) == 1
    assert ["apiKey" in session["tenant"] for session in sessions].count(True) == 1


# ---- the nonce


def test_a_nonce_says_until_when_it_serves(as_nobody: Client) -> None:
    answer = as_nobody.get("/auth/nonce")

    given = answer.json()["data"]
    left = datetime.fromisoformat(given["expiresAt"]) - datetime.now(UTC)
    assert timedelta(seconds=290) < left <= timedelta(seconds=300)
    assert given["nonce"].isalnum()
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_nonce_works_once(service: Service, as_nobody: Client) -> None:
    it = sign(service, as_nobody)

    assert verify(as_nobody, it).status_code == 200
    assert outcome(verify(as_nobody, it)) == (401, "nonce_invalid")


def test_a_nonce_works_once_even_if_it_comes_many_times_at_once(service: Service, as_nobody: Client) -> None:
    it = sign(service, as_nobody)

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: verify(as_nobody, it), range(6)))

    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 5


def test_a_nonce_is_for_one_wallet_only(service: Service, as_nobody: Client) -> None:
    given = nonce(as_nobody)

    assert verify(as_nobody, sign(service, as_nobody, nonce=given)).status_code == 200
    assert outcome(verify(as_nobody, sign(service, as_nobody, nonce=given))) == (401, "nonce_invalid")


async def test_a_nonce_does_not_work_after_five_minutes(
    service: Service, as_nobody: Client, owner: asyncpg.Connection
) -> None:
    given = nonce(as_nobody)
    moved = "UPDATE sign_in_nonces SET expires_at = expires_at - interval '5 minutes' WHERE nonce_hash = $1"

    assert await owner.execute(moved, hashlib.sha256(given.encode()).digest()) == "UPDATE 1"

    assert outcome(verify(as_nobody, sign(service, as_nobody, nonce=given))) == (401, "nonce_invalid")


@pytest.mark.parametrize("invented", ["0" * 32, "a" * 8, "Z" * 64])
def test_a_nonce_that_was_never_given_out_does_not_work(service: Service, as_nobody: Client, invented: str) -> None:
    assert outcome(verify(as_nobody, sign(service, as_nobody, nonce=invented))) == (401, "nonce_invalid")


def test_a_nonce_is_used_up_by_a_sign_in_that_failed(service: Service, as_nobody: Client) -> None:
    it = sign(service, as_nobody)

    assert outcome(verify(as_nobody, it, tenantId="no-such-tenant")) == (403, "not_a_member")
    assert outcome(verify(as_nobody, it)) == (401, "nonce_invalid")


def test_a_refused_signature_does_not_use_up_the_nonce(service: Service, as_nobody: Client) -> None:
    it = sign(service, as_nobody)

    assert outcome(verify(as_nobody, SignedIn(it.address, it.message, Wallet().sign(it.message))))[0] == 401
    assert verify(as_nobody, it).status_code == 200


# ---- where, when and on which chain


@pytest.mark.parametrize(
    "changed",
    [
        {"domain": "evil.example"},
        {"uri": "https://evil.example/"},
        {"domain": "localhost"},
        {"domain": "localhost:1"},
        {"domain": "localhost.evil.example:{port}"},
        {"uri": "http://localhost/"},
        {"domain": "localhost:{port}@evil.example"},
        {"uri": "http://localhost:{port}@evil.example/"},
        {"uri": "ftp://localhost:{port}/"},
        {"uri": "urn:localhost:{port}"},
        {"scheme": "ftp"},
        {"uri": "http://x@localhost:{port}/"},
    ],
    ids=str,
)
def test_a_message_for_another_site_is_refused(service: Service, as_nobody: Client, changed: dict[str, str]) -> None:
    here = {name: value.replace("{port}", str(service.port)) for name, value in changed.items()}

    assert outcome(verify(as_nobody, sign(service, as_nobody, **here))) == (401, "siwe_domain_mismatch")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "LocalHost"])
def test_on_loopback_the_site_has_two_names(service: Service, as_nobody: Client, host: str) -> None:
    name = f"{host}:{service.port}"

    assert verify(as_nobody, sign(service, as_nobody, domain=name, uri=f"http://{name}/sign-in")).status_code == 200


@pytest.mark.parametrize("chain", [5, 99_999_999, SOLANA_CHAIN], ids=["unknown", "huge", "not EVM"])
def test_a_chain_that_is_no_configured_evm_chain_is_refused(service: Service, as_nobody: Client, chain: int) -> None:
    assert outcome(verify(as_nobody, sign(service, as_nobody, chain_id=chain))) == (401, "siwe_chain_unknown")


@pytest.mark.parametrize("chain", [1, 8453, EVM_CHAIN])
def test_any_configured_evm_chain_is_accepted(service: Service, as_nobody: Client, chain: int) -> None:
    assert verify(as_nobody, sign(service, as_nobody, chain_id=chain)).status_code == 200


@pytest.mark.parametrize(
    ("field", "ago"),
    [
        ("issued_at", {"minutes": 11}),
        ("issued_at", {"days": 400}),
        ("issued_at", {"minutes": -2}),
        ("expiration_time", {"seconds": 1}),
        ("expiration_time", {"days": 1}),
        ("not_before", {"minutes": -2}),
    ],
)
def test_a_message_outside_its_time_is_refused(
    service: Service, as_nobody: Client, field: str, ago: dict[str, float]
) -> None:
    assert outcome(verify(as_nobody, sign(service, as_nobody, **{field: at(**ago)}))) == (401, "siwe_not_valid_now")


@pytest.mark.parametrize(
    ("field", "ago"),
    [
        ("issued_at", {"minutes": 9}),
        ("issued_at", {"seconds": -15}),
        ("expiration_time", {"minutes": -1}),
        ("not_before", {"minutes": 1}),
        ("not_before", {"seconds": -15}),
    ],
)
def test_a_message_within_its_time_is_taken(
    service: Service, as_nobody: Client, field: str, ago: dict[str, float]
) -> None:
    assert verify(as_nobody, sign(service, as_nobody, **{field: at(**ago)})).status_code == 200


# ---- the signature


def test_a_signature_of_another_wallet_is_refused(service: Service, as_nobody: Client) -> None:
    it = sign(service, as_nobody)

    answer = verify(as_nobody, SignedIn(it.address, it.message, Wallet().sign(it.message)))

    assert outcome(answer) == (401, "signature_invalid")


@pytest.mark.parametrize("part", ["nonce", "chain", "address", "statement", "space", "newline"])
def test_a_signature_of_another_message_is_refused(service: Service, as_nobody: Client, part: str) -> None:
    wallet, other = Wallet(), Wallet()
    it = sign(service, as_nobody, wallet, statement="Sign in.")
    changed = {
        "nonce": it.message.replace("Nonce: ", "Nonce: a"),
        "chain": it.message.replace(f"Chain ID: {EVM_CHAIN}", "Chain ID: 1"),
        "address": it.message.replace(wallet.address, other.address),
        "statement": it.message.replace("Sign in.", "Sign out."),
        "space": it.message.replace("Sign in.", "Sign in. "),
        "newline": it.message,
    }[part]
    # What was signed had one letter more.
    signature = wallet.sign(it.message + "\n") if part == "newline" else it.signature

    code = "nonce_invalid" if part == "nonce" else "signature_invalid"
    assert outcome(verify(as_nobody, SignedIn(it.address, changed, signature))) == (401, code)


def bend(signature: str, how: str) -> str:
    raw = bytes.fromhex(signature[2:])
    r, s, v = raw[:32], int.from_bytes(raw[32:64]), raw[64]
    if how == "high s":
        return "0x" + (r + (ORDER - s).to_bytes(32) + bytes((55 - v,))).hex()
    changed = {
        "s is zero": r + bytes(32) + raw[64:],
        "r is zero": bytes(32) + raw[32:],
        "r beyond the order": b"\xff" * 32 + raw[32:],
        "other parity": raw[:64] + bytes((55 - v,)),
        "v of another chain": raw[:64] + bytes((v + 10,)),
        "v is 255": raw[:64] + b"\xff",
        "cut short": raw[:-2],
        "too long": raw + b"\0",
        "empty": raw[:1],
        "compact": r + (s | ((v - 27) << 255)).to_bytes(32),
        "compact, other parity": r + (s | ((28 - v) << 255)).to_bytes(32),
    }
    return "0x" + changed[how].hex()


@pytest.mark.parametrize(
    "how",
    [
        "high s",
        "s is zero",
        "r is zero",
        "r beyond the order",
        "other parity",
        "v of another chain",
        "v is 255",
        "cut short",
        "too long",
        "empty",
        "compact, other parity",
    ],
)
def test_a_signature_that_no_wallet_makes_is_refused(service: Service, as_nobody: Client, how: str) -> None:
    it = sign(service, as_nobody)

    answer = verify(as_nobody, SignedIn(it.address, it.message, bend(it.signature, how)))

    assert outcome(answer) == (401, "signature_invalid")


def test_a_signature_with_v_0_or_1_is_taken(service: Service, as_nobody: Client) -> None:
    it = sign(service, as_nobody)
    raw = bytes.fromhex(it.signature[2:])

    answer = verify(as_nobody, SignedIn(it.address, it.message, "0x" + (raw[:64] + bytes((raw[64] - 27,))).hex()))

    assert answer.json()["data"]["user"]["walletAddress"] == it.address


def test_a_compact_signature_is_taken(service: Service, as_nobody: Client) -> None:
    """EIP-2098."""
    it = sign(service, as_nobody)

    answer = verify(as_nobody, SignedIn(it.address, it.message, bend(it.signature, "compact")))

    assert answer.json()["data"]["user"]["walletAddress"] == it.address


@pytest.mark.parametrize("bad", ["", "0x", "0xzz", "deadbeef", "0xabc", "0x" + "ab" * 9000, None, 5, ["0xab"]])
def test_a_signature_that_is_no_hex_is_400(service: Service, as_nobody: Client, bad: Any) -> None:
    message = sign(service, as_nobody).message

    answer = as_nobody.post("/auth/verify", json={"message": message, "signature": bad})

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["signature"])


# ---- the message


def lines(text: str) -> list[str]:
    return text.split("\n")


# What is done to an honest message before it is signed.
MALFORMED = {
    "nothing but a letter": lambda text: "x",
    "another first line": lambda text: text.replace("wants you to sign in", "wants you to sign up"),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "a newline at the end": lambda text: text + "\n",
    "something after the end": lambda text: text + "\nAnything: else",
    "no address": lambda text: "\n".join([lines(text)[0], *lines(text)[2:]]),
    "an address with a wrong checksum": lambda text: text.replace(
        lines(text)[1], lines(text)[1].swapcase().replace("X", "x")
    ),
    "an upper-case address": lambda text: text.replace(lines(text)[1], "0x" + lines(text)[1][2:].upper()),
    "a short address": lambda text: text.replace(lines(text)[1], lines(text)[1][:-1]),
    "no empty line": lambda text: "\n".join(line for line in lines(text) if line),
    "three empty lines before the statement": lambda text: text.replace("\n\n", "\n\n\n\n", 1),
    "no URI": lambda text: "\n".join(line for line in lines(text) if not line.startswith("URI")),
    "no nonce": lambda text: "\n".join(line for line in lines(text) if not line.startswith("Nonce")),
    "two nonces": lambda text: text.replace("\nNonce: ", "\nNonce: aaaaaaaa\nNonce: "),
    "fields in another order": lambda text: "\n".join([*lines(text)[:-2], lines(text)[-1], lines(text)[-2]]),
    "version 2": lambda text: text.replace("Version: 1", "Version: 2"),
    "a chain in hex": lambda text: text.replace(f"Chain ID: {EVM_CHAIN}", "Chain ID: 0x1"),
    "a chain with a zero before": lambda text: text.replace(f"Chain ID: {EVM_CHAIN}", f"Chain ID: 0{EVM_CHAIN}"),
    "a chain beyond all": lambda text: text.replace(f"Chain ID: {EVM_CHAIN}", "Chain ID: " + "9" * 40),
    "a short nonce": lambda text: text.replace("Nonce: ", "Nonce: a\n"),
    "a nonce with a hyphen": lambda text: text.replace("Nonce: ", "Nonce: a-"),
    "a day without a time": lambda text: "\n".join([*lines(text)[:-1], "Issued At: 2026-01-01"]),
    "a day that never was": lambda text: "\n".join([*lines(text)[:-1], "Issued At: 2026-02-30T00:00:00Z"]),
    "a time without a zone": lambda text: "\n".join([*lines(text)[:-1], "Issued At: 2026-01-01T00:00:00"]),
    "a NUL": lambda text: text.replace("Version: 1", "Version: 1\x00"),
    "a port and more": lambda text: text.replace("localhost:", "localhost:1.evil.example:", 1),
    "another alphabet": lambda text: text.replace("URI: http://", "URI: http://\u0430"),
    "a tab": lambda text: text.replace("URI: ", "URI:\t"),
}


@pytest.mark.parametrize("how", MALFORMED)
def test_a_malformed_message_is_400_and_says_what_is_wrong(service: Service, as_nobody: Client, how: str) -> None:
    wallet = Wallet()
    text = MALFORMED[how](says(service, nonce(as_nobody)).text(wallet.address))

    answer = verify(as_nobody, SignedIn(wallet.address, text, wallet.sign(text)))

    assert outcome(answer) == (400, "siwe_malformed")
    assert len(answer.json()["error"]) > 20
    assert answer.json()["error"].endswith((".", ";"))


def test_an_address_in_lower_case_is_the_wallets(service: Service, as_nobody: Client) -> None:
    wallet = Wallet()
    text = says(service, nonce(as_nobody)).text(wallet.address.lower())

    answer = verify(as_nobody, SignedIn(wallet.address, text, wallet.sign(text)))
    again = verify(as_nobody, sign(service, as_nobody, wallet))

    assert answer.json()["data"]["user"]["walletAddress"] == wallet.address
    assert answer.json()["data"]["user"]["id"] == again.json()["data"]["user"]["id"]


def test_somebody_elses_address_in_lower_case_is_not_signed_in(service: Service, as_nobody: Client) -> None:
    text = says(service, nonce(as_nobody)).text(Wallet().address.lower())

    assert outcome(verify(as_nobody, SignedIn("", text, Wallet().sign(text)))) == (401, "signature_invalid")


def test_a_statement_may_be_empty(service: Service, as_nobody: Client) -> None:
    it = sign(service, as_nobody, statement="")

    assert it.message.splitlines()[2:5] == ["", "", ""]
    assert verify(as_nobody, it).status_code == 200


@pytest.mark.parametrize("bad", ["", "x" * 8193, None, 5])
def test_a_message_that_is_none_or_too_long_is_400(as_nobody: Client, bad: Any) -> None:
    answer = as_nobody.post("/auth/verify", json={"message": bad, "signature": "0x" + "ab" * 65})

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["message"])


def test_a_surrogate_is_no_text(as_nobody: Client) -> None:
    body = b'{"message": "\\ud800", "signature": "0xab"}'

    answer = as_nobody.post("/auth/verify", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 400


# ---- what real sites send


@pytest.fixture(scope="module")
def site() -> Iterator[NodeWallet]:
    """A wallet of ethers, behind the library that sites use."""
    with NodeWallet() as wallet:
        yield wallet


@pytest.mark.long
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"statement": "I accept the terms: https://example.com/tos"},
        {"statement": ""},
        {"scheme": "http"},
        {"request_id": "one-1"},
        {"resources": ("https://example.com/a", "ipfs://Qme7ss3ARVgxv6rXqVPiikMJ8u2NLgmgszg13pYrDKEoiu")},
    ],
    ids=["plain", "statement", "empty statement", "scheme", "request id", "resources"],
)
def test_the_messages_of_the_library_that_sites_use_are_understood(
    service: Service, as_nobody: Client, site: NodeWallet, more: dict[str, Any]
) -> None:
    it = site.sign_in(says(service, nonce(as_nobody), expiration_time=at(minutes=-5), not_before=at(minutes=1), **more))

    answer = verify(as_nobody, it)

    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["user"]["walletAddress"] == it.address


# ---- contract wallets


def contract_of(wallet: Wallet) -> bytes:
    """The code of a contract wallet (EIP-1271) that takes a signature of this owner for its own."""
    return bytes.fromhex(
        "600435600052"  # memory 0x00: the hash
        "60a43560f81c602052"  # 0x20: v, the last byte of the signature
        "606435604052"  # 0x40: r
        "608435606052"  # 0x60: s
        "60206080608060006001"
        "5afa50"  # ecrecover into 0x80
        f"60805173{wallet.address[2:]}14"  # is it the owner?
        "631626ba7e0260e01b60005260206000f3"  # the magic value, or nothing
    )


# Agrees with everything, as a contract of an attacker's may.
AGREES = bytes.fromhex("631626ba7e60e01b60005260206000f3")
REVERTS = bytes.fromhex("60006000fd")
# Returns one and not the magic value, as a contract that never heard of EIP-1271 may.
ANSWERS_ONE = bytes.fromhex("600160005260206000f3")


def as_contract(service: Service, client: Client, contract: str, by: Wallet | None = None, **changed: Any) -> SignedIn:
    """A message in a contract's name, signed by its owner or with bytes of no meaning."""
    text = says(service, nonce(client), **changed).text(contract)
    return SignedIn(contract, text, by.sign(text) if by else "0x" + "ab" * 130)


def test_a_contract_wallet_signs_in_with_its_owners_signature(
    service: Service, as_nobody: Client, evm_node: EvmNode
) -> None:
    holder = Wallet()
    contract = evm_node.deploy(contract_of(holder))

    first, second = (verify(as_nobody, as_contract(service, as_nobody, contract, holder)) for _ in range(2))

    assert first.status_code == 200, first.text
    assert first.json()["data"]["user"]["id"] == second.json()["data"]["user"]["id"]
    assert first.json()["data"]["user"]["walletAddress"] == contract


def test_a_contract_wallet_is_another_person_than_its_owner(
    service: Service, person: Person, evm_node: EvmNode
) -> None:
    contract = evm_node.deploy(contract_of(person.wallet))

    session = verify(person, as_contract(service, person, contract, person.wallet)).json()["data"]

    assert session["user"]["id"] != person.id


def test_a_contract_may_take_a_signature_of_any_form(service: Service, as_nobody: Client, evm_node: EvmNode) -> None:
    assert verify(as_nobody, as_contract(service, as_nobody, evm_node.deploy(AGREES))).status_code == 200


@pytest.mark.parametrize("code", [REVERTS, ANSWERS_ONE, b"\0"], ids=["reverts", "answers one", "answers nothing"])
def test_a_contract_that_does_not_agree_does_not_sign_in(
    service: Service, as_nobody: Client, evm_node: EvmNode, code: bytes
) -> None:
    contract = evm_node.deploy(code)

    for by in (Wallet(), None):
        answer = verify(as_nobody, as_contract(service, as_nobody, contract, by))
        assert outcome(answer) == (401, "signature_invalid")


def test_a_contract_wallet_does_not_take_another_signature(
    service: Service, as_nobody: Client, evm_node: EvmNode
) -> None:
    holder = Wallet()
    contract = evm_node.deploy(contract_of(holder))
    it = as_contract(service, as_nobody, contract, holder)

    stranger = verify(as_nobody, as_contract(service, as_nobody, contract, Wallet()))
    earlier = verify(as_nobody, SignedIn(contract, it.message.replace("Nonce: ", "Nonce: a"), it.signature))

    assert outcome(stranger) == (401, "signature_invalid")
    assert outcome(earlier) == (401, "nonce_invalid")


def test_a_contract_on_another_chain_is_not_asked_here(service: Service, as_nobody: Client, evm_node: EvmNode) -> None:
    holder = Wallet()
    contract = evm_node.deploy(contract_of(holder))

    # This deployment has no node of chain 1.
    answer = verify(as_nobody, as_contract(service, as_nobody, contract, holder, chain_id=1))

    assert outcome(answer) == (401, "signature_invalid")


def test_a_nonce_of_a_contract_wallet_works_once_too(service: Service, as_nobody: Client, evm_node: EvmNode) -> None:
    it = as_contract(service, as_nobody, evm_node.deploy(AGREES))

    assert verify(as_nobody, it).status_code == 200
    assert outcome(verify(as_nobody, it)) == (401, "nonce_invalid")


# ---- contract wallets that are not on the chain yet: ERC-6492

# Puts a contract on the chain with the creation code that it is called with (CREATE2, the salt is zero).
FACTORY = bytes.fromhex("36600060003760003660006000f560005260206000f3")
# Called with nothing it stores a one; asked, it agrees if that is there.
AGREES_AFTER_A_CALL = bytes.fromhex("36156019576000546316" + "26ba7e0260e01b60005260206000f35b600160005500")
MAGIC = bytes.fromhex("6492" * 16)


def made_by(factory: str, creation: bytes) -> str:
    """The address of what the factory puts on the chain."""
    return checksum("0x" + keccak256(b"\xff" + bytes.fromhex(factory[2:]) + bytes(32) + keccak256(creation))[12:].hex())


def wrap(factory: str, deployment: bytes, signature: str) -> str:
    """A signature as ERC-6492 has it."""
    inner = bytes.fromhex(signature.removeprefix("0x"))
    return "0x" + (encode(["address", "bytes", "bytes"], [factory, deployment, inner]) + MAGIC).hex()


def as_undeployed(
    service: Service, client: Client, factory: str, creation: bytes, by: Wallet, **changed: Any
) -> SignedIn:
    """A message in the name of a wallet that is not on the chain, signed by its owner."""
    address = changed.pop("address", None) or made_by(factory, creation)
    text = says(service, nonce(client), **changed).text(address)
    return SignedIn(address, text, wrap(factory, creation, by.sign(text)))


def test_a_wallet_signs_in_before_and_after_it_is_deployed(
    service: Service, as_nobody: Client, evm_node: EvmNode
) -> None:
    holder = Wallet()
    factory, creation = evm_node.deploy(FACTORY), creation_code(contract_of(holder))

    before = verify(as_nobody, as_undeployed(service, as_nobody, factory, creation, holder))
    assert before.status_code == 200, before.text
    address = before.json()["data"]["user"]["walletAddress"]
    assert address == made_by(factory, creation)
    assert evm_node.rpc("eth_getCode", address, "latest") == "0x"

    evm_node.call_contract(factory, creation)
    assert evm_node.rpc("eth_getCode", address, "latest") != "0x"
    still = verify(as_nobody, as_undeployed(service, as_nobody, factory, creation, holder))
    plain = verify(as_nobody, as_contract(service, as_nobody, address, holder))
    assert {answer.json()["data"]["user"]["id"] for answer in (before, still, plain)} == {
        before.json()["data"]["user"]["id"]
    }


def test_a_wallet_is_linked_before_it_is_deployed(service: Service, person: Person, evm_node: EvmNode) -> None:
    factory, creation = evm_node.deploy(FACTORY), creation_code(contract_of(person.wallet))
    it = as_undeployed(service, person, factory, creation, person.wallet)

    answer = person.post("/auth/identities", json={"wallet": {"message": it.message, "signature": it.signature}})

    assert answer.status_code == 201, answer.text
    assert answer.json()["data"]["provider"] == "wallet:contract"


@pytest.mark.parametrize("deployed", [False, True])
def test_a_stranger_signs_nobody_in_through_a_factory(
    service: Service, as_nobody: Client, evm_node: EvmNode, deployed: bool
) -> None:
    holder, stranger = Wallet(), Wallet()
    factory, creation = evm_node.deploy(FACTORY), creation_code(contract_of(holder))
    if deployed:
        evm_node.call_contract(factory, creation)
    address = made_by(factory, creation)
    # Its own wallet, which agrees with it, but not at that address; then the right one with a stranger's signature.
    own = as_undeployed(service, as_nobody, factory, creation_code(AGREES), stranger, address=address)
    right = as_undeployed(service, as_nobody, factory, creation, stranger)

    assert [outcome(verify(as_nobody, it)) for it in (own, right)] == [(401, "signature_invalid")] * 2


@pytest.mark.parametrize("code", [REVERTS, b"\0", AGREES], ids=["reverts", "does nothing", "agrees itself"])
def test_a_factory_that_deploys_nothing_signs_nobody_in(
    service: Service, as_nobody: Client, evm_node: EvmNode, code: bytes
) -> None:
    """An address without code returns nothing and fails at nothing."""
    it = as_undeployed(service, as_nobody, evm_node.deploy(code), b"", Wallet(), address=Wallet().address)

    assert outcome(verify(as_nobody, it)) == (401, "signature_invalid")


@pytest.mark.parametrize(
    "code",
    [REVERTS, ANSWERS_ONE, b"\0", bytes.fromhex("631626ba7e60e01b60005260406000f3")],
    ids=["reverts", "answers one", "answers nothing", "answers two words"],
)
def test_a_wallet_that_does_not_agree_once_it_is_there_does_not_sign_in(
    service: Service, as_nobody: Client, evm_node: EvmNode, code: bytes
) -> None:
    it = as_undeployed(service, as_nobody, evm_node.deploy(FACTORY), creation_code(code), Wallet())

    assert outcome(verify(as_nobody, it)) == (401, "signature_invalid")


def test_a_wallet_that_is_there_is_asked_as_it_is(service: Service, as_nobody: Client, evm_node: EvmNode) -> None:
    """A call before the question could change what it says, and anybody chooses that call."""
    contract = evm_node.deploy(AGREES_AFTER_A_CALL)
    it = as_undeployed(service, as_nobody, contract, b"", Wallet(), address=contract)

    assert outcome(verify(as_nobody, it)) == (401, "signature_invalid")
    evm_node.call_contract(contract, b"")
    again = as_undeployed(service, as_nobody, contract, b"", Wallet(), address=contract)
    assert verify(as_nobody, again).status_code == 200


def test_a_wallet_that_is_not_deployed_gets_little_gas(service: Service, as_nobody: Client, evm_node: EvmNode) -> None:
    # GAS > 2,000,000 ? return the magic value : return nothing
    greedy = bytes.fromhex(f"621e84805a11600a57005b7f1626ba7e{'00' * 28}60005260206000f3")
    it = as_undeployed(service, as_nobody, evm_node.deploy(FACTORY), creation_code(greedy), Wallet())

    assert outcome(verify(as_nobody, it)) == (401, "signature_invalid")


AGREEING = {"eth_call": "0x1626ba7e" + "00" * 28}


@pytest.fixture(scope="module")
def node() -> Iterator[BadNode]:
    """A node that counts what it is asked, and on which every contract agrees."""
    with running_bad_node() as running:
        running.results = AGREEING
        yield running


@pytest.fixture(scope="module")
def on_bad_node(service: Service, node: BadNode) -> Iterator[Service]:
    """A deployment with that node."""
    with partner_of(service, **{f"SERVICE_RPC_URL_{EVM_CHAIN}": f"http://{node.address}"}) as running:
        yield running


@pytest.fixture
def at_watched(on_bad_node: Service, node: BadNode) -> Iterator[Client]:
    node.asked.clear()
    with Client(base_url=on_bad_node.url, timeout=30) as nobody:
        yield nobody


CONTRACT = "0x" + "11" * 20


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"domain": "evil.example"}, "siwe_domain_mismatch"),
        ({"uri": "https://evil.example/"}, "siwe_domain_mismatch"),
        ({"issued_at": "2001-01-01T00:00:00Z"}, "siwe_not_valid_now"),
        ({"nonce": "neverissued1"}, "nonce_invalid"),
        ({"chain_id": 99_999_999}, "siwe_chain_unknown"),
    ],
    ids=str,
)
def test_no_node_is_asked_for_a_message_that_is_wrong(
    on_bad_node: Service, at_watched: Client, node: BadNode, changed: dict[str, Any], refused: str
) -> None:
    given = {"nonce": nonce(at_watched)} | changed
    it = SignedIn(CONTRACT, says(on_bad_node, given.pop("nonce"), **given).text(CONTRACT), "0x" + "ab" * 8000)

    assert outcome(verify(at_watched, it)) == (401, refused)
    assert node.asked == []


def test_a_node_is_asked_little_and_once_for_a_nonce(on_bad_node: Service, at_watched: Client, node: BadNode) -> None:
    it = sign(on_bad_node, at_watched)
    node.results = {"eth_call": "0x"}
    with ThreadPoolExecutor(4) as threads:
        strangers = [SignedIn(it.address, it.message, Wallet().sign(it.message)) for _ in range(4)]
        refused = list(threads.map(lambda one: verify(at_watched, one), strangers))
    node.results = AGREEING

    assert {outcome(answer) for answer in refused} == {(401, "signature_invalid")}
    assert len(node.asked) == 1
    # Nobody but its holder has used the nonce up.
    assert verify(at_watched, it).status_code == 200
    assert int(node.asked[0]["params"][0]["gas"], 16) <= 1_000_000


def break_wrapper(how: str) -> str:
    """A wrapped signature that is no right one."""
    raw = bytearray.fromhex(wrap(CONTRACT, b"deploy", "0x" + "ab" * 65)[2:])
    if how == "nothing but the mark":
        return "0x" + MAGIC.hex()
    if how == "a short head":
        return "0x" + (bytes(95) + MAGIC).hex()
    place, value = {
        "a factory of 21 bytes": (11, 1),
        "a place beyond the end": (62, 0xFF),
        "a place of 32 bytes": (32, 0xFF),
        "a length beyond the end": (126, 0xFF),
        "a length of 32 bytes": (96, 0xFF),
        "a signature beyond the end": (94, 0xFF),
    }[how]
    raw[place] = value
    return "0x" + raw.hex()


@pytest.mark.parametrize(
    "how",
    [
        "nothing but the mark",
        "a short head",
        "a factory of 21 bytes",
        "a place beyond the end",
        "a place of 32 bytes",
        "a length beyond the end",
        "a length of 32 bytes",
        "a signature beyond the end",
    ],
)
def test_no_node_is_asked_about_a_broken_wrapper(
    on_bad_node: Service, at_watched: Client, node: BadNode, how: str
) -> None:
    text = says(on_bad_node, nonce(at_watched)).text(CONTRACT)

    assert outcome(verify(at_watched, SignedIn(CONTRACT, text, break_wrapper(how)))) == (401, "signature_invalid")
    assert node.asked == []


def test_a_wallet_that_is_not_deployed_is_one_small_question(
    on_bad_node: Service, at_watched: Client, node: BadNode
) -> None:
    text = says(on_bad_node, nonce(at_watched)).text(CONTRACT)
    it = SignedIn(CONTRACT, text, wrap(CONTRACT, b"x" * 3800, "0x" + "ab" * 3900))

    assert verify(at_watched, it).status_code == 200
    [asked] = node.asked
    assert "to" not in asked["params"][0]
    assert int(asked["params"][0]["gas"], 16) <= 2_000_000
    assert len(asked["params"][0]["data"]) < 2 * 10_000


def test_a_wallet_with_a_key_asks_no_node(on_bad_node: Service, at_watched: Client, node: BadNode) -> None:
    assert verify(at_watched, sign(on_bad_node, at_watched)).status_code == 200
    assert node.asked == []


def test_few_contracts_are_asked_at_once(on_bad_node: Service, at_watched: Client, node: BadNode) -> None:
    messages = [as_contract(on_bad_node, at_watched, CONTRACT) for _ in range(12)]
    node.silent.clear()
    try:
        with ThreadPoolExecutor(12) as threads:
            answers = [threads.submit(verify, at_watched, it) for it in messages]
            # Those that are too many are answered while the others wait.
            busy = eventually(lambda: [one.result() for one in answers if one.done()], lambda done: len(done) == 4)
            node.silent.set()
            statuses = sorted(answer.result().status_code for answer in answers)
    finally:
        node.silent.set()

    assert {outcome(answer) for answer in busy} == {(503, "contracts_busy")}
    assert statuses == [200] * 8 + [503] * 4


def test_a_contract_gets_little_gas_to_compute_with(service: Service, as_nobody: Client, evm_node: EvmNode) -> None:
    # GAS > 2,000,000 ? return the magic value : return nothing
    magic = "1626ba7e" + "00" * 28
    greedy = evm_node.deploy(bytes.fromhex(f"621e84805a11600a57005b7f{magic}60005260206000f3"))

    assert outcome(verify(as_nobody, as_contract(service, as_nobody, greedy))) == (401, "signature_invalid")


def test_a_contract_that_computes_for_ever_signs_nobody_in(
    service: Service, as_nobody: Client, evm_node: EvmNode
) -> None:
    endless = evm_node.deploy(bytes.fromhex("5b600056"))

    # Whether the gas or the node's patience ends first depends on the machine.
    assert outcome(verify(as_nobody, as_contract(service, as_nobody, endless))) in {
        (401, "signature_invalid"),
        (502, "rpc_unavailable"),
    }


# ---- which tenant


def test_a_tenant_of_others_and_one_that_is_not_there_are_refused_alike(
    service: Service, person: Person, tenant: Tenant
) -> None:
    answers = [
        verify(person, sign(service, person, wallet), tenantId=name)
        for name in (tenant.id, "no-such-tenant", "platform")
        for wallet in (person.wallet, Wallet())
    ]

    assert {outcome(answer) for answer in answers} == {(403, "not_a_member")}
    assert len({answer.text for answer in answers}) == 1


def test_a_refused_first_sign_in_makes_nobody(service: Service, as_nobody: Client, tenant: Tenant) -> None:
    wallet = Wallet()

    assert verify(as_nobody, sign(service, as_nobody, wallet), tenantId=tenant.id).status_code == 403

    session = verify(as_nobody, sign(service, as_nobody, wallet)).json()["data"]
    assert "apiKey" in session["tenant"]


def test_ones_own_tenant_may_be_named(service: Service, person: Person) -> None:
    answer = verify(person, sign(service, person, person.wallet), tenantId=person.tenant)

    assert answer.json()["data"]["tenant"]["id"] == person.tenant


async def test_people_of_a_frozen_tenant_still_sign_in(
    service: Service, person: Person, owner: asyncpg.Connection
) -> None:
    frozen = "UPDATE tenants SET frozen_at = now(), frozen_reason = 'x' WHERE id = $1"
    assert await owner.execute(frozen, person.tenant) == "UPDATE 1"

    answer = verify(person, sign(service, person, person.wallet))

    assert answer.json()["data"]["tenant"]["id"] == person.tenant
