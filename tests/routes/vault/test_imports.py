"""Keys imported into agents: sealed to one-time keys, in place of wallets that never signed."""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import coincurve
import httpx
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from solders.keypair import Keypair

from custody.chains.evm.address import address_of
from ops import places
from tests.fixtures.approvers import approver, quorum
from tests.fixtures.callers import ADDRESS, Agent, Client, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.envelopes import SPKI, b64, seal, unb64
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.routes.orders import note

N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
ON = dict.fromkeys(("SERVICE_ALLOW_PRIVATE_KEY_IMPORT", "SERVICE_ALLOW_VAULT_PRIVATE_KEY_IMPORT"), "true")


def begin(client: Client, agent: Agent | str, chain: str = "evm") -> dict[str, Any]:
    name = agent if isinstance(agent, str) else agent.id
    return client.ok("POST", f"/vault/{name}/import/init", {"chain": chain})


def submit(client: Client, agent: Agent, body: dict[str, Any]) -> httpx.Response:
    return client.post(f"/vault/{agent.id}/import/submit", json=body)


def status_and_code(answer: httpx.Response) -> tuple[int, str | None]:
    data = answer.json()["data"]
    return answer.status_code, data.get("code")


def evm_key() -> tuple[str, str]:
    """A fresh key in hex, and its address."""
    key = coincurve.PrivateKey(secrets.token_bytes(32))
    return key.secret.hex(), address_of(key.public_key.format(compressed=False))


def solana_key() -> tuple[Keypair, str]:
    pair = Keypair()
    return pair, str(pair.pubkey())


def test_an_imported_key_is_the_agents_from_then_on(as_owner: Person, agent: Agent) -> None:
    key, address = evm_key()
    before = agent.evm_address
    session = begin(as_owner, agent)
    assert session["algorithm"] == "X25519-HKDF-SHA256-AES-256-GCM"
    assert unb64(session["publicKey"])[:12] == SPKI
    assert session["aad"] == {
        "importSessionId": session["importSessionId"], "tenantId": as_owner.tenant, "agentId": agent.id, "chain": "evm",
    }  # fmt: skip

    answer = submit(as_owner, agent, seal(session, "0x" + key))

    assert answer.json()["data"] == {"agentId": agent.id, "walletAddress": address, "chain": "evm"}
    assert "no-store" in answer.headers["cache-control"]
    shown = as_owner.ok("GET", f"/agents/{agent.id}")
    assert shown["walletAddresses"]["evm"] == address
    assert shown["previousWallets"] == [{"family": "evm", "address": before}]
    assert agent.sign().status_code == 200
    assert [one["previousWallets"] for one in as_owner.ok("GET", "/agents") if one["id"] == agent.id] == [
        shown["previousWallets"]
    ]


@pytest.mark.parametrize("form", ["base58", "numbers", "seed"])
def test_a_solana_key_is_imported_as_wallets_write_it(form: str, as_owner: Person, agent: Agent) -> None:
    pair, address = solana_key()
    raw = bytes(pair)[:32] if form == "seed" else bytes(pair)
    key = str(pair) if form == "base58" else json.dumps(list(raw), indent=1) + "\n"

    answer = submit(as_owner, agent, seal(begin(as_owner, agent, "solana"), key))

    assert answer.json()["data"] == {"agentId": agent.id, "walletAddress": address, "chain": "solana"}


def _halves() -> bytes:
    return bytes(Keypair())[:32] + bytes(Keypair())[32:]


