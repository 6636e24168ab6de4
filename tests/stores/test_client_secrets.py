"""The owner of a secret's variable: looked at again at each use, among all tenants that there are then."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import pytest

from api.areas.sign_on.client_secrets import OidcSecretAmbiguous, secret_of
from custody.identity.oidc_provider import InvalidOidcProvider, variable_prefix
from custody.kit.db import Pool, close_pool, open_pool
from tests.fixtures.postgres import Database


@dataclass
class Ports:
    """Of the api's connections what secrets need."""

    pool: Pool
    oidc_secrets: dict[str, str] = field(default_factory=dict)


@pytest.fixture
async def ports(database: Database) -> AsyncIterator[Any]:
    """With the api's role."""
    pool = await open_pool(database.urls["api"], size=1)
    yield Ports(pool)
    await close_pool(pool)


async def tenant(owner: asyncpg.Connection, name: str) -> str:
    await owner.execute("INSERT INTO tenants (id, name) VALUES ($1, 'T')", name)
    return name


@pytest.mark.parametrize("later", ["{}-corp", "{}.corp", "{}_CORP", "{}:corp"])
async def test_a_tenant_that_comes_later_makes_a_name_ambiguous(
    ports: Any, owner: asyncpg.Connection, later: str
) -> None:
    first = await tenant(owner, uuid.uuid4().hex[:8])
    name = f"{variable_prefix(first)}CORP_IDP"
    ports.oidc_secrets[name] = "s"
    assert await secret_of(ports, first, name) == "s"

    second = await tenant(owner, later.format(first))

    for one in (first, second):
        with pytest.raises(OidcSecretAmbiguous):
            await secret_of(ports, one, name)
    # A name of its own is still its own.
    assert await secret_of(ports, first, f"{variable_prefix(first)}IDP") is None


async def test_the_variable_beside_it_settles_whose_it_is(ports: Any, owner: asyncpg.Connection) -> None:
    stem = uuid.uuid4().hex[:8]
    one, other = await tenant(owner, f"{stem}-x"), await tenant(owner, f"{stem}.x")
    name = f"{variable_prefix(one)}IDP"
    ports.oidc_secrets |= {name: "s", f"{name}_FOR": other}

    assert await secret_of(ports, other, name) == "s"
    with pytest.raises(OidcSecretAmbiguous):
        await secret_of(ports, one, name)


async def test_a_row_that_names_another_variable_gets_nothing(ports: Any, owner: asyncpg.Connection) -> None:
    one = await tenant(owner, uuid.uuid4().hex[:8])
    ports.oidc_secrets["SERVICE_MASTER_KEY_FILE"] = "s"

    for name in ("SERVICE_MASTER_KEY_FILE", f"{variable_prefix('other')}IDP", f"{variable_prefix(one)}IDP_FOR", ""):
        with pytest.raises(InvalidOidcProvider):
            await secret_of(ports, one, name)


async def test_a_deleted_tenant_has_no_secret(ports: Any, owner: asyncpg.Connection) -> None:
    name = uuid.uuid4().hex[:8]
    ports.oidc_secrets[f"{variable_prefix(name)}IDP"] = "s"

    with pytest.raises(OidcSecretAmbiguous):
        await secret_of(ports, name, f"{variable_prefix(name)}IDP")
