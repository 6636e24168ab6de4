"""A service is not believed: odd answers, ids and bytes, each against a service of this process."""

import json
import time
from typing import Any

import pytest
from eth_account import Account

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS
from tests.fixtures.each import each
from tests.sdk.conftest import OddService
from tests.sdk.typescript.built import SETS, folder_of
from tests.sdk.typescript.conftest import Client, Programs, Thrown

TX = "5a4c35e9-3be4-4fb7-a452-353dfa9b5e7d"
SIGNED = {"txId": TX, "txHash": "0x" + "ab" * 32}
MAX_ANSWER_BYTES = 8 * 2**20


def vault(client: Client, odd: OddService, **given: Any) -> Client:
    """The client of the odd service."""
    odd.asked.clear()
    odd.answers.clear()
    return client.make(odd.url, "a.token", **({"agent": "buyer", "patienceMs": 5_000, "timeoutMs": 5_000} | given))


def pay(client: Client) -> str:
    return str(client.call("vault.pay", "invoice-1", ADDRESS, 1)["txId"])


# ---- ids and addresses


@each(
    "tx_id",
    ["../../../agents/x", "x", "", TX.upper(), f"{TX}/receipt", f"{TX}\n", f"{TX}?a=b", "%2e%2e", None, 5, [TX]],
    ids=repr,
)
def test_an_id_that_is_none_is_refused_before_any_request(client: Client, odd: OddService, tx_id: Any) -> None:
    vault(client, odd)
    odd.say(200, {})
    for call in ("transaction", "resume", "wait", "confirm", "withdraw", "receipt"):
        with pytest.raises(Thrown, match=r"BadArgument bad_path: .*UUID"):
            client.call(f"vault.{call}", tx_id)

    assert odd.asked == []


@each("agent", ["..", ".", "../x", "a/b", "a b", "", "a" * 129, "a\n", "%2e", 5], ids=repr)
def test_an_agent_that_is_none_is_refused_before_any_request(client: Client, odd: OddService, agent: Any) -> None:
    with pytest.raises(Thrown, match="agent must be an id"):
        vault(client, odd, agent=agent)


def test_an_agent_that_a_service_names_is_looked_at_too(client: Client, odd: OddService) -> None:
    client.make(odd.url, "a.token")
    odd.say(200, {"agentId": "../../platform"})
    with pytest.raises(Thrown, match="agent must be an id"):
        pay(client)

    assert [path for _, path, _, _ in odd.asked] == ["/me"]


@each(
    "url",
    [
        "http://example.com",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "ftp://example.com",
        "https://",
        "https://a@b",
        "https://a?b",
        "https://a#b",
        "https://a\\@b",
        "x",
        "https://a:x",
        "javascript:x",
    ],
)
def test_an_address_that_would_show_the_token_is_refused(client: Client, url: str) -> None:
    with pytest.raises(Thrown, match="BadArgument bad_url: url "):
        client.make(url, "a.token")


@each("url", ["https://example.com/custody", "http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1"])
def test_an_address_that_is_safe_is_taken(client: Client, url: str) -> None:
    client.make(url, "a.token")


def test_http_to_another_machine_is_taken_only_if_it_is_said(client: Client) -> None:
    client.make("http://api:3200", "a.token", allowHttp=True)


@each("token", ["", "a token", "a\nb", "é", "x" * 8193, 5], ids=repr)
def test_a_token_that_is_none_is_refused_and_not_repeated(client: Client, token: Any) -> None:
    with pytest.raises(Thrown, match="bad_token") as refused:
        client.make("https://example.com", token)

    assert not token or str(token) not in json.dumps(refused.value.said)


@each("name", ["ab", "a b", "a" * 65, "naïve", "a\n1", "", None, 5], ids=repr)
def test_a_name_that_is_none_is_refused_before_any_request(client: Client, odd: OddService, name: Any) -> None:
    vault(client, odd)
    with pytest.raises(Thrown, match="name must be your name for THIS payment"):
        client.call("vault.pay", name, ADDRESS, 1)

    assert odd.asked == []


