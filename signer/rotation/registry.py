"""Everything of the signer's that is sealed or under a MAC, and how each is made again under another version.

This is the whole list: `tests/structure/test_registry.py` fails when the signer seals or authenticates something that
does not stand here. What is under identity's key stands in `identity/rotation/registry.py`.
"""

import re

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from custody.imports.envelope import Bound
from custody.worker.registry import Maced, Row, Sealed
from custody.worker.sealing import Context, Tampered, fields
from custody.worker.token_keys import kid_of, public_of
from signer import statement_keys
from signer.authority_seals import AUTHORITY_MAC, content_of_set
from signer.bitcoin_seals import ACCOUNT_MAC, account_content
from signer.broken_quorums import QUORUM_BREAK_MAC, break_content
from signer.credentials import REFRESH, ROUTE_MAC, place, place_of_refresh
from signer.imports import PRIVATE_HALF, place_of
from signer.intents.sealed import INTENT_MAC
from signer.intents.sealed import Sealed as Intent
from signer.payment_routes import PAYMENT_ROUTE_MAC
from signer.policies import POLICY_MAC, content_of_stored
from signer.recipients import RECIPIENT_MAC
from signer.recipients import content as recipient_content
from signer.set_seals import SET_MAC
from signer.set_seals import content as content_of_policy_set
from signer.signers import CREDENTIAL, credential_place
from signer.statements import APPROVAL_MAC, approval_content, times_of
from signer.votes import APPROVER_KEY_MAC, key_content
from signer.wallets.built_in import KEYS, address_of

# Each owner kind of a sealed value, with its purposes.
PURPOSES: dict[str, tuple[str, ...]] = {
    "agent": tuple(KEYS),
    "token_key": ("token-key", *(f"{use}-key" for use in statement_keys.USES)),
    "secret": ("secret", REFRESH),
    "signer": (CREDENTIAL,),
    "import_session": (PRIVATE_HALF,),
}
# A key that an import replaced: `evm-before:1`.
_BEFORE = re.compile(r"(\w+)-before:[1-9][0-9]*")


def context_of(row: Row) -> Context:
    """Name where a sealed value belongs; Tampered for one that belongs nowhere."""
    kind, detail = row["owner_kind"], ""
    before = _BEFORE.fullmatch(row["purpose"]) if kind == "agent" else None
    if (before[1] if before else row["purpose"]) not in PURPOSES.get(kind, ()):
        raise Tampered
    if kind == "agent":
        if row["incarnation"] is None:
            raise Tampered
        detail = str(row["incarnation"])
    if kind == "signer":
        if row["signer_incarnation"] is None:
            raise Tampered
        return credential_place(row["tenant_id"], row["owner"], str(row["signer_incarnation"]))
    if kind == "import_session":
        return import_place(row)
    if kind == "secret":
        if row["version"] is None:
            raise Tampered
        if row["purpose"] == REFRESH:
            return place_of_refresh(row["tenant_id"], row["owner"], row["version"])
        return place(row["tenant_id"], row["owner"], row["version"], row["expires_at"])
    return Context(row["tenant_id"], kind, row["owner"], row["purpose"], detail)


def import_place(row: Row) -> Context:
    """Name where the private half of an import session belongs."""
    if row["import_agent"] is None:
        raise Tampered
    user = str(row["user_id"]) if row["user_id"] else None
    bound = Bound(
        row["owner"],
        row["tenant_id"],
        row["import_agent"],
        row["chain"],
        user,
        row["wallet_index"],
        row["app_client"],
    )
    return place_of(bound, str(row["import_incarnation"]), row["import_expires_at"])


def _fits(value: bytes, row: Row, context: Context) -> bool:
    """Say whether a key is the one of the address or id beside it."""
    if context.owner_kind == "agent":
        return bool(address_of(context.purpose.partition("-before:")[0], value) == row["address"])
    if context.owner_kind == "token_key":
        return kid_of(public_of(Ed25519PrivateKey.from_private_bytes(value))) == str(row["owner"])
    return True