# Plaintexts that are no key.
NO_KEYS: dict[str, tuple[str, Callable[[], str | bytes]]] = {
    "63 digits": ("evm", lambda: "1" * 63),
    "65 digits": ("evm", lambda: "1" * 65),
    "a space within": ("evm", lambda: "1" * 32 + " " + "1" * 32),
    "zero": ("evm", lambda: "0" * 64),
    "n": ("evm", lambda: f"{N:064x}"),
    "n + 1": ("evm", lambda: f"{N + 1:064x}"),
    "UTF-16": ("evm", lambda: ("1" * 64).encode("utf-16")),
    "NUL behind": ("evm", lambda: "1" * 64 + "\0"),
    "32 bytes": ("evm", lambda: b"\1" * 32),
    "64 bytes": ("evm", lambda: "1" * 128),
    "halves that disagree": ("solana", lambda: json.dumps(list(_halves()))),
    "65 numbers": ("solana", lambda: json.dumps([*bytes(Keypair()), 1])),
    "256 in it": ("solana", lambda: json.dumps([256, *bytes(Keypair())[1:]])),
    "floats": ("solana", lambda: json.dumps([float(one) for one in bytes(Keypair())])),
    "letters that base58 lacks": ("solana", lambda: str(Keypair())[:-4] + "0OIl"),
    "nested": ("solana", lambda: json.dumps([list(bytes(Keypair()))])),
    "deeply nested": ("solana", lambda: "[" * 2_000),
    "nothing much": ("solana", lambda: "["),
    "a phrase": ("solana", lambda: "legal winner thank year wave sausage worth useful legal winner thank yellow"),
}


@pytest.mark.parametrize("name", NO_KEYS)
def test_a_plaintext_that_is_no_key_leaves_the_session_open(name: str, as_owner: Person, agent: Agent) -> None:
    chain, made = NO_KEYS[name]
    session = begin(as_owner, agent, chain)

    answer = submit(as_owner, agent, seal(session, made()))
    assert status_and_code(answer) == (400, "import_envelope")
    assert answer.json()["error"].startswith(f"The envelope opens, but what is in it is no private key of {chain}: ")
    good = evm_key()[0] if chain == "evm" else str(Keypair())
    assert submit(as_owner, agent, seal(session, good)).status_code == 200


@pytest.mark.parametrize("key", ["1".zfill(64), f"{N - 1:064x}", f"{N - 1:064X}", "0x" + "2".zfill(64)])
def test_every_number_below_the_order_is_a_key(key: str, as_owner: Person, tenant: Tenant, service: Service) -> None:
    # These keys are everybody's, and two agents of a tenant cannot have one.
    with new_tenant(service) as alone:
        owner = member(service, alone, "owner", mfa=True)
        agent = alone.agent()
        assert submit(owner, agent, seal(begin(owner, agent), key)).status_code == 200
        owner.close()


def _flip(text: str) -> str:
    raw = bytearray(unb64(text))
    raw[-1] ^= 1
    return b64(bytes(raw))


def _low_order(number: int) -> str:
    points = (
        "00" * 32, "01" + "00" * 31, "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157", "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f", "ee" + "ff" * 30 + "7f",
    )  # fmt: skip
    return b64(SPKI + bytes.fromhex(points[number]))


