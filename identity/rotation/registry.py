"""Everything under identity's key that is sealed or has a MAC, and how each is made again under another version.

This is the whole list: `tests/structure/test_registry.py` fails when identity seals or authenticates something that
does not stand here. What is under the master key itself stands in `signer/rotation/registry.py`.
"""

from typing import Any, get_args

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from custody.protocol.identity.channels import ChannelKind
from custody.worker.judging import JUDGING_MAC
from custody.worker.proofs import (
    APP_CLIENT_MAC,
    APP_SECRET_MAC,
    MEMBERSHIP_MAC,
    PLATFORM_KEY_MAC,
    TENANT_KEY_MAC,
    membership_content,
)
from custody.worker.registry import IDENTITY_TABLES, Maced, Row, Sealed
from custody.worker.sealing import Context, Tampered, fields
from custody.worker.token_keys import TOKEN_KEY_MAC, content_of, kid_of, public_of
from identity.administration.channels import purpose_of
from identity.administration.signing_keys import SIGNING_KEY_MAC
from identity.administration.webhooks import PLACES
from identity.people import invitations, provisioning, sessions
from identity.people.persons import IDENTITY_MAC, of_row
from identity.sign_on import keys
from identity.sign_on.domains import SSO_DOMAIN_MAC
from identity.sign_on.domains import read as domain_of_row
from identity.sign_on.keys import PROVIDER_KEYS_MAC
from identity.sign_on.oidc_providers import OIDC_PROVIDER_MAC
from identity.sign_on.people import SSO_MEMBERSHIP_MAC
from identity.sign_on.saml_configs import SAML_CONFIG_MAC

# Each owner kind of a sealed value, with its purposes.
PURPOSES: dict[str, tuple[str, ...]] = {
    "session_key": ("session-key",),
    "signing_key": ("signing-key",),
    "saml_key": ("saml-key",),
    # The seed of a begun factor lies in its own row, under the MAC of that.
    "user": ("totp", "totp-enrolment"),
    "webhook": PLACES,
    "channel": tuple(purpose_of(kind) for kind in get_args(ChannelKind)),
}


def context_of(row: Row) -> Context:
    """Find where a sealed value belongs; Tampered for one that belongs nowhere."""
    if row["purpose"] not in PURPOSES.get(row["owner_kind"], ()):
        raise Tampered
    return Context(row["tenant_id"], row["owner_kind"], row["owner"], row["purpose"])


def _fits(value: bytes, row: Row, context: Context) -> bool:
    """Say whether a key is the one of the id beside it."""
    if context.owner_kind != "session_key":
        return True
    return kid_of(public_of(Ed25519PrivateKey.from_private_bytes(value))) == str(row["owner"])


def _text(given: Any) -> str:
    return str(given) if given is not None else ""


def _public_keys(table: str, use: str) -> Maced:
    return Maced(
        table=table,
        what=IDENTITY_TABLES[table],
        keys=(("kid", "text"),),
        columns="t.public_key",
        purpose=TOKEN_KEY_MAC,
        content=lambda row: content_of(use, row["kid"], row["public_key"]),
    )


