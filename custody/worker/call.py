"""One message with everything that is proven or said about its sender."""

import msgspec

from custody.kit.callers import Authorization, IdempotencyKey, Origin


class Call[C](msgspec.Struct, frozen=True):
    """The caller (proven), from where, and under which Idempotency-Key."""

    caller: C
    origin: Origin
    key: IdempotencyKey | None
    # The credential itself, for the one use case that checks what was signed with it.
    credential: str = ""
    # Who else agreed; checked by whoever carries the command out.
    authorization: Authorization | None = None

    def __repr__(self) -> str:
        return f"Call({self.caller!r})"

    @property
    def origin_row(self) -> list[str | None]:
        """The origin as audit rows take it."""
        return [self.origin.request_id, self.origin.ip, self.origin.user_agent]

    @property
    def key_row(self) -> tuple[str | None, bytes | None, bytes | None]:
        """Route, key and fingerprint as the SQL functions take them; nulls without a key."""
        return (self.key.route, self.key.key_hash, self.key.fingerprint) if self.key else (None, None, None)
