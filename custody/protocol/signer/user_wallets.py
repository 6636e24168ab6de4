"""Wallets of people, in their own tenants: agents whose owner is the person who signs in."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.chains.orders import Prepared, Question
from custody.identity.roles import ADMINS, ANYBODY
from custody.kit.described import Id, Instant, described
from custody.kit.errors import DailyQuotaExceeded, Forbidden, NotFound, QuotaExceeded
from custody.kit.shapes import Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.refusals import AdministrationMoving
from custody.protocol.signer import refusals
from custody.protocol.signer.agents import WalletAddresses
from custody.protocol.signer.import_refusals import TooManyImports, WrongWalletIndex
from custody.protocol.signer.imports import EITHER_STEP, OPENING, AnyImportSession, Chain, SealedKey
from custody.protocol.signer.orders import ORDER, Answers
from custody.protocol.signer.outcomes import Decided

# No other agent may have an id that begins so.
PREFIX = "user-wallet-"
WalletIndex = Annotated[int, Meta(ge=0, le=255)]
_INDEX = described("Index of the person's wallet, 0 to 255.")


def agent_of(user: str, index: int) -> str:
    """The id of the agent that is a person's wallet."""
    return f"{PREFIX}{user}-{index}"


def is_anothers(agent: str, tenant: str, user: str | None) -> bool:
    """Say whether an agent is a person's wallet that another person, or a program, asks for.

    In a tenant of many, that person alone uses it: the tenant's rules bind it, and its people decide on what waits, but
    none of them, nor the tenant's key, signs with it. A personal tenant is its owner's.
    """
    if not agent.startswith(PREFIX):
        return False
    owner = agent.removeprefix(PREFIX).rpartition("-")[0]
    return user != owner and tenant != f"personal-{owner}"


class PersonalSessionRequired(Forbidden):
    """This is about your own wallets: switch to your personal tenant first, with POST /auth/session/tenant."""


class UserWalletAbsent(NotFound):
    """You have no wallet of this index; make it with POST /user/me/wallet."""


class UserWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet of the person who is signed in."""

    agent_id: Annotated[str, described("The agent that it is, for the routes of the vault.")]
    wallet_index: Annotated[WalletIndex, _INDEX]
    wallet_addresses: Annotated[WalletAddresses, described("Address for payments.")]
    created_at: Annotated[Instant, described("Time of creation.")]


class WalletMade(msgspec.Struct, frozen=True):
    """The wallet, and whether it was made now."""

    wallet: UserWallet
    made: bool


class UserImportAad(msgspec.Struct, frozen=True, rename="camel"):
    """The data that the session is bound to. The additional data of the encryption is `importSessionId` alone."""

    import_session_id: Annotated[Id, described("The session.")]
    tenant_id: Annotated[str, described("The person's own tenant.")]
    user_id: Annotated[Id, described("The person.")]
    agent_id: Annotated[str, described("The agent that the wallet is.")]
    chain: Annotated[Chain, described("`evm` or `solana`.")]
    wallet_index: Annotated[WalletIndex, _INDEX]
    app_client_id: Annotated[str | None, described("The app client at whose page the person signed in, or null.")]


class UserImportSession(AnyImportSession, frozen=True, rename="camel", kw_only=True):
    """A session: one key may be sealed to its public key, once."""

    aad: Annotated[UserImportAad, described("The data that the session is bound to.")]


class SealedUserKey(SealedKey, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A private key, sealed to the public key of a session; `walletIndex` as it was begun."""

    wallet_index: Annotated[WalletIndex, described("Index of your wallet, 0 to 255; by default the first, 0.")] = 0

    def __repr__(self) -> str:
        return "SealedUserKey()"


class UserImported(msgspec.Struct, frozen=True, rename="camel"):
    """The wallet that the key opens."""

    agent_id: Annotated[str, described("The agent that the wallet is.")]
    wallet_address: Annotated[str, described("The address of the key.")]
    chain: Annotated[Chain, described("`evm` or `solana`.")]
    wallet_index: Annotated[WalletIndex, _INDEX]
    imported: Annotated[bool, described("Always true.")] = True


@command("signer", proofs=SESSION, roles=ANYBODY, mfa="userWallets", pages=True, bound=True, audit=("agent.created",))
@refuses(DailyQuotaExceeded, PersonalSessionRequired, QuotaExceeded)
class CreateUserWallet(Command[WalletMade], frozen=True):
    """Make the caller's wallet of an index in the session's tenant, or find it; in a tenant of many there is one."""

    wallet_index: WalletIndex


@command(
    "signer",
    proofs=SESSION,
    roles=ANYBODY,
    mfa="userWallets",
    pages=True,
    bound=True,
    repeatable=True,
    replays_itself=True,
    audit=("tx.signed", "tx.queued", "tx.refused"),
)
@refuses(*ORDER, UserWalletAbsent)
class SignUserOrder(Command[Decided], frozen=True):
    """Judge an order for the caller's own wallet in the session's tenant, then sign, queue or refuse it."""

    wallet_index: WalletIndex
    tx_id: Uuid
    question: Question
    prepared: Prepared | None = None
    # What services said; None: they were not asked yet.
    answers: Answers | None = None


_importing = command(
    "signer",
    proofs=SESSION,
    roles=ADMINS,
    mfa="keyImport",
    audit=("import.begun", "import.finished", "policy.replaced"),
)
_OWN = (AdministrationMoving, PersonalSessionRequired, WrongWalletIndex)


@_importing
@refuses(*EITHER_STEP, *_OWN, TooManyImports)
class BeginUserImport(Command[UserImportSession], frozen=True):
    """Make a one-time key for a private key of the caller's wallet."""

    chain: Chain
    wallet_index: WalletIndex


@_importing
@refuses(*EITHER_STEP, *_OWN, *OPENING, refusals.PoliciesMoving)
class FinishUserImport(Command[UserImported], frozen=True):
    """Open an envelope, put its key in place of the wallet's, and the default rules in place of its rules."""

    sealed: SealedUserKey

    def __repr__(self) -> str:
        return f"FinishUserImport({self.sealed.wallet_index})"
