"""People before the signer itself: what a session may ask for, at which moment, and what a database writer cannot do.

The api's early refusal is left out here: every message comes straight over the socket. Record 0019.
"""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from custody.protocol.frames import VERSION
from ops import places
from tests.acts.act import OF_AGENT, PUBLIC, ROLES
from tests.acts.table import BY_COMMAND, NOTHING
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, platform_client
from tests.fixtures.commands import COMMANDS
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.forgery import claims_of
from tests.fixtures.people import Person, says, sign_in
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import connect, greet
from tests.outside.wallet import Wallet

# Not read from the declarations: a command that is declared wrongly must fail here. A proxy's is in `tests/proxy`.
BRING_THEIR_PROOF = {name for name, act in BY_COMMAND.items() if act.who == PUBLIC}
NOT_FROM_THE_API = {name for name, act in BY_COMMAND.items() if act.senders == "operator"}
RULES = {
    name: act
    for name, act in BY_COMMAND.items()
    if name not in BRING_THEIR_PROOF and act.senders in ("api", "operator")
}
CHANGES_FACTORS = {"NewRecoveryCodes", "RemoveTotp"}
REFUSALS = {"wrong_role", "mfa_required", "wrong_kind", "session_revoked", "bad_proof", "bad_token", "unauthenticated"}


def say(service: Service, name: str, body: dict[str, Any], proof: dict[str, str] | None) -> dict[str, Any]:
    with greet(service, "operator" if name in NOT_FROM_THE_API else "api") as wire:
        told: dict[str, Any] = wire.ask(name, body, proof)
    return told


def of(person: Person) -> dict[str, str]:
    return {"kind": "session", "value": person.session["token"]}


def put_member(service: Service, tenant: str, person: Person, role: str) -> None:
    """As the operator's call does it."""
    body = {"tenant": tenant, "user": person.id, "role": role, "force": True}
    told = say(service, "PutMember", body, {"kind": "platform_key", "value": service.platform_key})
    assert told["type"] == "Done", told


def join(service: Service, tenant: Tenant, role: str, *, mfa: bool) -> Person:
    """A new member, signed in to the tenant."""
    person = sign_in(service)
    put_member(service, tenant.id, person, role)
    if mfa:
        person.enrol_totp()
    person.switch(tenant.id)
    return person


def refusal(told: dict[str, Any]) -> str:
    """The code of a refusal; `admitted` where the caller may, whatever the outcome."""
    code = told.get("code", "")
    return code if code in REFUSALS else "admitted"


# ---- who may send what


@pytest.fixture(scope="module")
def team(service: Service) -> Iterator[dict[tuple[str, bool], Person]]:
    """A member of each role of one tenant, with and without a second factor."""
    with new_tenant(service) as tenant:
        people = {(role, mfa): join(service, tenant, role, mfa=mfa) for role in ROLES for mfa in (False, True)}
        yield people
        for person in people.values():
            person.close()


def test_every_message_is_in_the_table_of_acts() -> None:
    assert set(COMMANDS) == set(RULES) | BRING_THEIR_PROOF | {
        "BeginRefresh",
        "ChargeCall",
        "PayForRoute",
        "RevealForRoute",
    }
    assert {name for name, (_, declared) in COMMANDS.items() if not declared.proofs} == BRING_THEIR_PROOF


def _said_by_somebody(service: Service, tenant: Tenant, case: tuple[str, bool], name: str) -> dict[str, Any]:
    """An answer to somebody whom no other test needs: what was shown before no longer counts afterwards."""
    role, mfa = case
    with closing(join(service, tenant, role, mfa=mfa)) as person:
        return say(service, name, NOTHING[name], of(person))


