"""Calls that the proxy pays for: by which routes, how much, once, and what an upstream that cheats comes to."""

import base64
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import httpx
import pytest

from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless
from tests.proxy.paying import ASSET, SELLER, change, code, demands, offer, payments_at, spending
from tests.proxy.written import rows


@pytest.mark.parametrize("form", ["gateway", "tunnel"])
def test_a_call_is_paid_once_and_tells_what_it_cost(paying: Keyless, form: str) -> None:
    client = paying.gateway("paywall")
    if form == "tunnel":
        client = paying.forward()
        client.base_url = f"https://localhost:{paying.upstream.ports['paywall']}"

    answer = client.get("/weather", params=demands())

    [payment] = payments_at(paying)
    assert (answer.status_code, answer.text[:5]) == (200, "sold ")
    tx_id, amount, asset = answer.headers["x-service-payment"].split("; ")
    assert (amount, asset) == ("amount=60", f"asset={ASSET}")
    assert answer.headers["payment-response"]
    assert payment["payload"]["authorization"]["value"] == "60"
    assert payment["payload"]["authorization"]["to"].lower() == SELLER
    assert payment["accepted"] == offer()
    shown = paying.agent.ok("GET", f"/vault/{paying.agent.id}/transactions/{tx_id}")
    assert (shown["kind"], shown["status"]) == ("x402", "signed")
    assert spending(paying) == 60
    assert len(paying.upstream.requests()) == 2
    # The agent's own client of x402 sees no demand, and the free answer is as ever.
    free = client.get("/weather", params=demands("free"))
    assert (free.text, "x-service-payment" in free.headers) == ("free", False)


