"""Past requests that other rules would have decided otherwise. Decision 0030.

Only what was asked is known: what an agent would have asked had it been refused, or a person decided, is not.
"""

import asyncio
from datetime import timedelta
from itertools import batched
from typing import Final

import msgspec

from api.areas.agents import store as agents
from api.areas.simulation import store
from api.areas.simulation.past import Past, read_all
from api.areas.simulation.replay import Replay, beside, events_of
from api.areas.simulation.types import Backtest, Backtested
from api.areas.tenants import store as tenants
from custody.kit import ids
from custody.kit.errors import TooMany
from custody.kit.refs import AgentRef
from custody.policies.rules import check_size, parse
from custody.ports import Ports

EXAMINED_AT_MOST: Final = 5_000
# What was signed in the week before counts in the first windows, as it was signed.
BEFORE: Final = timedelta(hours=169)
CHUNK: Final = 200
_running: set[str] = set()
_thread = asyncio.Semaphore(1)


class BacktestRunning(TooMany):
    """A back-test of this tenant is still running; retry when it has finished."""


async def backtest(ports: Ports, ref: AgentRef, asked: Backtest) -> Backtested:
    """Judge the newest requests of the last days by these rules, one after the other; nothing is changed."""
    check_size(asked.policies)
    agent = await agents.get(ports.pool, ref)
    if ref.tenant in _running:
        raise BacktestRunning(retry_after=2)
    _running.add(ref.tenant)
    try:
        # Reading rules takes milliseconds: never on the loop, and for a tenant once at a time.
        async with _thread:
            rules = await asyncio.to_thread(parse, asked.policies, ids.new_uuid)
        config = await tenants.get_config(ports.pool, ref.tenant, ports.presets)
        totals = frozenset[str]().union(*(rule.terms.wants().totals for rule in rules if rule.enabled))
        now, known = await store.now_and_ledger(ports.pool, ref, totals)
        since, truncated = await store.begin_of(ports.pool, ref, now, timedelta(days=asked.days), EXAMINED_AT_MOST)
        begin, _ = await store.begin_of(ports.pool, ref, since, BEFORE, EXAMINED_AT_MOST)
        wallets = msgspec.structs.asdict(agent.wallet_addresses)
        requests: list[Past] = []
        async for page in store.pages(ports.pool, ref, begin, now):
            async with _thread:
                requests += await asyncio.to_thread(read_all, page, wallets)
        events = events_of(requests)
        async with _thread:
            ledger = await asyncio.to_thread(beside, known, events)
        uncovered, units = config.approval_config.uncovered_effects, ports.chains.units
        replay = Replay(rules, ledger, since, ports.deployment.empty_policy, uncovered, units)
        for chunk in batched(events, CHUNK):
            async with _thread:
                await asyncio.to_thread(replay.take, chunk)
    finally:
        _running.discard(ref.tenant)
    return Backtested(replay.examined, replay.changed[::-1], truncated)
