"""`new-recipient`: a person approves whatever reaches somebody for the first time. Soft: it never refuses.

Three ways of reaching are told apart: who is paid is not by that empowered to spend, nor called. A recipient is known
on one chain: a contract wallet may be another's elsewhere. What cannot be read, and an NFT, is new each time.
"""

from collections.abc import Set as AbstractSet
from typing import Annotated, ClassVar, Final, Self

from msgspec import UNSET, UnsetType

from custody.chains.types import Effect, Subject
from custody.kit.described import described
from custody.policies.addresses import parse_addresses, same
from custody.policies.assets import is_native
from custody.policies.holders import with_holders
from custody.policies.kind import Config, Rule, Terms, Wants, sent_or
from custody.policies.moved import gift
from custody.policies.types import Facts, Recipient

TYPE: Final = "new-recipient"
_SAID: Final = {"paid": "paid", "empowered": "allowed to spend", "called": "called"}
_NOBODY: Final[frozenset[str]] = frozenset()


class NewRecipient(Terms, frozen=True):
    """The addresses per chain family that nobody need be asked about."""

    known: dict[str, frozenset[str]]

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether an order of this agent that a person approved reached all of its recipients, and why."""
        known = self.known[subject.family]
        found, whole = recipients_of(subject, facts.recipients, facts.owners_tried, known)
        place = _place(subject)
        new = next((one for one in found if one not in facts.recipients and one[1][len(place) :] not in known), None)
        if whole and new is None:
            return True, "every recipient is known" if found else "the order has no recipient"
        why = "nobody can tell whom it pays or empowers"
        if new is not None:
            where = "" if subject.chain_id is None else f" on chain {subject.chain_id}"
            why = f"{new[1][len(place) :]} was never {_SAID[new[0]]} by this agent{where}"
        return facts.approving, f"{why}{'; a person approved it' if facts.approving else ': a person must approve it'}"

    def tightens(self, old: Self) -> bool:
        """Say whether no address is known that was not."""
        return all(addresses <= old.known[family] for family, addresses in self.known.items())

    def wants(self) -> Wants:
        """The recipients that are known."""
        return Wants(recipients=True)


class NewRecipientConfig(Config, frozen=True):
    """Nothing is needed."""

    known: Annotated[
        list[str] | UnsetType,
        described(
            "EVM, Solana and Bitcoin addresses that are known from the beginning; an EVM address in mixed case must "
            "have its checksum.",
            default=[],
        ),
    ] = UNSET

    def terms(self) -> NewRecipient:
        """The known addresses per chain family."""
        return NewRecipient(parse_addresses(sent_or(self.known, [])))


class NewRecipientRule(Rule, frozen=True, kw_only=True, tag="new-recipient"):
    """A person approves the first order that pays, empowers or calls an address. It never refuses."""

    hard: ClassVar[bool] = False

    config: Annotated[NewRecipientConfig, described("Settings of the rule.")]


def recipients_of(
    subject: Subject, noted: AbstractSet[Recipient], most: int, known: AbstractSet[str] = _NOBODY
) -> tuple[list[Recipient], bool]:
    """Everybody that an order reaches, and how; and whether that is all, for some are hidden.

    Among the noted and the known ones is looked for who owns an account that says it not, with so many tries.
    """
    if subject.parts:
        each = [recipients_of(part, noted, most, known) for part in subject.parts]
        return [*dict.fromkeys(one for found, _ in each for one in found)], all(whole for _, whole in each)
    place = _place(subject)
    if any(effect.account for effect in subject.effects):
        paid = {name[len(place) :] for kind, name in noted if kind == "paid" and name.startswith(place)}
        subject = with_holders(subject, paid | known, most)
    reached = [one for effect in subject.effects if (one := _reach_of(effect, subject.family)) is not None]
    reached += [("called", call.contract) for call in subject.calls]
    if not reached and subject.kind == "evm":
        # As if it paid, or an order over nothing would be asked for where one over something is not.
        reached = [("paid", subject.destination)]
    # Each once, in the order's own order.
    found = dict.fromkeys((kind, place + same(to, subject.family)) for kind, to in reached if to is not None)
    return list(found), all(to is not None for _, to in reached)


def _reach_of(effect: Effect, family: str) -> tuple[str, str | None] | None:
    """Name who is reached by an effect, and how; None as the address: nobody can tell."""
    if effect.kind == "unread":
        return "paid", None
    if effect.kind == "approval":
        if effect.revokes:
            return None
        return "empowered", None if effect.nft else effect.spender
    if effect.kind == "fee" and not gift(effect):
        return None
    if effect.nft:
        return "paid", None
    # A token call carries no coins to its contract; and what comes back stays this wallet's.
    nothing = not effect.amount and is_native(effect.asset) and family != "solana"
    stays = effect.to is not None and effect.to == effect.from_
    return None if nothing or stays else ("paid", effect.to)


def _place(subject: Subject) -> str:
    """The chain, as a prefix of names; of typed data that names none its family."""
    return f"{subject.caip2 or subject.family}:"
