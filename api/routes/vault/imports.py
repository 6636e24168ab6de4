"""Private keys that come from elsewhere: sealed to the signer, and never seen by this process."""

from api.areas.imports.types import ImportBegun
from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.imports import BeginImport, FinishImport, Imported, ImportSession, SealedKey

routes = Routes("/vault", tag="Key imports")
# Twice a sealed key of the longest form, every character escaped.
MAX_IMPORT_BODY = 40 * 1024


@routes.post("/<agent>/import/init", who=asking(BeginImport), private=True)
async def begin_key_import(
    ports: Ports, caller: TenantCaller, agent: AgentRef, body: ImportBegun
) -> Answered[ImportSession]:
    """Begin the import of a private key: a one-time public key to seal it to.

    The deployment and the tenant must allow it. An API key may begin one only where the tenant's second-factor policy
    does not require a recent second factor for `keyImport`.
    """
    return await ports.workers.ask(BeginImport(agent.agent, body.chain), caller)


@routes.post("/<agent>/import/submit", max_body=MAX_IMPORT_BODY, who=asking(FinishImport), private=True)
async def finish_key_import(ports: Ports, caller: TenantCaller, agent: AgentRef, body: SealedKey) -> Answered[Imported]:
    """Submit a sealed private key, which becomes the agent's on that chain.

    Only a wallet that never signed is replaced; its key is kept, and its address stays listed. A session serves once;
    a failure before that leaves it open, and five end it.
    """
    return await ports.workers.ask(FinishImport(agent.agent, body), caller)
