"""Orders that signers of the agent authorise: who may, what of the request binds, and that a signature counts once."""

import json
import time
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from tests.fixtures.authorised import Order, status_and_code
from tests.fixtures.callers import OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.fixtures.signers import new_key, new_quorum, new_signer, path_of, signer_body

GROUP = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
ABSENT = "00000000-0000-4000-8000-000000000000"


class Signing:
    """A P-256 signer of an agent, with its key."""

    def __init__(self, admin: Person, agent: Agent, subject: str = "worker-1", **fields: Any) -> None:
        self.key = new_key()
        self.id = new_signer(admin, agent, subject, self.key, **fields)["id"]

    @property
    def pair(self) -> tuple[str, ec.EllipticCurvePrivateKey]:
        return self.id, self.key


@pytest.fixture
def signer(as_owner: Person, agent: Agent) -> Signing:
    """A signer that may authorise EVM transactions."""
    return Signing(as_owner, agent)


@pytest.fixture
def order(tenant: Tenant, agent: Agent) -> Order:
    """An order that is not sent yet."""
    return Order(tenant.id, agent)


def nothing_written(agent: Agent) -> bool:
    return bool(agent.ok("GET", f"/vault/{agent.id}/history") == [])


async def used_up(owner: asyncpg.Connection, tenant: Tenant) -> int:
    """Count the signatures of the tenant that were used up."""
    return int(await owner.fetchval("SELECT count(*) FROM used_signatures WHERE tenant_id = $1", tenant.id))


def test_a_p256_signer_authorises(order: Order, signer: Signing, agent: Agent) -> None:
    answer = order.send(order.signer_headers(*signer.pair))

    assert answer.status_code == 200, answer.text
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer.json()['data']['txId']}")
    assert found["authorization"] == {"quorum": None, "signers": [signer.id], "policyIds": []}


