"""Signers of an agent: who may be one, what is shown once, and what ends at once."""

import asyncio
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import asyncpg
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.fixtures.callers import Agent, Client, Tenant, rule
from tests.fixtures.eventually import soon
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signers import new_key, new_quorum, new_signer, path_of, signer_body, spki

FIELDS = {
    "id", "agentId", "signerType", "subjectType", "subjectId", "keyType", "publicKey", "address", "chainFamily",
    "label", "permissions", "policyIds", "metadata", "hasCredential", "status", "createdAt", "updatedAt", "revokedAt",
    "notBefore", "expiresAt",
}  # fmt: skip
ABSENT = "00000000-0000-4000-8000-000000000000"


def refusal_of(somebody: Client, agent: Agent, **fields: Any) -> tuple[int, str]:
    response = somebody.post(path_of(agent, "signers"), json=signer_body(**fields))
    return response.status_code, response.json()["data"]["code"]


def test_a_credential_is_shown_once(as_owner: Person, agent: Agent) -> None:
    made = new_signer(as_owner, agent, label="the worker", metadata={"team": "ops"}, address="0xabc", chainFamily="evm")

    secret = made.pop("credentialSecret")
    assert secret.startswith("svs_")
    assert len(secret) >= 43
    assert set(made) == FIELDS
    assert (made["status"], made["keyType"], made["hasCredential"], made["metadata"]) == (
        "active", "hmac", True, {"team": "ops"},
    )  # fmt: skip
    assert as_owner.ok("GET", path_of(agent, "signers")) == [made]
    one = path_of(agent, "signers", made["id"])
    assert "credentialSecret" not in as_owner.ok("PATCH", one, {"label": "another"})
    assert "credentialSecret" not in as_owner.ok("DELETE", one)


def test_a_second_use_of_the_key_does_not_show_it_again(as_owner: Person, agent: Agent) -> None:
    body, key = signer_body(issueCredential=True), {"Idempotency-Key": "a-signer-of-ours"}
    as_owner.ok("POST", path_of(agent, "signers"), body, **key)

    again = as_owner.post(path_of(agent, "signers"), json=body, headers=key)

    assert (again.status_code, again.json()["data"]["code"]) == (409, "idempotency_secret_shown")
    assert len(as_owner.ok("GET", path_of(agent, "signers"))) == 1