@pytest.mark.parametrize(
    ("method", "how"),
    [("HEAD", ""), ("POST", ""), ("GET", "v1"), ("GET", "closing"), ("GET", "stream"), ("GET", "gzip")],
)
def test_every_kind_of_call_is_paid_once(paying: Keyless, method: str, how: str) -> None:
    body = iter([b"a", b"b" * 100_000]) if method == "POST" else None
    asked = offer() if how not in ("v1", "gzip") else offer(network="local", maxAmountRequired="60")

    answer = paying.gateway("paywall").request(method, "/", params=demands(how, asked), content=body)

    if how in ("v1", "gzip"):
        # No network of version 1 is known to this deployment: the demand passes as it came.
        assert (answer.status_code, answer.json()["x402Version"], payments_at(paying)) == (402, 1, [])
        return
    assert answer.status_code == 200
    assert "x-service-payment" in answer.headers
    assert len(payments_at(paying)) == 1
    if how == "stream":
        assert answer.text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_a_body_of_a_mebibyte_is_paid_for_and_a_longer_one_streams(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    fits = client.post("/", params=demands(), content=bytes(2**20))
    longer = client.post("/", params=demands(), content=bytes(2**20 + 1))
    chunked = client.post("/", params=demands(), content=iter([bytes(2**20), b"x"]))

    assert (fits.status_code, "x-service-payment" in fits.headers) == (200, True)
    for answer in (longer, chunked):
        assert answer.status_code == 402
        assert answer.headers["x-service-payment-skipped"] == "body_too_large"
        assert answer.headers["payment-required"]
    sizes = [heard.size for heard in paying.upstream.requests()]
    assert sizes == [2**20, 2**20, 2**20 + 1, 2**20 + 1]
    assert spending(paying) == 60


UNPAID = {
    "no base64": demands("raw", raw="%%%"),
    "no JSON": demands("raw", raw=base64.b64encode(b"{").decode()),
    "a list": demands("raw", raw=base64.b64encode(b"[]").decode()),
    "deep": demands("raw", raw=base64.b64encode(b"[" * 1000 + b"]" * 1000).decode()),
    "17 KiB": demands("raw", raw=base64.b64encode(b" " * 17 * 1024).decode()),
    "nine offers": demands("", *[offer()] * 9),
    "nothing to pay": demands("", offer(amount="0")),
    "a negative amount": demands("", offer(amount="-1")),
    "a fraction": demands("", offer(amount="1.0")),
    "hexadecimal": demands("", offer(amount="0x10")),
    "too much for 256 bits": demands("", offer(amount=str(2**256))),
    "another contract": demands("", offer(asset=f"0x{'44' * 20}")),
    "another network": demands("", offer(network="eip155:1")),
    "another scheme": demands("", offer(scheme="upto")),
    "two headers": demands("twice"),
}


def test_a_demand_that_cannot_be_read_or_is_not_acceptable_passes_as_it_came(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    for name, query in UNPAID.items():
        answer = client.get("/", params=query)
        assert (code(answer), "x-service-payment" in answer.headers) == ((402, None), False), name
    # Demands that are none: of another status, or beside what was given for nothing.
    assert client.get("/", params=demands("unauthorized")).status_code == 401
    assert client.get("/", params=demands("free")).status_code == 200

    # One that breaks off is not known to be whole.
    assert code(client.get("/", params=demands("break"))) == (502, "upstream_failed")

    # What cannot be decoded within its bounds is cut off, as in any answer.
    with pytest.raises(httpx.TransportError):
        client.get("/", params=demands("bomb"))
    assert (payments_at(paying), spending(paying)) == ([], 0)
    # The control: an unknown scheme first, and then one that is known.
    assert client.get("/", params=demands("", offer(scheme="upto"), offer())).status_code == 200


def test_a_large_page_that_demands_payment_is_paid_by_its_header_or_passes_whole(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    paid_for = client.get("/", params=demands("large"))
    passed = client.get("/", params=demands("large", offer(network="eip155:1")))

    assert (paid_for.status_code, len(payments_at(paying))) == (200, 1)
    assert (passed.status_code, passed.text) == (402, "x" * 65 * 1024)


def test_a_demand_that_is_paid_leaves_no_cookie(paying: Keyless) -> None:
    answer = paying.gateway("paywall").get("/", params=demands("cookie"))

    assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)


def test_the_rules_and_the_route_refuse_with_a_reason(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    answers = [
        client.get("/", params=demands("", offer(amount="101"))),
        client.get("/", params=demands("", offer(payTo=f"0x{'66' * 20}"))),
        client.get("/", params=demands("", offer(payTo=paying.agent.evm_address))),
    ]

    assert [code(answer) for answer in answers] == [(403, "payment_refused")] * 3
    assert (payments_at(paying), spending(paying)) == ([], 0)
    for _ in range(8):
        assert client.get("/", params=demands()).status_code == 200
    full = client.get("/", params=demands())
    assert code(full) == (403, "payment_refused")
    assert full.json()["data"]["reason"]
    assert (len(payments_at(paying)), spending(paying)) == (8, 480)


def test_the_same_key_is_the_same_payment_and_of_another_request_none(paying: Keyless) -> None:
    client = paying.gateway("paywall", **{"Idempotency-Key": "purchase-0001"})

    first = client.post("/", params=demands("reset"), content=b"order")
    again = client.post("/", params=demands("reset"), content=b"order")
    other = client.post("/", params=demands("reset"), content=b"another order")
    elsewhere = client.post("/b", params=demands("reset"), content=b"order")

    assert code(first) == (502, "upstream_failed")
    assert again.status_code == 200
    assert first.headers["x-service-payment"] == again.headers["x-service-payment"]
    assert [code(answer) for answer in (other, elsewhere)] == [(409, "idempotency_mismatch")] * 2
    one, two = payments_at(paying)
    assert one == two
    assert spending(paying) == 60
    assert code(paying.gateway("paywall", **{"Idempotency-Key": "short"}).get("/")) == (400, "bad_idempotency_key")


def test_an_upstream_that_asks_for_ever_is_paid_three_times(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    answers = [client.get("/", params=demands("never")) for _ in range(4)]

    assert [code(answer) for answer in answers] == [(402, "payment_not_accepted")] * 3 + [(429, "payments_paused")]
    assert all("x-service-payment" in answer.headers for answer in answers[:3])
    assert not any("payment-required" in answer.headers for answer in answers)
    assert 0 < int(answers[3].headers["retry-after"]) <= 600
    assert spending(paying) == 180
    assert len(paying.upstream.requests()) == 7


def test_a_payment_of_the_agents_own_is_its_own_affair(paying: Keyless) -> None:
    own = base64.b64encode(b'{"mine":1}').decode()

    # A server that hands headers to programs as variables cannot tell the last from the first.
    for name in ("PAYMENT-SIGNATURE", "X-Payment", "payment_signature"):
        answer = paying.gateway("paywall", **{name: own}).get("/", params=demands("never"))
        assert (answer.status_code, "x-service-payment" in answer.headers) == (402, False)
        assert answer.headers["payment-required"]

    assert spending(paying) == 0


def test_a_person_approves_and_the_repetition_gets_that_payment(paying: Keyless) -> None:
    change(paying, {"payTo": []})
    client = paying.gateway("paywall", **{"Idempotency-Key": "purchase-0002"})

    asked = client.get("/", params=demands())
    told = asked.json()["data"]
    assert (code(asked), "payment-required" in asked.headers) == ((402, "approval_required"), False)
    assert int(asked.headers["retry-after"]) > 0
    paying.tenant.ok("POST", f"/approvals/{told['approvalId']}/approve", {})
    answer = client.get("/", params=demands())

    assert (answer.status_code, len(payments_at(paying))) == (200, 1)
    assert answer.headers["x-service-payment"].startswith(told["txId"])


def test_a_payment_that_waits_without_a_key_is_to_be_withdrawn(paying: Keyless) -> None:
    change(paying, {"payTo": []})

    asked = paying.gateway("paywall").get("/", params=demands())

    told = asked.json()
    assert (code(asked), "retry-after" in asked.headers) == ((402, "approval_required"), False)
    assert "withdraw it" in told["error"]["message"]
    paying.agent.ok("POST", f"/vault/{paying.agent.id}/transactions/{told['data']['txId']}/withdraw")
    # The control: with a key it can be fetched, and there is nothing to withdraw.
    keyed = paying.gateway("paywall", **{"Idempotency-Key": "purchase-0004"}).get("/", params=demands())
    assert "withdraw" not in keyed.json()["error"]["message"]


@pytest.mark.parametrize("how", ["denied", "withdrawn"])
def test_the_key_of_a_payment_that_nobody_will_approve_says_so(paying: Keyless, how: str) -> None:
    change(paying, {"payTo": []})
    client = paying.gateway("paywall", **{"Idempotency-Key": f"purchase-{how}"})
    told = client.get("/", params=demands()).json()["data"]
    assert code(client.get("/", params=demands())) == (402, "approval_required")
    if how == "denied":
        paying.tenant.ok("POST", f"/approvals/{told['approvalId']}/deny", {"reason": "no"})
    else:
        paying.agent.ok("POST", f"/vault/{paying.agent.id}/transactions/{told['txId']}/withdraw")

    answer = client.get("/", params=demands())

    assert code(answer) == (403, "payment_refused")
    assert how in answer.json()["data"]["reason"]


CHANGES: dict[str, tuple[dict[str, Any], tuple[int, str | None]]] = {
    "disabled": ({"enabled": False}, (402, None)),
    "cheaper": ({"maxPerCall": {ASSET: "59"}}, (403, "payment_refused")),
    "elsewhere": ({"pathPattern": "/other/*"}, (402, None)),
    "of another agent": ({"agents": ["another"]}, (402, None)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_route_that_changed_counts_as_it_is_now(paying: Keyless, name: str) -> None:
    changed, expected = CHANGES[name]
    client = paying.gateway("paywall")
    assert client.get("/", params=demands()).status_code == 200

    change(paying, changed)

    assert eventually(lambda: code(client.get("/", params=demands())), expected) == expected


def test_a_deleted_route_pays_for_nothing_more(paying: Keyless) -> None:
    client = paying.gateway("paywall")
    assert client.get("/", params=demands()).status_code == 200
    [route] = paying.tenant.ok("GET", "/payment-routes")

    paying.tenant.ok("DELETE", f"/payment-routes/{route['id']}")

    assert eventually(lambda: code(client.get("/", params=demands())), (402, None)) == (402, None)
    paid = len(payments_at(paying))
    assert code(client.get("/", params=demands())) == (402, None)
    assert len(payments_at(paying)) == paid


async def test_a_route_that_is_gone_behind_the_proxys_back_pays_for_nothing(paying: Keyless) -> None:
    """No version moves, so the proxy still knows it; the signer reads it again for each payment."""
    client = paying.gateway("paywall")
    assert client.get("/", params=demands()).status_code == 200
    async with owner_of(paying.proxied.database) as owner:
        await owner.execute("DELETE FROM payment_routes WHERE tenant_id = $1", paying.tenant.id)

    answer = client.get("/", params=demands())

    assert (code(answer), len(payments_at(paying)), spending(paying)) == ((402, None), 1, 60)


def test_a_price_that_doubles_is_paid_up_to_what_one_call_may_cost(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    answers = [client.get("/", params=demands("", offer(amount=str(30 * 2**turn)))) for turn in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 403]
    assert code(answers[2]) == (403, "payment_refused")
    assert (len(payments_at(paying)), spending(paying)) == (2, 90)


async def test_a_route_that_was_edited_behind_the_signers_back_pays_nothing(paying: Keyless) -> None:
    client = paying.gateway("paywall")
    async with owner_of(paying.proxied.database) as owner:
        await owner.execute(
            "UPDATE payment_routes SET fields = replace(fields, '\"100\"', '\"900\"') WHERE tenant_id = $1",
            paying.tenant.id,
        )

    answer = client.get("/", params=demands())

    assert code(answer) == (503, "unavailable")
    assert (payments_at(paying), spending(paying)) == ([], 0)


def test_forty_calls_at_once_never_pay_more_than_the_limit(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    with ThreadPoolExecutor(10) as callers:
        answers = list(callers.map(lambda _: client.get("/", params=demands()), range(40)))

    assert sorted({answer.status_code for answer in answers}) == [200, 403]
    assert sum(answer.status_code == 200 for answer in answers) == 8
    assert (len(payments_at(paying)), spending(paying)) == (8, 480)


def test_a_request_that_carries_a_payment_is_never_repeated(paying: Keyless) -> None:
    own = {"PAYMENT-SIGNATURE": base64.b64encode(b'{"mine":1}').decode()}
    client = paying.gateway("paywall")
    client.get("/", params=demands("dying"))

    fresh = client.get("/", params=demands("dying"), headers=own)
    refused = client.get("/", params=demands("reset"), headers=own)

    # On a connection of its own; and what was lost there stays lost.
    assert (fresh.text, paying.upstream.lines("died")) == ("free", [])
    assert code(refused) == (502, "upstream_failed")
    assert len(paying.upstream.requests()) == 3
    # The control: without a payment the same request goes out once more, when its kept connection died.
    client.get("/", params=demands("dying"))
    assert client.get("/", params=demands("dying")).text == "free"
    assert len(paying.upstream.lines("died")) >= 1


def test_a_redirect_is_paid_by_the_route_of_the_place_that_asks(paying: Keyless) -> None:
    change(paying, {"pathPattern": "/first"})
    client = paying.gateway("paywall")

    there = client.get("/first", params={"how": "elsewhere", "to": "/second"})
    asked = client.get("/second", params=demands())

    assert (there.status_code, code(asked)) == (302, (402, None))
    assert client.get("/first", params=demands()).status_code == 200
    assert len(payments_at(paying)) == 1


def test_a_websocket_is_not_paid_for(paying: Keyless) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AA==",
    }

    answer = paying.gateway("paywall").get("/", params=demands(), headers=upgrade)

    assert (code(answer), answer.headers["x-service-payment-skipped"]) == ((402, None), "body_too_large")
    assert (payments_at(paying), spending(paying)) == ([], 0)


def test_a_client_of_http2_is_paid_for_as_any(paying: Keyless) -> None:
    client = httpx.Client(
        http2=True,
        http1=False,
        verify=paying.proxied.trust(),
        proxy=paying.proxy_url(),
        base_url=f"https://localhost:{paying.upstream.ports['paywall']}",
        trust_env=False,
        timeout=60,
    )
    with client:
        answers = [client.post("/", params=demands(), content=b"order") for _ in range(2)]

    assert [(answer.status_code, answer.http_version) for answer in answers] == [(200, "HTTP/2")] * 2
    assert len({answer.headers["x-service-payment"] for answer in answers}) == len(payments_at(paying)) == 2


def test_a_frozen_agent_pays_nothing(paying: Keyless) -> None:
    client = paying.gateway("paywall")
    assert client.get("/", params=demands()).status_code == 200
    paying.tenant.ok("POST", f"/agents/{paying.agent.id}/freeze", {})

    assert eventually(lambda: code(client.get("/", params=demands())), (403, "frozen")) == (403, "frozen")
    assert len(payments_at(paying)) == 1


async def test_the_audit_row_has_the_payment_and_the_hash_of_the_upstreams_claim(paying: Keyless) -> None:
    answer = paying.gateway("paywall").get("/", params=demands())

    (row,) = await rows(paying, 1)
    metadata = row["metadata"]
    assert answer.headers["x-service-payment"].startswith(metadata["paymentTxId"])
    assert metadata["paymentResponseHash"] == sha256(answer.headers["payment-response"].encode()).hexdigest()


def test_a_killed_process_leaves_one_payment_or_none(paying: Keyless) -> None:
    proxied, key = paying.proxied, {"Idempotency-Key": "purchase-0003"}
    proxied.kill("signer")
    try:
        away = paying.gateway("paywall", **key).get("/", params=demands("hold"))
    finally:
        proxied.start("signer")
    assert (code(away), spending(paying)) == ((503, "unavailable"), 0)

    with ThreadPoolExecutor(1) as caller:
        under_way = caller.submit(paying.gateway("paywall", **key).get, "/", params=demands("hold"))
        assert eventually(lambda: len(payments_at(paying)), 1) == 1
        proxied.kill("proxy")
        proxied.start("proxy")
        with pytest.raises(httpx.TransportError):
            under_way.result()
    paying.upstream.release("paywall")
    paying.upstream.release("paywall")

    again = paying.gateway("paywall", **key).get("/", params=demands("hold"))

    # The token takes it once, and nobody is paid twice.
    assert code(again) == (402, "payment_not_accepted")
    one, two = payments_at(paying)
    assert (one == two, spending(paying)) == (True, 60)
