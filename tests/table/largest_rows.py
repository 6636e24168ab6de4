"""The making of the longest lists, one for each route that answers pages: rows as large as that route can make them.

One row is made as callers make it; the database's owner repeats it with every field at its longest. A tenant could
have made each of them by itself.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

# Longest as JSON: a character that is written in six.
_ODD = "repeat(chr(1), {})"
_WIDE = "repeat('\u00fc', {})"


class Longest(msgspec.Struct, frozen=True):
    """The makings of a long list, in order: requests of the table's world by name, and statements of the owner.

    In statements $1 is the tenant, $2 the segments of the list's path, $3 the owner of the tenant. `rows` counts what
    a walk through the list must reach. `undone` takes away at once what would be in the way of other lists, `ended`
    at last what belongs to no tenant.
    """

    rows: str
    made: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


def clone(table: str, count: int, where: str = "tenant_id = $1", **changed: str) -> str:
    """A statement that repeats a row of a table, with some columns changed; `n` numbers the rows, `t` is the first."""
    columns = {"id": "md5(n || $1)::uuid", **changed}
    pairs = ", ".join(f"'{name}', {value}" for name, value in columns.items() if value)
    return (
        f"INSERT INTO {table} SELECT r.* FROM {table} t, generate_series(1, {count}) n, "
        f"LATERAL json_populate_record(t, json_build_object({pairs})) r "
        f"WHERE t.ctid = (SELECT ctid FROM {table} WHERE {where} ORDER BY ctid DESC LIMIT 1)"
    )


def _of(table: str, where: str = "tenant_id = $1") -> str:
    return f"SELECT count(*) FROM {table} WHERE {where}"


def _texts(count: int, text: str) -> str:
    return f"(SELECT json_agg({text}) FROM generate_series(1, {count}))::text"


_KEPT = "json_build_object('k', repeat('m', {}))"
_OF_AGENT = "tenant_id = $1 AND agent_id = ($2)[2]"
_OF_CLIENT = "tenant_id = $1 AND client_id = ($2)[4]"
_ORDERS = (clone("transactions", 40, "tenant_id = $1 AND status = 'signed'", data="'0x' || repeat('ab', 131072)"),)
_WAITING = (
    clone(
        "transactions",
        300,
        "tenant_id = $1 AND status = 'pending_approval'",
        id="md5(n || 'waiting' || $1)::uuid",
        policy_results="(SELECT json_agg(e) FROM json_array_elements(t.policy_results::json) e, "
        "generate_series(1, 100))::text",
    ),
    clone("approvals", 300, id="md5(n || 'item' || $1)::uuid", tx_id="md5(n || 'waiting' || $1)::uuid"),
)
_ROUTES = (
    clone(
        "credential_routes",
        1500,
        fields="(t.fields::jsonb || json_build_object('pathPattern', '/' || n || repeat('p\"', 500), "
        "'injectFormat', '{value}' || repeat('\\', 1000))::jsonb)::text",
    ),
)
# More than one may make by oneself.
_ROUTES_AGAIN = ("DELETE FROM credential_routes WHERE tenant_id = $1 AND octet_length(fields) > 2000",)
_PEOPLE = "id IN (SELECT md5(n || $1)::uuid FROM generate_series(1, 400) n)"
_CROWD = (
    clone(
        "users",
        400,
        "id = $3",
        name=_WIDE.format(200),
        image="'https://example.com/' || repeat('i', 2000)",
        custom_metadata=f"{_KEPT.format(16_000)}::text",
    ),
    "INSERT INTO memberships (tenant_id, user_id, role, mac, created_at) "
    "SELECT $1, md5(n || $1)::uuid, 'viewer', '', now() FROM generate_series(1, 400) n",
    "INSERT INTO identities (kind, subject, user_id, mac, created_at) "
    "SELECT 'contract', '0x' || substr(md5(n || $1 || w) || md5(w || $1), 1, 40), md5(n || $1)::uuid, '', now() "
    "FROM generate_series(1, 400) n, generate_series(1, 50) w",
)
_GONE = (f"DELETE FROM users WHERE {_PEOPLE}",)
_MEMBERS = Longest(_of("memberships"), _CROWD, ended=_GONE)
_API_KEYS = Longest(
    _of("tenant_keys"),
    (clone("tenant_keys", 1000, key_hash=r"'\x' || md5(n || $1)", name=_WIDE.format(200)),),
)
_TRANSACTIONS = Longest(_of("transactions"), _ORDERS, ("POST /vault/{agentId}/sign",))
_INVITATIONS = Longest(
    _of("invitations"),
    (
        "INSERT INTO invitations (tenant_id, id, token_hash, email, role, status, created_at, expires_at, mac) "
        "SELECT $1, md5(n || $1)::uuid, uuid_send(md5(n || $1)::uuid), n || repeat('e', 240) || '@a.com', "
        "'viewer', 'pending', now(), now() + interval '1 day', '' FROM generate_series(1, 1500) n",
    ),
)

LONGEST: dict[str, Longest] = {
    "/agents": Longest(
        _of("agents"),
        (
            f"UPDATE agents SET name = {_WIDE.format(200)}, frozen_at = now(), frozen_reason = {_ODD.format(1000)} "
            "WHERE tenant_id = $1 AND id LIKE 'many-%'",
        ),
        ("many agents",),
    ),
    "/agents/{agentId}/apis": Longest(_of("credential_routes"), _ROUTES, ("POST /secrets/routes",), _ROUTES_AGAIN),
    "/agents/{agentId}/signers": Longest(
        _of("signers", _OF_AGENT),
        (
            clone(
                "signers",
                319,
                agent_id="($2)[2]",
                subject_id="repeat('s', 256)",
                label=_WIDE.format(64),
                policy_ids=_texts(50, _WIDE.format(128)),
                metadata=f"{_KEPT.format(4_000)}::text",
            ),
        ),
        ("POST /agents/{agentId}/signers",),
    ),
    "/agents/{agentId}/key-quorums": Longest(
        _of("key_quorums", _OF_AGENT),
        (
            clone(
                "key_quorums",
                287,
                agent_id="($2)[2]",
                name=_WIDE.format(200),
                members=_texts(32, "gen_random_uuid()"),
                children=_texts(32, "gen_random_uuid()"),
                metadata=f"{_KEPT.format(4_000)}::text",
            ),
        ),
        ("POST /agents/{agentId}/key-quorums",),
    ),
    "/vault/{agentId}/pending": Longest(
        _of("approvals", f"{_OF_AGENT} AND status = 'pending'"),
        (
            *_WAITING,
            "UPDATE transactions SET agent_id = ($2)[2] WHERE tenant_id = $1 AND id IN "
            "(SELECT md5(n || 'waiting' || $1)::uuid FROM generate_series(1, 300) n)",
            "UPDATE approvals SET agent_id = ($2)[2] WHERE tenant_id = $1 AND id IN "
            "(SELECT md5(n || 'item' || $1)::uuid FROM generate_series(1, 300) n)",
        ),
        ("an order that waits",),
    ),
    "/vault/{agentId}/history": Longest(_of("transactions", _OF_AGENT), _ORDERS, ("POST /vault/{agentId}/sign",)),
    "/vault/{agentId}/transactions": Longest(_of("transactions", _OF_AGENT), _ORDERS, ("POST /vault/{agentId}/sign",)),
    "/transactions": _TRANSACTIONS,
    "/platform/apps/gas_spend": Longest(
        _of("transactions", "tenant_id = $1 AND broadcast"),
        (
            clone(
                "transactions",
                1500,
                "tenant_id = $1 AND status = 'signed'",
                id="md5(n || 'sent' || $1)::uuid",
                broadcast="true",
                status="'confirmed'",
                data="NULL",
            ),
        ),
        ("POST /vault/{agentId}/sign",),
        ("DELETE FROM transactions WHERE tenant_id = $1 AND broadcast",),
    ),
    "/approvals": Longest(
        _of("approvals", "tenant_id = $1 AND status = 'pending'"), _WAITING, ("an order that waits",)
    ),
    "/approvals/words": Longest(
        _of("approvals", "tenant_id = $1 AND status = 'pending'"), _WAITING, ("an order that waits",)
    ),
    "/intents": Longest(
        _of("intents"),
        (
            clone(
                "intents",
                40,
                payload="json_build_object('data', '0x' || repeat('ab', 149000))::text",
                result="json_build_object('answer', repeat('r', 100000))::text",
                reason=_ODD.format(1000),
            ),
        ),
        ("POST /intents",),
    ),
    "/accounts": Longest(
        _of("accounts"),
        (
            clone(
                "accounts",
                200,
                id="'account-' || n",
                display_name=_WIDE.format(200),
                metadata=_KEPT.format(16_000),
                owner_user_ids=f"{_texts(32, 'gen_random_uuid()')}::json",
                additional_signer_ids=f"{_texts(32, _WIDE.format(100))}::json",
                signer_policy_ids=f"{_texts(32, _WIDE.format(100))}::json",
            ),
            "INSERT INTO account_wallets (tenant_id, id, account_id, place, agent_id, incarnation, name, created_at) "
            f"SELECT $1, md5(a.id || p || $1)::uuid, a.id, p, g.id, g.incarnation, {_WIDE.format(200)}, now() "
            "FROM accounts a, generate_series(0, 4) p, (SELECT * FROM agents WHERE tenant_id = $1 LIMIT 1) g "
            "WHERE a.tenant_id = $1 AND a.id LIKE 'account-%'",
        ),
        ("an account",),
    ),
    "/accounts/{accountId}/aggregations": Longest(
        _of("account_aggregations"),
        (
            "INSERT INTO account_aggregations SELECT $1, 'aggregation-' || n, ($2)[2], "
            f"{_WIDE.format(200)}, {_KEPT.format(16_000)}, {_texts(5, _WIDE.format(64))}::json, "
            '\'["evm", "solana"]\', now(), now() FROM generate_series(1, 400) n',
        ),
    ),
    "/approver-keys": Longest(
        _of("approver_keys"),
        (
            "INSERT INTO approver_keys (tenant_id, id, user_id, name, rp_id, credential_id, public_key, fingerprint, "
            f"mac, created_at) SELECT $1, md5(n || $1)::uuid, $3::uuid, {_WIDE.format(200)}, repeat('r', 253), "
            "repeat('c', 1364), '', md5(n || $1), '', now() FROM generate_series(1, 1000) n",
        ),
    ),
    "/secrets": Longest(
        _of("secrets", "tenant_id = $1 AND deleted_at IS NULL"),
        (clone("secrets", 1000, name=f"n || {_WIDE.format(190)}", description=_ODD.format(1000)),),
        ("POST /secrets",),
        ("DELETE FROM secrets WHERE tenant_id = $1 AND octet_length(description) = 1000",),
    ),
    "/secrets/routes": Longest(
        _of("credential_routes"),
        _ROUTES,
        ("POST /secrets/routes",),
        _ROUTES_AGAIN,
    ),
    "/policy-sets": Longest(
        _of("policy_sets"),
        (
            "INSERT INTO policy_sets (tenant_id, id, name, version, rules, mac, created_at, updated_at) "
            "SELECT $1, md5(n || $1), repeat('n', 200), 1, json_build_array(json_build_array('one', "
            "'approved-addresses', true, json_build_object('addresses', (SELECT json_agg(lpad(m::text, 42, '0'))"
            " FROM generate_series(1, 1000) m))::text))::text, '', now(), now() FROM generate_series(1, 100) n",
        ),
        (),
    ),
    "/payment-routes": Longest(
        _of("payment_routes"),
        (
            "INSERT INTO payment_routes (tenant_id, id, fields, priority, mac, created_at) "
            "SELECT $1, md5(n || $1)::uuid, json_build_object('hostPattern', 'a.example.com', "
            "'pathPattern', '/' || repeat('p\"', 500), 'maxPerCall', "
            "(SELECT json_object_agg(m || repeat('a', 126), repeat('9', 78)) FROM generate_series(1, 16) m), 'payTo', "
            "(SELECT json_agg(repeat('b', 128)) FROM generate_series(1, 16)))::text, 0, '', now() "
            "FROM generate_series(1, 1500) n",
        ),
        (),
    ),
    "/tenants/{id}/api-keys": _API_KEYS,
    "/platform/tenants/{id}/api-keys": _API_KEYS,
    "/tenants/{id}/app-clients": Longest(
        _of("app_clients"),
        (
            clone(
                "app_clients",
                49,
                id="'client-' || n",
                document="(t.document::jsonb || json_build_object('id', 'client-' || n, 'isDefault', false, "
                "'allowedRedirectUrls', (SELECT json_agg('https://example.com/' || repeat('p', 2000) || u) "
                "FROM generate_series(1, 50) u))::jsonb)::text",
            ),
        ),
        ("POST /tenants/{id}/app-clients",),
        ("DELETE FROM app_clients WHERE tenant_id = $1 AND id LIKE 'client-%'",),
    ),
    "/tenants/{id}/app-clients/{clientId}/secrets": Longest(
        _of("app_secrets", _OF_CLIENT),
        (
            "INSERT INTO app_secrets (tenant_id, id, client_id, secret_hash, prefix, mac, created_at) "
            "SELECT $1, md5(n || $1)::uuid, ($2)[4], uuid_send(md5(n || $1)::uuid), 'prefix', '', now() "
            "FROM generate_series(1, 1000) n",
        ),
    ),
    "/tenants/{id}/request-signing-keys": Longest(
        _of("signing_keys"),
        (
            "INSERT INTO signing_keys (tenant_id, id, prefix, mac, created_at) "
            "SELECT $1, md5(n || $1)::uuid, 'prefix', '', now() FROM generate_series(1, 1000) n",
        ),
    ),
    "/tenants/{id}/sso-domains": Longest(
        _of("sso_domains"),
        (
            "INSERT INTO sso_domains (tenant_id, domain, sso_required, token, created_at, mac) "
            "SELECT $1, 'd' || n || repeat('.' || repeat('x', 50), 4) || '.com', false, repeat('t', 64), now(), '' "
            "FROM generate_series(1, 20) n",
        ),
    ),
    "/audit/events": Longest(
        _of("audit"),
        (
            "INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, "
            f"metadata, user_agent, created_at) SELECT $1, 'api', 'user', $3, 'thing.done', 'thing', n::text, "
            f"{_KEPT.format(65_000)}::text, {_ODD.format(2_000)}, now() FROM generate_series(1, 150) n",
        ),
    ),
    "/audit/checkpoints": Longest(
        _of("audit_checkpoints"),
        (
            "INSERT INTO audit_checkpoints (tenant_id, size, root, frontier, note) "
            "SELECT $1, n, decode(repeat('00', 32), 'hex'), '{}', repeat('c', 400) FROM generate_series(1, 1000) n "
            "ON CONFLICT DO NOTHING",
        ),
        undone=("DELETE FROM audit_checkpoints WHERE tenant_id = $1 AND root = decode(repeat('00', 32), 'hex')",),
    ),
    "/platform/tenants": Longest(
        "SELECT count(*) FROM tenants WHERE $1 <> ''",
        (
            "INSERT INTO tenants (id, name) "
            f"SELECT 'many-' || md5(n || $1), {_WIDE.format(200)} FROM generate_series(1, 1000) n",
        ),
        undone=("DELETE FROM tenants WHERE id IN (SELECT 'many-' || md5(n || $1) FROM generate_series(1, 1000) n)",),
    ),
    "/platform/users": _MEMBERS,
    "/tenants/{id}/members": _MEMBERS,
    "/platform/tenants/{id}/members": _MEMBERS,
    "/platform/tenants/{id}/users": _MEMBERS,
    "/user/me/tenants/{id}/users": _MEMBERS,
    "/user/me/tenants/{tenantId}/users/wallet-policy/violations": Longest(
        "SELECT 400 WHERE $1 <> ''", _CROWD, ended=_GONE
    ),
    "/platform/tenants/{id}/invitations": _INVITATIONS,
    "/tenants/{id}/invitations": _INVITATIONS,
    "/webhooks": Longest(
        _of("webhook_endpoints", "tenant_id = $1 AND deleted_at IS NULL"),
        (
            "INSERT INTO webhook_endpoints (tenant_id, id, url, events, max_retries, retry_backoff_ms, description) "
            "SELECT $1, md5(n || $1)::uuid, 'https://example.com/' || repeat('u', 2000), "
            f"array_fill(repeat('e', 64), ARRAY[32]), 5, 1000, {_ODD.format(1000)} FROM generate_series(1, 1000) n",
        ),
        undone=("DELETE FROM webhook_endpoints WHERE tenant_id = $1",),
    ),
    "/webhooks/{id}/deliveries": Longest(
        _of("deliveries", "tenant_id = $1 AND endpoint_id = ($2)[2]::uuid"),
        (
            "INSERT INTO deliveries (tenant_id, endpoint_id, event, url, status, attempts, max_attempts, error, body) "
            "SELECT $1, ($2)[2]::uuid, 'tx.signed', 'https://example.com/', 'failed', 6, 6, repeat('e', 256), "
            "repeat('b', 16000) FROM generate_series(1, 300) n",
        ),
    ),
    "/notification-channels": Longest(
        _of("notification_channels", "tenant_id = $1 AND deleted_at IS NULL"),
        (
            "INSERT INTO notification_channels (tenant_id, id, kind, host, last_four, events, detail, after_minutes, "
            "quiet_start, quiet_end, quiet_zone, description) SELECT $1, md5(n || $1)::uuid, 'ntfy', "
            "repeat('h', 253), 'four', ARRAY['waiting', 'expiring', 'frozen', 'budget', 'rules'], 'words', 1440, "
            f"'22:00', '07:00', repeat('z', 64), {_ODD.format(1000)} FROM generate_series(1, 19) n",
        ),
        undone=("DELETE FROM notification_channels WHERE tenant_id = $1",),
    ),
    "/user/me/push-subscriptions": Longest(
        _of("notification_channels", "tenant_id = $1 AND user_id = $3::uuid AND deleted_at IS NULL"),
        (
            "INSERT INTO notification_channels (tenant_id, id, user_id, kind, host, last_four, events, detail, "
            "after_minutes, quiet_start, quiet_end, quiet_zone, description) SELECT $1, md5('p' || n || $1)::uuid, "
            "$3::uuid, 'webpush', repeat('h', 253), 'four', ARRAY['waiting', 'expiring', 'frozen', 'budget', 'rules'], "
            f"'words', 1440, '22:00', '07:00', repeat('z', 64), {_ODD.format(1000)} FROM generate_series(1, 4) n",
        ),
        undone=("DELETE FROM notification_channels WHERE tenant_id = $1 AND user_id IS NOT NULL",),
    ),
    "/notification-channels/{id}/deliveries": Longest(
        _of("notices", "tenant_id = $1 AND channel_id = ($2)[2]::uuid"),
        (
            "INSERT INTO notices (tenant_id, channel_id, kind, status, attempts, max_attempts, error) "
            "SELECT $1, ($2)[2]::uuid, 'ntfy', 'failed', 20, 20, repeat('e', 256) FROM generate_series(1, 300) n",
        ),
    ),
    "/auth/sessions": Longest(
        _of("sessions", "$1 <> '' AND user_id = $3::uuid AND revoked_at IS NULL"),
        (clone("sessions", 900, "user_id = $3::uuid", user_agent=_WIDE.format(256)),),
    ),
    "/auth/passkeys": Longest(
        _of("passkeys", "$1 <> '' AND user_id = $3::uuid"),
        (
            "INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, transports, name, mac, "
            f"created_at) SELECT md5(n || $1)::uuid, $3::uuid, decode(repeat(md5(n || $1), 31), 'hex'), '', 0, '{{}}', "
            f"{_WIDE.format(200)}, '', now() FROM generate_series(1, 20) n",
        ),
    ),
    "/auth/identities": Longest(
        _of("identities", "$1 <> '' AND user_id = $3::uuid"),
        (
            "INSERT INTO identities (kind, subject, user_id, mac, created_at) SELECT 'contract', "
            "'0x' || substr(md5(n || $1) || md5($1), 1, 40), $3::uuid, '', now() FROM generate_series(1, 500) n",
        ),
    ),
}
# Lists without pages, and what keeps each short.
UNPAGED = {
    "/chains": "the operator's own list",
    "/agents/{agentId}/policies": "64 KiB of rules: custody.policies.rules.MAX_BYTES",
    "/policy-templates": "50 of the tenant and those of the service: custody.identity.theme.PolicyTemplates",
    "/user/me/wallets": "a wallet of each person for each chain family and index",
}


def segments(path: str) -> list[str]:
    """The parts of a path, for $2 (SQL counts from one)."""
    return path.partition("?")[0].strip("/").split("/")


def rows_of(data: Any) -> Iterable[Any]:
    """The rows of a page, wherever its answer has them."""
    if isinstance(data, list):
        return data
    names = ("data", "transactions", "intents", "accounts", "aggregations", "invitations", "violations", "entries")
    return next(data[name] for name in names if name in data)
