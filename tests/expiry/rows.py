"""Rows that grow old: how each is made at a moment $1, and how long after it the row is deleted."""

from datetime import timedelta

import asyncpg
import msgspec

MONTH = timedelta(days=30)
SEASON = timedelta(days=90)
NOW = timedelta()
USER, SESSION, ENDPOINT = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
# What the rows below hang on: a tenant, a person, an endpoint, an app client, an agent.
GROUND = f"""
INSERT INTO tenants (id, name) VALUES ('t', 'T');
INSERT INTO tenant_keys (tenant_id, key_hash, prefix, mac, created_at) VALUES ('t', '\\x00', 'p', '', '2021-01-01');
INSERT INTO users (id, created_at) VALUES ('{USER}', '2020-01-01');
INSERT INTO webhook_endpoints (tenant_id, id, url, max_retries, retry_backoff_ms)
VALUES ('t', '{ENDPOINT}', 'https://a.b', 0, 1000);
INSERT INTO app_clients VALUES ('t', 'web', '{{}}', true, '', '2020-01-01', '2020-01-01');
INSERT INTO agents (tenant_id, id, name, incarnation) VALUES ('t', 'a', 'A', '{USER}');
"""
_SESSION = (
    "INSERT INTO sessions (id, user_id, tenant_id, provider, amr, mac, created_at, used_at, expires_at, revoked_at) "
    f"VALUES (gen_random_uuid(), '{USER}', 't', 'email', '{{{{}}}}', '', '2020-01-01', '2020-01-01', {{}})"
)
_ENDPOINT = (
    "INSERT INTO webhook_endpoints (tenant_id, id, url, max_retries, retry_backoff_ms, deleted_at) "
    "VALUES ('t', gen_random_uuid(), 'https://a.b', 0, 1000, {}) RETURNING id"
)
_DELIVERY = (
    "INSERT INTO deliveries (tenant_id, endpoint_id, event, url, max_attempts, next_retry_at, created_at) "
    "VALUES ('t', {}, 'tx.signed', 'https://a.b', 1, {}, $1)"
)
_FORMER = (
    "INSERT INTO identity_sealed (tenant_id, owner_kind, owner, purpose, key_version, blob, ends_at) "
    f"VALUES ('t', 'webhook', '{ENDPOINT}', gen_random_uuid()::text, 1, '', {{}})"
)
_CHANNEL = (
    "INSERT INTO notification_channels (tenant_id, id, kind, host, last_four, detail, after_minutes, deleted_at) "
    "VALUES ('t', gen_random_uuid(), 'slack', 'h', '', 'words', 0, {}) RETURNING id"
)
_KEY = (
    "INSERT INTO signing_keys (tenant_id, id, prefix, mac, created_at, retires_at, revoked_at) "
    "VALUES ('t', gen_random_uuid(), 'p', '', '2020-01-01', {}) RETURNING id"
)
_APP_SECRET = (
    "INSERT INTO app_secrets (tenant_id, id, client_id, secret_hash, prefix, mac, created_at, retires_at, revoked_at) "
    "VALUES ('t', gen_random_uuid(), 'web', uuid_send(gen_random_uuid()), 'p', '', '2020-01-01', {}) "
    "RETURNING encode(secret_hash, 'hex') AS id"
)
_TENANT_KEY = (
    "INSERT INTO tenant_keys (tenant_id, key_hash, prefix, mac, created_at, retires_at, revoked_at) "
    "VALUES ('t', uuid_send(gen_random_uuid()), 'p', '', '2020-01-01', {})"
)
_SECRET = (
    "INSERT INTO secrets (tenant_id, id, name, version, created_at, expires_at, deleted_at) "
    "VALUES ('t', gen_random_uuid(), gen_random_uuid()::text, 1, '2020-01-01', {}) RETURNING id"
)
_SEALED = (
    "WITH owner AS ({}) INSERT INTO {} (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "SELECT 't', '{}', id::text, 'p', 1, '' FROM owner"
)
_SIGNATURE = (
    "INSERT INTO used_signatures (tenant_id, key_name, signature_hash, idempotency_hash, expires_at) "
    "SELECT 't', {}, uuid_send(gen_random_uuid()), '', {}"
)
_ROUTE = (
    "INSERT INTO credential_routes (tenant_id, id, secret_id, fields, priority, mac, created_at) "
    "SELECT 't', gen_random_uuid(), id, '{}', 0, '', '2020-01-01' FROM owner"
)
_IDEMPOTENCY = (
    "INSERT INTO idempotency (tenant_id, principal, route, key_hash, fingerprint, expires_at) "
    "VALUES ('t', 'p', 'r', uuid_send(gen_random_uuid()), '', $1)"
)
_SIGN_IN = (
    "INSERT INTO sign_in_requests (state_hash, document, mac, expires_at) "
    "VALUES (uuid_send(gen_random_uuid()), '{}', '', $1)"
)
_EXCHANGE_CODE = (
    "INSERT INTO exchange_codes (code_hash, document, mac, expires_at) "
    "VALUES (uuid_send(gen_random_uuid()), '{}', '', $1)"
)
_SET_SPEND = (
    "WITH s AS (INSERT INTO policy_sets VALUES ('t', gen_random_uuid()::text, 's', 1, '[]', '', now(), now()) "
    "RETURNING id) INSERT INTO set_spend SELECT 't', id, 'usd', $1, 1 FROM s"
)
_BUCKET = "INSERT INTO {} VALUES ('t', 'a', gen_random_uuid(), {})"