KINDS: tuple[Sealed | Maced, ...] = (
    Sealed(
        table="sealed",
        what="sealed values",
        made="blob",
        keys=(("tenant_id", "text"), ("owner_kind", "text"), ("owner", "text"), ("purpose", "text")),
        columns="a.incarnation, w.address, s.version, s.expires_at, o.incarnation AS signer_incarnation, "
        "i.agent_id AS import_agent, i.incarnation AS import_incarnation, i.chain, i.user_id, i.wallet_index, "
        "i.app_client, i.expires_at AS import_expires_at",
        joins="LEFT JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id "
        "LEFT JOIN wallets w ON w.tenant_id = t.tenant_id AND w.agent_id = t.agent_id "
        "AND w.family = split_part(t.purpose, '-before:', 1) AND w.scope = substr(t.purpose, length(w.family) + 2) "
        "LEFT JOIN secrets s ON s.tenant_id = t.tenant_id AND s.id = t.secret_id "
        "LEFT JOIN signers g ON g.tenant_id = t.tenant_id AND g.id = t.signer_id "
        "LEFT JOIN agents o ON o.tenant_id = g.tenant_id AND o.id = g.agent_id "
        "LEFT JOIN import_sessions i ON i.tenant_id = t.tenant_id AND i.id = t.import_session_id",
        context=context_of,
        fits=_fits,
    ),
    Maced(
        table="policy_heads",
        what="sets of rules",
        keys=(("tenant_id", "text"), ("agent_id", "text")),
        columns="t.version, t.count, a.incarnation, a.policy_version, (SELECT json_agg(json_build_array(r.id, r.type, "
        "r.enabled, r.config) ORDER BY r.position)::text FROM policy_rules r WHERE r.tenant_id = t.tenant_id "
        "AND r.agent_id = t.agent_id) AS rules",
        joins="JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id",
        purpose=POLICY_MAC,
        content=lambda row: content_of_stored(
            row["tenant_id"],
            row["agent_id"],
            str(row["incarnation"]),
            (row["version"], row["count"]),
            row["policy_version"],
            row["rules"] or "[]",
        ),
    ),
    Maced(
        table="policy_sets",
        what="policy sets",
        keys=(("tenant_id", "text"), ("id", "text")),
        columns="t.version, t.rules",
        purpose=SET_MAC,
        content=lambda row: content_of_policy_set(row["tenant_id"], row["id"], row["version"], row["rules"]),
    ),
    Maced(
        table="authority_heads",
        what="sets of signers",
        keys=(("tenant_id", "text"), ("agent_id", "text")),
        columns="t.version, a.incarnation, a.authority_version, authority_read(t.tenant_id, t.agent_id) AS authority",
        joins="JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id",
        purpose=AUTHORITY_MAC,
        content=lambda row: content_of_set(
            row["tenant_id"], row["agent_id"], str(row["incarnation"]), row["authority_version"], row["authority"]
        ),
    ),
    Maced(
        table="approvals",
        what="queued orders",
        keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.agent_id, t.tx_id, t.digest, o.incarnation, o.authorization_text, t.waits_since, t.release_at",
        joins="JOIN transactions o ON o.tenant_id = t.tenant_id AND o.id = t.tx_id",
        purpose=APPROVAL_MAC,
        content=lambda row: approval_content(
            row["tenant_id"],
            row["agent_id"],
            str(row["incarnation"]),
            str(row["tx_id"]),
            str(row["id"]),
            row["digest"],
            row["authorization_text"],
            times_of(row),
        ),
    ),
    Maced(
        table="recipients",
        what="recipients that a person let an agent reach",
        keys=(("tenant_id", "text"), ("agent_id", "text"), ("incarnation", "uuid"), ("kind", "text"), ("name", "text")),
        columns="t.noted_at",
        purpose=RECIPIENT_MAC,
        content=lambda row: recipient_content(
            row["tenant_id"], row["agent_id"], str(row["incarnation"]), row["kind"], row["name"]
        ),
    ),
    Maced(
        table="approver_keys",
        what="approver keys",
        keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.user_id, t.rp_id, t.credential_id, t.public_key, t.revoked_at",
        purpose=APPROVER_KEY_MAC,
        content=lambda row: key_content(
            row["tenant_id"],
            str(row["id"]),
            str(row["user_id"]),
            row["rp_id"],
            row["credential_id"],
            row["public_key"],
            revoked=row["revoked_at"] is not None,
        ),
    ),
    Maced(
        table="quorum_breaks",
        what="breaks of approval quorums",
        keys=(("tenant_id", "text"), ("agent_id", "text")),
        columns="t.policy_version, t.effective_at, a.incarnation",
        joins="JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id",
        purpose=QUORUM_BREAK_MAC,
        content=lambda row: break_content(
            row["tenant_id"], row["agent_id"], str(row["incarnation"]), row["policy_version"], row["effective_at"]
        ),
    ),
    Maced(
        table="bitcoin_accounts",
        what="account keys",
        keys=(("tenant_id", "text"), ("agent_id", "text"), ("account", "text")),
        columns="t.public_key, t.chain_code, a.incarnation",
        joins="JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id",
        purpose=ACCOUNT_MAC,
        content=lambda row: account_content(
            row["tenant_id"],
            row["agent_id"],
            str(row["incarnation"]),
            row["account"],
            row["public_key"],
            row["chain_code"],
        ),
    ),
    Maced(
        table="intents",
        what="intents",
        keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.agent_id, t.incarnation, t.type, t.payload, t.digest, t.status, t.created_by, t.baseline, "
        "t.authorized_by, t.authorized_at, t.tx_ids, t.expires_at",
        purpose=INTENT_MAC,
        content=lambda row: Intent.of(row["tenant_id"], row).content,
    ),
    Maced(
        table="credential_routes",
        what="credential routes",
        keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.secret_id, t.fields",
        purpose=ROUTE_MAC,
        content=lambda row: fields(row["tenant_id"], str(row["id"]), str(row["secret_id"] or ""), row["fields"]),
    ),
    Maced(
        table="payment_routes",
        what="payment routes",
        keys=(("tenant_id", "text"), ("id", "uuid")),
        columns="t.fields",
        purpose=PAYMENT_ROUTE_MAC,
        content=lambda row: fields(row["tenant_id"], str(row["id"]), row["fields"]),
    ),
)