def test_the_same_request_without_a_secret_is_repeated(as_owner: Person, agent: Agent) -> None:
    key = {"Idempotency-Key": "a-signer-of-ours"}
    first = as_owner.post(path_of(agent, "signers"), json=signer_body(), headers=key)
    again = as_owner.post(path_of(agent, "signers"), json=signer_body(), headers=key)

    assert (first.status_code, again.status_code, first.json()) == (201, 201, again.json())
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_no_credential_is_stored_or_told(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    secret = new_signer(as_owner, agent)["credentialSecret"]

    said = as_owner.get("/audit/events?limit=200").text + as_owner.get(f"/agents/{agent.id}/signers").text
    rows = await owner.fetch("SELECT s::text AS row FROM signers s WHERE tenant_id = $1", tenant.id)
    outbox = await owner.fetch("SELECT o::text AS row FROM outbox o WHERE tenant_id = $1", tenant.id)
    kept = await owner.fetch("SELECT i::text AS row FROM idempotency i WHERE tenant_id = $1", tenant.id)
    assert "signer.created" in said
    assert secret not in said + "".join(row["row"] for row in (*rows, *outbox, *kept))


def test_a_p256_signer_is_known_by_its_key(as_owner: Person, agent: Agent) -> None:
    key = new_key()

    made = new_signer(as_owner, agent, key=key)

    assert (made["publicKey"], made["keyType"], made["hasCredential"]) == (spki(key), "p256", False)
    assert "credentialSecret" not in made


def odd_keys() -> dict[str, str]:
    """Keys that are none, or are a second spelling of one."""
    key = new_key().public_key()
    good = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    compressed = key.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    longer = ec.generate_private_key(ec.SECP384R1()).public_key()
    off_curve = good[:-1] + bytes([good[-1] ^ 1])
    encoded = {
        "compressed": bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + compressed,
        "P-384": longer.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "a trailing byte": good + b"\0",
        "off the curve": off_curve,
        "infinity": good[:26] + b"\0",
        "only the point": point,
        "another algorithm": good.replace(bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0202")),
    }
    spelled = b64encode(good).decode()
    return {name: b64encode(der).decode() for name, der in encoded.items()} | {
        "no padding": spelled.rstrip("="),
        "a line feed": spelled[:60] + "\n" + spelled[60:],
        "base64url": spelled.replace("+", "-").replace("/", "_") if set(spelled) & set("+/") else "-" + spelled[1:],
        "empty": "",
        "no base64": "?" * 124,
    }


@pytest.mark.parametrize("odd", sorted(odd_keys()))
def test_only_one_spelling_of_a_key_is_taken(odd: str, as_owner: Person, agent: Agent) -> None:
    assert refusal_of(as_owner, agent, keyType="p256", publicKey=odd_keys()[odd]) == (400, "bad_public_key")
    assert as_owner.ok("GET", path_of(agent, "signers")) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"keyType": "p256"}, "bad_public_key"),
        ({"publicKey": spki(new_key())}, "bad_public_key"),
        ({"keyType": "p256", "publicKey": spki(new_key()), "issueCredential": True}, "credential_refused"),
        ({"permissions": ["*"]}, "unknown_permission"),
        ({"permissions": ["sign:*"]}, "unknown_permission"),
        ({"permissions": ["SIGN_TRANSACTION"]}, "unknown_permission"),
        ({"permissions": ["sign_transaction"] * 33}, "bad_body"),
        ({"policyIds": ["no-such-rule"]}, "unknown_policy"),
        ({"subjectType": "user", "subjectId": ABSENT}, "unknown_subject"),
        ({"subjectType": "user", "subjectId": "ada"}, "unknown_subject"),
        ({"metadata": {"a": "b" * 4096}}, "metadata_too_large"),
        ({"signerType": "boss"}, "bad_body"),
        ({"subjectType": "robot"}, "bad_body"),
        ({"subjectId": ""}, "bad_body"),
        ({"credentialSecret": "mine"}, "bad_body"),
        ({"keyType": "ed25519"}, "bad_body"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "bad_expiry"),
        ({"expiresAt": "2999-01-01T00:00:00.000"}, "bad_expiry"),
        ({"expiresAt": "2999-02-30T00:00:00Z"}, "bad_expiry"),
        ({"expiresAt": 32472144000}, "bad_body"),
        ({"notBefore": "tomorrow, at about noon"}, "bad_not_before"),
        ({"notBefore": "2999-01-01T00:00:00Z", "expiresAt": "2999-01-01T00:00:00Z"}, "bad_not_before"),
    ],
)
def test_an_odd_field_is_refused_by_its_name(fields: dict[str, Any], code: str, as_owner: Person, agent: Agent) -> None:
    assert refusal_of(as_owner, agent, **fields) == (400, code)
    assert as_owner.ok("GET", path_of(agent, "signers")) == []


def test_a_rule_of_another_agent_is_unknown(as_owner: Person, tenant: Tenant) -> None:
    one, other = tenant.agent(rule("allowed-chains", chains=[1])), tenant.agent(rule("allowed-chains", chains=[1]))
    (own,), (foreign,) = (tenant.ok("GET", f"/agents/{agent.id}/policies") for agent in (one, other))

    assert new_signer(as_owner, one, policyIds=[own["id"]])["policyIds"] == [own["id"]]
    assert refusal_of(as_owner, one, policyIds=[foreign["id"]]) == (400, "unknown_policy")


def test_a_user_must_be_a_member(as_owner: Person, tenant: Tenant, service: Service, agent: Agent) -> None:
    with closing(member(service, tenant, "viewer")) as viewer:
        assert new_signer(as_owner, agent, viewer.id, subjectType="user")["subjectId"] == viewer.id


