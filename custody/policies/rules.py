"""Read a policy set strictly into the rules the judge takes.

`parse` is for sets that callers send: it counts rules, bytes and values before it reads any of them. `read` is for
sets that passed it once. Parsing depends on nothing but the set, so the parsed rules may be kept beside its version.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from custody.chains.evm.address import BadAddress
from custody.chains.types import Subject
from custody.policies.kind import Config, Covers, Rule, Terms, moment_sent
from custody.policies.kinds import KINDS, PolicyRule
from custody.policies.types import Facts, InvalidPolicy, Room

MAX_RULES: Final = 50
MAX_BYTES: Final = 64 * 1024
# Fields and list elements of all configs together. An address costs microseconds, and the signer does nothing else
# meanwhile: with so many at most a set is read in about 5 ms.
MAX_VALUES: Final = 1_000
# Names a set; and a set is loosened without votes, so what asks for votes stands with the agent.
NOT_IN_SETS: Final = ("policy-set", "approval-quorum")
_AROUND: Final = len('{"config":,"enabled":false,"id":"","type":""},')
_NEW_ID: Final = 36
# Where a value stands that is wrong, as msgspec spells it: `$[1].config.asset`, `$.policies[0].type`.
_PLACE = re.compile(
    r"(?P<problem>.*) - at `\$[.a-zA-Z]{0,64}\[(?P<index>[0-9]+)\]\.(?P<field>(?:config[.\[]?|type(?=`)).*)`\Z"
)
_TOLD: Final = 128


class ParsedRule(msgspec.Struct, frozen=True):
    """One rule of a set: `config` is what is stored and sealed, `terms` is what the judge reads.

    `by_agent` says that the agent's own token set the rule; nothing is judged by it.
    """

    id: str
    type: str
    enabled: bool
    config: str
    terms: Terms
    hard: bool
    covers: Covers
    by_agent: bool = False
    until: datetime | None = None
    # The policy set that it stands in; none: it is the agent's own.
    policy_set: str = ""

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the order passes, and why. A rule that has ended allows nothing: an end never loosens."""
        facts = self.facts_for(facts)
        if self.until is None or facts.now < self.until:
            return self.terms.check(subject, facts)
        if (terms := self.terms.at_end()) is not None:
            return terms.check(subject, facts)
        ended = f"the rule ended at {self.until:%Y-%m-%d %H:%M:%S} UTC"
        if self.hard:
            return False, f"{ended}: it lets nothing pass until it is changed"
        return (
            facts.approving,
            f"{ended}; a person approved it" if facts.approving else f"{ended}: a person must decide",
        )

    def refuses(self, subject: Subject, facts: Facts) -> bool:
        """Say whether an order that failed is refused, or a person may decide."""
        ended = self.until is not None and facts.now >= self.until
        return self.hard and (ended or not self.terms.only_asks(subject, facts))

    def facts_for(self, facts: Facts) -> Facts:
        """The facts with the spend that this rule limits: the agent's own, or what all agents of its set spent."""
        if not self.terms.is_shared:
            return facts
        return msgspec.structs.replace(facts, spend=facts.shared.get(self.policy_set, {}))

    @property
    def tries_owners(self) -> bool:
        """Say whether it looks for the owner of an account among addresses."""
        return self.covers.recipients or self.terms.wants().recipients

    def room(self, facts: Facts) -> Room | None:
        """Find when an order that failed may pass unchanged; None where waiting does not help."""
        return None if self.until is not None and facts.now >= self.until else self.terms.room(facts)

    def tightens(self, old: "ParsedRule") -> bool:
        """Say whether every order that passes this rule also passes the old one, whenever that is."""
        no_later = old.until is None or (self.until is not None and self.until <= old.until)
        return self.type == old.type and no_later and self.terms.tightens(old.terms)


def parse(rules: Sequence[PolicyRule], new_id: Callable[[], str]) -> tuple[ParsedRule, ...]:
    """Read a set that a caller sent, or raise InvalidPolicy naming the rule and what to change."""
    check_size(rules)
    parsed = read(rules, new_id)
    named = [rule for rule in parsed if rule.covers.policy_set is not None]
    if len(named) > 1:
        raise InvalidPolicy("An agent names at most one policy set: leave one rule of the type policy-set.")
    if not all(rule.enabled for rule in named):
        raise InvalidPolicy("A rule of the type policy-set cannot be disabled: leave it out.")
    if any(rule.terms.is_shared for rule in parsed):
        raise InvalidPolicy('`scope: "set"` is for the rules of a policy set: put the rule into one, and name it.')
    return parsed


