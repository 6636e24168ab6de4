"""Keys of issuers as they are kept: which count, when they are fetched, and what a writer of the database can do."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import msgspec
import pytest

from custody.identity.oidc_provider import OidcProvider
from custody.kit.callers import Origin
from custody.kit.db import Pool, close_pool, open_pool
from custody.protocol.identity.oidc import ProviderKeysMoved, PutProviderKeys
from custody.sign_on import provider_store
from custody.worker.acts import enter
from custody.worker.call import Call
from custody.worker.keyring import Keyring
from custody.worker.sealing import Sealer, Tampered, fields
from identity.sign_on import key_sets, keys
from identity.sign_on.keys import Kept
from identity.sign_on.oidc_providers import OIDC_PROVIDER_MAC
from tests.fixtures.postgres import Database
from tests.outside.jose import SigningKey

ADDRESS = "https://idp.example.com/keys"
ONE, TWO, THREE = SigningKey(), SigningKey("ES256"), SigningKey()
CALL: Call[None] = Call(None, Origin("test"), None)


@dataclass
class Identity:
    """Of identity's state what keys need, with the role of the process."""

    pool: Pool
    sealer: Sealer
    owner: asyncpg.Connection
    scheduler: Pool
    tenant: str
    oauth_key_sets: dict[str, str] = field(default_factory=dict)

    async def save(self, provider: str = "idp", address: str = ADDRESS) -> None:
        """A provider whose keys are there, as an administrator saves it."""
        document = OidcProvider(
            id=provider,
            enabled=True,
            issuer="https://idp.example.com",
            audience=("c",),
            jwks_uri=address,
            client_id="c",
            client_secret_env=None,
            authorization_url=ADDRESS,
            token_url=ADDRESS,
            scopes=("openid",),
            allow_jit_provisioning=False,
            client_authentication="basic",
            iss_in_response=False,
        )
        text = msgspec.json.encode(document).decode()
        mac = self.sealer.mac(OIDC_PROVIDER_MAC, self.tenant, fields(self.tenant, provider, text))
        await self.owner.execute(
            "INSERT INTO oidc_providers VALUES ($1, $2, $3, 0, $4, now(), now()) ON CONFLICT (tenant_id, id) "
            "DO UPDATE SET document = excluded.document, mac = excluded.mac",
            *(self.tenant, provider, text, mac),
        )
        async with self.pool.acquire() as connection, connection.transaction():
            await enter(connection, self.tenant)
            await keys.register(connection, self, self.tenant, provider, address)

    async def put(self, *found: SigningKey, provider: str = "idp", address: str = ADDRESS) -> str | None:
        """Tell the service of a set of keys, as the scheduler that fetched it does."""
        content = msgspec.json.encode({"keys": [key.jwk for key in found]})
        message = PutProviderKeys(tenant=self.tenant, provider=provider, jwks_uri=address, keys=content)
        return (await keys.put(self, message, CALL)).problem

    async def kids(self, provider: str = "idp", tenant: str | None = None) -> list[str | None]:
        """The ids of the keys that count now."""
        async with self.pool.acquire() as connection, connection.transaction():
            await enter(connection, tenant or self.tenant)
            found = await keys.key_set(connection, self, tenant or self.tenant, provider)
        return [key.kid for key in found.keys]

    async def due(self) -> list[str]:
        """The tenant's providers whose keys a scheduler takes up now."""
        return [
            one.provider for one in await provider_store.claim(self.scheduler, 100, 60) if one.tenant == self.tenant
        ]

    async def change(self, setting: str, *values: Any) -> None:
        """Write the row as somebody who can write the database."""
        await self.owner.execute(
            f"UPDATE provider_keys SET {setting} WHERE tenant_id = $1 AND provider = 'idp'", self.tenant, *values
        )


