"""The people of a tenant, as its owners and admins see them."""

from contextlib import closing

import asyncpg

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, fresh_address, member
from tests.fixtures.server import Service
from tests.routes.platform.test_users import code_of, fresh, name_user


def path_of(tenant: Tenant) -> str:
    return f"/user/me/tenants/{tenant.id}/users"


def test_an_admin_sees_the_people_of_the_tenant_and_nothing_of_others(
    as_platform: Client, as_owner: Person, tenant: Tenant, other_tenant: Tenant
) -> None:
    address, here, elsewhere = fresh_address(), fresh(), fresh()
    user = name_user(
        as_platform, address, name="Ada", tenantId=tenant.id, walletExternalId=here, customMetadata={"secret": 1}
    )
    name_user(as_platform, address, tenantId=other_tenant.id, walletExternalId=elsewhere)

    answer = as_owner.get(path_of(tenant))

    newest, oldest = answer.json()["data"]
    assert newest.pop("createdAt") >= oldest.pop("createdAt")
    assert newest == {
        "userId": user,
        "email": address,
        "name": "Ada",
        "image": None,
        "role": "member",
        "walletAddress": None,
        "walletChain": None,
        "walletExternalIds": [{"tenantId": tenant.id, "externalId": here}],
    }
    assert (oldest["userId"], oldest["role"], oldest["walletExternalIds"]) == (as_owner.id, "owner", [])
    assert (oldest["walletAddress"], oldest["walletChain"]) == (as_owner.wallet.address, "ethereum")
    assert answer.headers["X-Total-Count"] == "2"
    assert not any(word in answer.text for word in (other_tenant.id, elsewhere, as_owner.tenant + "x", "secret"))


def test_an_external_id_of_another_tenant_finds_nobody(
    as_platform: Client, as_owner: Person, tenant: Tenant, other_tenant: Tenant
) -> None:
    here, elsewhere = fresh(), fresh()
    user = name_user(as_platform, tenantId=tenant.id, walletExternalId=here)
    name_user(as_platform, tenantId=other_tenant.id, walletExternalId=elsewhere)

    assert [one["userId"] for one in as_owner.ok("GET", f"{path_of(tenant)}?walletExternalId={here}")] == [user]
    assert as_owner.ok("GET", f"{path_of(tenant)}?walletExternalId={elsewhere}") == []


def test_an_admin_of_one_tenant_reads_no_other(service: Service, as_owner: Person, other_tenant: Tenant) -> None:
    with closing(member(service, other_tenant, "admin", mfa=True)) as admin_there:
        assert code_of(as_owner.get(path_of(other_tenant))) == (404, "no_such_tenant")
        assert admin_there.get(path_of(other_tenant)).status_code == 200


async def test_a_deactivated_member_is_listed(
    as_platform: Client, as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    user = name_user(as_platform, tenantId=tenant.id)
    await owner.execute("UPDATE users SET deactivated_at = now() WHERE id = $1", user)

    assert user in {one["userId"] for one in as_owner.ok("GET", path_of(tenant))}


def test_keys_of_the_tenant_read_nothing_of_people(as_platform: Client, tenant: Tenant) -> None:
    assert [one.get(path_of(tenant)).status_code for one in (tenant, as_platform)] == [403, 403]