def test_a_credential_authorises_shown_or_signed_with(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    made = new_signer(as_owner, agent)
    first, second = Order(tenant.id, agent), Order(tenant.id, agent)

    shown = {"X-Service-Signer-Id": made["id"], "X-Service-Signer-Secret": made["credentialSecret"]}
    assert first.send(shown).status_code == 200
    assert second.send(second.signer_headers(made["id"], made["credentialSecret"])).status_code == 200
    assert status_and_code(Order(tenant.id, agent).send(shown | {"X-Service-Signer-Secret": "svs_wrong"})) == (
        401, "signature_mismatch",
    )  # fmt: skip


async def test_a_signature_counts_once(
    order: Order, signer: Signing, tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    shown = order.signer_headers(*signer.pair)
    first = order.send(shown)

    again = order.send(shown)
    assert (again.status_code, again.json()["data"]) == (200, first.json()["data"])
    assert again.headers["Idempotency-Replayed"] == "true"
    assert await used_up(owner, tenant) == 1
    # What kept the first answer is gone, as after a day: the signature still counts once, its twin as well.
    await owner.execute("DELETE FROM idempotency WHERE tenant_id = $1", tenant.id)
    raw = b64decode(shown["X-Service-Signature"].removeprefix("p256="))
    r, s = decode_dss_signature(raw)
    twin = "p256=" + b64encode(encode_dss_signature(r, GROUP - s)).decode()
    assert status_and_code(order.send(shown)) == (401, "signature_replayed")
    assert status_and_code(order.send(shown, **{"X-Service-Signature": twin})) == (401, "signature_replayed")
    assert status_and_code(order.send(shown, **{"Idempotency-Key": "another-key"})) == (401, "signature_mismatch")
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 1


def test_a_signature_is_good_for_its_own_request(order: Order, signer: Signing, tenant: Tenant, agent: Agent) -> None:
    other = Order(tenant.id, agent, value="2")
    other.key, other.timestamp = order.key, order.timestamp
    spaced = Order(tenant.id, agent)
    spaced.key, spaced.timestamp, spaced.body = order.key, order.timestamp, order.body.replace(b": ", b":")
    elsewhere = Order(tenant.id, agent, f"/vault/{agent.id}/simulate")
    elsewhere.key, elsewhere.timestamp, elsewhere.body = order.key, order.timestamp, order.body
    shown = order.signer_headers(*signer.pair)

    assert status_and_code(other.send(shown)) == (401, "signature_mismatch")
    assert status_and_code(spaced.send(shown)) == (401, "signature_mismatch")
    assert status_and_code(order.send(elsewhere.signer_headers(*signer.pair))) == (401, "signature_mismatch")
    assert nothing_written(agent)
    # None of that used it up.
    assert order.send(shown).status_code == 200


def test_the_agents_id_may_be_percent_encoded_once(order: Order, signer: Signing, agent: Agent) -> None:
    name = agent.id.replace("a", "%61", 1)
    plain = order.signer_headers(*signer.pair)
    order.path = f"/vault/{name}/sign"

    assert status_and_code(order.send(plain)) == (401, "signature_mismatch")
    assert order.send(order.signer_headers(*signer.pair)).status_code == 200


def test_times(tenant: Tenant, agent: Agent, signer: Signing) -> None:
    now = int(time.time())

    def of(timestamp: int | None, expires_at: int | None = None) -> tuple[int, str | None]:
        order = Order(tenant.id, agent)
        order.timestamp = None if timestamp is None else str(timestamp)
        order.expires_at = None if expires_at is None else str(expires_at)
        return status_and_code(order.send(order.signer_headers(*signer.pair)))

    assert of(None) == (401, "request_time_required")
    assert of(now - 301) == (401, "request_stale")
    assert of(now + 60) == (401, "request_from_the_future")
    assert of(now, now - 1) == (401, "request_expired")
    assert of(None, now + 400) == (401, "request_expiry_too_far")
    assert nothing_written(agent)
    assert of(None, now + 60)[0] == 200


def test_a_signed_order_needs_an_idempotency_key(order: Order, signer: Signing, agent: Agent) -> None:
    order.key = None

    assert status_and_code(order.send(order.signer_headers(*signer.pair))) == (400, "idempotency_key_required")
    assert nothing_written(agent)


def test_one_code_for_everybody_who_is_not_there(
    order: Order, signer: Signing, as_owner: Person, tenant: Tenant, agent: Agent
) -> None:
    foreign = Signing(as_owner, tenant.agent())
    paused, revoked = Signing(as_owner, agent, "worker-2"), Signing(as_owner, agent, "worker-3")
    as_owner.ok("PATCH", path_of(agent, "signers", paused.id), {"status": "paused"})
    as_owner.ok("DELETE", path_of(agent, "signers", revoked.id))

    for name in (ABSENT, foreign.id, paused.id, revoked.id):
        answers = [
            status_and_code(order.send(order.signer_headers(name, one.key)))
            for one in (signer, foreign, paused, revoked)
        ]
        assert answers == [(401, "signer_unknown")] * 4
    assert nothing_written(agent)


def test_a_signer_needs_the_permission_and_may_act_alone(order: Order, as_owner: Person, agent: Agent) -> None:
    other = Signing(as_owner, agent, "worker-2", permissions=["sign_typed_data", "transfer"])
    none = Signing(as_owner, agent, "worker-3", permissions=[])
    member = Signing(as_owner, agent, "worker-4", signerType="quorum_member")

    for one in (other, none, member):
        assert status_and_code(order.send(order.signer_headers(*one.pair))) == (403, "signer_permission")
    assert nothing_written(agent)


def test_a_key_of_another_kind_is_no_match(order: Order, signer: Signing, as_owner: Person, agent: Agent) -> None:
    hmac = new_signer(as_owner, agent, "worker-2")
    bare = as_owner.ok("POST", path_of(agent, "signers"), signer_body("worker-3"))
    shown = {"X-Service-Signer-Secret": "svs_anything"}

    for headers in (
        order.signer_headers(hmac["id"], signer.key),
        order.signer_headers(signer.id, hmac["credentialSecret"]),
        order.signer_headers(bare["id"], ""),
        {"X-Service-Signer-Id": signer.id} | shown,
        {"X-Service-Signer-Id": bare["id"]} | shown,
    ):
        assert status_and_code(order.send(headers)) == (401, "signature_mismatch")
    empty = {"X-Service-Signer-Id": hmac["id"], "X-Service-Signer-Secret": ""}
    assert status_and_code(order.send(empty)) == (400, "authorization_malformed")
    assert nothing_written(agent)


def test_two_ways_at_once_are_refused(order: Order, signer: Signing, as_owner: Person, agent: Agent) -> None:
    single, quorum = order.signer_headers(*signer.pair), order.quorum_headers(ABSENT, signer.pair)
    secret = {"X-Service-Signer-Secret": "svs_anything"}

    for headers in (single | quorum, single | secret, quorum | secret):
        assert status_and_code(order.send(headers)) == (400, "ambiguous_credentials")
    token = {"Authorization": as_owner.headers["Authorization"]}
    for headers in (single, quorum, {"X-Service-Signer-Id": signer.id} | secret):
        assert status_and_code(order.send(headers | token)) == (400, "ambiguous_credentials")
    assert nothing_written(agent)


@pytest.mark.parametrize(
    "signatures",
    [
        "",
        "{}",
        "[]",
        "[1]",
        json.dumps([{"signerId": ABSENT}]),
        json.dumps([{"signerId": ABSENT, "signature": "v1=0", "secret": "svs_x"}]),
        f'[{{"signerId": "{ABSENT}", "signature": "v1=0", "signature": "v1=0"}}]',
        json.dumps([{"signerId": ABSENT, "signature": "v1=0"}] * 33),
        "[" + " " * 6_100 + json.dumps([{"signerId": ABSENT, "signature": "v1=0"}])[1:],
    ],
    ids=["empty", "object", "none", "number", "unsigned", "secret", "twice", "33", "long"],
)
def test_a_quorums_header_must_be_a_list_of_signatures(order: Order, agent: Agent, signatures: str) -> None:
    headers = {"X-Service-Key-Quorum-Id": ABSENT, "X-Service-Key-Quorum-Signatures": signatures}

    assert order.send(headers).status_code == 400
    assert nothing_written(agent)


async def test_two_of_three(
    order: Order, as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    first, second, third = (Signing(as_owner, agent, f"member-{n}", signerType="quorum_member") for n in range(3))
    stranger = Signing(as_owner, agent, "stranger")
    quorum = new_quorum(as_owner, agent, [first.id, second.id, third.id])["id"]
    malformed = order.quorum_headers(quorum, first.pair, second.pair)
    entries = json.loads(malformed["X-Service-Key-Quorum-Signatures"])
    entries[1]["signature"] = "p256=!"

    assert status_and_code(order.send(order.quorum_headers(quorum, first.pair))) == (403, "quorum_not_met")
    assert status_and_code(order.send(order.quorum_headers(quorum, first.pair, first.pair))) == (403, "quorum_not_met")
    assert status_and_code(order.send(order.quorum_headers(quorum, first.pair, second.pair, stranger.pair))) == (
        403,
        "quorum_not_met",
    )
    assert status_and_code(order.send(order.quorum_headers(quorum, first.pair, (second.id, third.key)))) == (
        401,
        "signature_mismatch",
    )
    assert status_and_code(order.send(order.quorum_headers(ABSENT, first.pair, second.pair))) == (401, "signer_unknown")
    changed = {"X-Service-Key-Quorum-Signatures": json.dumps(entries)}
    assert status_and_code(order.send(malformed | changed)) == (401, "signature_malformed")
    assert nothing_written(agent)
    told = order.send(order.quorum_headers(quorum, first.pair, second.pair, stranger.pair)).json()
    assert told["data"]["notCounted"] == {stranger.id: "it is no member"}
    assert told["error"].endswith(f" {stranger.id} does not count: it is no member.")
    assert await used_up(owner, tenant) == 0
    answer = order.send(order.quorum_headers(quorum, third.pair, first.pair))
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer.json()['data']['txId']}")["authorization"]
    assert found == {"quorum": quorum, "signers": sorted([first.id, third.id]), "policyIds": []}
    assert await used_up(owner, tenant) == 2


def test_a_quorum_that_is_paused_or_may_not(order: Order, as_owner: Person, agent: Agent) -> None:
    one, two = Signing(as_owner, agent, "a"), Signing(as_owner, agent, "b")
    quorum = new_quorum(as_owner, agent, [one.id, two.id], permissions=["transfer"])["id"]
    shown = order.quorum_headers(quorum, one.pair, two.pair)

    assert status_and_code(order.send(shown)) == (403, "signer_permission")
    as_owner.ok("PATCH", path_of(agent, "key-quorums", quorum), {"permissions": ["sign_transaction"]})
    as_owner.ok("PATCH", path_of(agent, "key-quorums", quorum), {"status": "paused"})
    assert status_and_code(order.send(shown)) == (401, "signer_unknown")
    as_owner.ok("PATCH", path_of(agent, "key-quorums", quorum), {"status": "active"})
    assert order.send(shown).status_code == 200


def test_thirty_two_signatures_fit(order: Order, as_owner: Person, agent: Agent) -> None:
    members = [Signing(as_owner, agent, f"member-{n}") for n in range(32)]
    quorum = new_quorum(as_owner, agent, [one.id for one in members], 32)["id"]

    shown = order.quorum_headers(quorum, *(one.pair for one in members))
    entries = json.loads(shown["X-Service-Key-Quorum-Signatures"])
    shown["X-Service-Key-Quorum-Signatures"] = json.dumps(entries, separators=(",", ":"))
    assert len(shown["X-Service-Key-Quorum-Signatures"]) <= 6_144
    answer = order.send(shown)
    assert answer.status_code == 200, answer.text


def test_the_automation_switches(order: Order, signer: Signing, as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    second = Signing(as_owner, agent, "worker-2")
    quorum = new_quorum(as_owner, agent, [signer.id, second.id], 1)["id"]

    def switch(**switches: bool) -> None:
        as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"mfa": switches}})

    switch(allowDelegatedSignerAutomation=False)
    assert status_and_code(order.send(order.signer_headers(*signer.pair))) == (403, "automation_disabled")
    assert agent.sign().status_code == 200
    assert order.send(order.quorum_headers(quorum, signer.pair)).status_code == 200
    order.key = "another-order"
    switch(allowKeyQuorumAutomation=False)
    assert status_and_code(order.send(order.quorum_headers(quorum, signer.pair))) == (403, "automation_disabled")
    assert order.send(order.signer_headers(*signer.pair)).status_code == 200


