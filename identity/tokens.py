"""Minting people's access tokens; agents' are the signer's."""

from datetime import datetime

import msgspec

from custody.kit import clock, ids
from custody.kit.jwt import SessionClaims
from custody.kit.shapes import Role
from custody.worker.token_keys import Minter

ACCESS_SECONDS = 900
ITEM_SECONDS = 60


class Page(msgspec.Struct, frozen=True):
    """A web page of a tenant's app client."""

    client: str
    origin: str


class Bound(msgspec.Struct, frozen=True):
    """A session that a tenant's sign-on began: it stays in that tenant, and ends then."""

    tenant: str
    until: datetime


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A person signed in to one tenant: what an access token says of it."""

    id: str
    user: str
    tenant: str
    role: Role
    provider: str
    amr: tuple[str, ...]
    mfa_at: datetime | None
    generation: int
    # The app client at whose page it began, and that page's origin.
    page: Page | None = None
    bound: Bound | None = None


def session_token(minter: Minter, session: Session) -> str:
    """A person's access token, for 900 seconds."""
    return minter.mint(_claims(minter, session, ACCESS_SECONDS))


def item_token(minter: Minter, session: Session, item: tuple[str, str]) -> str:
    """A token with which its person approves one item, for a minute; the session itself gains nothing."""
    claims = _claims(minter, msgspec.structs.replace(session, mfa_at=clock.now()), ITEM_SECONDS)
    return minter.mint(msgspec.structs.replace(claims, approval=item[0], digest=item[1]))


def _claims(minter: Minter, session: Session, seconds: int) -> SessionClaims:
    issued = int(clock.now().timestamp())
    return SessionClaims(
        iss=minter.issuer,
        sub=session.user,
        sid=session.id,
        tid=session.tenant,
        role=session.role,
        scope="session",
        amr=list(session.amr),
        mfa_at=int(session.mfa_at.timestamp()) if session.mfa_at else None,
        iat=issued,
        exp=issued + seconds,
        jti=ids.new_uuid(),
        page=session.page.client if session.page else None,
        bound=session.bound is not None,
    )