@pytest.fixture
async def identity(database: Database, owner: asyncpg.Connection) -> AsyncIterator[Any]:
    """With one provider saved, in a tenant of this test's own."""
    tenant = f"t-{uuid.uuid4().hex[:12]}"
    await owner.execute("INSERT INTO tenants (id, name) VALUES ($1, 'T')", tenant)
    pool = await open_pool(database.urls["identity"], size=3)
    scheduler = await open_pool(database.urls["scheduler"], size=2)
    made = Identity(pool, Sealer(Keyring({1: os.urandom(32)})), owner, scheduler, tenant)
    await made.save()
    yield made
    await owner.execute("DELETE FROM provider_keys WHERE tenant_id IN ($1, 'platform')", tenant)
    await close_pool(pool)
    await close_pool(scheduler)


async def test_no_key_counts_before_the_first_is_fetched(identity: Identity) -> None:
    assert await identity.kids() == []
    assert await identity.kids("unknown") == []


async def test_a_replaced_set_serves_beside_the_new_one(identity: Identity) -> None:
    assert await identity.put(ONE) is None
    assert await identity.put(ONE, TWO) is None
    assert await identity.put(TWO, ONE) is None

    assert sorted(map(str, await identity.kids())) == sorted([ONE.kid, ONE.kid, TWO.kid])


def test_a_replaced_set_serves_for_an_hour() -> None:
    def text(key: SigningKey) -> str:
        return key_sets.condense(msgspec.json.encode({"keys": [key.jwk]}))

    then = datetime(2030, 1, 1, tzinfo=UTC)
    empty = Kept(tenant="t", provider="p", jwks_uri=ADDRESS)
    kept = empty.followed_by(text(ONE), then).followed_by(text(TWO), then)

    assert [key.kid for key in kept.usable(then + timedelta(minutes=59)).keys] == [TWO.kid, ONE.kid]
    assert [key.kid for key in kept.usable(then + timedelta(hours=1)).keys] == [TWO.kid]
    # Fetched again, it is no newer set.
    again = kept.followed_by(text(TWO), then + timedelta(minutes=50))
    assert [key.kid for key in again.usable(then + timedelta(hours=1)).keys] == [TWO.kid]


async def test_a_bad_set_leaves_the_good_one(identity: Identity) -> None:
    await identity.put(ONE)

    assert await identity.put(SigningKey(kid="same"), SigningKey(kid="same")) == "set_key_twice"
    assert await identity.put(SigningKey(bits=1024)) == "set_key_weak"
    assert await identity.kids() == [ONE.kid]


async def test_keys_from_another_address_are_not_taken(identity: Identity) -> None:
    await identity.put(ONE)

    for address, provider in (("https://evil.example.com/keys", "idp"), (ADDRESS, "other")):
        with pytest.raises(ProviderKeysMoved):
            await identity.put(TWO, address=address, provider=provider)
    assert await identity.kids() == [ONE.kid]


async def test_another_address_drops_the_keys(identity: Identity) -> None:
    await identity.put(ONE)

    await identity.save(address=f"{ADDRESS}/new")

    assert await identity.kids() == []
    with pytest.raises(ProviderKeysMoved):
        await identity.put(ONE)
    assert await identity.put(TWO, address=f"{ADDRESS}/new") is None
    assert await identity.kids() == [TWO.kid]


@pytest.mark.parametrize(
    "setting",
    [
        "jwks_uri = 'https://evil.example.com'",
        "keys = replace(keys, 'AQAB', 'AQAC')",
        "keys = NULL",
        "previous = keys",
        "fetched_at = fetched_at + interval '1 second'",
        "replaced_at = now() + interval '1 day'",
        "mac = ''",
    ],
)
async def test_a_changed_row_counts_for_nothing_and_heals(identity: Identity, setting: str) -> None:
    await identity.put(ONE)
    await identity.put(THREE)
    await identity.put(ONE)

    await identity.change(setting)

    with pytest.raises(Tampered):
        await identity.kids()
    assert await identity.put(TWO) is None
    assert await identity.kids() == [TWO.kid]


