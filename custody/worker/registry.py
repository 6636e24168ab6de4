"""The rows that are sealed or under a MAC, and how one is made again under another version of the key.

Each worker lists its own kinds in its `rotation/registry.py`. A value whose old seal does not hold is never given a new
one. The contents are those of docs/sealed-blob.md.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from custody.worker.proven import PLATFORM
from custody.worker.sealing import Context, Sealer, Tampered

Row = Mapping[str, Any]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One table's content that the master key vouches for, row by row."""

    table: str
    what: str
    keys: tuple[tuple[str, str], ...]
    columns: str
    joins: str = ""
    # Column that holds it.
    made: str = "mac"

    @property
    def scoped(self) -> bool:
        """True if its rows are a tenant's, and seen in their scope only."""
        return self.keys[0][0] == "tenant_id"


class Maced(Kind, frozen=True, kw_only=True):
    """Rows with a MAC over what they say."""

    purpose: str
    content: Callable[[Row], bytes]

    def anew(self, sealer: Sealer, row: Row) -> bytes:
        """The MAC under the newest version; Tampered unless the one that is there holds."""
        tenant, content = row["tenant_id"] if self.scoped else PLATFORM, self.content(row)
        sealer.check_mac(row["mac"], self.purpose, tenant, content)
        return sealer.mac(self.purpose, tenant, content)

    def check(self, sealer: Sealer, row: Row) -> None:
        """Raise Tampered unless its MAC holds."""
        sealer.check_mac(row["mac"], self.purpose, row["tenant_id"] if self.scoped else PLATFORM, self.content(row))


class Sealed(Kind, frozen=True, kw_only=True):
    """Rows with a sealed value."""

    # Where a value belongs; Tampered for one that belongs nowhere.
    context: Callable[[Row], Context]
    # Whether it is what stands beside it; a ValueError says no.
    fits: Callable[[bytes, Row, Context], bool]

    def anew(self, sealer: Sealer, row: Row) -> bytes:
        """The value under the newest version; Tampered unless it opens and is what stands beside it."""
        context = self.context(row)
        return sealer.seal(self._open(sealer, row, context), context)

    def check(self, sealer: Sealer, row: Row) -> None:
        """Raise Tampered unless it opens and is what stands beside it."""
        self._open(sealer, row, self.context(row))

    def _open(self, sealer: Sealer, row: Row, context: Context) -> bytes:
        value = sealer.open(row["blob"], context)
        try:
            fits = self.fits(value, row, context)
        except ValueError:
            fits = False
        if not fits:
            raise Tampered
        return value


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """A kind that cannot be made again: a part of it is with a person, or it ends too soon to be worth it."""

    purpose: str
    what: str
    # Where only MACs are kept, the table; nothing at all is kept of what people show.
    table: str | None = None
    seconds: int | None = None


# Identity's tables, by which the signer finds whether a version of the key can be retired, and what each holds.
IDENTITY_TABLES = {
    "tenant_keys": "tenants' keys",
    "tenant_config": "judging configurations",
    "app_clients": "app clients",
    "app_secrets": "app clients' secrets",
    "signing_keys": "request-signing keys",
    "memberships": "memberships",
    "invitations": "invitations",
    "saml_configs": "SAML configurations",
    "sso_memberships": "memberships that sign-on made",
    "oidc_providers": "OIDC providers",
    "provider_keys": "key sets of OIDC issuers",
    "wallet_external_ids": "external ids of wallets",
    "platform_keys": "platform keys",
    "identities": "identities",
    "sessions": "sessions",
    "sso_domains": "e-mail domains",
    "factors": "second factors",
    "passkeys": "passkeys",
    "token_keys": "public keys of agents' tokens",
    "session_keys": "public keys of people's tokens",
    "identity_sealed": "sealed values of people and tenants",
}
# What cannot be made again; all of it is identity's.
ENDS = (
    Ends(purpose="recovery-code", what="recovery codes, until they are used or replaced", table="recovery_codes"),
    Ends(purpose="sign-in-code", what="codes by mail or message", table="sign_in_codes", seconds=600),
    Ends(purpose="enrolment-mac", what="begun second factors", table="enrolments", seconds=600),
    Ends(purpose="device-code-mac", what="device codes", table="device_codes", seconds=600),
    Ends(purpose="sign-in-request", what="sign-ins under way", table="sign_in_requests", seconds=600),
    Ends(purpose="sign-in-secret", what="nonces and verifiers of sign-ins under way", seconds=600),
    Ends(purpose="exchange-code", what="codes of sign-ins", table="exchange_codes", seconds=60),
    Ends(purpose="refresh-token", what="refresh tokens, for as long as their session lives"),
    Ends(purpose="passkey-challenge", what="passkeys' challenges", seconds=300),
)
# Every worker knows of a version before that: anyone who lacks it has stopped to seal by then.
SETTLED = "1 minute"
IS_SETTLED = f"SELECT begun_at < service_now() - interval '{SETTLED}' FROM key_versions WHERE version = $1"  # noqa: S608
# A token is as old as its session's last use; the margin is for workers that heard of the version later.
OLD_SESSIONS = (
    "FROM sessions s, key_versions v WHERE v.version = $1 AND s.revoked_at IS NULL AND s.expires_at > service_now() "
    f"AND s.used_at < v.begun_at + interval '{SETTLED}'"
)
