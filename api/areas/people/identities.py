"""The identities of a person: linked by what they prove."""

import msgspec

from api.areas.people.contract_wallets import demand_agreement
from api.areas.people.identity_types import LinkBody
from api.areas.people.sign_in import CONTRACT_NEEDED
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.errors import Unauthenticated
from custody.ports import Ports
from custody.protocol.identity.identities import (
    EmailProof,
    Linked,
    LinkedIdentity,
    LinkIdentity,
    OAuthProof,
    WalletProof,
)
from custody.protocol.identity.refusals import IdentityChoice


async def link(
    ports: Ports, caller: SessionCaller, body: LinkBody
) -> Answered[Created[LinkedIdentity] | LinkedIdentity]:
    """Link what the body proves; 200 where it was the person's already."""
    answered = await _link(ports, caller, _message(body))
    return answered.to(lambda linked: Created(linked.identity) if linked.added else linked.identity)


def _message(body: LinkBody) -> LinkIdentity:
    given = [name for name in ("wallet", "email", "oauth") if getattr(body, name) is not None]
    if len(given) != 1:
        raise IdentityChoice(fields=given or ["wallet", "email", "oauth"])
    oauth = body.oauth
    return LinkIdentity(
        WalletProof(body.wallet.message, body.wallet.signature) if body.wallet else None,
        EmailProof(body.email.email, body.email.code) if body.email else None,
        OAuthProof(oauth.code, oauth.redirect_uri, oauth.code_verifier) if oauth else None,
    )


async def _link(ports: Ports, caller: SessionCaller, message: LinkIdentity) -> Answered[Linked]:
    try:
        return await ports.workers.ask(message, caller)
    except Unauthenticated as refusal:
        if message.wallet is None or refusal.code != CONTRACT_NEEDED:
            raise
    await demand_agreement(ports, message.wallet.message, message.wallet.signature)
    agreed = msgspec.structs.replace(message.wallet, by_contract=True)
    return await ports.workers.ask(msgspec.structs.replace(message, wallet=agreed), caller)
