"""A person's sessions: access tokens, refresh tokens, other tenants, the end."""

import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ops import places
from tests.fixtures.callers import Agent, Client, Tenant, platform_client
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.forgery import claims_of, sign_again
from tests.fixtures.people import Person, member, says, sign_in
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def refresh(client: Client, token: Any) -> httpx.Response:
    return client.post("/auth/refresh", json={"refreshToken": token})


def outcome(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def ask_session(client: Client, token: str) -> httpx.Response:
    """Ask who is signed in with an access token."""
    return client.get("/auth/session", headers={"Authorization": f"Bearer {token}"})


def at_signer(service: Service, token: str, name: str = "EndSession", **body: Any) -> dict[str, Any]:
    """Return the signer's own answer to a session's token."""
    with greet(service) as wire:
        return wire.ask(name, body, {"kind": "session", "value": token})


async def actions(owner: asyncpg.Connection, session: str) -> list[str]:
    """List the actions that the audit log has of a session, in order."""
    rows = await owner.fetch("SELECT action FROM audit WHERE resource_id = $1 ORDER BY seq", session)
    return [row["action"] for row in rows]


@pytest.fixture
def session_id(person: Person) -> str:
    return claims_of(person.session["token"])["sid"]


@pytest.fixture
def guest(service: Service, tenant: Tenant) -> Iterator[Person]:
    """A viewer of this test's tenant, signed in there."""
    with closing(member(service, tenant, "viewer")) as somebody:
        yield somebody


# ---- the access token


def test_an_access_token_says_who_where_and_for_how_long(person: Person) -> None:
    claims = claims_of(person.session["token"])

    assert set(claims) == {"iss", "sub", "sid", "tid", "role", "scope", "amr", "mfa_at", "iat", "exp", "jti"}
    assert (claims["sub"], claims["tid"], claims["role"]) == (person.id, person.tenant, "owner")
    assert (claims["scope"], claims["amr"], claims["mfa_at"]) == ("session", ["wallet"], None)
    assert claims["exp"] - claims["iat"] == person.session["expiresIn"] == 900
    assert jwt.get_unverified_header(person.session["token"])["alg"] == "EdDSA"


async def test_an_access_token_expires(service: Service, person: Person, owner: asyncpg.Connection) -> None:
    now = int(time.time())
    living = await sign_again(service, owner, person.session["token"], exp=now + 60)
    expired = await sign_again(service, owner, person.session["token"], exp=now)

    # The same token with another end is taken, so nothing but its end is what is wrong.
    assert ask_session(person, living).status_code == 200
    assert outcome(ask_session(person, expired)) == (401, "bad_token")
    assert at_signer(service, expired)["kind"] == "BadProof"
    assert at_signer(service, living)["type"] == "Done"


@pytest.mark.parametrize(
    "changed",
    [
        {"scope": "agent"},
        {"scope": "admin"},
        {"scope": ...},
        {"sid": ...},
        {"sub": ...},
        {"tid": ...},
        {"tid": "no-such-tenant"},
        {"role": ...},
        {"role": "king"},
        {"exp": ...},
        {"iat": ...},
        {"surplus": 1},
        {"mfa_at": "now"},
        {"amr": None},
        {"sid": "00000000-0000-4000-8000-000000000001"},
        {"sid": "no-uuid"},
        {"sub": "00000000-0000-4000-8000-000000000001"},
        {"sub": "no-uuid"},
        {"exp": "never"},
        {"nbf": 9999999999},
    ],
    ids=str,
)
async def test_a_token_that_says_something_else_is_401_even_under_our_own_key(
    service: Service, person: Person, owner: asyncpg.Connection, changed: dict[str, Any]
) -> None:
    token = await sign_again(service, owner, person.session["token"], **changed)

    assert ask_session(person, token).status_code == 401
    assert at_signer(service, token)["kind"] == "BadProof"


async def test_a_role_in_a_token_counts_for_nothing(service: Service, guest: Person, owner: asyncpg.Connection) -> None:
    now = int(time.time())
    token = await sign_again(service, owner, guest.session["token"], role="owner", mfa_at=now)
    act = {"json": {"id": "mine", "name": "Mine"}, "headers": {"Authorization": f"Bearer {token}"}}

    assert ask_session(guest, token).json()["data"]["tenant"]["role"] == "viewer"
    assert outcome(guest.post("/agents", **act)) == (403, "wrong_role")
    told = at_signer(service, token, "CreateAgents", agents=[{"id": "mine", "name": "Mine"}])
    assert (told["kind"], told["code"]) == ("Forbidden", "wrong_role")


def test_a_forged_token_is_401(service: Service, person: Person, as_nobody: Client) -> None:
    token = person.session["token"]
    header, claims = jwt.get_unverified_header(token), claims_of(token)
    own = Ed25519PrivateKey.generate()
    public = as_nobody.get("/.well-known/jwks.json").json()["keys"][0]["x"]
    first, second, third = token.split(".")
    body = f"{encode({**header, 'alg': 'HS256'})}.{encode(claims)}"
    mac = hmac.digest(base64.urlsafe_b64decode(public + "=="), body.encode(), hashlib.sha256)
    forged = {
        "no algorithm": f"{encode({**header, 'alg': 'none'})}.{encode(claims)}.",
        "another key": jwt.encode(claims, own, "EdDSA", headers={"kid": header["kid"]}),
        "another key by its own name": jwt.encode(claims, own, "EdDSA", headers={"kid": "mine"}),
        "HMAC with the public key": f"{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}",
        "another role": f"{first}.{encode({**claims, 'role': 'admin'})}.{third}",
        "fresh MFA": f"{first}.{encode({**claims, 'mfa_at': int(time.time())})}.{third}",
        "a refresh token": person.session["refreshToken"],
        "cut": token[:-4],
        "two parts": f"{first}.{second}",
    }

    for what, shown in forged.items():
        assert ask_session(as_nobody, shown).status_code == 401, what
        assert at_signer(service, shown)["kind"] == "BadProof", what
    assert ask_session(as_nobody, token).status_code == 200


@pytest.mark.parametrize("issuer", ["https://evil.example", "", ...], ids=["another", "empty", "none"])
async def test_a_token_of_another_issuer_is_none_even_under_our_key(
    service: Service, person: Person, agent: Agent, as_nobody: Client, owner: asyncpg.Connection, issuer: Any
) -> None:
    theirs = await sign_again(service, owner, person.session["token"], iss=issuer)
    agents = await sign_again(service, owner, agent.headers["Authorization"].split()[1], iss=issuer)

    assert ask_session(as_nobody, theirs).status_code == 401
    assert at_signer(service, theirs)["kind"] == "BadProof"
    answer = as_nobody.get(f"/agents/{agent.id}", headers={"Authorization": f"Bearer {agents}"})
    assert (answer.status_code, answer.json()["data"]["code"]) == (401, "bad_token")
    own = await sign_again(service, owner, person.session["token"])
    assert ask_session(as_nobody, own).status_code == 200


def encode(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def test_an_agents_token_is_no_session(service: Service, agent: Agent) -> None:
    token = agent.headers["Authorization"].split()[1]

    assert [agent.get(path).status_code for path in ("/auth/session", "/auth/sessions")] == [403, 403]
    assert agent.post("/auth/logout").status_code == 403
    assert at_signer(service, token)["kind"] == "BadProof"


def test_a_session_is_no_agent(service: Service, person: Person) -> None:
    key = {"X-Service-Key": person.session["tenant"]["apiKey"], "Authorization": ""}
    made = person.ok("POST", "/agents", {"id": "own", "name": "Own"}, **key)
    order = {"to": "0x" + "11" * 20, "value": "1", "broadcast": False}

    # Its person is the owner, but has shown no second factor.
    assert outcome(person.post(f"/vault/{made['id']}/sign", json=order)) == (403, "mfa_required")
    with greet(service) as wire:
        question = {"kind": "evm", "request": {**order, "chainId": 31337}}
        body = {"agent": "own", "tx_id": str(uuid.uuid4()), "question": question}
        told = wire.ask("SignOrder", body, {"kind": "agent", "value": person.session["token"]})
    assert told["kind"] == "BadProof"


def test_a_session_reveals_nothing_at_the_proxys_socket(service: Service, person: Person) -> None:
    with greet(service, "proxy") as wire:
        proof = {"kind": "agent", "value": person.session["token"]}
        told = wire.ask("RevealForRoute", {"route": str(uuid.uuid4())}, proof)

    assert told["kind"] == "BadProof"


def test_two_credentials_together_are_ambiguous(person: Person) -> None:
    answer = person.get("/auth/session", headers={"X-Service-Key": person.session["tenant"]["apiKey"]})

    assert outcome(answer) == (400, "ambiguous_credentials")


# ---- the refresh token


def test_a_refresh_gives_the_next_tokens(person: Person, session_id: str) -> None:
    following = person.refresh().json()["data"]

    assert following["refreshToken"] != person.session["refreshToken"]
    assert following["token"] != person.session["token"]
    assert claims_of(following["token"])["sid"] == session_id
    assert following["user"] == person.session["user"]
    assert following["tenant"] == {"id": person.tenant, "name": "Personal", "role": "owner"}
    assert ask_session(person, following["token"]).status_code == 200
    # The older access token lives until it expires: its refresh token was spent, not stolen.
    assert ask_session(person, person.session["token"]).status_code == 200


def test_a_chain_of_refreshes_goes_on(person: Person) -> None:
    for _ in range(5):
        person.take(person.refresh().json()["data"])

    assert person.get("/auth/session").status_code == 200


@pytest.mark.parametrize("later", [1, 3], ids=["the last but one", "an old one"])
async def test_a_refresh_token_that_comes_again_ends_the_session_everywhere(
    person: Person, session_id: str, owner: asyncpg.Connection, later: int
) -> None:
    stolen, tokens = person.session["refreshToken"], [person.session["token"]]
    for _ in range(later):
        person.take(person.refresh().json()["data"])
        tokens.append(person.session["token"])

    answer = refresh(person, stolen)

    assert outcome(answer) == (401, "refresh_token_reused")
    assert [outcome(ask_session(person, token)) for token in tokens] == [(401, "session_revoked")] * (later + 1)
    assert outcome(person.refresh()) == (401, "refresh_token_invalid")
    assert (await actions(owner, session_id))[-1] == "session.reuse_detected"


async def test_reuse_is_written_down_where_and_by_whom(
    person: Person, session_id: str, owner: asyncpg.Connection
) -> None:
    stolen = person.session["refreshToken"]
    person.take(person.refresh().json()["data"])
    request_id = str(uuid.uuid4())

    person.post("/auth/refresh", json={"refreshToken": stolen}, headers={"X-Request-Id": request_id})

    row = await owner.fetchrow("SELECT * FROM audit WHERE request_id = $1", request_id)
    assert (row["action"], row["resource_type"], row["resource_id"]) == (
        "session.reuse_detected",
        "session",
        session_id,
    )
    assert (row["tenant_id"], row["actor_type"], row["actor_id"]) == (person.tenant, "user", person.id)
    assert (row["ip_address"], row["written_by"]) == ("127.0.0.1", "custody_identity")


def test_another_session_of_the_same_person_outlives_a_reuse(service: Service, person: Person) -> None:
    with closing(sign_in(service, person.wallet)) as elsewhere:
        stolen = person.session["refreshToken"]
        person.take(person.refresh().json()["data"])
        assert refresh(person, stolen).status_code == 401

        assert elsewhere.get("/auth/session").status_code == 200
        assert elsewhere.refresh().status_code == 200


def test_of_refreshes_at_once_no_two_living_pairs_come(person: Person) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: person.refresh(), range(4)))

    won = [answer.json()["data"] for answer in answers if answer.status_code == 200]
    assert len(won) == 1
    assert {outcome(answer)[0] for answer in answers if answer.status_code != 200} == {401}
    # One of the two was a thief, so both sessions are dead.
    assert refresh(person, won[0]["refreshToken"]).status_code == 401
    assert ask_session(person, won[0]["token"]).status_code == 401


