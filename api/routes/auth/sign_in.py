"""Sign-in with a wallet or with a code by e-mail."""

from api.areas.people import sign_in
from api.areas.people.contract_wallets import ContractsBusy
from api.areas.people.sign_in import TenantNeeded
from api.http.bodies import MAX_WALLET_BODY
from api.http.endpoint import Routes
from api.http.who import asking
from custody.chains.rpc import RpcUnavailable
from custody.kit.callers import Origin
from custody.people.types import CodeSent, EmailBody, EmailCodeBody, EmailNotConfigured, PageHeaders, WalletBody
from custody.ports import Ports
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_in import NewEmailCode, NewNonce, Nonce, SignInWithEmail, SignInWithWallet

routes = Routes("/auth", tag="Sign-in", hardened=False)


@routes.get("/nonce", who=asking(NewNonce), limit="nonce", private=True)
async def create_nonce(ports: Ports, origin: Origin) -> Nonce:
    """Get a nonce for one Sign-in with Ethereum message (EIP-4361); it is valid for five minutes."""
    return await ports.workers.tell(NewNonce(), origin)


@routes.post(
    "/verify",
    who=asking(SignInWithWallet),
    limit="verify",
    max_body=MAX_WALLET_BODY,
    fails=(ContractsBusy, RpcUnavailable, TenantNeeded),
    private=True,
    shows_secret=True,
)
async def sign_in_with_wallet(ports: Ports, origin: Origin, headers: PageHeaders, body: WalletBody) -> SignedIn:
    """Sign in with a wallet.

    The first sign-in creates a user and a personal tenant, whose API key is returned only in this response.

    At an app client's page, on an origin in its `allowedOrigins`, send `tenantId` and `clientId`, and sign a message
    whose domain and URI are that origin's. Only members of that tenant sign in there, or those whom the client
    registers (`allowRegistration`), and the session stays in it.
    """
    return await sign_in.with_wallet(ports, origin, headers, body)


@routes.post("/email/send", who=asking(NewEmailCode), limit="codes", fails=(EmailNotConfigured,), private=True)
async def send_email_code(ports: Ports, origin: Origin, body: EmailBody) -> CodeSent:
    """Send a sign-in code to an e-mail address; the response is the same for every address."""
    return await sign_in.send_code(ports, origin, body.email)


@routes.post(
    "/email/verify", who=asking(SignInWithEmail), limit="codes", fails=(TenantNeeded,), private=True, shows_secret=True
)
async def sign_in_with_email(ports: Ports, origin: Origin, body: EmailCodeBody) -> SignedIn:
    """Sign in with an e-mailed code."""
    return await sign_in.with_email(ports, origin, body)