def test_a_disabled_rule_binds_whom_it_is_named_by(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    rules = as_owner.ok(
        "PUT",
        f"/agents/{agent.id}/policies",
        [rule("approved-addresses", enabled=False, addresses=[OTHER_ADDRESS], mode="whitelist")],
    )
    name = rules[0]["id"]
    bound, free = Signing(as_owner, agent, "bound", policyIds=[name]), Signing(as_owner, agent, "free")
    first, second, third = (Order(tenant.id, agent) for _ in range(3))

    refused = first.send(first.signer_headers(*bound.pair))
    assert status_and_code(refused) == (403, "policy_refused")
    assert [one["policyId"] for one in refused.json()["data"]["results"] if not one["passed"]] == [name]
    assert second.send(second.signer_headers(*free.pair)).status_code == 200
    as_owner.ok("PUT", f"/agents/{agent.id}/policies", [rule("rate-limit", enabled=False, maxTxPerHour=5)])
    gone = third.send(third.signer_headers(*bound.pair))
    assert status_and_code(gone) == (403, "policy_refused")
    assert [one["type"] for one in gone.json()["data"]["results"]] == ["signer-policy"]


def test_a_signature_refused_for_its_rate_may_be_sent_again(
    as_owner: Person, tenant: Tenant, signer: Signing, agent: Agent
) -> None:
    as_owner.ok("PUT", f"/agents/{agent.id}/policies", [rule("rate-limit", maxTxPerHour=1)])
    assert agent.sign().status_code == 200
    order = Order(tenant.id, agent)
    shown = order.signer_headers(*signer.pair)

    assert order.send(shown).status_code == 429
    as_owner.ok("PUT", f"/agents/{agent.id}/policies", [rule("rate-limit", maxTxPerHour=9)])
    assert order.send(shown).status_code == 200


def test_elsewhere_signers_are_not_taken(signer: Signing, agent: Agent, order: Order) -> None:
    order.path = f"/vault/{agent.id}/simulate"

    assert status_and_code(order.send(order.signer_headers(*signer.pair))) == (401, "signature_key_unknown")
    assert order.send(order.quorum_headers(ABSENT, signer.pair)).status_code == 400


def test_an_expiry_as_text_is_read(order: Order, signer: Signing) -> None:
    order.timestamp = None
    order.expires_at = (datetime.now(UTC) + timedelta(seconds=60)).isoformat()

    assert order.send(order.signer_headers(*signer.pair)).status_code == 200