# ---- answers


@each("size", [MAX_ANSWER_BYTES + 1, 2 * MAX_ANSWER_BYTES])
def test_an_answer_that_does_not_end_is_cut(client: Client, odd: OddService, size: int) -> None:
    vault(client, odd, patienceMs=0)
    odd.say_bytes(200, b'{"ok":true,"data":{"x":"' + b"x" * size + b'"}}')

    with pytest.raises(Thrown, match=f"longer than {MAX_ANSWER_BYTES} bytes"):
        client.call("vault.me")


def test_an_answer_that_is_just_short_enough_is_read(client: Client, odd: OddService) -> None:
    vault(client, odd)
    frame = b'{"ok":true,"data":{"agentId":"%s"}}'
    odd.say_bytes(200, frame % (b"x" * (MAX_ANSWER_BYTES - len(frame) + 2)))

    assert len(client.call("vault.me")["agentId"]) > MAX_ANSWER_BYTES - 100


def test_an_answer_that_comes_too_late_is_left(client: Client, odd: OddService) -> None:
    # A port that takes connections and says nothing.
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as silent:
        client.make(f"http://127.0.0.1:{silent.getsockname()[1]}", "a.token", agent="a", patienceMs=0, timeoutMs=300)
        before = time.monotonic()
        with pytest.raises(Thrown, match="OutcomeUnknown no_answer: The answer did not end in time"):
            pay(client)

    assert time.monotonic() - before < 60


@each(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"ok":1,"data":{}}', b'{"ok":true}', b"\xff", b'{"ok":true,"data":{}}']
    + [b"[" * 100_000]
    + [
        json.dumps({"ok": True, "data": one}).encode()
        for one in ([], "x", None, {"txId": "../x", "txHash": "0x"}, {"txId": TX}, {"txId": TX, "txHash": {"a": 1}})
    ],
    ids=lambda body: repr(body[:40]),
)
def test_an_answer_that_is_none_leaves_the_outcome_unknown(client: Client, odd: OddService, body: bytes) -> None:
    vault(client, odd, patienceMs=0)
    odd.say_bytes(200, body)

    with pytest.raises(Thrown, match=r"OutcomeUnknown .*same name") as unknown:
        pay(client)

    assert unknown.value.data == {"name": "invoice-1"}


def test_a_redirect_is_not_followed(client: Client, odd: OddService) -> None:
    vault(client, odd, patienceMs=0)
    odd.say_bytes(307, b"", Location=f"{odd.url}/steal")

    with pytest.raises(Thrown, match="OutcomeUnknown"):
        pay(client)

    assert len(odd.asked) == 1


def test_a_payment_header_that_an_answer_names_is_one_of_two(client: Client, odd: OddService) -> None:
    vault(client, odd, patienceMs=0)
    paid = {"txId": TX, "value": "x", "asset": "evm:1:x", "amount": "1", "expiresAt": "2027"}
    odd.say(200, paid | {"header": "Authorization"})
    with pytest.raises(Thrown, match="OutcomeUnknown"):
        client.call("vault.payDemand", "quote-1", "x" * 10)

    odd.answers.clear()
    odd.say(200, paid | {"header": "X-PAYMENT"})
    assert client.call("vault.payDemand", "quote-1", "x" * 10)["headers"] == {"X-PAYMENT": "x"}


# ---- repeating


def test_a_request_without_an_answer_is_repeated_under_the_same_key(client: Client, odd: OddService) -> None:
    vault(client, odd, patienceMs=20_000)
    odd.hang_up()
    odd.say(503, {"code": "unavailable"}, error="Away.")
    odd.say(500, {"code": "internal"}, error="Broken.")
    odd.say(409, {"code": "idempotency_in_flight"}, error="Under way.")
    odd.say(200, SIGNED)

    assert pay(client) == TX

    keys = {headers.get("idempotency-key") or headers.get("Idempotency-Key") for _, _, headers, _ in odd.asked}
    # Written down: the client in the other language comes to the same.
    assert keys == {"sdk-22632f9074e92adb29de48a503d32b62abd958593ed4b7e9"}
    assert (len(odd.asked) >= 5, len({body for *_, body in odd.asked})) == (True, 1)


