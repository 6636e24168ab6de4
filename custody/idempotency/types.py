"""Idempotency figures as answers show them. Spec 2/4.3."""

import msgspec

# For how long a key is remembered (decisions 6).
TTL_MS = 24 * 60 * 60 * 1000


class Counters(msgspec.Struct, frozen=True, rename="camel"):
    """What requests with a key came to; no key, body or credential is among it."""

    observed: int = 0
    reserved: int = 0
    completed: int = 0
    replayed: int = 0
    conflicts: int = 0
    in_flight_conflicts: int = 0
    suppressed_auth_responses: int = 0
    invalid_keys: int = 0
    store_errors: int = 0
    skipped_unsafe_context: int = 0
    released_on_error: int = 0


class IdempotencyMetrics(msgspec.Struct, frozen=True, rename="camel"):
    """The figures of one tenant; the times are null while nothing was counted."""

    tenant_id: str
    generated_at: str
    window_started_at: str | None
    last_seen_at: str | None
    ttl_ms: int
    counters: Counters
