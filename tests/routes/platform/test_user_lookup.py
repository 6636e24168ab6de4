"""Finding people: by exactly one thing, and with a tenant only its members."""

import uuid
from contextlib import closing

import asyncpg
import pytest

from custody.worker.proven import PLATFORM
from custody.worker.sealing import fields
from identity.people.persons import IDENTITY_MAC, Known
from tests.fixtures.callers import Client, Tenant
from tests.fixtures.forgery import identity_sealer_of
from tests.fixtures.people import Person, fresh_address, member
from tests.fixtures.server import Service
from tests.routes.platform.test_users import code_of, fresh, look_up, name_user

LOOKUP = "/platform/users/lookup"
CONTRACT = "0x" + "Ab" * 20
SOLANA = "4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T"


async def give(
    service: Service, owner: asyncpg.Connection, user: str, kind: str, subject: str, tenant: str | None = None
) -> str:
    """Let a person have another identity, as identity writes it; its id."""
    made = Known(kind=kind, subject=subject, user=user, tenant=tenant)
    mac = identity_sealer_of(service).mac(IDENTITY_MAC, PLATFORM, made.content)
    return str(
        await owner.fetchval(
            "INSERT INTO identities (kind, subject, user_id, tenant_id, mac, created_at) "
            "VALUES ($1, $2, $3, $4, $5, now()) RETURNING id",
            kind,
            subject,
            user,
            tenant,
            mac,
        )
    )


async def enrol(service: Service, owner: asyncpg.Connection, user: str, number: str) -> None:
    """Let a person have a telephone for a second factor, as identity writes it."""
    mac = identity_sealer_of(service).mac("factor-mac", PLATFORM, fields(user, "sms", number))
    await owner.execute(
        "INSERT INTO factors (user_id, kind, subject, mac, confirmed_at) VALUES ($1, 'sms', $2, $3, now())",
        user,
        number,
        mac,
    )


def a_contract() -> str:
    return "0x" + uuid.uuid4().hex + "aB" * 4


# ---- who is found


def test_by_address_in_any_spelling_and_by_either_route(as_platform: Client, tenant: Tenant) -> None:
    address = fresh_address()
    user = name_user(as_platform, address, tenantId=tenant.id)

    found = [
        look_up(as_platform, email=address),
        look_up(as_platform, email=address.upper(), tenantId=tenant.id),
        as_platform.ok("POST", "/platform/users/email/address", {"email": address.title()})["user"],
    ]

    assert [one["userId"] for one in found] == [user] * 3
    assert found[0] == found[1] == found[2]


def test_by_wallet_in_any_spelling(as_platform: Client, person: Person) -> None:
    address = person.wallet.address
    spellings = [address, address.lower(), "0x" + address[2:].upper()]

    found = [look_up(as_platform, walletAddress=one)["userId"] for one in spellings]
    posted = as_platform.ok("POST", "/platform/users/wallet/address", {"walletAddress": address.lower()})["user"]

    assert found == [person.id] * 3
    assert (posted["walletAddress"], posted["walletChain"]) == (address, "ethereum")
    [account] = posted["linkedAccounts"]
    assert (account["provider"], account["providerAccountId"]) == ("wallet:ethereum", address)
    assert account["expiresAt"] is None
    by_account = look_up(as_platform, provider="wallet:ethereum", providerAccountId=address.lower())
    assert by_account["userId"] == person.id
    assert by_account["tenantIds"] == [person.tenant]


async def test_by_the_number_of_a_second_factor(
    service: Service, as_platform: Client, owner: asyncpg.Connection, tenant: Tenant, as_owner: Person, person: Person
) -> None:
    number = f"+4179{uuid.uuid4().int % 10**7:07d}"
    await enrol(service, owner, as_owner.id, number)
    posted = as_platform.ok("POST", "/platform/users/phone/number", {"phone": number})["user"]
    assert posted["userId"] == look_up(as_platform, phone=number)["userId"] == as_owner.id

    await enrol(service, owner, person.id, number)

    assert code_of(as_platform.get(LOOKUP, params={"phone": number})) == (409, "identity_ambiguous")
    assert look_up(as_platform, phone=number, tenantId=tenant.id)["userId"] == as_owner.id


async def test_by_contract_wallet_with_its_chain_or_without(
    service: Service, as_platform: Client, owner: asyncpg.Connection, person: Person, as_owner: Person, tenant: Tenant
) -> None:
    contract = a_contract()
    await give(service, owner, person.id, "contract", f"1:{contract}")

    assert look_up(as_platform, smartWalletId=f"1:{contract.lower()}")["userId"] == person.id
    assert look_up(as_platform, smartWalletId=contract)["userId"] == person.id
    assert code_of(as_platform.get(LOOKUP, params={"smartWalletId": f"10:{contract}"})) == (404, "user_absent")
    await give(service, owner, as_owner.id, "contract", f"10:{contract}")
    posted = as_platform.post("/platform/users/smart-wallet/address", json={"smartWalletId": contract})
    assert code_of(posted) == (409, "identity_ambiguous")
    assert look_up(as_platform, smartWalletId=contract, tenantId=tenant.id)["userId"] == as_owner.id


