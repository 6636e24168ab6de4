"""What an order is judged and signed with: all that its path reads of a running signer."""

from dataclasses import dataclass, field
from typing import Literal

from custody.chains.table import ChainTable
from custody.worker.state import Worker
from signer.authority_seals import AuthoritySeals
from signer.claims import Claims
from signer.cpu_throttle import CpuThrottle
from signer.kept_state import KeptStates
from signer.policies import PolicySeals
from signer.quotas import TenantQuotas
from signer.statement_keys import StatementKeys
from signer.waiting import Waiting
from signer.write_batches import WriteBatches


@dataclass(frozen=True, kw_only=True)
class SigningState(Worker):
    """The part of the signer that signs."""

    statement_keys: StatementKeys
    policies: PolicySeals
    claims: Claims
    authority: AuthoritySeals
    chains: ChainTable
    empty_policy: Literal["allow", "deny"]
    quotas: TenantQuotas
    allow_unsafe_calls: bool = False
    writes: WriteBatches
    throttle: CpuThrottle = field(default_factory=CpuThrottle)
    waiting: Waiting = field(default_factory=Waiting)
    kept: KeptStates = field(default_factory=KeptStates)