class Line(msgspec.Struct, frozen=True):
    """A line of `retention`: a row of it, and the age from which on the row goes."""

    what: str
    row: str
    age: timedelta


def _with(owner: str, act: str) -> str:
    """A row that names another one, which is made with it."""
    return f"WITH owner AS ({owner}) {act}"


LINES = (
    Line("deliveries", _DELIVERY.format(f"'{ENDPOINT}'", "'2100-01-01'"), MONTH),
    Line(
        "events",
        "INSERT INTO events (tenant_id, id, event, data, created_at, published_at) "
        "VALUES ('t', gen_random_uuid(), 'tx.signed', '{}', $1, $1)",
        MONTH,
    ),
    Line("deleted endpoints", _ENDPOINT.format("$1"), MONTH),
    Line("former secrets of webhooks", _FORMER.format("$1"), NOW),
    Line(
        "notices",
        _with(
            _CHANNEL.format("NULL"),
            "INSERT INTO notices (tenant_id, channel_id, kind, max_attempts, created_at) "
            "SELECT 't', id, 'slack', 1, $1 FROM owner",
        ),
        MONTH,
    ),
    Line(
        "targets of deleted channels",
        _SEALED.format(_CHANNEL.format("$1"), "identity_sealed", "channel"),
        timedelta(hours=1),
    ),
    Line("deleted channels", _CHANNEL.format("$1"), MONTH),
    Line("idempotency keys", _IDEMPOTENCY, NOW),
    Line("sign-in nonces", "INSERT INTO sign_in_nonces VALUES (uuid_send(gen_random_uuid()), $1)", NOW),
    Line("sign-in codes", "INSERT INTO sign_in_codes VALUES ('email', gen_random_uuid()::text, '', 0, $1)", NOW),
    Line("challenges", "INSERT INTO challenges VALUES (uuid_send(gen_random_uuid()), 'sign_in', NULL, NULL, $1)", NOW),
    Line(
        "enrolments",
        f"INSERT INTO enrolments SELECT '{USER}', CASE WHEN EXISTS (SELECT FROM enrolments) "
        "THEN 'sms' ELSE 'totp' END, NULL, NULL, '', $1",
        NOW,
    ),
    Line(
        "ended intents",
        "INSERT INTO intents (tenant_id, id, type, payload, digest, status, created_by, expires_at, created_at, "
        "updated_at, mac) VALUES ('t', gen_random_uuid(), 'rpc', '{}', '', 'expired', 'me', $1, $1, $1, '')",
        timedelta(days=365),
    ),
    Line(
        "import sessions",
        "INSERT INTO import_sessions (tenant_id, id, agent_id, incarnation, chain, expires_at, created_at) "
        f"VALUES ('t', gen_random_uuid(), 'a', '{USER}', 'evm', $1, $1)",
        timedelta(hours=1),
    ),
    Line(
        "device codes",
        "INSERT INTO device_codes (device_hash, user_code, tenant_id, mac, created_at, expires_at) "
        "VALUES (uuid_send(gen_random_uuid()), gen_random_uuid()::text, 't', '', $1, $1)",
        timedelta(hours=1),
    ),
    Line(
        "charges of calls",
        "INSERT INTO call_charges (tenant_id, id, agent_id, incarnation, route_id, micro_usd, hour) "
        f"VALUES ('t', gen_random_uuid(), 'a', '{USER}', '{USER}', 1, $1)",
        timedelta(days=2),
    ),
    Line("sign-ins under way", _SIGN_IN, NOW),
    Line("exchange codes", _EXCHANGE_CODE, timedelta(minutes=15)),
    Line(
        "seen SAML assertions", "INSERT INTO saml_assertions_seen VALUES ('t', uuid_send(gen_random_uuid()), $1)", NOW
    ),
    Line(
        "former SAML keys",
        "INSERT INTO saml_keys (tenant_id, id, certificate, created_at, ends_at) "
        "VALUES ('t', gen_random_uuid(), '', '2020-01-01', $1)",
        NOW,
    ),
    Line(
        "ended invitations",
        "INSERT INTO invitations (tenant_id, id, token_hash, email, role, status, ended_at, created_at, expires_at, "
        "mac) VALUES ('t', gen_random_uuid(), uuid_send(gen_random_uuid()), 'a@b.c', 'viewer', 'expired', $1, $1, "
        "$1, '')",
        SEASON,
    ),
    Line("attempts", "INSERT INTO attempts VALUES (gen_random_uuid()::text, 1, $1)", NOW),
    Line("sessions", _SESSION.format("'2100-01-01', $1"), MONTH),
    Line("sessions", _SESSION.format("$1, NULL"), MONTH),
    Line("used signatures", _SIGNATURE.format("'k'", "$1"), timedelta(minutes=1)),
    Line(
        "signatures of ended keys",
        _with(_KEY.format("NULL, $1"), _SIGNATURE.format("id::text", "'infinity'") + " FROM owner"),
        timedelta(days=1),
    ),
    Line(
        "signatures of ended keys",
        _with(_APP_SECRET.format("$1, NULL"), _SIGNATURE.format("id", "'infinity'") + " FROM owner"),
        timedelta(days=1),
    ),
    Line(
        "sealed values of ended signing keys",
        _SEALED.format(_KEY.format("$1, NULL"), "identity_sealed", "signing_key"),
        timedelta(days=1),
    ),
    Line("ended signing keys", _KEY.format("$1, NULL"), SEASON),
    Line("ended app secrets", _APP_SECRET.format("NULL, $1"), SEASON),
    Line("ended tenant keys", _TENANT_KEY.format("$1, NULL"), SEASON),
    Line("ended tenant keys", _TENANT_KEY.format("NULL, $1"), SEASON),
    Line("values of expired secrets", _SEALED.format(_SECRET.format("$1, NULL"), "sealed", "secret"), MONTH),
    Line("deleted secrets", _SECRET.format("NULL, $1"), MONTH),
    Line("event marks", "INSERT INTO event_marks VALUES ('t', 'a', gen_random_uuid()::text, $1)", timedelta(days=8)),
    Line("spend", _BUCKET.format("spend", "'evm:native', $1, 1"), timedelta(days=8)),
    Line("spend of policy sets", _SET_SPEND, timedelta(days=8)),
    Line("rate", _BUCKET.format("rate", "'hour', $1, 1"), timedelta(days=8)),
)