async def test_by_accounts_at_providers(
    service: Service, as_platform: Client, owner: asyncpg.Connection, tenant: Tenant, other_tenant: Tenant
) -> None:
    user, tail = name_user(as_platform, tenantId=tenant.id), uuid.uuid4().hex
    ids = {
        "google": await give(service, owner, user, "google", f"1{tail}"),
        "wallet:solana": await give(service, owner, user, "solana", SOLANA[:12] + tail.replace("0", "1")[:31]),
        "oidc:okta": await give(
            service, owner, user, "oidc", f'["{tenant.id}","okta","https://idp.example","a_%\\\\{tail}"]', tenant.id
        ),
        "saml": await give(service, owner, user, "saml", f'["{tenant.id}","https://idp","","{tail}"]', tenant.id),
    }
    accounts = {"google": f"1{tail}", "oidc:okta": f"a_%\\{tail}", "saml": tail}

    shown = look_up(as_platform, provider="google", providerAccountId=f"1{tail}")
    found = {
        provider: look_up(as_platform, provider=provider, providerAccountId=account, tenantId=tenant.id)["userId"]
        for provider, account in accounts.items()
    }

    assert {one["provider"]: one["id"] for one in shown["linkedAccounts"]} == ids
    assert accounts.items() <= {one["provider"]: one["providerAccountId"] for one in shown["linkedAccounts"]}.items()
    assert found == dict.fromkeys(accounts, user)
    for query in (
        {"provider": "oidc:okta", "providerAccountId": f"ab%\\{tail}", "tenantId": tenant.id},
        {"provider": "oidc:other", "providerAccountId": accounts["oidc:okta"], "tenantId": tenant.id},
        {"provider": "saml", "providerAccountId": tail, "tenantId": other_tenant.id},
        {"provider": "discord", "providerAccountId": accounts["google"]},
    ):
        assert code_of(as_platform.get(LOOKUP, params=query)) == (404, "user_absent")


async def test_an_address_that_only_a_tenants_provider_shows_is_found_in_that_tenant(
    service: Service, as_platform: Client, owner: asyncpg.Connection, tenant: Tenant, other_tenant: Tenant
) -> None:
    address, tail = fresh_address(), uuid.uuid4().hex
    with closing(member(service, tenant, "viewer")) as somebody:
        await owner.execute("UPDATE users SET profile_email = $2 WHERE id = $1", somebody.id, address.title())
        as_platform.ok(
            "POST", f"/platform/tenants/{other_tenant.id}/members", {"userId": somebody.id, "role": "viewer"}
        )
        before = as_platform.get(LOOKUP, params={"email": address, "tenantId": tenant.id})
        await give(service, owner, somebody.id, "oidc", f'["{tenant.id}","x","y","{tail}"]', tenant.id)

        found = look_up(as_platform, email=address, tenantId=tenant.id)

    assert code_of(before) == (404, "user_absent")
    assert (found["userId"], found["email"], found["emailVerified"]) == (somebody.id, address.title(), False)
    for query in ({"email": address}, {"email": address, "tenantId": other_tenant.id}):
        assert code_of(as_platform.get(LOOKUP, params=query)) == (404, "user_absent")
    name_user(as_platform, address, tenantId=tenant.id)
    both = as_platform.get(LOOKUP, params={"email": address, "tenantId": tenant.id})
    assert code_of(both) == (409, "identity_ambiguous")


async def test_a_deactivated_person_is_found_in_every_way(
    as_platform: Client, owner: asyncpg.Connection, tenant: Tenant, as_owner: Person
) -> None:
    address, external_id = fresh_address(), fresh()
    user = name_user(as_platform, address, tenantId=tenant.id, walletExternalId=external_id)
    await owner.execute("UPDATE users SET deactivated_at = now() WHERE id = ANY ($1)", [user, as_owner.id])

    found = [
        look_up(as_platform, email=address),
        look_up(as_platform, walletExternalId=external_id, tenantId=tenant.id),
        look_up(as_platform, walletAddress=as_owner.wallet.address),
        *as_platform.ok("GET", f"/platform/tenants/{tenant.id}/users"),
        as_platform.ok(
            "POST", "/platform/users/wallet/external-id", {"tenantId": tenant.id, "externalId": external_id}
        )["user"],
        as_platform.ok(
            "POST",
            "/platform/users/wallet/external-id/connect-or-create",
            {"tenantId": tenant.id, "walletExternalId": external_id},
        )["user"],
    ]

    assert {one["userId"] for one in found} == {user, as_owner.id}
    assert all(one["deactivatedAt"] for one in found)
    again = as_platform.post("/platform/users", json={"email": address})
    assert (again.status_code, again.json()["data"]["userId"]) == (200, user)