@pytest.mark.parametrize("name", [name for name in RULES if name not in NOT_FROM_THE_API])
def test_each_role_may_send_what_it_should_and_no_more(
    service: Service, tenant: Tenant, team: dict[tuple[str, bool], Person], name: str
) -> None:
    act = RULES[name]

    def due(role: str, mfa: bool) -> str:
        if "session" not in act.who:
            return "wrong_kind"
        if role not in act.roles:
            return "wrong_role"
        return "mfa_required" if act.factor and not mfa else "admitted"

    if name in CHANGES_FACTORS:
        told = {case: _said_by_somebody(service, tenant, case, name) for case in team}
    else:
        told = {case: say(service, name, NOTHING[name], of(person)) for case, person in team.items()}

    assert {case: refusal(answer) for case, answer in told.items()} == {case: due(*case) for case in team}
    wanting = [answer["context"] for answer in told.values() if refusal(answer) == "mfa_required"]
    assert all(context["action"] == act.factor for context in wanting)


@pytest.mark.parametrize("name", RULES)
def test_each_message_takes_the_kinds_of_credential_that_it_should(
    service: Service, tenant: Tenant, agent: Agent, name: str
) -> None:
    shown = {
        "tenant_key": tenant.key,
        "platform_key": service.platform_key,
        "agent": agent.headers["Authorization"].split()[1],
    }

    told = {
        kind: refusal(say(service, name, NOTHING[name], {"kind": kind, "value": value}))
        for kind, value in shown.items()
    }

    assert {kind for kind, said in told.items() if said != "wrong_kind"} == set(RULES[name].who) & set(shown)


@pytest.mark.parametrize("name", [name for name in RULES if name != "CheckRequestSignature"])
def test_without_a_proof_nothing_is_done(service: Service, name: str) -> None:
    assert say(service, name, NOTHING[name], None)["kind"] == "BadProof"


# ---- between the proof and the act


@pytest.mark.parametrize("change", ["viewer", "removed", "signed out"])
@pytest.mark.parametrize("act", ["ReplacePolicies", "SignOrder"])
async def test_a_change_between_proof_and_act_counts(
    service: Service, tenant: Tenant, owner: asyncpg.Connection, act: str, change: str
) -> None:
    agent = tenant.agent()
    question = {"kind": "evm", "request": {"to": ADDRESS, "value": "1", "broadcast": False, "chainId": 31337}}
    body = {
        "ReplacePolicies": {"agent": agent.id, "policies": []},
        "SignOrder": {"agent": agent.id, "tx_id": str(uuid.uuid4()), "question": question},
    }[act]
    with closing(join(service, tenant, "admin", mfa=True)) as person:
        # The act waits for this row, long after its proof was looked at.
        async with owner.transaction():
            await owner.execute("SELECT FROM agents WHERE tenant_id = $1 AND id = $2 FOR UPDATE", tenant.id, agent.id)
            asked = asyncio.create_task(asyncio.to_thread(say, service, act, body, of(person)))
            await _until_somebody_waits(owner)
            await asyncio.to_thread(_change, service, tenant, person, change)
        told = await asked

    assert told["type"] == "Failed", told
    assert told["kind"] in ("BadProof", "Forbidden")
    assert await owner.fetchval("SELECT count(*) FROM transactions WHERE tenant_id = $1", tenant.id) == 0


async def _until_somebody_waits(owner: asyncpg.Connection) -> None:
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
    async with asyncio.timeout(60):
        while not await owner.fetchval(waiting):
            pass


def _change(service: Service, tenant: Tenant, person: Person, change: str) -> None:
    if change == "removed":
        body = {"tenant": tenant.id, "user": person.id, "force": True}
        say(service, "RemoveMember", body, {"kind": "platform_key", "value": service.platform_key})
    elif change == "signed out":
        person.ok("POST", "/auth/logout")
    else:
        put_member(service, tenant.id, person, change)


def test_a_role_given_back_is_the_same_role(service: Service, tenant: Tenant) -> None:
    with closing(join(service, tenant, "admin", mfa=True)) as person:
        for role, due in (("viewer", "wrong_role"), ("admin", "admitted"), ("developer", "wrong_role")):
            put_member(service, tenant.id, person, role)
            assert refusal(say(service, "RevokeAgentTokens", OF_AGENT, of(person))) == due


