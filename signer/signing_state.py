"""The means an order is judged and signed with: all that its path reads of a running signer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from custody.chains.table import ChainTable
from custody.policies.dollars import PricesAt
from custody.protocol.refusals import DatabaseRolledBack
from custody.worker.sealing import fields
from custody.worker.state import Worker
from signer.acknowledged_orders import AcknowledgedOrders
from signer.cpu_throttle import CpuThrottle
from signer.orders.kind import OrderKinds
from signer.policies import PolicySeals
from signer.quotas import TenantQuotas
from signer.set_seals import SetSeals
from signer.signing_attempt import Judged, RuleFacts
from signer.statement_keys import StatementKeys


@dataclass(frozen=True, kw_only=True)
class SigningState(Worker):
    """The part of the signer that signs."""

    statement_keys: StatementKeys
    policies: PolicySeals
    sets: SetSeals
    chains: ChainTable
    prices: PricesAt = lambda now: {}
    kinds: OrderKinds
    empty_policy: Literal["allow", "deny"]
    quotas: TenantQuotas
    allow_unsafe_calls: bool = False
    acknowledged: AcknowledgedOrders
    # What only some kinds of rule look up.
    rule_facts: tuple[RuleFacts, ...] = ()
    # After how many seconds an order that waits is signed by itself.
    delay_of: Callable[[Judged], int | None] = lambda judged: None
    # Tenants whose audit log in the database is another than this signer sealed.
    changed_logs: set[str] = field(default_factory=set)
    throttle: CpuThrottle = field(default_factory=CpuThrottle)

    def unique_of(self, tenant: str, tx_id: str) -> bytes:
        """Make 32 bytes that are one order's alone, the same each time, and known to nobody before."""
        return self.statement_keys.of("receipt").mac(fields("unique", tenant, tx_id))

    def serve(self, tenant: str) -> None:
        """Raise DatabaseRolledBack where the database is known to be another than orders were signed on."""
        if self.acknowledged.are_lost or tenant in self.changed_logs:
            raise DatabaseRolledBack