async def test_a_row_of_another_provider_or_of_an_earlier_address_counts_for_nothing(identity: Identity) -> None:
    await identity.put(ONE)
    await identity.save("other")
    await identity.put(TWO, provider="other")
    copied = ("keys", "previous", "fetched_at", "replaced_at", "jwks_uri", "mac")
    row = await identity.owner.fetchrow(
        "SELECT * FROM provider_keys WHERE tenant_id = $1 AND provider = 'idp'", identity.tenant
    )
    assert row is not None
    setting = ", ".join(f"{name} = ${number}" for number, name in enumerate(copied, 2))

    await identity.owner.execute(
        f"UPDATE provider_keys SET {setting} WHERE tenant_id = $1 AND provider = 'other'",
        identity.tenant,
        *(row[name] for name in copied),
    )
    with pytest.raises(Tampered):
        await identity.kids("other")
    await identity.save(address=f"{ADDRESS}/new")
    await identity.change(setting, *(row[name] for name in copied))
    with pytest.raises(Tampered):
        await identity.kids()


async def test_keys_are_due_at_once_then_every_quarter_of_an_hour_or_when_wanted(identity: Identity) -> None:
    assert await identity.due() == ["idp"]
    assert await identity.due() == []
    await identity.put(ONE)
    await keys.want(identity, identity.tenant, "idp")

    assert await identity.due() == [], "it was asked for less than a minute ago"
    await identity.change("asked_at = asked_at - interval '2 minutes'")
    assert await identity.due() == []
    await keys.want(identity, identity.tenant, "idp")
    assert await identity.due() == ["idp"]
    await identity.put(ONE)
    await identity.change("due_at = due_at - interval '15 minutes'")
    assert await identity.due() == ["idp"]


async def test_a_claim_that_nobody_finished_is_over_after_a_minute(identity: Identity) -> None:
    assert await identity.due() == ["idp"]

    await identity.change("due_at = due_at - interval '1 minute'")

    assert await identity.due() == ["idp"]


async def test_two_schedulers_take_up_a_set_once(identity: Identity) -> None:
    both = await asyncio.gather(identity.due(), identity.due())

    assert sorted(both) == [[], ["idp"]]


async def test_the_deployments_own_providers_are_those_it_has_now(identity: Identity) -> None:
    identity.oauth_key_sets = {"google": ADDRESS, "discord": ADDRESS}
    async with identity.pool.acquire() as connection, connection.transaction():
        await keys.register_own(connection, identity)
    content = msgspec.json.encode({"keys": [ONE.jwk]})
    message = PutProviderKeys(tenant=None, provider="google", jwks_uri=ADDRESS, keys=content)
    assert (await keys.put(identity, message, CALL)).problem is None
    assert await identity.kids("google", "platform") == [ONE.kid]

    identity.oauth_key_sets = {"google": ADDRESS}
    async with identity.pool.acquire() as connection, connection.transaction():
        await keys.register_own(connection, identity)

    assert await identity.kids("google", "platform") == [ONE.kid]
    assert await identity.owner.fetchval("SELECT count(*) FROM provider_keys WHERE tenant_id = 'platform'") == 1
    await identity.owner.execute(
        "UPDATE provider_keys SET jwks_uri = 'https://evil.example.com' WHERE provider = 'google'"
    )
    with pytest.raises(Tampered):
        await keys.put(identity, msgspec.structs.replace(message, jwks_uri="https://evil.example.com"), CALL)


async def test_keys_go_with_their_tenant(identity: Identity) -> None:
    await identity.owner.execute("DELETE FROM tenants WHERE id = $1", identity.tenant)

    left = "SELECT count(*) FROM provider_keys WHERE tenant_id = $1"
    assert await identity.owner.fetchval(left, identity.tenant) == 0
