"""The seven types of rule, one pure file each, and what the judge needs to know of them. Spec 1/2.4."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from custody.chains.types import Subject
from custody.policies.kinds import (
    allowed_chains,
    approved_addresses,
    auto_approve_threshold,
    contract_allowlist,
    contract_entries,
    rate_limit,
    spending_limit,
    time_window,
)
from custody.policies.types import Facts

type Terms = (
    spending_limit.SpendingLimit
    | approved_addresses.ApprovedAddresses
    | auto_approve_threshold.AutoApproveThreshold
    | time_window.TimeWindow
    | rate_limit.RateLimit
    | allowed_chains.AllowedChains
    | contract_entries.ContractAllowlist
)


class Kind(msgspec.Struct, frozen=True):
    """One type of rule. `parse` makes the terms that the other two, and nobody else, are given."""

    parse: Callable[[dict[str, Any]], Terms]
    check: Callable[[Any, Subject, Facts], tuple[bool, str]]
    tightens: Callable[[Any, Any], bool]
    hard: bool = True


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "spending-limit": Kind(spending_limit.parse, spending_limit.check, spending_limit.tightens),
        "approved-addresses": Kind(approved_addresses.parse, approved_addresses.check, approved_addresses.tightens),
        "auto-approve-threshold": Kind(
            auto_approve_threshold.parse, auto_approve_threshold.check, auto_approve_threshold.tightens, hard=False
        ),
        "time-window": Kind(time_window.parse, time_window.check, time_window.tightens),
        "rate-limit": Kind(rate_limit.parse, rate_limit.check, rate_limit.tightens),
        "allowed-chains": Kind(allowed_chains.parse, allowed_chains.check, allowed_chains.tightens),
        "contract-allowlist": Kind(contract_entries.parse, contract_allowlist.check, contract_allowlist.tightens),
    }
)
