"""Tortoise models on the pool of the process, inside the scope of a tenant.

For tables that only the api writes and by which nothing is judged; docs/recipes.md says which kind a new table is.
Every key in the database starts with the tenant, which a model cannot say. In a tenant's scope no other tenant's row
exists, so there the rest of the key is the key.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NoReturn

import msgspec
from tortoise import Tortoise
from tortoise.backends.asyncpg.client import AsyncpgDBClient, TransactionWrapper
from tortoise.connection import get_connections

from custody.kit.db import Connection, Pool
from custody.kit.logs import logger

_NAME = "default"
_BEGIN = "SELECT set_config('custody.tenant', $1, true), service_now() AS now"


class OutsideAnyScope(AsyncpgDBClient):
    """The connection of a model outside any tenant's scope: none at all."""

    async def create_connection(self, with_db: bool) -> NoReturn:
        """Refuse: the library would open a pool of its own."""
        raise RuntimeError("models are used inside tenant_models() only")


# The library looks for this name in the module that its configuration names.
client_class = OutsideAnyScope


class _InTransaction(TransactionWrapper):
    """A connection that is in a transaction already; who opened it ends it."""

    def __init__(self, connection: Connection) -> None:
        # Not the parent's: it takes a client with a pool of its own.
        self._connection = connection
        self._lock = asyncio.Lock()
        self.log = logger(__name__)
        self.connection_name = _NAME


class Scope(msgspec.Struct, frozen=True):
    """A transaction in which only this tenant's rows exist: the connection below the models, and its time."""

    tenant: str
    connection: Any
    now: datetime


async def load(*modules: str) -> None:
    """Make the models of these modules ready, once in a process; no connection is opened."""
    connection = {"engine": __name__, "credentials": {}}
    apps = {"models": {"models": list(modules), "default_connection": _NAME}}
    # Global: requests run in tasks of their own, which begin before or beside this one.
    await Tortoise.init(config={"connections": {_NAME: connection}, "apps": apps}, _enable_global_fallback=True)


@asynccontextmanager
async def tenant_models(pool: Pool, tenant: str, *, readonly: bool = True) -> AsyncIterator[Scope]:
    """A transaction in which models see and write only this tenant's rows."""
    async with pool.acquire() as connection, connection.transaction(readonly=readonly):
        row = await connection.fetchrow(_BEGIN, tenant)
        token = get_connections().set(_NAME, _InTransaction(connection))
        try:
            yield Scope(tenant, connection, row["now"])
        finally:
            get_connections().reset(token)
