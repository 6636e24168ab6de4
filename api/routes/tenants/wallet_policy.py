"""A tenant's wallet policy: one linked wallet for each person."""

from typing import cast

from api.areas.people import identity_store, wallet_policy
from api.areas.people.identity_types import (
    RefusedStatus,
    RemediatedWallet,
    RemediationResult,
    Remediations,
    RemediationsBody,
    WalletViolations,
)
from api.http.bodies import MAX_REMEDIATIONS_BODY
from api.http.endpoint import Routes
from api.http.errors import status_of
from api.http.who import admin_mfa, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Page
from custody.ports import Ports
from custody.protocol.identity.identities import RemediateWallets, WalletOutcome, WalletOutcomes

routes = Routes("/user/me/tenants/<own_tenant_id>/users", tag="Wallet policy")


@routes.get("/wallet-policy/violations", who=admin_mfa())
async def list_wallet_violations(
    ports: Ports, caller: SessionCaller, own_tenant_id: str, query: Page
) -> WalletViolations:
    """List members who have linked more than one wallet; the report changes nothing."""
    return await identity_store.violations(ports.pool, caller.tenant, query)


@routes.delete(
    "/<user_id>/wallet-policy/wallets/<linked_account_id>",
    who=asking(RemediateWallets),
    fails=(*wallet_policy.REFUSALS.values(),),
)
async def remediate_wallet(
    ports: Ports, caller: SessionCaller, own_tenant_id: str, user_id: str, linked_account_id: str
) -> Answered[RemediatedWallet]:
    """Unlink a member's wallet: never their last way to sign in, an owner's only as an owner.

    All their sessions end. Members of another team's tenant unlink their wallets themselves.
    """
    return await wallet_policy.remediate(ports, caller, user_id, linked_account_id)


@routes.post("/wallet-policy/remediations", who=asking(RemediateWallets), max_body=MAX_REMEDIATIONS_BODY)
async def remediate_wallets(
    ports: Ports, caller: SessionCaller, own_tenant_id: str, body: RemediationsBody
) -> Answered[Remediations]:
    """Unlink up to 50 wallets of members, each by itself: one that is refused holds up no other."""
    return (await wallet_policy.remediate_all(ports, caller, body.wallets)).to(_to_public)


def _to_public(answer: WalletOutcomes) -> Remediations:
    results = [_result(outcome) for outcome in answer.outcomes]
    succeeded = sum(result.ok for result in results)
    return Remediations(answer.tenant, succeeded, len(results) - succeeded, results)


def _result(outcome: WalletOutcome) -> RemediationResult:
    refusal = wallet_policy.refusal_of(outcome)
    if refusal is not None:
        return RemediationResult(
            ok=False,
            target_user_id=outcome.user,
            account_id=outcome.account,
            status=cast(RefusedStatus, status_of(refusal)),
            code=refusal.code,
            error=refusal.message,
        )
    return RemediationResult(
        ok=True,
        target_user_id=outcome.user,
        account_id=outcome.account,
        deleted=True,
        provider=outcome.provider or "",
        provider_account_id=outcome.provider_account_id or "",
        issued_before=outcome.issued_before or "",
    )
