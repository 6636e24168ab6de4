"""A tenant's wallet policy: what becomes of wallets that its admins unlink."""

from typing import Final

from api.areas.people.identity_types import RemediatedWallet, WalletOfMember
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.errors import CustodyError
from custody.ports import Ports
from custody.protocol.identity.identities import (
    Refusal,
    RemediateWallets,
    WalletAt,
    WalletOutcome,
    WalletOutcomes,
)
from custody.protocol.identity.refusals import (
    IdentityAbsent,
    LastLoginMethod,
    MemberAbsent,
    MemberElsewhere,
    NotWallet,
    OwnAccount,
    OwnerOnly,
)

REFUSALS: Final[dict[Refusal, type[CustodyError]]] = {
    "identity_absent": IdentityAbsent,
    "last_login_method": LastLoginMethod,
    "member_absent": MemberAbsent,
    "member_elsewhere": MemberElsewhere,
    "not_wallet": NotWallet,
    "own_account": OwnAccount,
    "owner_only": OwnerOnly,
}


async def remediate_all(ports: Ports, caller: SessionCaller, wallets: list[WalletOfMember]) -> Answered[WalletOutcomes]:
    """Unlink wallets of members, one after the other."""
    return await ports.workers.ask(RemediateWallets([WalletAt(one.user_id, one.account_id) for one in wallets]), caller)


async def remediate(ports: Ports, caller: SessionCaller, user: str, account: str) -> Answered[RemediatedWallet]:
    """Unlink one wallet of a member, or raise why not."""
    answered = await remediate_all(ports, caller, [WalletOfMember(user, account)])
    return answered.to(lambda answer: _result(answer.outcomes[0]))


def refusal_of(outcome: WalletOutcome) -> CustodyError | None:
    """Why a wallet was not unlinked; None where it was."""
    return REFUSALS[outcome.code]() if outcome.code is not None else None


def _result(outcome: WalletOutcome) -> RemediatedWallet:
    refusal = refusal_of(outcome)
    if refusal is not None:
        raise refusal
    return RemediatedWallet(
        deleted=True,
        account_id=outcome.account,
        provider=outcome.provider or "",
        provider_account_id=outcome.provider_account_id or "",
        issued_before=outcome.issued_before or "",
    )