# What is wrong with an envelope whose key would be right.
ENVELOPES: dict[str, Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]] = {
    **{
        f"iv of {count} bytes": lambda body, session, count=count: {**body, "iv": b64(bytes(count))}
        for count in (11, 13, 16)
    },
    **{
        f"tag of {count} bytes": lambda body, session, count=count: {**body, "tag": b64(bytes(count))}
        for count in (15, 17)
    },
    **{
        f"{name} with one bit flipped": lambda body, session, name=name: {**body, name: _flip(body[name])}
        for name in ("iv", "ciphertext", "tag", "ephemeralPublicKey")
    },
    **{
        f"low-order point {number}": lambda body, session, number=number: {
            **body,
            "ephemeralPublicKey": _low_order(number),
        }
        for number in range(7)
    },
    "a ciphertext of 4,097 bytes": lambda body, session: {**body, "ciphertext": b64(bytes(4_097))},
    "an SPKI of 43 bytes": lambda body, session: {**body, "ephemeralPublicKey": b64(SPKI + bytes(31))},
    "an SPKI of 45 bytes": lambda body, session: {**body, "ephemeralPublicKey": b64(SPKI + bytes(33))},
    "an SPKI of X448": lambda body, session: {
        **body,
        "ephemeralPublicKey": b64(bytes.fromhex("302a300506032b656f032100") + bytes(32)),
    },
    "an SPKI of Ed25519": lambda body, session: {
        **body,
        "ephemeralPublicKey": b64(bytes.fromhex("302a300506032b6570032100") + b"\1" * 32),
    },
    "spare bits": lambda body, session: {**body, "tag": body["tag"][:-1] + "_"},
    "info of another chain": lambda body, session: seal(
        session, evm_key()[0], info=f"service:vault-import:v1:t:a:solana:{session['importSessionId']}"
    ),
    "additional data of another session": lambda body, session: seal(session, evm_key()[0], aad="x"),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_that_does_not_open_gets_one_answer(name: str, as_owner: Person, agent: Agent) -> None:
    session = begin(as_owner, agent)
    good = seal(session, evm_key()[0])

    answer = submit(as_owner, agent, ENVELOPES[name](good, session))

    assert status_and_code(answer) == (400, "import_envelope")
    assert answer.json()["error"].startswith("The envelope does not open; seal it again")
    assert submit(as_owner, agent, good).status_code == 200


@pytest.mark.parametrize("field", ["ephemeralPublicKey", "iv", "ciphertext", "tag"])
@pytest.mark.parametrize("end", ["=", "+", "/", "\n", " "])
def test_base64url_has_one_spelling(field: str, end: str, as_owner: Person, agent: Agent) -> None:
    body = seal(begin(as_owner, agent), evm_key()[0])

    assert status_and_code(submit(as_owner, agent, {**body, field: body[field] + end})) == (400, "bad_body")


def test_a_key_in_the_open_is_refused_and_repeated_nowhere(as_owner: Person, agent: Agent, service: Service) -> None:
    key, _ = evm_key()
    body = seal(begin(as_owner, agent), key)

    answer = submit(as_owner, agent, {**body, "privateKey": key})

    assert status_and_code(answer) == (400, "bad_body")
    assert key not in answer.text
    assert submit(as_owner, agent, body).status_code == 200
    assert all(key not in file.read_text(errors="replace") for file in service.home.rglob("*.log"))


def test_a_session_serves_once(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    session = begin(as_owner, agent)
    key, _ = evm_key()
    assert submit(as_owner, agent, seal(session, key)).status_code == 200

    again = submit(as_owner, agent, seal(session, key))

    assert status_and_code(again) == (400, "import_session_invalid")
    assert again.json()["error"] == "Encrypted import session is invalid or expired"


def test_of_many_who_submit_at_once_one_succeeds(as_owner: Person, agent: Agent) -> None:
    session = begin(as_owner, agent)
    bodies = [seal(session, evm_key()[0]) for _ in range(32)]

    with ThreadPoolExecutor(32) as crowd:
        answers = Counter(crowd.map(lambda body: submit(as_owner, agent, body).status_code, bodies))

    assert answers[200] == 1
    assert set(answers) <= {200, 400, 429, 503}


def test_a_wrong_agent_leaves_the_session_and_five_end_it(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    other = tenant.agent()
    first, second = begin(as_owner, agent), begin(as_owner, agent)
    assert status_and_code(submit(as_owner, other, seal(first, evm_key()[0]))) == (400, "import_wrong_agent")
    assert submit(as_owner, agent, seal(first, evm_key()[0])).status_code == 200

    for _ in range(5):
        assert status_and_code(submit(as_owner, other, seal(second, evm_key()[0])))[1] == "import_wrong_agent"
    assert status_and_code(submit(as_owner, agent, seal(second, evm_key()[0]))) == (400, "import_session_invalid")


def test_a_session_ends_with_its_agent(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent()
    session = begin(as_owner, agent)
    tenant.ok("DELETE", f"/agents/{agent.id}")
    twin = tenant.agent(agent_id=agent.id)

    assert status_and_code(submit(as_owner, twin, seal(session, evm_key()[0]))) == (400, "import_session_invalid")


async def test_a_session_ends_after_ten_minutes(as_owner: Person, agent: Agent, owner: asyncpg.Connection) -> None:
    session = begin(as_owner, agent)
    await owner.execute(
        "UPDATE import_sessions SET expires_at = now() - interval '1 second' WHERE id = $1::uuid",
        session["importSessionId"],
    )

    answer = await asyncio.to_thread(submit, as_owner, agent, seal(session, evm_key()[0]))

    assert status_and_code(answer) == (400, "import_session_invalid")


def test_another_tenants_session_is_none(as_owner: Person, agent: Agent, service: Service) -> None:
    session = begin(as_owner, agent)
    with new_tenant(service) as other:
        stranger = member(service, other, "owner", mfa=True)
        theirs = other.agent(agent_id=agent.id)
        answer = submit(stranger, theirs, seal(session, evm_key()[0]))
        stranger.close()

    assert status_and_code(answer) == (400, "import_session_invalid")


def _sign(agent: Agent, tenant: Tenant) -> None:
    assert agent.sign().status_code == 200


def _sign_typed_data(agent: Agent, tenant: Tenant) -> None:
    assert agent.post(f"/vault/{agent.id}/sign-typed-data", json=note()).status_code == 200


def _waits(agent: Agent, tenant: Tenant) -> None:
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("auto-approve-threshold", threshold="0")])
    assert agent.sign(value=1).status_code == 202


@pytest.mark.parametrize("use", [_sign, _sign_typed_data, _waits], ids=["signed", "typed data", "waits"])
def test_a_wallet_that_was_used_is_not_replaced(
    use: Callable[[Agent, Tenant], None], as_owner: Person, tenant: Tenant
) -> None:
    agent = tenant.agent()
    session = begin(as_owner, agent)
    use(agent, tenant)

    assert status_and_code(submit(as_owner, agent, seal(session, evm_key()[0]))) == (409, "wallet_in_use")
    # The other family never signed.
    assert submit(as_owner, agent, seal(begin(as_owner, agent, "solana"), str(Keypair()))).status_code == 200


def test_a_wallet_that_only_simulated_or_was_refused_is_replaced(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="1"))
    agent.ok("POST", f"/vault/{agent.id}/simulate", {"kind": "evm", "request": {"to": ADDRESS, "value": "1"}})
    assert agent.sign(value=2).status_code == 403

    assert submit(as_owner, agent, seal(begin(as_owner, agent), evm_key()[0])).status_code == 200


def test_a_key_is_one_agents_of_a_tenant(as_owner: Person, tenant: Tenant, service: Service) -> None:
    key, _ = evm_key()
    first, second = tenant.agent(), tenant.agent()
    assert submit(as_owner, first, seal(begin(as_owner, first), key)).status_code == 200

    assert status_and_code(submit(as_owner, second, seal(begin(as_owner, second), key))) == (409, "wallet_taken")
    with new_tenant(service) as other:
        theirs, person = other.agent(), member(service, other, "owner", mfa=True)
        assert submit(person, theirs, seal(begin(person, theirs), key)).status_code == 200
        person.close()


def test_the_attestation_tells_a_key_that_was_swapped(as_owner: Person, agent: Agent) -> None:
    session = begin(as_owner, agent)
    keys = {key["kid"]: key for key in as_owner.get("/.well-known/jwks.json").json()["keys"]}
    public = Ed25519PublicKey.from_public_bytes(unb64(keys[session["attestation"]["kid"]]["x"]))

    def text(public_key: str) -> bytes:
        stated = {name: session[name] for name in ("importSessionId", "expiresAt", "aad")}
        stated |= {"type": "custody-import-key/1", "publicKey": public_key}
        return json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()

    signature = unb64(session["attestation"]["signature"])
    public.verify(signature, text(session["publicKey"]))
    with pytest.raises(InvalidSignature):
        public.verify(signature, text(b64(SPKI + b"\7" * 32)))


def test_an_approval_quorum_keeps_keys_as_they_are(as_owner: Person, tenant: Tenant, service: Service) -> None:
    agent, voter = tenant.agent(), approver(service, tenant)
    as_owner.ok("PUT", f"/agents/{agent.id}/policies", [quorum(1, voter)])

    assert status_and_code(as_owner.post(f"/vault/{agent.id}/import/init", json={"chain": "evm"})) == (
        403,
        "import_under_quorum",
    )
    voter.person.close()


def test_open_sessions_of_a_tenant_are_bounded(service: Service) -> None:
    with new_tenant(service) as tenant:
        owner, agent = member(service, tenant, "owner", mfa=True), tenant.agent()
        for _ in range(64):
            begin(owner, agent)
        beyond = owner.post(f"/vault/{agent.id}/import/init", json={"chain": "evm"})
        owner.close()

    assert status_and_code(beyond) == (409, "too_many_imports")


def test_a_tenants_policy_forbids_imports_or_lets_its_key_begin_them(service: Service) -> None:
    with new_tenant(service) as tenant:
        agent = tenant.agent()
        path = f"/vault/{agent.id}/import/init"
        assert status_and_code(tenant.post(path, json={"chain": "evm"})) == (403, "import_by_person")
        owner = member(service, tenant, "owner", mfa=True)
        mfa: dict[str, Any] = {"requireFor": {"keyImport": False}}
        owner.ok("PUT", f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"mfa": mfa}})
        session = begin(tenant, agent)
        assert submit(tenant, agent, seal(session, evm_key()[0])).status_code == 200

        mfa["disableFor"] = {"keyImport": True}
        owner.ok("PUT", f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"mfa": mfa}})
        assert status_and_code(tenant.post(path, json={"chain": "evm"})) == (403, "import_disabled")
        assert status_and_code(owner.post(path, json={"chain": "evm"})) == (403, "import_disabled")
        owner.close()


