"""The means an order is judged and signed with: all that its path reads of a running signer."""

from dataclasses import dataclass, field
from typing import Literal

from custody.chains.table import ChainTable
from custody.protocol.refusals import DatabaseRolledBack
from custody.worker.state import Worker
from signer.acknowledged_orders import AcknowledgedOrders
from signer.cpu_throttle import CpuThrottle
from signer.kept_state import KeptStates
from signer.orders.kinds import OrderKinds
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
    chains: ChainTable
    kinds: OrderKinds
    empty_policy: Literal["allow", "deny"]
    quotas: TenantQuotas
    allow_unsafe_calls: bool = False
    writes: WriteBatches
    acknowledged: AcknowledgedOrders
    # Tenants whose audit log in the database is another than this signer sealed.
    changed_logs: set[str] = field(default_factory=set)
    throttle: CpuThrottle = field(default_factory=CpuThrottle)
    waiting: Waiting = field(default_factory=Waiting)
    kept: KeptStates = field(default_factory=KeptStates)

    def serve(self, tenant: str) -> None:
        """Raise DatabaseRolledBack where the database is known to be another than orders were signed on."""
        if self.acknowledged.are_lost or tenant in self.changed_logs:
            raise DatabaseRolledBack