KINDS: tuple[Sealed | Maced, ...] = (
    Sealed(
        table="identity_sealed",
        what=IDENTITY_TABLES["identity_sealed"],
        made="blob",
        keys=(("tenant_id", "text"), ("owner_kind", "text"), ("owner", "text"), ("purpose", "text")),
        columns="",
        context=context_of,
        fits=_fits,
    ),
    _public_keys("token_keys", "agent"),
    _public_keys("session_keys", "session"),
    Maced(
        table="tenant_keys",
        what=IDENTITY_TABLES["tenant_keys"],
        keys=(("tenant_id", "text"), ("key_hash", "bytea")),
        columns="",
        purpose=TENANT_KEY_MAC,
        content=lambda row: fields(row["tenant_id"], row["key_hash"]),
    ),
    Maced(
        table="tenant_config",
        what=IDENTITY_TABLES["tenant_config"],
        keys=(("tenant_id", "text"),),
        columns="t.version, t.judging",
        purpose=JUDGING_MAC,
        content=lambda row: fields(row["tenant_id"], row["version"], row["judging"]),
    ),
    Maced(
        table="app_clients",
        what=IDENTITY_TABLES["app_clients"],
        keys=(("tenant_id", "text"), ("id", "text")),
        columns="t.document, t.enabled",
        purpose=APP_CLIENT_MAC,
        content=lambda row: fields(
            row["tenant_id"], row["id"], row["document"], "enabled" if row["enabled"] else "disabled"
        ),
    ),
    Maced(
        table="app_secrets",
        what=IDENTITY_TABLES["app_secrets"],
        keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.client_id, t.secret_hash",
        purpose=APP_SECRET_MAC,
        content=lambda row: fields(row["tenant_id"], row["client_id"], row["secret_hash"]),
    ),
    Maced(
        table="signing_keys",
        what=IDENTITY_TABLES["signing_keys"],
        keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.prefix",
        purpose=SIGNING_KEY_MAC,
        content=lambda row: fields(row["tenant_id"], str(row["id"]), row["prefix"]),
    ),
    Maced(
        table="memberships",
        what=IDENTITY_TABLES["memberships"],
        keys=(("tenant_id", "text"), ("user_id", "uuid")),
        columns="t.role, t.created_at",
        purpose=MEMBERSHIP_MAC,
        content=lambda row: membership_content(row["tenant_id"], str(row["user_id"]), row["role"], row["created_at"]),
    ),
    Maced(
        table="invitations",
        what=IDENTITY_TABLES["invitations"],
        keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.token_hash, t.email, t.role, t.status, t.accepted_by, t.expires_at",
        purpose=invitations.INVITATION_MAC,
        content=invitations.content_of,
    ),
    Maced(
        table="saml_configs",
        what=IDENTITY_TABLES["saml_configs"],
        keys=(("tenant_id", "text"),),
        columns="t.document",
        purpose=SAML_CONFIG_MAC,
        content=lambda row: fields(row["tenant_id"], row["document"]),
    ),
    Maced(
        table="sso_memberships",
        what=IDENTITY_TABLES["sso_memberships"],
        keys=(("tenant_id", "text"), ("user_id", "uuid")),
        columns="",
        purpose=SSO_MEMBERSHIP_MAC,
        content=lambda row: fields(row["tenant_id"], str(row["user_id"])),
    ),
    Maced(
        table="oidc_providers",
        what=IDENTITY_TABLES["oidc_providers"],
        keys=(("tenant_id", "text"), ("id", "text")),
        columns="t.document",
        purpose=OIDC_PROVIDER_MAC,
        content=lambda row: fields(row["tenant_id"], row["id"], row["document"]),
    ),
    Maced(
        table="provider_keys",
        what=IDENTITY_TABLES["provider_keys"],
        keys=(("tenant_id", "text"), ("provider", "text")),
        columns="t.jwks_uri, t.keys, t.previous, t.fetched_at, t.replaced_at, t.problem",
        purpose=PROVIDER_KEYS_MAC,
        content=lambda row: keys.read(row).content,
    ),
    Maced(
        table="wallet_external_ids",
        what=IDENTITY_TABLES["wallet_external_ids"],
        keys=(("tenant_id", "text"), ("external_id", "text")),
        columns="t.user_id",
        purpose=provisioning.EXTERNAL_ID_MAC,
        content=lambda row: provisioning.external_id_content(row["tenant_id"], row["external_id"], str(row["user_id"])),
    ),
    Maced(
        table="platform_keys",
        what=IDENTITY_TABLES["platform_keys"],
        keys=(("key_hash", "bytea"),),
        columns="t.scopes",
        purpose=PLATFORM_KEY_MAC,
        content=lambda row: fields(row["key_hash"], *(["*"] if row["scopes"] is None else sorted(row["scopes"]))),
    ),
    Maced(
        table="identities",
        what=IDENTITY_TABLES["identities"],
        keys=(("kind", "text"), ("subject", "text")),
        columns="t.user_id, t.tenant_id, t.verified, t.blocked_at",
        purpose=IDENTITY_MAC,
        content=lambda row: of_row(row).content,
    ),
    Maced(
        table="sessions",
        what=IDENTITY_TABLES["sessions"],
        keys=(("id", "uuid"),),
        columns="t.user_id, t.provider, t.amr, t.mfa_at, t.client_id, t.origin, t.tenant_id, t.bound_tenant, "
        "t.bound_until, t.generation",
        purpose=sessions.SESSION_MAC,
        content=lambda row: sessions.content_of(sessions.read(row)),
    ),
    Maced(
        table="sso_domains",
        what=IDENTITY_TABLES["sso_domains"],
        keys=(("tenant_id", "text"), ("domain", "text")),
        columns="t.sso_required, t.token, t.verified_at, t.checked_at, t.missing_since, t.absences, t.created_at",
        purpose=SSO_DOMAIN_MAC,
        content=lambda row: domain_of_row(row).content,
    ),
    Maced(
        table="factors",
        what=IDENTITY_TABLES["factors"],
        keys=(("user_id", "uuid"), ("kind", "text")),
        columns="t.subject",
        purpose="factor-mac",
        content=lambda row: fields(str(row["user_id"]), row["kind"], _text(row["subject"])),
    ),
    Maced(
        table="passkeys",
        what=IDENTITY_TABLES["passkeys"],
        keys=(("id", "uuid"),),
        columns="t.user_id, t.credential_id, t.public_key",
        purpose="passkey-mac",
        content=lambda row: fields(str(row["user_id"]), row["credential_id"], row["public_key"]),
    ),
)