def test_a_repetition_stops_when_patience_ends(client: Client, odd: OddService) -> None:
    vault(client, odd, patienceMs=3_000)
    odd.say(503, {"code": "unavailable"}, error="Away.")

    with pytest.raises(Thrown, match=r"OutcomeUnknown unavailable: Away. Nobody knows whether it happened"):
        pay(client)

    # Pauses of 0.25, 0.5 and 1 s fit into it, and no longer one.
    assert 1 <= len(odd.asked) <= 4


@each(
    ("status", "code", "thrown"),
    [
        (429, "rate_limited", "TryLater"),
        (502, "insufficient_funds", "VaultError"),
        (502, "broadcast_refused", "VaultError"),
        (403, "policy_refused", "Refused"),
        (403, "wrong_scope", "VaultError"),
        (423, "frozen", "Refused"),
        (400, "bad_body", "BadArgument"),
        (409, "idempotency_mismatch", "NameTaken"),
        (202, "approval_required", "Waiting"),
        (401, "unauthorized", "VaultError"),
    ],
)
def test_an_answer_is_thrown_as_what_it_is_and_not_repeated(
    client: Client, odd: OddService, status: int, code: str, thrown: str
) -> None:
    vault(client, odd)
    odd.say(status, {"code": code, "txId": TX, "approvalId": "a"}, error="Why.", Retry_After="3600")

    with pytest.raises(Thrown) as caught:
        pay(client)

    assert (caught.value.name, caught.value.code, caught.value.status) == (thrown, code, status)
    assert len(odd.asked) == 1


# ---- bytes that were not asked for


def other(change: dict[str, Any], key: bytes) -> str:
    """A transaction that a service signed instead, with this changed."""
    fields = {"type": 2, "chainId": 31337, "nonce": 7, "gas": 21_000, "to": ADDRESS, "value": 5, "data": b""}
    fields |= {"maxFeePerGas": 10**10, "maxPriorityFeePerGas": 10**9} | change
    return "0x" + bytes(Account.sign_transaction(fields, key).raw_transaction).hex()


@pytest.mark.parametrize("libraries", SETS)
def test_bytes_that_were_not_asked_for_are_thrown_away(odd: OddService, libraries: str) -> None:
    key, stranger = b"\x11" * 32, b"\x12" * 32
    own = Account.from_key(key).address
    good = other({}, key)
    cases = {
        "good": good,
        "nonce": other({"nonce": 8}, key),
        "gas": other({"gas": 22_000}, key),
        "fee": other({"maxFeePerGas": 10**11}, key),
        "tip": other({"maxPriorityFeePerGas": 2 * 10**9}, key),
        "to": other({"to": OTHER_ADDRESS}, key),
        "value": other({"value": 6}, key),
        "data": other({"data": b"\x01"}, key),
        "chain": other({"chainId": 1}, key),
        "signer": other({}, stranger),
        "longer": good + "00",
        "nothing": "0x",
        "no hex": "0xzz",
    }
    odd.say(200, {"walletAddress": own, "walletAddresses": {"evm": own, "solana": None}})
    # Twice each: viem's account and ethers' signer ask.
    for raw in cases.values():
        for _ in range(2):
            odd.say(200, {"txId": TX, "txHash": "0x1", "signedTransaction": raw})
    program = (
        folder_of(libraries),
        {"PATH": "/usr/bin:/bin", "SERVICE_URL": odd.url, "SERVICE_AGENT_TOKEN": "a.token"},
    )

    said = Programs(*program).result_of("compared", ADDRESS, ",".join(cases))

    assert said == {name: ["signed" if name == "good" else "NotAsked not_asked"] * 2 for name in cases}
