"""`contract-allowlist`: which contract calls may be made, to whom and how much.

Calldata, and typed data, for anything not listed is refused. A constraint on something that was not decoded fails, and
calls within a call that cannot be told are not listed. An entry permits what is read of a call; what is not read is an
effect of its own, for which a person is asked unless the entry says `unread: "allow"` (`custody/policies/coverage.py`).
Several entries may name one contract; one that permits is enough.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Self

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Call, Effect, Subject
from custody.kit.described import described
from custody.policies.assets import say_amount
from custody.policies.kind import Calls, Config, Covers, Rule, Terms, of_each
from custody.policies.kinds.contract_entries import Constraint, Entry, EntryConfig, Told, entry_of
from custody.policies.moved import limitless
from custody.policies.types import Facts, InvalidPolicy

# How many permitted selectors the refusal of another one names at most.
_SHOWN = 8
# Calls that grant the same allowance as a signature can: approve, increaseAllowance, the permits, Permit2's approve.
_APPROVING = frozenset({"0x095ea7b3", "0x39509351", "0xd505accf", "0x8fcbaf0c", "0x87517c45"})
# Calls that move the same tokens: transfer, transferFrom, the transfers with authorization, Permit2's transferFrom.
_TRANSFERRING = frozenset({"0xa9059cbb", "0x23b872dd", "0xe3ee160e", "0xef55bec6", "0x36c78516"})


class ContractAllowlist(Terms, frozen=True):
    """The entries by contract address.

    `calls` finds the one entry that lists a selector of a contract on a chain (None: on all), `native_caps` the lowest
    `maxNativeValueWei` of its entries there: comparing two lists takes time in proportion to their length.
    """

    entries: dict[str, tuple[Entry, ...]]
    calls: dict[tuple[str, int | None, str], Entry]
    native_caps: dict[tuple[str, int | None], int]

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether every call, or the typed data, is listed and keeps its constraints, and why."""
        if subject.parts:
            return of_each(self, subject, facts)
        if subject.message is not None:
            return True, "a message makes no contract call"
        if subject.kind == "typed_data":
            return self._check_typed_data(subject, partial(say_amount, units=facts.units, chain_id=subject.chain_id))
        calls = list(subject.calls)
        for effect in subject.effects:
            if effect.call is not None and effect.call not in calls:
                calls.append(effect.call)
            if effect.call is None and effect.kind == "unread":
                return False, "the order contains an effect that is not a contract call"
        for call in calls:
            if not self.permits(call):
                return False, self._refuse(call, partial(say_amount, units=facts.units, chain_id=call.chain_id))
        passed, why = self._check_plain(subject, partial(say_amount, units=facts.units, chain_id=subject.chain_id))
        return passed, "every contract call is listed" if passed and calls else why

    def tightens(self, old: Self) -> bool:
        """Say whether every entry is within an old one, and every old cap on plain payments stays."""
        contained = all(any(wide.contains(entry) for wide in old.listing(entry)) for entry in self.all_entries())
        return contained and all(self._keeps_caps(entry) for entry in old.all_entries())

    def covers(self) -> Covers:
        """The calls that are listed."""
        return Covers(calls=self)

    # ---- calls that are known to be harmless enough: `kind.Calls`

    def permits(self, call: Call) -> bool:
        """Say whether a call is listed and keeps its constraints."""
        return any(True for _ in self._ways(call))

    def bounds(self, call: Call, effect: Effect) -> bool:
        """Say whether a call is listed with a `maxAmount`, and the effect keeps it."""
        return any(one.max_amount is not None and effect.amount <= one.max_amount for one in self._ways(call))

    def confines(self, call: Call) -> bool:
        """Say whether a call is listed with a `maxAmount` and a list of recipients, and keeps both."""
        return any(one.max_amount is not None and one.names_recipients() for one in self._ways(call))

    def allows_unread(self, call: Call) -> bool:
        """Say whether a call is listed by an entry that says to let pass what nobody can read of it."""
        return any(entry.allows_unread for entry, _ in self._keeping(call))

    def vouches(self, subject: Subject) -> bool:
        """Say whether typed data is of a contract that is listed without constraints, and may hold what is unread."""
        entries = self._entries((subject.verifying_contract or "").lower(), subject.chain_id)
        return any(one.trusts() and one.allows_unread and one.refusal(subject.typed) is None for one in entries)

    def beyond(self, others: Sequence[Calls]) -> str | None:
        """Name the first entry that no other list contains."""
        known = [other for other in others if isinstance(other, ContractAllowlist)]
        for entry in self.all_entries():
            if not any(wide.contains(entry) for other in known for wide in other.listing(entry)):
                return f"The contract-allowlist entry for {entry.address} would be new or permit more."
        return None

    # ---- entries

    def all_entries(self) -> Iterator[Entry]:
        """Every entry."""
        for entries in self.entries.values():
            yield from entries

    def listing(self, like: Entry) -> Iterator[Entry]:
        """The entries, two at most, that list the first call of another one, on its chain or on all of them."""
        selector = next(iter(like.selectors))
        for chain_id in {None, like.chain_id}:
            if (entry := self.calls.get((like.address, chain_id, selector))) is not None:
                yield entry

    def _entries(self, contract: str, chain_id: int | None) -> list[Entry]:
        return [entry for entry in self.entries.get(contract, ()) if entry.chain_id in (None, chain_id)]

    def _ways(self, call: Call) -> Iterator[Constraint]:
        """The constraints under which a call is let through; none when it is not."""
        return (constraint for _, constraint in self._keeping(call))

    def _keeping(self, call: Call) -> Iterator[tuple[Entry, Constraint]]:
        """The entries that let a call through, each with the constraint that it keeps."""
        if not call.apart:
            return
        for entry in self._entries(call.contract, call.chain_id):
            constraint = entry.selectors.get(call.selector)
            if constraint is not None and constraint.keeps(call):
                yield entry, constraint

    def _check_typed_data(self, subject: Subject, say: Told) -> tuple[bool, str]:
        contract = subject.verifying_contract
        if contract is None:
            return False, "the typed data names no verifying contract"
        entries = self._entries(contract.lower(), subject.chain_id)
        if not entries:
            return False, f"the verifying contract {contract} is not listed"
        refusals = [entry.refusal(subject.typed) for entry in entries]
        if (entries := [one for one, refusal in zip(entries, refusals, strict=True) if refusal is None]) == []:
            return False, f"the typed data for {contract} is not listed: {refusals[0]}"
        # A document may hold calls, which are judged as if they were made.
        for call in subject.calls:
            if not self.permits(call):
                return False, self._refuse(call, say)
        for effect in subject.effects:
            if effect.call is not None or effect.asset == EVM_NATIVE:
                continue
            if effect.unknown:
                if not any(entry.trusts() for entry in entries):
                    return (
                        False,
                        f"typed data of an unknown kind cannot be checked against the constraints for {contract}",
                    )
            elif effect.kind == "unread":
                return False, "the effects of the typed data cannot be determined"
            elif not any(_signs(entry, effect, contract) for entry in entries):
                why = _refusal(entries[0], effect, contract, subject.chain_id, say)
                return False, f"the typed data does what no entry for {contract} permits: {why}"
        passed, why = self._check_plain(subject, say)
        return passed, f"the verifying contract {contract} is listed" if passed else why

    def _check_plain(self, subject: Subject, say: Told) -> tuple[bool, str]:
        """A payment without calldata is no call, but a contract's cap on native value holds for it too."""
        called = {call.contract for call in subject.calls if call.native_value}
        for effect in subject.effects:
            # Beside a call the cap is that of its selector.
            if effect.kind != "transfer" or effect.asset != EVM_NATIVE or effect.to is None or effect.to in called:
                continue
            for entry in self._entries(effect.to.lower(), subject.chain_id):
                caps = entry.native_caps()
                if caps and effect.amount > min(caps):
                    sent, most = say(effect.amount, EVM_NATIVE), say(min(caps), EVM_NATIVE)
                    return False, f"{sent} to {effect.to} exceeds its `maxNativeValueWei` of {most}"
        return True, "the order makes no contract call"

    def _refuse(self, call: Call, say: Told) -> str:
        what = f"the call of {call.selector} on {call.contract} (chain {call.chain_id})"
        if not call.apart:
            return f"{what} holds calls that cannot be told, so they are not listed"
        entries = self._entries(call.contract, call.chain_id)
        for entry in entries:
            if (constraint := entry.selectors.get(call.selector)) is not None:
                return f"{what} is outside its constraints: {constraint.why(call, say)}"
        listed = sorted({selector for entry in entries for selector in entry.selectors})
        if not listed:
            return f"{what} is not listed, and nothing of that contract is"
        return f"{what} is not listed; of that contract {', '.join(listed[:_SHOWN])} may be called"

    def _keeps_caps(self, old: Entry) -> bool:
        """Say whether an old entry's cap on plain payments still holds; it would vanish with the entry."""
        caps = old.native_caps()
        if not caps:
            return True
        found = [self.native_caps.get((old.address, chain_id)) for chain_id in (None, old.chain_id)]
        return any(cap is not None and cap <= min(caps) for cap in found)