def test_signers_are_paused_and_active_again(as_owner: Person, agent: Agent) -> None:
    one = path_of(agent, "signers", new_signer(as_owner, agent)["id"])

    assert as_owner.ok("PATCH", one, {"status": "paused"})["status"] == "paused"
    assert [row["status"] for row in as_owner.ok("GET", path_of(agent, "signers?status=paused"))] == ["paused"]
    assert as_owner.ok("GET", path_of(agent, "signers?status=active")) == []
    assert (
        as_owner.ok("PATCH", one, {"status": "active", "permissions": [], "signerType": "delegated"})["permissions"]
        == []
    )


def test_a_revoked_signer_stays_so(as_owner: Person, agent: Agent) -> None:
    one = path_of(agent, "signers", new_signer(as_owner, agent)["id"])

    first = as_owner.ok("DELETE", one)
    again = as_owner.ok("DELETE", one)
    changed = as_owner.patch(one, json={"status": "active"})

    assert (first["status"], first["hasCredential"]) == ("revoked", False)
    assert again == first
    assert (changed.status_code, changed.json()["data"]["code"]) == (409, "signer_revoked")
    assert [row["status"] for row in as_owner.ok("GET", path_of(agent, "signers"))] == ["revoked"]


def test_a_change_of_authority_wants_a_second_factor(
    as_owner: Person, service: Service, tenant: Tenant, agent: Agent
) -> None:
    one = path_of(agent, "signers", new_signer(as_owner, agent)["id"])
    with closing(member(service, tenant, "admin")) as admin:
        assert admin.ok("PATCH", one, {"label": "x", "metadata": {}, "address": None, "chainFamily": "solana"})
        asked = [
            admin.patch(one, json={"status": "paused"}),
            admin.patch(one, json={"policyIds": []}),
            admin.patch(one, json={"label": "y", "permissions": []}),
            admin.delete(one),
            admin.post(path_of(agent, "signers"), json=signer_body()),
        ]
    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in asked} == {(403, "mfa_required")}
    assert {answer.json()["data"]["action"] for answer in asked} == {"signers"}


def test_a_signer_of_another_agent_or_tenant_is_absent(
    as_owner: Person, service: Service, tenant: Tenant, other_tenant: Tenant
) -> None:
    agent, other = tenant.agent(), tenant.agent()
    made = new_signer(as_owner, agent)
    with closing(member(service, other_tenant, "owner", mfa=True)) as stranger:
        foreign = other_tenant.agent()
        asked = [
            as_owner.patch(path_of(other, "signers", made["id"]), json={"label": "x"}),
            as_owner.delete(path_of(other, "signers", made["id"])),
            stranger.patch(path_of(foreign, "signers", made["id"]), json={"label": "x"}),
            stranger.delete(path_of(agent, "signers", made["id"])),
            stranger.get(path_of(agent, "signers")),
        ]
    assert [answer.status_code for answer in asked] == [404] * 5
    assert as_owner.ok("GET", path_of(agent, "signers"))[0]["label"] is None


def test_an_agent_has_64_living_signers(as_owner: Person, agent: Agent) -> None:
    made = [new_signer(as_owner, agent, f"worker-{number}", key=new_key())["id"] for number in range(64)]

    full = as_owner.post(path_of(agent, "signers"), json=signer_body())
    as_owner.ok("DELETE", path_of(agent, "signers", made[0]))

    assert (full.status_code, full.json()["data"]["code"]) == (409, "too_many_signers")
    assert new_signer(as_owner, agent)["status"] == "active"


def test_changes_at_once_are_all_made(as_owner: Person, agent: Agent) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: new_signer(as_owner, agent, f"worker-{number}"), range(8)))

    assert {one["id"] for one in made} == {row["id"] for row in as_owner.ok("GET", path_of(agent, "signers"))}
    # The set holds together after all of them.
    assert as_owner.ok("PATCH", path_of(agent, "signers", made[0]["id"]), {"status": "paused"})


