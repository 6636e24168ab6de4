"""The parts of a running signer."""

import asyncio
from dataclasses import dataclass, field

from custody.kit.cache import Cache
from custody.policies.kinds import PolicyRule
from custody.worker.token_keys import Minter
from signer.audit_journal import AuditLog
from signer.authority_seals import AuthoritySeals
from signer.claims import Claims
from signer.commits import Commits
from signer.kept_state import KeptStates
from signer.priced_calls import Price
from signer.prices import IssuedPrices
from signer.rotation.keys import MasterKeys
from signer.settings import ImportFlags
from signer.signing_state import SigningState
from signer.waiting import Waiting
from signer.write_batches import WriteBatches


@dataclass(frozen=True, kw_only=True)
class Signer(SigningState):
    """Wired together once, in `__main__`."""

    keys: MasterKeys
    minter: Minter
    audit_log: AuditLog
    authority: AuthoritySeals
    claims: Claims
    agent_put_replaces: bool
    allow_broad_secret_routes: bool
    allow_address_routes: bool
    allow_cookie_injection: bool
    imports: ImportFlags
    user_wallet_policies: tuple[PolicyRule, ...]
    # Where an endpoint issues prices.
    issued_prices: IssuedPrices | None = None
    # What makes orders quicker, and decides nothing.
    writes: WriteBatches
    waiting: Waiting = field(default_factory=Waiting)
    kept: KeptStates = field(default_factory=KeptStates)
    # By tenant and route. The write compares the MAC.
    route_prices: Cache[tuple[str, str], Price] = field(default_factory=lambda: Cache(4_096, 600.0))
    # One agent at a time goes with its orders, so that many leave the database to those who sign.
    deletions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    commits: Commits = field(default_factory=Commits)