def test_a_second_factor_from_before_a_change_of_factors_opens_nothing(service: Service, tenant: Tenant) -> None:
    with closing(join(service, tenant, "admin", mfa=True)) as person:
        assert refusal(say(service, "RevokeAgentTokens", OF_AGENT, of(person))) == "admitted"
        assert refusal(say(service, "NewRecoveryCodes", {}, of(person))) == "admitted"

        assert refusal(say(service, "RevokeAgentTokens", OF_AGENT, of(person))) == "mfa_required"


def test_credentials_of_a_removed_member_stay_worthless(service: Service, tenant: Tenant) -> None:
    with closing(join(service, tenant, "admin", mfa=True)) as person:
        _change(service, tenant, person, "removed")
        put_member(service, tenant.id, person, "admin")

        assert refusal(say(service, "RevokeAgentTokens", OF_AGENT, of(person))) == "session_revoked"
        told = say(service, "RefreshSession", {"refresh_token": person.session["refreshToken"]}, None)
        assert told["code"] == "refresh_token_invalid"


# ---- somebody writes the database


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose rows this file may spoil."""
    with deploy(database_apart(postgres_home, f"{worker_id}_people")) as service:
        yield service


class Victims:
    """An admin, a viewer of the same tenant, and the owner of another."""

    def __init__(self, service: Service, tenant: Tenant, other: Tenant) -> None:
        self.service, self.tenant, self.other = service, tenant, other
        self.admin, self.viewer = (join(service, tenant, role, mfa=True) for role in ("admin", "viewer"))
        self.stranger = join(service, other, "owner", mfa=True)
        self.poor = join(service, tenant, "admin", mfa=False)
        self.people = (self.admin, self.viewer, self.stranger, self.poor)

    @property
    def names(self) -> dict[str, str]:
        people = {"admin": self.admin, "viewer": self.viewer, "stranger": self.stranger, "poor": self.poor}
        sessions = {f"{name}_session": claims_of(one.session["token"])["sid"] for name, one in people.items()}
        return {
            "tenant": self.tenant.id,
            "other": self.other.id,
            **{name: one.id for name, one in people.items()},
            **sessions,
        }


@pytest.fixture
def victims(apart: Service) -> Iterator[Victims]:
    with new_tenant(apart) as tenant, new_tenant(apart) as other:
        made = Victims(apart, tenant, other)
        yield made
        for person in made.people:
            person.close()


async def spoil(service: Service, statement: str, names: dict[str, str]) -> None:
    """Run a statement as the database's owner; `{name}` stands for an id."""
    quoted = {name: f"'{value}'" for name, value in names.items()}
    async with owner_of(service.database) as owner:
        assert await owner.execute(statement.format(**quoted)) not in ("UPDATE 0", "INSERT 0 0")


MEMBERSHIPS = {
    "a role raised": (
        "viewer",
        "UPDATE memberships SET role = 'owner' WHERE user_id = {viewer} AND tenant_id = {tenant}",
    ),
    "a role copied with its MAC": (
        "viewer",
        "UPDATE memberships m SET role = o.role, mac = o.mac FROM memberships o WHERE m.user_id = {viewer} "
        "AND m.tenant_id = {tenant} AND o.user_id = {admin} AND o.tenant_id = {tenant}",
    ),
    "a role of another tenant": (
        "viewer",
        "UPDATE memberships m SET role = o.role, mac = o.mac FROM memberships o WHERE m.user_id = {viewer} "
        "AND m.tenant_id = {tenant} AND o.user_id = {stranger} AND o.tenant_id = {other}",
    ),
    "a MAC cut short": (
        "admin",
        "UPDATE memberships SET mac = substr(mac, 1, 4) WHERE user_id = {admin} AND tenant_id = {tenant}",
    ),
    "another beginning": (
        "admin",
        "UPDATE memberships SET created_at = created_at - interval '1 day' WHERE user_id = {admin} "
        "AND tenant_id = {tenant}",
    ),
    "no MAC": ("admin", "UPDATE memberships SET mac = '' WHERE user_id = {admin} AND tenant_id = {tenant}"),
}


