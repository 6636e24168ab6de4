"""A tenant's configuration; what decides who may do what is changed by people alone.

The document is for readers; the judging part goes under a MAC, and app clients are rows of their own.
"""

from typing import Any

import msgspec

from custody.identity.app_clients import AppClient
from custody.identity.mfa import MfaPolicy
from custody.identity.roles import ADMINS
from custody.kit.errors import Unavailable
from custody.protocol.identity.refusals import BadApprovalConfig, PersonRequired
from custody.protocol.identity.tenants import PutConfig, SavedConfig, StoredConfig
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.idempotency import pack
from custody.worker.judging import Judging
from custody.worker.proven import ProvenSession, ProvenTenant
from identity.administration import app_clients
from identity.context import Identity

_READ = "SELECT version, judging, mac FROM config_read($1)"
_PUT = "SELECT put_config($1, $2, $3, $4, $5)"
_CLIENTS = "SELECT document FROM app_clients WHERE tenant_id = $1 ORDER BY created_at DESC, id"
# A longer answer is not kept: a repetition is then told what is there by that time.
MAX_KEPT = 512 * 1024
# The parts of `authAbuseConfig`: about people, so only people change them.
_OF_PEOPLE = ("mfa", "invitations", "wallet")


async def put(identity: Identity, message: PutConfig, call: Call[ProvenTenant]) -> SavedConfig:
    """Replace the whole configuration in one transaction; what is not named of MFA and app clients stays."""
    tenant = call.caller.tenant
    clients = None if message.app_clients is None else app_clients.read(message.app_clients)
    async with acting(identity, call) as connection:
        row = await connection.fetchrow(_READ, tenant)
        before = identity.judging.open(tenant, row["version"], row["judging"], row["mac"])
        after = _after(call.caller, before, message.judging)
        changed = _changed_by(await _clients(connection, identity, tenant, clients), clients, before, after)
        if changed:
            _insist_on_person(call.caller, before.mfa, changed)
        text, mac = identity.judging.seal(tenant, row["version"] + 1, msgspec.to_builtins(after))
        if not await connection.fetchval(_PUT, tenant, row["version"], message.document, text, mac):
            raise Unavailable
        if clients is not None and "appClients" in changed:
            await app_clients.write(connection, identity, call, clients, "replace_all")
        said = ({"changed": changed} if changed else {}) | _difference(before, after)
        await tell(connection, call, "tenant.config_changed", "tenant", tenant, **said)
        shown = [client["document"] for client in await connection.fetch(_CLIENTS, tenant)]
        outcome = _outcome(message.document, text, shown)
        await remember(connection, call, outcome)
    return outcome


async def judging_of(connection: Any, identity: Identity, tenant: str) -> Judging:
    """Read what a tenant is judged by, in the transaction that acts, which goes on in that tenant."""
    row = await connection.fetchrow(_READ, tenant)
    return identity.judging.open(tenant, row["version"], row["judging"], row["mac"])


def _outcome(document: str, judging: str, clients: list[str]) -> SavedConfig:
    """The configuration as it is stored now, so that a repetition is told the same; without it where it is too long."""
    outcome = SavedConfig(StoredConfig(document, judging, clients))
    return outcome if len(pack(outcome)) <= MAX_KEPT else SavedConfig(None)


async def _clients(
    connection: Any, identity: Identity, tenant: str, named: list[AppClient] | None
) -> dict[str, AppClient]:
    return {} if named is None else await app_clients.load(connection, identity, tenant)


def _after(caller: ProvenTenant, before: Judging, said: dict[str, Any]) -> Judging:
    """Compute what is judged by from now on."""
    kept = {part: msgspec.to_builtins(getattr(before, part)) for part in _OF_PEOPLE if part not in said}
    try:
        after = msgspec.convert(said | kept, Judging)
        # Names of tokens have a route of their own, for people alone.
        after = msgspec.structs.replace(after, tokens=before.tokens)
    except msgspec.ValidationError as problem:
        raise BadApprovalConfig(f"approvalConfig or authAbuseConfig: {problem}") from None
    if not isinstance(caller, ProvenSession) and _plain(before.mfa) == _plain(after.mfa):
        # The same today in other words; but what a person pinned to the default of today stays when that moves.
        return msgspec.structs.replace(after, mfa=before.mfa)
    return after


def _changed_by(
    stored: dict[str, AppClient], named: list[AppClient] | None, before: Judging, after: Judging
) -> list[str]:
    """List those of the two parts only a person may change that are not as they were."""
    moved = any(getattr(before, part) != getattr(after, part) for part in _OF_PEOPLE)
    changed = ["authAbuseConfig"] if moved else []
    if named is not None and {client.id: client for client in named} != stored:
        changed.append("appClients")
    return changed


def _plain(policy: MfaPolicy) -> MfaPolicy:
    """Without what says no more than the defaults do, so that policies are equal which demand the same."""
    return msgspec.structs.replace(
        policy,
        require_for={action: False for action, needed in policy.require_for.items() if not needed},
        max_age_for={
            action: seconds for action, seconds in policy.max_age_for.items() if seconds != policy.max_age_seconds
        },
    )


def _insist_on_person(caller: ProvenTenant, present: MfaPolicy, changed: list[str]) -> None:
    """Raise unless a person asks, by the policy that holds now: not by the one they ask for, nor an earlier one.

    That policy itself is changed with a recent factor only, though it asks for none: else one gate left open would
    open all the others.
    """
    if not isinstance(caller, ProvenSession):
        raise PersonRequired(fields=["authAbuseConfig", "appClients"])
    if "authAbuseConfig" in changed:
        present = msgspec.structs.replace(present, require_for={**present.require_for, "tenantAdmin": True})
    msgspec.structs.replace(caller, policy=present).need(ADMINS, "tenantAdmin")


def _difference(before: Judging, after: Judging) -> dict[str, dict[str, Any]]:
    """Compare what is judged by from now on, as it was and as it is."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    names = [name for name in new if new[name] != old[name]]
    if not names:
        return {}
    return {"before": {name: old[name] for name in names}, "after": {name: new[name] for name in names}}
