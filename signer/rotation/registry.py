"""Everything that is sealed or under a MAC, and how each can be made anew under another version of the master key.

This is the whole list: `tests/structure/test_registry.py` fails when the signer seals or authenticates something that
does not stand here. The contents are those of docs/sealed-blob.md; a value whose old seal does not hold is never given
a new one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import coincurve
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from solders.keypair import Keypair

from custody.chains.evm.address import address_of
from signer import statement_keys
from signer.administration.signing_keys import SIGNING_KEY_MAC
from signer.credentials import ROUTE_MAC, place
from signer.judging import JUDGING_MAC
from signer.people.persons import IDENTITY_MAC
from signer.policies import POLICY_MAC, content_of_stored
from signer.proofs import (
    APP_CLIENT_MAC,
    APP_SECRET_MAC,
    MEMBERSHIP_MAC,
    PLATFORM,
    PLATFORM_KEY_MAC,
    TENANT_KEY_MAC,
    membership_content,
)
from signer.record import APPROVAL_MAC, approval_content
from signer.sealing import Context, Sealer, Tampered, fields, sha256

Row = Mapping[str, Any]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What one table holds that the master key vouches for, row by row."""

    table: str
    what: str
    keys: tuple[tuple[str, str], ...]
    columns: str
    joins: str = ""
    # Column that holds it.
    made: str = "mac"

    @property
    def scoped(self) -> bool:
        """Whether its rows are a tenant's, and seen in his scope only."""
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

    def anew(self, sealer: Sealer, row: Row) -> bytes:
        """The value under the newest version; Tampered unless it opens and is what stands beside it."""
        context = context_of(row)
        return sealer.seal(self._opened(sealer, row, context), context)

    def check(self, sealer: Sealer, row: Row) -> None:
        """Raise Tampered unless it opens and is what stands beside it."""
        self._opened(sealer, row, context_of(row))

    def _opened(self, sealer: Sealer, row: Row, context: Context) -> bytes:
        value = sealer.open(row["blob"], context)
        try:
            if context.owner_kind in ("agent", "token_key") and _name_of(value, context) != _wanted(row, context):
                raise Tampered
        except ValueError:
            raise Tampered from None
        return value


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """What cannot be made anew, because a part of it is with a person, or ends too soon to be worth it."""

    purpose: str
    what: str
    # Where only MACs are kept, the table; nothing at all is kept of what people show.
    table: str | None = None
    seconds: int | None = None


def _text(given: Any) -> str:
    return str(given) if given is not None else ""


