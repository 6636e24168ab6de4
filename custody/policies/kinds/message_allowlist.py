"""`message-allowlist`: which messages are signed without a person. Soft: it never refuses.

A listed sign-in is one to the letter, by the wallet itself, for a site that is listed, and good now. A pattern is for
plain text, never for what looks like a sign-in: other verifiers might read that less strictly than it is read here.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Final, Self

from msgspec import UNSET, Meta, UnsetType

from custody.chains.messages import Message, SignIn
from custody.chains.types import Subject
from custody.kit.described import described
from custody.policies.kind import Config, Covers, Messages, Rule, Terms, sent_or
from custody.policies.types import Facts, InvalidPolicy

MAX_DOMAINS: Final = 100
MAX_PATTERNS: Final = 50
# What a pattern begins with before its first star: a shorter beginning would be for whatever anybody writes.
LEAST_BEGINNING: Final = 8
# How much earlier or later than now a sign-in may be issued, and how much later it may begin to be good.
OLDEST, AHEAD = timedelta(hours=1), timedelta(minutes=5)
_TOLD: Final = 128
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*(?::[1-9][0-9]{{0,4}})?\Z")
_SITE = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
# A resource of this kind gives others a capability (ERC-5573).
_RECAP: Final = "urn:recap:"
# The pieces between the stars of each line.
type _Pattern = tuple[tuple[str, ...], ...]


class MessageAllowlist(Terms, frozen=True):
    """The sites for either family, as `host` or `host:port` in lower case, and the patterns of plain messages."""

    siwe: frozenset[str]
    siws: frozenset[str]
    patterns: frozenset[_Pattern]

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the message may be signed without a person, and why."""
        if subject.message is None:
            return True, "the order is no message"
        why = self._refusal(subject.message, facts.now)
        if why is None:
            return True, "the message is listed"
        return facts.approving, f"{why}; a person {'approved it' if facts.approving else 'must approve it'}"

    def tightens(self, old: Self) -> bool:
        """Say whether no site and no pattern is new."""
        return self.siwe <= old.siwe and self.siws <= old.siws and self.patterns <= old.patterns

    def covers(self) -> Covers:
        """The messages that are listed."""
        return Covers(messages=self)

    # ---- messages that are known to be harmless enough: `kind.Messages`

    def lists(self, message: Message, now: datetime) -> bool:
        """Say whether a message is listed."""
        return self._refusal(message, now) is None

    def beyond(self, others: Sequence[Messages]) -> str | None:
        """Say that something is listed here and in no other list."""
        known = [other for other in others if isinstance(other, MessageAllowlist)]
        for name in ("siwe", "siws", "patterns"):
            if not getattr(self, name) <= frozenset().union(*(getattr(other, name) for other in known)):
                return "The message-allowlist would list messages that no list had before."
        return None

    def _refusal(self, message: Message, now: datetime) -> str | None:
        """Why a message is not listed, or None."""
        if message.sign_in is not None:
            return self._unlisted_sign_in(message.sign_in, now)
        if message.claims:
            return "the message looks like a sign-in, and is none to the letter"
        if message.text is None:
            return "the message is not plain text"
        lines = message.text.split("\n")
        if any(len(one) == len(lines) and all(map(_fits, one, lines)) for one in self.patterns):
            return None
        return "the message fits no pattern"

    def _unlisted_sign_in(self, said: SignIn, now: datetime) -> str | None:
        site = said.domain.lower()
        if site not in (self.siwe if said.family == "evm" else self.siws):
            return f"the site {said.domain[:_TOLD]} is not listed"
        uri = _SITE.match(said.uri) if said.uri is not None else None
        if (said.uri is not None and (uri is None or uri[1].lower() != site)) or not _is_web(said.scheme):
            return f"the URI of the sign-in is not of {site}"
        if any(one.lower().startswith(_RECAP) for one in said.resources):
            return "the sign-in gives others a capability (urn:recap)"
        if said.issued_at is not None and not now - OLDEST <= said.issued_at <= now + AHEAD:
            return "the sign-in was not issued now"
        if said.not_before is not None and said.not_before > now + AHEAD:
            return "the sign-in is not good yet"
        if said.expiration_time is not None and said.expiration_time <= now:
            return "the sign-in has expired"
        return None


class MessageAllowlistConfig(Config, frozen=True):
    """Lists of sites and patterns; none of them means that every message waits for a person."""

    siwe_domains: Annotated[
        Annotated[tuple[str, ...], Meta(max_length=MAX_DOMAINS)] | UnsetType,
        described(
            "Sites that the EVM wallet may sign in to (EIP-4361), as `host` or `host:port`, as the message has it.",
            default=[],
        ),
    ] = UNSET
    siws_domains: Annotated[
        Annotated[tuple[str, ...], Meta(max_length=MAX_DOMAINS)] | UnsetType,
        described("Sites that the Solana wallet may sign in to (Sign In With Solana), likewise.", default=[]),
    ] = UNSET
    patterns: Annotated[
        Annotated[
            tuple[Annotated[str, Meta(min_length=LEAST_BEGINNING, max_length=1024)], ...],
            Meta(max_length=MAX_PATTERNS),
        ]
        | UnsetType,
        described(
            "Plain messages of either wallet, whole; a `*` stands for any characters of its line, also none.",
            default=[],
        ),
    ] = UNSET

    def terms(self) -> MessageAllowlist:
        """The sites and patterns as they are compared."""
        return MessageAllowlist(
            _sites(sent_or(self.siwe_domains, ()), "siweDomains"),
            _sites(sent_or(self.siws_domains, ()), "siwsDomains"),
            frozenset(map(_pattern, sent_or(self.patterns, ()))),
        )


class MessageAllowlistRule(Rule, frozen=True, kw_only=True, tag="message-allowlist"):
    """Messages that are signed without a person: sign-ins to listed sites, and texts that fit a pattern."""

    hard: ClassVar[bool] = False

    config: Annotated[MessageAllowlistConfig, described("Settings of the rule.")]


def _sites(sent: Sequence[str], field: str) -> frozenset[str]:
    for one in sent:
        if not _DOMAIN.match(one.lower()):
            raise InvalidPolicy(
                f"`{field}` entry {one[:_TOLD]!r} must be a host as the message has it, such as app.example.com or "
                "localhost:3000, without scheme, path or star; other letters than ASCII in punycode (xn--...)"
            )
    return frozenset(one.lower() for one in sent)


def _pattern(sent: str) -> _Pattern:
    beginning = sent.partition("*")[0]
    if len(beginning) < LEAST_BEGINNING or not all(one.isprintable() or one == "\n" for one in sent) or "**" in sent:
        raise InvalidPolicy(
            f"`patterns` entry {sent[:_TOLD]!r} must begin with at least {LEAST_BEGINNING} characters that are no "
            "star, have printable characters and line ends only, and no two stars side by side"
        )
    return tuple(tuple(line.split("*")) for line in sent.split("\n"))


def _is_web(scheme: str | None) -> bool:
    return scheme is None or scheme.lower() in ("http", "https")


def _fits(pieces: tuple[str, ...], line: str) -> bool:
    """Say whether a line is these pieces with anything, also nothing, where they were cut; it never goes back."""
    if len(pieces) == 1:
        return line == pieces[0]
    at, end = len(pieces[0]), len(line) - len(pieces[-1])
    if at > end or not line.startswith(pieces[0]) or not line.endswith(pieces[-1]):
        return False
    return all((at := line.find(piece, at, end) + len(piece)) >= len(piece) for piece in pieces[1:-1])
