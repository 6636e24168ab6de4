"""Names that the owners of a tenant give its tokens: words for people, while amounts are judged in raw units."""

from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller, TenantCaller
from custody.ports import Ports
from custody.protocol.identity.tenants import NamedTokens, PutTokens, ReadTokens
from custody.tenants.types import NamedTokensBody

routes = Routes("/tenants/<tenant_id>/tokens", tag="Tokens")


@routes.get("", who=asking(ReadTokens))
async def list_named_tokens(ports: Ports, caller: TenantCaller, tenant_id: str) -> NamedTokens:
    """List the tokens that have a name in this tenant, and their decimals as its owners say them."""
    return (await ports.workers.ask(ReadTokens(), caller)).answer


@routes.put("", who=asking(PutTokens))
async def replace_named_tokens(
    ports: Ports, caller: SessionCaller, tenant_id: str, body: NamedTokensBody
) -> Answered[NamedTokens]:
    """Replace the names of tokens. They are for words alone: rules, limits and orders stay in raw units."""
    return await ports.workers.ask(PutTokens(body.tokens), caller)
