"""A person's ways of signing in: linked on purpose, unlinked, and never the last one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import asyncpg
import httpx
import pytest
from solders.keypair import Keypair

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.linking import (
    email_proof,
    evm_proof,
    identities_of,
    link,
    nonce_for,
    second_wallet,
    solana_message,
    solana_proof,
)
from tests.fixtures.people import Person, by_mail, fresh_address, member, says, sign_in
from tests.fixtures.server import EVM_CHAIN, Service
from tests.fixtures.sign_on import Flow
from tests.outside.authenticator import Authenticator
from tests.outside.oauth_providers import OAuthProviders
from tests.outside.smtp_server import Mailbox
from tests.outside.wallet import Wallet
from tests.routes.auth.devices import decide, new_device


def outcome(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"].get("code", "")


@pytest.fixture
def stranger(service: Service) -> Iterator[Person]:
    with closing(sign_in(service)) as somebody:
        yield somebody


# ---- what works


def test_a_second_wallet_signs_the_same_person_in(service: Service, person: Person) -> None:
    wallet = Wallet()
    answer = link(person, wallet=evm_proof(service, person, wallet))

    assert answer.status_code == 201
    made = answer.json()["data"]
    assert (made["provider"], made["providerAccountId"]) == ("wallet:ethereum", wallet.address)
    with closing(sign_in(service, wallet)) as again:
        assert again.id == person.id


def test_a_solana_wallet_is_linked_and_signs_in(service: Service, person: Person, as_nobody: Client) -> None:
    keys = Keypair()
    answer = link(person, wallet=solana_proof(service, person, keys))
    signed_in = as_nobody.ok("POST", "/auth/verify", solana_proof(service, as_nobody, keys))

    assert answer.status_code == 201
    assert identities_of(person)["wallet:solana"]["providerAccountId"] == str(keys.pubkey())
    assert signed_in["user"]["id"] == person.id


def test_an_address_is_linked_by_its_code(service: Service, person: Person, mailbox: Mailbox) -> None:
    address = fresh_address()
    answer = link(person, email=email_proof(person, mailbox, address))

    assert (answer.status_code, answer.json()["data"]["verified"]) == (201, True)
    with closing(by_mail(service, mailbox, address)) as again:
        assert again.id == person.id


def test_a_linked_wallet_stays_linked(service: Service, person: Person) -> None:
    again = link(person, wallet=evm_proof(service, person, person.wallet))

    assert again.status_code == 200
    assert len(person.ok("GET", "/auth/identities")) == 1


def test_an_unlinked_wallet_is_a_stranger(service: Service, person: Person) -> None:
    wallet = Wallet()
    account = second_wallet(service, person, wallet)

    assert person.ok("DELETE", f"/auth/identities/{account}") == {"deleted": account}
    with closing(sign_in(service, wallet)) as somebody:
        assert somebody.id != person.id


def test_sessions_that_began_in_the_same_way_end_but_for_this(
    service: Service, person: Person, mailbox: Mailbox
) -> None:
    wallet, address = Wallet(), fresh_address()
    account = second_wallet(service, person, wallet)
    link(person, email=email_proof(person, mailbox, address))
    with closing(sign_in(service, wallet)) as by_wallet, closing(by_mail(service, mailbox, address)) as by_code:
        person.ok("DELETE", f"/auth/identities/{account}")

        assert by_wallet.get("/auth/session").status_code == 401
        assert by_wallet.refresh().status_code == 401
        assert by_code.get("/auth/session").status_code == 200
        assert person.get("/auth/session").status_code == 200


@pytest.fixture
def at_google(service: Service, oauth: OAuthProviders) -> Iterator[tuple[Flow, str]]:
    """A sign-in at Google of somebody whom nobody knows, that has come back with its code."""
    oauth.google.person = {
        "sub": str(abs(hash(fresh_address())))[:18],
        "email": fresh_address(),
        "email_verified": True,
    }
    with Flow(service, "/auth/oauth/google/authorize") as flow:
        yield flow, flow.code(oauth.google.browse)


def of_flow(flow: Flow, code: str, **changed: str) -> dict[str, str]:
    given = {"code": code, "redirect_uri": str(flow.query["redirect_uri"]), "code_verifier": flow.verifier}
    return {**given, **changed}


def test_an_account_at_google_is_linked_and_signs_in(
    service: Service, oauth: OAuthProviders, person: Person, at_google: tuple[Flow, str]
) -> None:
    flow, code = at_google
    answer = link(person, oauth=of_flow(flow, code))

    assert (answer.status_code, answer.json()["data"]["provider"]) == (201, "google")
    with Flow(service, flow.path) as again, closing(again.person(oauth.google.browse)) as somebody:
        assert somebody.id == person.id


def test_a_code_links_once_and_is_spent_by_a_wrong_verifier(person: Person, at_google: tuple[Flow, str]) -> None:
    flow, code = at_google
    wrong = link(person, oauth=of_flow(flow, code, code_verifier="x" * 43))
    right = link(person, oauth=of_flow(flow, code))

    assert outcome(wrong) == (401, "code_verifier_mismatch")
    assert right.status_code == 401
    assert "google" not in identities_of(person)


def test_an_account_at_google_that_is_anothers_stays_theirs(
    service: Service, oauth: OAuthProviders, person: Person, at_google: tuple[Flow, str]
) -> None:
    flow, code = at_google
    assert flow.exchange(code).status_code == 200
    with Flow(service, flow.path) as again:
        answer = link(person, oauth=of_flow(again, again.code(oauth.google.browse)))

    assert outcome(answer) == (409, "identity_taken")


# ---- what belongs to somebody else


def test_another_persons_wallet_or_address_stays_theirs(
    service: Service, person: Person, stranger: Person, mailbox: Mailbox
) -> None:
    with closing(by_mail(service, mailbox)) as reader:
        answers = [
            link(person, wallet=evm_proof(service, person, stranger.wallet)),
            link(person, email=email_proof(person, mailbox, reader.address)),
        ]

    assert [outcome(answer) for answer in answers] == [(409, "identity_taken")] * 2
    assert len(person.ok("GET", "/auth/identities")) == 1


def test_a_device_that_an_unlinked_wallet_let_in_is_turned_away(
    service: Service, person: Person, as_nobody: Client
) -> None:
    stolen = Wallet()
    signed = stolen.sign_in(says(service, person.ok("GET", "/auth/nonce")["nonce"]))
    linked = person.ok(
        "POST", "/auth/identities", {"wallet": {"message": signed.message, "signature": signed.signature}}
    )
    with closing(sign_in(service, stolen)) as thief:
        device = new_device(as_nobody, thief.tenant)
        assert decide(thief, device).is_success
        person.ok("DELETE", f"/auth/identities/{linked['identity']['id'] if 'identity' in linked else linked['id']}")

    assert device.poll().json()["error"] == "expired_token"


def test_another_persons_wallet_is_not_unlinked(service: Service, person: Person, stranger: Person) -> None:
    account = second_wallet(service, stranger)

    assert outcome(person.delete(f"/auth/identities/{account}")) == (404, "identity_absent")
    assert len(stranger.ok("GET", "/auth/identities")) == 2


def test_of_two_people_who_link_one_wallet_at_once_one_has_it(
    service: Service, person: Person, stranger: Person
) -> None:
    wallet = Wallet()
    proofs = [(one, evm_proof(service, one, wallet)) for one in (person, stranger)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda pair: link(pair[0], wallet=pair[1]), proofs))

    assert sorted(answer.status_code for answer in answers) == [201, 409]


# ---- the last way in


def test_the_last_way_in_stays(person: Person) -> None:
    account = identities_of(person)["wallet:ethereum"]["id"]

    assert outcome(person.delete(f"/auth/identities/{account}")) == (409, "last_login_method")


def test_a_passkey_is_a_way_in_and_then_the_last_one(service: Service, person: Person) -> None:
    device = Authenticator(f"http://localhost:{service.port}")
    created = device.create(person.ok("POST", "/auth/passkeys/register/options", {}))
    passkey = person.ok("POST", "/auth/passkeys/register/verify", {"credential": created})["id"]
    account = identities_of(person)["wallet:ethereum"]["id"]
    # A passkey that asks who its person is counts as a second factor, so both acts need it.
    shown = device.get(person.ok("POST", "/auth/mfa/passkey/options", {}))
    person.take(person.ok("POST", "/auth/mfa/passkey/step-up", {"credential": shown}))

    assert person.ok("DELETE", f"/auth/identities/{account}") == {"deleted": account}
    assert outcome(person.delete(f"/auth/passkeys/{passkey}")) == (409, "last_login_method")


def test_of_two_that_are_unlinked_at_once_one_stays(service: Service, person: Person) -> None:
    second_wallet(service, person)
    accounts = [one["id"] for one in person.ok("GET", "/auth/identities")]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda account: person.delete(f"/auth/identities/{account}"), accounts))

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert len(person.ok("GET", "/auth/identities")) == 1


# ---- who may


def test_once_there_is_a_factor_a_recent_one_is_needed(service: Service, person: Person) -> None:
    account = second_wallet(service, person)
    person.enrol_totp()
    with closing(sign_in(service, person.wallet)) as elsewhere:
        answers = [
            link(elsewhere, wallet=evm_proof(service, elsewhere)),
            elsewhere.delete(f"/auth/identities/{account}"),
        ]

    assert [outcome(answer) for answer in answers] == [(403, "mfa_required")] * 2
    assert person.ok("DELETE", f"/auth/identities/{account}") == {"deleted": account}


def test_a_tenants_policy_does_not_waive_the_factor(service: Service, tenant: Tenant, as_owner: Person) -> None:
    lax = {"authAbuseConfig": {"mfa": {"requireFor": {"recoveryCodes": False}}}}
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", lax)
    with closing(sign_in(service, as_owner.wallet, tenant=tenant.id)) as elsewhere:
        assert outcome(link(elsewhere, wallet=evm_proof(service, elsewhere))) == (403, "mfa_required")


def test_other_credentials_link_nothing(service: Service, tenant: Tenant, as_platform: Client) -> None:
    answers = [link(client, wallet=evm_proof(service, client)) for client in (tenant, tenant.agent(), as_platform)]

    assert {outcome(answer) for answer in answers} == {(403, "wrong_kind")}


# ---- one wallet only


def test_a_tenant_may_restrict_people_to_one_wallet(
    service: Service, tenant: Tenant, as_owner: Person, mailbox: Mailbox
) -> None:
    restrict(as_owner)
    with closing(member(service, tenant, "viewer")) as somebody:
        second = link(somebody, wallet=evm_proof(service, somebody))
        solana = link(somebody, wallet=solana_proof(service, somebody))
        address = link(somebody, email=email_proof(somebody, mailbox, fresh_address()))

    assert [outcome(second), outcome(solana)] == [(409, "one_wallet_only")] * 2
    assert address.status_code == 201


def restrict(owner: Person) -> None:
    body = {"authAbuseConfig": {"wallet": {"restrictToOneThirdPartyWallet": True}}}
    owner.ok("PUT", f"/tenants/{owner.tenant}/config", body)


# ---- proofs


def test_exactly_one_proof_is_sent(service: Service, person: Person) -> None:
    both = {"wallet": evm_proof(service, person), "email": {"email": fresh_address(), "code": "123456"}}

    assert [outcome(link(person, **given)) for given in ({}, both)] == [(400, "identity_choice")] * 2


def test_a_proof_works_once(service: Service, person: Person, stranger: Person, mailbox: Mailbox) -> None:
    wallet, code = evm_proof(service, person), email_proof(person, mailbox, fresh_address())
    first = [link(person, wallet=wallet), link(person, email=code)]
    again = [link(stranger, wallet=wallet), link(stranger, email=code)]

    assert [answer.status_code for answer in first] == [201, 201]
    assert [outcome(answer) for answer in again] == [(401, "nonce_invalid"), (401, "code_invalid")]


def test_a_solana_message_is_read_as_strictly_as_the_other(service: Service, person: Person) -> None:
    good = solana_message(service, nonce_for(person))
    other = solana_message(service, nonce_for(person))
    evm = Wallet().sign_in(says(service, nonce_for(person)))
    wrong = {
        "another's signature": (good.message, other.signature, "signature_invalid"),
        "a short signature": (good.message, good.signature[:-2], "signature_invalid"),
        "another site": _elsewhere(service, person),
        "a chain of the other family": _chain(service, person),
        "the other wallet's name": (evm.message.replace("Ethereum", "Solana"), evm.signature, "siwe_malformed"),
    }

    found = {name: link(person, wallet={"message": m, "signature": s}) for name, (m, s, _) in wrong.items()}
    assert {name: outcome(answer)[1] for name, answer in found.items()} == {
        name: code for name, (_, _, code) in wrong.items()
    }
    assert len(person.ok("GET", "/auth/identities")) == 1


def _elsewhere(service: Service, person: Person) -> tuple[str, str, str]:
    it = solana_message(service, nonce_for(person), domain="evil.example", uri="https://evil.example/")
    return it.message, it.signature, "siwe_domain_mismatch"


def _chain(service: Service, person: Person) -> tuple[str, str, str]:
    it = solana_message(service, nonce_for(person), chain_id=EVM_CHAIN)
    return it.message, it.signature, "siwe_chain_unknown"


async def test_a_row_that_identity_did_not_write_is_not_unlinked(
    service: Service, owner: asyncpg.Connection, person: Person, stranger: Person
) -> None:
    account = second_wallet(service, stranger)
    await owner.execute("UPDATE identities SET user_id = $2 WHERE id = $1", account, person.id)

    assert outcome(person.delete(f"/auth/identities/{account}")) == (503, "sealed_value_tampered")


def test_the_audit_trail_has_no_address(service: Service, tenant: Tenant, as_owner: Person) -> None:
    wallet = Wallet()
    account = second_wallet(service, as_owner, wallet)
    as_owner.ok("DELETE", f"/auth/identities/{account}")

    rows = as_owner.ok("GET", "/audit/events?actionPrefix=identity.")["data"]
    assert [(row["action"], row["resource_id"], row["metadata"]) for row in rows] == [
        ("identity.unlinked", account, {"provider": "wallet:ethereum"}),
        ("identity.linked", account, {"provider": "wallet:ethereum"}),
    ]
    assert wallet.address.lower() not in str(rows).lower()
