"""The identities of a person, beside passkeys."""

from api.areas.people import identities, identity_store
from api.areas.people.contract_wallets import ContractsBusy
from api.areas.people.identity_types import LinkBody
from api.http.bodies import MAX_WALLET_BODY
from api.http.endpoint import Routes
from api.http.who import asking, person
from custody.chains.rpc import RpcUnavailable
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.identities import LinkedIdentity, LinkIdentity, UnlinkedIdentity, UnlinkIdentity

routes = Routes("/auth/identities", tag="Linked identities", hardened=False)


@routes.get("", who=person, private=True)
async def list_identities(ports: Ports, caller: SessionCaller, query: Page) -> Listed[LinkedIdentity]:
    """List what you sign in with, beside passkeys, newest first."""
    return await identity_store.all_of(ports.pool, caller.user, query)


@routes.post(
    "",
    who=asking(LinkIdentity),
    limit="verify",
    max_body=MAX_WALLET_BODY,
    fails=(ContractsBusy, RpcUnavailable),
    private=True,
)
async def link_identity(
    ports: Ports, caller: SessionCaller, body: LinkBody
) -> Answered[Created[LinkedIdentity] | LinkedIdentity]:
    """Link a wallet, an address, or an account at Google, Discord or X that you prove to have.

    From then on it signs you in.

    Once you have a second factor, a recent one is needed. An identity of another account is 409 `identity_taken`.
    """
    return await identities.link(ports, caller, body)


@routes.delete("/<identity_id>", who=asking(UnlinkIdentity))
async def unlink_identity(ports: Ports, caller: SessionCaller, identity_id: str) -> Answered[UnlinkedIdentity]:
    """Unlink one of them, but never your last way to sign in; passkeys count as one.

    Your other sessions that began in the same way end.
    """
    return await ports.workers.ask(UnlinkIdentity(identity_id), caller)
