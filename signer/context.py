"""The parts of a running signer."""

import asyncio
from dataclasses import dataclass, field

from custody.policies.kinds import PolicyRule
from custody.worker.token_keys import Minter
from signer.audit_journal import AuditLog
from signer.authority_seals import AuthoritySeals
from signer.claims import Claims
from signer.commits import Commits
from signer.rotation.keys import MasterKeys
from signer.settings import ImportFlags
from signer.signing_state import SigningState


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
    allow_cookie_injection: bool
    imports: ImportFlags
    user_wallet_policies: tuple[PolicyRule, ...]
    # One agent at a time goes with its orders, so that many leave the database to those who sign.
    deletions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    commits: Commits = field(default_factory=Commits)