def bend(token: str, how: str) -> Any:
    raw = bytearray(base64.urlsafe_b64decode(token[3:] + "=="))
    if how == "the next generation":
        raw[16:20] = (int.from_bytes(raw[16:20]) + 1).to_bytes(4)
    elif how == "an older generation":
        raw[16:20] = bytes(4)
    elif how == "another session":
        raw[:16] = uuid.uuid4().bytes
    elif how == "another MAC":
        raw[-1] ^= 1
    elif how == "no MAC":
        raw[20:] = bytes(36)
    elif how == "another key":
        raw[20:24] = (9).to_bytes(4)
    return "rt_" + base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "how",
    ["the next generation", "an older generation", "another session", "another MAC", "no MAC", "another key"],
)
def test_a_forged_refresh_token_is_refused_and_harms_nobody(person: Person, how: str) -> None:
    person.take(person.refresh().json()["data"])

    assert outcome(refresh(person, bend(person.session["refreshToken"], how))) == (401, "refresh_token_invalid")
    assert person.refresh().status_code == 200


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1],
        lambda token: token + "A",
        lambda token: token[3:],
        lambda token: "RT_" + token[3:],
        lambda token: "rt_",
        lambda token: "x",
        lambda token: token[:40],
        lambda token: "rt_" + "A" * 75,
        lambda token: "rt_rt_" + token[3:],
        lambda token: token.replace("rt_", "rt_\n"),
        lambda token: token + "=",
        lambda token: token[:-1] + ALPHABET[ALPHABET.index(token[-1]) | 1],
        lambda token: " " + token,
        lambda token: "rt_" + "\u00e4" * 75,
        lambda token: "rt_" + "\x00" * 75,
    ],
)
def test_a_mangled_refresh_token_is_401(person: Person, spoil: Any) -> None:
    assert outcome(refresh(person, spoil(person.session["refreshToken"]))) == (401, "refresh_token_invalid")
    assert person.refresh().status_code == 200


