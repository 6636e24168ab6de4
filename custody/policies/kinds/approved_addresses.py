"""`approved-addresses`: who may receive, or who may not."""

from typing import Annotated, Literal, Self

from msgspec import UNSET, UnsetType

from custody.chains.types import Effect, Subject
from custody.kit.described import described
from custody.policies.addresses import parse_addresses, same
from custody.policies.assets import is_native
from custody.policies.holders import with_holders
from custody.policies.kind import Config, Covers, Rule, Terms, of_each, sent_or
from custody.policies.moved import gift
from custody.policies.types import Facts

Mode = Literal["whitelist", "blacklist"]
DEFAULT_MODE: Mode = "whitelist"


class ApprovedAddresses(Terms, frozen=True):
    """The list per chain family, each address in its one spelling."""

    mode: Mode
    listed: dict[str, frozenset[str]]

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether everyone the order pays, empowers or blindly calls is acceptable, and why."""
        if subject.parts:
            return of_each(self, subject, facts)
        if subject.message is not None:
            return True, "a message has no recipient"
        listed = self.listed[subject.family]
        subject = with_holders(subject, listed, facts.owners_tried)
        parties = _parties(subject)
        # Who is sent coins has them, whatever the call says that becomes of them.
        parties += [call.contract for call in subject.calls if call.native_value]
        if None in parties:
            return False, "the recipient cannot be determined"
        if self.mode == "blacklist":
            # A blocked contract stays blocked when it is only called, so the places are compared as well.
            parties += [subject.destination, subject.verifying_contract, *(call.contract for call in subject.calls)]
        for party in parties:
            if party is None:
                continue
            is_listed = same(party, subject.family) in listed
            if is_listed and self.mode == "blacklist":
                return False, f"{party} is a blocked address"
            if not is_listed and self.mode == "whitelist":
                return False, f"{party} is not an approved address{_hint(subject, party)}"
        hidden = next((effect.to for effect in subject.effects if effect.unowned), None)
        if hidden is not None and self.mode == "blacklist":
            return False, f"the recipient cannot be determined: {hidden} is no wallet's own{_hint(subject, hidden)}"
        if any(effect.kind == "unread" for effect in subject.effects):
            # A person is asked for it: this rule refuses what it reads, and approves nothing that it does not.
            return True, "what is unread may pay or empower anybody; what is read pays nobody that this rule refuses"
        return True, "every recipient is acceptable" if parties else "the order has no recipient"

    def tightens(self, old: Self) -> bool:
        """Say whether a list of approved addresses is no longer, or one of blocked addresses no shorter."""
        if self.mode != old.mode:
            return False
        narrow, wide = (self, old) if old.mode == "whitelist" else (old, self)
        return all(narrow.listed[family] <= wide.listed[family] for family in narrow.listed)

    def covers(self) -> Covers:
        """Cover the recipients that an order pays or empowers."""
        return Covers(recipients=True, named=self.mode == "whitelist")

    def holds(self, tighter: Self) -> bool:
        """Say whether this is a list of approved addresses, of which a tighter one is a part."""
        return self.mode == "whitelist"


class ApprovedAddressesConfig(Config, frozen=True):
    """One list of either kind."""

    addresses: Annotated[
        list[str],
        described("EVM, Solana and Bitcoin addresses; an EVM address in mixed case must have its checksum."),
    ]
    mode: Annotated[
        Mode | UnsetType,
        described("`whitelist`: only these may receive. `blacklist`: these may not.", default=DEFAULT_MODE),
    ] = UNSET

    def terms(self) -> ApprovedAddresses:
        """The addresses per chain family."""
        return ApprovedAddresses(sent_or(self.mode, DEFAULT_MODE), parse_addresses(self.addresses))


class ApprovedAddressesRule(Rule, frozen=True, kw_only=True, tag="approved-addresses"):
    """A list of allowed or of forbidden recipients. An order that pays, empowers or calls anybody else is refused."""

    config: Annotated[ApprovedAddressesConfig, described("Settings of the rule.")]


def _parties(subject: Subject) -> list[str | None]:
    parties: list[str | None] = []
    for effect in subject.effects:
        parties += _of(effect, subject)
    if not parties and subject.kind not in ("typed_data", "solana"):
        return [subject.destination]
    return parties


def _hint(subject: Subject, party: str) -> str:
    tokens = [effect for effect in subject.effects if not is_native(effect.asset)]
    held = any(effect.account and effect.account.address == party for effect in tokens)
    return "; of a token account name the owner as `to`, or list the account itself" if held else ""


def _of(effect: Effect, subject: Subject) -> list[str | None]:
    if subject.family == "solana" and effect.to == effect.from_:
        # It stays this wallet's: wrapped, or sent to itself.
        return []
    if effect.kind == "transfer":
        # A token call carries a native value of 0 to the token contract; its recipient is the one in the call.
        nothing = not effect.amount and not effect.nft and is_native(effect.asset) and subject.family != "solana"
        return [] if nothing else [effect.to]
    if effect.kind == "approval":
        # A compromised spender is blocked first, and what it may spend is taken back then.
        return [] if effect.revokes else [effect.spender]
    if effect.kind == "fee":
        return [effect.to] if gift(effect) else []
    if effect.unknown or (effect.call is not None and effect.call.decoded):
        # A list of recipients says nothing about it: it is an uncovered effect.
        return []
    if effect.call is not None:
        return [effect.call.contract, subject.destination]
    # What is unread of a document may name its receiver all the same.
    return [effect.to or subject.destination]
