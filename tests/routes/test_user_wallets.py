"""Wallets of people: by their own session in their own tenant, under the deployment's rules."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from custody.policies.user_wallets import VARIABLE, default_policies
from ops import places
from tests.fixtures.callers import ADDRESS, Client, Tenant, rule
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.envelopes import seal
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.routes.orders import note
from tests.routes.vault.bitcoin import payment, psbt_body
from tests.routes.vault.test_imports import evm_key, status_and_code

WALLET = "/user/me/wallet"


@pytest.fixture
def person(service: Service) -> Iterator[Person]:
    """Somebody in their own tenant, with a second factor."""
    who = sign_in(service)
    who.enrol_totp()
    yield who
    who.close()


def make(person: Person, index: int = 0) -> dict[str, Any]:
    return person.ok("POST", WALLET, {"walletIndex": index})


def begin(person: Person, chain: str = "evm", **more: Any) -> dict[str, Any]:
    return person.ok("POST", f"{WALLET}/import/init", {"chain": chain, **more})


def submit(person: Person, body: dict[str, Any]) -> httpx.Response:
    return person.post(f"{WALLET}/import/submit", json=body)


def test_a_wallet_is_made_once_and_listed(person: Person) -> None:
    first = person.post(WALLET, json={})
    again = person.post(WALLET, json={"walletIndex": 0})
    second = person.post(WALLET, json={"walletIndex": 255})

    assert (first.status_code, again.status_code, second.status_code) == (201, 200, 201)
    assert first.json()["data"] == again.json()["data"]
    assert first.json()["data"]["agentId"] == f"user-wallet-{person.id}-0"
    assert "no-store" in first.headers["cache-control"]
    assert [one["walletIndex"] for one in person.ok("GET", "/user/me/wallets")] == [0, 255]
    policies = person.ok("GET", f"/agents/{first.json()['data']['agentId']}/policies")
    assert [(one["type"], one["config"]) for one in policies] == [
        ("rate-limit", {"maxTxPerHour": 60, "maxTxPerDay": 500})
    ]


@pytest.mark.parametrize("index", [-1, 256, "0", 1.5, None, [0]])
def test_an_index_is_a_number_from_0_to_255(index: Any, person: Person) -> None:
    assert status_and_code(person.post(WALLET, json={"walletIndex": index})) == (400, "bad_body")


def test_of_many_who_ask_at_once_one_wallet_comes(person: Person) -> None:
    with ThreadPoolExecutor(16) as crowd:
        answers = list(crowd.map(lambda _: person.post(WALLET, json={}), range(16)))

    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 15}
    assert len({answer.json()["data"]["walletAddresses"]["evm"] for answer in answers}) == 1


def test_a_person_signs_with_their_session(person: Person) -> None:
    wallet = make(person)
    vault = f"/vault/{wallet['agentId']}"
    listed = rule("allowed-chains", chains=["bitcoin:regtest", 1, 31337])
    person.ok("PUT", f"/agents/{wallet['agentId']}/policies", [listed])
    twin = Client(base_url=person.base_url, headers=person.headers, timeout=30)
    twin.id = wallet["agentId"]

    answers = [
        person.post(f"{vault}/sign", json={"to": ADDRESS, "value": "1", "broadcast": False}),
        person.post(f"{vault}/sign-typed-data", json=note()),
        person.post(f"{vault}/sign-bitcoin-psbt", json=psbt_body(payment(twin, 10_000))),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200], [answer.text for answer in answers]
    assert len(person.ok("GET", f"{vault}/history")) == 3
    twin.close()


def test_imports_and_signers_take_the_personal_tenants_session_alone(
    service: Service, tenant: Tenant, person: Person
) -> None:
    of_a_team = member(service, tenant, "owner", mfa=True)
    asks = [
        ("POST", f"{WALLET}/import/init", {"chain": "evm"}),
        ("GET", f"{WALLET}/signers", None),
        ("POST", f"{WALLET}/signers", {"subjectId": "x"}),
        ("DELETE", f"{WALLET}/signers/00000000-0000-0000-0000-000000000000", None),
    ]
    for method, path, body in asks:
        answer = of_a_team.request(method, path, json=body)
        assert status_and_code(answer) == (403, "personal_session_required"), path
    of_a_team.close()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", WALLET, {}),
        ("GET", "/user/me/wallets", None),
        ("POST", f"{WALLET}/import/init", {"chain": "evm"}),
        ("GET", f"{WALLET}/signers", None),
        ("POST", f"{WALLET}/signers", {"subjectId": "x"}),
    ],
)
def test_each_needs_a_recent_second_factor(method: str, path: str, body: Any, service: Service) -> None:
    without = sign_in(service)
    answer = without.request(method, path, json=body)
    without.close()

    assert status_and_code(answer)[1] == "mfa_required"


def test_an_agent_of_that_name_is_made_by_nobody_else(person: Person, tenant: Tenant) -> None:
    name = f"user-wallet-{person.id}-9"

    assert status_and_code(tenant.post("/agents", json={"id": name, "name": "n"})) == (400, "agent_id_reserved")
    assert status_and_code(person.post("/agents", json={"id": name, "name": "n"})) == (400, "agent_id_reserved")
    batch = tenant.post("/agents/batch", json={"agents": [{"id": name, "name": "n"}, {"id": "other", "name": "n"}]})
    assert "user-wallet-" in batch.json()["data"]["errors"][0]["error"]
    assert [one["id"] for one in batch.json()["data"]["created"]] == ["other"]


def test_a_key_is_imported_and_the_default_rules_are_back(person: Person) -> None:
    wallet = make(person)
    path = f"/agents/{wallet['agentId']}/policies"
    person.ok("PUT", path, [rule("spending-limit", maxPerDay="1")])
    key, address = evm_key()
    session = begin(person)
    assert session["aad"] == {
        "importSessionId": session["importSessionId"], "tenantId": f"personal-{person.id}", "userId": person.id,
        "agentId": wallet["agentId"], "chain": "evm", "walletIndex": 0, "appClientId": None,
    }  # fmt: skip

    answer = submit(person, seal(session, key))

    assert answer.json()["data"] == {
        "agentId": wallet["agentId"], "walletAddress": address, "chain": "evm", "walletIndex": 0, "imported": True,
    }  # fmt: skip
    assert [one["type"] for one in person.ok("GET", path)] == ["rate-limit"]
    order = {"to": ADDRESS, "value": "1", "broadcast": False}
    assert person.post(f"/vault/{wallet['agentId']}/sign", json=order).status_code == 200
    again = submit(person, seal(session, key))
    assert (status_and_code(again), again.json()["error"]) == (
        (400, "import_session_invalid"),
        "Encrypted import session is invalid or expired",
    )


def test_of_many_imports_at_once_one_succeeds(person: Person) -> None:
    make(person)
    session = begin(person)
    bodies = [seal(session, evm_key()[0]) for _ in range(32)]

    with ThreadPoolExecutor(32) as crowd:
        answers = Counter(crowd.map(lambda body: submit(person, body).status_code, bodies))

    assert answers[200] == 1
    assert set(answers) <= {200, 400, 429, 503}


def test_the_index_of_submit_is_that_of_init(person: Person) -> None:
    make(person)
    make(person, 1)
    key, _ = evm_key()
    of_one, of_zero = begin(person, walletIndex=1), begin(person)

    assert status_and_code(submit(person, seal(of_one, key))) == (400, "import_wrong_agent")
    assert status_and_code(submit(person, seal(of_zero, key, walletIndex=1))) == (400, "import_wrong_agent")
    assert status_and_code(submit(person, seal(of_one, key, walletIndex=2))) == (400, "wrong_wallet_index")
    assert submit(person, seal(of_one, key, walletIndex=1)).status_code == 200


def test_another_persons_session_is_none(person: Person, service: Service) -> None:
    other = sign_in(service)
    other.enrol_totp()
    make(person)
    make(other)
    session = begin(person)

    assert status_and_code(submit(other, seal(session, evm_key()[0]))) == (400, "import_session_invalid")
    assert submit(person, seal(session, evm_key()[0])).status_code == 200
    other.close()


def test_there_is_no_import_into_a_wallet_that_was_not_made(person: Person) -> None:
    assert status_and_code(person.post(f"{WALLET}/import/init", json={"chain": "evm"})) == (400, "wrong_wallet_index")


def test_a_delegated_signer_is_made_listed_and_revoked(person: Person) -> None:
    wallet = make(person)

    signer = person.ok("POST", f"{WALLET}/signers", {"subjectId": "my-bot"})

    assert signer["credentialSecret"]
    assert (signer["agentId"], signer["signerType"], signer["subjectType"]) == (
        wallet["agentId"],
        "delegated",
        "external",
    )
    assert signer["permissions"] == ["sign_message", "sign_transaction"]
    listed = person.ok("GET", f"{WALLET}/signers?walletIndex=0&status=active")["signers"]
    assert [one["id"] for one in listed] == [signer["id"]]
    assert "credentialSecret" not in listed[0]
    revoked = person.ok("DELETE", f"{WALLET}/signers/{signer['id']}?walletIndex=0")
    assert (revoked["status"], "credentialSecret" in revoked) == ("revoked", False)
    assert person.ok("GET", f"{WALLET}/signers?status=active")["signers"] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"keyType": "p256"}, "bad_body"),
        ({"policyIds": []}, "bad_body"),
        ({"publicKey": "x"}, "bad_body"),
        ({"credentialSecret": "x"}, "bad_body"),
        ({"issueCredential": False}, "bad_body"),
        ({"signerType": "owner"}, "bad_body"),
        ({"permissions": ["export_private_key"]}, "user_signer_refused"),
        ({"permissions": ["sign_transaction", "export_private_key"]}, "user_signer_refused"),
        *(({"permissions": [word]}, "unknown_permission") for word in ("owner", "recovery", "policy", "quorum", "*")),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value),
)
def test_a_users_signer_has_a_credential_and_no_power_over_the_wallet(
    body: dict[str, Any], code: str, person: Person
) -> None:
    make(person)

    assert status_and_code(person.post(f"{WALLET}/signers", json={"subjectId": "x", **body})) == (400, code)


def test_another_persons_signer_is_not_found(person: Person, service: Service) -> None:
    make(person)
    signer = person.ok("POST", f"{WALLET}/signers", {"subjectId": "x"})
    other = sign_in(service)
    other.enrol_totp()
    before = other.delete(f"{WALLET}/signers/{signer['id']}")
    make(other)
    after = other.delete(f"{WALLET}/signers/{signer['id']}")
    other.close()

    assert (status_and_code(before), status_and_code(after)) == ((404, "user_wallet_absent"), (404, "signer_absent"))
    assert [one["status"] for one in person.ok("GET", f"{WALLET}/signers")["signers"]] == ["active"]


def test_a_signer_belongs_to_its_wallets_index(person: Person) -> None:
    make(person)
    make(person, 1)
    signer = person.ok("POST", f"{WALLET}/signers", {"subjectId": "x", "walletIndex": 1})

    assert person.delete(f"{WALLET}/signers/{signer['id']}").status_code == 404
    assert person.ok("GET", f"{WALLET}/signers")["signers"] == []
    assert person.delete(f"{WALLET}/signers/{signer['id']}?walletIndex=1").status_code == 200


def test_the_flag_of_peoples_imports_must_be_on(postgres_home: places.Home, worker_id: str) -> None:
    off = {"SERVICE_ALLOW_USER_PRIVATE_KEY_IMPORT": "false"}
    with deploy(database_apart(postgres_home, f"{worker_id}_user_imports"), **off) as service:
        person = sign_in(service)
        person.enrol_totp()
        agent = make(person)["agentId"]
        answers = [
            person.post(path, json={"chain": "evm"})
            for path in (f"{WALLET}/import/init", f"/vault/{agent}/import/init")
        ]
        person.close()

    assert [status_and_code(answer) for answer in answers] == [(403, "import_disabled")] * 2


def test_the_operators_file_has_the_default_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps([rule("spending-limit", maxPerDay="5")]))

    assert [one.type for one in default_policies({VARIABLE: str(file)})] == ["spending-limit"]
    for bad in ("{}", "[{}]", "nonsense", json.dumps([rule("no-such-type")])):
        file.write_text(bad)
        with pytest.raises(ValueError, match=VARIABLE):
            default_policies({VARIABLE: str(file)})
    with pytest.raises(ValueError, match=VARIABLE):
        default_policies({VARIABLE: str(tmp_path / "absent")})
