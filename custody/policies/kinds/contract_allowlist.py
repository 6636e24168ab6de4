"""`contract-allowlist`: which contract calls may be made, to whom and how much. Decisions 3.

Calldata, and typed data, for anything not listed is refused. A constraint on something that was not decoded fails:
what cannot be read cannot be vouched for. Several entries may name one contract; one that permits is enough.
"""

from collections.abc import Iterator

from custody.chains.types import EVM_NATIVE, Call, Effect, Subject
from custody.policies.kinds.contract_entries import UNCONSTRAINED, Constraint, ContractAllowlist, Entry, entries_of
from custody.policies.moved import limitless
from custody.policies.types import Facts

# The calls that can allow or move what a signature can: approve, increaseAllowance, the permits, Permit2's approve;
_APPROVING = frozenset({"0x095ea7b3", "0x39509351", "0xd505accf", "0x8fcbaf0c", "0x87517c45"})
# transfer, transferFrom, the transfers with authorization, Permit2's transferFrom.
_TRANSFERRING = frozenset({"0xa9059cbb", "0x23b872dd", "0xe3ee160e", "0xef55bec6", "0x36c78516"})


def check(rule: ContractAllowlist, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether every call, or the typed data, is listed and keeps its constraints, and why."""
    if subject.kind == "typed_data":
        return _check_typed_data(rule, subject)
    calls = list(subject.calls)
    for effect in subject.effects:
        if effect.call is not None and effect.call not in calls:
            calls.append(effect.call)
        if effect.call is None and effect.kind in ("call", "opaque"):
            return False, "the order does something that names no contract call"
    for call in calls:
        if not any(True for _ in permits(rule, call)):
            return False, _refused(rule, call)
    return (True, "every contract call is listed") if calls else _check_plain(rule, subject)


def permits(rule: ContractAllowlist, call: Call) -> Iterator[Constraint]:
    """The constraints under which the rule lets a call through; none when it does not."""
    for entry in _entries(rule, call.contract, call.chain_id):
        constraint = entry.selectors.get(call.selector)
        if constraint is not None and _kept(constraint, call):
            yield constraint


def tightens(old: ContractAllowlist, new: ContractAllowlist) -> bool:
    """Say whether whatever passes `new` also passes `old`, and nothing more is vouched for."""
    contained = all(any(contains(wide, entry) for wide in entries_of(old)) for entry in entries_of(new))
    return contained and all(_caps_stay(entry, new) for entry in entries_of(old))


def contains(wide: Entry, narrow: Entry) -> bool:
    """Say whether `wide` permits all that `narrow` does, and covers all that it covers."""
    if narrow.address != wide.address or wide.chain_id not in (None, narrow.chain_id):
        return False
    # Typed data must keep every constraint of an entry, so dropping a constrained selector would free it.
    kept = all(name in narrow.selectors for name, constraint in wide.selectors.items() if constraint != UNCONSTRAINED)
    return kept and all(
        name in wide.selectors and _stricter(wide.selectors[name], constraint)
        for name, constraint in narrow.selectors.items()
    )


def _entries(rule: ContractAllowlist, contract: str, chain_id: int | None) -> list[Entry]:
    return [entry for entry in rule.entries.get(contract, ()) if entry.chain_id in (None, chain_id)]


def _kept(constraint: Constraint, call: Call) -> bool:
    if constraint is UNCONSTRAINED:
        return True
    return (
        _named(call.recipient, constraint.recipients, constraint.no_recipients)
        and _named(call.spender, constraint.spenders, constraint.no_spenders)
        and (constraint.max_amount is None or (call.amount is not None and call.amount <= constraint.max_amount))
        and (constraint.max_native is None or call.native_value <= constraint.max_native)
    )


def _named(address: str | None, allowed: frozenset[str] | None, blocked: frozenset[str] | None) -> bool:
    if allowed is None and blocked is None:
        return True
    return (
        address is not None and (allowed is None or address in allowed) and (blocked is None or address not in blocked)
    )


def _check_typed_data(rule: ContractAllowlist, subject: Subject) -> tuple[bool, str]:
    contract = subject.verifying_contract
    if contract is None:
        return False, "the typed data names no verifying contract"
    entries = _entries(rule, contract.lower(), subject.chain_id)
    if not entries:
        return False, f"the verifying contract {contract} is not listed"
    for effect in subject.effects:
        if effect.kind == "opaque":
            return False, "what the typed data does cannot be read"
        if effect.kind != "call" and not any(_signs(entry, effect, contract) for entry in entries):
            return False, f"what the typed data moves or allows is beyond what may be called at {contract}"
    return True, f"the verifying contract {contract} is listed"


def _signs(entry: Entry, effect: Effect, contract: str) -> bool:
    """Say whether a call that the entry lists could do the same, and every constraint of the entry is kept."""
    able = _APPROVING if effect.kind == "approval" else _TRANSFERRING
    revokes = effect.kind == "approval" and not effect.amount
    if not revokes and able.isdisjoint(entry.selectors):
        return False
    call = _as_call(effect, contract)
    return all(_kept(constraint, call) for constraint in entry.selectors.values())


def _as_call(effect: Effect, contract: str) -> Call:
    amount = None if limitless(effect) else effect.amount
    return Call(0, contract, "", 0, effect.to and effect.to.lower(), effect.spender and effect.spender.lower(), amount)


def _check_plain(rule: ContractAllowlist, subject: Subject) -> tuple[bool, str]:
    """A payment without calldata is no call, but a contract's cap on native value holds for it too."""
    for effect in subject.effects:
        if effect.kind != "transfer" or effect.asset != EVM_NATIVE or effect.to is None:
            continue
        for entry in _entries(rule, effect.to.lower(), subject.chain_id):
            caps = _native_caps(entry)
            if caps and effect.amount > min(caps):
                return False, f"{effect.amount} wei to {effect.to} exceeds its `maxNativeValueWei` of {min(caps)}"
    return True, "the order makes no contract call"


def _refused(rule: ContractAllowlist, call: Call) -> str:
    listed = any(call.selector in entry.selectors for entry in _entries(rule, call.contract, call.chain_id))
    what = f"the call of {call.selector} on {call.contract} (chain {call.chain_id})"
    return f"{what} is outside its constraints" if listed else f"{what} is not listed"


def _stricter(wide: Constraint, narrow: Constraint) -> bool:
    # A `maxAmount` also covers the token, so it may neither appear nor vanish, only fall.
    both = (wide.max_amount is None) == (narrow.max_amount is None)
    return (
        both
        and (wide.max_amount or 0) >= (narrow.max_amount or 0)
        and (wide.max_native is None or (narrow.max_native is not None and narrow.max_native <= wide.max_native))
        and _shrunk(wide.recipients, narrow.recipients)
        and _shrunk(wide.spenders, narrow.spenders)
        and _grown(wide.no_recipients, narrow.no_recipients)
        and _grown(wide.no_spenders, narrow.no_spenders)
    )


def _shrunk(wide: frozenset[str] | None, narrow: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def _grown(wide: frozenset[str] | None, narrow: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and wide <= narrow)


def _caps_stay(old: Entry, new: ContractAllowlist) -> bool:
    """Say whether an old entry's cap on plain payments still holds; it would vanish with the entry."""
    caps = _native_caps(old)
    return not caps or any(
        entry.chain_id in (None, old.chain_id) and min(_native_caps(entry), default=min(caps) + 1) <= min(caps)
        for entry in new.entries.get(old.address, ())
    )


def _native_caps(entry: Entry) -> list[int]:
    return [one.max_native for one in entry.selectors.values() if one.max_native is not None]