# ---- who is not


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({}, "one_identity"),
        ({"tenantId": "t"}, "one_identity"),
        ({"email": "a@example.com", "phone": "+41790000000"}, "one_identity"),
        ({"provider": "google"}, "one_identity"),
        ({"providerAccountId": "1"}, "one_identity"),
        ({"provider": "google", "providerAccountId": "1", "email": "a@example.com"}, "one_identity"),
        ({"provider": "myspace", "providerAccountId": "1"}, "one_identity"),
        ({"provider": "oidc:", "providerAccountId": "1", "tenantId": "t"}, "one_identity"),
        ({"provider": "saml:x", "providerAccountId": "1", "tenantId": "t"}, "one_identity"),
        ({"provider": "saml", "providerAccountId": "1"}, "one_identity"),
        ({"walletExternalId": "x"}, "external_id_needs_tenant"),
        ({"walletExternalId": "a b", "tenantId": "t"}, "bad_external_id"),
        ({"email": "nobody"}, "bad_email_address"),
        ({"email": ""}, "bad_query"),
        ({"phone": "0790000000"}, "bad_phone_number"),
        ({"walletAddress": "0x12"}, "bad_query"),
        ({"walletAddress": "0" * 40}, "bad_wallet_address"),
        ({"smartWalletId": "1:" + "0x" + "zz" * 20}, "bad_smart_wallet"),
        ({"smartWalletId": "01:" + CONTRACT}, "bad_smart_wallet"),
    ],
)
def test_a_question_that_means_nobody_in_particular_is_400(
    as_platform: Client, query: dict[str, str], code: str
) -> None:
    assert code_of(as_platform.get(LOOKUP, params=query)) == (400, code)


@pytest.mark.parametrize(
    "query",
    [
        {"email": "nobody-at-all@example.com"},
        {"phone": "+41790000001"},
        {"walletAddress": "0x" + "00" * 20},
        {"walletAddress": SOLANA},
        {"smartWalletId": CONTRACT},
        {"customAuthId": "anything"},
        {"provider": "google", "providerAccountId": "1"},
        {"walletExternalId": "x", "tenantId": "absent"},
    ],
)
def test_an_unknown_person_is_404(as_platform: Client, query: dict[str, str]) -> None:
    assert code_of(as_platform.get(LOOKUP, params=query)) == (404, "user_absent")


def test_somebody_outside_the_tenant_is_404(
    as_platform: Client, tenant: Tenant, other_tenant: Tenant, as_owner: Person
) -> None:
    external_id, address = fresh(), fresh_address()
    name_user(as_platform, address, tenantId=tenant.id, walletExternalId=external_id)
    elsewhere = {"tenantId": other_tenant.id}

    answers = [
        as_platform.get(LOOKUP, params={"email": address, **elsewhere}),
        as_platform.get(LOOKUP, params={"walletExternalId": external_id, **elsewhere}),
        as_platform.get(LOOKUP, params={"walletAddress": as_owner.wallet.address, **elsewhere}),
        as_platform.post("/platform/users/wallet/external-id", json={"walletExternalId": external_id, **elsewhere}),
    ]

    assert [code_of(answer) for answer in answers] == [(404, "user_absent")] * 4


# ---- a tenant's people


def test_the_operator_lists_a_tenants_people(as_platform: Client, tenant: Tenant, as_owner: Person) -> None:
    external_id = fresh()
    user = name_user(as_platform, tenantId=tenant.id, walletExternalId=external_id)
    path = f"/platform/tenants/{tenant.id}/users"

    page = as_platform.get(path, params={"limit": "1"})
    rest = as_platform.get(path, params={"limit": "1", "offset": "1"})
    beyond = as_platform.get(path, params={"offset": "2"})
    one = as_platform.get(path, params={"walletExternalId": f" {external_id}"})

    assert [found["userId"] for found in page.json()["data"] + rest.json()["data"]] == [user, as_owner.id]
    assert {answer.headers["X-Total-Count"] for answer in (page, rest, beyond)} == {"2"}
    assert [found["userId"] for found in one.json()["data"]] == [user]
    assert one.json()["data"] == page.json()["data"]
    assert as_platform.ok("GET", f"{path}?walletExternalId={fresh()}") == []
    assert code_of(as_platform.get("/platform/tenants/absent/users")) == (404, "tenant_absent")
    assert code_of(as_platform.get(path, params={"walletExternalId": "a b"})) == (400, "bad_external_id")


def test_a_key_with_another_scope_reads_nothing(service: Service, tenant: Tenant, as_owner: Person) -> None:
    for one in (tenant, as_owner):
        assert one.get(LOOKUP, params={"email": "a@example.com"}).status_code == 403
        assert one.get(f"/platform/tenants/{tenant.id}/users").status_code == 403