# A database writer's ways; each but the last breaks the seal, and the last is the old set as a whole.
FORGED = {
    "a status set back": "UPDATE signers SET status = 'active' WHERE id = $1",
    "permissions added": "UPDATE signers SET permissions = '[\"transfer\"]' WHERE id = $1",
    "a key swapped": "UPDATE signers SET public_key = decode(repeat('00', 91), 'hex') WHERE id = $1",
    "another subject": "UPDATE signers SET subject_id = 'me' WHERE id = $1",
    "a rule dropped": "UPDATE signers SET policy_ids = '[]' WHERE id = $1",
    "an end put off": "UPDATE signers SET expires_at = NULL WHERE id = $1",
    "a row deleted": "DELETE FROM signers WHERE id = $1",
    "a revoked one back": "UPDATE signers SET status = 'active' WHERE status = 'revoked' AND $1::uuid IS NOT NULL",
    "a row that we never wrote": "UPDATE signers SET signer_type = 'boss' WHERE id = $1",
    "a row with odd lists": "UPDATE signers SET permissions = '{}' WHERE id = $1",
    "the head removed": "DELETE FROM authority_heads WHERE agent_id = (SELECT agent_id FROM signers WHERE id = $1)",
    "a version before": "UPDATE agents SET authority_version = authority_version - 1 "
    "WHERE id = (SELECT agent_id FROM signers WHERE id = $1)",
}  # fmt: skip


@pytest.mark.parametrize("forged", sorted(FORGED))
async def test_a_set_that_was_tampered_with_is_not_sealed_again(
    forged: str, as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent(rule("allowed-chains", chains=[1]))
    (known,) = tenant.ok("GET", f"/agents/{agent.id}/policies")
    as_owner.ok("DELETE", path_of(agent, "signers", new_signer(as_owner, agent, "gone")["id"]))
    ends = "2999-01-01T00:00:00Z"
    paused = new_signer(as_owner, agent, key=new_key(), policyIds=[known["id"]], expiresAt=ends)
    as_owner.ok("PATCH", path_of(agent, "signers", paused["id"]), {"status": "paused"})
    # Nothing that the test looks for is there without the forgery.
    assert as_owner.ok("PATCH", path_of(agent, "signers", paused["id"]), {"label": "as it was"})

    await owner.execute(FORGED[forged], paused["id"])
    answer = as_owner.post(path_of(agent, "signers"), json=signer_body("one-more"))

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "authority_tampered")
    assert not await owner.fetchval("SELECT count(*) FROM signers WHERE subject_id = 'one-more'")