SEALED = Sealed(
    table="sealed", what="sealed values", made="blob",
    keys=(("tenant_id", "text"), ("owner_kind", "text"), ("owner", "text"), ("purpose", "text")),
    columns="a.incarnation, a.evm_address, a.solana_address, s.version, s.expires_at",
    joins="LEFT JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id "
    "LEFT JOIN secrets s ON s.tenant_id = t.tenant_id AND s.id = t.secret_id",
)  # fmt: skip
MACED = (
    Maced(
        table="tenant_keys", what="tenants' keys", keys=(("tenant_id", "text"), ("key_hash", "bytea")), columns="",
        purpose=TENANT_KEY_MAC, content=lambda row: fields(row["tenant_id"], row["key_hash"]),
    ),
    Maced(
        table="tenant_config", what="judging configurations", keys=(("tenant_id", "text"),),
        columns="t.version, t.judging", purpose=JUDGING_MAC,
        content=lambda row: fields(row["tenant_id"], row["version"], row["judging"]),
    ),
    Maced(
        table="policy_heads", what="sets of rules", keys=(("tenant_id", "text"), ("agent_id", "text")),
        columns="t.version, t.count, a.incarnation, a.policy_version, (SELECT json_agg(json_build_array(r.id, r.type, "
        "r.enabled, r.config) ORDER BY r.position)::text FROM policy_rules r WHERE r.tenant_id = t.tenant_id "
        "AND r.agent_id = t.agent_id) AS rules",
        joins="JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id", purpose=POLICY_MAC,
        content=lambda row: content_of_stored(
            row["tenant_id"], row["agent_id"], str(row["incarnation"]), (row["version"], row["count"]),
            row["policy_version"], row["rules"] or "[]",
        ),
    ),
    Maced(
        table="approvals", what="queued orders", keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.agent_id, t.tx_id, t.digest, o.incarnation",
        joins="JOIN transactions o ON o.tenant_id = t.tenant_id AND o.id = t.tx_id", purpose=APPROVAL_MAC,
        content=lambda row: approval_content(
            row["tenant_id"], row["agent_id"], str(row["incarnation"]), str(row["tx_id"]), str(row["id"]), row["digest"]
        ),
    ),
    Maced(
        table="credential_routes", what="credential routes", keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.secret_id, t.fields", purpose=ROUTE_MAC,
        content=lambda row: fields(row["tenant_id"], str(row["id"]), str(row["secret_id"]), row["fields"]),
    ),
    Maced(
        table="app_clients", what="app clients", keys=(("tenant_id", "text"), ("id", "text")),
        columns="t.document, t.enabled", purpose=APP_CLIENT_MAC,
        content=lambda row: fields(
            row["tenant_id"], row["id"], row["document"], "enabled" if row["enabled"] else "disabled"
        ),
    ),
    Maced(
        table="app_secrets", what="app clients' secrets", keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.client_id, t.secret_hash", purpose=APP_SECRET_MAC,
        content=lambda row: fields(row["tenant_id"], row["client_id"], row["secret_hash"]),
    ),
    Maced(
        table="signing_keys", what="request-signing keys", keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.prefix", purpose=SIGNING_KEY_MAC,
        content=lambda row: fields(row["tenant_id"], str(row["id"]), row["prefix"]),
    ),
    Maced(
        table="memberships", what="memberships", keys=(("tenant_id", "text"), ("user_id", "uuid")),
        columns="t.role, t.created_at", purpose=MEMBERSHIP_MAC,
        content=lambda row: membership_content(row["tenant_id"], str(row["user_id"]), row["role"], row["created_at"]),
    ),
    Maced(
        table="platform_keys", what="platform keys", keys=(("key_hash", "bytea"),), columns="t.scopes",
        purpose=PLATFORM_KEY_MAC,
        content=lambda row: fields(
            row["key_hash"], *(["*"] if row["scopes"] is None else sorted(row["scopes"]))
        ),
    ),
    Maced(
        table="identities", what="identities", keys=(("kind", "text"), ("subject", "text")), columns="t.user_id",
        purpose=IDENTITY_MAC, content=lambda row: fields(row["kind"], row["subject"], str(row["user_id"])),
    ),
    Maced(
        table="sessions", what="sessions", keys=(("id", "uuid"),), columns="t.user_id, t.provider, t.amr, t.mfa_at",
        purpose="session-mac",
        content=lambda row: fields(
            str(row["id"]), str(row["user_id"]), row["provider"], " ".join(row["amr"]),
            int(row["mfa_at"].timestamp() * 1000) if row["mfa_at"] else 0,
        ),
    ),
    Maced(
        table="factors", what="second factors", keys=(("user_id", "uuid"), ("kind", "text")), columns="t.subject",
        purpose="factor-mac",
        content=lambda row: fields(str(row["user_id"]), row["kind"], _text(row["subject"])),
    ),
    Maced(
        table="passkeys", what="passkeys", keys=(("id", "uuid"),), columns="t.user_id, t.credential_id, t.public_key",
        purpose="passkey-mac",
        content=lambda row: fields(str(row["user_id"]), row["credential_id"], row["public_key"]),
    ),
)  # fmt: skip
ENDS = (
    Ends(purpose="recovery-code", what="recovery codes, until they are used or made anew", table="recovery_codes"),
    Ends(purpose="sign-in-code", what="codes by mail or message", table="sign_in_codes", seconds=600),
    Ends(purpose="enrolment-mac", what="begun second factors", table="enrolments", seconds=600),
    Ends(purpose="device-code-mac", what="device codes", table="device_codes", seconds=600),
    Ends(purpose="refresh-token", what="refresh tokens, for as long as their session lives"),
    Ends(purpose="passkey-challenge", what="passkeys' challenges", seconds=300),
)
KINDS: tuple[Sealed | Maced, ...] = (SEALED, *MACED)
# Each owner kind of a sealed value, with its purposes.
PURPOSES: dict[str, tuple[str, ...]] = {
    "agent": ("evm", "solana"),
    "token_key": ("token-key", *(f"{use}-key" for use in statement_keys.USES)),
    "secret": ("secret",),
    "signing_key": ("signing-key",),
    # The seed of a begun factor lies in its own row, under the MAC of that.
    "user": ("totp", "totp-enrolment"),
    "webhook": ("webhook-secret",),
}


def context_of(row: Row) -> Context:
    """Where a sealed value belongs; Tampered for one that belongs nowhere."""
    kind, detail = row["owner_kind"], ""
    if row["purpose"] not in PURPOSES.get(kind, ()):
        raise Tampered
    if kind == "agent":
        if row["incarnation"] is None:
            raise Tampered
        detail = str(row["incarnation"])
    if kind == "secret":
        if row["version"] is None:
            raise Tampered
        return place(row["tenant_id"], row["owner"], row["version"], row["expires_at"])
    return Context(row["tenant_id"], kind, row["owner"], row["purpose"], detail)


def _name_of(value: bytes, context: Context) -> str:
    """What is known of a key without the key: a wallet's address, another key's id."""
    if context.purpose == "evm":
        return address_of(coincurve.PrivateKey(value).public_key.format(compressed=False))
    if context.purpose == "solana":
        return str(Keypair.from_seed(value).pubkey())
    public = Ed25519PrivateKey.from_private_bytes(value).public_key()
    return sha256(public.public_bytes(Encoding.Raw, PublicFormat.Raw)).hex()[:16]


def _wanted(row: Row, context: Context) -> str:
    name: str = row[{"evm": "evm_address", "solana": "solana_address"}.get(context.purpose, "owner")]
    return name