class ContractAllowlistConfig(Config, frozen=True):
    """One list."""

    contracts: Annotated[
        list[EntryConfig], described("The permitted calls, by contract. An empty list permits no call at all.")
    ]

    def terms(self) -> ContractAllowlist:
        """The entries by address."""
        entries: dict[str, list[Entry]] = {}
        calls: dict[tuple[str, int | None, str], Entry] = {}
        caps: dict[tuple[str, int | None], int] = {}
        for sent in self.contracts:
            entry = entry_of(sent)
            for name, constraint in entry.selectors.items():
                if calls.setdefault((entry.address, entry.chain_id, name), entry) is not entry:
                    raise InvalidPolicy(
                        f"`contracts` lists {entry.address} twice with the same selector; keep one entry"
                    )
                if (most := constraint.max_native) is not None:
                    place = entry.address, entry.chain_id
                    caps[place] = min(most, caps.get(place, most))
            entries.setdefault(entry.address, []).append(entry)
        return ContractAllowlist({address: tuple(several) for address, several in entries.items()}, calls, caps)


class ContractAllowlistRule(Rule, frozen=True, kw_only=True, tag="contract-allowlist"):
    """Permitted contract calls, with recipients and amounts. Other calls are refused; a plain payment is no call."""

    config: Annotated[ContractAllowlistConfig, described("Settings of the rule.")]


def _signs(entry: Entry, effect: Effect, contract: str) -> bool:
    """Say whether a call that the entry lists could do the same, and every constraint of the entry is kept."""
    able = _APPROVING if effect.kind == "approval" else _TRANSFERRING
    revokes = effect.kind == "approval" and not effect.amount
    if not revokes and able.isdisjoint(entry.selectors):
        return False
    call = _as_call(effect, contract)
    return all(constraint.keeps(call) for constraint in entry.selectors.values())


def _refusal(entry: Entry, effect: Effect, contract: str, chain_id: int | None, say: Told) -> str:
    """Why an entry does not let typed data have an effect."""
    call = _as_call(effect, contract, chain_id)
    for constraint in entry.selectors.values():
        if not constraint.keeps(call):
            return constraint.why(call, say)
    return f"it lists no call that could make the {effect.kind}"


def _as_call(effect: Effect, contract: str, chain_id: int | None = None) -> Call:
    amount = None if limitless(effect) else effect.amount
    return Call(
        chain_id or 0,
        contract.lower(),
        "",
        0,
        effect.to and effect.to.lower(),
        effect.spender and effect.spender.lower(),
        amount,
    )