@pytest.mark.parametrize("what", MEMBERSHIPS)
async def test_a_membership_that_the_signer_did_not_write_is_none(apart: Service, victims: Victims, what: str) -> None:
    who, statement = MEMBERSHIPS[what]
    person: Person = getattr(victims, who)
    await spoil(apart, statement, victims.names)

    told = [say(apart, name, NOTHING[name], of(person)) for name in ("CreateAgents", "RevokeAgentTokens", "SignOrder")]

    assert {answer["kind"] for answer in told} == {"BadProof"}
    acted = person.post("/agents", json={"id": "mine", "name": "Mine"})
    assert acted.status_code in (401, 403)
    assert person.refresh().status_code == 503


async def test_a_membership_that_was_added_opens_no_tenant(apart: Service, victims: Victims) -> None:
    added = (
        "INSERT INTO memberships SELECT {other}, user_id, role, mac, created_at FROM memberships "
        "WHERE user_id = {admin} AND tenant_id = {tenant}"
    )
    await spoil(apart, added, victims.names)

    answer = victims.admin.post("/auth/session/tenant", json={"tenantId": victims.other.id})

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")


IDENTITIES = {
    "pointed at another person": "UPDATE identities SET user_id = {admin} WHERE user_id = {stranger}",
    "given another name": "UPDATE identities SET subject = '{wallet}' WHERE user_id = {admin}",
    "given another name and its MAC": (
        "UPDATE identities SET subject = '{wallet}', mac = (SELECT mac FROM identities WHERE user_id = {stranger}) "
        "WHERE user_id = {admin}"
    ),
}


@pytest.mark.parametrize("what", IDENTITIES)
async def test_a_wallet_opens_nobody_elses_account(apart: Service, victims: Victims, what: str) -> None:
    wallet = victims.stranger.wallet if what == "pointed at another person" else Wallet()
    await spoil(apart, IDENTITIES[what].replace("{wallet}", wallet.address), victims.names)

    signed = wallet.sign_in(says(apart, victims.poor.ok("GET", "/auth/nonce")["nonce"]))
    answer = victims.poor.post("/auth/verify", json={"message": signed.message, "signature": signed.signature})

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")


SESSIONS = {
    "a second factor": ("poor", "UPDATE sessions SET mfa_at = now() WHERE id = {poor_session}"),
    "a later second factor": (
        "admin",
        "UPDATE sessions SET mfa_at = mfa_at + interval '1 hour' WHERE id = {admin_session}",
    ),
    "how it began": ("poor", "UPDATE sessions SET amr = '{{passkey,mfa}}' WHERE id = {poor_session}"),
    "another person": ("poor", "UPDATE sessions SET user_id = {admin} WHERE id = {poor_session}"),
    "a second factor with a MAC of another": (
        "poor",
        "UPDATE sessions s SET mfa_at = o.mfa_at, amr = o.amr, mac = o.mac FROM sessions o "
        "WHERE s.id = {poor_session} AND o.id = {admin_session}",
    ),
}


@pytest.mark.parametrize("what", SESSIONS)
async def test_a_session_that_the_signer_did_not_write_mints_nothing(
    apart: Service, victims: Victims, what: str
) -> None:
    who, statement = SESSIONS[what]
    person: Person = getattr(victims, who)
    await spoil(apart, statement, victims.names)

    following = person.refresh(), person.post("/auth/session/tenant", json={"tenantId": victims.tenant.id})

    assert following[0].status_code == 503
    assert following[1].status_code in (401, 503)


async def test_a_time_in_a_row_raises_no_token(apart: Service, victims: Victims) -> None:
    await spoil(apart, "UPDATE sessions SET mfa_at = now() WHERE id = {poor_session}", victims.names)

    assert refusal(say(apart, "RevokeAgentTokens", OF_AGENT, of(victims.poor))) == "mfa_required"


