"""A bad service, a bad network and bad arguments cost the client neither money nor its token."""

import json
import time
from typing import Any

import httpx
import pytest
from custody_sdk import AsyncVault, BadArgument, OutcomeUnknown, Vault, VaultError
from custody_sdk._wire import MAX_ANSWER_BYTES

from tests.fixtures.callers import ADDRESS
from tests.fixtures.each import each
from tests.sdk.conftest import OddService

TX = "5a4c35e9-3be4-4fb7-a452-353dfa9b5e7d"
HASH = "0x" + "ab" * 32
SIGNED = {"txId": TX, "txHash": HASH}


def client(odd: OddService, **given: Any) -> Vault:
    return Vault(odd.url, "a.token", **({"agent": "buyer", "patience": 5.0, "timeout": 5.0} | given))


def pay(vault: Vault) -> str:
    return vault.pay("invoice-1", ADDRESS, 1).tx_id


# ---- ids and addresses


@each(
    "tx_id",
    ["../../../agents/x", "x", "", TX.upper(), f"{TX}/receipt", f"{TX}\n", f"{TX}?a=b", "%2e%2e", None, "ａ" * 36],  # noqa: RUF001
    ids=repr,
)
def test_an_id_that_is_none_is_refused_before_any_request(odd: OddService, tx_id: Any) -> None:
    odd.say(200, {})
    with client(odd) as vault:
        for call in (vault.transaction, vault.resume, vault.wait, vault.confirm, vault.withdraw, vault.receipt):
            with pytest.raises(BadArgument, match="UUID"):
                call(tx_id)

    assert odd.asked == []


@each("agent", ["..", ".", "../x", "a/b", "a b", "", "a" * 129, "a\n", "%2e"], ids=repr)
def test_an_agent_that_is_none_is_refused_before_any_request(odd: OddService, agent: str) -> None:
    with pytest.raises(BadArgument, match="agent must be an id"):
        client(odd, agent=agent)


def test_an_agent_that_a_service_names_is_looked_at_too(odd: OddService) -> None:
    odd.say(200, {"agentId": "../../platform"})
    with client(odd, agent=None) as vault, pytest.raises(BadArgument, match="agent must be an id"):
        pay(vault)

    assert [path for _, path, _, _ in odd.asked] == ["/me"]


@each(
    "url",
    [
        "http://example.com",
        "ftp://example.com",
        "https://",
        "https://a@b",
        "https://a?b",
        "https://a#b",
        "x",
        "https://a:x",
    ],
)
def test_an_address_that_would_show_the_token_is_refused(url: str) -> None:
    with pytest.raises(BadArgument, match="url"):
        Vault(url, "a.token")


@each("url", ["https://example.com/custody", "http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1"])
def test_an_address_that_is_safe_is_taken(url: str) -> None:
    Vault(url, "a.token").close()


def test_http_to_another_machine_is_taken_only_if_it_is_said() -> None:
    Vault("http://api:3200", "a.token", allow_http=True).close()


@each("token", ["", "a token", "a\nb", "é", "x" * 8193], ids=repr)
def test_a_token_that_is_none_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(BadArgument) as refused:
        Vault("https://example.com", token)

    assert not token or token not in f"{refused.value!r}{refused.value}"


# ---- answers


@each("size", [MAX_ANSWER_BYTES + 1, 2 * MAX_ANSWER_BYTES])
def test_an_answer_that_does_not_end_is_cut(odd: OddService, size: int) -> None:
    odd.answers.clear()
    odd.say_bytes(200, b'{"ok":true,"data":{"x":"' + b"x" * size + b'"}}')
    with client(odd, patience=0) as vault, pytest.raises(VaultError, match="longer than"):
        vault.me()


def test_an_answer_that_unpacks_into_more_is_not_unpacked(odd: OddService) -> None:
    odd.say_bytes(200, b"\x1f\x8b" + b"\0" * 50, Content_Encoding="gzip")
    with client(odd, patience=0) as vault, pytest.raises(VaultError, match="packed"):
        vault.me()

    assert odd.asked[0][2]["Accept-Encoding"] == "identity"


def test_an_answer_that_drips_is_left(odd: OddService) -> None:
    """A whole answer has a time, not only each part of it."""

    class Dripping(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            def drops() -> Any:
                while True:
                    yield b" "

            return httpx.Response(200, content=drops())

    with (
        httpx.Client(transport=Dripping()) as http,
        Vault(odd.url, "a.token", agent="a", http=http, patience=0, timeout=0.3) as vault,
        pytest.raises(VaultError, match="did not end in time"),
    ):
        vault.me()


@each(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"ok":1,"data":{}}',
        b'{"ok":true}',
        b"\xff",
        b"[" * 100_000,
        b'{"ok":true,"data":{}}',
    ]
    + [
        json.dumps({"ok": True, "data": one}).encode()
        for one in ([], "x", None, {"txId": "../x", "txHash": HASH}, {"txId": TX})
    ],
    ids=lambda body: repr(body[:40]),
)
def test_an_answer_that_is_none_leaves_the_outcome_unknown(odd: OddService, body: bytes) -> None:
    odd.answers.clear()
    odd.say_bytes(200, body)
    with client(odd, patience=0) as vault, pytest.raises(OutcomeUnknown, match="same name") as unknown:
        pay(vault)

    assert unknown.value.data == {"name": "invoice-1"}


