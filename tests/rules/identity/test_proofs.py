"""Callers of a worker: of each credential, what of its row may not hold, taken away one at a time."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from custody.identity.mfa import MfaPolicy
from custody.kit import tokens
from custody.kit.act import Credential
from custody.kit.callers import Proof
from custody.kit.jwt import AgentClaims, BadToken, SessionClaims
from custody.protocol.refusals import BadProof
from custody.worker.judging import JudgingSeals
from custody.worker.keyring import Keyring
from custody.worker.proofs import Proofs, SessionRevoked
from custody.worker.proven import (
    ProvenAgent,
    ProvenAppClient,
    ProvenPlatform,
    ProvenSession,
    ProvenTenant,
    WrongKind,
)
from custody.worker.sealing import Sealer, Tampered, fields
from custody.worker.token_keys import Tokens

# As rows of before have it.
TENANT_KEY_MAC, PLATFORM_KEY_MAC, MEMBERSHIP_MAC = "tenant-key-mac", "platform-key-mac", "membership-mac"
APP_CLIENT_MAC, APP_SECRET_MAC = "app-client-mac", "app-secret-mac"
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
USER, SESSION = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
SEALER, JUDGES = (Sealer(Keyring({1: bytes([one]) * 32})) for one in (1, 2))
TENANT, PLATFORM, APP = Proof("tenant_key", "key"), Proof("platform_key", "key"), Proof("app_client", "a:b/web:secret")
PERSON, AGENT = Proof("session", "person"), Proof("agent", "agent")
OF_AGENT = AgentClaims("custody", "payer", "acme", "agent", "first", 3, 1, 2, "jti")
OF_PERSON = SessionClaims("custody", USER, SESSION, "acme", "owner", "session", ["totp"], 50, 40, 90, "jti")
KEY = tokens.digest("key")


class Rows:
    """A database that answers these questions, each by its function and arguments, and no other with a row."""

    def __init__(self, function: str, arguments: tuple[Any, ...], row: dict[str, Any] | None) -> None:
        self._known, self.row, self.asked = (function, arguments), row, 0

    async def fetchrow(self, query: str, *arguments: Any) -> dict[str, Any] | None:
        self.asked += 1
        named = re.search(r"FROM (\w+)\(", query)
        return self.row if named and (named[1], arguments) == self._known else None


class Known(Tokens):
    """Tokens whose signature holds, by their text."""

    def __init__(self, person: SessionClaims = OF_PERSON) -> None:
        self._claims: dict[str, AgentClaims | SessionClaims] = {"agent": OF_AGENT, "person": person}

    async def read(self, token: str) -> AgentClaims | SessionClaims:
        if token not in self._claims:
            raise BadToken
        return self._claims[token]


def mac(purpose: str, tenant: str, *content: Any, by: Sealer = SEALER) -> bytes:
    return by.mac(purpose, tenant, fields(*content))


def tenant_row(**changed: Any) -> dict[str, Any]:
    sealed = mac(TENANT_KEY_MAC, "acme", "acme", KEY)
    return {"tenant_id": "acme", "prefix": "ck_abc", "mac": sealed} | changed


def platform_row(scopes: list[str] | None = None, **changed: Any) -> dict[str, Any]:
    sealed = mac(PLATFORM_KEY_MAC, "platform", KEY, *(["*"] if scopes is None else sorted(scopes)))
    return {"prefix": "pk_abc", "scopes": scopes, "mac": sealed} | changed


def app_row(**changed: Any) -> dict[str, Any]:
    secret = tokens.digest("secret")
    return {
        "tenant_id": "a:b",
        "client_id": "web",
        "enabled": True,
        "document": "{}",
        "mac": mac(APP_SECRET_MAC, "a:b", "a:b", "web", secret),
        "client_mac": mac(APP_CLIENT_MAC, "a:b", "a:b", "web", "{}", "enabled"),
    } | changed


def person_row(*, user: str = USER, tenant: str = "acme", config: dict[str, Any] | None = None, **changed: Any) -> Any:
    role, since = changed.get("role", "admin"), changed.get("member_since", SINCE)
    content = tenant, user, "admin", int(SINCE.timestamp()) * 1_000_000
    text, judging = JudgingSeals(JUDGES).seal("acme", 4, config) if config is not None else (None, None)
    return {
        "membership_mac": mac(MEMBERSHIP_MAC, tenant, *content),
        "role": role,
        "member_since": since,
        "config_version": 0 if config is None else 4,
        "judging": text,
        "judging_mac": judging,
        "mfa_counts_from": 50,
        "methods": ["totp", "webauthn"],
    } | changed


FUNCTIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "tenant_key": ("find_tenant_key", (KEY,)),
    "platform_key": ("find_platform_key", (KEY,)),
    "app_client": ("find_app_secret", (tokens.digest("secret"),)),
    "session": ("session_proof", (SESSION, USER, "acme", 40)),
}


def prove(
    proof: Proof, row: dict[str, Any] | None = None, *, person: SessionClaims = OF_PERSON, **given: bool
) -> tuple[Proofs, Rows]:
    rows = Rows(*FUNCTIONS.get(proof.kind, ("", ())), row)
    return Proofs(rows, SEALER, Known(person), JudgingSeals(JUDGES), **given), rows


async def test_each_credential_is_who_its_row_says() -> None:
    found = {
        "tenant": await prove(TENANT, tenant_row())[0].anybody(TENANT),
        "platform": await prove(PLATFORM, platform_row())[0].anybody(PLATFORM),
        "scoped": await prove(PLATFORM, platform_row(["users:read", "a"]))[0].anybody(PLATFORM),
        "app": await prove(APP, app_row())[0].anybody(APP),
        "agent": await prove(AGENT)[0].anybody(AGENT),
        "person": await prove(PERSON, person_row())[0].anybody(PERSON),
    }

    assert found == {
        "tenant": ProvenTenant(tenant="acme", standing=Credential("tenant_key", KEY), principal="tenant-key:ck_abc"),
        "platform": ProvenPlatform("platform-key:pk_abc", None),
        "scoped": ProvenPlatform("platform-key:pk_abc", ("users:read", "a")),
        "app": ProvenAppClient(
            tenant="a:b",
            standing=Credential("app_secret", tokens.digest("secret")),
            principal="app-client:web",
            client="web",
        ),
        "agent": ProvenAgent("acme", "payer", "first", 3),
        "person": ProvenSession(
            tenant="acme",
            standing=Credential("session", session=SESSION, membership_mac=person_row()["membership_mac"]),
            principal=f"user:{USER}",
            user=USER,
            session=SESSION,
            role="admin",
            mfa_at=50,
            policy=MfaPolicy(),
            methods=("totp", "webauthn"),
        ),
    }


FOREIGN = Sealer(Keyring({1: bytes([9]) * 32}))
LIES: dict[str, tuple[Proof, dict[str, Any] | None]] = {
    "a tenant's key that nobody has": (TENANT, None),
    "a tenant's key without a MAC": (TENANT, tenant_row(mac=None)),
    "a tenant's key under another key's MAC": (TENANT, tenant_row(mac=mac(TENANT_KEY_MAC, "acme", "acme", b"x" * 32))),
    "a tenant's key that was moved": (TENANT, tenant_row(tenant_id="other")),
    "a tenant's key under a MAC of another purpose": (TENANT, tenant_row(mac=mac(APP_SECRET_MAC, "acme", "acme", KEY))),
    "a tenant's key of a stranger": (TENANT, tenant_row(mac=mac(TENANT_KEY_MAC, "acme", "acme", KEY, by=FOREIGN))),
    "a platform key that nobody has": (PLATFORM, None),
    "a platform key without a MAC": (PLATFORM, platform_row(mac=None)),
    "a platform key whose scopes are gone": (PLATFORM, platform_row(["a"]) | {"scopes": None}),
    "a platform key with a scope more": (PLATFORM, platform_row(["a"]) | {"scopes": ["a", "b"]}),
    "a platform key of a tenant": (PLATFORM, platform_row(mac=mac(PLATFORM_KEY_MAC, "acme", KEY, "*"))),
    "a platform key under another purpose": (PLATFORM, platform_row(mac=mac(TENANT_KEY_MAC, "platform", KEY, "*"))),
    "another platform key": (PLATFORM, platform_row(mac=mac(PLATFORM_KEY_MAC, "platform", b"x" * 32, "*"))),
    "an app secret that nobody has": (APP, None),
    "an app secret of another client": (APP, app_row(client_id="other")),
    "an app secret of another tenant": (APP, app_row(tenant_id="a")),
    "an app secret under another purpose": (
        APP,
        app_row(mac=mac(APP_CLIENT_MAC, "a:b", "a:b", "web", tokens.digest("secret"))),
    ),
    "an app secret that nobody sealed": (APP, app_row(mac=None)),
    "an app secret that was put to another client": (
        APP,
        app_row(mac=mac(APP_SECRET_MAC, "a:b", "a:b", "other", tokens.digest("secret"))),
    ),
    "an app secret that was put to another tenant": (
        APP,
        app_row(mac=mac(APP_SECRET_MAC, "a:b", "other", "web", tokens.digest("secret"))),
    ),
    "another app secret": (APP, app_row(mac=mac(APP_SECRET_MAC, "a:b", "a:b", "web", b"x" * 32))),
    "an app client that is off": (APP, app_row(enabled=False)),
    "an app client that was switched on": (
        APP,
        app_row(client_mac=mac(APP_CLIENT_MAC, "a:b", "a:b", "web", "{}", "disabled")),
    ),
    "an app client with another document": (APP, app_row(document='{"a":1}')),
    "an app client of another tenant": (
        APP,
        app_row(client_mac=mac(APP_CLIENT_MAC, "a:b", "other", "web", "{}", "enabled")),
    ),
    "another app client": (
        APP,
        app_row(client_mac=mac(APP_CLIENT_MAC, "a:b", "a:b", "other", "{}", "enabled")),
    ),
    "an app client without a MAC": (APP, app_row(client_mac=None)),
    "an app client under another purpose": (
        APP,
        app_row(client_mac=mac(APP_SECRET_MAC, "a:b", "a:b", "web", "{}", "enabled")),
    ),
    "a member with another role": (PERSON, person_row(role="owner")),
    "a member who was removed and came back": (PERSON, person_row(member_since=SINCE + timedelta(days=1))),
    "a member who is another person": (PERSON, person_row(user=SESSION)),
    "a member of another tenant": (PERSON, person_row(tenant="other")),
    "a member whom nobody made": (PERSON, person_row(membership_mac=None)),
    "a member under another purpose": (
        PERSON,
        person_row(
            membership_mac=mac(APP_CLIENT_MAC, "acme", "acme", USER, "admin", int(SINCE.timestamp()) * 1_000_000)
        ),
    ),
}


@pytest.mark.parametrize("what", LIES)
async def test_a_row_that_is_not_what_was_written_proves_nobody(what: str) -> None:
    proof, row = LIES[what]
    with pytest.raises(BadProof) as refused:
        await prove(proof, row)[0].anybody(proof)
    assert type(refused.value) is BadProof


@pytest.mark.parametrize("app", ["a:b/other", "other/web", "a:b/web/", "", "a/web"])
async def test_a_secret_serves_only_the_app_client_that_shows_it(app: str) -> None:
    proof = Proof("app_client", f"{app}:secret")
    with pytest.raises(BadProof):
        await prove(proof, app_row())[0].anybody(proof)


async def test_a_session_that_has_ended_is_said_to_have() -> None:
    with pytest.raises(SessionRevoked):
        await prove(PERSON, None)[0].session(PERSON)


async def test_a_factor_for_one_item_counts_without_one_of_the_session() -> None:
    of_item = msgspec.structs.replace(OF_PERSON, approval="an approval", digest="its digest")
    changed = {counts: person_row(mfa_counts_from=None, item_counts_from=counts) for counts in (0, 50, 51)}
    found = {counts: await prove(PERSON, row, person=of_item)[0].session(PERSON) for counts, row in changed.items()}

    assert {counts: one.mfa_at for counts, one in found.items()} == {0: 50, 50: 50, 51: None}
    assert {one.item for one in found.values()} == {("an approval", "its digest")}
    assert (await prove(PERSON, changed[0])[0].session(PERSON)).mfa_at is None


async def test_a_person_s_second_factor_counts_from_when_it_still_does_and_by_the_tenant_s_policy() -> None:
    earlier = await prove(PERSON, person_row(mfa_counts_from=51))[0].session(PERSON)
    strict = await prove(PERSON, person_row(config={"mfa": {"maxAgeSeconds": 60}}))[0].session(PERSON)
    assert (earlier.mfa_at, strict.mfa_at, strict.policy) == (None, 50, MfaPolicy(max_age_seconds=60))


@pytest.mark.parametrize("changed", [{"config_version": 5}, {"judging": "{}"}, {"judging_mac": None}], ids=str)
async def test_a_person_is_held_to_no_policy_that_nobody_sealed(changed: dict[str, Any]) -> None:
    with pytest.raises(Tampered):
        await prove(PERSON, person_row(config={"mfa": {"maxAgeSeconds": 60}}, **changed))[0].session(PERSON)


@pytest.mark.parametrize(("page", "bound"), [("web", False), (None, True)])
async def test_a_session_stays_at_the_page_and_in_the_tenant_where_it_began(page: str | None, bound: bool) -> None:
    claims = msgspec.structs.replace(OF_PERSON, page=page, bound=bound)
    found = await prove(PERSON, person_row(), person=claims)[0].session(PERSON)
    assert (found.page, found.bound) == (page, bound)


async def test_a_tenant_s_key_is_believed_for_a_second_and_only_that_key() -> None:
    now = 100.0
    proofs, rows = prove(TENANT, tenant_row())
    proofs._tenants._clock = lambda: now
    first = await proofs.tenant(TENANT)
    now += 0.9
    assert (await proofs.tenant(TENANT), rows.asked) == (first, 1)
    now, rows.row = now + 0.2, None
    with pytest.raises(BadProof):
        await proofs.tenant(TENANT)
    with pytest.raises(BadProof):
        await proofs.tenant(Proof("tenant_key", "other"))


@pytest.mark.parametrize("proof", [PLATFORM, APP, PERSON], ids=lambda proof: proof.kind)
async def test_other_credentials_are_looked_up_each_time(proof: Proof) -> None:
    row = {"platform_key": platform_row, "app_client": app_row, "session": person_row}[proof.kind]()
    proofs, rows = prove(proof, row)
    await proofs.anybody(proof)
    rows.row = None
    with pytest.raises(BadProof):
        await proofs.anybody(proof)


async def test_no_proof_and_a_proof_of_another_kind_prove_nobody() -> None:
    proofs, rows = prove(AGENT)
    for one in (proofs.agent, proofs.tenant, proofs.platform, proofs.anybody):
        with pytest.raises(BadProof):
            await one(None)
    for one, kind in ((proofs.agent, "agent"), (proofs.tenant, "tenant_key"), (proofs.platform, "platform_key")):
        for other in (AGENT, TENANT, PLATFORM, PERSON, APP):
            if other.kind != kind:
                with pytest.raises(WrongKind):
                    await one(other)
    assert rows.asked == 0


async def test_a_token_is_of_an_agent_or_of_a_person_and_serves_as_no_other() -> None:
    proofs, _ = prove(PERSON, person_row())
    for proof in (Proof("agent", "person"), Proof("session", "agent"), Proof("agent", "x"), Proof("session", "x")):
        with pytest.raises(BadToken):
            await proofs.anybody(proof)


async def test_scopes_are_looked_at_unless_the_deployment_does_not() -> None:
    scoped = await prove(PLATFORM, platform_row(["a"]))[0].platform(PLATFORM)
    free = await prove(PLATFORM, platform_row(["a"]), scoped=False)[0].platform(PLATFORM)
    assert (scoped.scoped, free.scoped) == (True, False)


def test_a_member_is_one_whom_identity_wrote() -> None:
    proofs, _ = prove(PERSON)
    sealed = person_row()["membership_mac"]
    assert proofs.is_member("acme", USER, "admin", SINCE, sealed)
    assert not proofs.is_member("other", USER, "admin", SINCE, sealed)
    assert not proofs.is_member("acme", SESSION, "admin", SINCE, sealed)
    assert not proofs.is_member("acme", USER, "owner", SINCE, sealed)
    assert not proofs.is_member("acme", USER, "admin", SINCE + timedelta(microseconds=1), sealed)
    assert not proofs.is_member("acme", USER, "admin", SINCE, mac(TENANT_KEY_MAC, "acme", USER))


async def test_a_planted_row_is_told_to_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(BadProof):
        await prove(TENANT, tenant_row(mac=None))[0].tenant(TENANT)
    record = caplog.records[-1]
    assert (record.name, vars(record)["mac"], vars(record)["tenant"]) == (
        "custody.worker.proofs",
        TENANT_KEY_MAC,
        "acme",
    )
