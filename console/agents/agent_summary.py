"""Finds out what is known of one agent: what it holds, spends, may do and did last. A bounded number of requests."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Final

from console.agents.spending import COUNTED, Spending, first_day, spending
from console.wire.api_client import ApiClient
from console.wire.failures import Away, Failure, SignedOut
from console.wire.shapes_agents import Account, AgentDashboard, Portfolio
from words.shapes import AgentTokens, PolicyRule, TokenFunds, Transaction, TransactionPage
from words.texts.moments import moment

_PAGE: Final = 200
# Of each status: two pages are 400 orders in 14 days. What is older than those is said to be left out.
_PAGES: Final = 2
_TOKENS: Final = 25
_CHAINS: Final = 4
_SOLANA: Final = (101, 102)


@dataclass(frozen=True)
class AgentSummary:
    """One agent at a glance; `trouble` says what could not be had."""

    dashboard: AgentDashboard
    account: Account | None
    solana: Portfolio | None
    spending: Spending | None
    trouble: str = ""


async def fetch_summary(client: ApiClient, agent_id: str) -> AgentSummary:
    """Ask for all of it. Raises SignedOut and Away, and what is wrong with the dashboard itself."""
    board = await client.get(f"/dashboard/{agent_id}", AgentDashboard)
    chain = next((one.chain_id for one in board.balances.values() if one), None)
    named = _tokens_of(board.policies).get(chain or 0, [])
    troubles: list[str] = []
    account, solana, spent = await asyncio.gather(
        _or_none(
            client.get(f"/agents/{agent_id}/account", Account, chainId=chain, tokens=",".join(named) or None), troubles
        ),
        _or_none(_solana(client, agent_id), troubles),
        _or_none(_spending(client, agent_id), troubles),
    )
    return AgentSummary(board, account, solana, spent, " ".join(troubles))


async def token_facts(client: ApiClient, agent_id: str, rules: list[PolicyRule]) -> dict[str, TokenFunds]:
    """Fetch the metadata of the tokens that rules name, by asset; empty where no node answers."""
    found: dict[str, TokenFunds] = {}
    for chain, addresses in list(_tokens_of(rules).items())[:_CHAINS]:
        path, named = f"/agents/{agent_id}/tokens", ",".join(addresses)
        answer = await _or_none(client.get(path, AgentTokens, chainId=chain, tokens=named), [])
        for token in answer.tokens if answer else ():
            found[f"evm:{chain}:{token.address.lower()}"] = token
    return found


def _tokens_of(rules: list[PolicyRule]) -> dict[int, list[str]]:
    """The EVM tokens that rules name, by chain."""
    found: dict[int, list[str]] = {}
    for rule in rules:
        family, _, rest = str(rule.config.get("asset") or "").partition(":")
        chain, _, address = rest.partition(":")
        if family == "evm" and chain.isascii() and chain.isdecimal() and address.isalnum():
            of_chain = found.setdefault(int(chain), [])
            if address not in of_chain and len(of_chain) < _TOKENS:
                of_chain.append(address)
    return found


async def _solana(client: ApiClient, agent_id: str) -> Portfolio | None:
    """Fetch the holdings on the first Solana chain whose node answers; else the first chain's note."""
    found = [(await client.get(f"/agents/{agent_id}/account", Account, chainId=_SOLANA[0])).portfolio]
    if found[0].native is None:
        found.append((await client.get(f"/agents/{agent_id}/account", Account, chainId=_SOLANA[1])).portfolio)
    return next((one for one in found if one.native), found[0])


async def _spending(client: ApiClient, agent_id: str) -> Spending:
    today = client.now().astimezone(UTC).date()
    parts = await asyncio.gather(*(_since(client, agent_id, status, first_day(today)) for status in COUNTED))
    found = [transaction for part, _ in parts for transaction in part]
    left_out = sum(total - len(part) for part, total in parts)
    # A status of which something is left out is known from the day after its oldest one on.
    cuts = [_day(part[-1]) + timedelta(days=1) for part, total in parts if part and total > len(part)]
    return spending(found, today, known_from=max(cuts, default=None), left_out=left_out)


async def _since(client: ApiClient, agent_id: str, status: str, since: date) -> tuple[list[Transaction], int]:
    found: list[Transaction] = []
    while True:
        page = await client.get(
            f"/vault/{agent_id}/transactions",
            TransactionPage,
            kind="evm",
            status=status,
            limit=_PAGE,
            offset=len(found),
            **{"from": f"{since.isoformat()}T00:00:00Z"},
        )
        found += page.transactions
        if not page.transactions or len(found) >= min(page.total, _PAGES * _PAGE):
            return found, max(page.total, len(found))


def _day(transaction: Transaction) -> date:
    at = moment(transaction.created_at)
    # The day after it must be one, too.
    return min(at.date() if at else date.max, date.max - timedelta(days=1))


async def _or_none[Found](asked: Awaitable[Found], troubles: list[str]) -> Found | None:
    """Return the answer; None where the service could not give one, with its sentence added to `troubles`."""
    try:
        return await asked
    except (SignedOut, Away):
        raise
    except Failure as failure:
        troubles.append(failure.sentence)
        return None