@pytest.mark.parametrize("bad", ["", None, 5, "x" * 513])
def test_a_malformed_refresh_token_is_400(as_nobody: Client, bad: Any) -> None:
    answer = refresh(as_nobody, bad)

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["refreshToken"])


def test_an_access_token_does_not_refresh(person: Person) -> None:
    assert refresh(person, person.session["token"]).status_code in (400, 401)


def test_a_refresh_token_of_another_deployment_is_refused(
    person: Person, postgres_home: places.Home, worker_id: str
) -> None:
    with (
        deploy(database_apart(postgres_home, f"{worker_id}_abroad")) as abroad,
        closing(sign_in(abroad)) as foreigner,
    ):
        assert outcome(refresh(person, foreigner.session["refreshToken"])) == (401, "refresh_token_invalid")
        assert ask_session(person, foreigner.session["token"]).status_code == 401
        assert foreigner.refresh().status_code == 200


async def test_a_session_ends_thirty_days_after_sign_in(
    person: Person, session_id: str, owner: asyncpg.Connection
) -> None:
    person.take(person.refresh().json()["data"])
    left = "SELECT extract(epoch FROM expires_at - created_at) FROM sessions WHERE id = $1"
    assert await owner.fetchval(left, session_id) == 30 * 86_400

    await owner.execute("UPDATE sessions SET expires_at = expires_at - interval '30 days' WHERE id = $1", session_id)

    assert outcome(person.refresh()) == (401, "refresh_token_invalid")
    assert outcome(person.get("/auth/session")) == (401, "session_revoked")


