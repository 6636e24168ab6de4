"""Wallets of the person who is signed in, in their own tenant."""

from api.areas.user_wallets import wallets
from api.areas.user_wallets.types import (
    UserImportBody,
    UserSignerBody,
    UserSignerQuery,
    UserSigners,
    UserWalletBody,
    UserWalletQuery,
)
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking
from api.routes.vault.imports import MAX_IMPORT_BODY
from custody.kit.answers import Answered, Created
from custody.kit.callers import SessionCaller
from custody.kit.errors import Frozen
from custody.kit.quotas import DailyQuotaExceeded, QuotaExceeded
from custody.ports import Ports
from custody.protocol.refusals import AdministrationMoving
from custody.protocol.signer.authority import AgentSigner, CreateSigner, RevokeSigner, SignerCreated
from custody.protocol.signer.import_refusals import (
    ImportDisabled,
    ImportEnvelope,
    ImportSessionInvalid,
    ImportUnderQuorum,
    ImportWrongAgent,
    TooManyImports,
    WalletInUse,
    WalletTaken,
    WrongWalletIndex,
)
from custody.protocol.signer.refusals import (
    AuthorityTampered,
    CredentialRefused,
    KeyTampered,
    MetadataTooLarge,
    PersonalSessionRequired,
    PoliciesMoving,
    PolicyTampered,
    SignerAbsent,
    TooManySigners,
    UnknownPermission,
    UnknownSubject,
    UserSignerRefused,
    UserWalletAbsent,
)
from custody.protocol.signer.user_wallets import (
    BeginUserImport,
    CreateUserWallet,
    FinishUserImport,
    SealedUserKey,
    UserImported,
    UserImportSession,
    UserWallet,
)

routes = Routes("/user/me", tag="Your wallets")
_IMPORTS = (
    AdministrationMoving,
    Frozen,
    ImportDisabled,
    ImportUnderQuorum,
    PersonalSessionRequired,
    PolicyTampered,
    WrongWalletIndex,
)


@routes.post(
    "/wallet",
    who=asking(CreateUserWallet),
    fails=(DailyQuotaExceeded, PersonalSessionRequired, QuotaExceeded),
    private=True,
)
async def create_user_wallet(
    ports: Ports, caller: SessionCaller, body: UserWalletBody
) -> Answered[Created[UserWallet] | UserWallet]:
    """Create your wallet of an index, or get it where it is there (200).

    It begins with the deployment's rules for people's wallets. Sign with it by the vault's routes and your session.
    """
    return await wallets.create(ports, caller, body)


@routes.get("/wallets", who=admin_mfa("vaultSigning"), fails=(PersonalSessionRequired,), private=True)
async def list_user_wallets(ports: Ports, caller: SessionCaller) -> list[UserWallet]:
    """List your wallets by index."""
    return await wallets.list_all(ports, caller)


@routes.post("/wallet/import/init", who=asking(BeginUserImport), fails=(*_IMPORTS, TooManyImports), private=True)
async def begin_user_wallet_import(
    ports: Ports, caller: SessionCaller, body: UserImportBody
) -> Answered[UserImportSession]:
    """Begin the import of a private key into your wallet: a one-time public key to seal it to."""
    return await wallets.begin_import(ports, caller, body)


@routes.post(
    "/wallet/import/submit",
    max_body=MAX_IMPORT_BODY,
    who=asking(FinishUserImport),
    fails=(
        *_IMPORTS,
        ImportEnvelope,
        ImportSessionInvalid,
        ImportWrongAgent,
        KeyTampered,
        PoliciesMoving,
        WalletInUse,
        WalletTaken,
    ),
    private=True,
)
async def finish_user_wallet_import(ports: Ports, caller: SessionCaller, body: SealedUserKey) -> Answered[UserImported]:
    """Submit a sealed private key, which becomes your wallet's on that chain.

    The deployment's rules for people's wallets are put back: rules of your own are gone, so set them again.
    """
    return await wallets.finish_import(ports, caller, body)


@routes.get(
    "/wallet/signers", who=admin_mfa("signers"), fails=(PersonalSessionRequired, UserWalletAbsent), private=True
)
async def list_user_wallet_signers(ports: Ports, caller: SessionCaller, query: UserSignerQuery) -> UserSigners:
    """List the delegated signers of your wallet, newest first."""
    return await wallets.signers(ports, caller, query)


@routes.post(
    "/wallet/signers",
    who=asking(CreateSigner),
    status=201,
    fails=(
        AdministrationMoving,
        AuthorityTampered,
        CredentialRefused,
        DailyQuotaExceeded,
        MetadataTooLarge,
        PersonalSessionRequired,
        TooManySigners,
        UnknownPermission,
        UnknownSubject,
        UserSignerRefused,
        UserWalletAbsent,
    ),
    private=True,
    shows_secret=True,
)
async def create_user_wallet_signer(
    ports: Ports, caller: SessionCaller, body: UserSignerBody
) -> Answered[SignerCreated]:
    """Create a delegated signer of your wallet; its credential is returned only in this response."""
    return await wallets.create_signer(ports, caller, body)


@routes.delete(
    "/wallet/signers/<signer_id>",
    who=asking(RevokeSigner),
    fails=(
        AdministrationMoving,
        AuthorityTampered,
        PersonalSessionRequired,
        SignerAbsent,
        UserWalletAbsent,
    ),
    private=True,
)
async def revoke_user_wallet_signer(
    ports: Ports, caller: SessionCaller, signer_id: str, query: UserWalletQuery
) -> Answered[AgentSigner]:
    """Revoke a delegated signer of your wallet; revoking it again answers the same."""
    return await wallets.revoke_signer(ports, caller, signer_id, query)