def test_a_redirect_is_not_followed(odd: OddService) -> None:
    odd.say_bytes(307, b"", Location="https://example.com/steal")
    with client(odd, patience=0) as vault, pytest.raises(OutcomeUnknown):
        pay(vault)

    assert len(odd.asked) == 1


def test_a_payment_header_that_an_answer_names_is_one_of_two(odd: OddService) -> None:
    paid = {"txId": TX, "value": "x", "asset": "evm:1:x", "amount": "1", "expiresAt": "2027"}
    odd.say(200, paid | {"header": "Authorization"})
    with client(odd, patience=0) as vault, pytest.raises(OutcomeUnknown):
        vault.pay_demand("quote-1", "x" * 10)


# ---- repeating


def test_a_request_that_nobody_answered_is_repeated_under_its_key(odd: OddService) -> None:
    odd.hang_up()
    odd.say(503, {"code": "unavailable"}, error="Away.")
    odd.say(500, {"code": "internal"}, error="Broken.")
    odd.say(409, {"code": "idempotency_in_flight"}, error="Under way.")
    odd.say(200, SIGNED)
    with client(odd, patience=20) as vault:
        assert pay(vault) == TX

    keys = {headers["Idempotency-Key"] for _, _, headers, _ in odd.asked}
    assert (len(odd.asked), len(keys), len({body for *_, body in odd.asked})) == (5, 1, 1)


def test_a_repetition_stops_when_patience_ends(odd: OddService) -> None:
    odd.say(503, {"code": "unavailable"}, error="Away.")
    before = time.monotonic()
    with client(odd, patience=1) as vault, pytest.raises(OutcomeUnknown):
        pay(vault)

    assert time.monotonic() - before < 10
    assert 2 <= len(odd.asked) <= 3


def test_a_wait_that_a_service_names_is_kept_or_left(odd: OddService) -> None:
    odd.say(429, {"code": "rate_limited"}, error="Too many.", Retry_After="3600")
    with client(odd) as vault, pytest.raises(VaultError, match="Too many"):
        pay(vault)

    assert len(odd.asked) == 1


@each("after", ["x", "-1", "1" * 30, "٣", ""], ids=repr)
def test_a_wait_that_is_no_number_is_none(after: str) -> None:
    from custody_sdk._wire import read_seconds  # noqa: PLC0415

    assert read_seconds(after) == 0


@each("code", ["insufficient_funds", "estimate_failed", "rpc_refused", "rpc_unavailable", "broadcast_refused"])
def test_a_nodes_refusal_is_said_at_once(odd: OddService, code: str) -> None:
    odd.asked.clear()
    odd.answers.clear()
    odd.say(502, {"code": code}, error="Fund it.")
    with client(odd) as vault, pytest.raises(VaultError, match=code) as refused:
        pay(vault)

    assert not isinstance(refused.value, OutcomeUnknown)
    assert len(odd.asked) == 1


def test_a_refusal_is_not_repeated(odd: OddService) -> None:
    odd.say(403, {"code": "policy_refused", "results": []}, error="No.")
    with client(odd) as vault, pytest.raises(VaultError):
        pay(vault)

    assert len(odd.asked) == 1


def test_a_key_is_the_names_alone_in_every_process(odd: OddService) -> None:
    odd.say(200, SIGNED)
    with client(odd) as vault:
        pay(vault)
        vault.pay("invoice-2", ADDRESS, 1)

    first, second = (headers["Idempotency-Key"] for _, _, headers, _ in odd.asked)
    # Written down: another client, in another language, must come to the same.
    assert first == "sdk-22632f9074e92adb29de48a503d32b62abd958593ed4b7e9"
    assert second != first


async def test_the_client_that_is_awaited_keeps_to_the_same(odd: OddService) -> None:
    odd.hang_up()
    odd.say(200, SIGNED)
    async with AsyncVault(odd.url, "a.token", agent="buyer") as vault:
        assert (await vault.pay("invoice-1", ADDRESS, 1)).tx_id == TX
        with pytest.raises(BadArgument):
            await vault.resume("../x")
        odd.answers.clear()
        odd.say_bytes(200, b"x" * (MAX_ANSWER_BYTES + 1))
        vault._patience = 0
        with pytest.raises(OutcomeUnknown):
            await vault.pay("invoice-2", ADDRESS, 1)

    assert len(odd.asked) == 3