# What stays however old it is.
KEPT = {
    "an endpoint that lives": _ENDPOINT.format("CASE WHEN $1 IS NULL THEN $1 END"),
    "the newest secret of an endpoint": _FORMER.format("CASE WHEN $1 IS NULL THEN $1 END"),
    "an endpoint of which a delivery speaks": _with(
        _ENDPOINT.format("$1"),
        _DELIVERY.replace("VALUES (", "SELECT ")
        .replace("$1)", "$1 + interval '100 years' FROM owner")
        .format("id", "NULL"),
    ),
    "a session that lives": _SESSION.format("$1 + interval '100 years', NULL"),
    "a signature that names no time, of a key that lives": _with(
        _KEY.format("CASE WHEN $1 IS NULL THEN $1 END, NULL"),
        _SIGNATURE.format("id::text", "'infinity'") + " FROM owner",
    ),
    "the sealed value of a key that lives": _SEALED.format(
        _KEY.format("CASE WHEN $1 IS NULL THEN $1 END, NULL"), "identity_sealed", "signing_key"
    ),
    "an app secret that lives": _APP_SECRET.format("CASE WHEN $1 IS NULL THEN $1 END, NULL"),
    "a tenant key that lives": _TENANT_KEY.format("CASE WHEN $1 IS NULL THEN $1 END, NULL"),
    "the last key that a tenant had": _with(
        "INSERT INTO tenants (id, name) VALUES ('keyless', 'K') RETURNING id",
        "INSERT INTO tenant_keys (tenant_id, key_hash, prefix, mac, created_at, revoked_at) "
        "SELECT id, '\\x01', 'p', '', '2020-01-01', $1 FROM owner",
    ),
    "a value that never expires": _SEALED.format(
        _SECRET.format("CASE WHEN $1 IS NULL THEN $1 END, NULL"), "sealed", "secret"
    ),
    "a deleted secret that a route names": _with(_SECRET.format("NULL, $1"), _ROUTE),
    "a transaction": "INSERT INTO transactions (tenant_id, id, agent_id, incarnation, kind, family, status, broadcast, "
    f"order_text, digest, effects, policy_results, policy_version, answer, created_at) VALUES ('t', '{USER}', 'a', "
    f"'{USER}', 'evm', 'evm', 'rejected', false, '', '', '', '', 1, '', $1)",
    "an approval": "INSERT INTO approvals (tenant_id, id, tx_id, agent_id, status, digest, mac, requested_at, "
    f"resolved_at) VALUES ('t', '{USER}', '{USER}', 'a', 'expired', '', '', $1, $1)",
    "an audit row": "INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, "
    "resource_id, metadata, created_at) VALUES ('t', 'me', 'system', 'me', 'x', 'x', 'x', '{}', $1)",
    "a nonce": "INSERT INTO nonces VALUES ('t', 'a', '0x', 1, 1, '00000000-0000-4000-8000-000000000001', 'seen', "
    "CASE WHEN $1::timestamptz IS NULL THEN '' ELSE '{}' END)",
}


async def count_rows(owner: asyncpg.Connection) -> dict[str, int]:
    """Count the rows of each table."""
    tables = await owner.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
    )
    return {row[0]: await owner.fetchval(f"SELECT count(*) FROM {row[0]}") for row in tables}