async def test_an_old_set_with_its_old_head_is_refused(
    as_owner: Person, agent: Agent, owner: asyncpg.Connection
) -> None:
    kept = new_signer(as_owner, agent, key=new_key())
    gone = new_signer(as_owner, agent, "gone", key=new_key())
    ids = "WHERE agent_id = $1 AND tenant_id = $2"
    place = (
        agent.id,
        kept["agentId"] and await owner.fetchval("SELECT tenant_id FROM signers WHERE id = $1", kept["id"]),
    )
    head = await owner.fetchrow(f"SELECT version, count, mac FROM authority_heads {ids}", *place)
    as_owner.ok("DELETE", path_of(agent, "signers", gone["id"]))
    assert head is not None

    await owner.execute("UPDATE signers SET status = 'active', revoked_at = NULL WHERE id = $1", gone["id"])
    await owner.execute(
        f"UPDATE authority_heads SET version = $3, count = $4, mac = $5 {ids}", *place, *tuple(head.values())
    )
    await owner.execute(
        "UPDATE agents SET authority_version = $3 WHERE id = $1 AND tenant_id = $2", *place, head["version"]
    )
    answer = as_owner.patch(path_of(agent, "signers", kept["id"]), json={"label": "x"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "authority_tampered")


async def test_a_row_of_another_agent_is_refused(as_owner: Person, tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent, other = tenant.agent(), tenant.agent()
    new_signer(as_owner, agent, key=new_key())
    moved = new_signer(as_owner, other, key=new_key())

    await owner.execute("UPDATE signers SET agent_id = $2 WHERE id = $1", moved["id"], agent.id)

    assert as_owner.post(path_of(agent, "signers"), json=signer_body()).status_code == 503
    assert as_owner.post(path_of(other, "signers"), json=signer_body()).status_code == 503


def test_lists_are_paged_newest_first(as_owner: Person, agent: Agent) -> None:
    made = [new_signer(as_owner, agent, f"worker-{number}")["id"] for number in range(3)]

    pages = [as_owner.get(path_of(agent, f"signers?limit=2&offset={offset}")) for offset in (0, 2)]

    assert [row["id"] for page in pages for row in page.json()["data"]] == made[::-1]
    assert [page.headers["X-Total-Count"] for page in pages] == ["3", "3"]
    assert as_owner.get(path_of(agent, "signers?status=gone")).status_code == 400


@pytest.mark.parametrize("kind", ["signers", "key_quorums"])
async def test_of_the_revoked_ones_the_newest_256_are_kept(
    kind: str, as_owner: Person, agent: Agent, owner: asyncpg.Connection
) -> None:
    signer = new_signer(as_owner, agent)["id"]
    place = path_of(agent, kind.replace("_", "-"))
    if kind == "signers":
        columns = "agent_id, signer_type, subject_type, subject_id, key_type, permissions, policy_ids, has_credential"
    else:
        columns = "agent_id, name, threshold, members, children, permissions"
        new_quorum(as_owner, agent, [signer], threshold=1)
    # Revoked rows are in no set, so they can be written without a seal.
    await owner.execute(
        f"INSERT INTO {kind} (tenant_id, id, {columns}, status, revoked_at) "
        f"SELECT tenant_id, gen_random_uuid(), {columns}, 'revoked', now() - n * interval '1 minute' "
        f"FROM {kind}, generate_series(1, 256) n WHERE agent_id = $1",
        agent.id,
    )
    (living,) = as_owner.ok("GET", f"{place}?status=active")

    as_owner.ok("DELETE", f"{place}/{living['id']}")

    kept = as_owner.ok("GET", f"{place}?status=revoked")
    assert len(kept) == 256
    assert living["id"] in {row["id"] for row in kept}
    oldest = await owner.fetchval(
        f"SELECT max(now() - revoked_at) < interval '256 minutes' FROM {kind} WHERE agent_id = $1", agent.id
    )
    assert oldest


def test_an_agent_made_again_has_no_signers(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent(agent_id="phoenix")
    signer = new_signer(as_owner, agent)
    new_quorum(as_owner, agent, [signer["id"]], threshold=1)
    tenant.ok("DELETE", "/agents/phoenix")

    again = tenant.agent(agent_id="phoenix")

    assert as_owner.ok("GET", path_of(again, "signers")) == as_owner.ok("GET", path_of(again, "key-quorums")) == []
    assert new_signer(as_owner, again)["status"] == "active"


async def test_a_row_that_changes_while_it_is_waited_for_is_never_sealed(
    as_owner: Person, agent: Agent, owner: asyncpg.Connection
) -> None:
    made = new_signer(as_owner, agent, key=new_key())
    other = b64decode(spki(new_key()))

    async with owner.transaction():
        await owner.execute("UPDATE signers SET public_key = $2 WHERE id = $1", made["id"], other)
        where = path_of(agent, "signers", made["id"])
        asked = asyncio.get_running_loop().run_in_executor(
            None, lambda: as_owner.patch(where, json={"label": "only a name"})
        )
        # Until it waits for the row that is being changed.
        await soon(lambda: owner.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"))
    answer = await asked

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "authority_tampered")


async def test_a_version_that_nobody_sealed_is_not_remembered(
    as_owner: Person, agent: Agent, owner: asyncpg.Connection
) -> None:
    new_signer(as_owner, agent, key=new_key())
    raised = "UPDATE agents SET authority_version = authority_version + $2 WHERE id = $1"

    await owner.execute(raised, agent.id, 1_000)
    assert as_owner.post(path_of(agent, "signers"), json=signer_body()).status_code == 503
    await owner.execute(raised, agent.id, -1_000)

    assert new_signer(as_owner, agent, "another")["status"] == "active"
