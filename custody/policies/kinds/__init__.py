"""The types of rule, one pure file each. A new type is a file here and a line in `PolicyRule`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, get_args

from custody.policies.kind import Rule, type_of
from custody.policies.kinds.allowed_chains import AllowedChainsRule
from custody.policies.kinds.approval_quorum import ApprovalQuorumRule
from custody.policies.kinds.approved_addresses import ApprovedAddressesRule
from custody.policies.kinds.auto_approve_threshold import AutoApproveThresholdRule
from custody.policies.kinds.circuit_breaker import CircuitBreakerRule
from custody.policies.kinds.contract_allowlist import ContractAllowlistRule
from custody.policies.kinds.delay import DelayRule
from custody.policies.kinds.external_check import ExternalCheckRule
from custody.policies.kinds.message_allowlist import MessageAllowlistRule
from custody.policies.kinds.new_recipient import NewRecipientRule
from custody.policies.kinds.policy_set import PolicySetRule
from custody.policies.kinds.rate_limit import RateLimitRule
from custody.policies.kinds.spending_limit import SpendingLimitRule
from custody.policies.kinds.time_window import TimeWindowRule

# One rule as callers send it; `type` says which.
PolicyRule = (
    SpendingLimitRule
    | ApprovedAddressesRule
    | AutoApproveThresholdRule
    | TimeWindowRule
    | RateLimitRule
    | AllowedChainsRule
    | ContractAllowlistRule
    | ApprovalQuorumRule
    | MessageAllowlistRule
    | PolicySetRule
    | NewRecipientRule
    | DelayRule
    | CircuitBreakerRule
    | ExternalCheckRule
)

KINDS: Final[Mapping[str, type[Rule]]] = MappingProxyType({type_of(rule): rule for rule in get_args(PolicyRule)})
