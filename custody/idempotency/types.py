"""Idempotency figures as answers show them."""

from typing import Annotated

import msgspec

from custody.kit.described import Instant, described

# For how long a key is remembered.
TTL_MS = 24 * 60 * 60 * 1000


class Counters(msgspec.Struct, frozen=True, rename="camel"):
    """Outcomes of requests with a key; contains no key, body or credential."""

    observed: Annotated[int, described("Requests with a key.")] = 0
    reserved: Annotated[int, described("Requests that began an act under their key.")] = 0
    completed: Annotated[int, described("Acts whose answer was stored.")] = 0
    replayed: Annotated[int, described("Requests that got a stored answer.")] = 0
    conflicts: Annotated[int, described("Keys that came with another request.")] = 0
    in_flight_conflicts: Annotated[int, described("Keys whose first request was still in progress.")] = 0
    suppressed_auth_responses: Annotated[int, described("Answers with a secret, which are not stored.")] = 0
    invalid_keys: Annotated[int, described("Keys that are malformed.")] = 0
    store_errors: Annotated[int, described("Requests that failed because the database was away.")] = 0
    skipped_unsafe_context: Annotated[int, described("Requests to routes that take no key.")] = 0
    released_on_error: Annotated[int, described("Requests that failed and left their key free.")] = 0


class IdempotencyMetrics(msgspec.Struct, frozen=True, rename="camel"):
    """The figures of one tenant; the times are null if nothing was counted."""

    tenant_id: Annotated[str, described("The tenant.")]
    generated_at: Annotated[Instant, described("Time of reading the figures.")]
    window_started_at: Annotated[Instant | None, described("Time when counting began.")]
    last_seen_at: Annotated[Instant | None, described("Time of the last count.")]
    ttl_ms: Annotated[int, described("For how long an answer is stored, in milliseconds.")]
    counters: Annotated[Counters, described("The figures.")]