def test_a_caller_who_may_not_import_is_told_so(
    as_owner: Person, tenant: Tenant, agent: Agent, service: Service
) -> None:
    path = f"/vault/{agent.id}/import/init"
    developer = member(service, tenant, "developer", mfa=True)
    stale = member(service, tenant, "admin")

    assert agent.post(path, json={"chain": "evm"}).status_code == 403
    assert developer.post(path, json={"chain": "evm"}).status_code == 403
    assert status_and_code(stale.post(path, json={"chain": "evm"}))[1] == "mfa_required"
    for person in (developer, stale):
        person.close()


@pytest.fixture(scope="module", params=[*ON, "both"])
def without_imports(request: pytest.FixtureRequest, postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment in which one flag is off, or both are."""
    off = {name: "false" for name in ON if request.param in (name, "both")}
    name = f"{worker_id}_imports_{[*ON, 'both'].index(request.param)}"
    with deploy(database_apart(postgres_home, name), **{**ON, **off}) as service:
        yield service


def test_both_flags_of_the_deployment_must_be_on(without_imports: Service) -> None:
    with new_tenant(without_imports) as tenant:
        agent, owner = tenant.agent(), member(without_imports, tenant, "owner", mfa=True)
        answer = owner.post(f"/vault/{agent.id}/import/init", json={"chain": "evm"})
        owner.close()

    assert status_and_code(answer) == (403, "import_disabled")


TAMPERED = {
    "another agent": "UPDATE import_sessions SET agent_id = {other} WHERE id = {session}",
    "another chain": "UPDATE import_sessions SET chain = 'solana' WHERE id = {session}",
    "a later end": "UPDATE import_sessions SET expires_at = expires_at + interval '1 hour' WHERE id = {session}",
    "another incarnation": "UPDATE import_sessions SET incarnation = gen_random_uuid() WHERE id = {session}",
    "another session's key": (
        "UPDATE sealed s SET blob = o.blob FROM sealed o WHERE s.owner = {text} AND o.owner = {theirs}"
    ),
    "used and set back": "UPDATE import_sessions SET used_at = NULL WHERE id = {session}",
}


@pytest.mark.parametrize("how", TAMPERED)
async def test_a_session_that_a_database_writer_changed_opens_nothing(
    how: str, as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent, other = tenant.agent(), tenant.agent()
    session, theirs = begin(as_owner, agent), begin(as_owner, other)
    if how == "used and set back":
        assert submit(as_owner, agent, seal(session, evm_key()[0])).status_code == 200
    where = other if how == "another agent" else agent

    await owner.execute(
        TAMPERED[how].format(
            other=f"'{other.id}'",
            session=f"'{session['importSessionId']}'::uuid",
            text=f"'{session['importSessionId']}'",
            theirs=f"'{theirs['importSessionId']}'",
        )
    )
    key = evm_key()[0] if how != "another chain" else str(Keypair())
    answer = await asyncio.to_thread(submit, as_owner, where, seal(session, key))

    assert answer.status_code == 400
    assert status_and_code(answer)[1] == "import_session_invalid"
