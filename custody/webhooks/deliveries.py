"""What a person does with deliveries: export them, try one again, send its event once more. Spec 2/4.7."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from custody.kit.callers import SessionCaller
from custody.kit.db import Pool
from custody.kit.spreadsheet import as_csv
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import ReplayDelivery, RetryDelivery
from custody.webhooks import store
from custody.webhooks.types import Delivery, ExportQuery

_FIELDS = msgspec.structs.fields(Delivery)


async def retry(ports: Ports, caller: SessionCaller, delivery: str) -> Any:
    """Have a failed delivery tried again now."""
    data = await asked(ports.signer, RetryDelivery(delivery), caller)
    return data.replayed_or(msgspec.convert(data, Delivery))


async def replay(ports: Ports, caller: SessionCaller, delivery: str) -> Any:
    """Have the event of a delivery sent once more."""
    data = await asked(ports.signer, ReplayDelivery(delivery), caller)
    return data.replayed_or(msgspec.convert(data, Delivery))


async def export(pool: Pool, tenant: str, webhook: str, query: ExportQuery) -> str:
    """The same fields as in the list, as CSV."""
    found = await store.deliveries_of(pool, tenant, webhook, query)
    # Ten thousand rows take a while to write; other requests go on meanwhile.
    return await asyncio.to_thread(_table, found.rows)


def _table(deliveries: Iterable[Delivery]) -> str:
    return as_csv([field.encode_name for field in _FIELDS], map(_row, deliveries))


def _row(delivery: Delivery) -> list[object]:
    values = [getattr(delivery, field.name) for field in _FIELDS]
    return [None if value is UNSET else value for value in values]