def parse_set(rules: Sequence[PolicyRule], new_id: Callable[[], str]) -> tuple[ParsedRule, ...]:
    """Read the rules of a policy set, or raise InvalidPolicy."""
    check_size(rules)
    parsed = read(rules, new_id)
    for rule in parsed:
        if rule.type in NOT_IN_SETS:
            raise InvalidPolicy(f"A policy set has no rules of the type {rule.type}: give it to the agents themselves.")
    return parsed


def check_size(rules: Sequence[PolicyRule]) -> None:
    """Raise InvalidPolicy for a set that is too large, without reading any of its rules."""
    if len(rules) > MAX_RULES:
        raise InvalidPolicy(f"A policy set has at most {MAX_RULES} rules; this one has {len(rules)}.")
    configs = [msgspec.json.encode(rule.config) for rule in rules]
    names = sum(len(rule.id or "") or _NEW_ID for rule in rules) + sum(len(rule.type) for rule in rules)
    if sum(map(len, configs)) + names + _AROUND * len(rules) > MAX_BYTES:
        raise InvalidPolicy(f"A policy set has at most {MAX_BYTES // 1024} KiB; make its lists shorter.")
    # Every field or element but the first of its object or list follows a comma.
    if (values := sum(config.count(b",") + 1 for config in configs)) > MAX_VALUES:
        raise InvalidPolicy(
            f"A policy set has at most {MAX_VALUES:,} values, such as addresses and selectors; this one has {values:,}."
        )


def read(rules: Sequence[PolicyRule], new_id: Callable[[], str]) -> tuple[ParsedRule, ...]:
    """Read a set whose size was checked when it was sent."""
    parsed = tuple(_read(position, rule, new_id) for position, rule in enumerate(rules, start=1))
    seen: set[str] = set()
    for rule in parsed:
        if rule.id in seen:
            raise InvalidPolicy(f"Two rules have the id {rule.id!r}; give each its own, or omit it.")
        seen.add(rule.id)
    return parsed


def canonical(config: Config) -> str:
    """The one stored spelling of a config: sorted keys, no spaces, every value that was given and no other."""
    return msgspec.json.encode(config, order="sorted").decode()


def load_rule(rule_id: str, kind: str, enabled: bool, config: str) -> PolicyRule:
    """A rule from its row, or InvalidPolicy for one that this version does not know."""
    try:
        row = {"id": rule_id, "type": kind, "enabled": enabled, "config": msgspec.json.decode(config)}
        rule: PolicyRule = msgspec.convert(row, PolicyRule)
    except (msgspec.ValidationError, msgspec.DecodeError) as problem:
        raise invalid_rule(problem) or InvalidPolicy(f"A stored rule cannot be read: {problem}.") from None
    return rule


def wire(rule: ParsedRule) -> PolicyRule:
    """The rule as callers send and receive it."""
    sent = load_rule(rule.id, rule.type, rule.enabled, rule.config)
    return msgspec.structs.replace(sent, source="agent") if rule.by_agent else sent


def invalid_rule(problem: Exception, says: str | None = None) -> InvalidPolicy | None:
    """The refusal of a rule whose type or config does not decode; None if something else does not.

    `says` is what a caller is told of the value.
    """
    if not (found := _PLACE.match(str(problem))):
        return None
    position, field, said = int(found["index"]) + 1, found["field"], found["problem"]
    if field == "type" and said.startswith("Invalid value "):
        kind = said.removeprefix("Invalid value ")[:_TOLD]
        message = f"Rule {position} has the type {kind}; the supported types are {', '.join(KINDS)}."
    elif field == "type" or (field == "config" and said.startswith("Expected")):
        return None
    else:
        message = f"Rule {position}: {_field_named_in(field, said)[:_TOLD]} {says or 'cannot be read'}."
    return InvalidPolicy(message, position=position)


def _field_named_in(field: str, said: str) -> str:
    """The field, or the one in it that is missing or not known."""
    inner = re.search(r"field `(.*)`\Z", said)
    return f"{field}.{inner[1]}" if inner else field


def _read(position: int, rule: Rule, new_id: Callable[[], str]) -> ParsedRule:
    try:
        terms, until = rule.config.terms(), moment_sent(rule.config.until, "until")
    except (InvalidPolicy, BadAddress) as problem:
        message = f"Rule {position} ({rule.type}): {str(problem).rstrip('.')}."
        raise InvalidPolicy(message, position=position) from problem
    return ParsedRule(
        rule.id or new_id(),
        rule.type,
        rule.enabled,
        canonical(rule.config),
        terms,
        rule.hard,
        terms.covers(),
        until=until,
    )
