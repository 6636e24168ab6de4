"""Queries of accounts, and of the agents whose wallets they hold."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from api.areas.accounts.models import Account, Aggregation, Membership
from api.areas.accounts.types import AccountAbsent, AccountQuery, AggregationAbsent
from api.areas.accounts.wallets import Member, Standing
from custody.kit import ids
from custody.kit.models import Scope
from custody.kit.paging import fitting

_STANDINGS: Final = """
  SELECT a.id, a.incarnation, a.name, a.created_at,
         a.frozen_at IS NOT NULL OR (SELECT t.frozen_at IS NOT NULL FROM tenants t WHERE t.id = $1) AS frozen,
         (SELECT json_object_agg(w.family, w.address)::text FROM wallets w
           WHERE w.tenant_id = $1 AND w.agent_id = a.id AND w.scope = '') AS addresses, s.*, q.*
    FROM agents a,
         LATERAL (SELECT count(*) FILTER (WHERE status <> 'revoked') AS signers,
                         count(*) FILTER (WHERE status = 'active') AS active_signers,
                         count(*) FILTER (WHERE status = 'active' AND signer_type = 'delegated') AS active_delegated
                    FROM signers WHERE tenant_id = $1 AND agent_id = a.id) s,
         LATERAL (SELECT count(*) FILTER (WHERE status <> 'revoked') AS quorums,
                         count(*) FILTER (WHERE status = 'active') AS active_quorums
                    FROM key_quorums WHERE tenant_id = $1 AND agent_id = a.id) q
   WHERE a.tenant_id = $1 AND a.id = ANY ($2)
"""
_SIGNERS: Final = (
    "SELECT id::text FROM signers WHERE tenant_id = $1 AND agent_id = ANY ($2) AND status <> 'revoked' "
    "AND id::text = ANY ($3)"
)
_RULES: Final = "SELECT id FROM policy_rules WHERE tenant_id = $1 AND agent_id = ANY ($2) AND id = ANY ($3)"
# What an account takes in an answer: whoever is assigned in both spellings and in its metadata, its five wallets too.
_FIT: Final = fitting(
    "SELECT id, created_at, octet_length(metadata::text) + 4 * octet_length(owner_user_ids::text) "
    "+ 4 * octet_length(additional_signer_ids::text) + 4 * octet_length(signer_policy_ids::text) + 16384 AS long "
    "FROM accounts WHERE tenant_id = $1 ORDER BY created_at DESC, id LIMIT $2 OFFSET $3",
    "created_at DESC, id",
    "long",
)
_addresses = msgspec.json.Decoder(dict[str, str]).decode


async def standings(scope: Scope, agents: Iterable[str]) -> dict[str, Standing]:
    """The agents that are there, by their ids."""
    rows = await scope.connection.fetch(_STANDINGS, scope.tenant, sorted(set(agents)))
    return {row["id"]: _standing(row) for row in rows}


def _standing(row: Any) -> Standing:
    return Standing(
        incarnation=str(row["incarnation"]),
        name=row["name"],
        frozen=row["frozen"],
        created_at=row["created_at"],
        addresses=_addresses(row["addresses"] or "{}"),
        signers=row["signers"],
        active_signers=row["active_signers"],
        active_delegated=row["active_delegated"],
        quorums=row["quorums"],
        active_quorums=row["active_quorums"],
    )


async def unknown_signers(scope: Scope, agents: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Those of the ids that are of no living signer of these agents."""
    return await _unknown(scope, _SIGNERS, agents, wanted)


async def unknown_rules(scope: Scope, agents: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Those of the ids that are of no rule of these agents."""
    return await _unknown(scope, _RULES, agents, wanted)


async def _unknown(scope: Scope, query: str, agents: Sequence[str], wanted: Sequence[str]) -> list[str]:
    rows = await scope.connection.fetch(query, scope.tenant, list(agents), list(wanted)) if wanted else []
    found = {row["id"] for row in rows}
    return [one for one in wanted if one not in found]


async def get(account_id: str, *, lock: bool = False) -> Account:
    """An account with its members, or AccountAbsent."""
    found = Account.filter(id=account_id)
    account = await (found.select_for_update() if lock else found).first()
    if account is None:
        raise AccountAbsent
    await account.fetch_related("members")
    return account


async def page(scope: Scope, query: AccountQuery) -> tuple[list[Account], int]:
    """Accounts with their members, newest first, and how many there are."""
    fit = await scope.connection.fetch(_FIT, scope.tenant, query.limit, query.offset)
    found = await Account.filter(id__in=[row["id"] for row in fit]).prefetch_related("members") if fit else []
    return found, await Account.all().count()


def members_of(account: Account) -> list[Member]:
    """The members of an account that was read with them, in their order."""
    rows = sorted(account.members, key=lambda row: row.place)
    return [Member(str(one.id), one.agent_id, str(one.incarnation), one.family, one.name) for one in rows]


async def put_members(scope: Scope, account: Account, members: Sequence[Member]) -> None:
    """Replace the members of an account."""
    await Membership.filter(account_id=account.id).delete()
    await Membership.bulk_create(
        Membership(
            id=member.id,
            tenant_id=scope.tenant,
            account_id=account.id,
            place=place,
            agent_id=member.agent,
            incarnation=member.incarnation,
            family=member.family,
            name=member.name,
            created_at=scope.now,
        )
        for place, member in enumerate(members)
    )


async def aggregation(account_id: str, aggregation_id: str, *, lock: bool = False) -> Aggregation:
    """An aggregation of an account, or AggregationAbsent."""
    found = Aggregation.filter(id=aggregation_id, account_id=account_id)
    one = await (found.select_for_update() if lock else found).first()
    if one is None:
        raise AggregationAbsent
    return one


async def aggregations(account_id: str, query: AccountQuery) -> tuple[list[Aggregation], int]:
    """Aggregations of an account, newest first, and how many there are."""
    found = Aggregation.filter(account_id=account_id)
    return await found.limit(query.limit).offset(query.offset), await found.count()


def new_member(agent: str, standing: Standing | None, family: str | None = None, name: str | None = None) -> Member:
    """A member that is not stored yet; of an agent that is to be made, without its incarnation."""
    return Member(ids.new_uuid(), agent, "" if standing is None else standing.incarnation, family, name)
