"""What a running signer consists of."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from custody.chains.table import ChainTable
from custody.kit.callers import IdempotencyKey, Origin
from custody.kit.db import Pool
from signer.audit_journal import AuditLog
from signer.judging import JudgingSeals
from signer.policies import PolicySeals
from signer.proofs import Proofs
from signer.rotation.keys import Keys
from signer.sealing import Sealer
from signer.statement_keys import StatementKeys
from signer.tokens import Minter
from signer.turns import Turns


class Ask[C](msgspec.Struct, frozen=True):
    """Who asks (proven), from where, and under which Idempotency-Key."""

    caller: C
    origin: Origin
    key: IdempotencyKey | None
    # The credential itself, for the one story that checks what was signed with it.
    shown: str = ""

    def __repr__(self) -> str:
        return f"Ask({self.caller!r})"

    @property
    def origin_row(self) -> list[str | None]:
        """The origin as audit rows take it."""
        return [self.origin.request_id, self.origin.ip, self.origin.user_agent]

    @property
    def key_row(self) -> tuple[str | None, bytes | None, bytes | None]:
        """Route, key and fingerprint as the SQL functions take them; nulls without a key."""
        return (self.key.route, self.key.key_hash, self.key.fingerprint) if self.key else (None, None, None)


@dataclass(frozen=True)
class Signer:
    """Wired together once, in `__main__`."""

    pool: Pool
    sealer: Sealer
    keys: Keys
    minter: Minter
    statement_keys: StatementKeys
    audit_log: AuditLog
    proofs: Proofs
    policies: PolicySeals
    judging: JudgingSeals
    chains: ChainTable
    empty_policy: Literal["allow", "deny"]
    agent_put_replaces: bool
    allow_broad_secret_routes: bool
    allow_cookie_injection: bool
    public_url: str
    turns: Turns = field(default_factory=Turns)
    counters: Counter[str] = field(default_factory=Counter)