async def test_a_deactivated_person_is_out(service: Service, person: Person, owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE users SET deactivated_at = now() WHERE id = $1", person.id)

    assert outcome(person.get("/auth/session")) == (401, "session_revoked")
    assert outcome(person.refresh()) == (401, "refresh_token_invalid")
    signed = person.wallet.sign_in(says(service, person.ok("GET", "/auth/nonce")["nonce"]))
    again = person.post("/auth/verify", json={"message": signed.message, "signature": signed.signature})
    assert outcome(again) == (401, "deactivated")


# ---- what one has, and its end


def test_the_current_session_names_person_and_tenant(person: Person, session_id: str) -> None:
    assert person.ok("GET", "/auth/session") == {
        "id": session_id,
        "user": {"id": person.id, "email": None, "emailVerified": None, "walletAddress": person.wallet.address},
        "tenant": {"id": person.tenant, "name": "Personal", "role": "owner"},
        "mfa": {"verifiedAt": None, "methods": []},
        "memberships": [{"tenantId": person.tenant, "name": "Personal", "role": "owner"}],
    }


def test_one_sees_ones_own_sessions_alone(service: Service, person: Person, session_id: str) -> None:
    with closing(sign_in(service, person.wallet)) as elsewhere, closing(sign_in(service)):
        there = claims_of(elsewhere.session["token"])["sid"]

        listed = person.ok("GET", "/auth/sessions")

    assert [(one["id"], one["current"]) for one in listed] == [(there, False), (session_id, True)]
    assert {one["provider"] for one in listed} == {"siwe"}
    assert {one["ipAddress"] for one in listed} == {"127.0.0.1"}
    assert all(one["userAgent"].startswith("python-httpx/") for one in listed)


async def test_signing_out_ends_this_session_at_once(
    service: Service, person: Person, session_id: str, owner: asyncpg.Connection
) -> None:
    with closing(sign_in(service, person.wallet)) as elsewhere:
        assert person.ok("POST", "/auth/logout") == {"deleted": session_id}

        assert outcome(person.get("/auth/session")) == (401, "session_revoked")
        assert outcome(person.refresh()) == (401, "refresh_token_invalid")
        assert at_signer(service, person.session["token"])["code"] == "session_revoked"
        assert elsewhere.get("/auth/session").status_code == 200
    assert await actions(owner, session_id) == ["session.began", "session.ended"]


def test_another_session_of_ones_own_is_ended_from_here(service: Service, person: Person) -> None:
    with closing(sign_in(service, person.wallet)) as lost:
        there = claims_of(lost.session["token"])["sid"]

        assert person.ok("DELETE", f"/auth/sessions/{there}") == {"deleted": there}

        assert outcome(lost.get("/auth/session")) == (401, "session_revoked")
        assert lost.refresh().status_code == 401
        assert [one["current"] for one in person.ok("GET", "/auth/sessions")] == [True]
        assert outcome(person.delete(f"/auth/sessions/{there}")) == (404, "session_absent")


def test_somebody_elses_session_is_404_as_if_absent(service: Service, person: Person) -> None:
    with closing(sign_in(service)) as stranger:
        theirs = claims_of(stranger.session["token"])["sid"]

        answers = [person.delete(f"/auth/sessions/{one}") for one in (theirs, uuid.uuid4())]

        assert [outcome(answer) for answer in answers] == [(404, "session_absent")] * 2
        assert answers[0].json() == answers[1].json()
        assert stranger.get("/auth/session").status_code == 200


# ---- nobody chooses a session for another


def test_every_sign_in_is_a_session_of_its_own(service: Service, person: Person, session_id: str) -> None:
    nonce = person.ok("GET", "/auth/nonce")["nonce"]
    signed = person.wallet.sign_in(says(service, nonce))
    body = {"message": signed.message, "signature": signed.signature}

    # With the tokens of the session before it, and a cookie that names one.
    again = person.post("/auth/verify", json=body, headers={"Cookie": f"sid={session_id}; session={session_id}"})

    assert claims_of(again.json()["data"]["token"])["sid"] != session_id
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("field", ["sid", "sessionId", "session", "userId"])
def test_a_session_id_cannot_be_chosen(service: Service, as_nobody: Client, session_id: str, field: str) -> None:
    body = {"message": "x", "signature": "0xabcd", field: session_id}

    assert as_nobody.post("/auth/verify", json=body).json()["data"]["fields"] == [field]


def test_the_refresh_token_from_before_a_step_up_is_spent(service: Service) -> None:
    with closing(sign_in(service)) as person:
        before = person.session["refreshToken"]
        person.enrol_totp()
        enrolled = person.session["refreshToken"]
        person.step_up()

        assert person.session["refreshToken"] not in (before, enrolled)
        assert outcome(refresh(person, enrolled)) == (401, "refresh_token_reused")
        assert person.get("/auth/session").status_code == 401


def test_the_access_token_from_before_a_step_up_has_no_second_factor(service: Service) -> None:
    with closing(sign_in(service)) as person:
        before = person.session["token"]
        person.enrol_totp()

        act = {"json": {"id": "own", "name": "Own"}}
        assert outcome(person.post("/agents", headers={"Authorization": f"Bearer {before}"}, **act)) == (
            403,
            "mfa_required",
        )
        assert person.post("/agents", **act).status_code == 201


def test_a_refresh_keeps_when_a_second_factor_was_shown(service: Service) -> None:
    with closing(sign_in(service)) as person:
        shown = person.enrol_totp()["mfa"]["verifiedAt"]

        following = person.refresh().json()["data"]

        assert following["mfa"]["verifiedAt"] == shown
        assert claims_of(following["token"])["mfa_at"] == claims_of(person.session["token"])["mfa_at"]


# ---- other tenants


def test_switching_goes_on_in_another_tenant(service: Service, tenant: Tenant, guest: Person) -> None:
    assert guest.session["tenant"] == {"id": tenant.id, "name": "A tenant", "role": "viewer"}
    assert [one["tenantId"] for one in guest.ok("GET", "/auth/session")["memberships"]] == [
        f"personal-{guest.id}",
        tenant.id,
    ]

    guest.switch(f"personal-{guest.id}")

    assert (guest.tenant, guest.role) == (f"personal-{guest.id}", "owner")
    assert guest.get("/agents").status_code == 200


def test_the_refresh_token_from_before_a_switch_is_spent(service: Service, guest: Person) -> None:
    before = guest.session["refreshToken"]
    guest.switch(f"personal-{guest.id}")

    assert outcome(refresh(guest, before)) == (401, "refresh_token_reused")
    assert outcome(guest.get("/auth/session")) == (401, "session_revoked")


def test_a_refresh_stays_in_the_tenant_that_was_switched_to(tenant: Tenant, guest: Person) -> None:
    assert guest.refresh().json()["data"]["tenant"]["id"] == tenant.id


def test_one_cannot_switch_to_a_tenant_of_others(person: Person, tenant: Tenant) -> None:
    answers = [
        person.post("/auth/session/tenant", json={"tenantId": name})
        for name in (tenant.id, "no-such-tenant", "platform")
    ]

    assert [outcome(answer) for answer in answers] == [(403, "not_a_member")] * 3
    assert len({answer.text for answer in answers}) == 1
    # What was refused used nothing up.
    assert person.refresh().status_code == 200


def test_a_session_sees_the_tenant_that_it_is_in_and_no_other(
    tenant: Tenant, other_tenant: Tenant, guest: Person
) -> None:
    tenant.ok("POST", "/agents", {"id": "seen", "name": "Seen"})
    other_tenant.ok("POST", "/agents", {"id": "hidden", "name": "Hidden"})

    assert [one["id"] for one in guest.ok("GET", "/agents")] == ["seen"]
    assert guest.get("/agents/hidden").status_code == 404
    assert guest.get(f"/tenants/{other_tenant.id}").status_code == 404
    assert guest.get(f"/tenants/{tenant.id}").status_code == 200


def test_a_removed_member_neither_reads_nor_refreshes(service: Service, tenant: Tenant, guest: Person) -> None:
    with platform_client(service) as platform:
        platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{guest.id}", {"force": True})

    assert outcome(guest.get("/agents")) == (401, "session_revoked")
    assert outcome(guest.refresh()) == (401, "refresh_token_invalid")
    assert at_signer(service, guest.session["token"])["code"] == "session_revoked"
    # Their own tenant is still theirs.
    with closing(sign_in(service, guest.wallet)) as again:
        assert again.tenant == f"personal-{guest.id}"


def test_a_deleted_tenant_takes_its_sessions_along(service: Service, tenant: Tenant, guest: Person) -> None:
    with platform_client(service) as platform:
        platform.ok("DELETE", f"/platform/tenants/{tenant.id}")

    assert outcome(guest.get("/auth/session")) == (401, "session_revoked")
    assert outcome(guest.refresh()) == (401, "refresh_token_invalid")


# ---- what is kept


async def test_no_token_is_kept_or_logged(service: Service, person: Person, owner: asyncpg.Connection) -> None:
    person.take(person.refresh().json()["data"])
    secrets = [person.session["token"], person.session["refreshToken"]]

    for table in ("audit", "outbox", "events", "idempotency", "sessions"):
        for row in await owner.fetch(f"SELECT t::text AS row FROM {table} t"):
            assert not any(secret[-40:] in row["row"] for secret in secrets), table
    assert not any(secret[-40:] in service.logs() for secret in secrets)


def test_answers_with_tokens_are_not_to_be_cached(person: Person) -> None:
    assert person.refresh().headers["Cache-Control"] == "no-store"