async def test_a_session_in_another_tenant_of_a_row_reaches_only_ones_own(apart: Service, victims: Victims) -> None:
    await spoil(apart, "UPDATE sessions SET tenant_id = {other} WHERE id = {admin_session}", victims.names)

    answer = victims.admin.refresh()

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "not_a_member")


async def test_an_mfa_policy_that_was_loosened_is_refused(apart: Service, victims: Victims) -> None:
    names = victims.names
    victims.tenant.ok("PUT", f"/tenants/{victims.tenant.id}/config", {"displayName": "Shown"})
    loosened = (
        "UPDATE tenant_config SET judging = jsonb_set(judging::jsonb, '{{mfa}}', "
        '\'{{"requireFor": {{"tenantAdmin": false}}}}\')::text WHERE tenant_id = {tenant}'
    )
    await spoil(apart, loosened, names)

    told = say(apart, "RevokeAgentTokens", OF_AGENT, of(victims.poor))

    assert told["type"] == "Failed"
    assert told["kind"] in ("BadProof", "Unavailable")


# ---- a contract wallet is the api's word


def test_the_word_that_a_contract_agreed_never_opens_a_wallets_account(service: Service) -> None:
    with closing(sign_in(service)) as person:
        nonce = person.ok("GET", "/auth/nonce")["nonce"]
        text = says(service, nonce).text(person.wallet.address)

        told = say(
            service, "SignInWithWallet", {"message": text, "signature": "0x" + "ab" * 65, "by_contract": True}, None
        )

        assert told["type"] == "Done"
        assert told["data"]["user"]["id"] != person.id
        assert told["data"]["tenant"]["id"] == f"personal-{told['data']['user']['id']}"


def test_without_that_word_a_foreign_signature_opens_nothing(service: Service) -> None:
    with closing(sign_in(service)) as person:
        nonce = person.ok("GET", "/auth/nonce")["nonce"]
        text = says(service, nonce).text(person.wallet.address)

        told = say(service, "SignInWithWallet", {"message": text, "signature": Wallet().sign(text)}, None)

    assert (told["kind"], told["code"]) == ("BadProof", "contract_needed")


# ---- where self-registration is off


async def test_where_sign_ups_are_closed_nobody_is_made_and_who_is_known_comes_in(apart: Service) -> None:
    sockets = {"SERVICE_IDENTITY_SOCKET": str(apart.home / "run" / "closed.sock")}
    counted = "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM tenants), (SELECT count(*) FROM sessions)"
    with (
        closing(sign_in(apart)) as known,
        closing(sign_in(apart)) as homeless,
        platform_client(apart) as platform,
        apart.beside("identity", SERVICE_ALLOW_SELF_REGISTRATION="false", **sockets),
        connect(apart, "closed") as wire,
    ):
        platform.ok("DELETE", f"/platform/tenants/{homeless.tenant}")
        wire.say({"version": VERSION, "process": "api"})
        assert wire.hear()["process"] == "identity"

        def by_wallet(wallet: Wallet) -> Any:
            signed = wallet.sign_in(says(apart, wire.ask("NewNonce")["data"]["nonce"]))
            return wire.ask("SignInWithWallet", {"message": signed.message, "signature": signed.signature})

        async with owner_of(apart.database) as owner:
            before = await owner.fetchrow(counted)
            code = wire.ask("NewEmailCode", {"email": "new@example.com"})["data"]["code"]
            refused = [
                by_wallet(Wallet()),
                wire.ask("SignInWithEmail", {"email": "new@example.com", "code": code}),
                by_wallet(homeless.wallet),
            ]
            assert await owner.fetchrow(counted) == before
        admitted = by_wallet(known.wallet)

    assert {(told["kind"], told["code"]) for told in refused} == {("Forbidden", "registration_closed")}
    assert "ask the operator" in refused[0]["message"]
    assert admitted["data"]["user"]["id"] == known.id
